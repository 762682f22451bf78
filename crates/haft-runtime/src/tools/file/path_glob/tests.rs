//! What globs match. Generated ones are compared in the differential suite.

use super::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

fn matches(glob: &str, path: &str) -> bool {
    PathGlob::new(glob).unwrap().is_match(Path::new(path))
}

#[test]
fn characters_count_and_bytes_do_not() {
    assert!(matches("?.txt", "é.txt") && matches("??", "日本") && !matches("??", "é"));
    assert!(matches("[é]*", "écrit") && !matches("[é]*", "ê") && matches("[à-ü]", "é") && matches("[!a]", "é"));
    let foreign = Path::new(OsStr::from_bytes(b"a\xff\xfe.txt"));
    let matches = |glob| PathGlob::new(glob).unwrap().is_match(foreign);
    assert!(matches("a??.txt") && matches("a*.txt") && matches("a[!b][!b].txt") && !matches("a?.txt"));
}

#[test]
fn nothing_but_two_stars_as_a_name_crosses_a_slash() {
    for (glob, path, expected) in [
        ("*.rs", "a.rs", true),
        ("*.rs", "a/b.rs", false),
        ("a?b", "a/b", false),
        ("a[!x]b", "a/b", false),
        ("a[+-9]b", "a/b", false),
        ("**/b", "b", true),
        ("**/b", "a/c/b", true),
        ("**/b", "ab", false),
        ("a/**/b", "a/b", true),
        ("a/**", "a/b/c", true),
        ("a/**", "a", false),
        ("**", "a/b", true),
        ("a**/b", "ax/b", true),
        ("a**/b", "a/x/b", false),
        ("a/**b", "a/x/b", false),
    ] {
        assert_eq!(matches(glob, path), expected, "{glob} {path}");
    }
}

#[test]
fn braces_stand_for_each_alternative() {
    for (glob, path, expected) in [
        ("*.{ts,tsx}", "a.tsx", true),
        ("{a,b/{c,d}}/x", "b/d/x", true),
        ("{a,b/{c,d}}/x", "b/x", false),
        ("a{,b}", "a", true),
        ("{**,x}/b", "b", true),
        ("x{**/a,b}", "xy/a", true),
        ("x{**/a,b}", "x/y/a", false),
        (r"\{a,b\}", "{a,b}", true),
        ("{[,],x}", ",", true),
    ] {
        assert_eq!(matches(glob, path), expected, "{glob} {path}");
    }
}

#[test]
fn classes_are_those_of_a_shell() {
    assert!(matches("[]a]", "]") && matches("[^]a]", "b") && matches("[a-]", "-") && matches(r"[\]]", "]"));
    assert!(matches("[[:digit:][:upper:]x]", "7") && matches("[[:upper:]]", "Q") && !matches("[[:digit:]]", "x"));
    assert!(matches("[&&~~x]", "&") && matches("[a^]", "^") && matches("[[a]", "["));
}

#[test]
fn what_is_no_glob_says_why() {
    let complaint = |glob: &str| PathGlob::new(glob).unwrap_err();
    insta::assert_snapshot!(["a[b", "a{b", "a}b", "a\\", "[z-a]", "[[:x:]]"].map(complaint).join("\n"), @r"
    `[` without `]`; write `\[` for the character
    `{` without `}`; write `\{` for the character
    `}` without `{`; write `\}` for the character
    a lone `\` at its end
    the range `z-a` is empty
    there is no class `[:x:]`
    ");
}

#[test]
fn globs_that_explode_are_refused_or_answered_in_time() {
    let begun = std::time::Instant::now();
    assert!(PathGlob::new(&"{a,b}".repeat(800)).unwrap_err().contains("more than 1000"));
    assert!(PathGlob::new(&("{a,b}".repeat(9) + &"{a}".repeat(1300))).is_err());
    let path = "a".repeat(4000);
    for glob in ["*a".repeat(2000) + "b", "?".repeat(4000), "[".repeat(4000) + "]", "**/".repeat(1300)] {
        let _ = PathGlob::new(&glob).map(|glob| glob.is_match(Path::new(&path)));
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn directories_count_where_they_are_asked_for() {
    let matches = |extent, path: &str| PathGlob::with_extent("**/d", extent).unwrap().is_match(Path::new(path));
    assert!(matches(Extent::Directory, "x/d/a/b") && !matches(Extent::Directory, "x/d"));
    assert!(matches(Extent::PathOrDirectory, "x/d/a") && matches(Extent::PathOrDirectory, "d"));
    assert!(!matches(Extent::PathOrDirectory, "x/dd/a"));
}
