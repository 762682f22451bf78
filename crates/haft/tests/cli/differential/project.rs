//! The project that the corpus talks about, for real: a repository with some history, a secret, and links.

use crate::Env;
use std::process::Command;

const FILES: &[(&str, &str)] = &[
    ("README.md", "# Sample\n\nfoo bar\n"),
    ("a.txt", "1 one foo\n2 two bar\n3 three foo\n"),
    ("b.txt", "2 two bar\n4 four\n"),
    ("data.json", "{\"name\": \"sample\", \"a\": [1, 2]}\n"),
    ("package.json", "{\"name\": \"sample\", \"scripts\": {}}\n"),
    ("src/main.rs", "fn main() {\n    println!(\"foo\");\n}\n"),
    ("src/lib.rs", "pub fn foo() {}\n"),
    ("src/util/x.py", "print('foo')\n"),
    ("docs/guide.md", "# Guide\n"),
    ("notes/todo.md", "- foo\n"),
    ("build/out.o", "\u{7f}ELF not really\n"),
    ("build.sh", "touch built\n"),
    ("a.patch", "--- a/a.txt\n+++ b/a.txt\n"),
];

/// Makes it where the scene has its project.
pub(super) fn make(env: &Env) {
    for (path, content) in FILES {
        env.file(path, content);
    }
    std::fs::create_dir_all(env.root().join("sub")).unwrap();
    std::os::unix::fs::symlink("/etc", env.root().join("link-out")).unwrap();
    std::os::unix::fs::symlink("src", env.root().join("link-in")).unwrap();
    std::fs::remove_dir(env.root().join(".git")).unwrap();
    run(env, "tar", &["cf", "x.tar", "src"]);
    git(env, &["init", "-q", "-b", "main"]);
    for round in ["one", "two", "three", "four"] {
        env.file("history.txt", round);
        git(env, &["add", "."]);
        git(env, &["commit", "-q", "-m", round]);
    }
    git(env, &["tag", "v1"]);
    git(env, &["remote", "add", "origin", "https://example.com/x.git"]);
    env.file(".env", "KEY=secret\n");
    // The same content at another time: git would like to note that in its index.
    for path in ["a.txt", "src/main.rs"] {
        let file = std::fs::File::options().write(true).open(env.root().join(path)).unwrap();
        file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_mins(1)).unwrap();
    }
}

fn git(env: &Env, args: &[&str]) {
    let who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.com"];
    run(env, "git", &[&who, args].concat());
}

fn run(env: &Env, program: &str, args: &[&str]) {
    let mut command = Command::new(program);
    command.args(args).current_dir(env.root()).env("HOME", env.dir.path().join("home")).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}
