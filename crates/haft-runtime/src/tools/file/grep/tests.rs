//! file.grep, as a caller meets it: searches and how their results are shown.

use super::*;
use crate::halt::Halt;
use crate::testing::Stage;
use haft_core::ErrorKind;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

fn stage(files: &[(&str, &str)]) -> Stage {
    let stage = Stage::new();
    for (path, content) in files {
        stage.file(path, content);
    }
    stage
}

fn text(stage: &Stage, args: Value) -> String {
    stage.act(&tool(), args).unwrap().text
}

#[test]
fn lines_stand_as_in_the_file_sorted_by_path_then_line() {
    let stage = stage(&[("b.txt", "a fox and a fox\nnone\nfox\n"), ("a/z.txt", "the fox\n"), ("a.txt", "Fox\n")]);
    let reply = stage.act(&tool(), json!({"pattern": "fox"})).unwrap();
    insta::assert_snapshot!(reply.text, @r"
    a/z.txt:1:the fox
    b.txt:1:a fox and a fox
    b.txt:3:fox
    ");
    let lines = json!([
        {"path": "a/z.txt", "line": 1, "text": "the fox"},
        {"path": "b.txt", "line": 1, "text": "a fox and a fox"},
        {"path": "b.txt", "line": 3, "text": "fox"},
    ]);
    assert_eq!(reply.data, Some(json!({"matches": 3, "files": 2, "truncated": false, "lines": lines})));
    assert_eq!(text(&stage, json!({"pattern": "^fox", "case_insensitive": true})), "a.txt:1:Fox\nb.txt:3:fox");
}

#[test]
fn context_comes_in_groups() {
    let stage = stage(&[("a.txt", "1\n2 x\n3\n4 x\n5\n6\n7\n8 x\n"), ("b.txt", "x\n")]);
    insta::assert_snapshot!(text(&stage, json!({"pattern": "x", "context": 1})), @r"
    a.txt-1-1
    a.txt:2:2 x
    a.txt-3-3
    a.txt:4:4 x
    a.txt-5-5
    --
    a.txt-7-7
    a.txt:8:8 x
    --
    b.txt:1:x
    ");
}

#[test]
fn counts_and_paths_are_modes_of_their_own() {
    let stage = stage(&[("a.txt", "x\nx x\n"), ("b.txt", "x\n"), ("c.txt", "y\n")]);
    let reply = stage.act(&tool(), json!({"pattern": "x", "output_mode": "count"})).unwrap();
    assert_eq!(reply.text, "a.txt:2\nb.txt:1");
    assert_eq!(reply.data, Some(json!({"matches": 3, "files": 2, "truncated": false})));
    let paths = json!({"pattern": "x", "output_mode": "files_with_matches"});
    assert_eq!(text(&stage, paths), "a.txt\nb.txt");
    let first = json!({"pattern": "x", "output_mode": "files_with_matches", "head_limit": 1});
    let reply = stage.act(&tool(), first).unwrap();
    assert_eq!(reply.text, "a.txt\n[1 files shown, 1 more; raise head_limit or narrow the search]");
    assert_eq!(reply.data, Some(json!({"matches": 2, "files": 2, "truncated": true})));
}

#[test]
fn only_the_first_lines_are_shown_but_all_are_counted() {
    let stage = Stage::new();
    for n in 0..200 {
        stage.file(&format!("{:02}/{n:03}.txt", n % 7), "x\n".repeat(3));
    }
    let reply = stage.act(&tool(), json!({"pattern": "x", "head_limit": 4})).unwrap();
    insta::assert_snapshot!(reply.text, @r"
    00/000.txt:1:x
    00/000.txt:2:x
    00/000.txt:3:x
    00/007.txt:1:x
    [4 lines shown, 596 more matches; raise head_limit or narrow the search]
    ");
    let data = reply.data.unwrap();
    assert_eq!((&data["matches"], &data["files"], &data["truncated"]), (&json!(600), &json!(200), &json!(true)));
}

#[test]
fn a_long_line_is_cut_around_its_first_match() {
    let stage = stage(&[("a.txt", &format!("{}needle{}\n", "草".repeat(600), "堆".repeat(600)))]);
    let told = text(&stage, json!({"pattern": "needle"}));
    assert!(told.starts_with("a.txt:1:[+1500 bytes]…草") && told.contains("草needle堆"), "{told}");
    assert!(told.ends_with("堆…[+618 bytes]"), "{told}");
    assert_eq!(told.chars().count(), "a.txt:1:[+1500 bytes]……[+618 bytes]".chars().count() + 500);
}

#[test]
fn ignored_and_binary_files_are_skipped_but_hidden_ones_are_not() {
    let stage = stage(&[
        ("a.log", "x"),
        (".github/b.yml", "x"),
        (".git/c", "x"),
        ("binary", "x\n\0"),
        ("node_modules/d.js", "x"),
    ]);
    stage.file(".gitignore", "*.log\n");
    assert_eq!(text(&stage, json!({"pattern": "x"})), ".github/b.yml:1:x\nnode_modules/d.js:1:x");
    assert_eq!(text(&stage, json!({"pattern": "x", "path": "a.log"})), "a.log:1:x");
    let binary = stage.act(&tool(), json!({"pattern": "x", "path": "binary"})).unwrap();
    assert_eq!(binary.text, "No matches for x in binary");
    assert_eq!(binary.warnings, ["binary is a binary file and was not searched"]);
}

#[test]
fn binary_data_late_in_a_file_ends_its_search() {
    let stage = stage(&[("late", &format!("x\n{}\0\nx\n", "y\n".repeat(100_000)))]);
    let reply = stage.act(&tool(), json!({"pattern": "x"})).unwrap();
    assert_eq!(reply.text, "late:1:x");
    assert_eq!(reply.warnings, ["late: binary data after the first matches; the rest was not searched"]);
}

#[test]
fn a_glob_narrows_the_search() {
    let stage = stage(&[("a.rs", "x"), ("src/b.rs", "x"), ("src/c.ts", "x"), ("src/d.min.ts", "x"), ("no.rs", "x")]);
    stage.file(".gitignore", "no.rs\n");
    let found = |glob: &str| text(&stage, json!({"pattern": "x", "glob": glob, "output_mode": "files_with_matches"}));
    assert_eq!(found("*.rs"), "a.rs\nsrc/b.rs");
    assert_eq!(found("src/**/*.{rs,ts}"), "src/b.rs\nsrc/c.ts\nsrc/d.min.ts");
    assert_eq!(found("!*.ts"), "a.rs\nsrc/b.rs");
    assert_eq!(found("/*.rs"), "a.rs");
    let error = stage.act(&tool(), json!({"pattern": "x", "glob": "a["})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidInput);
}

#[test]
fn a_pattern_with_a_line_end_spans_lines() {
    let stage = stage(&[("a.txt", "one\nfoo\nbar baz\nfour\n")]);
    let reply = stage.act(&tool(), json!({"pattern": r"foo\nbar", "context": 1})).unwrap();
    insta::assert_snapshot!(reply.text, @r"
    a.txt-1-one
    a.txt:2:foo
    a.txt:3:bar baz
    a.txt-4-four
    ");
    assert_eq!(reply.data.unwrap()["matches"], 2);
    assert_eq!(text(&stage, json!({"pattern": r"o\s+b", "output_mode": "count"})), r"No matches for o\s+b in .");
}

#[test]
fn line_ends_and_empty_matches_do_not_show() {
    let stage = stage(&[("a.txt", "ab\r\n"), ("utf16.txt", "")]);
    stage.file("utf16.txt", b"\xff\xfea\0b\0\n\0");
    assert_eq!(text(&stage, json!({"pattern": "x*b|^"})), "a.txt:1:ab\nutf16.txt:1:ab");
}

#[test]
fn text_is_searched_as_it_is_shown() {
    let stage = stage(&[("crlf.c", "a;\r\nb \r\n\r\n"), ("lf.c", "a;\nb;x\rc;\n")]);
    stage.file("utf16.c", b"\xff\xfea\0;\0\r\0\n\0");
    assert_eq!(text(&stage, json!({"pattern": ";$"})), "crlf.c:1:a;\nlf.c:1:a;\nlf.c:2:b;x\rc;\nutf16.c:1:a;");
    assert_eq!(text(&stage, json!({"pattern": r"\s$"})), "crlf.c:2:b ");
    assert_eq!(text(&stage, json!({"pattern": "^$"})), "crlf.c:3:");
    assert_eq!(text(&stage, json!({"pattern": "x.c"})), "lf.c:2:b;x\rc;");
    assert_eq!(text(&stage, json!({"pattern": r";\nb"})), "crlf.c:1:a;\ncrlf.c:2:b \nlf.c:1:a;\nlf.c:2:b;x\rc;");
    // Who asks for a carriage return gets it.
    let files = |pattern: &str| text(&stage, json!({"pattern": pattern, "output_mode": "files_with_matches"}));
    assert_eq!((files(r"\r$"), files(r"x\r")), ("crlf.c\nutf16.c".to_owned(), "lf.c".to_owned()));
    assert_eq!(files(r";\r\nb"), "crlf.c");
}

#[test]
fn a_line_end_may_be_named_anywhere_in_a_pattern() {
    let stage = stage(&[("a.txt", "foo\nbar\n\nbaz"), ("crlf.txt", "foo\r\nb\r\n")]);
    let count = |pattern: &str| text(&stage, json!({"pattern": pattern, "output_mode": "count"}));
    assert_eq!(count(r"\nb"), "a.txt:4\ncrlf.txt:2");
    assert_eq!(count(r"foo[\n,]bar"), "a.txt:2");
    assert_eq!(count(r"(x|o\nb)"), "a.txt:2\ncrlf.txt:2");
    assert_eq!(count(r"(?s)foo.b"), "a.txt:2\ncrlf.txt:2");
    assert_eq!(count(r"o[^\n]"), "a.txt:1\ncrlf.txt:1");
}

#[test]
fn a_glob_is_read_as_ripgrep_reads_it() {
    let paths = ["src/a.rs", "src/é.rs", "src/gen/b.rs", "gen/c.rs", "x/src/d.rs"];
    let stage = stage(&paths.map(|path| (path, "x")));
    let found = |glob: &str| {
        let found = text(&stage, json!({"pattern": "x", "glob": glob, "output_mode": "files_with_matches"}));
        if found.starts_with("No matches") { String::new() } else { found.replace('\n', " ") }
    };
    assert_eq!(found("?.rs"), "gen/c.rs src/a.rs src/gen/b.rs src/é.rs x/src/d.rs");
    assert_eq!(found("!gen"), "src/a.rs src/é.rs x/src/d.rs");
    assert_eq!(found("!/gen/"), "src/a.rs src/gen/b.rs src/é.rs x/src/d.rs");
    assert_eq!(found("gen/"), "gen/c.rs src/gen/b.rs");
    assert_eq!((found("src/*.rs"), found("src")), ("src/a.rs src/é.rs".to_owned(), String::new()));
    let below = json!({"pattern": "x", "path": "src", "glob": "/gen/*", "output_mode": "files_with_matches"});
    assert_eq!(text(&stage, below), "src/gen/b.rs");
}

#[test]
fn output_is_cut_between_lines_and_the_rest_is_counted_and_kept() {
    let stage = Stage::new();
    let dir = "d".repeat(200);
    for n in 0..400 {
        stage.file(&format!("{dir}/{n:03}.txt"), "x\n");
    }
    for (mode, kind) in [("files_with_matches", "files shown, "), ("content", "lines shown, ")] {
        let args = json!({"pattern": "x", "output_mode": mode, "head_limit": 300});
        let reply = stage.act(&tool(), args).unwrap();
        let lines: Vec<&str> = reply.text.lines().collect();
        let (note, shown) = lines.split_last().unwrap();
        let ending = if mode == "content" { ".txt:1:x" } else { ".txt" };
        assert!(shown.iter().all(|line| line.ends_with(ending)) && shown.len() > 200, "{shown:?}");
        assert!(reply.text.len() <= 51_200 && reply.text.len() > 50_900, "{}", reply.text.len());
        let more = if mode == "content" { "more matches" } else { "more" };
        assert_eq!(*note, format!("[{} {kind}{} {more}; narrow the search]", shown.len(), 400 - shown.len()));
        let complete = reply.whole_text.unwrap();
        assert_eq!(complete.lines().count(), 301);
        assert!(complete.ends_with(&format!("[300 {kind}100 {more}; raise head_limit or narrow the search]")));
    }
}

#[test]
fn what_git_excludes_is_not_searched() {
    let stage = stage(&[("a.txt", "x"), ("mine.txt", "x"), ("inner/mine.txt", "x"), ("inner/.git/HEAD", "")]);
    stage.file(".git/info/exclude", "mine.txt\n");
    // Another repository has patterns of its own.
    assert_eq!(text(&stage, json!({"pattern": "x"})), "a.txt:1:x\ninner/mine.txt:1:x");
}

#[test]
fn special_files_and_holes_are_no_trouble() {
    let stage = stage(&[("a.txt", "x\n")]);
    let made = std::process::Command::new("mkfifo").arg(stage.root().join("fifo")).status().unwrap();
    assert!(made.success());
    symlink("/dev/zero", stage.root().join("zero")).unwrap();
    let hole = std::fs::File::create(stage.root().join("hole")).unwrap();
    hole.set_len(1 << 40).unwrap();
    std::fs::write(stage.root().join("late"), "x\n").unwrap();
    std::fs::File::options().write(true).open(stage.root().join("late")).unwrap().set_len(1 << 40).unwrap();
    for pattern in ["x", r"x\n"] {
        let reply = stage.act(&tool(), json!({"pattern": pattern})).unwrap();
        assert_eq!(reply.text, "a.txt:1:x");
    }
    let fifo = stage.act(&tool(), json!({"pattern": "x", "path": "fifo"})).unwrap_err();
    assert_eq!((fifo.kind, fifo.message.as_str()), (ErrorKind::Failed, "fifo: not a regular file"));
}

#[test]
fn a_line_that_does_not_fit_ends_the_search_of_its_file_only() {
    let stage = stage(&[("b.txt", "x\n")]);
    stage.file("a.txt", ["x\n".to_owned(), "y".repeat(70 << 20), "\nx\n".to_owned()].concat());
    let by_line = stage.act(&tool(), json!({"pattern": "x"})).unwrap();
    assert_eq!(by_line.text, "a.txt:1:x\nb.txt:1:x");
    assert_eq!(by_line.warnings, ["a.txt: searched only up to a line that is longer than 64.0MB"]);
    let across = stage.act(&tool(), json!({"pattern": r"x\n"})).unwrap();
    assert_eq!(across.text, "b.txt:1:x");
    assert_eq!(across.warnings, ["a.txt: larger than 64.0MB and not searched: the pattern matches across lines"]);
}

#[test]
fn sensitive_files_are_not_searched_unless_named() {
    // Whether a secret matches must not show either: one could guess it letter by letter.
    let stage = stage(&[(".env", "TOKEN=abc\n"), ("a.txt", "TOKEN\n")]);
    for pattern in ["TOKEN", "no such text"] {
        let reply = stage.act(&tool(), json!({"pattern": pattern})).unwrap();
        assert!(!reply.text.contains(".env"));
        insta::allow_duplicates! {
            insta::assert_snapshot!(reply.warnings.join("\n"), @"1 sensitive file (credentials or haft's own state) skipped; name it in `path` to ask for it");
        }
    }
    assert_eq!(text(&stage, json!({"pattern": "TOKEN", "path": ".env"})), ".env:1:TOKEN=abc");
}

#[test]
fn links_are_not_followed_and_odd_names_are_shown() {
    let stage = stage(&[("a.txt", "x")]);
    symlink(".", stage.root().join("loop")).unwrap();
    symlink("a.txt", stage.root().join("link.txt")).unwrap();
    std::fs::write(stage.root().join(OsStr::from_bytes(b"\xff.txt")), "x").unwrap();
    assert_eq!(text(&stage, json!({"pattern": "x"})), "a.txt:1:x\n\\xff.txt:1:x");
}

#[test]
fn what_cannot_be_searched_is_an_error() {
    let stage = stage(&[("a.txt", "x")]);
    let error = |args: Value| stage.act(&tool(), args).unwrap_err();
    let missing = error(json!({"pattern": "x", "path": "nowhere"}));
    assert_eq!((missing.kind, missing.message.as_str()), (ErrorKind::NotFound, "nowhere does not exist"));
    let bad = error(json!({"pattern": "foo("}));
    assert_eq!(bad.kind, ErrorKind::InvalidInput);
    insta::assert_snapshot!(bad.message, @r"
    `pattern` is not a regular expression: regex parse error:
        (?:foo()
        ^
    error: unclosed group
    ");
}

#[test]
fn a_cancelled_call_ends() {
    let stage = stage(&[("a.txt", "x")]);
    let halt = Halt::new();
    halt.cancel();
    let error = stage.act_until(&tool(), json!({"pattern": "x"}), &halt).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
}
