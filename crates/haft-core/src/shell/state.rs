//! What is known of variables and of the working directory at one point of a command, on the way that it
//! runs: along branches that may or may not be taken, only what both ways agree on stays known.

use super::word::Value;
use std::collections::HashMap;

/// More working directories than this at once are not kept apart.
const PLACES_MAX: usize = 4;

/// What is known at one point.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct State {
    vars: HashMap<String, Value>,
    /// Where it may be; an empty path stands for anywhere.
    cwd: Vec<String>,
    /// Where it may be if the last command failed, where that differs.
    failed: Option<Vec<String>>,
    /// Whether words may be split in unusual ways.
    odd_splitting: bool,
    /// Whether it has gone elsewhere since the beginning.
    moved: bool,
}

impl State {
    pub(super) fn new(cwd: &str, home: Option<&str>) -> Self {
        let mut state = Self { cwd: vec![cwd.to_owned()], ..Self::default() };
        state.set("PWD", Value::Known(cwd.to_owned()));
        if let Some(home) = home {
            state.set("HOME", Value::Known(home.to_owned()));
        }
        state
    }

    /// What is known of a variable.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.vars.get(name)
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        if name == "IFS" {
            self.odd_splitting = true;
        }
        self.vars.insert(name.to_owned(), value);
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.set(name, Value::unknown(true));
    }

    /// Nothing is known of variables any more.
    pub(super) fn forget_variables(&mut self, splits_oddly: bool) {
        // Where the home is stays as good as known: whatever could change it is doubted by itself.
        self.vars.retain(|name, _| name == "HOME");
        self.odd_splitting |= splits_oddly;
    }

    /// Nothing is known any more: something ran that may have set anything.
    pub(super) fn forget_all(&mut self) {
        self.forget_variables(true);
        self.lose();
    }

    pub(super) fn splits_oddly(&self) -> bool {
        self.odd_splitting
    }

    /// The directories that it may be in, as far as they are known.
    pub(super) fn places(&self) -> impl Iterator<Item = &String> {
        self.cwd.iter().filter(|place| !place.is_empty())
    }

    /// The directory that it is in, if it is known to be this one.
    pub(super) fn place(&self) -> Option<&str> {
        match self.cwd.as_slice() {
            [place] if !place.is_empty() => Some(place),
            _ => None,
        }
    }

    /// Whether it may be anywhere.
    pub(super) fn is_lost(&self) -> bool {
        self.cwd.iter().all(String::is_empty) || self.cwd.iter().any(String::is_empty)
    }

    /// It is not known where it is.
    pub(super) fn lose(&mut self) {
        self.cwd = vec![String::new()];
        self.failed = None;
        self.vars.remove("PWD");
    }

    /// It goes elsewhere, if that is possible.
    pub(super) fn go(&mut self, to: &str) {
        // An absolute path leads to the same place from everywhere.
        let new = if to.starts_with('/') {
            vec![join("/", to)]
        } else {
            self.cwd.iter().map(|from| if from.is_empty() { String::new() } else { join(from, to) }).collect()
        };
        self.failed = Some(std::mem::replace(&mut self.cwd, new));
        self.moved = true;
        self.vars.remove("PWD");
    }

    /// The same up a path of which it is not known whether it leads over links: the shell goes by names, and
    /// only if that fails by what is there.
    pub(super) fn climb(&mut self, to: &str) {
        let by_name: Vec<String> = self.places().map(|from| lexical(&join(from, to))).collect();
        self.go(to);
        self.cwd = union(std::mem::take(&mut self.cwd), by_name);
    }

    /// Whether it has gone elsewhere since the beginning.
    pub(super) fn moved(&self) -> bool {
        self.moved
    }

    /// What follows runs only if the last command went well.
    pub(super) fn went_well(&mut self) {
        self.failed = None;
    }

    /// What follows runs only if the last command failed.
    pub(super) fn went_wrong(&mut self) {
        if let Some(failed) = self.failed.take() {
            self.cwd = failed;
        }
    }

    /// What follows runs either way.
    pub(super) fn goes_on(&mut self) {
        if let Some(failed) = self.failed.take() {
            self.cwd = union(std::mem::take(&mut self.cwd), failed);
        }
    }

    /// What is known when either of two ways was taken.
    pub(super) fn or(&mut self, mut other: Self) {
        self.goes_on();
        other.goes_on();
        self.vars.retain(|name, value| other.vars.get(name) == Some(value));
        self.odd_splitting |= other.odd_splitting;
        self.moved |= other.moved;
        self.cwd = union(std::mem::take(&mut self.cwd), other.cwd);
    }
}

/// Either of two sets of places; of too many, it may be anywhere.
fn union(mut one: Vec<String>, other: Vec<String>) -> Vec<String> {
    for place in other {
        if !one.contains(&place) {
            one.push(place);
        }
    }
    if one.len() > PLACES_MAX {
        one.truncate(PLACES_MAX);
        one.push(String::new());
    }
    one
}

/// A path with its `..` worked out by name.
fn lexical(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    format!("/{}", parts.join("/"))
}

/// A path said at a place.
pub(super) fn join(from: &str, to: &str) -> String {
    if to.starts_with('/') {
        return to.to_owned();
    }
    let mut path = from.trim_end_matches('/').to_owned();
    // `.` and its like say nothing.
    for part in to.split('/').filter(|part| !matches!(*part, "" | ".")) {
        path.push('/');
        path.push_str(part);
    }
    if path.is_empty() { "/".to_owned() } else { path }
}
