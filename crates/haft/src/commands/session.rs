//! `haft session`: the conversations that haft remembers, for people.

use super::call::{report, watched};
use crate::app::{App, Failure};
use crate::cli::SessionAction;
use crate::style::{self, BAD, BOLD, CARE, FAINT, GOOD, NAME, paint};
use crate::time;
use haft_core::preview::inert;
use haft_core::{CallError, suggest};
use haft_runtime::{Halt, Yes};
use haft_store::{Session, Traced};
use serde_json::{Value, json};

/// Does one thing with sessions.
pub(super) fn run(app: &App, action: Option<SessionAction>) -> Result<u8, Failure> {
    match action.unwrap_or(SessionAction::List) {
        SessionAction::List => list(app),
        SessionAction::Show { id, limit } => shown(app, &id, limit),
        SessionAction::Delete { id } => delete(app, &id),
    }
}

fn list(app: &App) -> Result<u8, Failure> {
    let sessions = app.block_on(app.store().sessions()).map_err(Failure::store)?;
    if app.json {
        style::json(&json!({ "sessions": sessions }));
        return Ok(0);
    }
    if sessions.is_empty() {
        style::note("no session was used yet");
    }
    let row = |session: &Session| {
        [inert(&session.id), session.calls.to_string(), time::shown(session.created_ms), time::shown(session.used_ms)]
    };
    let head = ["SESSION", "CALLS", "SINCE", "LAST USED"].map(ToOwned::to_owned);
    let rows: Vec<[String; 4]> = sessions.iter().map(row).collect();
    let width = |column: usize| {
        std::iter::once(&head).chain(&rows).map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let (first, second, third) = (width(0), width(1), width(2));
    for (at, [id, calls, since, used]) in std::iter::once(&head).chain(&rows).enumerate() {
        let style = if at == 0 { FAINT } else { NAME };
        let rest = format!("{calls:>second$}  {since:third$}  {used}");
        let rest = if at == 0 { paint(FAINT, rest) } else { rest };
        if at > 0 || !rows.is_empty() {
            style::out(&format!("{}  {rest}", paint(style, format!("{id:first$}"))));
        }
    }
    Ok(0)
}

fn shown(app: &App, id: &str, limit: u32) -> Result<u8, Failure> {
    let sessions = app.block_on(app.store().sessions()).map_err(Failure::store)?;
    let Some(session) = sessions.iter().find(|session| session.id == id) else {
        let near = suggest::did_you_mean(id, sessions.iter().map(|session| session.id.as_str()));
        return Err(CallError::not_found(format!("there is no session `{}`", inert(id)))
            .hint(near.unwrap_or_else(|| "`haft session list` shows those there are".to_owned()))
            .into());
    };
    let traced = app.block_on(app.store().latest_calls(limit, Some(session.id.clone()))).map_err(Failure::store)?;
    let calls: Vec<Value> = traced.iter().map(line).collect();
    if app.json {
        style::json(&json!({ "session": session, "calls": calls }));
        return Ok(0);
    }
    let since = paint(FAINT, format!("since {}, {} calls", time::shown(session.created_ms), session.calls));
    style::out(&format!("{}  {since}", paint(BOLD, inert(&session.id))));
    for call in &calls {
        let word = |name: &str| inert(call[name].as_str().unwrap_or_default());
        let state = match call["state"].as_str() {
            Some("done") => paint(GOOD, "done"),
            Some("failed") => paint(BAD, "failed"),
            _ => paint(CARE, word("state")),
        };
        let at = paint(FAINT, time::shown(call["started_ms"].as_i64().unwrap_or_default()));
        let took = call["duration_ms"].as_i64().map(|ms| format!("  {ms} ms")).unwrap_or_default();
        style::out(&format!("{at}  {}  {}  {state}{took}", word("call_id"), paint(NAME, word("tool"))));
    }
    Ok(0)
}

/// A call as its records tell it.
fn line(traced: &Traced) -> Value {
    let last = |kinds: &[&str]| {
        let fits = |kind: &str| kinds.contains(&kind);
        traced.records.iter().rev().map(|record| &record.body).find(|body| body["kind"].as_str().is_some_and(fits))
    };
    let (begin, end) = (last(&["intent"]), last(&["outcome", "refused", "interrupted"]));
    let state = match end {
        Some(end) if end["kind"] == "outcome" && end["success"] == true => "done",
        Some(end) if end["kind"] == "outcome" => "failed",
        Some(end) if end["error"]["kind"] == "approval_required" => "asked",
        Some(end) => end["kind"].as_str().unwrap_or("refused"),
        None => "open",
    };
    let said = begin.or(end).unwrap_or(&Value::Null);
    let mut line = json!({
        "call_id": traced.call_id, "tool": said["tool"], "state": state,
        "started_ms": traced.records.first().map_or(&Value::Null, |record| &record.body["at"]),
    });
    if let Some(took) = end.and_then(|end| end.get("duration_ms")) {
        line["duration_ms"] = took.clone();
    }
    if traced.undone_by.is_some() {
        line["undone"] = true.into();
    }
    line
}

/// Forgets one, by a call, so that it is recorded. Whoever types it has said yes.
fn delete(app: &App, id: &str) -> Result<u8, Failure> {
    let call = app.call("session.delete", json!({ "session": id }), Some("haft"))?;
    let halt = Halt::new();
    let outcome = app.block_on(async {
        let outcome = Box::pin(watched(app, app.haft.call(call, &Yes, &halt), &halt)).await;
        app.haft.flush().await.map(|()| outcome)
    })?;
    Ok(report(app, &outcome))
}
