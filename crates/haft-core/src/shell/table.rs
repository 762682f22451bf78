//! The table of what commands do. An entry is read when its program is first met, and its examples are run
//! then: one that does not hold makes the whole entry count for nothing.

use super::entry::{BadEntry, Entry, Written};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The families that haft ships.
const FAMILIES: &[&str] = &[
    include_str!("../../commands/archives.yml"),
    include_str!("../../commands/builtins.yml"),
    include_str!("../../commands/containers.yml"),
    include_str!("../../commands/coreutils-files.yml"),
    include_str!("../../commands/coreutils-text.yml"),
    include_str!("../../commands/find-grep.yml"),
    include_str!("../../commands/git.yml"),
    include_str!("../../commands/interpreters.yml"),
    include_str!("../../commands/network.yml"),
    include_str!("../../commands/packages.yml"),
    include_str!("../../commands/rust-node-python.yml"),
    include_str!("../../commands/system.yml"),
    include_str!("../../commands/text.yml"),
    include_str!("../../commands/wrappers.yml"),
];

/// What commands do: what haft ships, and what people add.
#[derive(Debug, Default)]
pub struct Table {
    own: BTreeMap<String, Written>,
    loaded: Mutex<HashMap<String, Option<Arc<Entry>>>>,
}

/// Where each shipped program's entry stands.
static SHIPPED: LazyLock<HashMap<&'static str, &'static str>> =
    LazyLock::new(|| FAMILIES.iter().flat_map(|text| sections(text)).collect());

/// The table that haft ships.
static PLAIN: LazyLock<Table> = LazyLock::new(Table::default);

/// Splits a family into programs: a program is a line that does not begin with a blank, and what follows it.
fn sections(text: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut found: Vec<(&str, usize, usize)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some((name, length)) = heading(line) {
            if let Some(before) = found.last_mut() {
                before.2 = at;
            }
            found.push((name, at + length, text.len()));
        }
        at += line.len();
    }
    found.into_iter().map(|(name, from, to)| (name, &text[from..to])).collect()
}

/// The program that a line begins the entry of, and where in the line its entry begins.
fn heading(line: &str) -> Option<(&str, usize)> {
    if line.starts_with([' ', '#', '-', '\n', '\r', '\t']) {
        return None;
    }
    let quote = line.chars().next().filter(|c| matches!(c, '"' | '\''));
    let (name, length) = if let Some(quote) = quote {
        let end = line[1..].find(quote)? + 1;
        (&line[1..end], end + 1)
    } else {
        let end = line.find(": ").or_else(|| line.trim_end().ends_with(':').then(|| line.trim_end().len() - 1))?;
        (&line[..end], end)
    };
    line[length..].starts_with(':').then_some((name, length + 1))
}

impl Table {
    /// The table that haft ships.
    pub fn shipped() -> &'static Self {
        &PLAIN
    }

    /// The shipped table with a person's own entries, which replace those of the same name. Every one of them
    /// is read and its examples run.
    pub fn with(own: BTreeMap<String, Written>) -> Result<Self, (String, BadEntry)> {
        let table = Self { own, loaded: Mutex::default() };
        for name in table.own.keys() {
            table.load(name).map_err(|error| (name.clone(), error))?;
        }
        Ok(table)
    }

    /// The names of all programs that haft ships an entry for.
    pub fn names() -> Vec<&'static str> {
        let mut names: Vec<&str> = SHIPPED.keys().copied().collect();
        names.sort_unstable();
        names
    }

    /// What a program does, if that is known.
    pub(super) fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        if let Some(known) = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return known.clone();
        }
        if !SHIPPED.contains_key(name) && !self.own.contains_key(name) {
            return None;
        }
        self.load(name).ok().flatten()
    }

    /// Reads an entry and runs its examples.
    pub fn check(&self, name: &str) -> Result<(), BadEntry> {
        self.load(name).map(drop)
    }

    fn load(&self, name: &str) -> Result<Option<Arc<Entry>>, BadEntry> {
        let Some(written) = self.written(name, 0)? else { return Ok(None) };
        let examples = written.examples.clone();
        let entry = Arc::new(Entry::new(written)?);
        let keep = |entry: Option<Arc<Entry>>| {
            self.loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), entry);
        };
        // The examples are judged with the entry in place.
        keep(Some(Arc::clone(&entry)));
        for example in examples.iter().chain(nested(&entry)) {
            if let Err(why) = super::holds(self, example) {
                keep(None);
                return Err(BadEntry::Example { example: example.clone(), why });
            }
        }
        Ok(Some(entry))
    }

    fn written(&self, name: &str, hops: usize) -> Result<Option<Written>, BadEntry> {
        let written = match (self.own.get(name), SHIPPED.get(name)) {
            (Some(own), _) => own.clone(),
            (None, Some(text)) => {
                serde_saphyr::from_str(text).map_err(|error| BadEntry::Malformed(error.to_string()))?
            }
            (None, None) => return Ok(None),
        };
        let Some(like) = written.like.clone().filter(|_| hops < 4) else { return Ok(Some(written)) };
        match self.written(&like, hops + 1)? {
            Some(base) => Ok(Some(written.over(base))),
            None => Err(BadEntry::Like(like)),
        }
    }
}

fn nested(entry: &Entry) -> impl Iterator<Item = &String> {
    fn collect<'e>(entry: &'e Entry, all: &mut Vec<&'e String>) {
        for sub in entry.subcommands.values() {
            all.extend(&sub.written.examples);
            collect(sub, all);
        }
    }
    let mut all = Vec::new();
    collect(entry, &mut all);
    all.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_entry_holds_what_its_examples_say() {
        let broken: Vec<String> = Table::names()
            .into_iter()
            .filter_map(|name| Table::shipped().check(name).err().map(|error| format!("{name}: {error}")))
            .collect();
        assert!(broken.is_empty(), "{} entries:\n{}", broken.len(), broken.join("\n"));
    }
}
