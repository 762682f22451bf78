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
    let refused = env.run(&["approvals", "approve", &id]);
    assert!(refused.code == 2 && refused.stderr.contains("no terminal to ask at"), "{}", refused.stderr);
    let approved = env.run(&["approvals", "approve", &id, "--yes", "--json"]);
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
fn a_tool_of_the_users_own_runs_nothing_of_a_project_wherever_its_home_leads() {
    let env = Env::new();
    let home = env.dir.path().join("home");
    std::fs::create_dir_all(home.join("dot/haft/tools/run")).unwrap();
    let _ = std::fs::remove_dir_all(home.join(".config"));
    std::os::unix::fs::symlink("dot", home.join(".config")).unwrap();
    let dir = home.join("dot/haft/tools/run");
    let text = function("{module: mod, function: run, return: text}")
        .replace("kind: python", "kind: command")
        .replace("python: {module: mod, function: run, return: text}", "command: {entrypoint: ./scripts/run.sh}");
    std::fs::write(dir.join("tool.yml"), text).unwrap();
    let script = env.file("scripts/run.sh", "#!/bin/sh\necho from the project\n");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (_, said, _) = env.err("run", json!({}), &[]);
    assert!(said.contains("there is no program `./scripts/run.sh`"), "{said}");
    std::fs::create_dir_all(dir.join("scripts")).unwrap();
    std::fs::copy(&script, dir.join("scripts/run.sh")).unwrap();
    std::fs::write(dir.join("scripts/run.sh"), "#!/bin/sh\necho its own\n").unwrap();
    assert_eq!(env.ok("run", json!({}))["output"], "its own\n");
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

/// Waits until a process runs that has this among its arguments.
fn wait_for(argument: &str) {
    let runs = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.map(|line| String::from_utf8_lossy(&line).into_owned()).any(|line| line.contains(argument))
    };
    let begun = std::time::Instant::now();
    while !runs() {
        assert!(begun.elapsed().as_secs() < 60, "nothing runs with {argument}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// What a tool gives while this happens to its files.
fn meanwhile(env: &Env, argument: &str, happens: impl FnOnce()) -> Value {
    let call = env.command(&["call", "run", "{}", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    wait_for(argument);
    happens();
    let output = call.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Adds to a file without making another one of it.
fn append(path: &std::path::Path, text: &str) {
    use std::io::Write;
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_runs_is_what_was_accepted_whatever_happens_to_its_files() {
    let env = Env::new();
    let script = env.file("scripts/run-as-accepted.sh", "echo begun\nsleep 1\necho done\n");
    env.file(
        TOOL,
        "name: run\ndescription: Runs.\nkind: command\nversion: 1\ninputs:\n  schema: {type: object}\n\
         outputs: {format: text}\nexec:\n  command: {entrypoint: sh, args: [scripts/run-as-accepted.sh]}\n\
         permissions: {network: false, fs: {read: [\".\"], write: []}}\napproval: {required: false}\n",
    );
    env.run(&["trust", "--yes"]);
    let came = meanwhile(&env, "scripts/run-as-accepted.sh", || append(&script, "echo evil\n"));
    assert_eq!(came["output"], "begun\ndone\n", "{came:#}");
    assert!(env.err("run", json!({}), &[]).1.contains("`scripts/run-as-accepted.sh` changed"));

    env.file("late/__init__.py", "");
    let late = env.file("late/other.py", "word = 'accepted'\n");
    env.file(
        "late/main.py",
        "import time\n\ndef run():\n    time.sleep(1)\n    from late import other\n    return other.word\n",
    );
    let exec = "{module: late.main, function: run, return: text}";
    for read in ["[]", "[\".\"]"] {
        std::fs::write(&late, "word = 'accepted'\n").unwrap();
        env.file(TOOL, function(exec).replace("read: [\".\"]", &format!("read: {read}")));
        env.run(&["trust", "--yes"]);
        let came = meanwhile(&env, "late/other.py", || append(&late, "word = 'evil'\n"));
        assert_eq!(came["output"], "accepted", "{read}: {came:#}");
    }
}

#[test]
fn a_file_that_comes_while_somebody_is_asked_is_accepted_by_nobody() {
    let env = Env::new();
    let exec = || ("command", json!({"entrypoint": "sh", "args": ["scripts/job.sh", "${who}"]}));
    let (waits, code) = env.call("tool.create", proposal("agt", 1, exec(), json!({})), &["--no-input"]);
    assert_eq!(code, 4, "{waits:#}");
    let id = waits["error"]["details"]["approval_id"].as_str().unwrap().to_owned();
    env.file("scripts/job.sh", "echo nobody saw this\n");
    let approved = env.run(&["approvals", "approve", &id, "--yes", "--json"]);
    assert!(approved.code != 0 && approved.stdout.contains("is no longer what was asked about"), "{}", approved.stdout);
    assert_eq!(env.err("agt", json!({"who": "you"}), &["--yes"]).0, "unknown_tool");
    // Where it is there already, nobody is asked at all.
    let (_, said, code) = env.err("tool.create", proposal("two", 1, exec(), json!({})), &["--no-input"]);
    assert!(code != 4 && said.contains("it would open `scripts/job.sh`"), "{said}");
}

#[test]
fn what_runs_is_what_was_accepted_wherever_it_is_named() {
    let env = Env::new();
    let top = env.dir.path().canonicalize().unwrap();
    let interp = top.join("project/scripts/interp");
    let reader = |word: &str| format!("#!/bin/sh\necho {word}\n");
    for (exec, path, good, evil) in [
        ("{entrypoint: mytool}".to_owned(), "bin/mytool", reader("good"), reader("evil")),
        ("{entrypoint: ./run.sh}".to_owned(), "scripts/interp", reader("good"), reader("evil")),
        (
            "{entrypoint: bash, args: [-c, 'true'], env: {BASH_ENV: scripts/env.sh}}".to_owned(),
            "scripts/env.sh",
            "echo good\n".to_owned(),
            "echo evil\n".to_owned(),
        ),
        (
            "{entrypoint: sh, stdin: '. scripts/fed.sh'}".to_owned(),
            "scripts/fed.sh",
            "echo good\n".to_owned(),
            "echo evil\n".to_owned(),
        ),
        (
            "{entrypoint: env, args: [python3, -m, em]}".to_owned(),
            "em.py",
            "print('good')\n".to_owned(),
            "print('evil')\n".to_owned(),
        ),
        (
            format!("{{entrypoint: sh, args: [{}/lib/x.sh]}}", top.display()),
            "../lib/x.sh",
            "echo good\n".to_owned(),
            "echo evil\n".to_owned(),
        ),
    ] {
        env.file("run.sh", format!("#!{}\n", interp.display()));
        env.file(path, &good);
        for program in ["run.sh", path] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(env.root().join(program), mode).unwrap();
        }
        env.file(
            TOOL,
            format!(
                "name: run\ndescription: Runs.\nkind: command\nversion: 1\ninputs:\n  schema: {{type: object}}\n\
                 outputs: {{format: text}}\nexec:\n  command: {exec}\n\
                 permissions: {{network: false, fs: {{read: [\".\", {}/lib], write: []}}}}\n\
                 approval: {{required: false}}\n",
                top.display()
            ),
        );
        std::fs::create_dir_all(top.join("lib")).unwrap();
        let path_with = format!("{}/project/bin:/usr/local/bin:/usr/bin:/bin", top.display());
        let run = |args: &[&str]| crate::Ran::from(env.command(args).env("PATH", &path_with).output().unwrap());
        assert_eq!(run(&["trust", "run", "--yes"]).code, 0, "{exec}");
        let called = run(&["call", "run"]);
        assert!(called.code == 0 && called.stdout.contains("good"), "{exec}: {} {}", called.stdout, called.stderr);
        env.file(path, &evil);
        let called = run(&["call", "run"]);
        let said = format!("{}{}", called.stdout, called.stderr);
        assert!(called.code == 3 && said.contains("changed since the tool was accepted"), "{exec}: {said}");
    }
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

#[test]
fn what_a_name_means_is_not_the_projects_to_say() {
    let env = Env::new();
    let text = function("{module: mod, function: run, return: text}")
        .replace("kind: python", "kind: command")
        .replace("python: {module: mod, function: run, return: text}", "command: {entrypoint: sh, args: [-c, uname]}");
    env.file(TOOL, text);
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    let planted = env.file("nm/.bin/uname", "#!/bin/sh\necho planted\n");
    std::fs::set_permissions(&planted, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    for first in [env.root().join("nm/.bin").display().to_string(), "nm/.bin".to_owned(), "./nm/.bin".to_owned()] {
        let mut command = env.command(&["call", "run"]);
        let ran = crate::Ran::from(command.env("PATH", format!("{first}:{path}")).output().unwrap());
        let said = format!("{}{}", ran.stdout, ran.stderr);
        // A hit that is found before the call is something that came; any other is passed over.
        let refused = ran.code == 3 && said.contains("`nm/.bin/uname` came since");
        assert!(refused || (ran.code == 0 && said.contains("Linux")), "{first}: {said}");
    }
}
