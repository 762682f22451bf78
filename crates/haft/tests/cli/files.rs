//! Reading, writing, editing and undoing, end to end.

use crate::{Env, snapshot};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_file_is_read_before_it_is_edited() {
    let env = Env::new();
    env.file("a.txt", "one\ntwo\n");
    let edit = json!({"path": "a.txt", "old_string": "two", "new_string": "2"});
    let (kind, message, code) = env.err("file.edit", edit.clone(), &["--yes"]);
    assert_eq!((kind.as_str(), message.as_str(), code), ("conflict", "a.txt has not been read in this session", 1));
    env.ok("file.read", json!({"path": "a.txt"}));
    env.ok("file.edit", edit);
    assert_eq!(env.read("a.txt"), "one\n2\n");
}

#[test]
fn what_one_session_read_another_has_not() {
    let env = Env::new();
    env.file("a.txt", "x");
    env.ok("file.read", json!({"path": "a.txt"}));
    let (kind, ..) = env.err("file.write", json!({"path": "a.txt", "content": "y"}), &["--yes", "--session", "other"]);
    assert_eq!(kind, "conflict");
}

#[test]
fn a_touched_but_unchanged_file_may_be_edited_and_a_changed_one_may_not() {
    let env = Env::new();
    let path = env.file("a.txt", "x");
    env.ok("file.read", json!({"path": "a.txt"}));
    std::fs::write(&path, "x").unwrap();
    env.ok("file.edit", json!({"path": "a.txt", "old_string": "x", "new_string": "y"}));
    std::fs::write(&path, "z").unwrap();
    let (kind, message, _) =
        env.err("file.edit", json!({"path": "a.txt", "old_string": "z", "new_string": "y"}), &["--yes"]);
    assert_eq!((kind.as_str(), message.as_str()), ("conflict", "a.txt has changed since it was read"));
}

#[test]
fn a_partly_read_file_is_not_overwritten() {
    let env = Env::new();
    env.file("a.txt", "1\n2\n3\n");
    env.ok("file.read", json!({"path": "a.txt", "limit": 1}));
    let (_, message, _) = env.err("file.write", json!({"path": "a.txt", "content": "x"}), &["--yes"]);
    assert_eq!(message, "only a part of a.txt has been read in this session");
    env.ok("file.edit", json!({"path": "a.txt", "old_string": "2", "new_string": "two"}));
}

#[test]
fn mode_and_line_ends_are_kept() {
    let env = Env::new();
    let path = env.file("run.sh", "a\r\nb\r\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    env.ok("file.read", json!({"path": "run.sh"}));
    env.ok("file.edit", json!({"path": "run.sh", "old_string": "a\nb", "new_string": "c\nd"}));
    assert_eq!(std::fs::read(&path).unwrap(), b"c\r\nd\r\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o751);
}

#[test]
fn undo_restores_content_mode_and_absence_and_can_itself_be_undone() {
    let env = Env::new();
    let path = env.file("a.txt", "old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    env.ok("file.read", json!({"path": "a.txt"}));
    let before = snapshot(&env.root());
    let write = env.ok("file.write", json!({"path": "a.txt", "content": "new"}));
    let create = env.ok("file.write", json!({"path": "deep/er/b.txt", "content": "b"}));
    assert_eq!(create["undo"]["available"], true);
    let after = snapshot(&env.root());
    let undone = env.run(&["undo", create["call_id"].as_str().unwrap(), "--json"]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    let undone_write = env.run(&["undo", write["call_id"].as_str().unwrap(), "--json"]);
    assert_eq!(undone_write.code, 0, "{}", undone_write.stderr);
    assert_eq!(snapshot(&env.root()), before);
    for undo in [&undone_write, &undone] {
        let id = undo.json()["call_id"].as_str().unwrap().to_owned();
        assert_eq!(env.run(&["undo", &id]).code, 0);
    }
    assert_eq!(snapshot(&env.root()), after);
}

#[test]
fn undo_refuses_when_somebody_changed_the_file_since() {
    let env = Env::new();
    let write = env.ok("file.write", json!({"path": "a.txt", "content": "mine"}));
    env.file("a.txt", "theirs");
    let ran = env.run(&["undo", write["call_id"].as_str().unwrap()]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("cannot be undone: changed since: a.txt"), "{}", ran.stderr);
    assert_eq!(env.read("a.txt"), "theirs");
}

#[test]
fn undo_refuses_twice_and_says_by_whom() {
    let env = Env::new();
    env.ok("file.write", json!({"path": "a.txt", "content": "x"}));
    let first = env.run(&["undo", "--last", "--json"]).json();
    let ran = env.run(&["undo", first["undone"].as_str().unwrap()]);
    assert!(ran.stderr.contains("was undone already"), "{}", ran.stderr);
}

#[test]
fn a_file_beyond_the_undo_bound_is_changed_and_said_to_be_so() {
    let env = Env::new();
    env.config("undo:\n  max_file_bytes: 10\n");
    env.file("a.txt", "more than ten bytes");
    env.ok("file.read", json!({"path": "a.txt"}));
    let write = env.ok("file.write", json!({"path": "a.txt", "content": "x"}));
    assert_eq!(write["undo"]["available"], false);
    let ran = env.run(&["undo", write["call_id"].as_str().unwrap()]);
    assert!(ran.stderr.contains("is larger than the undo limit of 10 bytes"), "{}", ran.stderr);
}

#[test]
fn old_undo_data_goes_when_it_is_too_much() {
    let env = Env::new();
    env.config("undo:\n  max_total_bytes: 100\n");
    env.file("a.txt", "x".repeat(60));
    env.ok("file.read", json!({"path": "a.txt"}));
    let first = env.ok("file.write", json!({"path": "a.txt", "content": "y".repeat(60)}));
    let second = env.ok("file.write", json!({"path": "a.txt", "content": "z"}));
    let gone = env.run(&["undo", first["call_id"].as_str().unwrap()]);
    assert!(gone.stderr.contains("its undo data is gone"), "{}", gone.stderr);
    assert_eq!(env.run(&["undo", second["call_id"].as_str().unwrap()]).code, 0);
    assert_eq!(env.read("a.txt"), "y".repeat(60));
}

#[test]
fn a_batch_changes_all_or_nothing_and_is_undone_as_one() {
    let env = Env::new();
    for name in ["a", "b", "c"] {
        env.file(&format!("{name}.txt"), "old old");
    }
    let before = snapshot(&env.root());
    let moved = env.ok("file.batch", json!({"pattern": "*.txt", "operation": "move", "destination": "in/side"}));
    assert_eq!(env.read("in/side/b.txt"), "old old");
    let renamed =
        env.ok("file.batch", json!({"pattern": "in/side/*.txt", "operation": "rename", "rename_to": "$1.md"}));
    let changed =
        env.ok("file.batch", json!({"pattern": "**/*.md", "operation": "transform", "find": "old", "replace": "new"}));
    assert_eq!(env.read("in/side/c.md"), "new new");
    for call in [changed, renamed, moved] {
        let ran = env.run(&["undo", call["call_id"].as_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    assert_eq!(snapshot(&env.root()), before);
}

#[test]
fn changes_shows_the_diff_of_a_call() {
    let env = Env::new();
    env.file("a.txt", "one\ntwo\n");
    env.ok("file.read", json!({"path": "a.txt"}));
    let edit = env.ok("file.edit", json!({"path": "a.txt", "old_string": "two", "new_string": "2"}));
    let ran = env.run(&["changes", edit["call_id"].as_str().unwrap()]);
    insta::assert_snapshot!(ran.stdout, @r"
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    ");
}

#[test]
fn a_dry_run_shows_the_change_and_makes_none() {
    let env = Env::new();
    let before = snapshot(&env.root());
    let (outcome, code) =
        env.call("file.write", json!({"path": "a.txt", "content": "x\n"}), &["--dry-run", "--no-input"]);
    assert_eq!(code, 0, "{outcome:#}");
    assert_eq!(outcome["data"]["changes"], json!(["a.txt"]));
    assert!(outcome["data"]["diff"].as_str().unwrap().contains("+x"));
    assert_eq!(snapshot(&env.root()), before);
}

#[test]
fn a_dry_run_gives_nothing_away_that_a_read_would_ask_for() {
    let env = Env::new();
    env.file(".env", "TOKEN=abc");
    env.ok("file.read", json!({"path": ".env"}));
    let (kind, message, code) =
        env.err("file.edit", json!({"path": ".env", "old_string": "T", "new_string": "x"}), &["--dry-run"]);
    assert_eq!((kind.as_str(), code), ("approval_required", 4), "{message}");
    let explained = env.run(&["explain", "file.edit", "path=.env", "old_string=T", "new_string=x", "--json"]);
    assert!(!explained.stdout.contains("TOKEN"), "{}", explained.stdout);
}

#[test]
fn long_output_is_cut_and_kept_whole() {
    let env = Env::new();
    for number in 0..3000 {
        std::fs::write(env.root().join(format!("file-{number:05}-with-quite-a-long-name.txt")), "").unwrap();
    }
    let outcome = env.ok("file.list", json!({}));
    assert_eq!(outcome["truncated"], true, "{}", outcome["output"].as_str().unwrap().len());
    let output = outcome["output"].as_str().unwrap();
    let kept = std::fs::read_to_string(outcome["full_output"].as_str().unwrap()).unwrap();
    // .git and the files: all of them are in the file, and what is shown of them is counted.
    assert_eq!(kept.lines().count(), 3001);
    let shown: Vec<&str> = output.lines().take_while(|line| !line.starts_with('[')).collect();
    assert!(output.contains(&format!("[{} of 3001 entries;", shown.len())), "{output}");
    assert!(kept.lines().zip(&shown).all(|(kept, shown)| kept == *shown));
    assert!(
        output.ends_with(&format!("[the whole output is in {}]", outcome["full_output"].as_str().unwrap())),
        "{output}"
    );
}

/// A person sees what an edit does to a text in whatever encoding; bytes that a decoded text would hide are not called a text.
#[test]
fn changes_of_other_encodings_are_shown_as_text_and_undone_byte_for_byte() {
    let env = Env::new();
    let before = b"caf\xe9\r\nth\xe9\r\n";
    let path = env.file("latin.txt", before);
    env.ok("file.read", json!({"path": "latin.txt"}));
    let edit = json!({"path": "latin.txt", "old_string": "caf\u{e9}\nth", "new_string": "caf\u{e9}\nTh"});
    let dry = env.call("file.edit", edit.clone(), &["--dry-run", "--no-input"]).0;
    let diff = dry["data"]["diff"].as_str().unwrap();
    assert!(diff.contains("encoding of latin.txt: windows-1252\n") && diff.contains("-thé\r\n+Thé\r\n"), "{diff}");
    env.ok("file.edit", edit);
    assert_eq!(std::fs::read(&path).unwrap(), b"caf\xe9\r\nTh\xe9\r\n");
    assert_eq!(env.run(&["undo", "--last"]).code, 0);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
