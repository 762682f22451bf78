//! Changes in the order in which a person reads them: tracked and other source files first, then untracked ones, commits,
//! generated files, and at the end a line for each ignored directory.
//!
//! What is approved has to be seen first. A command that installs packages changes thousands of files that nobody reads, and
//! one that somebody has to read. Every door shows this one value: as text ([`RankedChanges::listing`]) or as JSON.

use haft_core::preview::size;
use serde::Serialize;

/// How many files of a folded directory its line names.
const NAMED_IN_LINE: usize = 3;
/// How much of a commit's hash is shown.
const HASH_SHOWN: usize = 12;

/// How early a changed path is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeRank {
    /// A tracked file, or an ordinary file outside any repository.
    Source,
    /// A file that the repository does not track.
    Untracked,
    /// A file in a directory that tools fill, such as `dist`.
    Generated,
    /// A file that a `.gitignore` names.
    Ignored,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathChange {
    /// It is new.
    Added,
    /// It is another one than before.
    Modified,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed,
}

impl PathChange {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
        }
    }
}

/// A changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankedPath {
    /// Its name, as a person writes it.
    pub path: String,
    /// What happened to it.
    pub change: PathChange,
    /// Its new name, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// How early it is shown.
    pub rank: ChangeRank,
}

impl RankedPath {
    fn line(&self) -> String {
        let to = self.to.as_ref().map(|to| format!(" -> {to}")).unwrap_or_default();
        format!("# {} {}{to}", self.change.as_str(), self.path)
    }
}

/// A new commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommitSummary {
    /// Its hash.
    pub hash: String,
    /// The first line of its message.
    pub subject: String,
}

/// A branch, a tag, or the head of a repository that names another commit than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReferenceMove {
    /// Its name.
    pub name: String,
    /// The commit or the reference that it named. None: it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The commit or the reference that it names now. None: it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The first line of that commit's message, where it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl ReferenceMove {
    fn line(&self) -> String {
        let short = |hash: &String| hash.get(..HASH_SHOWN).filter(|_| !hash.contains(' ')).unwrap_or(hash).to_owned();
        let subject = self.subject.as_ref().map(|subject| format!(" {subject}")).unwrap_or_default();
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => format!("# reference {}: {} -> {}{subject}", self.name, short(from), short(to)),
            (None, Some(to)) => format!("# new reference {}: {}{subject}", self.name, short(to)),
            (from, None) => {
                let from = from.as_ref().map(short).unwrap_or_default();
                format!("# deleted reference {}: it was {from}", self.name)
            }
        }
    }
}

/// Why the files of a directory are not named one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FoldReason {
    /// A `.gitignore` names it.
    Ignored,
    /// It holds git's objects, index and logs; what they mean is shown as commits and references.
    GitData,
}

/// A directory whose files are one line until somebody opens it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoldedTree {
    /// The directory, as a person writes it.
    pub path: String,
    /// Why it is folded.
    pub reason: FoldReason,
    /// How many of its files were added, modified or deleted.
    pub files: usize,
    /// How large these are, or were if they are gone.
    pub bytes: u64,
    /// These files, for whoever opens it.
    #[serde(skip)]
    pub contents: Vec<FoldedFile>,
}

/// A file in a folded directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedFile {
    /// Its name, as a person writes it.
    pub path: String,
    /// What happened to it.
    pub change: PathChange,
    /// How large it is, or was if it is gone.
    pub bytes: u64,
}

impl FoldedTree {
    fn line(&self) -> String {
        let what = match self.reason {
            FoldReason::Ignored => "ignored",
            FoldReason::GitData => "git data",
        };
        let kinds = [PathChange::Added, PathChange::Modified, PathChange::Deleted];
        let counts = kinds.into_iter().filter_map(|kind| {
            let count = self.contents.iter().filter(|file| file.change == kind).count();
            (count > 0).then(|| format!("{count} {}", kind.as_str()))
        });
        let counts: Vec<String> = counts.collect();
        let files = if self.files == 1 { "1 file".to_owned() } else { format!("{} files", self.files) };
        let bytes = size(usize::try_from(self.bytes).unwrap_or(usize::MAX));
        let mut line = format!("# {what} {}/: {files} ({}), {bytes}", self.path, counts.join(", "));
        if self.reason == FoldReason::Ignored && self.contents.len() <= NAMED_IN_LINE {
            let names: Vec<&str> = self.contents.iter().map(|file| file.path.as_str()).collect();
            line.push_str(&format!(": {}", names.join(", ")));
        }
        line
    }

    /// Its files, a line each.
    pub fn opened(&self) -> Vec<String> {
        let line = |file: &FoldedFile| {
            let bytes = size(usize::try_from(file.bytes).unwrap_or(usize::MAX));
            format!("# {} {}, {bytes}", file.change.as_str(), file.path)
        };
        self.contents.iter().map(line).collect()
    }
}

/// Changes as every door shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RankedChanges {
    /// Every changed path that is in no folded directory, however many there are.
    pub paths: Vec<RankedPath>,
    /// The new commits, the newest first.
    pub commits: Vec<CommitSummary>,
    /// The references that moved.
    pub references: Vec<ReferenceMove>,
    /// The folded directories.
    pub folded: Vec<FoldedTree>,
}

impl RankedChanges {
    /// A line for each path, commit, reference and folded directory, in this order.
    pub fn listing(&self) -> Vec<String> {
        let of_ranks = |wanted: &'static [ChangeRank]| {
            self.paths.iter().filter(move |path| wanted.contains(&path.rank)).map(RankedPath::line)
        };
        let commit = |commit: &CommitSummary| {
            let hash = commit.hash.get(..HASH_SHOWN).unwrap_or(&commit.hash);
            format!("# commit {hash} {}", commit.subject)
        };
        of_ranks(&[ChangeRank::Source, ChangeRank::Untracked])
            .chain(self.commits.iter().map(commit))
            .chain(self.references.iter().map(ReferenceMove::line))
            .chain(of_ranks(&[ChangeRank::Generated, ChangeRank::Ignored]))
            .chain(self.folded.iter().map(FoldedTree::line))
            .collect()
    }

    /// The names of all of this: paths, and folded directories with a slash at their end.
    pub fn names(&self) -> Vec<String> {
        let folded = self.folded.iter().map(|tree| format!("{}/", tree.path));
        self.paths.iter().map(|path| path.path.clone()).chain(folded).collect()
    }

    /// Whether a single path says everything, so that its diff needs no list before it.
    pub(crate) fn is_one_path(&self) -> bool {
        self.paths.len() <= 1 && self.commits.is_empty() && self.references.is_empty() && self.folded.is_empty()
    }

    /// Lets somebody alter every text, for example to mask secrets.
    pub(crate) fn each_text(&mut self, alter: &dyn Fn(&mut String)) {
        for path in &mut self.paths {
            alter(&mut path.path);
            path.to.iter_mut().for_each(alter);
        }
        self.commits.iter_mut().for_each(|commit| alter(&mut commit.subject));
        for reference in &mut self.references {
            alter(&mut reference.name);
            let texts = [&mut reference.from, &mut reference.to, &mut reference.subject];
            texts.into_iter().flatten().for_each(alter);
        }
        for tree in &mut self.folded {
            alter(&mut tree.path);
            tree.contents.iter_mut().for_each(|file| alter(&mut file.path));
        }
    }
}

/// Changes as they are shown: their names in order, and their differences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ChangeView {
    /// The names.
    pub ranked: RankedChanges,
    /// The names, where there are several, and then the unified diffs, as far as there is room for them.
    pub diff: String,
}

impl ChangeView {
    /// Lets somebody alter every text, for example to mask secrets.
    pub(crate) fn each_text(&mut self, alter: &dyn Fn(&mut String)) {
        alter(&mut self.diff);
        self.ranked.each_text(alter);
    }
}
