//! A commit as a commit: which references of a repository moved, and which commits are new, instead of the files in which git
//! keeps them.

use super::changed_path::{ChangedPath, Side};
use super::ranking::FileView;
use crate::ranked_changes::{CommitSummary, ReferenceMove};
use flate2::read::ZlibDecoder;
use haft_core::change::State;
use haft_core::preview::{cut, inert};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
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
    /// An object, the index, a log.
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
            GitFile::PackedReferences => PACKED_MAX,
            GitFile::Data => return Some(found),
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
            "objects" if is_object(&rest[depth + 1..]) => found(depth, GitFile::Data),
            "logs" if is_own(depth) && depth < last => found(depth, GitFile::Data),
            _ => None,
        }
    }
}

/// Whether that is the name of an object, or of many in one file.
fn is_object(name: &[&str]) -> bool {
    let is_hash = |text: &str, lengths: &[usize]| lengths.contains(&text.len()) && is_hexadecimal(text);
    match name {
        [dir, rest] if is_hash(dir, &[2]) => is_hash(rest, &[38, 62]),
        ["pack", file] => file.starts_with("pack-"),
        ["info", file] => ["packs", "commit-graph"].contains(file),
        ["info", "commit-graphs", _] => true,
        _ => false,
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn is_commit_id(text: &str) -> bool {
    [40, 64].contains(&text.len()) && is_hexadecimal(text)
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
                GitFile::Data => {}
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
        let data = |dir: &str| Some((dir.to_owned(), GitFile::Data));
        assert_eq!(read(&format!("/p/.git/objects/ab/{}", "c".repeat(38))), data("/p/.git"));
        assert_eq!(read("/p/.git/logs/HEAD"), data("/p/.git"));
        assert_eq!(read("/p/.git/index"), data("/p/.git"));
        for ordinary in [
            "/p/src/refs/heads/main",
            "/p/.git/config",
            "/p/.git/hooks/pre-commit",
            "/p/.git/hooks/index",
            "/p/.git/objects/info/alternates",
            "/p/.git/objects/ab/hook",
            "/p/.git/modules/logs/hooks/post-commit",
            "/p/.git/info/exclude",
        ] {
            assert_eq!(read(ordinary), None, "{ordinary}");
        }
    }
}
