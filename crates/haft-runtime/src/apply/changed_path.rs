//! One changed path with what was there before and what is there afterwards: what is shown of changes that are about to be
//! made, and of those that were made. A directory that comes or goes is taken apart into its files.

use haft_core::change::{Change, State};
use haft_core::record::Digest;
use haft_sandbox::layer::{at, tree};
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files of a replaced directory are compared as far as this; beyond it, they count as modified.
const COMPARED_MAX: u64 = 256 << 20;

/// Where the content of a side is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SideContent<'a> {
    /// Nowhere, or it was not kept.
    Nowhere,
    /// In a file.
    At(PathBuf),
    /// In memory: a tool of haft's wrote it.
    Bytes(&'a [u8]),
}

/// What stands at a path, before or after a change.
#[derive(Debug, Clone)]
pub(crate) struct Side<'a> {
    pub(crate) state: State,
    pub(crate) content: SideContent<'a>,
}

impl Side<'_> {
    /// Nothing.
    pub(crate) const ABSENT: Self = Self { state: State::Absent, content: SideContent::Nowhere };

    /// What stands somewhere, and the file that has its content, if any has.
    pub(crate) fn new(state: State, at: Option<PathBuf>) -> Self {
        Self { state, content: at.map_or(SideContent::Nowhere, SideContent::At) }
    }

    /// Whether nothing stands there.
    pub(crate) fn is_absent(&self) -> bool {
        self.state == State::Absent
    }

    /// The file that has the content.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.content {
            SideContent::At(path) => Some(path),
            SideContent::Nowhere | SideContent::Bytes(_) => None,
        }
    }

    /// How long the content is.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.content {
            SideContent::At(path) if matches!(self.state, State::File { .. } | State::Link { .. }) => {
                path.symlink_metadata().map_or(0, |meta| meta.len())
            }
            SideContent::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            SideContent::At(_) | SideContent::Nowhere => 0,
        }
    }
}

/// A changed path.
#[derive(Debug)]
pub(crate) struct ChangedPath<'a> {
    pub(crate) path: PathBuf,
    /// Its new name, if it was renamed.
    pub(crate) to: Option<PathBuf>,
    pub(crate) old: Side<'a>,
    pub(crate) new: Side<'a>,
    /// Whether the call itself names it, rather than a program that the call runs. Such a path is never folded.
    pub(crate) is_named: bool,
    /// Whether it differs from what it was.
    pub(crate) is_changed: bool,
    /// What is said about it beside the difference.
    pub(crate) remarks: Vec<String>,
}

impl<'a> ChangedPath<'a> {
    pub(crate) fn new(path: PathBuf, old: Side<'a>, new: Side<'a>) -> Self {
        Self { path, to: None, old, new, is_named: false, is_changed: true, remarks: Vec::new() }
    }

    fn named(self) -> Self {
        Self { is_named: true, ..self }
    }
}

/// The paths that changes are about.
pub(crate) fn changed_paths(changes: &[Change]) -> Vec<ChangedPath<'_>> {
    changes.iter().flat_map(of_change).collect()
}

fn of_change(change: &Change) -> Vec<ChangedPath<'_>> {
    let there = |path: &Path, state: &State| Side::new(state.clone(), Some(path.to_owned()));
    match change {
        Change::Write { path, content, before, mode } => {
            let known = match before {
                State::File { mode, .. } => *mode,
                _ => 0,
            };
            let state = State::File { digest: Digest::ZERO, mode: mode.unwrap_or(known) };
            let new = Side { state, content: SideContent::Bytes(content) };
            vec![ChangedPath::new(path.clone(), there(path, before), new).named()]
        }
        Change::Move { from, to, before } => {
            let moved = ChangedPath::new(from.clone(), there(from, before), there(from, before)).named();
            vec![ChangedPath { to: Some(to.clone()), ..moved }]
        }
        Change::Remove { path, before } => take_apart(path, there(path, before), Side::ABSENT),
        Change::Place { path, staged, before, after } => take_apart(path, there(path, before), there(staged, after)),
        Change::Mode { path, before, mode } => {
            let new = Side::new(State::Dir { mode: *mode }, None);
            vec![ChangedPath::new(path.clone(), Side::new(before.clone(), None), new)]
        }
    }
}

/// A path, or where a directory came or went every file in it that differs.
pub(crate) fn take_apart<'a>(path: &Path, old: Side<'a>, new: Side<'a>) -> Vec<ChangedPath<'a>> {
    let is_tree = |side: &Side<'_>| side.state.is_tree() && side.file().is_some();
    if !is_tree(&old) && !is_tree(&new) {
        return vec![ChangedPath::new(path.to_owned(), old, new)];
    }
    let modes = match (&old.state, &new.state) {
        (State::Tree { mode: old, .. }, State::Tree { mode: new, .. }) => Some((*old, *new)),
        _ => None,
    };
    let mut sides: BTreeMap<PathBuf, (Side<'a>, Side<'a>)> = BTreeMap::new();
    for (inner, side) in parts(old) {
        sides.entry(inner).or_insert((Side::ABSENT, Side::ABSENT)).0 = side;
    }
    for (inner, side) in parts(new) {
        sides.entry(inner).or_insert((Side::ABSENT, Side::ABSENT)).1 = side;
    }
    if let Some((old, new)) = modes {
        let dir = |mode| Side::new(State::Dir { mode }, None);
        sides.insert(PathBuf::new(), (dir(old), dir(new)));
    }
    let mut left = COMPARED_MAX;
    let differing = sides.into_iter().filter(|(_, (old, new))| !is_same(old, new, &mut left));
    let at = |inner: PathBuf| if inner.as_os_str().is_empty() { path.to_owned() } else { path.join(inner) };
    differing.map(|(inner, (old, new))| ChangedPath::new(at(inner), old, new)).collect()
}

/// What a side consists of, each by its path below it. A directory stands for itself if it is empty, or the whole side.
fn parts(side: Side<'_>) -> Vec<(PathBuf, Side<'_>)> {
    let Some(top) = side.file().filter(|_| side.state.is_tree()).map(Path::to_owned) else {
        return if side.is_absent() { Vec::new() } else { vec![(PathBuf::new(), side)] };
    };
    let mut found: Vec<(PathBuf, Side<'_>)> = Vec::new();
    let mut empty: BTreeMap<PathBuf, u32> = BTreeMap::new();
    // What cannot be walked cannot be applied either.
    let _ = tree::each(&top, &mut |entry| {
        if let Some(parent) = entry.inner.parent() {
            empty.remove(parent);
        }
        let at = if entry.inner.as_os_str().is_empty() { top.clone() } else { top.join(entry.inner) };
        let inner = entry.inner.to_owned();
        if at::kind(entry.stat) == FileType::Directory {
            empty.insert(inner, at::mode(entry.stat));
        } else {
            found.push((inner, Side::new(glance(&at), Some(at))));
        }
        Ok(())
    });
    let dirs = empty.into_iter().map(|(inner, mode)| (inner, Side::new(State::Dir { mode }, None)));
    found.into_iter().chain(dirs).collect()
}

/// What stands at a path, without reading a file's content: it may be large.
fn glance(path: &Path) -> State {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_symlink() => State::Link { target: path.read_link().unwrap_or_default() },
        Ok(meta) if meta.is_file() => State::File { digest: Digest::ZERO, mode: meta.mode() & 0o7777 },
        _ => State::Absent,
    }
}

/// Whether a part of a replaced directory is what it was. Time and size say nothing: a program sets both.
fn is_same(old: &Side<'_>, new: &Side<'_>, left: &mut u64) -> bool {
    if old.state != new.state {
        return false;
    }
    let (State::File { .. }, Some(one), Some(other)) = (&old.state, old.file(), new.file()) else { return true };
    let (Ok(one), Ok(other)) = (crate::files::open(one), crate::files::open(other)) else { return false };
    let length = |file: &File| file.metadata().map(|meta| meta.len()).ok();
    let Some(bytes) = length(&one).filter(|bytes| Some(*bytes) == length(&other)) else { return false };
    let Some(rest) = left.checked_sub(bytes) else { return false };
    *left = rest;
    is_equal(one, other).unwrap_or(false)
}

fn is_equal(one: File, other: File) -> io::Result<bool> {
    let (mut one, mut other) = (io::BufReader::new(one), io::BufReader::new(other));
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let read = one.read(&mut left)?;
        if read == 0 {
            return Ok(other.read(&mut right)? == 0);
        }
        if other.read_exact(&mut right[..read]).is_err() || left[..read] != right[..read] {
            return Ok(false);
        }
    }
}
