//! `haft undo` and `haft changes`.

use crate::app::{App, Failure};
use crate::cli::{ChangesArgs, Common, UndoArgs};
use crate::style::{self, FAINT, GOOD, NAME, paint};
use crate::time;
use haft_core::preview::{cut, inert};
use haft_core::{CallError, CallId};
use haft_runtime::{CallUndone, ChangeEntry, PartlyUndone, PassedOver, RankedChanges, SelectionUndone, undo_selection};
use haft_store::UndoSelection;
use serde_json::json;

/// How many calls are listed.
const LISTED: u32 = 30;
/// How many files of a call are named in a list.
const FILES_NAMED: usize = 3;
/// How wide a command is shown in a list.
const COMMAND_COLUMNS: usize = 60;

/// Takes calls back.
pub(super) fn undo(app: &App, common: &Common, args: &UndoArgs) -> Result<u8, Failure> {
    if let Some(text) = &args.call_id {
        let call = app.haft.call_named(text)?;
        return undo_one(app, args, &call, &[]);
    }
    if !args.last && args.turn.is_none() && args.since.is_none() {
        return Err(CallError::invalid(
            "nothing says which calls to undo: `--session` narrows `--last`, `--turn` and `--since`; alone it selects nothing",
        )
        .hint("give the ID of a call, `--last`, `--turn N` with `--session`, or `--since TIME`")
        .into());
    }
    let selection = undo_selection(common.named_session()?, args.turn, args.since.as_deref())?;
    if args.last {
        let last = app.block_on(app.haft.last_undoable(selection))?;
        return undo_one(app, args, &last.call_id, &last.passed_over);
    }
    undo_all(app, args, selection)
}

fn undo_one(app: &App, args: &UndoArgs, call: &CallId, passed_over: &[PassedOver]) -> Result<u8, Failure> {
    let PartlyUndone { call_id, undo, left } = app.block_on(async {
        let undone = if args.partial {
            app.haft.undo_partly(call).await?
        } else {
            let (call_id, undo) = app.haft.undo(call).await?;
            PartlyUndone { call_id, undo, left: Vec::new() }
        };
        app.haft.flush().await?;
        Ok::<_, CallError>(undone)
    })?;
    if app.json {
        let said = json!({
            "undone": call, "call_id": call_id, "files": undo.files, "left": left, "passed_over": passed_over,
            "reason": undo.reason,
        });
        style::json(&said);
        return Ok(0);
    }
    say_passed_over(passed_over);
    say_undone(&CallUndone { undone: call.clone(), call_id, files: undo.files, left, reason: undo.reason });
    Ok(0)
}

fn undo_all(app: &App, args: &UndoArgs, selection: UndoSelection) -> Result<u8, Failure> {
    let SelectionUndone { undone, passed_over } = app.block_on(async {
        let done = app.haft.undo_selection(selection, args.partial).await?;
        app.haft.flush().await?;
        Ok::<_, CallError>(done)
    })?;
    if app.json {
        style::json(&json!({ "undone": undone, "passed_over": passed_over }));
        return Ok(0);
    }
    say_passed_over(&passed_over);
    undone.iter().for_each(say_undone);
    Ok(0)
}

fn say_passed_over(passed_over: &[PassedOver]) {
    for passed in passed_over {
        let reason = style::inert(&passed.reason);
        style::warn(&format!("passed over {}, which cannot be undone: {reason}", passed.call_id));
    }
}

fn say_undone(done: &CallUndone) {
    let CallUndone { undone: call, call_id, files, left, reason } = done;
    if let Some(reason) = reason {
        style::warn(&style::inert(reason));
    }
    for left in left {
        style::warn(&format!("left as it is: {}", style::inert(left)));
    }
    if files.is_empty() {
        return style::out(&format!("nothing to restore: the files of {call} already are as they were before it"));
    }
    style::out(&format!("{} {call}: {}", paint(GOOD, "undid"), style::inert(&files.join(", "))));
    style::note(&paint(FAINT, format!("to redo the change: haft undo {call_id}")));
}

/// Shows what a call changed, or which calls changed something.
pub(super) fn changes(app: &App, common: &Common, args: &ChangesArgs) -> Result<u8, Failure> {
    let Some(text) = &args.call_id else {
        return list(app, undo_selection(common.named_session()?, args.turn, args.since.as_deref())?);
    };
    let call = app.haft.call_named(text)?;
    let changed = app.block_on(app.haft.changes_under(&call, args.path.as_deref()))?;
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
    if let Some(hint) = folded_hint(&changed.ranked, &format!("haft changes {call}")) {
        style::note(&paint(FAINT, hint));
    }
    Ok(0)
}

/// How a folded directory is opened.
fn folded_hint(ranked: &RankedChanges, command: &str) -> Option<String> {
    let first = ranked.folded.first()?;
    Some(format!("the files of a folded directory: {command} --path '{}'", inert(&first.path)))
}

fn list(app: &App, selection: UndoSelection) -> Result<u8, Failure> {
    let selects = selection != UndoSelection::default();
    let calls = app.block_on(app.haft.change_entries(selection, LISTED))?;
    if app.json {
        style::json(&calls);
        return Ok(0);
    }
    if calls.is_empty() {
        let what = if selects { "no selected call" } else { "no call" };
        style::note(&format!("{what} has changed files in this project"));
    }
    for call in &calls {
        style::out(entry(call).trim_end());
    }
    Ok(0)
}

/// A line about a call: when, which tool, what it ran or changed, for whom, and what became of it.
fn entry(call: &ChangeEntry) -> String {
    let what = match &call.command {
        Some(command) => format!("$ {}", cut(&inert(command), COMMAND_COLUMNS)),
        None => files(call),
    };
    let turn = call.turn.map(|turn| format!(", turn {turn}")).unwrap_or_default();
    let whose = call.session.as_ref().map(|session| format!("  (session {}{turn})", inert(session)));
    let state = match (&call.undone_by, &call.gap, &call.undoes) {
        (Some(by), ..) => format!("  undone by {by}"),
        (None, Some(gap), _) => format!("  cannot be undone: {}", inert(gap)),
        (None, None, Some(call)) => format!("  took back {call}"),
        (None, None, None) => String::new(),
    };
    let (id, at, tool) = (paint(NAME, &call.call_id), time::shown(call.at_ms), inert(&call.tool));
    format!("{id}  {at}  {tool}  {what}{}{state}", whose.unwrap_or_default())
}

fn files(call: &ChangeEntry) -> String {
    let named: Vec<String> = call.files.iter().take(FILES_NAMED).map(|file| inert(file)).collect();
    let more = usize::try_from(call.file_count).unwrap_or(usize::MAX).saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}
