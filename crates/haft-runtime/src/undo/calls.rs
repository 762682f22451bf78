//! Undoing calls by their ids, as callers ask for it.

use super::extent::{Extent, PartlyUndone};
use crate::confined::Terms;
use crate::halt::Halt;
use crate::pipeline::Haft;
use crate::tool::Staging;
use crate::{go_to, new_call_id, store_error, undo};
use haft_core::change::Change;
use haft_core::outcome::Undo;
use haft_core::record::Kind;
use haft_core::{CallError, CallId, path_text};
use haft_store::{Entry, UndoCall, UndoStep};
use std::path::Path;
use std::sync::Arc;

impl Haft {
    /// Repairs what a process left half-made when it died in this call.
    pub async fn sweep(&self, call: &CallId) -> Result<(), CallError> {
        let found = self.store.undo_of(call).await.map_err(store_error).inspect_err(|error| {
            tracing::warn!(%call, error = %error.message, "what a call left that was cut off is not repaired");
        })?;
        // What another machine's process left is not here.
        let found = found.filter(|(undo, _)| undo.host.as_ref().is_none_or(|host| *host == haft_store::host_name()));
        if let Some((_, steps)) = found {
            self.vault.sweep(call, &steps);
        }
        let base = Terms::staging_base(&self.settings.data_dir);
        Staging::sweep(&base, call);
        if base != self.settings.data_dir {
            Staging::sweep(&self.settings.data_dir, call);
        }
        Ok(())
    }

    /// The call that somebody names: by its own id, or by that of a task that it started here.
    pub fn call_named(&self, text: &str) -> Result<CallId, CallError> {
        let of_task = || self.desk.named(text).map(|task| task.errand.call_id);
        let call = if text.starts_with("bg_") { of_task() } else { CallId::parse(text) };
        call.ok_or_else(|| CallError::invalid(format!("`{}` is no call and no task", haft_core::preview::inert(text))))
    }

    /// Why a call cannot be taken back as it stands now, if it cannot.
    pub(crate) async fn why_not_undone(&self, call: &CallId) -> Result<Option<CallError>, CallError> {
        let standing = self.store.standing_call(call).await.map_err(store_error)?;
        let (found, steps) = self.undo_data(&standing).await?;
        let (vault, workspace) = (self.vault.clone(), Arc::clone(&self.workspace));
        let work = move || {
            let shown = |path: &Path| workspace.shown(path);
            Ok(vault.inverse(&found, &steps)?.whole(&found, &shown).err())
        };
        crate::tool::off_thread(Halt::new(), work).await
    }

    pub(crate) async fn undo_data(&self, call: &CallId) -> Result<(UndoCall, Vec<UndoStep>), CallError> {
        let found = self.store.undo_of(call).await.map_err(store_error)?;
        found.ok_or_else(|| {
            CallError::not_found(format!("call {call} changed no files, or its undo data is gone"))
                .hint("`haft changes` lists the calls that did")
        })
    }

    /// Takes a call back, exactly, or refuses and says why. Taking back is itself a call that can be
    /// taken back.
    pub async fn undo(&self, call: &CallId) -> Result<(CallId, Undo), CallError> {
        self.undo_to(call, Extent::Whole).await.map(|undone| (undone.call_id, undone.undo))
    }

    /// Takes back what of a call can be taken back, and says what cannot.
    pub async fn undo_partly(&self, call: &CallId) -> Result<PartlyUndone, CallError> {
        self.undo_to(call, Extent::Partial).await
    }

    pub(crate) async fn undo_to(&self, call: &CallId, extent: Extent) -> Result<PartlyUndone, CallError> {
        if let Some((call_id, undo)) = self.undo_memory(call).await? {
            self.tell_undone(call, &undo, &[]).await;
            return Ok(PartlyUndone { call_id, undo, left: Vec::new() });
        }
        // Whose undo was undone was redone, under another id.
        let named = call;
        let call = &self.store.standing_call(named).await.map_err(store_error)?;
        let (found, steps) = self.undo_data(call).await?;
        let root = path_text::load(&found.root);
        if root != self.workspace.root() && Path::new(&found.root) != self.workspace.root() {
            let shown = path_text::show(root.as_os_str());
            return Err(CallError::conflict(format!("{call} belongs to the project {shown}"))
                .hint(format!("undo it there: {}", go_to(&root))));
        }
        // A store can be shared; files and what was in them cannot.
        if let Some(host) = found.host.as_ref().filter(|_| !self.vault.of(call).exists()) {
            let here = haft_store::host_name();
            if *host != here {
                let message =
                    format!("{call} changed files of {host}, and what was in them is kept there; this is {here}");
                return Err(CallError::conflict(message).hint(format!("run `haft undo {call}` on {host}")));
            }
        }
        let _held = self.vault.hold(call)?;
        let shown = |path: &Path| self.workspace.shown(path);
        let mut inverse = self.vault.inverse(&found, &steps)?;
        let stuck = std::mem::take(&mut inverse.stuck);
        let left: Vec<String> = stuck.iter().map(|stuck| format!("{}: {}", shown(&stuck.path), stuck.why)).collect();
        let restored = std::mem::take(&mut inverse.steps);
        let changes = match extent {
            Extent::Whole => {
                inverse.stuck = stuck;
                inverse.whole(&found, &shown)?
            }
            Extent::Partial => inverse.changes,
        };
        if changes.is_empty() && !left.is_empty() {
            return Err(CallError::conflict(format!("nothing of {call} can be restored: {}", left.join("; "))));
        }
        let id = new_call_id();
        let about = |said: &str| Entry::new(Kind::Undo).call(&id).with("undoes", call.as_str()).with("said", said);
        self.store.open_call(&id, "undo", about("intent")).await.map_err(store_error)?;
        let dirs = if left.is_empty() { found.dirs } else { Vec::new() };
        let done = self.take_back((&id, call), changes, dirs, restored).await;
        self.store.close_call(&id, about(if done.is_ok() { "done" } else { "failed" }));
        let undo = done?;
        // What could not be restored may be later, so the call is not done with.
        if left.is_empty() {
            self.store.mark_undone(call, &id).await.map_err(store_error)?;
        }
        self.tell_undone(named, &undo, &left).await;
        Ok(PartlyUndone { call_id: id, undo, left })
    }

    /// Has the conversation told that made the call. The files are as they are, whether or not that can be written down.
    async fn tell_undone(&self, call: &CallId, undo: &Undo, left: &[String]) {
        if let Err(error) = self.note_undone(call, undo, left).await {
            tracing::warn!(%call, error = %error.message, "the conversation is not told that its call was undone");
        }
    }

    async fn take_back(
        &self,
        (id, undoes): (&CallId, &CallId),
        changes: Vec<Change>,
        dirs: Vec<std::path::PathBuf>,
        steps: Vec<UndoStep>,
    ) -> Result<Undo, CallError> {
        let (vault, store, workspace) = (self.vault.clone(), self.store.clone(), Arc::clone(&self.workspace));
        let (id, undoes) = (id.clone(), undoes.clone());
        let work = move || {
            let shown = |path: &Path| workspace.shown(path);
            let kept = vault.carry_out(&store, (&id, Some(&undoes)), workspace.root(), &changes, &shown)?;
            undo::remove_dirs(&dirs);
            let late = vault.release(&store, &undoes, &steps);
            let files = changes.iter().map(|change| shown(change.path())).collect();
            let available = kept.gap.is_none();
            Ok(Undo { available, files, reason: undo::told(kept.gap, &late, &shown) })
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|crash| Err(CallError::internal(format!("undoing crashed: {crash}"))))
    }
}
