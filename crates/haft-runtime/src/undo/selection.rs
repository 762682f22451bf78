//! Which calls changed files, what they changed, and taking back the calls of a selection.

use super::extent::{CallUndone, ChangeEntry, Extent, LastUndoable, PartlyUndone, PassedOver, SelectionUndone};
use crate::apply::{self, Viewer};
use crate::halt::Halt;
use crate::pipeline::Haft;
use crate::ranked_changes::{ChangeView, RankedChanges};
use crate::store_error;
use haft_core::{CallError, CallId, path_text};
use haft_store::{ChangingCall, UndoCall, UndoLinks, UndoSelection};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// How many calls a selection holds at the most.
const SELECTED_MAX: u32 = 10_000;
/// How many paths of each call are looked at for a list.
const LISTED_PATHS: u32 = 1000;
/// How many calls `undo --last` passes over.
const PASSED_OVER_MAX: usize = 50;

/// What a call changed.
#[derive(Debug, Clone, Serialize)]
pub struct Changed {
    /// Which call.
    pub call_id: CallId,
    /// When, in milliseconds of the Unix epoch.
    pub at_ms: i64,
    /// The files.
    pub files: Vec<String>,
    /// Their names in the order in which they have to be seen.
    pub ranked: RankedChanges,
    /// The same names, and the diffs from what was there before to what is there now.
    pub diff: String,
    /// Whether and by whom it was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<String>,
    /// Why it cannot be taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

impl Haft {
    /// What a call changed.
    pub async fn changes(&self, call: &CallId) -> Result<Changed, CallError> {
        self.changes_under(call, None).await
    }

    /// What a call changed at or below a path of the project. A folded directory that the path names is opened.
    pub async fn changes_under(&self, call: &CallId, path: Option<&str>) -> Result<Changed, CallError> {
        let (mut found, steps) = self.undo_data(call).await?;
        let links = self.links().await?;
        found.undone_by = undone_by(&links, &found);
        let under = path.map(|path| self.workspace.lexical_path(path)).transpose()?;
        let (vault, workspace) = (self.vault.clone(), Arc::clone(&self.workspace));
        let draw = move || {
            let shown = |path: &Path| workspace.shown(path);
            let viewer = Viewer { project: Some(workspace.root()), shown: &shown, under: under.as_deref() };
            let ChangeView { ranked, diff } = super::changes(&vault, &found, &steps, viewer);
            if let Some(under) = under.as_ref().filter(|_| diff.is_empty()) {
                return Err(CallError::not_found(format!("{} changed nothing at {}", found.call_id, shown(under)))
                    .hint(format!("`haft changes {}` names what it changed", found.call_id)));
            }
            let steps = steps.into_iter().map(|step| (step.path, step.before.is_tree() || step.after.is_tree()));
            let of_interest = |path: &Path| under.as_ref().is_none_or(|under| path.starts_with(under));
            let paths = steps.filter(|(path, _)| of_interest(path)).collect();
            Ok(Changed {
                call_id: found.call_id,
                at_ms: found.at_ms,
                files: apply::ordered_lists(vec![paths], viewer).pop().unwrap_or_default(),
                ranked,
                diff,
                undone_by: found.undone_by,
                gap: found.gap,
            })
        };
        crate::tool::off_thread(Halt::new(), draw).await
    }

    /// The selected calls that changed files in this project, latest first, with what the log says of them.
    pub async fn change_entries(&self, selection: UndoSelection, limit: u32) -> Result<Vec<ChangeEntry>, CallError> {
        let found = self.store.changing_calls(self.workspace.root(), selection, (limit, LISTED_PATHS)).await;
        let mut found = found.map_err(store_error)?;
        let links = self.links().await?;
        for entry in &mut found {
            entry.call.undone_by = undone_by(&links, &entry.call);
        }
        let workspace = Arc::clone(&self.workspace);
        let list = move || {
            let shown = |path: &Path| workspace.shown(path);
            let viewer = Viewer { project: Some(workspace.root()), shown: &shown, under: None };
            let lists = found.iter().map(|call| call.paths.iter().map(|path| (path.clone(), path.is_dir())).collect());
            let names = apply::ordered_lists(lists.collect(), viewer);
            Ok(found.into_iter().zip(names).map(|(call, files)| change_entry(call, files)).collect())
        };
        crate::tool::off_thread(Halt::new(), list).await
    }

    /// The latest of the selected calls that was not taken back.
    pub async fn last_change(&self, selection: UndoSelection) -> Result<CallId, CallError> {
        let recent = self.undoable(selection).await?;
        let last = recent.into_iter().next();
        last.ok_or_else(|| CallError::not_found("no call of this selection changed files that were not restored since"))
    }

    /// The selected calls that changed files and were not taken back, the latest first.
    async fn undoable(&self, selection: UndoSelection) -> Result<Vec<CallId>, CallError> {
        let found = self.store.undoable(self.workspace.root(), selection, SELECTED_MAX).await.map_err(store_error)?;
        let links = self.links().await?;
        let open = found.into_iter().filter(|call| call.undoes.is_none() && undone_by(&links, call).is_none());
        Ok(open.map(|call| call.call_id).collect())
    }

    async fn links(&self) -> Result<UndoLinks, CallError> {
        let root = path_text::store(self.workspace.root());
        self.store.undo_links(&root).await.map_err(store_error)
    }

    /// Takes back all selected calls, the latest first, and says which cannot be.
    pub async fn undo_selection(
        &self,
        selection: UndoSelection,
        is_partial: bool,
    ) -> Result<SelectionUndone, CallError> {
        let extent = if is_partial { Extent::Partial } else { Extent::Whole };
        let (mut undone, mut passed_over) = (Vec::new(), Vec::new());
        for call in self.undoable(selection).await? {
            match self.undo_to(&call, extent).await {
                Ok(PartlyUndone { call_id, undo, left }) => {
                    undone.push(CallUndone { undone: call, call_id, files: undo.files, left, reason: undo.reason });
                }
                Err(error) => passed_over.push(PassedOver::new(call, error)),
            }
        }
        if undone.is_empty() {
            return Err(nothing_undoable(&passed_over));
        }
        Ok(SelectionUndone { undone, passed_over })
    }

    /// The latest of the selected calls that can be taken back, and which later ones cannot.
    pub async fn last_undoable(&self, selection: UndoSelection) -> Result<LastUndoable, CallError> {
        let mut passed_over = Vec::new();
        for call_id in self.undoable(selection).await? {
            match self.why_not_undone(&call_id).await? {
                None => return Ok(LastUndoable { call_id, passed_over }),
                Some(error) => passed_over.push(PassedOver::new(call_id, error)),
            }
            if passed_over.len() >= PASSED_OVER_MAX {
                break;
            }
        }
        Err(nothing_undoable(&passed_over))
    }
}

/// What has undone a call, if none of its changes stand again because that was undone in turn.
fn undone_by(links: &UndoLinks, call: &UndoCall) -> Option<String> {
    call.undone_by.as_ref()?;
    links.standing(&call.call_id).undone_by
}

/// Why nothing is taken back.
fn nothing_undoable(passed_over: &[PassedOver]) -> CallError {
    let error = CallError::not_found("no selected call in this project can be undone");
    let Some(latest) = passed_over.first() else {
        return error.hint("`haft changes` lists the calls that changed files, with their sessions");
    };
    let message = format!("{}; the latest is {}: {}", error.message, latest.call_id, latest.reason);
    let error = CallError::not_found(message);
    match &latest.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn change_entry(found: ChangingCall, files: Vec<String>) -> ChangeEntry {
    let ChangingCall { call, tool, session, turn, args, path_count, .. } = found;
    ChangeEntry {
        call_id: call.call_id,
        at_ms: call.at_ms,
        tool: tool.unwrap_or_else(|| if call.undoes.is_some() { "undo" } else { "unknown" }.to_owned()),
        command: haft_core::preview::command(&args),
        files,
        file_count: path_count,
        session,
        turn,
        bytes: call.bytes,
        undoes: call.undoes,
        undone_by: call.undone_by,
        gap: call.gap,
    }
}
