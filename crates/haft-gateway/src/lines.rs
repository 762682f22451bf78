//! A call in one line, made from what the log says of it.

use crate::gateway::Shared;
use haft_core::preview;
use haft_runtime::now_ms;
use haft_store::{ApprovalState, Record, Traced};
use serde_json::{Map, Value, json};

/// How wide a preview is.
const COLUMNS: usize = 120;
/// A call that only reads is not entered as open; after this long without an end, it has none.
const GIVEN_UP_MS: i64 = 10 * 60_000;

/// One line about a call.
pub(crate) fn line(gateway: &Shared, traced: &Traced) -> Value {
    let begin = last(traced, &["intent"]);
    let end =
        last(traced, &["outcome", "refused", "interrupted"]).filter(|end| begin.is_none_or(|it| it.seq < end.seq));
    let said = begin.or(end).map_or(&Value::Null, |record| &record.body);
    let started = traced.records.first().map_or(0, at);
    let mut line = json!({
        "call_id": traced.call_id, "tool": tool(gateway, traced, said), "started_ms": started,
        "state": state(traced, begin, end), "preview": shown(gateway, traced, said),
    });
    for name in ["session", "origin", "args", "verdict"] {
        copy(&mut line, name, said);
    }
    if let Some(end) = end {
        line["ended_ms"] = at(end).into();
        for name in ["duration_ms", "error", "undo", "dry_run"] {
            copy(&mut line, name, &end.body);
        }
    }
    line
}

fn last<'t>(traced: &'t Traced, kinds: &[&str]) -> Option<&'t Record> {
    traced.records.iter().rev().find(|record| record.body["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)))
}

fn at(record: &Record) -> i64 {
    record.body["at"].as_i64().unwrap_or(0)
}

fn copy(line: &mut Value, name: &str, from: &Value) {
    if let Some(value) = from.get(name) {
        line[name] = value.clone();
    }
}

fn state(traced: &Traced, begin: Option<&Record>, end: Option<&Record>) -> &'static str {
    if traced.undone_by.is_some() {
        return "undone";
    }
    let question = traced.question.as_ref().map(|(state, _)| *state);
    let Some(end) = end else {
        return match (question, begin) {
            (Some(ApprovalState::Pending), _) => "waiting",
            (Some(ApprovalState::Rejected), _) => "refused",
            _ if traced.open => "running",
            _ => abandoned(begin.or(traced.records.last())),
        };
    };
    match end.body["kind"].as_str() {
        Some("interrupted") => "interrupted",
        Some("refused") if end.body["error"]["kind"] == "approval_required" => match question {
            Some(ApprovalState::Pending) => "waiting",
            Some(ApprovalState::Approved) => "running",
            _ => "refused",
        },
        Some("refused") => "refused",
        _ if end.body["success"] == true => "done",
        _ => "failed",
    }
}

fn abandoned(begin: Option<&Record>) -> &'static str {
    let old = begin.is_none_or(|record| now_ms() - at(record) > GIVEN_UP_MS);
    if old { "interrupted" } else { "running" }
}

fn tool(gateway: &Shared, traced: &Traced, said: &Value) -> String {
    if let Some(tool) = said["tool"].as_str() {
        return tool.to_owned();
    }
    // Only a question is known: its preview begins with the tool.
    let spoken = traced.question.as_ref().and_then(|(_, preview)| preview.split_once(": ")).map(|(tool, _)| tool);
    spoken.filter(|tool| gateway.haft.registry().has(tool)).unwrap_or_default().to_owned()
}

fn shown(gateway: &Shared, traced: &Traced, said: &Value) -> String {
    traced.question.as_ref().map_or_else(|| recalled(gateway, said), |(_, preview)| preview.clone())
}

/// What a call was about, as far as its record says it: bodies are there by their size only.
pub(crate) fn recalled(gateway: &Shared, body: &Value) -> String {
    let tool = body["tool"].as_str().unwrap_or_default();
    let bytes = |value: &Value| value.get("sha256").and(value["bytes"].as_u64());
    let args = &body["args"];
    if let (Some(size), Some(path)) = (bytes(&args["content"]), args["path"].as_str()) {
        let size = preview::size(usize::try_from(size).unwrap_or(usize::MAX));
        return preview::cut(&preview::inert(&format!("{tool}: {path} ({size})")), COLUMNS);
    }
    let bare = |(name, value): (&String, &Value)| match bytes(value) {
        Some(size) => (name.clone(), json!(format!("({size} bytes)"))),
        None => (name.clone(), value.clone()),
    };
    let args = args.as_object().map(|args| args.iter().map(bare).collect::<Map<_, _>>()).unwrap_or_default();
    let entry = gateway.haft.registry().get(tool);
    let bodies = entry.as_ref().map(|entry| entry.spec().reach.bodies.as_slice()).unwrap_or_default();
    preview::line(tool, (tool, bodies), &Value::Object(args), None, COLUMNS)
}
