//! `haft log`: the audit log, its end, and whether it holds.

use crate::app::{App, Failure};
use crate::cli::LogArgs;
use crate::input::duration_ms;
use crate::started_by::{command_line, require_user};
use crate::style::{self, BAD, FAINT, GOOD, NAME, paint};
use crate::time;
use haft_core::record::Digest;
use haft_core::{CallError, CallId};
use haft_runtime::{RedactionRequest, now_ms};
use haft_store::{Head, Record, Redacted, Redaction, RedactionScope};
use serde_json::{Value, json};
use std::time::Duration;

/// How often a followed log is looked at.
const POLL: Duration = Duration::from_millis(250);
/// How many records are read at once.
const PAGE: u32 = 1000;

/// Shows or checks the log.
pub(super) fn run(app: &App, args: &LogArgs) -> Result<u8, Failure> {
    match args.what.as_deref() {
        Some("redact") => redact(app, args),
        _ if args.id.is_some() || args.older_than.is_some() => {
            Err(CallError::invalid("only `haft log redact` takes an ID or --older-than").into())
        }
        Some("verify") => verify(app, args.expect.as_deref()),
        Some("head") => head(app),
        Some(id) => of_call(app, id),
        None => latest(app, args),
    }
}

fn head(app: &App) -> Result<u8, Failure> {
    let head = app.block_on(app.store().head()).map_err(Failure::store)?;
    if app.json {
        style::json(&head);
    } else {
        style::out(&format!("{}:{}", head.seq, head.hash));
    }
    Ok(0)
}

fn verify(app: &App, expect: Option<&str>) -> Result<u8, Failure> {
    let expected = expect.map(read_head).transpose()?;
    match app.block_on(app.store().verify(expected)).map_err(Failure::store)? {
        Ok(verified) => {
            let (seq, hash) = (verified.head.seq, verified.head.hash);
            let text = format!("{} {seq} records, head {seq}:{hash}", paint(GOOD, "the chain holds:"));
            if app.json {
                style::json(&json!({"ok": true, "head": verified.head, "redactions": verified.redactions}));
            } else {
                style::out(&text);
                verified.redactions.iter().for_each(|redaction| style::out(&redacted(redaction)));
            }
            Ok(0)
        }
        Err(broken) => {
            let text = format!("{} record {}: {}", paint(BAD, "the chain is broken at"), broken.seq, broken.why);
            if app.json {
                style::json(&json!({"ok": false, "broken": broken}));
            } else {
                style::out(&text);
            }
            Ok(1)
        }
    }
}

/// What was removed, when, by whom and why, in one line.
fn redacted(redaction: &Redaction) -> String {
    let Redaction { seq, at_ms, by, why, call, records } = redaction;
    let of = call.as_ref().map(|call| format!(" of {call}")).unwrap_or_default();
    let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let text = haft_core::preview::inert(&format!("{records} records{of} redacted by {by}{why}"));
    format!("{seq:>6}  {}  {text}", paint(FAINT, time::shown(*at_ms)))
}

/// Removes what records say.
fn redact(app: &App, args: &LogArgs) -> Result<u8, Failure> {
    require_user()?;
    let scope = match (args.id.as_deref(), args.older_than.as_deref()) {
        // A number would be a call id, too, by its form.
        (Some(id), _) => match (id.parse::<i64>(), CallId::parse(id)) {
            (Ok(number), _) if number > 0 => RedactionScope::Record(number),
            (_, Some(call)) => RedactionScope::Call(call),
            _ => return Err(nothing_to_redact(id).into()),
        },
        (None, Some(age)) => {
            let age = duration_ms(age).ok_or_else(|| {
                CallError::invalid(format!("`{}` is not a length of time", haft_core::preview::inert(age)))
                    .hint("write 30d, 12h, 5m or 30s")
            })?;
            RedactionScope::Before(now_ms().saturating_sub(age))
        }
        (None, None) => {
            return Err(CallError::invalid("what is to be redacted is missing")
                .hint("`haft log redact CALL-ID`, `haft log redact NUMBER`, or `haft log redact --older-than 90d`")
                .into());
        }
    };
    let request = RedactionRequest {
        scope,
        by: command_line().to_string(),
        why: args.why.clone(),
        keep_outputs: args.keep_outputs,
        before_images: args.before_images,
    };
    let done = app.block_on(app.haft.redact_log(request))?;
    if done.redacted.records == 0 {
        if done.redacted.open {
            return Err(CallError::conflict("the call has not ended or waits for an answer, so its records stay")
                .hint("redact it when it has ended; `haft approvals list` shows what waits for an answer")
                .into());
        }
        if let Some(id) = &args.id {
            return Err(nothing_to_redact(id).into());
        }
    }
    if app.json {
        style::json(&done);
        return Ok(0);
    }
    let Redacted { records, calls, .. } = &done.redacted;
    style::out(&format!(
        "{} {records} records of {} calls, {} files of their outputs, the before-images of {} calls",
        paint(GOOD, "redacted"),
        calls.len(),
        done.outputs,
        done.before_images,
    ));
    Ok(0)
}

fn nothing_to_redact(id: &str) -> CallError {
    let id = haft_core::preview::inert(id);
    CallError::not_found(format!("the log has nothing of `{id}` that could be redacted"))
        .hint("`haft log` shows the latest records with their numbers and calls")
}

fn read_head(text: &str) -> Result<Head, Failure> {
    let parsed = text
        .split_once(':')
        .and_then(|(seq, hash)| Some(Head { seq: seq.parse().ok()?, hash: Digest::try_from(hash.to_owned()).ok()? }));
    Ok(parsed
        .ok_or_else(|| CallError::invalid(format!("`{text}` is not SEQ:HASH")).hint("`haft log head` prints one"))?)
}

fn of_call(app: &App, id: &str) -> Result<u8, Failure> {
    let unknown = || {
        CallError::not_found(format!("the log has no call `{}`", haft_core::preview::inert(id)))
            .hint("`haft log` shows the latest")
    };
    let call = CallId::parse(id).ok_or_else(unknown)?;
    let records = app.block_on(app.store().records(0, PAGE, Some(call))).map_err(Failure::store)?;
    if records.is_empty() {
        return Err(unknown().into());
    }
    for record in &records {
        if app.json {
            style::json(record);
        } else {
            show(record);
            style::out(&paint(FAINT, serde_json::to_string_pretty(&record.body).unwrap_or_default()));
        }
    }
    Ok(0)
}

fn latest(app: &App, args: &LogArgs) -> Result<u8, Failure> {
    app.block_on(async {
        let head = app.store().head().await.map_err(Failure::store)?;
        let mut after = head.seq.saturating_sub(i64::from(args.last)).max(0);
        loop {
            let records = app.store().records(after, PAGE, None).await.map_err(Failure::store)?;
            for record in &records {
                if app.json {
                    style::json(record);
                } else {
                    show(record);
                }
                after = record.seq;
            }
            if records.is_empty() && !args.follow {
                return Ok(0);
            }
            if records.is_empty() {
                tokio::select! {
                    () = tokio::time::sleep(POLL) => {}
                    _ = tokio::signal::ctrl_c() => return Ok(0),
                }
            }
        }
    })
}

/// One line: number, time, kind, call, and what matters of it.
fn show(record: &Record) {
    let body = &record.body;
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let at = body.get("at").and_then(Value::as_i64).map(time::shown).unwrap_or_default();
    let is_trial = body.get("dry_run").and_then(Value::as_bool) == Some(true);
    let kind = if is_trial { "trial" } else { text("kind") };
    let painted = match (kind, body.get("success").and_then(Value::as_bool)) {
        ("interrupted" | "refused", _) | (_, Some(false)) => paint(BAD, format!("{kind:<11}")),
        (_, Some(true)) => paint(GOOD, format!("{kind:<11}")),
        _ => format!("{kind:<11}"),
    };
    let what = ["tool", "spoken", "said", "root", "method"]
        .iter()
        .map(|name| text(name))
        .find(|word| !word.is_empty())
        .unwrap_or_default();
    let line = format!(
        "{:>6}  {}  {painted}  {}  {}  {}",
        record.seq,
        paint(FAINT, at),
        paint(NAME, text("call")),
        what,
        summary(body)
    );
    style::out(line.trim_end());
}

fn summary(body: &Value) -> String {
    if body["kind"] == "request" {
        return request(body);
    }
    if body["kind"] == "hook" {
        return hook(body);
    }
    let places = body["places"].as_array().into_iter().flatten().filter_map(|place| place["path"].as_str());
    let places: Vec<&str> = places.collect();
    if !places.is_empty() {
        return haft_core::preview::inert(&places.join(", "));
    }
    if let Some(message) = body["error"]["message"].as_str() {
        return haft_core::preview::cut(&haft_core::preview::inert(message), 100);
    }
    body["duration_ms"].as_u64().map(|ms| format!("{ms} ms")).unwrap_or_default()
}

/// Which hook did something, and to what.
fn hook(body: &Value) -> String {
    let text = |name: &str| body[name].as_str().unwrap_or_default();
    let short = |name: &str| text(name).get(..12).unwrap_or_default().to_owned();
    let change =
        if text("before").is_empty() { String::new() } else { format!("  {} → {}", short("before"), short("after")) };
    let why = if text("why").is_empty() { String::new() } else { format!("  {}", text("why")) };
    haft_core::preview::cut(&haft_core::preview::inert(&format!("by {}{change}{why}", text("hook"))), 120)
}

/// What became of a request: whom it went to, what they said, how much came and how long that took.
fn request(body: &Value) -> String {
    let host = body["host"].as_str().unwrap_or_default();
    let status = body["status"].as_u64().map(|status| format!("  {status}")).unwrap_or_default();
    let error = body["error"].as_str().map(|error| format!("  {error}")).unwrap_or_default();
    let (bytes, ms) = (body["bytes"].as_u64().unwrap_or_default(), body["duration_ms"].as_u64().unwrap_or_default());
    haft_core::preview::inert(&format!("{host}{status}{error}  {bytes} B  {ms} ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_readable_line() {
        let body = json!({"kind": "request", "method": "GET", "host": "example.com:443", "status": 200, "bytes": 1234, "duration_ms": 56});
        assert_eq!(summary(&body), "example.com:443  200  1234 B  56 ms");
        let body = json!({"kind": "request", "method": "GET", "host": "example.com:443", "bytes": 0, "duration_ms": 30_000, "error": "timeout"});
        assert_eq!(summary(&body), "example.com:443  timeout  0 B  30000 ms");
    }
}
