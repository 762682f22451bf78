//! Undoing calls by their ids, as callers ask for it.

use super::extent::{Extent, PartlyUndone};
use crate::confined::Terms;
use crate::halt::Halt;
use crate::pipeline::Haft;
use crate::tool::Staging;
use crate::undo::{ChangedFiles, InversePart, Standing};
use crate::{go_to, new_call_id, store_error, undo};
use haft_core::change::Change;
use haft_core::outcome::Undo;
use haft_core::record::Kind;
use haft_core::{CallError, CallId, path_text};
use haft_store::{Entry, StandingCalls, UndoCall, UndoStep};
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
        let standing = self.standing(call).await?;
        let (vault, workspace) = (self.vault.clone(), Arc::clone(&self.workspace));
        let work = move || {
            let shown = |path: &Path| workspace.shown(path);
            Ok(vault.inverse(&standing).whole(&standing.named.call, &shown).err())
        };
        crate::tool::off_thread(Halt::new(), work).await
    }

    /// A call, and the calls in which its changes stand. An error if they were taken back.
    async fn standing(&self, named: &CallId) -> Result<Standing, CallError> {
        let (call, steps) = self.undo_data(named).await?;
        let links = self.store.undo_links(&call.root).await.map_err(store_error)?;
        let named = ChangedFiles { call, steps };
        let StandingCalls { calls: ids, undone_by } = links.standing(&named.call.call_id);
        if let Some(by) = undone_by.filter(|_| ids.is_empty()) {
            return Err(CallError::conflict(format!("{} was undone already, by {by}", named.call.call_id)));
        }
        let mut calls = Vec::with_capacity(ids.len());
        for id in ids {
            if id == named.call.call_id {
                calls.push(named.clone());
            } else {
                let (call, steps) = self.undo_data(&id).await?;
                calls.push(ChangedFiles { call, steps });
            }
        }
        Ok(Standing { named, calls })
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
        let standing = self.standing(call).await?;
        self.is_undone_here(&standing)?;
        let mut held = Vec::new();
        for part in &standing.calls {
            held.push(self.vault.hold(&part.call.call_id)?);
        }
        let shown = |path: &Path| self.workspace.shown(path);
        let mut inverse = self.vault.inverse(&standing);
        let left: Vec<String> =
            inverse.stuck.iter().map(|stuck| format!("{}: {}", shown(&stuck.path), stuck.why)).collect();
        let parts = std::mem::take(&mut inverse.parts);
        let changes = match extent {
            Extent::Whole => inverse.whole(&standing.named.call, &shown)?,
            Extent::Partial => inverse.changes,
        };
        if changes.is_empty() && !left.is_empty() {
            return Err(CallError::conflict(format!("nothing of {call} can be restored: {}", left.join("; "))));
        }
        let id = new_call_id();
        // What is taken back of several calls is taken back of the one that they stand for.
        let undoes = match parts.iter().filter(|part| part.has_changes).collect::<Vec<_>>()[..] {
            [part] => part.call.clone(),
            _ => call.clone(),
        };
        let about = |said: &str| Entry::new(Kind::Undo).call(&id).with("undoes", undoes.as_str()).with("said", said);
        self.store.open_call(&id, "undo", about("intent")).await.map_err(store_error)?;
        // What could not be restored may be later, so such a call is not done with.
        let ended: Vec<CallId> = parts.iter().filter(|part| part.is_whole).map(|part| part.call.clone()).collect();
        let done = self.take_back((&id, &undoes), changes, parts).await;
        self.store.close_call(&id, about(if done.is_ok() { "done" } else { "failed" }));
        let undo = done?;
        for ended in &ended {
            self.store.mark_undone(ended, &id).await.map_err(store_error)?;
        }
        drop(held);
        self.tell_undone(call, &undo, &left).await;
        Ok(PartlyUndone { call_id: id, undo, left })
    }

    /// An error if a call has to be taken back in another project, or on another machine.
    fn is_undone_here(&self, standing: &Standing) -> Result<(), CallError> {
        let UndoCall { call_id, root: stored, .. } = &standing.named.call;
        let root = path_text::load(stored);
        if root != self.workspace.root() && Path::new(stored) != self.workspace.root() {
            let shown = path_text::show(root.as_os_str());
            return Err(CallError::conflict(format!("{call_id} belongs to the project {shown}"))
                .hint(format!("undo it there: {}", go_to(&root))));
        }
        // A store can be shared; files and what was in them cannot.
        let here = haft_store::host_name();
        let calls = standing.calls.iter().map(|part| &part.call);
        let mut elsewhere = calls.filter(|call| !self.vault.of(&call.call_id).exists()).filter_map(|call| {
            let host = call.host.as_ref().filter(|host| **host != here)?;
            Some((&call.call_id, host))
        });
        let Some((call, host)) = elsewhere.next() else { return Ok(()) };
        let message = format!("{call} changed files of {host}, and what was in them is kept there; this is {here}");
        Err(CallError::conflict(message).hint(format!("run `haft undo {call_id}` on {host}")))
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
        parts: Vec<InversePart>,
    ) -> Result<Undo, CallError> {
        let (vault, store, workspace) = (self.vault.clone(), self.store.clone(), Arc::clone(&self.workspace));
        let (id, undoes) = (id.clone(), undoes.clone());
        let work = move || {
            let shown = |path: &Path| workspace.shown(path);
            let kept = vault.carry_out(&store, (&id, Some(&undoes)), workspace.root(), &changes, &shown)?;
            let mut late = Vec::new();
            for part in parts {
                if part.is_whole {
                    undo::remove_dirs(&part.dirs);
                }
                late.extend(vault.release(&store, &part.call, &part.steps));
            }
            let files = changes.iter().map(|change| shown(change.path())).collect();
            let available = kept.gap.is_none();
            Ok(Undo { available, files, reason: undo::told(kept.gap, &late, &shown) })
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|crash| Err(CallError::internal(format!("undoing crashed: {crash}"))))
    }
}
