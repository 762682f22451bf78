//! Changes as text: unified diffs of contents, and a line for everything else. However much was changed,
//! what is shown is bounded, and says what is left out.

use crate::files;
use haft_core::change::{Change, State};
use haft_core::record::Digest;
use haft_sandbox::layer::{at, tree};
use rustix::fs::FileType;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long two texts are compared for the smallest diff; after that, a larger one will do.
const DIFF_TIME: Duration = Duration::from_millis(200);
/// Larger texts are not compared.
const DIFF_MAX: usize = 4 << 20;
/// How many placed and removed files are shown.
const FILES_MAX: usize = 200;
/// How much is shown of them together.
const TEXT_MAX: usize = 1 << 20;

/// One side of a change: what is there, and where its content is, if anywhere.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub(crate) state: &'a State,
    pub(crate) at: Option<&'a Path>,
}

/// Changes as they are written down one after the other.
pub(crate) struct Drawing<'a> {
    shown: &'a dyn Fn(&Path) -> String,
    text: String,
    files_left: usize,
    text_left: usize,
    hidden: usize,
}

/// The changes as a unified diff, as `git diff` would show them.
pub(crate) fn diff(changes: &[Change], shown: &dyn Fn(&Path) -> String) -> String {
    let mut drawing = Drawing::new(shown);
    for change in changes {
        drawing.change(change);
    }
    drawing.finish()
}

impl<'a> Drawing<'a> {
    pub(crate) fn new(shown: &'a dyn Fn(&Path) -> String) -> Self {
        Self { shown, text: String::new(), files_left: FILES_MAX, text_left: TEXT_MAX, hidden: 0 }
    }

    pub(crate) fn finish(mut self) -> String {
        if self.hidden > 0 {
            self.text.push_str(&format!("# and {} more, not shown here\n", files_of(self.hidden)));
        }
        self.text
    }

    /// A line about something that has no content, as long as there is room.
    fn note(&mut self, line: &str) {
        if self.has_room() {
            self.text_left = self.text_left.saturating_sub(line.len());
            self.line(line);
        }
    }

    /// Whether one more thing can be shown; if not, it counts as hidden.
    fn has_room(&mut self) -> bool {
        let room = self.files_left > 0 && self.text_left > 0;
        if room {
            self.files_left -= 1;
        } else {
            self.hidden += 1;
        }
        room
    }

    /// A line of its own.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Write { path, content, before, mode } => self.write(path, content, before, *mode),
            Change::Move { from, to, .. } => {
                self.line(&format!("rename {} -> {}", (self.shown)(from), (self.shown)(to)));
            }
            Change::Remove { path, before } => {
                let new = Side { state: &State::Absent, at: None };
                self.thing(path, Side { state: before, at: Some(path) }, new);
            }
            Change::Place { path, staged, before, after } => {
                self.thing(path, Side { state: before, at: Some(path) }, Side { state: after, at: Some(staged) });
            }
            Change::Mode { path, before, mode } => {
                self.thing(
                    path,
                    Side { state: before, at: None },
                    Side { state: &State::Dir { mode: *mode }, at: None },
                );
            }
        }
    }

    fn write(&mut self, path: &Path, content: &[u8], before: &State, mode: Option<u32>) {
        let old = match before {
            State::Absent => Vec::new(),
            _ => files::load(path, "", files::LOAD_MAX).map(|(content, _)| content).unwrap_or_default(),
        };
        let name = (self.shown)(path);
        self.text.push_str(&text_diff(&old, content, &name, *before == State::Absent, false));
        if let Some(mode) = mode {
            self.mode(&name, before, &State::File { digest: Digest::ZERO, mode });
        }
    }

    /// Whatever stands at a path, from before to after.
    pub(crate) fn thing(&mut self, path: &Path, old: Side<'_>, new: Side<'_>) {
        let name = (self.shown)(path);
        match (old.state, new.state) {
            (State::File { .. }, State::File { .. }) => {
                if self.content(&name, Some(old), Some(new)) {
                    self.mode(&name, old.state, new.state);
                }
            }
            (State::Link { target: old }, State::Link { target: new }) => {
                self.note(&format!("symlink {name}: {} -> {}", display(old), display(new)));
            }
            (State::Dir { .. }, State::Dir { .. }) => {
                if self.has_room() {
                    self.mode(&format!("{name}/"), old.state, new.state);
                }
            }
            _ => {
                self.gone(&name, old);
                self.come(path, &name, new);
            }
        }
    }

    fn gone(&mut self, name: &str, old: Side<'_>) {
        match old.state {
            State::File { .. } => _ = self.content(name, Some(old), None),
            State::Link { target } => self.note(&format!("symlink {name} -> {} (deleted)", display(target))),
            State::Tree { .. } => {
                let count = old.at.map_or(0, |at| inside(at).len());
                self.note(&format!("directory {name}/ ({}) (deleted)", files_of(count)));
            }
            State::Absent | State::Dir { .. } => {}
        }
    }

    fn come(&mut self, path: &Path, name: &str, new: Side<'_>) {
        match new.state {
            State::File { mode, .. } => {
                if self.content(name, None, Some(new)) && mode & 0o111 != 0 {
                    self.line(&format!("mode of {name}: {mode:o}"));
                }
            }
            State::Link { target } => self.note(&format!("symlink {name} -> {} (created)", display(target))),
            State::Tree { .. } => self.tree(path, name, new.at),
            State::Absent | State::Dir { .. } => {}
        }
    }

    /// A directory that appears, file by file as far as there is room.
    fn tree(&mut self, path: &Path, name: &str, at: Option<&Path>) {
        let found = at.map(inside).unwrap_or_default();
        self.note(&format!("directory {name}/ ({}) (created)", files_of(found.len())));
        for inner in found {
            if self.files_left == 0 || self.text_left == 0 {
                self.hidden += 1;
                continue;
            }
            let staged = at.map(|at| at.join(&inner));
            let state = staged.as_deref().map_or(State::Absent, glance);
            let name = (self.shown)(&path.join(&inner));
            self.come(path, &name, Side { state: &state, at: staged.as_deref() });
        }
    }

    /// The difference between two contents, where none is a file that is not there. False if there is no
    /// room for it.
    fn content(&mut self, name: &str, old: Option<Side<'_>>, new: Option<Side<'_>>) -> bool {
        if !self.has_room() {
            return false;
        }
        let same = old.is_some_and(|old| new.is_some_and(|new| old.state == new.state));
        let text = if same { format!("touched {name}\n") } else { contents_diff(name, old, new) };
        let room = self.text_left;
        self.text_left = room.saturating_sub(text.len());
        if text.len() <= room {
            self.text.push_str(&text);
            return true;
        }
        let cut = text[..text.floor_char_boundary(room)].rfind('\n').map_or(0, |end| end + 1);
        self.text.push_str(&text[..cut]);
        self.line(&format!("# the rest of {name} is not shown here"));
        true
    }

    fn mode(&mut self, name: &str, old: &State, new: &State) {
        let bits = |state: &State| match state {
            State::File { mode, .. } | State::Dir { mode } => Some(*mode),
            _ => None,
        };
        if let (Some(old), Some(new)) = (bits(old), bits(new))
            && old != new
        {
            self.line(&format!("mode of {name}: {old:o} -> {new:o}"));
        }
    }
}

fn files_of(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

fn display(path: &Path) -> String {
    crate::workspace::display(path.as_os_str())
}

/// Everything in a directory that is not a directory.
fn inside(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let _ = tree::each(path, &mut |entry| {
        if at::kind(entry.stat) != FileType::Directory {
            found.push(entry.inner.to_owned());
        }
        Ok(())
    });
    found
}

/// What stands at a path, without reading a file's content: it may be large.
fn glance(path: &Path) -> State {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_symlink() => State::Link { target: path.read_link().unwrap_or_default() },
        Ok(meta) if meta.is_file() => State::File { digest: Digest::ZERO, mode: meta.mode() & 0o7777 },
        _ => State::Absent,
    }
}

fn contents_diff(name: &str, old: Option<Side<'_>>, new: Option<Side<'_>>) -> String {
    let (created, removed) = (old.is_none(), new.is_none());
    let read = |side: Option<Side<'_>>| side.and_then(|side| side.at).map_or(Ok(Vec::new()), read);
    match (read(old), read(new)) {
        (Ok(old), Ok(new)) => text_diff(&old, &new, name, created, removed),
        (old, new) => {
            let size = |side: &Result<Vec<u8>, u64>| side.as_ref().map_or_else(|size| *size, |text| text.len() as u64);
            let (from, to) = header(name, created, removed);
            format!("{from} and {to} differ ({} -> {} bytes; too large to compare)\n", size(&old), size(&new))
        }
    }
}

/// A file's content, or its size where it is too large to compare.
fn read(path: &Path) -> Result<Vec<u8>, u64> {
    let Ok(file) = files::open(path) else { return Ok(Vec::new()) };
    let size = file.metadata().map_or(0, |meta| meta.len());
    let mut content = Vec::new();
    let read = file.take(DIFF_MAX as u64 + 1).read_to_end(&mut content);
    if size > DIFF_MAX as u64 || read.is_ok_and(|read| read > DIFF_MAX) { Err(size) } else { Ok(content) }
}

fn header(name: &str, created: bool, removed: bool) -> (String, String) {
    (
        if created { "/dev/null".to_owned() } else { format!("a/{name}") },
        if removed { "/dev/null".to_owned() } else { format!("b/{name}") },
    )
}

/// A unified diff of two contents.
fn text_diff(old: &[u8], new: &[u8], name: &str, created: bool, removed: bool) -> String {
    let (from, to) = header(name, created, removed);
    let text = |content: &'_ [u8]| !content.contains(&0);
    match (std::str::from_utf8(old), std::str::from_utf8(new)) {
        _ if !text(old) || !text(new) => {
            format!("binary files {from} and {to} differ ({} -> {} bytes)\n", old.len(), new.len())
        }
        (Ok(old), Ok(new)) if old.len().max(new.len()) > DIFF_MAX => {
            format!(
                "{from} and {to} differ ({} -> {} bytes; too large to compare line by line)\n",
                old.len(),
                new.len()
            )
        }
        (Ok(""), Ok("")) if created != removed => format!("--- {from}\n+++ {to}\n"),
        (Ok(old), Ok(new)) => {
            let diff = similar::TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, new);
            diff.unified_diff().context_radius(3).header(&from, &to).to_string()
        }
        _ => format!("binary files {from} and {to} differ ({} -> {} bytes)\n", old.len(), new.len()),
    }
}
