//! Globs over paths: one meaning wherever a file tool takes one.
//!
//! `*` and `?` stay within a name, `**` as a whole name spans any number of directories, `[…]` is a class and `{a,b}` stands
//! for each alternative, as in a shell. All of them count characters; globset, which the walking library is made for, counts
//! bytes, to which `é` is two.

mod parse;

use regex::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::path::Path;

/// Larger automata are not built.
const SIZE_MAX: usize = 8 << 20;
/// A byte that is not UTF-8 counts as one character, from this one on: the last plane is for private use.
const FOREIGN: u32 = 0x10_ff00;

/// A glob that is ready to be matched.
#[derive(Debug, Clone)]
pub(super) struct PathGlob {
    regex: Regex,
    /// What every path that matches ends with, so that most are refused at once.
    end: Vec<u8>,
}

/// What a glob has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The path itself.
    Path,
    /// A directory that the path lies in.
    Directory,
    /// Either.
    PathOrDirectory,
}

impl PathGlob {
    /// Reads a glob that has to match the whole path.
    pub(super) fn new(glob: &str) -> Result<Self, String> {
        Self::with_extent(glob, Extent::Path)
    }

    /// Reads a glob that has to match this.
    pub(super) fn with_extent(glob: &str, extent: Extent) -> Result<Self, String> {
        let alternatives = parse::alternatives(glob)?;
        let parsed: Vec<_> = alternatives.iter().map(|one| parse::Parsed::of(one)).collect();
        let parsed = parsed.into_iter().collect::<Result<Vec<_>, _>>()?;
        let patterns: Vec<&str> = parsed.iter().map(|one| one.regex.as_str()).collect();
        let below = match extent {
            Extent::Path => "",
            Extent::Directory => "/.+",
            Extent::PathOrDirectory => "(?:/.+)?",
        };
        let end = match parsed.as_slice() {
            [only] if extent == Extent::Path => only.end.clone(),
            _ => String::new(),
        };
        let regex = compile(&format!("^(?:{}){below}$", patterns.join("|")))?;
        Ok(Self { regex, end: end.into_bytes() })
    }

    /// Whether a path matches.
    pub(super) fn is_match(&self, path: &Path) -> bool {
        path.as_os_str().as_encoded_bytes().ends_with(&self.end) && self.regex.is_match(&characters(path))
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(pattern).dot_matches_new_line(true).size_limit(SIZE_MAX).build();
    built.map_err(|_| "it is too large".to_owned())
}

/// The path as characters.
fn characters(path: &Path) -> Cow<'_, str> {
    if let Some(text) = path.to_str() {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().filter_map(|byte| char::from_u32(FOREIGN + u32::from(*byte))));
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests;
