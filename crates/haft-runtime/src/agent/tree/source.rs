//! The repository that a project is in, and what is copied of it.
//!
//! git reads it where nothing holds git back, and what runs in the sandbox writes to parts of it: a link there, or a place that it
//! borrows objects from, would carry over what the project may not read. So it is looked at without git first, and again right
//! before it is copied: everything that git reads is a plain file, in the project or where the project's own repository is.

use super::failed;
use crate::agent::git::{Git, too_much};
use crate::files;
use crate::halt::Halt;
use crate::workspace::Workspace;
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// How much there may be in a copy.
const SIZE_MAX: u64 = 2 << 30;
/// How much there may be in a repository: files and directories.
const ENTRIES_MAX: usize = 2_000_000;
/// How many places a repository may borrow objects from.
const ALTERNATES_MAX: usize = 16;
/// How large a file may be that says where something is.
const POINTER_MAX: u64 = 64 << 10;
/// What git reads besides what it finds in the directories below: plain files, if they are there.
const PLAIN: &[&str] = &["HEAD", "config", "config.worktree", "commondir", "gitdir", "packed-refs", "shallow"];
/// What git looks for commits in, and for what they are made of.
const WALKED: &[&str] = &["refs", "reftable", "objects"];

/// The repository that a project is in.
pub(super) struct Source {
    pub(super) git: Git,
    /// The commit it is at.
    pub(super) base: String,
    /// Where the project is in it.
    pub(super) prefix: PathBuf,
    pub(super) objects: PathBuf,
    workspace: Workspace,
    halt: Halt,
}

impl Source {
    pub(super) fn find(workspace: &Workspace, halt: &Halt) -> Result<Self, CallError> {
        let root = workspace.root();
        let no_repository = || {
            CallError::invalid(format!("{} is not in a git repository with a commit", root.display()))
                .hint("use the mode sync, or make a first commit")
        };
        let repository = Repository::of(workspace, halt)?.ok_or_else(no_repository)?;
        let git = Git::within(workspace.project(), root, halt)?;
        let base = git.line(&["rev-parse", "--verify", "HEAD^{commit}"]).map_err(|_| no_repository())?;
        let top = git.path(&["rev-parse", "--show-toplevel"])?;
        let prefix: PathBuf = git.path(&["rev-parse", "--show-prefix"])?.components().collect();
        // A repository may say that its files are elsewhere.
        if top.join(&prefix).components().ne(root.components()) {
            return Err(no_repository());
        }
        let git_dir = real(&git.path(&["rev-parse", "--absolute-git-dir"])?)?;
        let common = real(&root.join(git.path(&["rev-parse", "--git-common-dir"])?))?;
        if (&git_dir, &common) != (&repository.git_dir, &repository.common) {
            return Err(refused(&format!("git finds it at {}", shown(&git_dir))));
        }
        let (workspace, halt) = (workspace.clone(), halt.clone());
        Ok(Self { git, base, prefix, objects: repository.objects(), workspace, halt })
    }

    /// Makes a repository in `dir` that reads the objects of this one, with its files as they were last committed. Nothing is
    /// fetched or sent for that, not even from here to there, and it has nobody to push to.
    pub(super) fn copy(&self, project: &Path, dir: &Path, branch: &str) -> Result<(), CallError> {
        let tree = dir.join("tree");
        std::fs::DirBuilder::new().mode(0o700).create(&tree).map_err(|error| failed(&tree, &error))?;
        let format = self.git.line(&["rev-parse", "--show-object-format"])?;
        let git = Git::beside(project, &tree)?.until(&self.halt);
        git.bytes(&["init", "--quiet", "--template=", &format!("--object-format={format}")])?;
        let own = tree.join(".git");
        let mut objects = self.objects.as_os_str().as_bytes().to_vec();
        if objects.contains(&b'\n') || objects.starts_with(b"\"") {
            return Err(CallError::invalid(format!("there can be no copy that reads {}", self.objects.display())));
        }
        objects.push(b'\n');
        let write = |path: PathBuf, content: &[u8]| {
            files::make_parents(&path)
                .and_then(|_| std::fs::write(&path, content))
                .map_err(|error| failed(&path, &error))
        };
        write(own.join("objects/info/alternates"), &objects)?;
        self.fits()?;
        self.unchanged()?;
        // Where its history ends, if it is not all there.
        if let Some(Ok((shallow, _))) =
            self.objects.parent().map(|common| files::load(&common.join("shallow"), "shallow", 64 << 20))
        {
            write(own.join("shallow"), &shallow)?;
        }
        git.fill(&["checkout", "--quiet", "-B", branch, &self.base], SIZE_MAX)?;
        // Somebody may have been at it meanwhile.
        self.unchanged()
    }

    /// Errs unless the repository is still one that may be copied, and the same.
    fn unchanged(&self) -> Result<(), CallError> {
        match Repository::of(&self.workspace, &self.halt)? {
            Some(repository) if repository.objects() == self.objects => Ok(()),
            _ => Err(refused("it is another one by now")),
        }
    }

    /// Errs if there would be too much in a copy. Little in a repository may be much in a copy.
    fn fits(&self) -> Result<(), CallError> {
        let listed = self.git.bytes(&["ls-tree", "-r", "-l", "-z", "--full-tree", &self.base])?;
        let (mut sum, mut count) = (0_u64, 0_usize);
        for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let before = line.split(|byte| *byte == b'\t').next().unwrap_or_default();
            let size = before.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
            // Another repository's commit has none.
            let size = std::str::from_utf8(size).ok().filter(|size| *size != "-").map_or(Ok(0), str::parse::<u64>);
            sum = sum.saturating_add(size.map_err(|_| CallError::failed("git ls-tree says no sizes"))?);
            count += 1;
        }
        if count > super::FILES_MAX {
            let most = super::FILES_MAX;
            return Err(CallError::conflict(format!("what was last committed is more than {most} files"))
                .hint("use the mode sync"));
        }
        if sum > SIZE_MAX { Err(too_much(SIZE_MAX)) } else { Ok(()) }
    }
}

/// A workspace that reads these objects as well, if they are where they were.
pub(super) fn reading(workspace: Workspace, objects: &Path) -> Result<Workspace, CallError> {
    let before = workspace.readable_roots().len();
    let workspace = workspace.readable(objects);
    // What was granted is what counts: the path may lead elsewhere by now.
    if workspace.readable_roots()[before..].iter().all(|granted| granted == objects) {
        return Ok(workspace);
    }
    Err(refused(&format!("{} leads elsewhere by now", shown(objects))))
}

/// Where a repository keeps what git reads. All of it was looked at: paths without links, in places that may be read.
pub(super) struct Repository {
    git_dir: PathBuf,
    common: PathBuf,
}

impl Repository {
    /// The one around a project, if there is one. One that leads out of the project is refused.
    pub(super) fn of(workspace: &Workspace, halt: &Halt) -> Result<Option<Self>, CallError> {
        let Some(top) = workspace.root().ancestors().find(|dir| is_repository(&dir.join(".git"))) else {
            return Ok(None);
        };
        let dot = top.join(".git");
        let mut places = workspace.readable_roots().to_vec();
        // What is above the project nobody writes to from inside it.
        if std::fs::symlink_metadata(&dot).is_ok_and(|meta| meta.is_dir()) {
            places.push(dot.clone());
        }
        let git_dir = match real(&dot)? {
            dir if dir.is_dir() => dir,
            file => real(&top.join(pointed(&file, b"gitdir: ")?))?,
        };
        plain(&git_dir)?;
        let common = git_dir.join("commondir");
        let common = if is_there(&common) { real(&git_dir.join(pointed(&common, b"")?))? } else { git_dir.clone() };
        plain(&common)?;
        if !inside(&places, &git_dir) && is_of(workspace, top, (&git_dir, &common), halt)? {
            places.push(common.clone());
        }
        for (what, path) in [("it ", &git_dir), ("what it shares with others ", &common)] {
            if !inside(&places, path) {
                return Err(outside(what, path));
            }
        }
        let mut left = ENTRIES_MAX;
        for name in WALKED {
            walk(&git_dir.join(name), &mut left, halt)?;
            if common != git_dir {
                walk(&common.join(name), &mut left, halt)?;
            }
        }
        borrowed(&common.join("objects"), &places, &mut left, halt)?;
        Ok(Some(Self { git_dir, common }))
    }

    fn objects(&self) -> PathBuf {
        self.common.join("objects")
    }
}

/// Whether git would take this for a repository, or for what says where one is.
fn is_repository(dot: &Path) -> bool {
    let found = std::fs::symlink_metadata(dot);
    found.is_ok_and(|meta| !meta.is_dir() || is_there(&dot.join("HEAD")))
}

fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn inside(places: &[PathBuf], path: &Path) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

/// Whether a repository that is elsewhere says itself that it is this directory's: as one of its worktrees, or as the submodule
/// that is there. Nobody says that of somebody else's.
fn is_of(workspace: &Workspace, top: &Path, (git_dir, common): (&Path, &Path), halt: &Halt) -> Result<bool, CallError> {
    let same = |path: PathBuf, wanted: &Path| path.canonicalize().is_ok_and(|path| path == wanted);
    if git_dir != common {
        let back = git_dir.join("gitdir");
        let among = git_dir.parent().is_some_and(|parent| parent == common.join("worktrees"));
        return Ok(among && is_there(&back) && same(git_dir.join(pointed(&back, b"")?), &top.join(".git")));
    }
    // Not in the repository, whose settings would count as well.
    let git = Git::beside(workspace.project(), Path::new("/"))?.until(halt);
    let Some(config) = git_dir.join("config").to_str().map(str::to_owned) else { return Ok(false) };
    let said = git.path(&["config", "--file", &config, "--no-includes", "--get", "core.worktree"]);
    Ok(said.is_ok_and(|said| same(git_dir.join(said), top)))
}

/// The path that a file says.
fn pointed(file: &Path, before: &[u8]) -> Result<PathBuf, CallError> {
    let (said, _) = files::load(file, &shown(file), POINTER_MAX)?;
    let said = said.strip_prefix(before).ok_or_else(|| refused(&format!("{} says no directory", shown(file))))?;
    let end = said.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
    Ok(PathBuf::from(OsStr::from_bytes(&said[..end])))
}

/// Errs if something is no plain file that should be one.
fn plain(dir: &Path) -> Result<(), CallError> {
    for path in PLAIN.iter().map(|name| dir.join(name)) {
        if std::fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_file()) {
            return Err(odd(&path));
        }
    }
    Ok(())
}

/// Errs if there is anything but plain files and directories, if there is something.
fn walk(top: &Path, left: &mut usize, halt: &Halt) -> Result<(), CallError> {
    match std::fs::symlink_metadata(top) {
        Err(_) => return Ok(()),
        Ok(meta) if !meta.is_dir() => return Err(odd(top)),
        Ok(_) => {}
    }
    let mut dirs = vec![top.to_owned()];
    while let Some(dir) = dirs.pop() {
        halt.check()?;
        for entry in std::fs::read_dir(&dir).map_err(|error| failed(&dir, &error))? {
            let entry = entry.map_err(|error| failed(&dir, &error))?;
            let kind = entry.file_type().map_err(|error| failed(&dir, &error))?;
            *left = left
                .checked_sub(1)
                .ok_or_else(|| refused(&format!("there are more than {ENTRIES_MAX} files in it")))?;
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if !kind.is_file() {
                return Err(odd(&entry.path()));
            }
        }
    }
    Ok(())
}

/// Errs if objects are borrowed from a place that may not be read, however many lend on what they borrow.
fn borrowed(objects: &Path, places: &[PathBuf], left: &mut usize, halt: &Halt) -> Result<(), CallError> {
    let mut known = vec![objects.to_owned()];
    let mut at = 0;
    while let Some(objects) = known.get(at).cloned() {
        at += 1;
        let file = objects.join("info/alternates");
        if !is_there(&file) {
            continue;
        }
        let (said, _) = files::load(&file, &shown(&file), POINTER_MAX)?;
        for line in said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
            if line.starts_with(b"\"") {
                return Err(refused(&format!("{} has a quoted path", shown(&file))));
            }
            let lender = real(&objects.join(OsStr::from_bytes(line)))?;
            if !inside(places, &lender) {
                return Err(outside("what it borrows objects from ", &lender));
            }
            if known.contains(&lender) {
                continue;
            }
            if known.len() > ALTERNATES_MAX {
                return Err(refused(&format!("it borrows objects from more than {ALTERNATES_MAX} places")));
            }
            walk(&lender, left, halt)?;
            known.push(lender);
        }
    }
    Ok(())
}

fn real(path: &Path) -> Result<PathBuf, CallError> {
    path.canonicalize().map_err(|error| refused(&format!("{}: {error}", shown(path))))
}

fn shown(path: &Path) -> String {
    cut(&inert(&path.to_string_lossy()), 300)
}

fn odd(path: &Path) -> CallError {
    refused(&format!("{} is a link, or no plain file", shown(path)))
}

fn outside(what: &str, path: &Path) -> CallError {
    refused(&format!("{what}is at {}, which the project may not read", shown(path)))
}

/// A repository that is not copied: what it leads to would be read where nothing holds git back.
fn refused(why: &str) -> CallError {
    CallError::conflict(format!("there is no copy of the project's repository: {why}")).hint(
        "if that is meant, name the place among the roots that may be read; otherwise put plain files and directories of its own there (git repack -a -d takes in what is borrowed), or use the mode sync",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_that_lead_elsewhere_by_now_are_not_granted() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (root, objects) = (top.join("copy"), top.join("project/objects"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(&objects).unwrap();
        let fresh = || Workspace::new(&root).unwrap();
        let granted = reading(fresh(), &objects).unwrap();
        assert_eq!(granted.readable_roots(), [root.clone(), objects.clone()]);
        std::fs::remove_dir(&objects).unwrap();
        assert_eq!(reading(fresh(), &objects).unwrap().readable_roots(), [root.clone()], "there is nothing to read");
        std::os::unix::fs::symlink("../..", &objects).unwrap();
        let error = reading(fresh(), &objects).unwrap_err();
        assert!(error.message.contains("leads elsewhere by now"), "{error:?}");
    }
}
