//! `haft undo` and `haft changes`.

use crate::app::{App, Failure};
use crate::cli::{ChangesArgs, UndoArgs};
use crate::style::{self, FAINT, GOOD, NAME, paint};
use crate::time;
use haft_core::CallError;
use haft_runtime::{LastUndoable, PartlyUndone};
use serde_json::json;

/// How many calls are listed.
const LISTED: u32 = 30;

/// Takes a call back.
pub(super) fn undo(app: &App, args: &UndoArgs) -> Result<u8, Failure> {
    let (last, undone) = app.block_on(async {
        let last = match &args.call_id {
            Some(text) => LastUndoable { call_id: app.haft.call_named(text)?, passed_over: Vec::new() },
            None => app.haft.last_undoable().await?,
        };
        let undone = if args.partial {
            app.haft.undo_partly(&last.call_id).await?
        } else {
            let (call_id, undo) = app.haft.undo(&last.call_id).await?;
            PartlyUndone { call_id, undo, left: Vec::new() }
        };
        app.haft.flush().await?;
        Ok::<_, CallError>((last, undone))
    })?;
    let (call, PartlyUndone { call_id: id, undo, left }) = (&last.call_id, &undone);
    if app.json {
        let said = json!({
            "undone": call, "call_id": id, "files": undo.files, "left": left, "passed_over": last.passed_over,
            "reason": undo.reason,
        });
        style::json(&said);
        return Ok(0);
    }
    for passed in &last.passed_over {
        style::warn(&format!(
            "passed over {}, which cannot be undone: {}",
            passed.call_id,
            style::inert(&passed.reason)
        ));
    }
    if let Some(reason) = &undo.reason {
        style::warn(&style::inert(reason));
    }
    for left in left {
        style::warn(&format!("left as it is: {}", style::inert(left)));
    }
    if undo.files.is_empty() {
        style::out(&format!("nothing to restore: what {call} was to change is as it was before"));
        return Ok(0);
    }
    style::out(&format!("{} {call}: {}", paint(GOOD, "undid"), style::inert(&undo.files.join(", "))));
    style::note(&paint(FAINT, format!("take that back with: haft undo {id}")));
    Ok(0)
}

/// Shows what a call changed, or which calls changed something.
pub(super) fn changes(app: &App, args: &ChangesArgs) -> Result<u8, Failure> {
    let Some(text) = &args.call_id else { return list(app) };
    let call = app.haft.call_named(text)?;
    let changed = app.block_on(app.haft.changes(&call))?;
    if app.json {
        style::json(&changed);
        return Ok(0);
    }
    if let Some(by) = &changed.undone_by {
        style::note(&format!("this was undone by {by}"));
    }
    if let Some(gap) = &changed.gap {
        style::warn(&format!("this cannot be undone: {gap}"));
    }
    style::out(&style::diff(&changed.diff));
    Ok(0)
}

fn list(app: &App) -> Result<u8, Failure> {
    let calls = app.block_on(app.store().undoable(app.haft.workspace().root(), LISTED)).map_err(Failure::store)?;
    if app.json {
        let list: Vec<_> = calls
            .iter()
            .map(|call| json!({"call_id": call.call_id, "at_ms": call.at_ms, "bytes": call.bytes, "undone_by": call.undone_by, "gap": call.gap}))
            .collect();
        style::json(&list);
        return Ok(0);
    }
    if calls.is_empty() {
        style::note("no call has changed files in this project");
    }
    for call in &calls {
        let state = match (&call.undone_by, &call.gap) {
            (Some(by), _) => format!("undone by {by}"),
            (None, Some(gap)) => format!("cannot be undone: {gap}"),
            (None, None) => String::new(),
        };
        style::out(format!("{}  {}  {state}", paint(NAME, &call.call_id), time::shown(call.at_ms)).trim_end());
    }
    Ok(0)
}
