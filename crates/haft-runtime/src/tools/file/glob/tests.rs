//! file.glob, as a caller meets it: patterns and what they find.

use super::*;
use crate::halt::Halt;
use crate::testing::Stage;
use haft_core::ErrorKind;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

/// Makes files, the first the oldest.
fn stage(paths: &[&str]) -> Stage {
    let stage = Stage::new();
    for (age, path) in paths.iter().enumerate() {
        let path = stage.file(path, "some text");
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000_000_000 + age as u64);
        std::fs::File::open(path).unwrap().set_modified(time).unwrap();
    }
    stage
}

fn text(stage: &Stage, args: Value) -> String {
    stage.act(&tool(), args).unwrap().text
}

#[test]
fn the_newest_file_comes_first_with_its_size() {
    let stage = stage(&["old.rs", "src/new.rs", "src/new.txt"]);
    let reply = stage.act(&tool(), json!({"pattern": "**/*.rs"})).unwrap();
    insta::assert_snapshot!(reply.text, @r"
    src/new.rs  9B
    old.rs  9B
    ");
    let files = json!([
        {"path": "src/new.rs", "size": 9, "mtime_ms": 1_000_000_000_001_u64},
        {"path": "old.rs", "size": 9, "mtime_ms": 1_000_000_000_000_u64},
    ]);
    assert_eq!(reply.data, Some(json!({"files": files, "total": 2, "truncated": false})));
}

#[test]
fn stars_stay_in_their_directory_and_double_stars_do_not() {
    let stage = stage(&["a.rs", "src/b.rs", "src/x/c.rs", "src/x/d.ts", ".hidden/e.rs"]);
    assert_eq!(text(&stage, json!({"pattern": "*.rs"})), "a.rs  9B");
    assert_eq!(text(&stage, json!({"pattern": "src/**/*.{rs,ts}"})), "src/x/d.ts  9B\nsrc/x/c.rs  9B\nsrc/b.rs  9B");
    assert_eq!(text(&stage, json!({"pattern": "*.rs", "path": "src/x"})), "src/x/c.rs  9B");
    assert_eq!(text(&stage, json!({"pattern": "**"})).lines().count(), 5);
    assert_eq!(text(&stage, json!({"pattern": "src/x/"})).lines().count(), 2);
    assert_eq!(text(&stage, json!({"pattern": "./[ab].rs"})), "a.rs  9B");
    let absolute = stage.root().join(".hidden/*.rs");
    assert_eq!(text(&stage, json!({"pattern": absolute.to_str()})), ".hidden/e.rs  9B");
}

#[test]
fn ignored_and_made_files_are_left_out_unless_asked_for() {
    let stage = stage(&["a.js", "a.log", "deep/kept.log", "dist/b.js", "node_modules/m/c.js", ".git/d.js", "x.pyc"]);
    stage.file(".gitignore", "*.log\n!kept.log\n");
    let all = json!({"pattern": "**/*.{js,log,pyc}"});
    assert_eq!(text(&stage, all.clone()), "deep/kept.log  9B\na.js  9B");
    let mut everything = all;
    everything["include_ignored"] = true.into();
    insta::assert_snapshot!(text(&stage, everything), @r"
    x.pyc  9B
    node_modules/m/c.js  9B
    dist/b.js  9B
    deep/kept.log  9B
    a.log  9B
    a.js  9B
    ");
}

#[test]
fn a_literal_prefix_is_no_way_around_an_ignore_file() {
    let stage = stage(&["out/a.txt", "node_modules/b.txt", "in/c.txt"]);
    stage.file(".gitignore", "/out/\n");
    for pattern in ["out/*.txt", "node_modules/*.txt"] {
        insta::allow_duplicates! {
            let told = text(&stage, json!({"pattern": pattern})).replace(pattern, "PATTERN");
            insta::assert_snapshot!(told, @"No files match PATTERN in . (ignored files were not searched; include_ignored adds them)");
        }
    }
    // What is named as the place to search is searched.
    assert_eq!(text(&stage, json!({"pattern": "*.txt", "path": "out"})), "out/a.txt  9B");
}

#[test]
fn only_the_prefix_is_walked() {
    let stage = stage(&["src/a.rs", "other/b.rs"]);
    let pattern = Pattern::parse("src/**/*.rs", stage.root()).unwrap();
    let tree = Tree { start: stage.root(), skip: Skip::Ignored, within: pattern.within, depth: pattern.depth };
    let walked = tree.walker().0.build().map(|entry| walk::below(stage.root(), entry.unwrap().path()).to_owned());
    assert_eq!(walked.collect::<Vec<_>>(), [Path::new(""), Path::new("src"), Path::new("src/a.rs")]);
}

#[test]
fn links_are_found_and_not_followed() {
    let stage = stage(&["a.rs", "src/b.rs"]);
    symlink(".", stage.root().join("loop.rs")).unwrap();
    symlink("gone", stage.root().join("src/link.rs")).unwrap();
    let reply = stage.act(&tool(), json!({"pattern": "**/*.rs"})).unwrap();
    let mut lines: Vec<&str> = reply.text.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        (lines.join("\n").as_str(), reply.warnings.len()),
        ("a.rs  9B\nloop.rs -> .\nsrc/b.rs  9B\nsrc/link.rs -> gone", 0)
    );
    let files = &reply.data.unwrap()["files"];
    let link = files.as_array().unwrap().iter().find(|file| file["path"] == "loop.rs").unwrap();
    assert_eq!(link["target"], ".");
}

#[test]
fn wildcards_count_characters() {
    let stage = stage(&["é.txt", "ê.txt", "ab.txt"]);
    assert_eq!(text(&stage, json!({"pattern": "?.txt"})), "ê.txt  9B\né.txt  9B");
    assert_eq!(text(&stage, json!({"pattern": "[é]*"})), "é.txt  9B");
}

#[test]
fn a_name_that_is_not_utf8_is_shown_in_ascii() {
    let stage = stage(&[]);
    std::fs::write(stage.root().join(OsStr::from_bytes(b"a\xff.txt")), "").unwrap();
    assert_eq!(text(&stage, json!({"pattern": "*.txt"})), "a\\xff.txt  0B");
}

#[test]
fn sensitive_files_are_passed_over_and_counted() {
    let stage = stage(&["a.txt", ".env", "keys/server.pem", ".ssh/known.txt"]);
    let reply = stage.act(&tool(), json!({"pattern": "**/*"})).unwrap();
    assert_eq!(reply.text, "a.txt  9B");
    insta::assert_snapshot!(reply.warnings.join("\n"), @"3 sensitive files (credentials or haft's own state) skipped; name one in `path` to ask for one");
    assert_eq!(text(&stage, json!({"pattern": "*", "path": ".ssh"})), ".ssh/known.txt  9B");
}

#[test]
fn more_matches_than_can_be_named_are_counted() {
    let stage = stage(&[]);
    for n in 0..MAX_FILES + 3 {
        std::fs::write(stage.root().join(format!("{n}.txt")), "").unwrap();
    }
    let reply = stage.act(&tool(), json!({"pattern": "*.txt"})).unwrap();
    // A reply holds less than that. What is named is whole, and the rest is counted and kept.
    let lines: Vec<&str> = reply.text.lines().collect();
    let (note, names) = lines.split_last().unwrap();
    assert!(reply.text.len() <= 102_400 && names.iter().all(|line| line.ends_with(".txt  0B")), "{}", reply.text);
    let shown = names.len();
    assert_eq!(*note, format!("[the newest {shown} of 10003 files; narrow the pattern to see the others]"));
    let complete = reply.whole_text.unwrap();
    assert_eq!(complete.lines().count(), MAX_FILES + 1);
    insta::assert_snapshot!(complete.lines().next_back().unwrap(), @"[the newest 10000 of 10003 files; narrow the pattern to see the others]");
    let data = reply.data.unwrap();
    assert_eq!((&data["total"], &data["truncated"]), (&json!(MAX_FILES + 3), &json!(true)));
}

#[test]
fn nothing_found_says_where_to_look() {
    let stage = stage(&["src/a.rs"]);
    insta::assert_snapshot!(text(&stage, json!({"pattern": "*.rs", "include_ignored": true})), @"No files match *.rs in . itself; **/*.rs searches its subdirectories too");
}

#[test]
fn what_cannot_be_searched_is_an_error() {
    let stage = stage(&["a.rs"]);
    let error = |args: Value| stage.act(&tool(), args).unwrap_err();
    let missing = error(json!({"pattern": "*", "path": "nowhere"}));
    assert_eq!((missing.kind, missing.message.as_str()), (ErrorKind::NotFound, "nowhere does not exist"));
    let file = error(json!({"pattern": "*", "path": "a.rs"}));
    assert_eq!((file.kind, file.message.as_str()), (ErrorKind::Failed, "a.rs is not a directory"));
    let bad = error(json!({"pattern": "a[b"}));
    assert_eq!(bad.kind, ErrorKind::InvalidInput);
    insta::assert_snapshot!(bad.message, @r"`pattern` is not a glob: `[` without `]`; write `\[` for the character");
    assert_eq!(error(json!({"pattern": "../*"})).kind, ErrorKind::InvalidInput);
}

#[test]
fn a_cancelled_call_ends() {
    let stage = stage(&["a.rs"]);
    let halt = Halt::new();
    halt.cancel();
    let error = stage.act_until(&tool(), json!({"pattern": "**"}), &halt).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
}

#[test]
fn an_ignore_file_is_read_as_git_reads_it() {
    let stage = stage(&["a.rs", "{a,b}.rs", "x7.rs", "xx.rs", "mine.rs"]);
    stage.file(".gitignore", "{a,b}.rs\nx[[:digit:]]*\n[z-a\n");
    stage.file(".git/info/exclude", "mine.rs\n");
    let reply = stage.act(&tool(), json!({"pattern": "*.rs"})).unwrap();
    assert_eq!((reply.text.as_str(), reply.warnings.len()), ("xx.rs  9B\na.rs  9B", 0));
}

#[test]
fn a_linked_ignore_file_does_not_count_and_that_is_told() {
    let stage = stage(&["a.rs", "sub/b.rs"]);
    stage.file("patterns", "*.rs\n");
    symlink("../patterns", stage.root().join("sub/.gitignore")).unwrap();
    let reply = stage.act(&tool(), json!({"pattern": "**/*.rs"})).unwrap();
    assert_eq!(reply.text, "sub/b.rs  9B\na.rs  9B");
    insta::assert_snapshot!(reply.warnings.join("\n"), @"sub/.gitignore is a symbolic link, which git does not follow; its patterns do not count");
}
