//! The files whose content decides what a command does, and the digests that bind a yes to them (guards against TOCTOU).
//!
//! Which files those are follows from the command's text (`shell/executed.rs`); what is in them is found out by the runtime.

use crate::preview::inert;
use crate::record::Digest;
use serde::{Deserialize, Serialize};

/// What stands for a file that a command names and that is not there.
const MISSING: &str = "missing";
/// What stands for a file that a program looks for by itself and that is not there.
const ABSENT: &str = "absent";
/// How much of a digest is shown in a line.
const DIGITS_SHOWN: usize = 12;

/// One file that a command runs, or that a program takes its instructions from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedFile {
    /// The path as people write it: relative inside the project.
    pub path: String,
    /// The digest of its content; none if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// Why there is no digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ExecutedFile {
    /// A file with this content.
    pub fn hashed(path: String, digest: Digest) -> Self {
        Self { path, sha256: Some(digest), note: None }
    }

    /// A file that a command names and that is not there.
    pub fn missing(path: String) -> Self {
        Self { path, sha256: None, note: Some(MISSING.to_owned()) }
    }

    /// A file that a program looks for by itself and that is not there.
    pub fn absent(path: String) -> Self {
        Self { path, sha256: None, note: Some(ABSENT.to_owned()) }
    }

    /// A file whose content could not be read, or was not, and why.
    pub fn unhashed(path: String, why: String) -> Self {
        Self { path, sha256: None, note: Some(why) }
    }

    /// Whether its content, or that it has none, is known.
    pub fn is_known(&self) -> bool {
        self.sha256.is_some() || matches!(self.note.as_deref(), Some(MISSING | ABSENT))
    }

    /// Its state in a few words.
    fn state(&self) -> String {
        match (&self.sha256, &self.note) {
            (Some(digest), _) => format!("sha256 {}", short(digest)),
            (None, Some(note)) if self.is_known() => note.clone(),
            (None, note) => format!("not hashed: {}", inert(note.as_deref().unwrap_or_default())),
        }
    }

    /// The path as it is spoken of.
    pub fn name(&self) -> String {
        let path = inert(&self.path);
        if path.starts_with(['/', '~']) { path } else { format!("./{path}") }
    }

    /// One line about it; none where it is only known not to be there.
    fn line(&self) -> Option<String> {
        let is_absent = self.note.as_deref() == Some(ABSENT);
        (!is_absent).then(|| format!("{} ({})", self.name(), self.state()))
    }
}

/// The beginning of a digest.
fn short(digest: &Digest) -> String {
    let mut digits = digest.to_string();
    digits.truncate(DIGITS_SHOWN);
    digits.push('…');
    digits
}

/// What came of trying a command when its question was stored. It only informs: a yes runs the command anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialResult {
    /// The basis of the question that it belongs to: of another one it says nothing.
    pub basis: String,
    /// What it printed.
    pub printed: String,
    /// What it would have changed, as a unified diff.
    pub diff: String,
    /// Why what it would have changed could not be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
    /// Why the trial did not come to its end, or how the command failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A file that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedFile {
    /// The path as people write it.
    pub path: String,
    /// What was there, in a few words.
    pub before: String,
    /// What is there now.
    pub now: String,
}

impl std::fmt::Display for ChangedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} → {})", self.path, self.before, self.now)
    }
}

/// Everything that a command runs, as far as it is known before it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedFiles {
    /// The files and their digests, in the order of their paths.
    pub files: Vec<ExecutedFile>,
    /// What it runs as well and a yes is not bound to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unbound: Vec<String>,
    /// Why not all of the files were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beyond: Option<String>,
}

impl ExecutedFiles {
    /// Whether nothing is known to be run but programs of the system's.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.unbound.is_empty() && self.beyond.is_none()
    }

    /// Why a yes cannot be bound to all of the files: one could not be read, or there are too many.
    pub fn gap(&self) -> Option<String> {
        let unknown = self.files.iter().find(|file| !file.is_known());
        self.beyond.clone().or_else(|| unknown.map(|file| format!("{} is {}", file.name(), file.state())))
    }

    /// The same with every text of the command's as somebody else has it.
    #[must_use]
    pub fn map_texts(mut self, text: &dyn Fn(String) -> String) -> Self {
        for file in &mut self.files {
            file.path = text(std::mem::take(&mut file.path));
        }
        self.unbound = self.unbound.into_iter().map(text).collect();
        self
    }

    /// What tells these files from others.
    pub fn identity(&self) -> String {
        serde_json::to_string(&(&self.files, &self.beyond)).unwrap_or_default()
    }

    /// What is run, a line each.
    pub fn lines(&self) -> Vec<String> {
        let files = self.files.iter().filter_map(ExecutedFile::line).map(|line| format!("runs {line}"));
        let beyond = self.beyond.iter().map(|why| format!("runs more than haft checks: {why}"));
        let unbound = self.unbound.iter().map(|what| format!("not covered by this approval: {}", inert(what)));
        files.chain(beyond).chain(unbound).collect()
    }

    /// What is not as it was.
    pub fn changed_since(&self, earlier: &[ExecutedFile]) -> Vec<ChangedFile> {
        let find = |files: &[ExecutedFile], path: &str| files.iter().find(|file| file.path == path).cloned();
        let state = |file: Option<ExecutedFile>| file.map_or_else(|| "not run".to_owned(), |file| file.state());
        let mut changed = Vec::new();
        for before in earlier {
            let now = find(&self.files, &before.path);
            if now.as_ref() != Some(before) {
                changed.push(ChangedFile { path: before.name(), before: before.state(), now: state(now) });
            }
        }
        for now in self.files.iter().filter(|now| find(earlier, &now.path).is_none()) {
            changed.push(ChangedFile { path: now.name(), before: state(None), now: now.state() });
        }
        changed
    }
}

/// What is not as it was, in one line.
pub fn described(changed: &[ChangedFile]) -> String {
    const SHOWN: usize = 8;
    let mut lines: Vec<String> = changed.iter().take(SHOWN).map(ToString::to_string).collect();
    if changed.len() > SHOWN {
        lines.push(format!("and {} more", changed.len() - SHOWN));
    }
    lines.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: Vec<ExecutedFile>) -> ExecutedFiles {
        ExecutedFiles { files, ..ExecutedFiles::default() }
    }

    #[test]
    fn lines_name_files_and_what_is_not_bound() {
        let mut run = files(vec![
            ExecutedFile::hashed("build.sh".to_owned(), Digest::of(b"x")),
            ExecutedFile::missing("/opt/lib.sh".to_owned()),
            ExecutedFile::absent("GNUmakefile".to_owned()),
        ]);
        run.unbound.push("the module `x`".to_owned());
        let digest = &Digest::of(b"x").to_string()[..12];
        let expected = [
            format!("runs ./build.sh (sha256 {digest}…)"),
            "runs /opt/lib.sh (missing)".to_owned(),
            "not covered by this approval: the module `x`".to_owned(),
        ];
        assert_eq!((run.lines(), run.gap()), (expected.to_vec(), None));
        run.files.push(ExecutedFile::unhashed("a".to_owned(), "permission denied".to_owned()));
        assert_eq!(run.gap().as_deref(), Some("./a is not hashed: permission denied"));
    }

    #[test]
    fn changes_name_both_digests_and_files_that_come_and_go() {
        let before = [ExecutedFile::hashed("a".to_owned(), Digest::of(b"1")), ExecutedFile::missing("b".to_owned())];
        let now = files(vec![
            ExecutedFile::hashed("a".to_owned(), Digest::of(b"2")),
            ExecutedFile::hashed("c".to_owned(), Digest::of(b"3")),
        ]);
        let changed = now.changed_since(&before);
        let [one, two, three] = [b"1", b"2", b"3"].map(|text| short(&Digest::of(text)));
        assert_eq!(
            described(&changed),
            format!("./a (sha256 {one} → sha256 {two}), ./b (missing → not run), ./c (not run → sha256 {three})")
        );
        assert!(now.changed_since(&now.files).is_empty());
    }
}
