//! How early a changed path is shown, and in which ignored directory it is.
//!
//! What git tracks and ignores is read as it was before the change: a command that writes a `.gitignore` cannot hide with it
//! what else it writes. Where an index cannot be understood, nothing of that repository is folded.

use super::changed_path::{ChangedPath, SideContent};
use crate::judge::index;
use crate::ranked_changes::ChangeRank;
use crate::tools::file::ignore::rules::Rules;
use crate::tools::file::walk::is_generated;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// A larger `.git` file is no pointer to a repository.
const POINTER_MAX: u64 = 4096;

/// Where the files of a project are as they were before a change, or as they are after it.
#[derive(Debug, Default)]
pub(super) struct FileView {
    changed: BTreeMap<PathBuf, Option<PathBuf>>,
}

impl FileView {
    /// As they were before these paths were changed.
    pub(super) fn before(paths: &[ChangedPath<'_>]) -> Self {
        Self::of(paths, |path| path.old.file().filter(|_| !path.old.is_absent()).map(Path::to_owned))
    }

    /// As they are afterwards.
    pub(super) fn after(paths: &[ChangedPath<'_>]) -> Self {
        Self::of(paths, |path| path.new.file().filter(|_| !path.new.is_absent()).map(Path::to_owned))
    }

    fn of(paths: &[ChangedPath<'_>], side: impl Fn(&ChangedPath<'_>) -> Option<PathBuf>) -> Self {
        // What a tool of haft's writes is in memory, and no repository.
        let on_disk = paths.iter().filter(|path| !matches!(path.new.content, SideContent::Bytes(_)));
        Self { changed: on_disk.map(|path| (path.path.clone(), side(path))).collect() }
    }

    /// The file that has the content of a path, if one stands there.
    pub(super) fn locate(&self, path: &Path) -> Option<PathBuf> {
        match self.changed.get(path) {
            Some(file) => file.clone(),
            None => path.symlink_metadata().is_ok().then(|| path.to_owned()),
        }
    }

    /// The content of a path, if it is a file of at most so many bytes.
    pub(super) fn read(&self, path: &Path, max: u64) -> Option<Vec<u8>> {
        let file = self.locate(path)?;
        crate::files::load(&file, "", max).ok().map(|(content, _)| content)
    }
}

/// A path's rank, and the ignored directory that it is in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PathRank {
    pub(super) rank: ChangeRank,
    pub(super) ignored_dir: Option<PathBuf>,
}

impl PathRank {
    const fn of(rank: ChangeRank) -> Self {
        Self { rank, ignored_dir: None }
    }
}

/// A repository, or the project where it is in none.
struct RankedRepository<'v> {
    /// What it tracks, by absolute path. None: its index is not understood.
    tracked: Option<HashSet<PathBuf>>,
    has_index: bool,
    rules: Rules<'v>,
    /// For each directory that was looked at, the ignored directory that it is in.
    ignored: HashMap<PathBuf, Option<PathBuf>>,
}

/// Ranks paths.
pub(super) struct Ranking<'v> {
    before: &'v FileView,
    root: Option<PathBuf>,
    project: Option<PathBuf>,
    shown: &'v dyn Fn(&Path) -> String,
    locate: &'v dyn Fn(&Path) -> Option<PathBuf>,
    tops: HashMap<PathBuf, Option<PathBuf>>,
    repositories: HashMap<PathBuf, RankedRepository<'v>>,
}

impl<'v> Ranking<'v> {
    /// For paths of a project and around it. `locate` is that of the view.
    pub(super) fn new(
        before: &'v FileView,
        project: Option<&Path>,
        shown: &'v dyn Fn(&Path) -> String,
        locate: &'v dyn Fn(&Path) -> Option<PathBuf>,
    ) -> Self {
        let mut ranking = Self {
            before,
            root: project.map(Path::to_owned),
            project: None,
            shown,
            locate,
            tops: HashMap::new(),
            repositories: HashMap::new(),
        };
        // The repository around the project speaks for it; one around that does not.
        ranking.project = project.map(|project| ranking.top_of(project).unwrap_or_else(|| project.to_owned()));
        ranking
    }

    /// How early a path is shown.
    pub(super) fn rank(&mut self, path: &Path, is_dir: bool) -> PathRank {
        let tops = self.tops_around(path);
        if tops.is_empty() {
            return PathRank::of(ChangeRank::Source);
        }
        let (mut has_index, mut is_tracked, mut is_understood) = (false, false, true);
        for top in &tops {
            let repository = self.repository(top);
            has_index |= repository.has_index;
            match &repository.tracked {
                Some(tracked) => is_tracked |= tracked.contains(path),
                None => is_understood = false,
            }
        }
        if is_tracked {
            return PathRank::of(ChangeRank::Source);
        }
        let root = self.root.clone();
        for top in &tops {
            let repository = self.repository(top);
            // Of a repository that ignores the whole project, such as one of a home directory, no rule counts.
            if root.as_ref().is_some_and(|root| repository.ignored_dir(root, top).is_some()) {
                continue;
            }
            if let Some(dir) = path.parent().and_then(|parent| repository.ignored_dir(parent, top)) {
                return PathRank { rank: ChangeRank::Ignored, ignored_dir: Some(dir).filter(|_| is_understood) };
            }
            if repository.rules.decide(path, is_dir).is_some_and(|rule| !rule.keeps) {
                return PathRank::of(ChangeRank::Ignored);
            }
        }
        let below = tops.last().and_then(|top| path.strip_prefix(top).ok()).unwrap_or(path);
        if is_generated(below) {
            return PathRank::of(ChangeRank::Generated);
        }
        PathRank::of(if has_index && is_understood { ChangeRank::Untracked } else { ChangeRank::Source })
    }

    /// The project and the repositories that a path is in, the outermost first. What is around the project does not count.
    fn tops_around(&mut self, path: &Path) -> Vec<PathBuf> {
        let project = self.project.clone().filter(|project| path.starts_with(project));
        let mut tops = Vec::new();
        let mut next = path.parent().and_then(|dir| self.top_of(dir));
        while let Some(top) = next {
            next = match &project {
                Some(project) if top.starts_with(project) && top != *project => {
                    top.parent().and_then(|above| self.top_of(above))
                }
                _ => None,
            };
            if project.as_ref().is_none_or(|project| top.starts_with(project)) {
                tops.push(top);
            }
        }
        if let Some(project) = project.filter(|project| !tops.contains(project)) {
            tops.push(project);
        }
        tops.reverse();
        tops
    }

    /// The top of the repository that a directory is in.
    fn top_of(&mut self, dir: &Path) -> Option<PathBuf> {
        if let Some(known) = self.tops.get(dir) {
            return known.clone();
        }
        let top =
            if self.is_top(dir) { Some(dir.to_owned()) } else { dir.parent().and_then(|above| self.top_of(above)) };
        self.tops.insert(dir.to_owned(), top.clone());
        top
    }

    fn is_top(&self, dir: &Path) -> bool {
        let git = dir.join(".git");
        self.before.locate(&git.join("HEAD")).is_some()
            || self.before.locate(&git).is_some_and(|file| file.symlink_metadata().is_ok_and(|meta| meta.is_file()))
    }

    fn repository(&mut self, top: &Path) -> &mut RankedRepository<'v> {
        let (before, shown, locate) = (self.before, self.shown, self.locate);
        let is_repository = self.is_top(top);
        self.repositories.entry(top.to_owned()).or_insert_with(|| {
            let rules = Rules::reading(top.to_owned(), shown, locate);
            let (tracked, has_index) = if is_repository { tracked(before, top) } else { (Some(HashSet::new()), false) };
            RankedRepository { tracked, has_index, rules, ignored: HashMap::new() }
        })
    }
}

impl RankedRepository<'_> {
    /// The outermost ignored directory that a directory is or is in.
    fn ignored_dir(&mut self, dir: &Path, top: &Path) -> Option<PathBuf> {
        if dir == top || !dir.starts_with(top) {
            return None;
        }
        if let Some(known) = self.ignored.get(dir) {
            return known.clone();
        }
        let above = dir.parent().and_then(|above| self.ignored_dir(above, top));
        let ignored = above.or_else(|| {
            let rule = self.rules.decide(dir, true);
            rule.is_some_and(|rule| !rule.keeps).then(|| dir.to_owned())
        });
        self.ignored.insert(dir.to_owned(), ignored.clone());
        ignored
    }
}

/// What a repository tracks, and whether it has an index at all.
fn tracked(before: &FileView, top: &Path) -> (Option<HashSet<PathBuf>>, bool) {
    let git = top.join(".git");
    let pointer = before.read(&git, POINTER_MAX).and_then(|text| String::from_utf8(text).ok());
    let dir = match pointer.as_deref().map(|text| text.lines().next().unwrap_or_default()) {
        Some(line) => top.join(line.trim_start_matches("gitdir:").trim()),
        None => git,
    };
    let Some(index) = before.locate(&dir.join("index")) else { return (Some(HashSet::new()), true) };
    let entries = index::files(&index);
    (entries.map(|entries| entries.into_iter().map(|entry| top.join(entry.path)).collect()), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn ranks(dir: &Path, paths: &[&str]) -> Vec<String> {
        let before = FileView::default();
        let shown = |path: &Path| crate::workspace::display(path.as_os_str());
        let locate = |path: &Path| before.locate(path);
        let mut ranking = Ranking::new(&before, Some(dir), &shown, &locate);
        let mut rank = |path: &&str| {
            let PathRank { rank, ignored_dir } = ranking.rank(&dir.join(path), false);
            let below = ignored_dir.map(|tree| format!(" in {}", tree.strip_prefix(dir).unwrap().display()));
            format!("{path} {rank:?}{}", below.unwrap_or_default())
        };
        paths.iter().map(&mut rank).collect()
    }

    fn git(dir: &Path, args: &[&str]) {
        let who = ["-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main"];
        let done = Command::new("git").arg("-C").arg(dir).args(who).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?} {}", String::from_utf8_lossy(&done.stderr));
    }

    fn file(dir: &Path, path: &str, content: &str) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    #[test]
    fn tracked_files_come_first_even_in_an_ignored_directory() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        file(&dir, ".gitignore", "node_modules/\n*.log\n/out\n");
        for path in ["src.py", "node_modules/patched.js", "dist/kept.js", "sub/a"] {
            file(&dir, path, "x");
        }
        git(&dir, &["init", "-q"]);
        git(&dir, &["add", "-f", "src.py", "node_modules/patched.js", "dist/kept.js"]);
        // A repository in an ignored directory.
        git(&dir, &["init", "-q", "out/inner"]);
        file(&dir, "out/inner/mine", "x");
        git(&dir.join("out/inner"), &["add", "mine"]);
        let paths = [
            "src.py",
            "new.py",
            "node_modules/patched.js",
            "node_modules/a/b.js",
            "a/node_modules/b.js",
            "dist/kept.js",
            "dist/new.js",
            "run.log",
            "deep/run.log",
            "out/inner/mine",
            "out/inner/other",
        ];
        insta::assert_snapshot!(ranks(&dir, &paths).join("\n"), @r"
        src.py Source
        new.py Untracked
        node_modules/patched.js Source
        node_modules/a/b.js Ignored in node_modules
        a/node_modules/b.js Ignored in a/node_modules
        dist/kept.js Source
        dist/new.js Generated
        run.log Ignored
        deep/run.log Ignored
        out/inner/mine Source
        out/inner/other Ignored in out
        ");
    }

    #[test]
    fn nothing_is_folded_where_the_index_is_not_understood() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        file(&dir, ".gitignore", "node_modules/\n");
        git(&dir, &["init", "-q"]);
        std::fs::write(dir.join(".git/index"), b"DIRC\0\0\0\x09xxxx").unwrap();
        assert_eq!(ranks(&dir, &["node_modules/a", "b"]), ["node_modules/a Ignored", "b Source"]);
    }

    #[test]
    fn a_project_without_a_repository_has_source_and_ignored_files() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        file(&dir, ".gitignore", "target/\n");
        assert_eq!(
            ranks(&dir, &["a", "target/b", "build/c"]),
            ["a Source", "target/b Ignored in target", "build/c Generated"]
        );
    }
}
