//! A directory of its own for a child: a copy of the project as it was last committed.
//!
//! It is a clone that reads the project's objects and has everything else to itself, so that nothing the child does there,
//! commits included, touches the project. What was in it at the beginning is noted among haft's own files, where no child can write.
//! What it changed is found by comparing the two; no program runs there for that, because the child may have set one up.

use crate::confined::environment;
use crate::files;
use crate::halt::Halt;
use crate::workspace::Workspace;
use haft_core::change::{Change, State};
use haft_core::place::Access;
use haft_core::{CallError, ErrorKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many files a project may have to be copied.
const FILES_MAX: usize = 200_000;
/// How large a file may be that is carried over.
const FILE_MAX: u64 = 64 << 20;
/// How many worktrees there may be.
const TREES_MAX: usize = 64;

/// A child's directory.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    dir: PathBuf,
    /// The note's file, among haft's own.
    file: PathBuf,
    note: Note,
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
    /// What was in it at the beginning.
    files: BTreeMap<PathBuf, Seen>,
}

/// A file as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    state: State,
}

/// Where a child's directory is.
pub(crate) fn place(data_dir: &Path, id: &str) -> PathBuf {
    let mut dir = data_dir.as_os_str().to_owned();
    dir.push("-worktrees");
    PathBuf::from(dir).join(id)
}

/// Where what is known of one is kept: among haft's own files, where no child can write.
fn note_file(data_dir: &Path, id: &str) -> PathBuf {
    data_dir.join("worktrees").join(format!("{id}.json"))
}

/// An id that names nothing but one directory.
fn plain_id(id: &str) -> Option<&str> {
    let plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain.then_some(id)
}

fn missing(id: &str) -> CallError {
    let shown = haft_core::preview::inert(id);
    CallError::not_found(format!("there is no worktree of an agent `{shown}`")).hint("agent.control lists agents")
}

/// The ids of all that are kept, with whatever is left of them.
pub(crate) fn ids(data_dir: &Path) -> BTreeSet<String> {
    let named = |dir: PathBuf| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.path().file_stem().and_then(OsStr::to_str).map(str::to_owned))
    };
    let all = named(place(data_dir, "")).chain(named(data_dir.join("worktrees")));
    all.filter(|id| plain_id(id).is_some()).collect()
}

/// Throws away whatever is left of one, with or without a note. False if there was nothing.
pub(crate) fn remove(data_dir: &Path, id: &str) -> Result<bool, CallError> {
    let id = plain_id(id).ok_or_else(|| missing(id))?;
    let there = |result: std::io::Result<()>, path: &Path| match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        result => result.map(|()| true).map_err(|error| failed(path, &error)),
    };
    let (dir, file) = (place(data_dir, id), note_file(data_dir, id));
    // The note goes last: what is left after a failure is still known.
    let tree = there(std::fs::remove_dir_all(&dir), &dir)?;
    Ok(there(std::fs::remove_file(&file), &file)? || tree)
}

impl Tree {
    /// Makes one for a project. Returns it, and what is worth knowing.
    pub(crate) fn make(
        workspace: &Workspace,
        data_dir: &Path,
        id: &str,
        branch: &str,
        halt: &Halt,
    ) -> Result<(Self, Vec<String>), CallError> {
        let root = workspace.root();
        let no_repository = || {
            CallError::invalid(format!("{} is not in a git repository with a commit", root.display()))
                .hint("use the mode sync, or make a first commit")
        };
        let base = git((root, root), &["rev-parse", "--verify", "HEAD^{commit}"]).map_err(|_| no_repository())?;
        let top = PathBuf::from(git((root, root), &["rev-parse", "--show-toplevel"])?);
        let prefix = PathBuf::from(git((root, root), &["rev-parse", "--show-prefix"])?);
        let dir = place(data_dir, id);
        if std::fs::read_dir(dir.parent().unwrap_or(&dir)).is_ok_and(|there| there.count() >= TREES_MAX) {
            return Err(CallError::failed(format!("there are {TREES_MAX} worktrees already"))
                .hint("bring over what is wanted with agent.merge, and discard the others with agent.control"));
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(|error| failed(&dir, &error))?;
        let tracked = git_bytes((root, root), &["ls-tree", "-r", "-z", "--name-only", &base])?;
        let tracked = tracked.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let tracked: Vec<PathBuf> = tracked.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
        let made = || {
            let tree = dir.join("tree");
            clone(root, (&top, &tree), &base, branch)?;
            let files = look(&tree.join(&prefix), tracked.iter(), halt)?;
            let note = Note { root: root.to_owned(), base, branch: branch.to_owned(), prefix, files };
            let text = serde_json::to_vec(&note).map_err(|error| CallError::internal(error.to_string()))?;
            let file = note_file(data_dir, id);
            files::make_parents(&file).map_err(|error| failed(&file, &error))?;
            files::replace(&file, &text, Some(0o600)).map_err(|error| failed(&file, &error))?;
            Ok(Self { dir: dir.clone(), file, note })
        };
        let made: Result<Self, CallError> = made();
        let tree = made.inspect_err(|_| drop(std::fs::remove_dir_all(&dir)))?;
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
        Ok(Self { dir: place(data_dir, id), file, note })
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
        let top = git((&self.note.root, &self.note.root), &["rev-parse", "--git-common-dir"])?;
        Ok(workspace.readable(&self.note.root.join(top).join("objects")).copy_of(parent.project()))
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
        std::fs::remove_dir_all(&self.dir).map_err(|error| failed(&self.dir, &error))?;
        std::fs::remove_file(&self.file).map_err(|error| failed(&self.file, &error))
    }

    /// What was changed in it: each path, and how it stands there now.
    fn changed(&self, halt: &Halt) -> Result<BTreeMap<PathBuf, State>, CallError> {
        // What was there is looked for by its name, whatever the child's ignore files say by now.
        let now = look(&self.root(), self.note.files.keys(), halt)?;
        let gone = self.note.files.keys().filter(|path| !now.contains_key(*path));
        let gone: Vec<PathBuf> = gone.cloned().collect();
        let then = |path: &Path| self.note.files.get(path).map(|then| &then.state);
        let changed = now.into_iter().filter(|(path, seen)| then(path) != Some(&seen.state));
        let changed = changed.map(|(path, seen)| (path, seen.state));
        // What is not found there any more is gone, wherever its path may lead by now.
        Ok(changed.chain(gone.into_iter().map(|path| (path, State::Absent))).collect())
    }

    /// The changes that make the project what its copy became. Where both changed, the two are joined if that can be done line
    /// by line; otherwise nothing is changed. Returns also what is not carried over.
    pub(crate) fn changes(&self, workspace: &Workspace, halt: &Halt) -> Result<Merge, CallError> {
        let mut merge = Merge::default();
        let mut conflicts = Vec::new();
        for (path, wanted) in self.changed(halt)? {
            let (theirs, ours) = (self.root().join(&path), self.note.root.join(&path));
            let shown = crate::workspace::display(path.as_os_str());
            if let Some(why) = unfit(workspace, &path, &wanted) {
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
                Some(content) => match self.joined(&path, &content, &ours, (&now, &then))? {
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
        path: &Path,
        theirs: &[u8],
        ours: &Path,
        (now, then): (&State, &State),
    ) -> Result<Option<Vec<u8>>, CallError> {
        let (State::File { .. }, State::File { .. }) = (now, then) else { return Ok(None) };
        let name = format!("{}:{}", self.note.base, self.note.prefix.join(path).display());
        let Ok(base) = git_bytes((&self.note.root, &self.note.root), &["cat-file", "blob", &name]) else {
            return Ok(None);
        };
        let (ours, _) = files::load(ours, &ours.display().to_string(), FILE_MAX)?;
        let scratch = scratch(&self.dir)?;
        let write = |name: &str, content: &[u8]| {
            let path = scratch.join(name);
            std::fs::write(&path, content).map(|()| path).map_err(|error| failed(&scratch, &error))
        };
        let files = [write("ours", &ours)?, write("base", &base)?, write("theirs", theirs)?];
        // Not in the child's directory: its configuration is not read.
        let done = plain(&self.note.root, &scratch).args(["merge-file", "-p"]).args(&files).output();
        let _ = std::fs::remove_dir_all(&scratch);
        let done = done.map_err(|error| failed(&scratch, &error))?;
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

/// Why a path is not carried over.
fn unfit(workspace: &Workspace, path: &Path, wanted: &State) -> Option<&'static str> {
    let Some(text) = path.to_str() else { return Some("its name is no text") };
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
fn look<'p>(
    root: &Path,
    known: impl Iterator<Item = &'p PathBuf>,
    halt: &Halt,
) -> Result<BTreeMap<PathBuf, Seen>, CallError> {
    let walk = ignore::WalkBuilder::new(root)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .git_exclude(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let mut found = BTreeMap::new();
    let new = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()));
    let new = new.filter_map(|entry| entry.path().strip_prefix(root).ok().map(Path::to_owned));
    for path in known.filter(|path| is_below(root, path)).cloned().chain(new) {
        halt.check()?;
        if found.len() >= FILES_MAX {
            return Err(CallError::failed(format!("there are more than {FILES_MAX} files in {}", root.display())));
        }
        let whole = root.join(&path);
        let Ok(meta) = std::fs::symlink_metadata(&whole) else { continue };
        if (meta.is_file() && meta.len() <= FILE_MAX) || meta.is_symlink() {
            let seen = Seen { state: state(&whole)? };
            found.insert(path, seen);
        }
    }
    Ok(found)
}

/// Whether nothing on the way to a path is a link.
fn is_below(root: &Path, path: &Path) -> bool {
    let parents = path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
    let mut parents = parents.map(|parent| std::fs::symlink_metadata(root.join(parent)));
    parents.all(|meta| meta.is_ok_and(|meta| meta.is_dir()))
}

fn clone(project: &Path, (top, tree): (&Path, &Path), base: &str, branch: &str) -> Result<(), CallError> {
    let (from, to) = (top.to_string_lossy(), tree.to_string_lossy());
    git((project, top), &["clone", "--quiet", "--shared", "--no-checkout", "--no-tags", "--template=", &from, &to])?;
    git((project, tree), &["checkout", "--quiet", "-B", branch, base])?;
    // It has nobody to push to.
    git((project, tree), &["remote", "remove", "origin"])?;
    let mut permissions = std::fs::metadata(tree).map_err(|error| failed(tree, &error))?.permissions();
    permissions.set_mode(0o700);
    std::fs::set_permissions(tree, permissions).map_err(|error| failed(tree, &error))
}

/// git as it is, without what a repository might have it run, and not one that lies in the project: what is no repository by its
/// own name is none, nothing is fetched, and no filter, hook or watcher is started.
fn plain(project: &Path, dir: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(dir)
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.bareRepository=explicit"])
        .args(["-c", "filter.lfs.process=", "-c", "filter.lfs.smudge=", "-c", "filter.lfs.clean="])
        .args(["-c", "filter.lfs.required=false", "-c", "submodule.recurse=false"])
        .env("PATH", &environment::outside(project).path)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_CONFIG_PARAMETERS")
        .stdin(Stdio::null());
    command
}

fn git((project, dir): (&Path, &Path), args: &[&str]) -> Result<String, CallError> {
    let bytes = git_bytes((project, dir), args)?;
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
}

fn git_bytes((project, dir): (&Path, &Path), args: &[&str]) -> Result<Vec<u8>, CallError> {
    let output = plain(project, dir).args(args).output().map_err(|error| {
        CallError::failed(format!("git cannot be started: {error}")).hint("install git, or use the mode sync")
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let what = args.iter().find(|arg| !arg.starts_with('-')).copied().unwrap_or_default();
    Err(CallError::new(ErrorKind::Failed, format!("git {what} failed: {}", haft_core::preview::inert(&words))))
}

fn failed(path: &Path, error: &std::io::Error) -> CallError {
    CallError::failed(format!("{}: {error}", path.display()))
}

/// A name for a branch.
pub(crate) fn branch(wanted: Option<&str>, id: &str) -> String {
    let fine = |name: &&str| {
        !name.starts_with('-')
            && name.len() <= 100
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_/.".contains(&byte))
            && !name.contains("..")
    };
    wanted.filter(fine).map_or_else(|| format!("haft/{id}"), str::to_owned)
}
