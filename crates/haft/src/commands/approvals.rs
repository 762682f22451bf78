//! `haft approvals`: the inbox of calls that wait for a person, and what was allowed beforehand.

mod answer;

use crate::app::{App, Failure};
use crate::cli::ApprovalsAction;
use crate::commands::call;
use crate::input::duration_ms;
use crate::started_by::{command_line, require_user};
use crate::style::{self, BOLD, FAINT, GOOD, NAME, paint};
use crate::terminal;
use haft_core::grant::{Grant, GrantScope};
use haft_core::suggest::did_you_mean;
use haft_core::{CallError, ErrorKind, ToolName};
use haft_runtime::work::drawn;
use haft_runtime::{Halt, new_call_id, now_ms};
use haft_store::Approval;
use haft_store::work::Uncertain;
use serde_json::{Value, json};
use std::io::IsTerminal;

/// How many lines of a request's body are shown.
const BODY_LINES: usize = 1000;

/// Does one thing with approvals.
pub(super) fn run(app: &App, action: Option<ApprovalsAction>) -> Result<u8, Failure> {
    match action.unwrap_or(ApprovalsAction::List { all: false }) {
        ApprovalsAction::List { all } => list(app, all),
        ApprovalsAction::Show { id } => show(app, &id),
        ApprovalsAction::Approve { id, yes } => approve(app, &id, yes),
        ApprovalsAction::Reject { id, message } => reject(app, &id, &message),
        ApprovalsAction::Answer { id, answer } => answer::run(app, &id, &answer),
        ApprovalsAction::Grant { tool, pattern, uses, duration } => {
            grant(app, &tool, pattern, uses, duration.as_deref())
        }
        ApprovalsAction::Grants => grants(app),
        ApprovalsAction::Revoke { id } => revoke(app, &id),
    }
}

fn list(app: &App, all: bool) -> Result<u8, Failure> {
    app.block_on(app.haft.tend())?;
    let waiting = app.block_on(app.store().approvals(!all)).map_err(Failure::store)?;
    let uncertain = app.block_on(app.store().uncertain_steps()).map_err(Failure::store)?;
    if app.json {
        let waiting = waiting.iter().map(|approval| {
            let mut value = json!(approval);
            if let Some(asker) = app.block_on(app.haft.asker_of(approval)) {
                value["asker"] = asker.into();
            }
            value
        });
        style::json(&waiting.chain(uncertain.iter().map(unknown)).collect::<Vec<_>>());
        return Ok(0);
    }
    if waiting.is_empty() && uncertain.is_empty() {
        style::note("nothing waits for approval");
    }
    for approval in &waiting {
        line(app, approval);
    }
    if !uncertain.is_empty() {
        style::out(&paint(BOLD, "steps of which nobody knows what became of them:"));
    }
    for step in &uncertain {
        let of = format!("{} of {}", step.step, style::inert(&step.name));
        style::out(&format!("{}  uncertain  {of}", paint(NAME, &step.run)));
        style::out(&paint(FAINT, style::inert(&format!("    {}; in {}", step.why, step.root))));
        style::out(&format!("    {}", drawn::settle(&step.run, &step.step)));
    }
    Ok(0)
}

/// A step of which nobody knows what became of it, among what waits for a person.
fn unknown(step: &Uncertain) -> Value {
    json!({
        "id": step.call_id, "state": "uncertain", "run": step.run, "step": step.step, "name": step.name, "root": step.root,
        "reason": step.why, "begun_ms": step.begun_ms, "settle": drawn::settle(&step.run, &step.step),
    })
}

fn line(app: &App, approval: &Approval) {
    let state = approval.state.as_str();
    style::out(&format!("{}  {state:<8}  {}", paint(NAME, &approval.id), approval.preview));
    style::out(&paint(FAINT, style::inert(&format!("    {}; in {}", approval.reason, approval.root))));
    // A yes happens where the agent works.
    if let Some(asker) = app.block_on(app.haft.asker_of(approval)) {
        style::out(&format!("    asked by {}", style::inert(&asker)));
    }
}

fn show(app: &App, id: &str) -> Result<u8, Failure> {
    let found = app.block_on(app.store().approval(id)).map_err(Failure::store)?;
    let approval = found.ok_or_else(|| CallError::not_found(format!("there is no approval `{id}`")))?;
    // What is approved is the effect: show it as it would be now, and where.
    let here = haft_core::path_text::load(&approval.root) == app.haft.workspace().root();
    if app.json {
        let mut value = serde_json::to_value(&approval).unwrap_or_default();
        let question = if here { app.block_on(app.haft.glance_at(id))? } else { None };
        if let Some(body) = question.as_ref().and_then(terminal::body) {
            value["body"] = body.into();
        }
        style::json(&value);
        return Ok(0);
    }
    line(app, &approval);
    // What its user has seen is what an approval is for from here on. An agent that looks changes nothing of that.
    let user = command_line();
    let look =
        async { if user.may_decide() { app.haft.look_at(id, &user).await } else { app.haft.glance_at(id).await } };
    if let Some(question) = if here { app.block_on(look)? } else { None } {
        style::out(&format!("    {}", style::inert(&haft_runtime::reason_now(&approval, &question))));
        for row in question.shell.as_ref().map(terminal::command::rows).unwrap_or_default() {
            style::out(&format!("      {}", style::painted(&row)));
        }
        for line in question.executed.lines() {
            style::out(&format!("    {line}"));
        }
        if !question.places.is_empty() {
            style::out(&format!("    at {}", style::inert(&question.places.join(", "))));
        }
        if let Some(sent) = terminal::sent(&question, BODY_LINES) {
            style::out(&sent);
        }
        for row in question.trial.iter().flat_map(|trial| terminal::trial_rows(trial, usize::MAX)) {
            style::out(&format!("    {}", style::painted(&row)));
        }
        if let Some(problem) = &question.problem {
            style::out(&format!("    it would fail: {}", style::inert(problem)));
        }
        style::out(&style::diff(question.diff.as_deref().unwrap_or_default()));
    }
    if let Some(form) = &approval.form {
        answer::show(id, form);
    }
    if let Some(by) = &approval.decided_by {
        style::out(&format!("    decided by {by}"));
    }
    if let Some(outcome) = &approval.outcome {
        style::pretty(outcome);
    }
    Ok(0)
}

/// Refuses to take a script's word for a person's about what an agent would have kept.
fn looked_at(app: &App, id: &str) -> Result<(), Failure> {
    let found = app.block_on(app.store().approval(id)).map_err(Failure::store)?;
    let tool = found.and_then(|approval| app.haft.registry().get(&approval.tool));
    if !tool.is_some_and(|entry| entry.spec().reach.proposes) || std::io::stdin().is_terminal() {
        return Ok(());
    }
    let nobody = CallError::invalid("this is a proposal, there is no terminal to ask at, and nothing was approved");
    Err(nobody.hint(format!("look at it with `haft approvals show {id}`, and approve it with --yes")).into())
}

fn approve(app: &App, id: &str, yes: bool) -> Result<u8, Failure> {
    if !yes {
        looked_at(app, id)?;
    }
    let rules = app.block_on(app.haft.suggested(id));
    let outcome = app.block_on(async {
        let outcome = app.haft.approve(id, &command_line(), &Halt::new()).await?;
        app.haft.flush().await.map(|()| outcome)
    })?;
    if !app.json && outcome.error.as_ref().is_none_or(|error| error.kind == ErrorKind::Failed) {
        terminal::suggest(&rules, &app.config);
    }
    Ok(call::report(app, &outcome))
}

fn reject(app: &App, id: &str, message: &str) -> Result<u8, Failure> {
    app.block_on(app.haft.reject(id, &command_line(), message))?;
    if app.json {
        style::json(&json!({"id": id, "state": "rejected"}));
    } else {
        style::note(&format!("rejected {id}"));
    }
    Ok(0)
}

fn grant(app: &App, tool: &str, pattern: String, uses: Option<u32>, duration: Option<&str>) -> Result<u8, Failure> {
    require_user()?;
    let name = ToolName::new(tool).map_err(|error| CallError::invalid(error.to_string()))?;
    if !app.haft.registry().has(tool) {
        app.load_tools();
    }
    if !app.haft.registry().has(tool) {
        let names = app.haft.registry().names();
        let hint = did_you_mean(tool, names.iter().map(ToolName::as_str));
        let hint = hint.unwrap_or_else(|| "`haft tools` lists what there is".to_owned());
        return Err(CallError::invalid(format!("there is no tool `{tool}`")).hint(hint).into());
    }
    if pattern.is_empty() || uses == Some(0) {
        return Err(CallError::invalid("a grant needs a pattern and at least one use").into());
    }
    Grant::check_pattern(&name, &pattern)
        .map_err(|error| CallError::invalid(error.to_string()).hint("name a narrower place"))?;
    let lasts = duration.map(|text| {
        duration_ms(text).ok_or_else(|| {
            CallError::invalid(format!("`{text}` is not a length of time")).hint("write 30s, 5m, 1h or 1d")
        })
    });
    let lasts = lasts.transpose()?;
    let grant = Grant {
        id: format!("g-{}", new_call_id()),
        tool: name,
        pattern,
        session: None,
        uses_left: Some(uses.unwrap_or(app.haft.settings().grant_uses)),
        expires_ms: lasts.map(|ms| now_ms().saturating_add(ms)),
        scope: GrantScope::Guarded,
        executed: None,
    };
    app.block_on(app.store().grant(app.haft.workspace().root(), grant.clone())).map_err(Failure::store)?;
    if app.json {
        style::json(&grant);
    } else {
        style::note(&format!("{} {}", paint(GOOD, "granted"), grant.id));
    }
    Ok(0)
}

fn grants(app: &App) -> Result<u8, Failure> {
    let grants = app.block_on(app.store().grants(app.haft.workspace().root(), None)).map_err(Failure::store)?;
    if app.json {
        style::json(&grants);
        return Ok(0);
    }
    if grants.is_empty() {
        style::note("nothing is allowed beforehand in this project");
    }
    for grant in &grants {
        let uses = grant.uses_left.map_or_else(|| "any number of times".to_owned(), |uses| format!("{uses} times"));
        let session = grant.session.as_ref().map(|session| format!(", in session {session}")).unwrap_or_default();
        let until = grant.expires_ms.map(|end| format!(", until {}", crate::time::shown(end))).unwrap_or_default();
        let scope = match grant.scope {
            GrantScope::Guarded => "",
            GrantScope::Unguarded => ", also without haft's sandbox",
        };
        style::out(&format!(
            "{}  {} {}  {uses}{session}{until}{scope}",
            paint(NAME, &grant.id),
            paint(BOLD, &grant.tool),
            style::inert(&grant.pattern)
        ));
    }
    Ok(0)
}

fn revoke(app: &App, id: &str) -> Result<u8, Failure> {
    require_user()?;
    if !app.block_on(app.store().revoke(id)).map_err(Failure::store)? {
        return Err(CallError::not_found(format!("there is no grant `{id}`")).into());
    }
    if app.json {
        style::json(&json!({"id": id, "revoked": true}));
    } else {
        style::note(&format!("revoked {id}"));
    }
    Ok(0)
}
