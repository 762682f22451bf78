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
fn entries_that_are_not_shown_are_counted_and_all_are_in_the_whole_text() {
    let stage = Stage::new();
    let count = 5000;
    for n in 0..count {
        stage.file(&format!("many/{n:05}"), "");
    }
    let reply = stage.act(&tool(), json!({"path": "many"})).unwrap();
    let lines: Vec<&str> = reply.text.lines().collect();
    assert_eq!((lines[0], lines[1999], lines.len()), ("00000  0B", "01999  0B", 2001));
    insta::assert_snapshot!(lines[2000], @"[2000 of 5000 entries; list a subdirectory, or use file.glob, to see fewer]");
    let whole = reply.whole_text.unwrap();
    assert!(whole.lines().eq((0..count).map(|n| format!("{n:05}  0B"))));
    assert_eq!(reply.data.unwrap()["total"], 5000);
}

#[test]
fn long_names_are_shown_up_to_the_size_of_a_reply() {
    let stage = Stage::new();
    for n in 0..400 {
        stage.file(&format!("many/{n:0200}"), "");
    }
    let reply = stage.act(&tool(), json!({"path": "many"})).unwrap();
    let limits = Limits::default();
    assert!(reply.text.len() <= limits.bytes && reply.text.len() > limits.bytes - 500, "{}", reply.text.len());
    let (rest, note) = reply.text.rsplit_once('\n').unwrap();
    assert!(note.starts_with(&format!("[{} of 400 entries;", rest.lines().count())), "{note}");
    assert_eq!(reply.whole_text.unwrap().lines().count(), 400);
}

#[test]
fn a_name_is_shown_in_a_form_that_is_accepted_back() {
    let stage = Stage::new();
    stage.file("~/home-like.txt", "x");
    let text = stage.act(&tool(), json!({})).unwrap().text;
    assert_eq!(text, ".git/\n./~/");
    assert_eq!(stage.act(&tool(), json!({"path": "./~/"})).unwrap().text, "home-like.txt  1B");
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

#[test]
fn a_directory_of_a_hundred_thousand_entries_is_listed_in_bounds() {
    let stage = Stage::new();
    let dir = stage.root().join("many");
    std::fs::create_dir(&dir).unwrap();
    for n in 0..100_000 {
        std::fs::File::create(dir.join(format!("{n:06}"))).unwrap();
    }
    let begun = std::time::Instant::now();
    let reply = stage.act(&tool(), json!({"path": "many"})).unwrap();
    assert!(begun.elapsed().as_secs() < 20, "took {:?}", begun.elapsed());
    assert!(reply.text.len() <= Limits::default().bytes);
    assert!(reply.text.ends_with("[2000 of 100000 entries; list a subdirectory, or use file.glob, to see fewer]"));
    assert_eq!(reply.whole_text.unwrap().lines().count(), 100_000);
    assert_eq!(reply.data.unwrap()["entries"].as_array().unwrap().len(), MAX_ENTRIES);
}

#[test]
fn listing_takes_time_in_proportion_to_the_entries() {
    let stage = Stage::new();
    for count in [2000, 16_000] {
        let dir = stage.root().join(count.to_string());
        std::fs::create_dir(&dir).unwrap();
        for n in 0..count {
            std::fs::File::create(dir.join(n.to_string())).unwrap();
        }
    }
    crate::testing::assert_linear(2000, |count| {
        let reply = stage.act(&tool(), json!({"path": count.to_string()})).unwrap();
        assert_eq!(reply.data.unwrap()["total"], count);
    });
}

#[test]
fn what_is_neither_file_nor_directory_is_listed_as_such() {
    let stage = Stage::new();
    std::fs::create_dir(stage.root().join("d")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, stage.root().join("d/fifo"), rustix::fs::Mode::RUSR).unwrap();
    let reply = stage.act(&tool(), json!({"path": "d"})).unwrap();
    assert_eq!((reply.text.as_str(), reply.data.unwrap()["entries"][0]["kind"].as_str()), ("fifo", Some("other")));
    let device = stage.act(&tool(), json!({"path": "/dev/null"})).unwrap_err();
    assert_eq!(device.message, "/dev/null is not a directory");
}
