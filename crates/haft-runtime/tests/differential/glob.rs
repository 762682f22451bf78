//! file.glob beside a reference that tries everything, and beside fd.
//!
//! Where fd differs, nothing is generated: it counts bytes, a class may match a slash, a backslash in a class is itself, no
//! alternative is empty, and three stars are not two.

use crate::cases::{Generator, compare};
use crate::needs::need;
use crate::project::Project;
use serde_json::json;
use std::os::unix::fs::symlink;
use std::process::Command;

const PIECES: &[&str] = &[
    "a",
    "b",
    "c",
    "é",
    "ê",
    "日",
    ".",
    "1",
    "*",
    "*",
    "?",
    "?",
    "**",
    "***",
    "/",
    "**/",
    "/**",
    "/**/",
    "[ab]",
    "[!a]",
    "[^b]",
    "[a-c]",
    "[é]",
    "[à-ü]",
    "[!é]",
    "[]a]",
    "[a-]",
    "[[:digit:]]",
    "[[:alpha:]é]",
    "[+-9]",
    "{a,b}",
    "{,a}",
    "{a,{b,c}/*}",
    "{**/a,b}",
    "{é,日}?",
    "\\*",
    "\\[a]",
    "\\{",
    "\\é",
    "-",
    ",",
    "]",
    "!",
];
const PLAIN_PIECES: &[&str] =
    &["a", "b", "c", ".", "1", "*", "?", "/", "**/", "[ab]", "[a-c]", "{a,b}", "{a,b/*}", "\\*", "-", ","];
const NAMES: &[&str] = &["a", "b", "c", "é", "ê", "日", ".", "1", "*", "[", "]", "-", "{", ",", "!", "ab"];

/// A tree that is always the same, so that a case needs nothing but its pattern.
fn tree() -> (Project, Vec<String>) {
    let project = Project::new();
    let mut generator = Generator::seeded(7);
    let mut paths = Vec::new();
    while paths.len() < 250 {
        let names = generator.below(4) + 1;
        let name = |generator: &mut Generator| match generator.text(NAMES, 3).as_str() {
            "" | "." | ".." => "n".to_owned(),
            name => name.to_owned(),
        };
        let path = (0..names).map(|_| name(&mut generator)).collect::<Vec<_>>().join("/");
        let target = project.root().join(&path);
        if target.symlink_metadata().is_ok() || std::fs::create_dir_all(target.parent().unwrap()).is_err() {
            continue;
        }
        if paths.len() % 10 == 0 {
            symlink("nowhere", target).unwrap();
        } else {
            project.write(&path, "");
        }
        paths.push(path);
    }
    paths.sort();
    (project, paths)
}

/// What file.glob finds; none if it does not understand the pattern.
fn found(project: &Project, pattern: &str) -> Option<Vec<String>> {
    let outcome = project.call("file.glob", json!({"pattern": pattern, "include_ignored": true}));
    if !outcome.success {
        return None;
    }
    let data = outcome.data.unwrap();
    let files = data["files"].as_array().unwrap().iter();
    let mut found: Vec<String> = files.map(|file| file["path"].as_str().unwrap().to_owned()).collect();
    found.sort();
    Some(found)
}

/// Whether the tool does more with a pattern than to match it: it completes what ends with a slash, takes what begins with one for
/// an absolute path, drops `./` and refuses `..`.
fn is_more_than_a_glob(pattern: &str) -> bool {
    pattern.is_empty()
        || pattern.split('/').any(|name| name == "..")
        || pattern.starts_with('/')
        || pattern.starts_with("./")
        || pattern.ends_with('/')
}

#[test]
fn globs_match_as_the_reference_does() {
    let (project, paths) = tree();
    compare("glob::globs_match_as_the_reference_does", 250, |generator| {
        let pattern = generator.text(PIECES, 5);
        if is_more_than_a_glob(&pattern) {
            return;
        }
        let alternatives = reference::alternatives(&pattern);
        let expected = alternatives.map(|alternatives| {
            let matches = |path: &&String| alternatives.iter().any(|glob| reference::matches(glob, path));
            paths.iter().filter(matches).cloned().collect::<Vec<_>>()
        });
        assert_eq!(found(&project, &pattern), expected, "{pattern}");
    });
}

#[test]
fn globs_match_as_fd_does() {
    let Some(fd) = need("HAFT_TEST_FD") else { return };
    let (project, _) = tree();
    let root = project.root().to_str().unwrap().to_owned();
    compare("glob::globs_match_as_fd_does", 100, |generator| {
        let pattern = generator.text(PLAIN_PIECES, 5);
        if is_more_than_a_glob(&pattern) || pattern.contains("***") {
            return;
        }
        let whole = format!("{root}/{pattern}");
        let Some(found) = found(&project, &pattern) else { return };
        let mut command = Command::new(&fd);
        command.args([
            "--no-ignore",
            "--hidden",
            "--type",
            "f",
            "--type",
            "l",
            "--print0",
            "--full-path",
            "--glob",
            "--",
        ]);
        let output = command.args([&whole, &root]).output().unwrap();
        assert!(output.status.success(), "{pattern}: {}", String::from_utf8_lossy(&output.stderr));
        let output = String::from_utf8(output.stdout).unwrap();
        let mut expected: Vec<String> =
            output.split_terminator('\0').map(|path| path.strip_prefix(&root).unwrap()[1..].to_owned()).collect();
        expected.sort();
        let ours: Vec<String> = found.into_iter().filter(|path| path.is_ascii()).collect();
        expected.retain(|path| path.is_ascii());
        assert_eq!(ours, expected, "{pattern}");
    });
}

/// Globs as they are described, matched by trying everything.
mod reference {
    /// The globs that one with braces stands for; none if a brace has no partner.
    pub(super) fn alternatives(glob: &str) -> Option<Vec<Vec<char>>> {
        expand(&glob.chars().collect::<Vec<_>>())?.into_iter().map(|glob| is_sound(&glob).then_some(glob)).collect()
    }

    fn expand(glob: &[char]) -> Option<Vec<Vec<char>>> {
        let mut at = 0;
        while at < glob.len() {
            match glob[at] {
                '\\' => at += 1,
                '[' => at = class(&glob[at..]).map_or(at, |(length, _)| at + length - 1),
                '}' => return None,
                '{' => {
                    let (parts, length) = parts(&glob[at..])?;
                    let whole = |part: &[char]| [&glob[..at], part, &glob[at + length..]].concat();
                    let expanded: Option<Vec<_>> = parts.iter().map(|part| expand(&whole(part))).collect();
                    return expanded.map(|all| all.concat());
                }
                _ => {}
            }
            at += 1;
        }
        Some(vec![glob.to_vec()])
    }

    /// The parts between braces, and the length with them.
    fn parts(glob: &[char]) -> Option<(Vec<Vec<char>>, usize)> {
        let (mut parts, mut depth, mut at) = (vec![Vec::new()], 0, 0);
        while at < glob.len() {
            let length = match glob[at] {
                '\\' => 2,
                '[' => class(&glob[at..]).map_or(1, |(length, _)| length),
                _ => 1,
            };
            let piece = &glob[at..(at + length).min(glob.len())];
            at += length;
            match piece {
                ['{'] if depth == 0 => depth = 1,
                ['}'] if depth == 1 => return Some((parts, at)),
                [','] if depth == 1 => parts.push(Vec::new()),
                piece => {
                    depth += i32::from(piece == ['{']) - i32::from(piece == ['}']);
                    parts.last_mut()?.extend(piece);
                }
            }
        }
        None
    }

    /// Whether all classes end and no backslash is alone.
    fn is_sound(glob: &[char]) -> bool {
        match glob {
            [] => true,
            ['\\'] => false,
            ['[', ..] => class(glob).is_some_and(|(length, _)| is_sound(&glob[length..])),
            ['\\', _, rest @ ..] | [_, rest @ ..] => is_sound(rest),
        }
    }

    pub(super) fn matches(glob: &[char], path: &str) -> bool {
        is_match(glob, &path.chars().collect::<Vec<_>>(), true)
    }

    /// `begins`: whether a name begins here in the glob.
    fn is_match(glob: &[char], path: &[char], begins: bool) -> bool {
        let stars = glob.iter().take_while(|c| **c == '*').count();
        if stars > 0 {
            let rest = &glob[stars..];
            let all = |rest: &[char], begins| (0..=path.len()).any(|at| is_match(rest, &path[at..], begins));
            return match rest.first() {
                None if stars > 1 && begins => !path.is_empty(),
                Some('/') if stars > 1 && begins => is_match(&rest[1..], path, true) || all(rest, false),
                _ => {
                    let name = path.iter().take_while(|c| **c != '/').count();
                    (0..=name).any(|at| is_match(rest, &path[at..], false))
                }
            };
        }
        match (glob, path) {
            ([], path) => path.is_empty(),
            (_, []) => false,
            (['?', rest @ ..], [c, path @ ..]) => *c != '/' && is_match(rest, path, false),
            (['[', ..], [c, path @ ..]) => {
                let (length, members) = class(glob).unwrap();
                *c != '/' && members(*c) && is_match(&glob[length..], path, false)
            }
            (['\\', wanted, rest @ ..] | [wanted, rest @ ..], [c, path @ ..]) => {
                wanted == c && is_match(rest, path, *c == '/')
            }
        }
    }

    type Members = Box<dyn Fn(char) -> bool>;

    /// The class that a glob begins with: its length, and what is in it.
    fn class(glob: &[char]) -> Option<(usize, Members)> {
        let negated = matches!(glob.get(1), Some('!' | '^'));
        let mut at = if negated { 2 } else { 1 };
        let first = at;
        let mut members: Vec<Members> = Vec::new();
        while at == first || *glob.get(at)? != ']' {
            let rest: String = glob[at..].iter().collect();
            if let Some(name) = ["digit", "alpha"].iter().find(|name| rest.starts_with(&format!("[:{name}:]"))) {
                let is_digit = *name == "digit";
                members
                    .push(Box::new(move |c: char| if is_digit { c.is_ascii_digit() } else { c.is_ascii_alphabetic() }));
                at += name.len() + 4;
                continue;
            }
            let one = |at: &mut usize| {
                *at += usize::from(*glob.get(*at)? == '\\');
                *at += 1;
                glob.get(*at - 1).copied()
            };
            let low = one(&mut at)?;
            let high = if glob.get(at) == Some(&'-') && glob.get(at + 1).is_some_and(|next| *next != ']') {
                at += 1;
                one(&mut at)?
            } else {
                low
            };
            members.push(Box::new(move |c| (low..=high).contains(&c)));
        }
        Some((at + 1, Box::new(move |c| members.iter().any(|is_member| is_member(c)) != negated)))
    }
}
