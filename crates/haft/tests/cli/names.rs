//! Names that are not UTF-8: of files, and of the project itself.

use crate::shell::{confines, exec};
use crate::{Env, Ran};
use haft_stub::{Reply, Stub, Wire};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

fn named(dir: &Path, name: &[u8]) -> PathBuf {
    dir.join(OsStr::from_bytes(name))
}

fn call(env: &Env, root: &Path, tool: &str, args: Value) -> Value {
    let args = args.to_string();
    let mut command = env.command(&["call", tool, &args, "--yes", "--json"]);
    let ran = Ran::from(command.current_dir(root).output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    ran.json()
}

#[test]
fn a_name_that_is_not_text_is_accepted_as_it_is_listed() {
    let env = Env::new();
    let path = named(&env.root(), b"caf\xe9.txt");
    std::fs::write(&path, "old\n").unwrap();
    let listed = call(&env, &env.root(), "file.glob", json!({"pattern": "*.txt"}));
    assert!(listed["output"].as_str().unwrap().contains("caf\\xe9.txt"), "{listed:#}");
    let read = call(&env, &env.root(), "file.read", json!({"path": "caf\\xe9.txt"}));
    assert!(read["output"].as_str().unwrap().contains("old"), "{read:#}");
    let edit = json!({"path": "caf\\xe9.txt", "old_string": "old", "new_string": "new"});
    let edited = call(&env, &env.root(), "file.edit", edit);
    assert_eq!(std::fs::read(&path).unwrap(), b"new\n");
    assert_eq!(edited["undo"]["files"], json!(["caf\\xe9.txt"]));
    assert_eq!(env.run(&["undo", "--last"]).code, 0);
    assert_eq!(std::fs::read(&path).unwrap(), b"old\n");
    assert_eq!(std::fs::read_dir(env.root()).unwrap().count(), 2, "no other file was made");
}

#[test]
fn a_project_whose_path_is_not_text_is_changed_and_undone() {
    let env = Env::new();
    let roots = [&b"proj\xe9ct"[..], b"proj\xe8ct"].map(|name| named(env.dir.path(), name));
    for root in &roots {
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::write(root.join("a.txt"), "old\n").unwrap();
        call(&env, root, "file.read", json!({"path": "a.txt"}));
        call(&env, root, "file.edit", json!({"path": "a.txt", "old_string": "old", "new_string": "new"}));
        call(&env, root, "file.write", json!({"path": "made/deep/b.txt", "content": "b\n"}));
    }
    let run = |root: &Path, args: &[&str]| Ran::from(env.command(args).current_dir(root).output().unwrap());
    // Each of them has its own calls, however alike their names look.
    for root in &roots {
        assert_eq!(run(root, &["changes", "--json"]).json().as_array().unwrap().len(), 2);
        let shown = haft_core::path_text::show(root.as_os_str());
        for form in [shown.as_str(), haft_core::path_text::store(root).as_str()] {
            let listed = run(env.dir.path(), &["--root", form, "changes", "--json"]);
            assert_eq!(listed.json().as_array().unwrap().len(), 2, "{form}: {}", listed.stderr);
        }
        for _ in 0..2 {
            let undone = run(root, &["undo", "--last"]);
            assert_eq!(undone.code, 0, "{}", undone.stderr);
        }
        assert_eq!(std::fs::read(root.join("a.txt")).unwrap(), b"old\n");
        assert!(!root.join("made").exists(), "the directories that it made are gone as well");
    }
}

/// Two projects whose names look alike when they are read as text, and commands in them.
struct Twins {
    env: Env,
    roots: [PathBuf; 2],
}

impl Twins {
    fn new() -> Self {
        let env = Env::new();
        let roots = [&b"proj\xe9ct"[..], b"proj\xe8ct"].map(|name| named(env.dir.path(), name));
        for root in &roots {
            std::fs::create_dir_all(root.join(".git")).unwrap();
        }
        Self { env, roots }
    }

    fn run(&self, which: usize, args: &[&str]) -> Ran {
        let ran = Ran::from(self.env.command(args).current_dir(&self.roots[which]).output().unwrap());
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    fn fails(&self, which: usize, args: &[&str]) -> String {
        let ran = Ran::from(self.env.command(args).current_dir(&self.roots[which]).output().unwrap());
        assert_ne!(ran.code, 0, "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran.stderr
    }
}

#[test]
fn commands_change_a_project_whose_path_is_not_text_and_are_undone() {
    let twins = Twins::new();
    if !confines(&twins.env) {
        return;
    }
    let root = &twins.roots[0];
    std::fs::write(root.join("a.txt"), "old\n").unwrap();
    let ran = call(&twins.env, root, "shell.exec", json!({"command": "cat a.txt; echo new > a.txt; echo b > b.txt"}));
    assert_eq!(ran["output"].as_str().unwrap().lines().next(), Some("old"), "{ran:#}");
    assert_eq!(ran["undo"]["available"], true, "{ran:#}");
    assert_eq!(std::fs::read(root.join("a.txt")).unwrap(), b"new\n");
    twins.run(0, &["undo", "--last"]);
    assert_eq!(std::fs::read(root.join("a.txt")).unwrap(), b"old\n");
    assert!(!root.join("b.txt").exists());
    // In the background, by a process of its own.
    let args = json!({"command": "echo later > later.txt", "background": true});
    let started = call(&twins.env, root, "shell.exec", args);
    let id = started["data"]["task"]["id"].as_str().unwrap().to_owned();
    let status = || call(&twins.env, root, "process.status", json!({ "id": id }))["data"]["state"].clone();
    crate::process::until(|| status() != "running");
    assert_eq!(status(), "done");
    assert_eq!(std::fs::read(root.join("later.txt")).unwrap(), b"later\n");
    let list = json!({});
    let of_other = call(&twins.env, &twins.roots[1], "process.list", list);
    assert!(!of_other["output"].as_str().unwrap().contains("later.txt"), "{of_other:#}");
}

#[test]
fn tasks_and_pipelines_of_a_project_whose_path_is_not_text_are_its_own() {
    let twins = Twins::new();
    let task = ["task", "add", "Sums", "--tool", "calc.eval", "expression=6*7", "--json"];
    let id = twins.run(0, &task).json()["id"].as_str().unwrap().to_owned();
    assert_eq!(twins.run(0, &["task", "list", "--json"]).json().as_array().unwrap().len(), 1);
    assert_eq!(twins.run(1, &["task", "list", "--json"]).json(), json!([]));
    assert_eq!(twins.run(0, &["task", "run", &id]).stdout.trim(), "42");
    let workflow = "steps:\n  - {id: write, tool: file.write, args: {path: out.txt, content: done}}\n";
    for root in &twins.roots {
        std::fs::create_dir_all(root.join(".haft/workflows")).unwrap();
        std::fs::write(root.join(".haft/workflows/demo.yml"), workflow).unwrap();
    }
    twins.run(0, &["trust", "--yes"]);
    // What was accepted of one is not accepted of the other.
    assert!(twins.fails(1, &["pipeline", "run", "demo", "--yes"]).contains("nobody has accepted it"));
    twins.run(0, &["pipeline", "run", "demo", "--yes"]);
    assert_eq!(std::fs::read(twins.roots[0].join("out.txt")).unwrap(), b"done");
    let runs = twins.run(0, &["pipeline", "runs", "--json"]).json();
    let run = runs[0]["run"].as_str().unwrap();
    assert_eq!(twins.run(0, &["pipeline", "show", run, "--json"]).json()["state"], "done");
    assert_eq!(twins.run(1, &["pipeline", "runs", "--json"]).json(), json!([]));
}

#[test]
fn a_conversation_in_a_project_whose_path_is_not_text_is_gone_on_with_there() {
    let stub = Stub::start(vec![Reply::say("Blue, then."), Reply::say("You said blue.")]);
    let twins = Twins::new();
    let url = stub.base(Wire::Anthropic);
    twins.env.config(&format!(
        "models:\n  use: [stub/stub-1]\n  providers:\n    stub: {{wire: anthropic, url: \"{url}\"}}\n  known:\n    \
         stub/stub-1: {{window: 200000, max_output: 4000, input: 1, output: 1}}\n"
    ));
    twins.run(0, &["run", "my colour is blue"]);
    assert!(twins.fails(1, &["run", "--resume", "which colour?"]).contains("no conversation in this project"));
    assert_eq!(twins.run(0, &["run", "--resume", "which colour?"]).stdout, "You said blue.\n");
    assert!(stub.asked()[1].says("my colour is blue"));
    assert_eq!(twins.run(0, &["config", "path", "--json"]).json()["root"], {
        let shown = format!("{}/proj\\xe9ct", twins.env.dir.path().canonicalize().unwrap().display());
        json!(shown)
    });
}

/// Where the kernel or the file system lacks what haft uses, the same holds.
#[test]
fn calls_work_where_system_calls_are_refused() {
    for refused in ["renameat2", "renameat2,linkat", "openat2", "openat2,renameat2,linkat"] {
        let env = Env::new();
        let run = |args: &[&str]| Ran::from(env.command(args).env("HAFT_REFUSE", refused).output().unwrap());
        let call = |tool: &str, args: Value| {
            let ran = run(&["call", tool, &args.to_string(), "--yes", "--json"]);
            assert_eq!(ran.code, 0, "{refused}: {}{}", ran.stdout, ran.stderr);
        };
        call("file.write", json!({"path": "made/new.txt", "content": "one\n"}));
        call("file.edit", json!({"path": "made/new.txt", "old_string": "one", "new_string": "two"}));
        call("file.batch", json!({"pattern": "made/*", "operation": "move", "destination": "moved"}));
        assert_eq!(env.read("moved/new.txt"), "two\n", "{refused}");
        for _ in 0..3 {
            let undone = run(&["undo", "--last"]);
            assert_eq!(undone.code, 0, "{refused}: {}", undone.stderr);
        }
        assert!(!env.root().join("made").exists() && !env.root().join("moved").exists(), "{refused}");
    }
}

/// Without overlays there are no copy-on-write views: a command writes straight into the project, which its record and its
/// reply say; and what needs a view is refused with the reason.
#[test]
fn commands_say_so_where_overlays_are_refused() {
    let env = Env::new();
    if !confines(&env) {
        return;
    }
    let run = |args: &[&str]| Ran::from(env.command(args).env("HAFT_REFUSE", "overlay").output().unwrap());
    let doctor = run(&["doctor", "--json"]).json();
    let overlay = doctor.as_array().unwrap().iter().find(|finding| finding["name"] == "overlay").unwrap();
    assert!(overlay["found"].as_str().unwrap().contains("an overlay cannot be mounted"), "{overlay:#}");
    let args = json!({"command": "echo two > made.txt"}).to_string();
    let ran = run(&["call", "shell.exec", &args, "--yes", "--json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(env.read("made.txt"), "two\n");
    let outcome = ran.json();
    assert_ne!(outcome["undo"]["available"], true, "{outcome:#}");
    let id = outcome["call_id"].as_str().unwrap().to_owned();
    let why = "copy-on-write views do not work here";
    let log = env.run(&["log", &id, "--json"]).stdout;
    assert!(log.contains(why), "{log}");
    let tried = run(&["call", "shell.exec", &args, "--dry-run"]);
    assert!(
        tried.code != 0 && tried.stderr.contains("copy-on-write"),
        "{} {}{}",
        tried.code,
        tried.stdout,
        tried.stderr
    );
    // With them, the same command is a change that can be taken back.
    let (outcome, code) = exec(&env, "echo three > made.txt");
    assert_eq!((code, &outcome["undo"]["available"]), (0, &json!(true)), "{outcome:#}");
}

/// Skills and tools that are files are read where `openat2` is missing, and no link among them is followed.
#[test]
fn skills_and_tools_are_read_where_openat2_is_refused() {
    let env = Env::new();
    let home = env.dir.path().join("home");
    let (skills, tools) = (home.join(".claude/skills/review"), home.join(".config/haft/tools"));
    for dir in [&skills, &tools.join("ask_it"), &tools.join("linked")] {
        std::fs::create_dir_all(dir).unwrap();
    }
    std::fs::write(skills.join("SKILL.md"), "---\nname: review\ndescription: Reviews\n---\nLook.\n").unwrap();
    std::fs::write(tools.join("ask_it/tool.yml"), crate::shelf::asks("ask_it", 9, "")).unwrap();
    std::fs::write(tools.join("linked/real.yml"), crate::shelf::asks("linked", 9, "")).unwrap();
    std::os::unix::fs::symlink("real.yml", tools.join("linked/tool.yml")).unwrap();
    let run = |args: &[&str]| Ran::from(env.command(args).env("HAFT_REFUSE", "openat2").output().unwrap());
    let skills = run(&["skills", "review"]);
    assert!(skills.code == 0 && skills.stdout.contains("Look."), "{}{}", skills.stdout, skills.stderr);
    let tool = run(&["tools", "ask_it"]);
    assert!(tool.code == 0 && tool.stdout.contains("standing  own"), "{}{}", tool.stdout, tool.stderr);
    assert_eq!(env.run(&["tools", "linked"]).code, 0, "with openat2, a link that stays in its folder is followed");
    let linked = run(&["call", "linked", "{}", "--yes"]);
    assert!(linked.code != 0 && linked.stderr.contains("links are followed only where"), "{}", linked.stderr);
}
