//! What a glob pattern says about the walk, beside which files it matches: where it has to go, and how
//! deep.

use crate::tools::file::path_glob::PathGlob;
use haft_core::CallError;
use std::ffi::OsString;
use std::path::Path;

/// A pattern, ready to be walked.
#[derive(Debug)]
pub(super) struct Pattern {
    /// Which relative paths match.
    pub(super) glob: PathGlob,
    /// Names of the directories that every match lies in, outermost first.
    pub(super) within: Vec<OsString>,
    /// How deep a match can lie.
    pub(super) depth: Option<usize>,
}

impl Pattern {
    /// Reads a pattern that is meant relative to `start`.
    pub(super) fn parse(spoken: &str, start: &Path) -> Result<Self, CallError> {
        if !haft_core::pattern::glob_is_sane(spoken) {
            return Err(CallError::invalid("`pattern` is too long, or its braces nest too deeply"));
        }
        let mut pattern = relative(spoken, start)?.to_owned();
        if pattern.is_empty() || pattern.ends_with('/') {
            pattern.push_str("**");
        }
        let glob =
            PathGlob::new(&pattern).map_err(|why| CallError::invalid(format!("`pattern` is not a glob: {why}")))?;
        Ok(Self { glob, within: within(&pattern), depth: depth(&pattern) })
    }
}

/// The pattern without the parts that repeat where the walk starts. What leads elsewhere is refused: only
/// `path` was decided upon.
fn relative<'p>(spoken: &'p str, start: &Path) -> Result<&'p str, CallError> {
    let elsewhere = || {
        CallError::invalid(format!("`pattern` leads out of `path`: {spoken}"))
            .hint("give the directory as `path`, and a pattern relative to it")
    };
    if spoken.split('/').any(|name| name == "..") {
        return Err(elsewhere());
    }
    if spoken.starts_with('/') {
        let start = start.to_str().ok_or_else(elsewhere)?.trim_end_matches('/');
        let rest = spoken.strip_prefix(start).and_then(|rest| rest.strip_prefix('/'));
        return rest.ok_or_else(elsewhere);
    }
    let mut rest = spoken;
    while let Some(shorter) = rest.strip_prefix("./") {
        rest = shorter;
    }
    Ok(rest)
}

fn within(pattern: &str) -> Vec<OsString> {
    let Some((dirs, _)) = pattern.rsplit_once('/') else { return Vec::new() };
    let literal = |name: &&str| !name.is_empty() && !name.contains(['*', '?', '[', ']', '{', '}', '\\', ',']);
    dirs.split('/').take_while(literal).map(OsString::from).collect()
}

/// Alternatives and classes may hold slashes of their own, so they leave the depth open.
fn depth(pattern: &str) -> Option<usize> {
    let open = pattern.contains("**") || pattern.contains(['{', '[', '\\']);
    (!open).then(|| pattern.split('/').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_says_where_to_walk() {
        let parse = |pattern: &str| {
            let pattern = Pattern::parse(pattern, Path::new("/work")).unwrap();
            let names: Vec<_> = pattern.within.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
            (names.join("/"), pattern.depth)
        };
        assert_eq!(parse("*.rs"), (String::new(), Some(1)));
        assert_eq!(parse("./src/*.rs"), ("src".to_owned(), Some(2)));
        assert_eq!(parse("src/a/**/*.ts"), ("src/a".to_owned(), None));
        assert_eq!(parse("{a,b/c}/*.ts"), (String::new(), None));
        assert_eq!(parse("/work/src/x.rs"), ("src".to_owned(), Some(2)));
        assert_eq!(parse("src/"), ("src".to_owned(), None));
    }

    #[test]
    fn a_pattern_does_not_lead_out_of_its_directory() {
        for pattern in ["../*.rs", "a/../../b", "/etc/*", "/workshop/*"] {
            let error = Pattern::parse(pattern, Path::new("/work")).unwrap_err();
            assert!(error.message.starts_with("`pattern` leads out of `path`"), "{pattern}");
        }
    }
}
