//! A directory of its own for a child: a copy of the project as it was last committed.
//!
//! It is a clone that reads the project's objects and has everything else to itself, so that nothing the child does there,
//! commits included, touches the project. What was in it at the beginning is noted among haft's own files, where no child can write.
//! What it changed is found by comparing the two; no program runs there for that, because the child may have set one up.

mod places;
mod source;

use super::git::Git;
use crate::files;
use crate::halt::Halt;
use crate::workspace::Workspace;
use haft_core::CallError;
use haft_core::change::{Change, State};
use haft_core::place::Access;
pub(crate) use places::{ids, is_kept, place, remove};
use places::{missing, note_file, plain_id};
use serde::{Deserialize, Serialize};
use source::Source;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How many files a project may have to be copied.
const FILES_MAX: usize = 200_000;
/// How large a file may be that is carried over.
const FILE_MAX: u64 = 64 << 20;
/// How many worktrees there may be.
const TREES_MAX: usize = 64;

/// A child's directory. One that was made and never handed over goes with this.
#[derive(Debug)]
pub(crate) struct Tree {
    dir: PathBuf,
    /// The note's file, among haft's own.
    file: PathBuf,
    note: Note,
    /// Whether somebody has it.
    handed_over: bool,
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.handed_over {
            let _ = self.discard();
        }
    }
}

/// What is known of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Note {
    /// The project.
    root: PathBuf,
    /// The commit it began with.
    base: String,
    /// The branch it is on.
    branch: String,
    /// Where the project is within its repository.
    prefix: PathBuf,
    /// Where the project's objects are, which the copy reads.
    #[serde(default)]
    objects: PathBuf,
    /// What was in it at the beginning.
    files: BTreeMap<PathBuf, Seen>,
    /// What was in it, and is never carried over: how each stood.
    #[serde(default)]
    beyond: BTreeMap<PathBuf, Beyond>,
}

/// A file as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    state: State,
}

/// Something that is not carried over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Beyond {
    why: String,
    /// By what it would be seen to have changed.
    stamp: (u64, i64, i64),
}

/// What is in a directory.
#[derive(Debug, Default)]
struct Looked {
    files: BTreeMap<PathBuf, Seen>,
    beyond: BTreeMap<PathBuf, Beyond>,
}

impl Tree {
    /// Makes one for a project. Returns it, and what is worth knowing. Until it is handed over it goes when it is dropped.
    pub(crate) fn make(
        workspace: &Workspace,
        data_dir: &Path,
        id: &str,
        branch: &str,
        halt: &Halt,
    ) -> Result<(Self, Vec<String>), CallError> {
        let root = workspace.root();
        let source = Source::find(workspace, halt)?;
        let dir = place(data_dir, id);
        if std::fs::read_dir(dir.parent().unwrap_or(&dir)).is_ok_and(|there| there.count() >= TREES_MAX) {
            return Err(CallError::failed(format!("there are {TREES_MAX} worktrees already"))
                .hint("bring over what is wanted with agent.merge, and discard the others with agent.control"));
        }
        let (prefix, objects) = (source.prefix.clone(), source.objects.clone());
        let note = Note {
            root: root.to_owned(),
            base: source.base.clone(),
            branch: branch.to_owned(),
            prefix,
            objects,
            files: BTreeMap::new(),
            beyond: BTreeMap::new(),
        };
        if let Some(parent) = dir.parent() {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
            made.map_err(|error| failed(parent, &error))?;
        }
        // Only what was not there before is ours to take away again.
        std::fs::DirBuilder::new().mode(0o700).create(&dir).map_err(|error| failed(&dir, &error))?;
        // From here on it goes again unless it is handed over.
        let mut tree = Self { dir, file: note_file(data_dir, id), note, handed_over: false };
        let tracked = source.git.bytes(&["ls-tree", "-r", "-z", "--name-only", &source.base])?;
        let tracked = tracked.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let tracked: Vec<PathBuf> = tracked.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
        source.copy(workspace.project(), &tree.dir, branch)?;
        if !is_real_dir(&tree.dir.join("tree"), &tree.note.prefix) {
            return Err(CallError::invalid(format!(
                "{} is no directory in what was last committed",
                tree.note.prefix.display()
            ))
            .hint("commit it, or use the mode sync"));
        }
        let looked = look(&tree.root(), tracked.iter(), halt)?;
        (tree.note.files, tree.note.beyond) = (looked.files, looked.beyond);
        let text = serde_json::to_vec(&tree.note).map_err(|error| CallError::internal(error.to_string()))?;
        files::make_parents(&tree.file).map_err(|error| failed(&tree.file, &error))?;
        files::replace(&tree.file, &text, Some(0o600)).map_err(|error| failed(&tree.file, &error))?;
        let mut warnings = Vec::new();
        let differs = |(path, seen): &(&PathBuf, &Seen)| state(&root.join(path)).is_ok_and(|now| now != seen.state);
        let changed = tree.note.files.iter().filter(differs).count();
        if changed > 0 {
            warnings.push(format!(
                "{changed} files of the project are not as they were last committed; the worktree has those"
            ));
        }
        Ok((tree, warnings))
    }

    /// The same for somebody who keeps it: from now on it stays until it is discarded.
    #[must_use]
    pub(crate) fn handed_over(mut self) -> Self {
        self.handed_over = true;
        self
    }

    /// One that was made earlier for this project, by the id of its agent.
    pub(crate) fn open(workspace: &Workspace, data_dir: &Path, id: &str) -> Result<Self, CallError> {
        let tree = Self::load(data_dir, id)?;
        let Note { root, .. } = &tree.note;
        if root != workspace.root() {
            let shown = haft_core::preview::inert(id);
            return Err(CallError::conflict(format!("the agent {shown} works on {}", root.display())));
        }
        Ok(tree)
    }

    /// One that was made earlier for any project.
    pub(crate) fn load(data_dir: &Path, id: &str) -> Result<Self, CallError> {
        let id = plain_id(id).ok_or_else(|| missing(id))?;
        let file = note_file(data_dir, id);
        let (text, _) = files::load(&file, "the note", 1 << 30).map_err(|_| missing(id))?;
        let note: Note = serde_json::from_slice(&text).map_err(|_| missing(id))?;
        Ok(Self { dir: place(data_dir, id), file, note, handed_over: true })
    }

    /// The workspace in it: reading what the project may read, writing nothing but itself.
    pub(crate) fn workspace(&self, parent: &Workspace) -> Result<Workspace, CallError> {
        let root = self.root();
        let fresh = Workspace::new(&root).map_err(|error| failed(&root, &error))?;
        let mut workspace = parent.own_places().iter().fold(fresh, |workspace, own| workspace.own(own));
        for extra in parent.readable_roots().iter().filter(|extra| !extra.starts_with(parent.root())) {
            workspace = workspace.readable(extra);
        }
        // Its clone has no objects of its own yet.
        let workspace = source::reading(workspace, &self.note.objects)?;
        Ok(workspace.copy_of(parent.project()))
    }

    /// Where the child works.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.join("tree").join(&self.note.prefix)
    }

    /// Where the project is that it is a copy of.
    pub(crate) fn project_root(&self) -> &Path {
        &self.note.root
    }

    /// The project that it is a copy of.
    pub(crate) fn project(&self) -> Result<Workspace, CallError> {
        Workspace::new(&self.note.root).map_err(|error| failed(&self.note.root, &error))
    }

    /// When it was made, in milliseconds of the Unix epoch.
    pub(crate) fn made_ms(&self) -> Option<i64> {
        let made = std::fs::metadata(&self.file).and_then(|meta| meta.modified()).ok()?;
        let since = made.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    }

    /// The branch it is on.
    pub(crate) fn branch(&self) -> &str {
        &self.note.branch
    }

    /// Throws it away.
    pub(crate) fn discard(&self) -> Result<(), CallError> {
        places::take_away(&self.dir, &self.file).map(drop)
    }

    /// What was changed in it: each path, and how it stands there now; and what is not carried over, with why. Only what is not
    /// there any more, or is something else by now, is gone: what cannot be looked at may be there.
    fn changed(&self, halt: &Halt) -> Result<(BTreeMap<PathBuf, State>, Vec<String>), CallError> {
        // Where there is no copy, nothing was taken out of it.
        if !is_real_dir(&self.dir.join("tree"), &self.note.prefix) {
            return Err(CallError::conflict(format!("the worktree {} is not there any more", self.root().display()))
                .hint("`haft agents worktrees remove` forgets it"));
        }
        // What was there is looked for by its name, whatever the child's ignore files say by now.
        let known = self.note.files.keys().chain(self.note.beyond.keys());
        let Looked { files: mut now, beyond } = look(&self.root(), known, halt)?;
        let mut left: BTreeMap<&PathBuf, &str> = BTreeMap::new();
        for (path, found) in &beyond {
            if self.note.beyond.get(path).is_none_or(|then| then.stamp != found.stamp) {
                left.insert(path, &found.why);
            }
        }
        for (path, then) in self.note.beyond.iter().filter(|(path, _)| !beyond.contains_key(*path)) {
            now.remove(path);
            left.insert(path, &then.why);
        }
        let left = left.iter().map(|(path, why)| format!("{}: {why}", crate::workspace::display(path.as_os_str())));
        let left = left.collect();
        // Wherever its path may lead by now.
        let gone = self.note.files.keys().filter(|path| !now.contains_key(*path) && !beyond.contains_key(*path));
        let gone: Vec<PathBuf> = gone.cloned().collect();
        let then = |path: &Path| self.note.files.get(path).map(|then| &then.state);
        let changed = now.into_iter().filter(|(path, seen)| then(path) != Some(&seen.state));
        let changed = changed.map(|(path, seen)| (path, seen.state));
        Ok((changed.chain(gone.into_iter().map(|path| (path, State::Absent))).collect(), left))
    }

    /// The changes that make the project what its copy became. Where both changed, the two are joined if that can be done line
    /// by line; otherwise nothing is changed. Returns also what is not carried over.
    pub(crate) fn changes(&self, workspace: &Workspace, halt: &Halt) -> Result<Merge, CallError> {
        let (changed, left) = self.changed(halt)?;
        let mut merge = Merge { changes: Vec::new(), left };
        let mut conflicts = Vec::new();
        for (path, wanted) in changed {
            let (theirs, ours) = (self.root().join(&path), self.note.root.join(&path));
            let shown = crate::workspace::display(path.as_os_str());
            if let Some(why) = unfit(workspace, &ours, &wanted) {
                merge.left.push(format!("{shown}: {why}"));
                continue;
            }
            let now = state(&ours)?;
            let then = self.note.files.get(&path).map_or(State::Absent, |seen| seen.state.clone());
            if now == wanted {
                continue;
            }
            let content = if wanted == State::Absent { None } else { Some(self.read(&theirs)?) };
            match content {
                None if now == then => merge.changes.push(Change::Remove { path: ours, before: now }),
                Some(content) if now == then => {
                    let mode = mode_of(&wanted);
                    merge.changes.push(Change::Write { path: ours, content, before: now, mode });
                }
                Some(content) => match self.joined(workspace, &path, (&content, &ours), (&now, &then))? {
                    Some(content) => {
                        let mode = mode_of(&wanted);
                        merge.changes.push(Change::Write { path: ours, content, before: now, mode });
                    }
                    None => conflicts.push(shown),
                },
                None => conflicts.push(shown),
            }
        }
        if conflicts.is_empty() {
            return Ok(merge);
        }
        let hint = format!(
            "nothing was changed. The agent's files are in {}: bring over by hand what is wanted, or have it done again",
            self.root().display()
        );
        Err(CallError::conflict(format!("the project and the agent both changed {}", conflicts.join(", "))).hint(hint))
    }

    /// A file of the child's, which is where it seems to be: a directory on the way may be a link by now.
    fn read(&self, theirs: &Path) -> Result<Vec<u8>, CallError> {
        let root = self.root();
        let real = |path: &Path| path.canonicalize().map_err(|error| failed(path, &error));
        let inside = theirs
            .parent()
            .map(real)
            .transpose()?
            .is_some_and(|parent| real(&root).is_ok_and(|root| parent.starts_with(root)));
        if !inside {
            return Err(CallError::conflict(format!("{} leads out of the worktree", theirs.display())));
        }
        files::load(theirs, &theirs.display().to_string(), FILE_MAX).map(|(content, _)| content)
    }

    /// Both sides' changes to a text, line by line.
    fn joined(
        &self,
        workspace: &Workspace,
        path: &Path,
        (theirs, ours): (&[u8], &Path),
        (now, then): (&State, &State),
    ) -> Result<Option<Vec<u8>>, CallError> {
        let (State::File { .. }, State::File { .. }) = (now, then) else { return Ok(None) };
        let name = format!("{}:{}", self.note.base, self.note.prefix.join(path).display());
        let project = workspace.project();
        if source::Repository::of(workspace, &Halt::new())?.is_none() {
            return Ok(None);
        }
        let source = Git::within(project, &self.note.root, &Halt::new())?;
        let Ok(base) = source.bytes(&["cat-file", "blob", &name]) else { return Ok(None) };
        let (ours, _) = files::load(ours, &ours.display().to_string(), FILE_MAX)?;
        let scratch = scratch(&self.dir)?;
        let write = |name: &str, content: &[u8]| {
            let path = scratch.join(name);
            std::fs::write(path, content).map_err(|error| failed(&scratch, &error))
        };
        write("ours", &ours).and_then(|()| write("base", &base)).and_then(|()| write("theirs", theirs))?;
        // Not in the child's directory: its configuration is not read.
        let done =
            Git::beside(project, &scratch).and_then(|git| git.output(&["merge-file", "-p", "ours", "base", "theirs"]));
        let _ = std::fs::remove_dir_all(&scratch);
        let done = done?;
        Ok(done.status.success().then_some(done.stdout))
    }
}

/// What comes of a child's work.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    /// What is to be changed in the project.
    pub(crate) changes: Vec<Change>,
    /// What is not carried over, and why.
    pub(crate) left: Vec<String>,
}

/// Why a path is not carried over. It is whole: a name that means something else when it is spoken means itself here.
fn unfit(workspace: &Workspace, ours: &Path, wanted: &State) -> Option<&'static str> {
    let Some(text) = ours.to_str() else { return Some("its name is no text") };
    if matches!(wanted, State::Link { .. }) {
        return Some("links are not carried over");
    }
    match workspace.place("path", Access::Write, text) {
        Ok(place) if place.inside && place.sensitive.is_none() => None,
        Ok(place) if place.inside => Some("it is a sensitive place"),
        _ => Some("in the project it leads elsewhere"),
    }
}

/// What stands at a path, links as links.
fn state(path: &Path) -> Result<State, CallError> {
    match std::fs::read_link(path) {
        Ok(target) => Ok(State::Link { target }),
        Err(_) => files::state(path).map_err(|error| failed(path, &error)),
    }
}

fn scratch(dir: &Path) -> Result<PathBuf, CallError> {
    let scratch = dir.join(format!("join-{}", crate::new_mark()));
    std::fs::DirBuilder::new().mode(0o700).create(&scratch).map_err(|error| failed(&scratch, &error))?;
    Ok(scratch)
}

fn mode_of(state: &State) -> Option<u32> {
    match state {
        State::File { mode, .. } => Some(*mode & 0o777),
        _ => None,
    }
}

/// What is in a directory: these, and all that its ignore files do not leave out; without the repository itself.
fn look<'p>(root: &Path, known: impl Iterator<Item = &'p PathBuf>, halt: &Halt) -> Result<Looked, CallError> {
    let walk = ignore::WalkBuilder::new(root)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .git_exclude(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let mut looked = Looked::default();
    let (mut new, mut unseen) = (Vec::new(), Vec::new());
    for entry in walk {
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| !kind.is_dir()) => {
                new.extend(entry.path().strip_prefix(root).map(Path::to_owned));
            }
            Ok(_) => {}
            Err(error) => unseen.push(error.to_string()),
        }
    }
    for path in known.cloned().chain(new) {
        halt.check()?;
        if looked.files.len() >= FILES_MAX {
            return Err(CallError::failed(format!("there are more than {FILES_MAX} files in {}", root.display())));
        }
        match seen(root, &path) {
            Ok(Some(state)) => drop(looked.files.insert(path, Seen { state })),
            Ok(None) => {}
            Err(beyond) => drop(looked.beyond.insert(path, beyond)),
        }
    }
    if !unseen.is_empty() {
        // What was known there is named by itself; what is new there nobody knows.
        let beyond = Beyond { why: unseen.join("; "), stamp: (0, 0, 0) };
        looked.beyond.insert(PathBuf::from("."), beyond);
    }
    Ok(looked)
}

/// How a file or a link stands below a root; none where none is. What is there and cannot be carried over is an error.
fn seen(root: &Path, path: &Path) -> Result<Option<State>, Beyond> {
    let beyond = |why: String, meta: Option<&std::fs::Metadata>| Beyond {
        why,
        stamp: meta.map(|meta| (meta.len(), meta.mtime(), meta.mtime_nsec())).unwrap_or_default(),
    };
    let absent = [std::io::ErrorKind::NotFound, std::io::ErrorKind::NotADirectory];
    let unread = |error: &std::io::Error| beyond(format!("it cannot be looked at: {error}"), None);
    // From the outside in: what is behind a link, or behind a file, is not below.
    let above: Vec<&Path> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    for above in above.into_iter().rev() {
        match std::fs::symlink_metadata(root.join(above)) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Ok(None),
            Err(error) if absent.contains(&error.kind()) => return Ok(None),
            Err(error) => return Err(unread(&error)),
        }
    }
    let whole = root.join(path);
    let meta = match std::fs::symlink_metadata(&whole) {
        Ok(meta) => meta,
        Err(error) if absent.contains(&error.kind()) => return Ok(None),
        Err(error) => return Err(unread(&error)),
    };
    if meta.is_dir() {
        // What is in it is looked at by itself.
        Ok(None)
    } else if meta.is_file() && meta.len() > FILE_MAX {
        Err(beyond(format!("it is larger than {} MiB", FILE_MAX >> 20), Some(&meta)))
    } else if meta.is_file() || meta.is_symlink() {
        state(&whole).map(Some).map_err(|error| beyond(error.message, Some(&meta)))
    } else {
        Err(beyond("it is neither a file nor a link".to_owned(), Some(&meta)))
    }
}

/// Whether a path leads to a directory without a link on the way.
fn is_real_dir(root: &Path, path: &Path) -> bool {
    let is_dir = |place: &Path| std::fs::symlink_metadata(root.join(place)).is_ok_and(|meta| meta.is_dir());
    let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    plain && path.ancestors().all(is_dir)
}

fn failed(path: &Path, error: &std::io::Error) -> CallError {
    CallError::failed(format!("{}: {error}", path.display()))
}

/// A name for a branch: the one that is wanted, if it can be one.
pub(crate) fn branch(wanted: Option<&str>, id: &str) -> Result<String, CallError> {
    let Some(name) = wanted.filter(|name| !name.trim().is_empty()) else { return Ok(format!("haft/{id}")) };
    let part = |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && part.strip_suffix(".lock").is_none();
    let fine = name.len() <= 100
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_/.".contains(&byte))
        && name.split('/').all(part)
        && !name.contains("..")
        && !name.ends_with('.')
        && name != "HEAD";
    if fine {
        return Ok(name.to_owned());
    }
    let shown = haft_core::preview::cut(&haft_core::preview::inert(name), 80);
    Err(CallError::invalid(format!("`{shown}` cannot be the name of a branch"))
        .hint("use letters, digits, `-`, `_` and `.`, with `/` between parts, or leave it out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_nobody_took_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (root, data) = (dir.path().join("project"), dir.path().join("data"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("a.txt"), "a").unwrap();
        let git = Git::beside(Path::new("/nowhere"), &root).unwrap();
        for args in [&["init", "--quiet"][..], &["add", "-A"]] {
            git.bytes(args).unwrap();
        }
        let who = ["-c", "user.name=haft", "-c", "user.email=haft@example.com"];
        git.bytes(&[&who[..], &["commit", "--quiet", "-m", "first"]].concat()).unwrap();
        let workspace = Workspace::new(&root).unwrap();
        let make = |id: &str| Tree::make(&workspace, &data, id, "work", &Halt::new()).unwrap().0;
        let there = |id: &str| (place(&data, id).exists(), note_file(&data, id).exists());
        let tree = make("one");
        assert_eq!(there("one"), (true, true));
        assert_eq!(std::fs::read_to_string(tree.root().join("a.txt")).unwrap(), "a");
        drop(tree);
        assert_eq!(there("one"), (false, false));
        drop(make("two").handed_over());
        assert_eq!(there("two"), (true, true));
        let halt = Halt::new();
        halt.cancel();
        assert!(Tree::make(&workspace, &data, "three", "work", &halt).is_err());
        assert_eq!(there("three"), (false, false), "one that was halted, too");
    }
}
