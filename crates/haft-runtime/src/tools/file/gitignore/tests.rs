//! Patterns whose meaning is easily missed. What git says of generated ones is compared in the differential suite.

use super::*;

/// Whether a file of these lines ignores a path.
fn ignores(lines: &str, path: &str) -> bool {
    let (path, is_dir) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
    PatternList::parse(lines.as_bytes()).decide(path.as_bytes(), is_dir).is_some_and(|verdict| verdict.ignored)
}

#[test]
fn braces_are_literal() {
    assert!(ignores("{a,b}.rs", "{a,b}.rs"));
    assert!(!ignores("{a,b}.rs", "a.rs"));
    assert!(ignores("*.{js", "x.{js"));
}

#[test]
fn classes_have_names_ranges_and_brackets() {
    assert!(ignores("x[[:digit:]]", "x7") && !ignores("x[[:digit:]]", "xd"));
    assert!(ignores("[]x]", "]") && ignores("[!]x]", "a") && ignores("[^]x]", "a"));
    assert!(ignores("[a-c-e]", "-") && ignores("[a-c-e]", "e") && !ignores("[a-c-e]", "d"));
    assert!(ignores(r"[\]]", "]") && ignores(r"[a\-c]", "-") && !ignores(r"[a\-c]", "b"));
    assert!(ignores("[[:]", ":") && ignores("[[:x]", "["));
    for malformed in ["[", "[a", "[!", "[[:wrong:]]", "[[::]]", "a\\"] {
        assert!(["[", "a", "a\\", ":"].iter().all(|path| !ignores(malformed, path)), "{malformed}");
    }
}

#[test]
fn nothing_but_two_stars_between_slashes_crosses_one() {
    for (pattern, path, expected) in [
        ("a/*", "a/b", true),
        ("a/*", "a/b/c", false),
        ("a?b/x", "a/b/x", false),
        ("a[!x]b/x", "a/b/x", false),
        ("a[+-9]b/x", "a/b/x", false),
        ("a/**/b", "a/b", true),
        ("a/**/b", "a/x/y/b", true),
        ("**/b", "b", true),
        ("**/b", "xb", false),
        ("a/**", "a/x/y", true),
        ("a/**", "a", false),
        ("a**/b", "ax/b", true),
        ("/a**/b", "a/x/b", false),
        ("a/**b", "a/x/b", false),
        ("**/**/**/b", "b", true),
    ] {
        assert_eq!(ignores(pattern, path), expected, "{pattern} {path}");
    }
}

#[test]
fn lines_are_read_as_git_reads_them() {
    assert!(ignores("\u{feff}a", "a") && ignores("a\r\n", "a") && ignores("a  ", "a"));
    assert!(ignores(r"a\ ", "a ") && !ignores(r"a\ ", "a") && ignores("a\t", "a\t"));
    assert!(!ignores("#a", "#a") && ignores(r"\#a", "#a") && ignores(r"\!a", "!a") && ignores(" a", " a"));
    assert!(ignores("a/", "x/a/") && !ignores("a/", "a") && ignores("/a", "a") && !ignores("/a", "x/a"));
    assert!(ignores("a\0b", "a"), "a line is a C string");
}

#[test]
fn the_last_pattern_that_applies_decides() {
    let list = PatternList::parse(b"*.log\n!keep.log\n# x\nkeep.log/\n");
    let verdict = |path: &str, is_dir| list.decide(path.as_bytes(), is_dir);
    assert_eq!(verdict("a.log", false), Some(Verdict { ignored: true, line: 1 }));
    assert_eq!(verdict("d/keep.log", false), Some(Verdict { ignored: false, line: 2 }));
    assert_eq!(verdict("keep.log", true), Some(Verdict { ignored: true, line: 4 }));
    assert_eq!(verdict("a.txt", false), None);
}

#[test]
fn a_pattern_that_explodes_elsewhere_takes_no_time() {
    let name = "a".repeat(255);
    let list = PatternList::parse(format!("{}b\n", "*a".repeat(100)).as_bytes());
    let path = format!("{}/{name}", vec![name.as_str(); 15].join("/"));
    let deep = PatternList::parse(format!("{}b\n", "**/*a".repeat(200)).as_bytes());
    let begun = std::time::Instant::now();
    assert_eq!(list.decide(name.as_bytes(), false), None);
    assert_eq!(deep.decide(path.as_bytes(), false), None);
    assert!(begun.elapsed() < std::time::Duration::from_secs(2), "{:?}", begun.elapsed());
}
