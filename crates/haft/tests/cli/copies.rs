//! Copies of a project under attack by what the user has set up for git: with a home, as only a whole process has one.

use crate::Env;
use serde_json::json;
use std::process::Command;

fn git(env: &Env, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=haft", "-c", "user.email=haft@example.com", "-C"])
        .arg(env.root())
        .args(args)
        .env("HOME", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_projects_attributes_start_no_program_of_the_users() {
    let env = Env::new();
    let (home, trapped) = (env.dir.path().join("home"), env.dir.path().join("trapped"));
    std::fs::create_dir_all(&home).unwrap();
    let trap = format!("sh -c 'env > {}; cat'", trapped.display());
    let config =
        format!("[filter \"x\"]\n\tsmudge = \"{trap}\"\n\tclean = \"{trap}\"\n[core]\n\tfsmonitor = \"{trap}\"\n");
    std::fs::write(home.join(".gitconfig"), config).unwrap();
    env.file("a.txt", "a\n");
    env.file(".gitattributes", "* filter=x\n");
    git(&env, &["init", "--quiet"]);
    git(&env, &["add", "-A"]);
    git(&env, &["commit", "--quiet", "-m", "first"]);
    let spawn = json!({"task": "x", "mode": "worktree"}).to_string();
    let outcome = env.command(&["call", "agent.spawn", &spawn, "--json", "--yes"]).output().unwrap();
    let said = String::from_utf8_lossy(&outcome.stdout);
    assert!(!said.contains("git "), "the copy was made: {said}");
    assert!(!trapped.exists(), "{said}");
    let places = ["home/.local/share/haft-worktrees", "home/.local/share/haft/worktrees"];
    for place in places {
        let left = std::fs::read_dir(env.dir.path().join(place)).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{place}");
    }
}
