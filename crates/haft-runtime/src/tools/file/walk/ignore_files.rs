//! Reading ignore files safely. A repository can carry a link to a device, a FIFO or gigabytes under such a name, so each
//! is looked at before it is read.

use crate::files;
use crate::tools::file::gitignore::PatternList;
use std::fs::FileType;
use std::path::{Path, PathBuf};

/// Larger ignore files are not read.
const SIZE_MAX: u64 = 256 << 10;
/// A larger `.git` file is no pointer to a repository.
const POINTER_MAX: u64 = 4096;
/// Where a repository keeps patterns that are not shared.
const EXCLUDE: &str = "info/exclude";

/// An ignore file that is there and cannot be read, so that nobody knows what it leaves out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// What the ignore files of a directory say.
#[derive(Debug, Default)]
pub(super) struct IgnoreFiles {
    /// Its `.ignore`, which ripgrep and fd read as well.
    pub(super) ignore: PatternList,
    /// Its `.gitignore`.
    pub(super) gitignore: PatternList,
    /// What its repository leaves out, if it is the top of one.
    pub(super) repository: Option<PatternList>,
    /// Whether its `.gitignore` is a link, which git does not follow.
    pub(super) is_linked: bool,
}

impl IgnoreFiles {
    /// Reads those of a directory.
    pub(super) fn of(dir: &Path) -> Result<Self, Unreadable> {
        let repository = kind(&dir.join(".git")).map(|kind| excluded(dir, kind)).transpose()?;
        let gitignore = dir.join(".gitignore");
        let is_linked = kind(&gitignore).is_some_and(|kind| kind.is_symlink());
        Ok(Self {
            ignore: read(&dir.join(".ignore"))?,
            gitignore: if is_linked { PatternList::default() } else { read(&gitignore)? },
            repository,
            is_linked,
        })
    }

    /// Reads those that still count above the top of a repository.
    pub(super) fn above_repository(dir: &Path) -> Result<Self, Unreadable> {
        Ok(Self { ignore: read(&dir.join(".ignore"))?, ..Self::default() })
    }

    /// Whether they say nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.repository.is_none() && self.lists().all(PatternList::is_empty)
    }

    /// The patterns of all of them.
    pub(super) fn lists(&self) -> impl Iterator<Item = &PatternList> {
        [&self.ignore, &self.gitignore].into_iter().chain(&self.repository)
    }
}

/// The user's own ignore file, for all repositories. It may be a link.
pub(super) fn global() -> Result<PatternList, Unreadable> {
    let path = ignore::gitignore::gitconfig_excludes_path();
    match path.map(|path| path.canonicalize()) {
        Some(Ok(path)) => read(&path),
        _ => Ok(PatternList::default()),
    }
}

fn kind(path: &Path) -> Option<FileType> {
    path.symlink_metadata().ok().map(|meta| meta.file_type())
}

/// The patterns of a file. What is not there and what is a directory says nothing.
fn read(path: &Path) -> Result<PatternList, Unreadable> {
    match kind(path) {
        // Nearly all directories have none, which is the quick way out.
        None => Ok(PatternList::default()),
        Some(kind) if kind.is_dir() => Ok(PatternList::default()),
        Some(_) => match files::load(path, "", SIZE_MAX) {
            Ok((content, _)) => Ok(PatternList::parse(&content)),
            // Files come and go while others work on them.
            Err(error) if error.kind == haft_core::ErrorKind::NotFound => Ok(PatternList::default()),
            Err(_) => Err(Unreadable),
        },
    }
}

/// What a repository leaves out by itself.
fn excluded(top: &Path, dot_git: FileType) -> Result<PatternList, Unreadable> {
    match exclude_file(top, dot_git) {
        Some(path) => read(&path),
        None => Ok(PatternList::default()),
    }
}

/// Where the patterns of a repository are that are not shared.
pub(in crate::tools::file) fn exclude_file_of(top: &Path) -> Option<PathBuf> {
    exclude_file(top, kind(&top.join(".git"))?)
}

fn exclude_file(top: &Path, dot_git: FileType) -> Option<PathBuf> {
    let git = top.join(".git");
    if dot_git.is_dir() {
        return Some(git.join(EXCLUDE));
    }
    // A file may point anywhere. It is believed where the other side knows of it: a worktree is registered in its
    // repository, and a submodule's repository lies inside the one around it.
    let dir = top.join(first_line(&git)?.strip_prefix("gitdir: ")?).canonicalize().ok()?;
    if let Some(common) = first_line(&dir.join("commondir")) {
        let registered = dir.join(first_line(&dir.join("gitdir"))?).canonicalize().ok()?;
        let is_known = registered == git.canonicalize().ok()?;
        let common = dir.join(common).canonicalize().ok()?;
        return is_known.then(|| common.join(EXCLUDE));
    }
    let above = top.parent()?.ancestors().map(|dir| dir.join(".git/modules"));
    above
        .filter_map(|modules| modules.canonicalize().ok())
        .any(|modules| dir.starts_with(modules))
        .then(|| dir.join(EXCLUDE))
}

fn first_line(path: &Path) -> Option<String> {
    let (content, _) = files::load(path, "", POINTER_MAX).ok()?;
    String::from_utf8(content).ok()?.lines().next().map(str::to_owned)
}
