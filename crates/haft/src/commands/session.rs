//! `haft session`: the conversations that haft remembers, for people.

use super::call::{consenting, report, watched};
use crate::app::{App, Failure};
use crate::cli::SessionAction;
use crate::style::{self, BAD, BOLD, CARE, FAINT, GOOD, NAME, paint};
use crate::talks::meant;
use crate::time;
use haft_core::agent::{Block, Message, Role};
use haft_core::preview::{cut, inert};
use haft_core::{CallError, SessionId};
use haft_runtime::Halt;
use haft_store::talks::Talk;
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
    let titles = app.block_on(app.store().titles()).map_err(Failure::store)?;
    if app.json {
        let told = |session: &Session| {
            let mut told = json!(session);
            if let Some(title) = titles.get(&session.id) {
                told["title"] = json!(title);
            }
            told
        };
        style::json(&json!({ "sessions": sessions.iter().map(told).collect::<Vec<_>>() }));
        return Ok(0);
    }
    if sessions.is_empty() {
        style::note("no session was used yet");
    }
    let about = |session: &Session| titles.get(&session.id).map(|title| inert(title)).unwrap_or_default();
    let row = |session: &Session| {
        let (since, used) = (time::shown(session.created_ms), time::shown(session.used_ms));
        [inert(&session.id), session.calls.to_string(), since, used, about(session)]
    };
    let head = ["SESSION", "CALLS", "SINCE", "LAST USED", "ABOUT"].map(ToOwned::to_owned);
    let rows: Vec<[String; 5]> = sessions.iter().map(row).collect();
    let width = |column: usize| {
        std::iter::once(&head).chain(&rows).map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let (first, second, third, fourth) = (width(0), width(1), width(2), width(3));
    for (at, [id, calls, since, used, about]) in std::iter::once(&head).chain(&rows).enumerate() {
        let style = if at == 0 { FAINT } else { NAME };
        let rest = format!("{calls:>second$}  {since:third$}  {used:fourth$}  {about}");
        let rest = rest.trim_end().to_owned();
        let rest = if at == 0 { paint(FAINT, rest) } else { rest };
        if at > 0 || !rows.is_empty() {
            style::out(&format!("{}  {rest}", paint(style, format!("{id:first$}"))));
        }
    }
    Ok(0)
}

fn shown(app: &App, id: &str, limit: u32) -> Result<u8, Failure> {
    let sessions = app.block_on(app.store().sessions()).map_err(Failure::store)?;
    let names: Vec<&str> = sessions.iter().map(|session| session.id.as_str()).collect();
    let id = meant(id, &names, "session", "haft session list")?;
    let Some(session) = sessions.iter().find(|session| session.id == id) else {
        return Err(CallError::not_found(format!("there is no session `{}`", inert(id))).into());
    };
    let talked = talked(app, id)?;
    let traced = app.block_on(app.store().latest_calls(limit, Some(session.id.clone()))).map_err(Failure::store)?;
    let calls: Vec<Value> = traced.iter().map(line).collect();
    if app.json {
        let mut told = json!({ "session": session, "calls": calls });
        if let Some((talk, epochs)) = &talked {
            told["conversation"] = json!({ "talk": talk, "messages": epochs });
        }
        style::json(&told);
        return Ok(0);
    }
    let since = paint(FAINT, format!("since {}, {} calls", time::shown(session.created_ms), session.calls));
    style::out(&format!("{}  {since}", paint(BOLD, inert(&session.id))));
    if let Some((_, epochs)) = &talked {
        epochs.iter().flatten().for_each(say);
    }
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

/// How a conversation stands, and what was said in it.
type Talked = (Talk, Vec<Vec<Message>>);

/// What was said in a session, if it is a conversation: all of it, in the parts that it was sent in.
fn talked(app: &App, id: &str) -> Result<Option<Talked>, Failure> {
    let Some(session) = SessionId::new(id) else { return Ok(None) };
    let Some(talk) = app.block_on(app.store().talk(&session)).map_err(Failure::store)? else { return Ok(None) };
    let said = app.block_on(app.store().said(&session)).map_err(Failure::store)?;
    Ok(Some((talk, said)))
}

/// Prints a message for people: words in full, calls and results in a line.
fn say(message: &Message) {
    for block in &message.blocks {
        match block {
            Block::Text { text } if message.role == Role::User => {
                style::out(&format!("{} {}", paint(BOLD, ">"), style::inert(text)));
            }
            Block::Text { text } => style::out(&style::inert(text)),
            Block::Use { name, input, .. } => {
                let args = cut(&inert(&input.to_string()), 80);
                style::out(&format!("{} {} {}", paint(NAME, "●"), inert(name), paint(FAINT, args)));
            }
            Block::Result { text, failed, .. } => {
                let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                let mark = if *failed { paint(BAD, "✗") } else { paint(GOOD, "✓") };
                style::out(&format!("  {mark} {}", paint(FAINT, cut(&inert(first), 100))));
            }
            Block::Thinking { .. } | Block::Image(_) | Block::Foreign { .. } => {}
        }
    }
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
        let outcome = Box::pin(watched(app, app.haft.call(call, &*consenting(), &halt), &halt)).await;
        app.haft.flush().await.map(|()| outcome)
    })?;
    Ok(report(app, &outcome))
}
