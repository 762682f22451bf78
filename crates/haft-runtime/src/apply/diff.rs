//! Changes as text: the names of all changed paths in the order in which they have to be seen, then unified diffs of contents,
//! and a line for everything else. However much was changed, every path outside ignored directories is named; the diffs are
//! bounded, and say what is left out.

use super::changed_path::{ChangedPath, Side, SideContent, changed_paths};
use super::commits::{CommitReader, GitDirs, GitPath};
use super::metadata::FileMetadata;
use super::ranking::{FileView, PathRank, Ranking};
use crate::files;
use crate::ranked_changes::{
    ChangeRank, ChangeView, FoldReason, FoldedFile, FoldedTree, PathChange, RankedChanges, RankedPath,
};
use crate::text_encoding::TextEncoding;
use haft_core::change::{Change, State};
use haft_core::record::Digest;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long two texts are compared for the smallest diff; after that, a larger one will do.
const DIFF_TIME: Duration = Duration::from_millis(200);
/// Larger texts are not compared.
const DIFF_MAX: usize = 4 << 20;
/// How many diffs of files that programs changed are shown. Their names are shown however many there are.
const FILES_MAX: usize = 200;
/// How much is shown of these diffs together.
const TEXT_MAX: usize = 1 << 20;

/// Whose changes are shown, and which of them.
#[derive(Clone, Copy)]
pub(crate) struct Viewer<'v> {
    /// The project, if there is one.
    pub(crate) project: Option<&'v Path>,
    /// How a path is shown.
    pub(crate) shown: &'v dyn Fn(&Path) -> String,
    /// Only what is at or below this path; a folded directory that it names is opened.
    pub(crate) under: Option<&'v Path>,
}

/// Changes that are about to be made: their names in order, and their diffs. `notes` go between them.
pub(crate) fn view(changes: &[Change], viewer: Viewer<'_>, notes: &[String]) -> ChangeView {
    view_paths(&changed_paths(changes), viewer, notes)
}

/// The names of the paths that changes are about, in the order of a view. Directories are not taken apart.
pub(crate) fn ordered_names(changes: &[Change], viewer: Viewer<'_>) -> Vec<String> {
    let is_dir =
        |change: &Change| change.before().is_tree() || matches!(change, Change::Place { after, .. } if after.is_tree());
    let paths = changes.iter().map(|change| (change.path().clone(), is_dir(change))).collect();
    ordered_lists(vec![paths], viewer).pop().unwrap_or_default()
}

/// Lists of paths, and of each path whether it is a directory: their names, each list in the order of a view.
pub(crate) fn ordered_lists(lists: Vec<Vec<(PathBuf, bool)>>, viewer: Viewer<'_>) -> Vec<Vec<String>> {
    let before = FileView::default();
    let locate = |path: &Path| before.locate(path);
    let mut ranking = Ranking::new(&before, viewer.project, viewer.shown, &locate);
    let mut rank = |path: &Path, is_dir: bool| {
        // What git keeps for itself comes after what it keeps for others.
        if path.iter().any(|name| name == ".git") { ChangeRank::Generated } else { ranking.rank(path, is_dir).rank }
    };
    let mut names = |mut list: Vec<(PathBuf, bool)>| {
        if list.len() > 1 {
            list.sort_by_cached_key(|(path, is_dir)| rank(path, *is_dir));
        }
        list.iter().map(|(path, _)| (viewer.shown)(path)).collect()
    };
    lists.into_iter().map(&mut names).collect()
}

/// Changed paths: their names in order, and their diffs.
pub(crate) fn view_paths(paths: &[ChangedPath<'_>], viewer: Viewer<'_>, notes: &[String]) -> ChangeView {
    let (before, after) = (FileView::before(paths), FileView::after(paths));
    let mut ordered = Ordered::default();
    if let ([one], None) = (paths, viewer.under)
        && one.is_named
    {
        ordered.shown.push((ChangeRank::Source, one));
    } else {
        let locate = |path: &Path| before.locate(path);
        let mut ranking = Ranking::new(&before, viewer.project, viewer.shown, &locate);
        let mut repositories = GitDirs::new(paths, &before, &after);
        for path in paths {
            ordered.take(path, (&mut ranking, &mut repositories), viewer.under);
        }
        ordered.shown.sort_by_key(|(rank, _)| *rank);
    }
    let (commits, references) = CommitReader::new(paths, &before, &after).read(&ordered.git);
    let changed = ordered.shown.iter().filter(|(_, path)| path.is_changed);
    let ranked = RankedChanges {
        paths: changed.map(|(rank, path)| ranked_path(*rank, path, viewer.shown)).collect(),
        commits,
        references,
        folded: ordered.folded.iter().filter_map(|(dir, files)| folded(dir, files, viewer.shown)).collect(),
    };
    let mut drawing = Drawing::new(viewer.shown);
    if !ranked.is_one_path() {
        ranked.listing().iter().for_each(|line| drawing.line(line));
    }
    for note in notes {
        drawing.line(&format!("# {note}"));
    }
    ordered.shown.iter().for_each(|(_, path)| drawing.path(path));
    ChangeView { ranked, diff: drawing.finish() }
}

/// Changed paths as they are shown.
#[derive(Default)]
struct Ordered<'p, 'c> {
    shown: Vec<(ChangeRank, &'p ChangedPath<'c>)>,
    folded: BTreeMap<FoldedDir, Vec<&'p ChangedPath<'c>>>,
    git: Vec<GitPath>,
}

/// A directory that is folded, and why. Ignored ones come first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum FoldedDir {
    Ignored(PathBuf),
    GitData(PathBuf),
}

impl<'p, 'c> Ordered<'p, 'c> {
    fn take(
        &mut self,
        path: &'p ChangedPath<'c>,
        (ranking, repositories): (&mut Ranking<'_>, &mut GitDirs<'_>),
        under: Option<&Path>,
    ) {
        let is_under =
            |under: &Path| path.path.starts_with(under) || path.to.as_ref().is_some_and(|to| to.starts_with(under));
        if under.is_some_and(|under| !is_under(under)) {
            return;
        }
        let is_opened = |dir: &Path| under.is_some_and(|under| under.starts_with(dir));
        let git = repositories.file(path).filter(|git| !path.is_named && !is_opened(&git.top));
        if let Some(git) = git {
            self.folded.entry(FoldedDir::GitData(git.top.clone())).or_default().push(path);
            self.git.push(git);
            return;
        }
        // Configuration and hooks of a repository are no files of it, and what only has the name of git's data may be anything.
        if path.path.iter().any(|name| name == ".git") {
            return self.shown.push((ChangeRank::Source, path));
        }
        let is_dir = matches!(path.new.state, State::Dir { .. } | State::Tree { .. });
        let PathRank { rank, ignored_dir } = ranking.rank(&path.path, is_dir);
        match ignored_dir.filter(|dir| !path.is_named && !is_opened(dir)) {
            Some(dir) => self.folded.entry(FoldedDir::Ignored(dir)).or_default().push(path),
            None => self.shown.push((rank, path)),
        }
    }
}

fn change_of(path: &ChangedPath<'_>) -> PathChange {
    match (path.to.is_some(), path.old.is_absent(), path.new.is_absent()) {
        (true, ..) => PathChange::Renamed,
        (_, true, false) => PathChange::Added,
        (_, false, true) => PathChange::Deleted,
        _ => PathChange::Modified,
    }
}

/// A path as it is shown; of a directory, with a slash.
fn name_of(path: &ChangedPath<'_>, shown: &dyn Fn(&Path) -> String) -> String {
    let is_dir = |side: &Side<'_>| matches!(side.state, State::Dir { .. } | State::Tree { .. });
    let name = shown(&path.path);
    if is_dir(&path.old) || is_dir(&path.new) { format!("{name}/") } else { name }
}

fn ranked_path(rank: ChangeRank, path: &ChangedPath<'_>, shown: &dyn Fn(&Path) -> String) -> RankedPath {
    let to = path.to.as_ref().map(|to| shown(to));
    RankedPath { path: name_of(path, shown), change: change_of(path), to, rank }
}

/// A folded directory, if anything in it differs from what it was.
fn folded(dir: &FoldedDir, files: &[&ChangedPath<'_>], shown: &dyn Fn(&Path) -> String) -> Option<FoldedTree> {
    let (dir, reason) = match dir {
        FoldedDir::Ignored(dir) => (dir, FoldReason::Ignored),
        FoldedDir::GitData(dir) => (dir, FoldReason::GitData),
    };
    let file = |path: &&ChangedPath<'_>| {
        let bytes = if path.new.is_absent() { path.old.bytes() } else { path.new.bytes() };
        FoldedFile { path: name_of(path, shown), change: change_of(path), bytes }
    };
    let contents: Vec<FoldedFile> = files.iter().filter(|path| path.is_changed).map(file).collect();
    let bytes = contents.iter().map(|file| file.bytes).sum();
    (!contents.is_empty()).then(|| FoldedTree { path: shown(dir), reason, files: contents.len(), bytes, contents })
}

/// Diffs as they are written down one after the other.
struct Drawing<'a> {
    shown: &'a dyn Fn(&Path) -> String,
    text: String,
    files_left: usize,
    text_left: usize,
    hidden: usize,
}

impl<'a> Drawing<'a> {
    fn new(shown: &'a dyn Fn(&Path) -> String) -> Self {
        Self { shown, text: String::new(), files_left: FILES_MAX, text_left: TEXT_MAX, hidden: 0 }
    }

    fn finish(mut self) -> String {
        if self.hidden > 0 {
            self.text.push_str(&format!("# the diffs of {} are not shown here\n", files_of(self.hidden)));
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
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Whatever happened to a path.
    fn path(&mut self, path: &ChangedPath<'_>) {
        path.remarks.iter().for_each(|remark| self.line(&format!("# {remark}")));
        let name = (self.shown)(&path.path);
        if let Some(to) = &path.to {
            return self.line(&format!("rename {name} -> {}", (self.shown)(to)));
        }
        if !path.is_changed {
            return;
        }
        let (old, new) = (&path.old, &path.new);
        match (&old.state, &new.state) {
            (State::File { .. }, State::File { .. }) => {
                let is_shown = self.files_left > 0 && self.text_left > 0;
                let attributes = if is_shown { attribute_lines(&name, old, new) } else { Vec::new() };
                let only_attributes = old.state == new.state && !attributes.is_empty();
                let is_content_shown =
                    if only_attributes { self.has_room() } else { self.content(&name, Some(old), Some(new)) };
                if is_content_shown {
                    self.mode(&name, &old.state, &new.state);
                    for line in &attributes {
                        self.text_left = self.text_left.saturating_sub(line.len());
                        self.line(line);
                    }
                }
            }
            (State::Link { target: old }, State::Link { target: new }) => {
                self.note(&format!("symlink {name}: {} -> {}", display(old), display(new)));
            }
            (State::Dir { .. }, State::Dir { .. }) => {
                if self.has_room() {
                    self.mode(&format!("{name}/"), &old.state, &new.state);
                }
            }
            _ => {
                self.gone(&name, old);
                self.come(&name, new);
            }
        }
    }

    fn gone(&mut self, name: &str, old: &Side<'_>) {
        match &old.state {
            State::File { .. } => _ = self.content(name, Some(old), None),
            State::Link { target } => self.note(&format!("symlink {name} -> {} (deleted)", display(target))),
            State::Tree { .. } | State::Dir { .. } => self.note(&format!("directory {name}/ (deleted)")),
            State::Absent => {}
        }
    }

    fn come(&mut self, name: &str, new: &Side<'_>) {
        match &new.state {
            State::File { mode, .. } => {
                if self.content(name, None, Some(new)) && mode & 0o111 != 0 {
                    self.line(&format!("mode of {name}: {mode:o}"));
                }
            }
            State::Link { target } => self.note(&format!("symlink {name} -> {} (created)", display(target))),
            State::Tree { .. } | State::Dir { .. } => self.note(&format!("directory {name}/ (created)")),
            State::Absent => {}
        }
    }

    /// The difference between two contents, where none is a file that is not there. False if there is no
    /// room for it.
    fn content(&mut self, name: &str, old: Option<&Side<'_>>, new: Option<&Side<'_>>) -> bool {
        // What a call itself writes is shown whole.
        if new.is_some_and(|new| matches!(new.content, SideContent::Bytes(_))) {
            self.text.push_str(&contents_diff(name, old, new));
            return true;
        }
        if !self.has_room() {
            return false;
        }
        let is_known = |side: &Side<'_>| !matches!(side.state, State::File { digest: Digest::ZERO, .. });
        let same = old.is_some_and(|old| new.is_some_and(|new| old.state == new.state && is_known(old)));
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

/// What differs in the extended attributes of a file, among them its access control list; nothing where one of them is not in a
/// file.
fn attribute_lines(name: &str, old: &Side<'_>, new: &Side<'_>) -> Vec<String> {
    let read = |side: &Side<'_>| FileMetadata::at(side.file()?).ok();
    match (read(old), read(new)) {
        (Some(old), Some(new)) => new.changed_attributes(&old, name),
        _ => Vec::new(),
    }
}

fn files_of(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

fn display(path: &Path) -> String {
    crate::workspace::display(path.as_os_str())
}

fn contents_diff(name: &str, old: Option<&Side<'_>>, new: Option<&Side<'_>>) -> String {
    let (created, removed) = (old.is_none(), new.is_none());
    let read = |side: Option<&Side<'_>>| match side.map(|side| &side.content) {
        Some(SideContent::At(path)) => read(path),
        Some(SideContent::Bytes(bytes)) => Ok(bytes.to_vec()),
        Some(SideContent::Nowhere) | None => Ok(Vec::new()),
    };
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

/// Two texts in one encoding other than UTF-8. None unless their texts say everything about their bytes: a diff hides nothing.
fn decoded<'c>(old: &'c [u8], new: &'c [u8]) -> Option<(TextEncoding, Cow<'c, str>, Cow<'c, str>)> {
    let encoding = TextEncoding::detect(if old.is_empty() { new } else { old })?;
    if encoding.is_utf8() || old.len().max(new.len()) > DIFF_MAX {
        return None;
    }
    let text = |content: &'c [u8]| {
        if content.is_empty() {
            return Some(Cow::Borrowed(""));
        }
        let text = encoding.decode_exactly(content)?;
        encoding.encode_file(&text).is_ok_and(|bytes| bytes == content).then_some(text)
    };
    Some((encoding, text(old)?, text(new)?))
}

fn header(name: &str, created: bool, removed: bool) -> (String, String) {
    (
        if created { "/dev/null".to_owned() } else { format!("a/{name}") },
        if removed { "/dev/null".to_owned() } else { format!("b/{name}") },
    )
}

/// A unified diff of two contents.
fn text_diff(old: &[u8], new: &[u8], name: &str, created: bool, removed: bool) -> String {
    if let Some((encoding, old, new)) = decoded(old, new) {
        let diff = text_diff(old.as_bytes(), new.as_bytes(), name, created, removed);
        return format!("encoding of {name}: {}\n{diff}", encoding.title());
    }
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
