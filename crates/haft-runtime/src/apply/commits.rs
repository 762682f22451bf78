//! A commit as a commit: which references of a repository moved, and which commits are new, instead of the files in which git
//! keeps them.
//!
//! A program can make directories and files of these names for anything. So only the files of a repository count, and only those whose
//! content is what git keeps there; all others are shown as the files that they are.

use super::changed_path::{ChangedPath, Side};
use super::ranking::FileView;
use crate::ranked_changes::{CommitSummary, ReferenceMove};
use flate2::read::ZlibDecoder;
use haft_core::change::State;
use haft_core::preview::{cut, inert};
use haft_core::record::Digest;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

/// No more commits are named.
const COMMITS_MAX: usize = 50;
/// A longer message is read this far.
const COMMIT_MAX: u64 = 64 << 10;
/// A longer list of packed references is shown as the file that it is.
const PACKED_MAX: u64 = 4 << 20;
/// A longer reference is none.
const REFERENCE_MAX: u64 = 1024;
/// How wide a subject is shown.
const SUBJECT_COLUMNS: usize = 100;

/// Files beside `HEAD` in which git keeps what it does not need to be told.
const NOTES: &[&str] = &[
    "index",
    "COMMIT_EDITMSG",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "SQUASH_MSG",
    "AUTO_MERGE",
    "REBASE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "gc.log",
];

/// What a file in a repository's own directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GitFile {
    /// A branch, a tag, or `HEAD`.
    Reference(String),
    /// The list of those that have no file.
    PackedReferences,
    /// An object, or many in one file. Git adds them, and changes none.
    Object,
    /// What a reference was before.
    Log,
    /// The index, a message, a list of objects.
    Data,
}

/// A file in a repository's own directory whose content git gives a meaning. Anything else there (configuration, hooks) is
/// shown as any other file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitPath {
    /// The `.git` directory.
    pub(super) top: PathBuf,
    /// The directory in which the references are: the same, or that of a work tree or of a submodule.
    dir: PathBuf,
    pub(super) file: GitFile,
}

impl GitPath {
    /// What a changed path is, if it lies in a `.git` directory.
    pub(super) fn of(changed: &ChangedPath<'_>) -> Option<Self> {
        let is_file = |side: &Side<'_>| matches!(side.state, State::Absent | State::File { .. });
        let found = Self::read(&changed.path).filter(|_| is_file(&changed.old) && is_file(&changed.new))?;
        let max = match found.file {
            GitFile::Reference(_) => REFERENCE_MAX,
            GitFile::PackedReferences | GitFile::Log => PACKED_MAX,
            GitFile::Object | GitFile::Data => return Some(found),
        };
        (changed.old.bytes() <= max && changed.new.bytes() <= max).then_some(found)
    }

    fn read(path: &Path) -> Option<Self> {
        let top = path.ancestors().filter(|above| above.file_name().is_some_and(|name| name == ".git")).last()?;
        let rest: Vec<&str> = path.strip_prefix(top).ok()?.iter().map(OsStr::to_str).collect::<Option<_>>()?;
        let is_own = |depth: usize| depth == 0 || (depth == 2 && rest[0] == "worktrees");
        let at = |depth: usize| rest[..depth].iter().fold(top.to_owned(), |dir, name| dir.join(name));
        let found = |depth: usize, file: GitFile| Some(Self { top: top.to_owned(), dir: at(depth), file });
        let last = rest.len().checked_sub(1)?;
        match rest[last] {
            "HEAD" if is_own(last) => return found(last, GitFile::Reference("HEAD".to_owned())),
            "packed-refs" if is_own(last) => return found(last, GitFile::PackedReferences),
            name if is_own(last) && NOTES.contains(&name) => return found(last, GitFile::Data),
            _ => {}
        }
        let (depth, kind) = rest
            .iter()
            .enumerate()
            .find(|(_, name)| ["refs", "objects", "logs"].contains(name))
            .map(|(n, k)| (n, *k))?;
        match kind {
            "refs" if depth < last => found(depth, GitFile::Reference(rest[depth..].join("/"))),
            "objects" if is_object(&rest[depth + 1..]) => found(depth, GitFile::Object),
            "objects" if is_object_list(&rest[depth + 1..]) => found(depth, GitFile::Data),
            "logs" if is_own(depth) && matches!(rest[depth + 1..], ["HEAD"] | ["refs", _, ..]) => {
                found(depth, GitFile::Log)
            }
            _ => None,
        }
    }
}

/// Whether that is the name of an object, or of many in one file.
fn is_object(name: &[&str]) -> bool {
    match name {
        ["pack", file] => {
            let pack = file.strip_prefix("pack-").and_then(|file| file.split_once('.'));
            pack.is_some_and(|(id, kind)| is_commit_id(id) && ["pack", "idx", "rev"].contains(&kind))
        }
        [dir, rest] => dir.len() == 2 && [38, 62].contains(&rest.len()) && is_hexadecimal(dir) && is_hexadecimal(rest),
        _ => false,
    }
}

/// Whether that is the name of a list that git makes of objects.
fn is_object_list(name: &[&str]) -> bool {
    match name {
        ["info", "packs" | "commit-graph"] | ["info", "commit-graphs", "commit-graph-chain"] => true,
        ["info", "commit-graphs", file] => {
            let id = file.strip_prefix("graph-").and_then(|file| file.strip_suffix(".graph"));
            id.is_some_and(is_commit_id)
        }
        _ => false,
    }
}

/// Whether a new file begins as git's objects and packs of its name do. One that is not there any more cannot be shown.
fn begins_as_object(changed: &ChangedPath<'_>) -> bool {
    let content = changed.new.file().and_then(|file| crate::files::open(file).ok());
    let Some(mut content) = content else { return true };
    let mut start = [0; 4];
    if content.read_exact(&mut start).is_err() {
        return false;
    }
    match changed.path.extension().and_then(OsStr::to_str) {
        // The header of zlib.
        None => start[0] & 0x0f == 8 && u16::from_be_bytes([start[0], start[1]]).is_multiple_of(31),
        Some("pack") => start == *b"PACK",
        Some("idx") => start == *b"\xfftOc",
        Some(_) => start == *b"RIDX",
    }
}

fn is_reference(text: &str) -> bool {
    let text = text.trim_end();
    let is_name = |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control());
    is_commit_id(text) || text.strip_prefix("ref: ").is_some_and(is_name)
}

fn is_packed_references(text: &str) -> bool {
    text.lines().all(|line| {
        let id = line.strip_prefix('^').or_else(|| line.split_once(' ').map(|(id, _)| id));
        line.starts_with("# pack-refs ") || id.is_some_and(is_commit_id)
    })
}

fn is_log(text: &str) -> bool {
    text.lines().all(|line| {
        let mut words = line.splitn(3, ' ');
        words.next().is_some_and(is_commit_id) && words.next().is_some_and(is_commit_id)
    })
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn is_commit_id(text: &str) -> bool {
    [40, 64].contains(&text.len()) && is_hexadecimal(text)
}

/// Which changed paths are the files in which repositories keep their data.
pub(super) struct GitDirs<'v> {
    paths: &'v [ChangedPath<'v>],
    before: &'v FileView,
    after: &'v FileView,
    repositories: HashMap<PathBuf, bool>,
}

impl<'v> GitDirs<'v> {
    pub(super) fn new(paths: &'v [ChangedPath<'v>], before: &'v FileView, after: &'v FileView) -> Self {
        Self { paths, before, after, repositories: HashMap::new() }
    }

    /// What a changed path is, if a repository keeps it for itself, and it has the content that git keeps there.
    pub(super) fn file(&mut self, changed: &ChangedPath<'_>) -> Option<GitPath> {
        let found = GitPath::of(changed)?;
        let is_git = self.is_repository(&found.top) && (found.dir == found.top || self.is_inner(&found));
        (is_git && is_gits_own(changed, &found.file)).then_some(found)
    }

    /// Whether a directory was a repository before, or has been made one by what `git init` and `git clone` make.
    fn is_repository(&mut self, dir: &Path) -> bool {
        if let Some(known) = self.repositories.get(dir) {
            return *known;
        }
        let is_repository = has_head(self.before, dir) || self.is_made(dir);
        self.repositories.insert(dir.to_owned(), is_repository);
        is_repository
    }

    /// Whether all of a repository is new.
    fn is_made(&self, dir: &Path) -> bool {
        let is_new = |part: &&str| {
            let part = dir.join(part);
            let mut inner = self.paths.iter().filter(|path| path.path.starts_with(&part)).peekable();
            inner.peek().is_some() && inner.all(|path| path.old.is_absent())
        };
        ["HEAD", "config", "objects", "refs"].iter().all(is_new) && has_head(self.after, dir)
    }

    /// Whether a directory in that of a repository is one of a work tree or of a submodule.
    fn is_inner(&mut self, found: &GitPath) -> bool {
        let is_worktree = found.dir.parent().is_some_and(|above| *above == found.top.join("worktrees"));
        let was_or_is = is_worktree && (has_head(self.before, &found.dir) || has_head(self.after, &found.dir));
        was_or_is || self.is_repository(&found.dir)
    }
}

fn has_head(view: &FileView, dir: &Path) -> bool {
    let head = view.read(&dir.join("HEAD"), REFERENCE_MAX);
    head.is_some_and(|head| is_reference(&String::from_utf8_lossy(&head)))
}

/// Whether a changed file of a repository is one as git changes it.
fn is_gits_own(changed: &ChangedPath<'_>, file: &GitFile) -> bool {
    let text_is = |max: u64, is_own: fn(&str) -> bool| {
        let Some(file) = changed.new.file().filter(|file| file.symlink_metadata().is_ok()) else { return true };
        crate::files::load(file, "", max).is_ok_and(|(content, _)| is_own(&String::from_utf8_lossy(&content)))
    };
    match file {
        GitFile::Reference(_) => text_is(REFERENCE_MAX, is_reference),
        GitFile::PackedReferences => text_is(PACKED_MAX, is_packed_references),
        GitFile::Log => text_is(PACKED_MAX, is_log),
        GitFile::Object if changed.old.is_absent() => begins_as_object(changed),
        // Git renews the time of an object that it would write again.
        GitFile::Object => !changed.is_changed || is_touched(changed),
        GitFile::Data => true,
    }
}

/// Whether nothing but the time of a file is new.
fn is_touched(changed: &ChangedPath<'_>) -> bool {
    let is_known = !matches!(changed.old.state, State::File { digest: Digest::ZERO, .. });
    is_known && changed.old.state == changed.new.state
}

/// What happened to the repositories that changed paths belong to.
pub(super) struct CommitReader<'v> {
    before: &'v FileView,
    after: &'v FileView,
    new: HashSet<&'v Path>,
    packed: BTreeMap<(PathBuf, bool), BTreeMap<String, String>>,
}

impl<'v> CommitReader<'v> {
    pub(super) fn new(paths: &'v [ChangedPath<'_>], before: &'v FileView, after: &'v FileView) -> Self {
        let new = paths.iter().filter(|path| path.old.is_absent()).map(|path| path.path.as_path()).collect();
        Self { before, after, new, packed: BTreeMap::new() }
    }

    /// The references that moved, and the commits that are new.
    pub(super) fn read(&mut self, files: &[GitPath]) -> (Vec<CommitSummary>, Vec<ReferenceMove>) {
        let mut names: BTreeSet<(PathBuf, PathBuf, String)> = BTreeSet::new();
        for GitPath { top, dir, file } in files {
            match file {
                GitFile::Reference(name) => names.extend([(top.clone(), dir.clone(), name.clone())]),
                GitFile::PackedReferences => {
                    for is_after in [false, true] {
                        let known = self.packed(dir, is_after).keys().cloned();
                        names.extend(known.map(|name| (top.clone(), dir.clone(), name)));
                    }
                }
                GitFile::Object | GitFile::Log | GitFile::Data => {}
            }
        }
        let (mut commits, mut moves, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for (top, dir, name) in names {
            let (from, to) = (self.target(&dir, &name, false), self.target(&dir, &name, true));
            if from == to {
                continue;
            }
            let objects = [dir.join("objects"), top.join("objects")];
            let mut subject = None;
            if let Some(to) = to.as_ref().filter(|to| is_commit_id(to)) {
                subject = self.commit(&objects, to).map(|commit| commit.subject);
                self.new_commits(&objects, to, &mut seen, &mut commits);
            }
            // What is listed as a commit need not be said twice.
            let is_listed =
                to.as_ref().is_some_and(|to| commits.iter().any(|commit: &CommitSummary| commit.hash == *to));
            moves.push(ReferenceMove { name: inert(&name), from, to, subject: subject.filter(|_| !is_listed) });
        }
        (commits, moves)
    }

    /// What a reference names: a commit, or another reference.
    fn target(&mut self, dir: &Path, name: &str, is_after: bool) -> Option<String> {
        let content = self.view(is_after).read(&dir.join(name), REFERENCE_MAX);
        let text = content.and_then(|content| String::from_utf8(content).ok());
        let loose = text.map(|text| inert(text.trim())).filter(|text| !text.is_empty());
        loose.or_else(|| self.packed(dir, is_after).get(name).cloned())
    }

    const fn view(&self, is_after: bool) -> &'v FileView {
        if is_after { self.after } else { self.before }
    }

    fn packed(&mut self, dir: &Path, is_after: bool) -> &BTreeMap<String, String> {
        let view = self.view(is_after);
        self.packed.entry((dir.to_owned(), is_after)).or_insert_with(|| {
            let content = view.read(&dir.join("packed-refs"), PACKED_MAX).unwrap_or_default();
            let text = String::from_utf8_lossy(&content).into_owned();
            let lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.filter(|(id, _)| is_commit_id(id)).map(|(id, name)| (name.to_owned(), id.to_owned())).collect()
        })
    }

    /// A commit and those before it, as far as they are new.
    fn new_commits(
        &self,
        objects: &[PathBuf],
        from: &str,
        seen: &mut HashSet<String>,
        commits: &mut Vec<CommitSummary>,
    ) {
        let mut next = VecDeque::from([from.to_owned()]);
        while let Some(id) = next.pop_front() {
            if commits.len() >= COMMITS_MAX || !seen.insert(id.clone()) {
                continue;
            }
            let is_new = objects.iter().any(|dir| self.new.contains(object_path(dir, &id).as_path()));
            if let Some(commit) = self.commit(objects, &id).filter(|_| is_new) {
                next.extend(commit.parents);
                commits.push(CommitSummary { hash: id, subject: commit.subject });
            }
        }
    }

    fn commit(&self, objects: &[PathBuf], id: &str) -> Option<Commit> {
        objects.iter().find_map(|dir| Commit::load(&self.after.locate(&object_path(dir, id))?))
    }
}

fn object_path(objects: &Path, id: &str) -> PathBuf {
    let (dir, rest) = id.split_at(2);
    objects.join(dir).join(rest)
}

/// The part of a commit that is shown.
struct Commit {
    parents: Vec<String>,
    subject: String,
}

impl Commit {
    /// From the file of an object, if that is a commit.
    fn load(file: &Path) -> Option<Self> {
        let mut text = Vec::new();
        // An object that is cut or broken says as much as can be read of it.
        let _ = ZlibDecoder::new(crate::files::open(file).ok()?).take(COMMIT_MAX).read_to_end(&mut text);
        let text = text.strip_prefix(b"commit ")?;
        let start = text.iter().position(|byte| *byte == 0)? + 1;
        let text = String::from_utf8_lossy(&text[start..]).into_owned();
        let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
        let parents = head.lines().filter_map(|line| line.strip_prefix("parent ")).filter(|id| is_commit_id(id));
        let subject = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        Some(Self { parents: parents.map(str::to_owned).collect(), subject: cut(&inert(subject), SUBJECT_COLUMNS) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::changed_path::take_apart;

    fn read(path: &str) -> Option<(String, GitFile)> {
        GitPath::read(Path::new(path)).map(|found| (found.dir.display().to_string(), found.file))
    }

    #[test]
    fn only_what_git_gives_a_meaning_is_no_ordinary_file() {
        let reference = |dir: &str, name: &str| Some((dir.to_owned(), GitFile::Reference(name.to_owned())));
        assert_eq!(read("/p/.git/refs/heads/main"), reference("/p/.git", "refs/heads/main"));
        assert_eq!(read("/p/.git/HEAD"), reference("/p/.git", "HEAD"));
        assert_eq!(read("/p/.git/worktrees/w/HEAD"), reference("/p/.git/worktrees/w", "HEAD"));
        assert_eq!(read("/p/.git/modules/m/refs/heads/x"), reference("/p/.git/modules/m", "refs/heads/x"));
        let of = |file: GitFile| Some(("/p/.git".to_owned(), file));
        assert_eq!(read(&format!("/p/.git/objects/ab/{}", "c".repeat(38))), of(GitFile::Object));
        assert_eq!(read(&format!("/p/.git/objects/pack/pack-{}.idx", "c".repeat(40))), of(GitFile::Object));
        assert_eq!(read("/p/.git/logs/HEAD"), of(GitFile::Log));
        assert_eq!(read("/p/.git/logs/refs/stash"), of(GitFile::Log));
        assert_eq!(read("/p/.git/index"), of(GitFile::Data));
        for ordinary in [
            "/p/src/refs/heads/main",
            "/p/.git/config",
            "/p/.git/hooks/pre-commit",
            "/p/.git/hooks/index",
            "/p/.git/objects/info/alternates",
            "/p/.git/objects/ab/hook",
            "/p/.git/objects/pack/pack-x.js",
            "/p/.git/objects/info/commit-graphs/x.js",
            "/p/.git/logs/x.py",
            "/p/.git/modules/logs/hooks/post-commit",
            "/p/.git/info/exclude",
        ] {
            assert_eq!(read(ordinary), None, "{ordinary}");
        }
    }

    /// What is folded of a directory that comes as it is, and what is not.
    fn folded(dir: &Path) -> (Vec<String>, Vec<String>) {
        let tree = State::Tree { digest: Digest::ZERO, mode: 0o755 };
        let paths = take_apart(Path::new("/p/lib"), Side::ABSENT, Side::new(tree, Some(dir.to_owned())));
        let (before, after) = (FileView::before(&paths), FileView::after(&paths));
        let mut repositories = GitDirs::new(&paths, &before, &after);
        let in_git = paths.iter().filter(|path| path.path.starts_with("/p/lib/.git"));
        let (folded, shown): (Vec<_>, Vec<_>) = in_git.partition(|path| repositories.file(path).is_some());
        let names = |paths: Vec<&ChangedPath<'_>>| {
            let names = paths.iter().filter(|path| matches!(path.new.state, State::File { .. }));
            names.map(|path| path.path.strip_prefix("/p/lib/.git").unwrap().display().to_string()).collect()
        };
        (names(folded), names(shown))
    }

    #[test]
    fn new_repository_is_folded_if_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let who = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main"];
            let done =
                std::process::Command::new("git").arg("-C").arg(dir.path()).args(who).args(args).output().unwrap();
            assert!(done.status.success(), "{args:?} {}", String::from_utf8_lossy(&done.stderr));
        };
        git(&["init", "-q", "--template="]);
        git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&["repack", "-q", "-a", "-n"]);
        git(&["pack-refs", "--all"]);
        git(&["commit", "-q", "--allow-empty", "-m", "two"]);
        let (kept, shown) = folded(dir.path());
        assert_eq!(shown, ["config"], "{kept:?}");
        let has = |end: &str| kept.iter().any(|name| name.ends_with(end));
        assert!([".pack", ".idx", "HEAD", "packed-refs", "logs/HEAD", "index"].iter().all(|end| has(end)), "{kept:?}");
        let odd = ["objects/pack/pack-x.js".to_owned(), format!("objects/pack/pack-{}.pack", "c".repeat(40))];
        for name in &odd {
            std::fs::write(dir.path().join(".git").join(name), "import os").unwrap();
        }
        let (_, shown) = folded(dir.path());
        assert!(shown.len() == 3 && odd.iter().all(|name| shown.contains(name)), "{shown:?}");
        std::fs::remove_file(dir.path().join(".git/HEAD")).unwrap();
        assert_eq!(folded(dir.path()).0, Vec::<String>::new(), "without a HEAD it is no repository");
    }
}
