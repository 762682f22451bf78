//! Ignore rules beside git's: which line of which file decides, and what a walk finds.
//!
//! Known differences, none of which is generated here:
//! - Before 2.52, git reads `foo**/bar` as if the two stars began a name. Haft reads it as git does now, and as it is documented.
//! - Settings of the repository (`core.ignoreCase`, `core.excludesFile`) do not count; the user's own `core.excludesFile` does.
//! - Files that git tracks are left out too where a pattern names them, as ripgrep and fd leave them out.

use crate::cases::{Generator, compare};
use crate::git;
use crate::project::Project;
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::Path;

/// What patterns are made of.
const PIECES: &[&str] = &[
    "a",
    "b",
    "c",
    "ab",
    "é",
    "1",
    ".",
    "x",
    "*",
    "*",
    "**",
    "***",
    "?",
    "/",
    "/",
    "**/",
    "/**",
    "/**/",
    "*/",
    "[ab]",
    "[!a]",
    "[^b]",
    "[a-c]",
    "[]a]",
    "[c-a]",
    "[a-]",
    "[!a-b]",
    "[[:digit:]]",
    "[[:alpha:]b]",
    "[![:lower:]]",
    "[[:x:]]",
    "[[:a]",
    "[",
    "]",
    "-",
    "{a,b}",
    "{",
    "}",
    ",",
    "\\a",
    "\\*",
    "\\[",
    "\\\\",
    "\\",
    "\\ ",
    " ",
    "!",
    "#",
    "$",
    "(",
    "|",
    "^",
    "+",
    "[+-9]",
    "[--0]",
    "[\\]a]",
    "[a\\-c]",
    "\t",
];
/// Patterns that people write.
const USUAL: &[&str] = &[
    "*",
    "!*/",
    "/*",
    "*.a",
    "!a",
    "a/",
    "/a",
    "a/b",
    "**/a",
    "a/**",
    "a/**/b",
    "*.*",
    "!.gitignore",
    "a*",
    "*b",
    "/a/*",
    "!/a/b",
    "*~",
    ".*",
    "a.*",
    "/a/**/c",
    "**/a/**",
    "*.py[cod]",
    "[Aa]b",
];
/// What names are made of.
const NAMES: &[&str] = &[
    "a", "b", "c", "ab", "é", "1", ".a", "x", "*", "[", "]", "-", "{a,b}", "{", "}", ",", "\\", " ", "!", "#", "a.a",
    "a.b", "~", "^", "+", "a b", "-",
];

#[test]
fn every_decision_is_gits() {
    let project = Project::new();
    git::init(project.root());
    compare("ignore::every_decision_is_gits", 60, |generator| {
        clear(project.root());
        write_rules(generator, &project, "");
        let paths: Vec<String> = (0..10).filter_map(|_| make_path(generator, project.root())).collect();
        for dir in dirs_of(&paths) {
            if generator.chance(20) {
                write_rules(generator, &project, &dir);
            }
        }
        let asked: Vec<String> = paths.iter().cloned().chain(dirs_of(&paths)).collect();
        for expected in git::decisions(project.root(), &asked) {
            let args = json!({"action": "check", "path": expected.path});
            let outcome = project.call("file.ignore", args);
            let data = outcome.data.clone().unwrap_or_else(|| panic!("{outcome:?}"));
            let source = data["source"].as_str().map(str::to_owned);
            let found = git::Decision { path: expected.path.clone(), source, ignored: data["ignored"] == true };
            assert_eq!(found, expected, "{}", rules(project.root()));
        }
    });
}

/// A path as git shows it: before a name that begins with `~`, haft puts `./`.
fn plain(path: &serde_json::Value) -> OsString {
    let path = path.as_str().unwrap();
    path.strip_prefix("./").unwrap_or(path).into()
}

#[test]
fn a_walk_finds_what_git_would_add() {
    let project = Project::new();
    git::init(project.root());
    compare("ignore::a_walk_finds_what_git_would_add", 60, |generator| {
        clear(project.root());
        write_rules(generator, &project, "");
        let paths: Vec<String> = (0..15).filter_map(|_| make_path(generator, project.root())).collect();
        for dir in dirs_of(&paths) {
            if generator.chance(25) {
                write_rules(generator, &project, &dir);
            }
        }
        let expected = git::others(project.root());
        let outcome = project.call("file.list", json!({"recursive": true}));
        let data = outcome.data.clone().unwrap_or_else(|| panic!("{outcome:?}"));
        let entries = data["entries"].as_array().unwrap().iter().filter(|entry| entry["kind"] != "directory");
        let mut listed: Vec<OsString> = entries.map(|entry| plain(&entry["name"])).collect();
        listed.sort();
        assert_eq!(listed, expected, "file.list {}", rules(project.root()));
        let outcome = project.call("file.glob", json!({"pattern": "**"}));
        let data = outcome.data.clone().unwrap_or_else(|| panic!("{outcome:?}"));
        let files = data["files"].as_array().unwrap().iter();
        let mut found: Vec<OsString> = files.map(|file| plain(&file["path"])).collect();
        found.sort();
        assert_eq!(found, expected, "file.glob {}", rules(project.root()));
    });
}

/// Writes a `.gitignore`, and for the top sometimes the repository's own file.
fn write_rules(generator: &mut Generator, project: &Project, dir: &str) {
    project.write(Path::new(dir).join(".gitignore"), lines(generator));
    if dir.is_empty() {
        let excluded = if generator.chance(30) { lines(generator) } else { String::new() };
        project.write(".git/info/exclude", excluded);
    }
}

fn lines(generator: &mut Generator) -> String {
    let mut text = if generator.chance(5) { "\u{feff}".to_owned() } else { String::new() };
    for _ in 0..=generator.below(6) {
        let line = pattern(generator);
        if !begins_with_stars_to_older_git(&line) {
            text.push_str(&line);
            text.push_str(generator.pick(&["\n", "\n", "\n", "\n", "\r\n", "  \n", " \r\n", "\n\n"]));
        }
    }
    if generator.chance(10) {
        text.pop();
    }
    text
}

fn pattern(generator: &mut Generator) -> String {
    if generator.chance(30) {
        return generator.pick(USUAL).to_owned();
    }
    let negation = if generator.chance(20) { "!" } else { "" };
    let anchor = if generator.chance(25) { "/" } else { "" };
    let dirs = if generator.chance(20) { "/" } else { "" };
    format!("{negation}{anchor}{}{dirs}", generator.text(PIECES, 5))
}

/// Whether git before 2.52 takes stars for the beginning of a name that are not.
fn begins_with_stars_to_older_git(line: &str) -> bool {
    let line = line.strip_prefix('!').unwrap_or(line);
    let line = line.strip_prefix('/').unwrap_or(line);
    let Some(special) = line.find(['*', '?', '[', '\\']) else { return false };
    special > 0 && line[special..].starts_with("**") && !line[..special].ends_with('/')
}

/// Makes a file, a link or an empty directory at a new path, and returns it.
fn make_path(generator: &mut Generator, root: &Path) -> Option<String> {
    let names = generator.below(4) + 1;
    let name = |generator: &mut Generator| {
        let name = generator.text(NAMES, 2);
        if matches!(name.as_str(), "" | "." | "..") { "n".to_owned() } else { name }
    };
    let path = (0..names).map(|_| name(generator)).collect::<Vec<_>>().join("/");
    let target = root.join(&path);
    std::fs::create_dir_all(target.parent()?).ok()?;
    match generator.below(10) {
        0 => symlink("nowhere", target).ok()?,
        1 => std::fs::create_dir(target).ok()?,
        _ if target.exists() => return None,
        _ => std::fs::write(target, "").ok()?,
    }
    Some(path)
}

/// The directories above these paths.
fn dirs_of(paths: &[String]) -> BTreeSet<String> {
    let dirs = paths.iter().flat_map(|path| path.match_indices('/').map(|(at, _)| path[..at].to_owned()));
    dirs.collect()
}

/// Removes everything but the repository.
fn clear(root: &Path) {
    for entry in std::fs::read_dir(root).unwrap().flatten().filter(|entry| entry.file_name() != ".git") {
        if entry.file_type().unwrap().is_dir() {
            std::fs::remove_dir_all(entry.path()).unwrap();
        } else {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// All patterns, for a failure.
fn rules(root: &Path) -> String {
    fn add(text: &mut String, file: &Path) {
        if let Ok(content) = std::fs::read_to_string(file) {
            text.push_str(&format!("\n{}: {content:?}", file.display()));
        }
    }
    fn walk(text: &mut String, dir: &Path) {
        add(text, &dir.join(".gitignore"));
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git" {
                walk(text, &entry.path());
            }
        }
    }
    let mut text = String::new();
    add(&mut text, &root.join(".git/info/exclude"));
    walk(&mut text, root);
    text
}
