//! An ignore file as git reads it: which of its patterns decides about a path.
//!
//! The `ignore` crate reads patterns as its own globs, in which braces are alternatives, `[[:digit:]]` is no class and a
//! malformed pattern is an error. Where it differs from git, a search would pass over files that git tracks.

mod pattern;
mod wildmatch;

use pattern::{Form, Pattern, Scope, Shape};
use std::collections::HashMap;

/// The patterns of one ignore file, found by the text of a path where that is possible.
#[derive(Debug, Default)]
pub(crate) struct PatternList {
    patterns: Vec<Pattern>,
    /// Patterns without wildcards, by the name that they match at any depth.
    names: Index,
    /// Patterns without wildcards, by the path that they match.
    paths: Index,
    /// `*.ext`, by `ext`.
    extensions: Index,
    /// All other patterns, which have to be tried one by one.
    others: Vec<(usize, Scope, Shape)>,
    /// How much work it is to try those.
    cost: usize,
    /// How long the file is.
    length: usize,
}

/// Numbers of patterns in ascending order, by a literal part of what they match.
type Index = HashMap<Box<[u8]>, Vec<usize>>;

/// What an ignore file says about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Whether the path is ignored; otherwise a `!pattern` keeps it.
    pub(crate) ignored: bool,
    /// The line of the pattern that decides, from 1.
    pub(crate) line: usize,
}

impl PatternList {
    /// Reads the content of an ignore file.
    pub(crate) fn parse(content: &[u8]) -> Self {
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let mut list = Self { length: content.len(), ..Self::default() };
        for (line, text) in (1..).zip(content.split(|byte| *byte == b'\n')) {
            if let Some((pattern, form)) = Pattern::parse(line, text) {
                list.add(pattern, form);
            }
        }
        list
    }

    /// Whether no line says anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// How much work one decision is, where a pattern that the text of a path finds is none.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    /// How long the text is that it was read from, for an estimate of the memory that it takes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    fn add(&mut self, pattern: Pattern, form: Form) {
        let number = self.patterns.len();
        self.patterns.push(pattern);
        match (form.scope, form.shape) {
            (Scope::Name, Shape::Literal(name)) => self.names.entry(name).or_default().push(number),
            (Scope::Path, Shape::Literal(path)) => self.paths.entry(path).or_default().push(number),
            (Scope::Name, Shape::EndsWith(end)) if is_extension(&end) => {
                self.extensions.entry(end[1..].into()).or_default().push(number);
            }
            (scope, shape) => {
                self.cost += 1 + shape.size() / 64;
                self.others.push((number, scope, shape));
            }
        }
    }

    /// The verdict on a path below the directory of the file, alone: what is said about the directories that it lies in is
    /// another question.
    pub(crate) fn decide(&self, path: &[u8], is_dir: bool) -> Option<Verdict> {
        let name = memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..]);
        let extension = memchr::memrchr(b'.', name).map(|dot| &name[dot + 1..]);
        let indexed = [(&self.names, Some(name)), (&self.paths, Some(path)), (&self.extensions, extension)].into_iter();
        let found = indexed.filter_map(|(index, key)| self.last(index, key?, is_dir)).max();
        let others = self.others.iter().rev().take_while(|(number, ..)| found.is_none_or(|found| *number > found));
        let other = others
            .filter(|(number, ..)| self.applies(*number, is_dir))
            .find(|(_, scope, shape)| shape.matches(if *scope == Scope::Name { name } else { path }))
            .map(|(number, ..)| *number);
        other.or(found).map(|number| self.patterns[number].verdict())
    }

    fn last(&self, index: &Index, key: &[u8], is_dir: bool) -> Option<usize> {
        if index.is_empty() {
            return None;
        }
        index.get(key)?.iter().copied().rev().find(|number| self.applies(*number, is_dir))
    }

    fn applies(&self, number: usize, is_dir: bool) -> bool {
        is_dir || !self.patterns[number].dirs_only
    }
}

/// Whether everything that ends like this has the same extension.
fn is_extension(end: &[u8]) -> bool {
    end.first() == Some(&b'.') && !end[1..].contains(&b'.')
}

#[cfg(test)]
mod tests;
