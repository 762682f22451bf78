//! file.ignore, as a caller meets it: what is ignored, and why.

use super::*;
use crate::testing::Stage;
use haft_core::ErrorKind;
use serde_json::Value;

fn written(reply: &Reply) -> &str {
    let [Change::Write { content, .. }] = reply.changes.as_slice() else { panic!("{reply:?}") };
    std::str::from_utf8(content).unwrap()
}

fn add(stage: &Stage, patterns: &[&str]) -> Reply {
    stage.act(&tool(), json!({"action": "add", "patterns": patterns})).unwrap()
}

fn check(stage: &Stage, path: &str) -> (String, Value) {
    let reply = stage.act(&tool(), json!({"action": "check", "path": path})).unwrap();
    assert!(reply.changes.is_empty());
    (reply.text, reply.data.unwrap())
}

#[test]
fn missing_patterns_are_added_once() {
    let stage = Stage::new();
    let reply = add(&stage, &["*.log", "dist/", "*.log"]);
    assert_eq!(reply.text, "Added *.log, dist/ to .gitignore");
    assert_eq!(written(&reply), "*.log\ndist/\n");
    let path = stage.file(".gitignore", "*.log\ndist/\n");
    let again = add(&stage, &["dist/"]);
    assert_eq!((again.text.as_str(), again.changes.len()), (".gitignore already has dist/", 0));
    assert_eq!(std::fs::read_to_string(path).unwrap(), "*.log\ndist/\n");
}

#[test]
fn line_ends_are_kept_and_the_last_one_is_mended() {
    let stage = Stage::new();
    stage.file(".gitignore", "a\r\nb");
    assert_eq!(written(&add(&stage, &["c"])), "a\r\nb\r\nc\r\n");
    stage.file(".gitignore", "a\nb");
    assert_eq!(written(&add(&stage, &["b", "c"])), "a\nb\nc\n");
}

#[test]
fn the_change_names_what_it_expects_to_find() {
    let stage = Stage::new();
    let path = stage.file("sub/.gitignore", "a\n");
    let reply = stage.act(&tool(), json!({"action": "add", "dir": "sub", "patterns": ["b"]})).unwrap();
    let before = files::state(&path).unwrap();
    assert_eq!(reply.changes, [Change::Write { path, content: b"a\nb\n".to_vec(), before, mode: None }]);
}

#[test]
fn patterns_that_are_none_are_refused() {
    let stage = Stage::new();
    for patterns in [json!([]), json!([""]), json!(["a\nb"])] {
        let error = stage.act(&tool(), json!({"action": "add", "patterns": patterns})).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidInput, "{patterns}");
    }
    let error = stage.act(&tool(), json!({"action": "add"})).unwrap_err();
    assert_eq!(error.message, "`patterns` is missing: add needs at least one");
}

#[test]
fn a_check_names_the_pattern_its_file_and_line() {
    let stage = Stage::new();
    stage.file(".gitignore", "# made\nbuild/\n*.log\n!keep.log\n");
    stage.file("sub/.gitignore", "!b.log\nkeep.log\n");
    let told = ["build/out.bin", "a.log", "sub/keep.log", "sub/b.log", "keep.log", "build", "build/", "src/a.rs"];
    let told: Vec<String> = told.iter().map(|path| check(&stage, path).0).collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    build/out.bin is ignored by `build/` (.gitignore:2)
    a.log is ignored by `*.log` (.gitignore:3)
    sub/keep.log is ignored by `keep.log` (sub/.gitignore:2)
    sub/b.log is not ignored: kept by `!b.log` (sub/.gitignore:1)
    keep.log is not ignored: kept by `!keep.log` (.gitignore:4)
    build is not ignored
    build/ is ignored by `build/` (.gitignore:2)
    src/a.rs is not ignored
    ");
    let data = json!({"ignored": true, "pattern": "*.log", "source": ".gitignore:3"});
    assert_eq!(check(&stage, "a.log").1, data);
    assert_eq!(check(&stage, "src/a.rs").1, json!({"ignored": false}));
}

#[test]
fn ignore_files_above_the_directory_count_too() {
    let stage = Stage::new();
    stage.file(".gitignore", "/sub/*.tmp\n");
    stage.file("sub/x.tmp", "");
    let reply = stage.act(&tool(), json!({"action": "check", "dir": "sub", "path": "x.tmp"})).unwrap();
    assert_eq!(reply.text, "x.tmp is ignored by `/sub/*.tmp` (.gitignore:1)");
}

#[test]
fn a_check_stays_below_its_directory() {
    let stage = Stage::new();
    for path in ["../x", "/etc/passwd", "."] {
        let error = stage.act(&tool(), json!({"action": "check", "path": path})).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidInput, "{path}");
    }
    let error = stage.act(&tool(), json!({"action": "check", "dir": "nowhere", "path": "x"})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[test]
fn patterns_are_read_as_git_reads_them() {
    let stage = Stage::new();
    stage.file(".gitignore", "{a,b}\nlog[[:digit:]]  \n");
    stage.file(".git/info/exclude", "mine\n");
    let told = ["{a,b}", "a", "log7", "sub/mine"].map(|path| check(&stage, path).0);
    insta::assert_snapshot!(told.join("\n"), @r"
    {a,b} is ignored by `{a,b}` (.gitignore:1)
    a is not ignored
    log7 is ignored by `log[[:digit:]]` (.gitignore:2)
    sub/mine is ignored by `mine` (.git/info/exclude:1)
    ");
}

#[test]
fn an_ignore_file_that_cannot_be_read_is_told() {
    let stage = Stage::new();
    stage.file("sub/patterns", "*.log\n");
    std::os::unix::fs::symlink("patterns", stage.root().join("sub/.gitignore")).unwrap();
    let reply = stage.act(&tool(), json!({"action": "check", "path": "sub/x.log"})).unwrap();
    assert_eq!(reply.text, "sub/x.log is not ignored");
    insta::assert_snapshot!(reply.warnings.join("\n"), @"sub/.gitignore is a symbolic link, which git does not follow");
}
