//! file.list, as a caller meets it: how a directory is listed.

use super::*;
use crate::halt::Halt;
use crate::testing::Stage;
use haft_core::ErrorKind;
use std::os::unix::fs::symlink;

fn stage() -> Stage {
    let stage = Stage::new();
    stage.file("src/b.rs", "12345");
    stage.file("a.txt", "x".repeat(2048));
    stage.file("out.log", "");
    stage.file(".gitignore", "*.log\n");
    symlink("src/b.rs", stage.root().join("link")).unwrap();
    stage
}

#[test]
fn one_level_is_listed_as_it_is() {
    let stage = stage();
    let reply = stage.act(&tool(), json!({})).unwrap();
    insta::assert_snapshot!(reply.text, @r"
    .git/
    .gitignore  6B
    a.txt  2.0KB
    link -> src/b.rs
    out.log  0B
    src/
    ");
    let data = reply.data.unwrap();
    assert_eq!(data["total"], 6);
    assert_eq!(data["entries"][2], json!({"name": "a.txt", "kind": "file", "size": 2048}));
    assert_eq!(data["entries"][5], json!({"name": "src", "kind": "directory"}));
}

#[test]
fn a_tree_is_listed_without_what_is_ignored() {
    let stage = stage();
    symlink(".", stage.root().join("src/loop")).unwrap();
    insta::assert_snapshot!(stage.act(&tool(), json!({"recursive": true})).unwrap().text, @r"
    .gitignore  6B
    a.txt  2.0KB
    link -> src/b.rs
    src/
    src/b.rs  5B
    src/loop -> .
    ");
    assert_eq!(stage.act(&tool(), json!({"path": "src"})).unwrap().text, "b.rs  5B\nloop -> .");
}

#[test]
fn more_entries_than_can_be_named_are_counted() {
    let stage = Stage::new();
    for n in 0..=MAX_ENTRIES {
        stage.file(&format!("many/{n:05}"), "");
    }
    let reply = stage.act(&tool(), json!({"path": "many"})).unwrap();
    insta::assert_snapshot!(reply.text.lines().next_back().unwrap(), @"[2000 of 2001 entries; list a subdirectory, or use file.glob]");
    assert_eq!(reply.data.unwrap()["total"], 2001);
}

#[test]
fn an_empty_directory_is_said_to_be_empty() {
    let stage = Stage::new();
    std::fs::create_dir(stage.root().join("empty")).unwrap();
    assert_eq!(stage.act(&tool(), json!({"path": "empty"})).unwrap().text, "empty is empty");
}

#[test]
fn what_is_no_directory_is_an_error() {
    let stage = stage();
    let file = stage.act(&tool(), json!({"path": "a.txt"})).unwrap_err();
    assert_eq!((file.kind, file.hint.as_deref()), (ErrorKind::Failed, Some("read it with file.read")));
    assert_eq!(stage.act(&tool(), json!({"path": "nowhere"})).unwrap_err().kind, ErrorKind::NotFound);
}

#[test]
fn a_cancelled_call_ends() {
    let halt = Halt::new();
    halt.cancel();
    assert_eq!(stage().act_until(&tool(), json!({}), &halt).unwrap_err().kind, ErrorKind::Cancelled);
}
