//! Making changes real: whether they may be made, what was there before, and then all of them or none. Used
//! by calls that wait for it, and by whoever keeps a task in the background.

use crate::apply;
use crate::tool::Staging;
use crate::undo::Vault;
use crate::workspace::Workspace;
use haft_core::change::Change;
use haft_core::outcome::Undo;
use haft_core::{CallError, CallId, ErrorKind, Policy, SessionId, ToolName};
use haft_store::Store;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Makes changes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Maker {
    pub(crate) vault: Vault,
    pub(crate) store: Store,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) policy: Arc<Policy>,
}

impl Maker {
    /// What is let through unasked must be able to be taken back: afterwards is too late to say that it cannot.
    pub(crate) fn revocable(&self, changes: &[Change]) -> Result<(), CallError> {
        let Some(gap) = self.vault.gap(changes) else { return Ok(()) };
        Err(CallError::conflict(format!("nothing was changed, because it could not be taken back: {gap}"))
            .hint("raise undo.max_file_bytes or undo.max_total_bytes, or let a person decide"))
    }

    /// The same for what a person let through without having seen what it changes.
    pub(crate) fn revocable_unseen(&self, changes: &[Change]) -> Result<(), CallError> {
        // Whoever turned undo off wants to change files all the same.
        let Some(gap) = self.vault.gap(changes).filter(|_| !self.vault.is_off()) else { return Ok(()) };
        let message = format!(
            "nothing was changed: whoever approved it has not seen that what it changes could not be taken back: {gap}"
        );
        Err(CallError::conflict(message)
            .hint("try it before it is approved, which shows what it changes, or raise undo.max_file_bytes"))
    }

    /// What was let through because it only reads must not have changed anything. If it has, the judgement was
    /// wrong, and nothing of it stays.
    pub(crate) fn unchanged(&self, changes: &[Change]) -> Result<(), CallError> {
        let Some(first) = changes.first() else { return Ok(()) };
        let shown = self.workspace.shown(first.path());
        let message = format!("it was let through because it only reads, and it changed {shown}; nothing was kept");
        Err(CallError::new(ErrorKind::Denied, message).hint("run it again with somebody to ask, or allow it by a rule"))
    }

    /// Whether no floor rule forbids changes at these places.
    pub(crate) fn permitted(&self, tool: &ToolName, changes: &[Change]) -> Result<(), CallError> {
        let paths = changes.iter().flat_map(apply::touched);
        let texts: Vec<String> =
            paths.flat_map(|path| [self.workspace.shown(&path), path.to_string_lossy().into_owned()]).collect();
        match self.policy.forbidden(tool, &texts) {
            Some(rule) if rule.args.is_some() => {
                Err(CallError::new(ErrorKind::Denied, format!("{} (by floor); nothing was changed", rule.reason)))
            }
            _ => Ok(()),
        }
    }

    /// What a command of the session's own made of files that the session has seen is no news to it.
    fn note_own_changes(&self, session: &SessionId, changes: &[Change]) {
        let written_whole = |change: &Change| matches!(change, Change::Write { .. });
        if changes.iter().all(written_whole) {
            return;
        }
        // If it cannot be noted, the model is told that the files have changed: too much, and nothing wrong.
        let Ok(mut seen) = self.store.seen_files_blocking(session) else { return };
        if seen.is_empty() {
            return;
        }
        let mut places: BTreeSet<&Path> = changes.iter().map(|change| change.path().as_path()).collect();
        places.extend(changes.iter().filter_map(|change| match change {
            Change::Move { to, .. } => Some(to.as_path()),
            _ => None,
        }));
        seen.retain(|file| file.path.ancestors().any(|place| places.contains(place)));
        let mut known = crate::seen::changed(&seen, &|path| self.workspace.shown(path));
        for change in &mut known {
            change.text = None;
        }
        if !known.is_empty() {
            let _ = self.store.note_changes_blocking(session, known);
        }
    }

    /// Keeps what is there, then makes the changes. Returns how to take them back, and what they do not keep.
    /// What is staged has to stay until it is placed.
    pub(crate) fn make(
        &self,
        (call, session): (&CallId, &SessionId),
        changes: &[Change],
        _staging: Option<Arc<Staging>>,
    ) -> Result<(Undo, Vec<String>), CallError> {
        let shown = |path: &Path| self.workspace.shown(path);
        let notes = apply::notes(changes, &shown);
        let files = apply::ordered_names(
            changes,
            apply::Viewer { project: Some(self.workspace.root()), shown: &shown, under: None },
        );
        let kept = self.vault.carry_out(&self.store, (call, None), self.workspace.root(), changes, &shown)?;
        self.vault.forget(&self.store);
        for (path, sighting) in apply::sightings(changes) {
            self.store.note_sighting(session.clone(), path, sighting);
        }
        self.note_own_changes(session, changes);
        Ok((Undo { available: kept.gap.is_none(), files, reason: kept.gap }, notes))
    }
}
