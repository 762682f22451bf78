//! Tools whose programs really run: made by agents from a proposal to its undoing, and held to what was accepted.

use crate::Env;
use serde_json::{Value, json};
use std::path::PathBuf;

/// What an agent sends to make a tool.
fn proposal(name: &str, version: u64, (kind, exec): (&str, Value), files: Value) -> Value {
    json!({"name": name, "files": files, "definition": {
        "description": "Greet somebody", "kind": kind, "version": version,
        "inputs": {"schema": {"type": "object", "additionalProperties": false, "required": ["who"],
            "properties": {"who": {"type": "string"}}}},
        "outputs": {"format": "text"}, "exec": {kind: exec},
        "permissions": {"network": false, "fs": {"read": ["notes.txt"], "write": []}, "secrets": {}},
        "approval": {"required": true, "reason": "Runs a program"}
    }})
}

/// Proposes it where nobody is, and approves it as a person does. Gives what was shown to them, and the call.
fn made(env: &Env, proposal: Value) -> (String, String) {
    let (waits, code) = env.call("tool.create", proposal, &["--no-input"]);
    assert_eq!(code, 4, "{waits:#}");
    let id = waits["error"]["details"]["approval_id"].as_str().unwrap().to_owned();
    let shown = env.run(&["approvals", "show", &id]).stdout;
    let approved = env.run(&["approvals", "approve", &id, "--json"]);
    assert_eq!((approved.code, &approved.json()["success"]), (0, &json!(true)), "{}", approved.stdout);
    (shown, id)
}

fn greeted(env: &Env, tool: &str) -> String {
    env.ok(tool, json!({"who": "you"}))["output"].as_str().unwrap().trim().to_owned()
}

fn from_proposal_to_undo(name: &str, exec: impl Fn() -> (&'static str, Value), file: (&str, &str, &str)) {
    let env = Env::new();
    env.file("notes.txt", "noted");
    env.file("secret.txt", "not for it");
    let (path, first, second) = file;
    let (shown, _) = made(&env, proposal(name, 1, exec(), json!({path: first})));
    assert!(shown.contains("reads notes.txt") && shown.contains("reaches nobody"), "{shown}");
    assert_eq!(env.err(name, json!({"who": "you"}), &["--no-input"]).2, 4, "each call is asked about");
    assert_eq!(greeted(&env, name), "hello you: noted, and the rest is hidden");
    let (shown, second) = made(&env, proposal(name, 2, exec(), json!({path: second})));
    assert!(shown.contains("-version: 1") && shown.contains("+version: 2"), "{shown}");
    assert_eq!(greeted(&env, name), "good day you: noted, and the rest is hidden");
    // Undone, it is the first version again: one that somebody has to accept as it is now.
    assert_eq!(env.run(&["undo", &second]).code, 0);
    let (_, said, code) = env.err(name, json!({"who": "you"}), &["--yes"]);
    assert!(code == 3 && said.contains("haft trust"), "{said}");
    assert_eq!(env.run(&["trust", name, "--yes"]).code, 0);
    assert_eq!(greeted(&env, name), "hello you: noted, and the rest is hidden");
}

#[test]
fn a_command_that_an_agent_makes_runs_changes_and_goes() {
    let script = |word: &str| {
        format!(
            "#!/bin/sh\ncat secret.txt 2>/dev/null || echo \"{word} $1: $(cat notes.txt), and the rest is hidden\"\n"
        )
    };
    let exec = || ("command", json!({"entrypoint": "./.haft/tools/greet/run.sh", "args": ["${who}"]}));
    from_proposal_to_undo("greet", exec, ("run.sh", &script("hello"), &script("good day")));
}

#[test]
fn a_function_that_an_agent_makes_runs_changes_and_goes() {
    let module = |word: &str| {
        format!(
            "import os\n\ndef greet(who):\n    top = os.path.abspath('../../..')\n    \
             rest = 'hidden' if not os.path.exists(top + '/secret.txt') else 'seen'\n    \
             return '{word} %s: %s, and the rest is %s' % (who, open(top + '/notes.txt').read(), rest)\n"
        )
    };
    let exec = || {
        let (args, cwd) = (json!({"who": "${who}"}), ".haft/tools/greet");
        ("python", json!({"module": "greeting", "function": "greet", "kwargs": args, "cwd": cwd, "return": "text"}))
    };
    from_proposal_to_undo("greet", exec, ("greeting.py", &module("hello"), &module("good day")));
}

/// A function of the project, with these lines under `python:`.
fn function(python: &str) -> String {
    format!(
        "name: run\ndescription: Runs.\nkind: python\nversion: 1\ninputs:\n  schema: {{type: object}}\n\
         outputs: {{format: text}}\nexec:\n  python: {python}\n\
         permissions: {{network: false, fs: {{read: [\".\"], write: []}}, secrets: {{}}}}\napproval: {{required: false}}\n"
    )
}

const TOOL: &str = ".haft/tools/run/tool.yml";

#[test]
fn a_function_imports_nothing_of_the_project_that_was_not_accepted_with_it() {
    let env = Env::new();
    env.file(TOOL, function("{module: mod, function: run, return: text}"));
    env.file("mod.py", "def run():\n    import helper\n    return helper.word\n");
    env.file("helper.py", "word = 'helped'\n");
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    let (_, said, _) = env.err("run", json!({}), &[]);
    assert!(said.contains("`helper.py` is a file of the project that was not accepted with this tool"), "{said}");
    assert!(said.contains("put it beside the manifest or into the package"), "{said}");
    // It hides nothing that is found after it, either.
    env.file("mod.py", "import colorsys\n\ndef run():\n    return colorsys.__name__\n");
    env.file("colorsys.py", "raise SystemExit\n");
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    assert_eq!(env.ok("run", json!({}))["output"], "colorsys");
    // In a package, or beside the manifest, it is part of what was accepted.
    env.file(TOOL, function("{module: pkg.mod, function: run, return: text}"));
    env.file("pkg/mod.py", "from . import helper\n\ndef run():\n    return helper.word\n");
    env.file("pkg/helper.py", "word = 'helped'\n");
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    assert_eq!(env.ok("run", json!({}))["output"], "helped");
    env.file("pkg/helper.py", "word = 'other'\n");
    assert!(env.err("run", json!({}), &[]).1.contains("`pkg/helper.py` changed"));
    env.file(TOOL, function("{module: mod, function: run, cwd: .haft/tools/run, return: text}"));
    env.file(".haft/tools/run/mod.py", "import helper\n\ndef run():\n    return helper.word\n");
    env.file(".haft/tools/run/helper.py", "word = 'beside'\n");
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    assert_eq!(env.ok("run", json!({}))["output"], "beside");
}

#[test]
fn a_function_of_the_users_own_imports_nothing_of_the_project() {
    let env = Env::new();
    let dir = env.dir.path().join("home/.config/haft/tools/run");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("tool.yml"), function("{module: mod, function: run, args: [\"${root}\"], return: text}"))
        .unwrap();
    std::fs::write(dir.join("helper.py"), "word = 'own'\n").unwrap();
    let module = "import sys, helper\n\ndef run(root):\n    sys.path.insert(0, root)\n    import theirs\n    return helper.word\n";
    std::fs::write(dir.join("mod.py"), module).unwrap();
    let root = env.root().canonicalize().unwrap();
    let (_, said, _) = env.err("run", json!({"root": root}), &[]);
    assert!(said.contains("there is no module") || said.contains("No module named 'theirs'"), "{said}");
    env.file("theirs.py", "raise SystemExit\n");
    let (_, said, _) = env.err("run", json!({"root": root}), &[]);
    assert!(said.contains("`theirs.py` is a file of the project"), "{said}");
    std::fs::write(dir.join("mod.py"), module.replace("    import theirs\n", "")).unwrap();
    assert_eq!(env.ok("run", json!({"root": root}))["output"], "own");
}

#[test]
fn a_script_that_changes_while_a_secret_is_fetched_does_not_run() {
    let env = Env::new();
    let script = env.file("run.sh", "#!/bin/sh\necho good\n");
    env.file(
        TOOL,
        "name: run\ndescription: Runs.\nkind: command\nversion: 1\ninputs:\n  schema: {type: object}\n\
         outputs: {format: text}\nexec:\n  command: {entrypoint: sh, args: [run.sh]}\n\
         permissions: {network: false, fs: {read: [\".\"], write: []}, secrets: {KEY: {type: string, required: true}}}\n\
         approval: {required: false}\n",
    );
    env.run(&["trust", "--yes"]);
    env.config("secrets: {KEY: {command: [echo, told-to-it]}}\n");
    assert_eq!(env.ok("run", json!({}))["output"], "good\n");
    let swap = format!("echo 'echo evil' > {}; echo told-to-it", script.display());
    env.config(&format!("secrets: {{KEY: {{command: [sh, -c, \"{swap}\"]}}}}\n"));
    let (kind, said, _) = env.err("run", json!({}), &["--yes"]);
    assert!(kind == "denied" && said.contains("`run.sh` changed since the tool was accepted"), "{said}");
    assert_eq!(env.read("run.sh"), "echo evil\n", "it did change in between");
}

/// A virtual environment of the system's Python in the project, and where its packages are. Another one may be a script in
/// a home that is not shown here.
fn environment(env: &Env) -> PathBuf {
    let venv = ["-m", "venv", "--without-pip", ".venv"];
    let made = std::process::Command::new("/usr/bin/python3").args(venv).current_dir(env.root()).status();
    assert!(made.unwrap().success(), "python3-venv is needed for this test");
    let lib = std::fs::read_dir(env.root().join(".venv/lib")).unwrap().next().unwrap().unwrap().path();
    lib.canonicalize().unwrap().join("site-packages")
}

const IN_VENV: &str = "{module: mod, function: run, venv: .venv, return: text}";

#[test]
fn a_package_of_an_environment_that_changed_takes_the_function_out_of_use() {
    let env = Env::new();
    let package = environment(&env).join("dep.py");
    std::fs::write(&package, "word = 'packed'\n").unwrap();
    env.file(TOOL, function(IN_VENV));
    env.file("mod.py", "import dep\n\ndef run():\n    return dep.word\n");
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    assert_eq!(env.ok("run", json!({}))["output"], "packed");
    assert_eq!(env.ok("run", json!({}))["output"], "packed", "running it changes nothing of it");
    std::fs::hard_link(&package, env.root().join("stored.py")).unwrap();
    assert_eq!(env.ok("run", json!({}))["output"], "packed", "nor does one more name for a file");
    std::fs::write(&package, "word = 'picked'\n").unwrap();
    let (kind, said, _) = env.err("run", json!({}), &["--yes"]);
    assert!(kind == "denied" && said.contains("`.venv/` changed"), "{said}");
    // What leads from there into the project is no package of it.
    std::fs::remove_file(&package).unwrap();
    let linked = env.file("src/dep.py", "word = 'linked'\n").canonicalize().unwrap();
    std::os::unix::fs::symlink(linked, &package).unwrap();
    env.run(&["trust", "--yes"]);
    assert!(env.err("run", json!({}), &["--yes"]).1.contains("`src/dep.py` is a file of the project"));
}

#[test]
fn what_an_environment_runs_by_itself_is_accepted_with_it() {
    let env = Env::new();
    let packages = environment(&env);
    env.file(TOOL, function(IN_VENV));
    env.file("mod.py", "import sys\n\ndef run():\n    return getattr(sys, 'said', 'nothing')\n");
    let src = env.file("src/theirs.py", "import sys\nsys.said = 'theirs'\n").canonicalize().unwrap();
    let path = format!("{}\nimport theirs\n", src.parent().unwrap().display());
    std::fs::write(packages.join("a.pth"), path).unwrap();
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    assert_eq!(env.ok("run", json!({}))["output"], "nothing", "it loads nothing of the project before it is watched");
    // Packages that lie elsewhere in the project, behind a link, are part of it.
    std::fs::remove_dir_all(&packages).unwrap();
    let moved = env.file("packages/a.pth", "import sys; sys.said = 'good'\n");
    std::os::unix::fs::symlink(moved.parent().unwrap().canonicalize().unwrap(), &packages).unwrap();
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    assert_eq!(env.ok("run", json!({}))["output"], "good");
    env.file("packages/a.pth", "import sys; sys.said = 'evil'\n");
    let (kind, said, _) = env.err("run", json!({}), &["--yes"]);
    assert!(kind == "denied" && said.contains("`.venv/` changed"), "{said}");
}

#[test]
fn an_environment_of_a_python_in_the_project_is_not_used() {
    let env = Env::new();
    environment(&env);
    env.file(TOOL, function(IN_VENV));
    env.file("mod.py", "def run():\n    return 'ran'\n");
    let base = env.file("base/bin/python3", "").canonicalize().unwrap();
    env.file(".venv/pyvenv.cfg", format!("home = {}\n", base.parent().unwrap().display()));
    env.run(&["trust", "--yes"]);
    let (_, said, _) = env.err("run", json!({}), &["--yes"]);
    assert!(said.contains("its pyvenv.cfg says that its Python is in") && said.contains("in the project"), "{said}");
}

#[test]
fn what_lies_compiled_beside_a_source_is_not_what_runs() {
    let env = Env::new();
    let packages = environment(&env);
    let evil = env.file("evil.py", "word = 'evil'\n");
    let compile = "import importlib.util, py_compile, sys\nmode = py_compile.PycInvalidationMode.UNCHECKED_HASH\n\
                   py_compile.compile(sys.argv[1], importlib.util.cache_from_source(sys.argv[2]), invalidation_mode=mode)";
    let sources = [env.file("pkg/part.py", "word = 'good'\n"), packages.join("dep.py")];
    for source in &sources {
        std::fs::write(source, "word = 'good'\n").unwrap();
        let made = std::process::Command::new("/usr/bin/python3").args(["-c", compile]).args([&evil, source]).status();
        assert!(made.unwrap().success() && source.with_file_name("__pycache__").is_dir());
    }
    env.file(TOOL, function(&IN_VENV.replace("mod,", "pkg.mod,")));
    env.file("pkg/mod.py", "import dep\nfrom . import part\n\ndef run():\n    return part.word + dep.word\n");
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    assert_eq!(env.ok("run", json!({}))["output"], "goodgood");
}
