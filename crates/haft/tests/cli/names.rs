//! Names that are not UTF-8: of files, and of the project itself.

use crate::{Env, Ran};
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
        for _ in 0..2 {
            let undone = run(root, &["undo", "--last"]);
            assert_eq!(undone.code, 0, "{}", undone.stderr);
        }
        assert_eq!(std::fs::read(root.join("a.txt")).unwrap(), b"old\n");
        assert!(!root.join("made").exists(), "the directories that it made are gone as well");
    }
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
