//! What must never run: commands that destroy a whole machine or home. They are judged by path, not by flag:
//! `rm -rf build/` is an ordinary call.

use super::options::Sorted;
use super::paths::targets;
use super::state::State;
use super::walk::Walk;

/// Programs that remove what they name.
const REMOVERS: &[&str] = &["rm", "rmdir", "unlink", "shred", "srm", "wipe", "trash", "rimraf"];
/// Programs that change everything below what they name, when told to.
const CHANGERS: &[&str] = &["chmod", "chown", "chgrp", "setfacl"];

/// Denies a command that would remove or change a place of which everything else is part.
pub(super) fn check(walk: &mut Walk<'_>, name: &str, sorted: &Sorted, state: &State) {
    let recursive = ["-R", "-r", "--recursive"].iter().any(|option| sorted.has(option));
    let doomed = match name {
        name if REMOVERS.contains(&name) => &sorted.operands[..],
        name if CHANGERS.contains(&name) && recursive => sorted.operands.get(1..).unwrap_or_default(),
        "mv" => sorted.operands.split_last().map_or(&[][..], |(_, sources)| sources),
        _ => return,
    };
    let home = walk.home().map(str::to_owned);
    for word in doomed {
        for target in targets(word, state, &mut Vec::new()) {
            for path in alternatives(target.text()) {
                if let Some(why) = vital(&path, home.as_deref()) {
                    walk.ruin(format!("`{name}` would hit {path}: {why}"));
                }
            }
        }
    }
}

/// Denies functions that start themselves again and again, be it by way of others.
pub(super) fn bombs(walk: &mut Walk<'_>) {
    let calls: Vec<(String, String, bool)> = walk
        .commands
        .iter()
        .filter_map(|command| {
            let target = command.name.as_ref().filter(|name| walk.functions.contains(name))?;
            let caller = command.standing.through.iter().rev().find_map(|part| part.strip_prefix("function "))?;
            let multiplies = command.standing.background || command.standing.pipeline.is_some();
            Some((caller.to_owned(), target.clone(), multiplies))
        })
        .collect();
    let leads = |from: &str, to: &str| {
        let mut reached = vec![from];
        let mut next = 0;
        while let Some(here) = reached.get(next).copied() {
            next += 1;
            let new = calls.iter().filter(|(caller, ..)| caller == here).map(|(_, target, _)| target.as_str());
            for target in new.collect::<Vec<_>>() {
                if !reached.contains(&target) {
                    reached.push(target);
                }
            }
        }
        reached.contains(&to)
    };
    if calls.iter().any(|(caller, target, multiplies)| *multiplies && leads(target, caller)) {
        walk.ruin("it is a fork bomb: a function that starts itself again and again");
    }
}

/// `{a,b}` as each of its alternatives.
fn alternatives(pattern: &str) -> Vec<String> {
    match pattern.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(inner) => inner.split(',').map(str::to_owned).collect(),
        None => vec![pattern.to_owned()],
    }
}

/// Why a place must not be removed or changed as a whole.
pub(super) fn vital(path: &str, home: Option<&str>) -> Option<&'static str> {
    let drive = path.trim_matches('/').split('/').next_back().unwrap_or_default();
    if drive.len() <= 3 && drive.chars().nth(1) == Some(':') && drive.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some("it is a whole drive");
    }
    let parts = lexical(path);
    let whole = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| matches!(c, '*' | '?' | '.' | '\\' | '[' | ']' | '!'))
            && part.contains(['*', '?'])
    };
    // Everything in a place is the place.
    let parts = match parts.split_last() {
        Some((last, before)) if whole(last) => before,
        _ => &parts[..],
    };
    match parts {
        [] => Some("it is the whole file system"),
        [_] => Some("it is a directory right below the root of the file system"),
        [mount, drive] if mount == "mnt" && drive.len() == 1 => Some("it is a whole drive"),
        parts if home.is_some_and(|home| lexical(home) == parts) => Some("it is a whole home directory"),
        [users, _] if users == "home" || users == "Users" => Some("it is a whole home directory"),
        _ => None,
    }
}

/// The names in a path, with `.` and `..` worked out.
fn lexical(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part.to_owned()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::vital;

    #[test]
    fn what_everything_is_part_of_is_vital() {
        for path in [
            "/",
            "//",
            "/.",
            "/etc",
            "/etc/",
            "/usr/..",
            "/*",
            "/usr/*",
            "/home/u",
            "/home/u/",
            "/home/u/*",
            "/home/u/.*",
            "/home/other",
            "/mnt/c",
            "/C:\\",
            "/w/p/C:/",
        ] {
            assert!(vital(path, Some("/home/u")).is_some(), "{path}");
        }
        for path in
            ["/home/u/x", "/w/p/build", "/w/p/*", "/usr/local/share", "/w/p/../p/x", "/etc/hosts", "/usr/lib*/x"]
        {
            assert!(vital(path, Some("/home/u")).is_none(), "{path}");
        }
    }
}
