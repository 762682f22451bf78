//! What a shell's pattern matches, looked up without a shell.

use globset::{GlobBuilder, GlobMatcher};
use haft_core::pattern::glob_is_sane;
use std::path::Path;

/// More names than this are not looked at.
const NAMES_MAX: usize = 20_000;

/// `{a,b}` as each of its alternatives.
pub(super) fn alternatives(pattern: &str) -> Vec<String> {
    match pattern.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(inner) => inner.split(',').map(str::to_owned).collect(),
        None => vec![pattern.to_owned()],
    }
}

/// The directory below which everything that a pattern matches lies.
pub(super) fn base(pattern: &str) -> String {
    let fixed: Vec<&str> = pattern.split('/').take_while(|part| !is_wild(part)).collect();
    // A pattern without a wildcard is a path.
    if fixed.len() == pattern.split('/').count() {
        return plain(pattern);
    }
    let base = plain(&fixed.join("/"));
    if base.is_empty() { "/".to_owned() } else { base }
}

/// The paths that a pattern matches; none if that is too many to say.
pub(super) fn matches(pattern: &str) -> Option<Vec<String>> {
    let mut found = vec![String::new()];
    let mut seen = 0;
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if !is_wild(part) {
            for path in &mut found {
                path.extend(["/", &plain(part)]);
            }
            continue;
        }
        let matcher = matcher(part)?;
        let mut next = Vec::new();
        for dir in &found {
            let dir = if dir.is_empty() { "/" } else { dir };
            for entry in std::fs::read_dir(Path::new(dir)).into_iter().flatten().flatten() {
                seen += 1;
                if seen > NAMES_MAX {
                    return None;
                }
                let name = entry.file_name();
                let name = name.to_str()?;
                // A wildcard does not match the dot at the beginning of a name.
                let hidden = name.starts_with('.') && !part.starts_with('.');
                if !hidden && matcher.is_match(name) {
                    next.push(format!("{}/{name}", dir.trim_end_matches('/')));
                }
            }
        }
        found = next;
    }
    Some(found)
}

fn matcher(part: &str) -> Option<GlobMatcher> {
    if !glob_is_sane(part) {
        return None;
    }
    // The shell writes `[!a]`, as globs here do; two stars in a name are one.
    let glob = GlobBuilder::new(part).literal_separator(true).backslash_escape(true).build().ok()?;
    Some(glob.compile_matcher())
}

fn is_wild(part: &str) -> bool {
    let mut escaped = false;
    part.chars().any(|c| {
        let wild = !escaped && matches!(c, '*' | '?' | '[');
        escaped = !escaped && c == '\\';
        wild
    })
}

/// A part of a pattern without its backslashes.
fn plain(part: &str) -> String {
    let mut out = String::new();
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        if c == '\\' { out.extend(chars.next()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_the_shell_would() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("src")).unwrap();
        for name in ["a.txt", "b.txt", ".env", "src/x.rs", "src/y.rs", "odd*name"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        let root = root.to_str().unwrap();
        let said = |pattern: &str| {
            let mut found = matches(&format!("{root}/{pattern}")).unwrap();
            found.sort();
            found.iter().map(|path| path.strip_prefix(root).unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(said("*.txt"), "/a.txt /b.txt");
        assert_eq!(said("*/*.rs"), "/src/x.rs /src/y.rs");
        assert_eq!(said(".e*"), "/.env");
        assert_eq!(said("[!a].txt"), "/b.txt");
        assert_eq!(said("odd\\**"), "/odd*name");
        assert_eq!(base("/p/src/*.rs"), "/p/src");
        assert_eq!(base("/p/a\\*"), "/p/a*");
        assert_eq!(alternatives("{/p/a,/p/b*}"), ["/p/a", "/p/b*"]);
    }
}
