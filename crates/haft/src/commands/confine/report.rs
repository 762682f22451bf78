//! What `haft confine` says afterwards: at most a line for each thing that was refused, and a report for
//! who asked for one.

use crate::style;
use haft_core::change::{Change, State};
use haft_runtime::confined::Ran;
use haft_sandbox::net::Contact;
use haft_sandbox::watch::Hit;
use haft_sandbox::{End, Standing};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// One file and what became of it.
#[derive(Debug, Serialize)]
struct Touched {
    path: String,
    change: &'static str,
}

/// What came of a run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    level: haft_sandbox::Level,
    enforced: Standing,
    end: End,
    dry_run: bool,
    /// None if it wrote straight into the directories, where nobody keeps count.
    files: Option<Vec<Touched>>,
    hosts: Vec<Contact>,
    limits_hit: Vec<Hit>,
    refused: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<String>,
}

impl Report {
    pub(super) fn of(ran: &Ran, dry_run: bool, shown: &dyn Fn(&Path) -> String) -> Self {
        let touched = |change: &Change| Touched { path: shown(change.path()), change: verb(change) };
        let mut refused = ran.refusals();
        refused.extend(ran.warnings(shown));
        Self {
            level: ran.standing.level,
            enforced: ran.standing.clone(),
            end: ran.watched.end,
            dry_run,
            files: ran.diffed.as_ref().map(|diffed| diffed.changes.iter().map(touched).collect()),
            hosts: ran.contacts.clone(),
            limits_hit: ran.watched.hit.into_iter().collect(),
            refused,
            diff: None,
        }
    }

    /// Adds something that was refused.
    pub(super) fn refuse(&mut self, what: &str) {
        self.refused.push(what.to_owned());
        self.files = self.files.is_some().then(Vec::new);
    }

    /// Says what was refused, on stderr; and what a dry run would have changed.
    pub(super) fn tell(&self) {
        // What was refused because of a limit names it already.
        for hit in self.limits_hit.iter().filter(|_| self.refused.is_empty()) {
            style::warn(&format!("it was ended: it reached its limit of {}", hit.noun()));
        }
        if let Some((first, rest)) = self.refused.split_first() {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            style::warn(&format!("{first}{more}"));
        }
        if let Some(diff) = &self.diff {
            style::note(if diff.is_empty() { "nothing would be changed" } else { "what would be changed:" });
            style::note(&style::diff(diff));
        }
    }

    pub(super) fn write(&self, mut file: std::fs::File) -> std::io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        file.write_all(text.as_bytes())
    }
}

fn verb(change: &Change) -> &'static str {
    match change {
        Change::Place { before: State::Absent, .. } | Change::Write { before: State::Absent, .. } => "created",
        Change::Place { .. } | Change::Write { .. } => "changed",
        Change::Move { .. } => "moved",
        Change::Remove { .. } => "deleted",
        Change::Mode { .. } => "mode",
    }
}
