//! `haft policy`: rules about shell commands, tried on what happened.

use crate::app::{App, Failure};
use crate::cli::{Common, OneOff, PolicyAction};
use crate::commands::explain::word;
use crate::input::duration_ms;
use crate::style::{self, BOLD, FAINT, NAME, paint};
use haft_core::approval::Decision;
use haft_core::{CallError, preview};
use haft_runtime::now_ms;
use haft_store::Record;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};

/// How many records are read at once.
const PAGE: u32 = 1000;

/// Does one thing with rules.
pub(super) fn run(common: &Common, action: &PolicyAction) -> Result<u8, Failure> {
    let PolicyAction::Replay { rules, since } = action;
    let since = since.as_deref().map(|text| {
        duration_ms(text).ok_or_else(|| {
            CallError::invalid(format!("`{text}` is not a length of time")).hint("write 30s, 5m, 1h or 1d")
        })
    });
    let after = since.transpose()?.map(|ms| now_ms().saturating_sub(ms));
    let said = one_offs(rules)?;
    // What holds now and what would hold with the rules, so that only the rules make a difference.
    let before = App::open(common)?;
    let with = App::open_with(common, &said)?;
    let replayed = replay(&before, &with, after)?;
    report(&before, rules, &replayed);
    Ok(0)
}

/// `allow: git log` as a rule for this once.
fn one_offs(rules: &[String]) -> Result<OneOff, CallError> {
    let mut said = OneOff::default();
    for rule in rules {
        match rule.split_once(':').map(|(stance, words)| (stance.trim(), words.trim())) {
            Some(("allow", words)) => said.allow.push(words.to_owned()),
            Some(("deny", words)) => said.deny.push(words.to_owned()),
            _ => {
                let shown = preview::inert(rule);
                return Err(CallError::invalid(format!("`{shown}` does not say whether it allows or denies"))
                    .hint(format!("write 'allow: {shown}' or 'deny: {shown}'")));
            }
        }
    }
    Ok(said)
}

/// A shell command of the past.
#[derive(Debug, Serialize)]
struct Replayed {
    call: String,
    at_ms: i64,
    command: String,
    /// What was decided then.
    then: Decision,
    /// What would be decided now without the rules.
    without: Decision,
    /// What would be decided now with them.
    with: Decision,
    /// Which voice decides, and why.
    by: String,
    reason: String,
}

impl Replayed {
    fn changed(&self) -> bool {
        self.without != self.with
    }
}

fn replay(before: &App, with: &App, after_ms: Option<i64>) -> Result<Vec<Replayed>, Failure> {
    let mut replayed = Vec::new();
    // A question that was answered later stands in the log twice.
    let mut seen = HashSet::new();
    let mut after = 0;
    loop {
        let records = before.block_on(before.store().records(after, PAGE, None)).map_err(Failure::store)?;
        let Some(last) = records.last() else { return Ok(replayed) };
        after = last.seq;
        for record in &records {
            let recent = |past: &Past<'_>| after_ms.is_none_or(|then| past.at_ms >= then);
            if let Some(past) = past(record).filter(recent)
                && seen.insert(past.call.to_owned())
            {
                replayed.extend(again(before, with, past));
            }
        }
    }
}

/// A call as the log has it.
#[derive(Clone, Copy)]
struct Past<'r> {
    call: &'r str,
    at_ms: i64,
    args: &'r Value,
    then: Decision,
}

/// The shell command that a record is about. A call has one intent, or one refusal.
fn past(record: &Record) -> Option<Past<'_>> {
    let body = &record.body;
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let whole = matches!(text("kind"), "intent" | "refused") && text("tool") == "shell.exec";
    let args = body.get("args").filter(|args| whole && args["command"].is_string())?;
    let at_ms = body.get("at").and_then(Value::as_i64).unwrap_or_default();
    Some(Past { call: text("call"), at_ms, args, then: decided(body)? })
}

/// What was decided: whoever was asked and said yes or no was asked all the same.
fn decided(body: &Value) -> Option<Decision> {
    let verdict = &body["verdict"];
    let asked = verdict["reason"].as_str().is_some_and(|reason| reason.starts_with("approved; asked because"));
    let rejected = matches!(body["error"]["kind"].as_str(), Some("rejected" | "approval_required"));
    if asked || rejected {
        return Some(Decision::Ask);
    }
    serde_json::from_value(verdict["decision"].clone()).ok()
}

/// Decides about a call again. What can no longer be decided is left out.
fn again(before: &App, with: &App, past: Past<'_>) -> Option<Replayed> {
    let explain = |app: &App| {
        let call = app.call("shell.exec", past.args.clone(), Some("haft")).ok()?;
        app.block_on(app.haft.explain(call)).ok()
    };
    let (without, with) = (explain(before)?, explain(with)?);
    Some(Replayed {
        call: past.call.to_owned(),
        at_ms: past.at_ms,
        command: past.args["command"].as_str().unwrap_or_default().to_owned(),
        then: past.then,
        without: without.verdict.decision,
        with: with.verdict.decision,
        by: with.verdict.by,
        reason: with.verdict.reason,
    })
}

fn count(replayed: &[Replayed], of: impl Fn(&Replayed) -> Decision) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::from([("allow", 0), ("ask", 0), ("deny", 0)]);
    for one in replayed {
        let name = match of(one) {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn report(app: &App, rules: &[String], replayed: &[Replayed]) {
    let (then, with) = (count(replayed, |one| one.then), count(replayed, |one| one.with));
    let changed = replayed.iter().filter(|one| one.changed()).count();
    if app.json {
        return style::json(&json!({
            "rules": rules,
            "total": replayed.len(),
            "changed": changed,
            "then": then,
            "now": with,
            "calls": replayed,
        }));
    }
    for one in replayed {
        let mark = if one.changed() { paint(BOLD, "*") } else { " ".to_owned() };
        style::out(&format!(
            "{mark} {} then, {} with the rule  {}  {}",
            word(one.then),
            word(one.with),
            paint(NAME, &one.call),
            preview::cut(&preview::inert(&one.command), 100)
        ));
        if one.changed() {
            style::out(&paint(FAINT, format!("    {}: {}", one.by, preview::inert(&one.reason))));
        }
    }
    let said = |counts: &BTreeMap<&str, usize>| {
        counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
    };
    style::out(&format!(
        "{} shell commands; then: {}; with {}: {}; the rules make a difference to {changed}",
        replayed.len(),
        said(&then),
        if rules.len() == 1 { "the rule" } else { "the rules" },
        said(&with),
    ));
}
