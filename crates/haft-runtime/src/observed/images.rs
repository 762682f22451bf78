//! Before-images of files that an agent edits by itself, and what is there afterwards.

use super::expected::{ExpectedContent, expected_files};
use crate::pipeline::Haft;
use crate::store_error;
use crate::tool::off_thread;
use crate::undo::KeptFile;
use haft_core::change::State;
use haft_core::observed::ObservedTool;
use haft_core::outcome::Undo;
use haft_core::record::Digest;
use haft_core::{CallError, CallId, Checked, Facts};
use haft_sandbox::layer::stands;
use std::path::Path;
use std::sync::Arc;

impl Haft {
    /// Keeps what is there of each file that the call will touch, durably, before the agent makes it.
    pub(super) async fn keep_before_images(&self, checked: &Checked, facts: &Facts) -> Result<(), CallError> {
        let Some(observed) = ObservedTool::spoken(&checked.call().spoken) else { return Ok(()) };
        let files = expected_files(&observed, checked, facts).files.into_iter().map(|file| {
            // What cannot be foreseen is taken to change nothing, until it is known.
            let after = match &file.after {
                ExpectedContent::Content(content) => State::File { digest: Digest::of(content), mode: 0 },
                ExpectedContent::Absent => State::Absent,
                ExpectedContent::Unknown(_) => file.before.clone(),
            };
            KeptFile { path: file.path, before: file.before, after }
        });
        let files: Vec<KeptFile> = files.collect();
        if files.is_empty() {
            return Ok(());
        }
        let (vault, store, workspace) = (self.vault.clone(), self.store.clone(), Arc::clone(&self.workspace));
        let call = checked.call().id.clone();
        off_thread(crate::Halt::new(), move || {
            vault.keep_files(&store, &call, workspace.root(), &files)?;
            vault.forget(&store);
            Ok(())
        })
        .await
    }

    /// Looks at what an observed call left, and keeps it for undo. None if it changed nothing.
    pub(super) async fn note_after_images(&self, call: &CallId) -> Result<Option<Undo>, CallError> {
        let Some((kept, steps)) = self.store.undo_of(call).await.map_err(store_error)? else { return Ok(None) };
        let (vault, store, workspace) = (self.vault.clone(), self.store.clone(), Arc::clone(&self.workspace));
        let call = call.clone();
        off_thread(crate::Halt::new(), move || {
            let look =
                |path: &Path| stands(path).map_err(|error| crate::files::explain(&workspace.shown(path), &error));
            let now = steps.iter().map(|step| look(&step.path)).collect::<Result<Vec<State>, CallError>>()?;
            let changed: Vec<String> = steps
                .iter()
                .zip(&now)
                .filter(|(step, now)| step.before != **now)
                .map(|(step, _)| workspace.shown(&step.path))
                .collect();
            if changed.is_empty() {
                vault.drop(&store, &call);
                return Ok(None);
            }
            store.note_undo_after_blocking(&call, now).map_err(store_error)?;
            Ok(Some(Undo { available: kept.gap.is_none(), files: changed, reason: kept.gap.clone() }))
        })
        .await
    }

    /// Forgets what was kept for an observed call whose agent ended, if the call changed nothing.
    pub async fn forget_unchanged(&self, call: &CallId) -> Result<(), CallError> {
        let Some((_, steps)) = self.store.undo_of(call).await.map_err(store_error)? else { return Ok(()) };
        let (vault, store, call) = (self.vault.clone(), self.store.clone(), call.clone());
        off_thread(crate::Halt::new(), move || {
            if steps.iter().all(|step| stands(&step.path).is_ok_and(|now| now == step.before)) {
                vault.drop(&store, &call);
            }
            Ok(())
        })
        .await
    }
}
