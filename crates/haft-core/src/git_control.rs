//! What a repository may contain after a confined command. Git runs programs that its configuration, hooks and todo lists name,
//! so these files are judged by what is in them: settings that run nothing and redirect nobody are kept, anything else is left as
//! it was. What cannot be read as git reads it is not kept.

mod config;
mod index;

pub use config::judge_config;

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Larger control files are not kept.
pub const CONTROL_FILE_MAX: u64 = 1 << 20;
/// The same of an index, which names every file.
pub const INDEX_MAX: u64 = 256 << 20;
/// What git takes for blank.
const BLANKS: &[char] = &[' ', '\t', '\r', '\n'];

/// The strategies of merging that are git's own. Another name would be that of a program.
const STRATEGIES: &[&str] = &["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

/// A file in a repository that decides what git runs or where it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitControl {
    /// Settings.
    Config,
    /// A hook, or a sample of one.
    Hook {
        /// Whether git never runs it, because of its name.
        is_sample: bool,
    },
    /// The commands that a rebase or a sequence of picks has still to do.
    Todo,
    /// The options of a sequence of picks, in the form of settings.
    SequencerOptions,
    /// The name of a strategy of merging.
    Strategy,
    /// What a rebase or a sequence of picks notes about itself.
    Progress,
    /// Which repository this one is a part of.
    CommonDir,
    /// Where a repository or a work tree is.
    Link,
    /// Attributes of files, which choose filters.
    Attributes,
    /// The list of files, by which git writes them.
    Index,
    /// The files in which a merge has conflicts that git remembers.
    MergeRecords,
    /// What nobody has to change: remotes of an older form, other stores of objects.
    Closed,
}

impl GitControl {
    /// How large such a file may be.
    pub fn max_bytes(self) -> u64 {
        if self == Self::Index { INDEX_MAX } else { CONTROL_FILE_MAX }
    }
}

/// Why a control file is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRefusal {
    /// In which line, if one of it is to blame.
    pub line: Option<usize>,
    /// What it would do.
    pub why: String,
}

impl std::fmt::Display for GitRefusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(out, "line {line}: {}", self.why),
            None => out.write_str(&self.why),
        }
    }
}

impl GitRefusal {
    fn whole(why: impl Into<String>) -> Self {
        Self { line: None, why: why.into() }
    }

    fn at(line: usize, why: impl Into<String>) -> Self {
        Self { line: Some(line), why: why.into() }
    }
}

/// A control file, where it is and what is in it.
#[derive(Debug, Clone, Copy)]
pub struct ControlFile<'f> {
    /// Which kind of file.
    pub control: GitControl,
    /// The path of the file.
    pub path: &'f Path,
    /// The directory in which commands may write.
    pub root: &'f Path,
    /// What was in it before the command; empty if there was no such file.
    pub before: &'f [u8],
    /// What is in it now.
    pub after: &'f [u8],
    /// Whether an absolute path leads to a directory outside the root, whatever links are on the way to it.
    pub leads_outside: fn(&Path, &Path) -> bool,
}

impl GitControl {
    /// What a path inside `.git` is, by its names in lower case. None: git runs nothing because of it.
    pub fn of(inside: &[&str]) -> Option<Self> {
        match inside {
            [] | ["worktrees", _, "gitdir"] => Some(Self::Link),
            ["config" | "config.worktree"] => Some(Self::Config),
            ["hooks"] => Some(Self::Hook { is_sample: false }),
            ["hooks", rest @ ..] => {
                let is_sample = rest.len() == 1 && rest.iter().all(|name| name.ends_with(".sample"));
                Some(Self::Hook { is_sample })
            }
            ["index"] => Some(Self::Index),
            [name] if name.starts_with("sharedindex.") => Some(Self::Index),
            ["merge_rr"] => Some(Self::MergeRecords),
            ["rebase-merge", "git-rebase-todo"] | ["sequencer", "todo"] => Some(Self::Todo),
            ["rebase-merge", "strategy"] => Some(Self::Strategy),
            ["sequencer", "opts"] => Some(Self::SequencerOptions),
            ["rebase-merge" | "rebase-apply" | "sequencer"] | ["rebase-merge" | "rebase-apply" | "sequencer", _] => {
                Some(Self::Progress)
            }
            ["worktrees", _, "commondir"] => Some(Self::CommonDir),
            ["worktrees", _, rest @ ..] if !rest.is_empty() => Self::of(rest),
            ["modules", rest @ ..] => Self::of_nested(rest),
            ["info", "attributes", ..] => Some(Self::Attributes),
            // Deeper than where git looks for them these names mean nothing, and are not let pass either.
            [
                "config" | "config.worktree" | "commondir" | "gitdir" | "remotes" | "branches" | "rebase-merge"
                | "rebase-apply" | "sequencer",
                _,
                ..,
            ]
            | ["commondir" | "gitdir"]
            | ["objects", "info", "alternates" | "http-alternates", ..] => Some(Self::Closed),
            _ => None,
        }
    }

    /// The same below `modules`, where the names of submodules come first: whatever a name could mean behind any of the names
    /// before it counts, and the most closed of that.
    fn of_nested(inside: &[&str]) -> Option<Self> {
        let meanings: Vec<Self> = (0..inside.len()).filter_map(|at| Self::of(&inside[at..])).collect();
        match meanings.as_slice() {
            [] => None,
            [one] => Some(*one),
            _ => Some(Self::Closed),
        }
    }
}

impl ControlFile<'_> {
    /// Whether the file may be kept.
    pub fn judge(&self) -> Result<(), GitRefusal> {
        if self.before == self.after {
            return Ok(());
        }
        match self.control {
            GitControl::Hook { is_sample: true } | GitControl::Progress => Ok(()),
            GitControl::Hook { is_sample: false } => Err(GitRefusal::whole("git runs it as a hook")),
            GitControl::Attributes => Err(GitRefusal::whole("it chooses which filters git runs")),
            GitControl::Closed => Err(GitRefusal::whole("git may believe what stands there")),
            GitControl::Index => index::judge(self.after),
            GitControl::MergeRecords => judge_merge_records(self.after),
            GitControl::Config => judge_config(self),
            GitControl::Todo => judge_todo(self.text()?),
            GitControl::Strategy => match self.text()?.trim_matches(BLANKS) {
                name if STRATEGIES.contains(&name) => Ok(()),
                name => Err(GitRefusal::at(1, format!("`{}` would be run as a merge strategy", shown(name)))),
            },
            GitControl::SequencerOptions => config::judge_sequencer_options(self.text()?),
            GitControl::CommonDir => match self.text()?.trim_end_matches(BLANKS) {
                "../.." => Ok(()),
                other => Err(GitRefusal::at(1, format!("it makes `{}` the repository", shown(other)))),
            },
            GitControl::Link => self.judge_link(),
        }
    }

    fn text(&self) -> Result<&str, GitRefusal> {
        let text = std::str::from_utf8(self.after).map_err(|_| GitRefusal::whole("it is not text"))?;
        let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if text.contains(is_odd) { Err(GitRefusal::whole("it has control characters in it")) } else { Ok(text) }
    }

    /// A link leads to a repository or a work tree inside the root, or it is not kept.
    fn judge_link(&self) -> Result<(), GitRefusal> {
        let text = self.text()?.trim_end_matches(['\n', '\r']);
        // A `.git` file says `gitdir:`; the file `gitdir` of a work tree says where that file is.
        let is_git_file = self.path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
        let target = if is_git_file { text.strip_prefix("gitdir: ") } else { Some(text) };
        let Some(target) = target.filter(|target| !target.is_empty() && !target.contains('\n')) else {
            return Err(GitRefusal::at(1, "it does not say where a repository is"));
        };
        let from = self.path.parent().unwrap_or(self.root);
        let place = lexical(&from.join(target));
        if place.starts_with(self.root) && is_repository(&place) {
            return Ok(());
        }
        Err(GitRefusal::at(1, format!("it leads to `{}`, which is no repository of the project", shown(target))))
    }
}

/// Whether a path is that of a repository of which every control file is judged: any other directory inside `.git` could be filled
/// with what looks like a repository.
fn is_repository(place: &Path) -> bool {
    let names: Vec<&OsStr> = place.components().map(Component::as_os_str).collect();
    let after_git = names.iter().rposition(|name| *name == ".git").map(|at| &names[at + 1..]);
    after_git.is_some_and(|inside| inside.first().is_none_or(|first| *first == "modules" || *first == "worktrees"))
}

/// A todo list may do everything but run commands.
fn judge_todo(text: &str) -> Result<(), GitRefusal> {
    const COMMANDS: &[&str] = &[
        "pick",
        "p",
        "reword",
        "r",
        "edit",
        "e",
        "squash",
        "s",
        "fixup",
        "f",
        "drop",
        "d",
        "break",
        "b",
        "label",
        "l",
        "reset",
        "t",
        "merge",
        "m",
        "update-ref",
        "u",
        "noop",
        "revert",
    ];
    for (number, line) in text.lines().enumerate() {
        let word = line.split(BLANKS).find(|word| !word.is_empty()).unwrap_or_default();
        if !word.is_empty() && !word.starts_with('#') && !COMMANDS.contains(&word) {
            return Err(GitRefusal::at(number + 1, format!("git would run `{}`", shown(line.trim()))));
        }
    }
    Ok(())
}

/// What git remembers of a merge: each record names a file that it will read and write.
fn judge_merge_records(content: &[u8]) -> Result<(), GitRefusal> {
    for record in content.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        let mut halves = record.splitn(2, |byte| *byte == b'\t');
        let is_id = |id: &[u8]| {
            let mut parts = id.splitn(2, |byte| *byte == b'.');
            parts.next().is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
                && parts.next().is_none_or(|number| number.iter().all(u8::is_ascii_digit))
        };
        if !(halves.next().is_some_and(is_id) && halves.next().is_some_and(index::is_inside)) {
            return Err(GitRefusal::whole("it names a file that is not in the work tree"));
        }
    }
    Ok(())
}

/// A path without `.` and `..`, as it is written: no link is followed.
fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

fn shown(text: &str) -> String {
    crate::preview::cut(&crate::preview::inert(text), 80)
}

#[cfg(test)]
mod tests;
