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
        Ok((Undo { available: kept.gap.is_none(), files, reason: kept.gap }, notes))
    }
}
