//! `haft approvals answer`: fills in a form that waits in the inbox, for whatever process asked.

use crate::app::{App, Failure};
use crate::started_by::command_line;
use crate::style::{self, FAINT, NAME, paint};
use crate::terminal::{self, Terminal};
use haft_core::CallError;
use haft_core::form::{Field, Kind, fields, filled};
use haft_runtime::{Form, Written};
use serde_json::{Value, json};

/// Answers.
pub(super) fn run(app: &App, id: &str, given: &[String]) -> Result<u8, Failure> {
    let answer = match given {
        [only] if only.trim_start().starts_with('{') => serde_json::from_str(only)
            .map_err(|error| CallError::invalid(format!("the answer is not JSON: {error}")))?,
        _ => typed(app, id, given)?,
    };
    app.block_on(async {
        app.haft.answer_form(id, &command_line(), answer).await?;
        app.haft.flush().await
    })?;
    if app.json {
        style::json(&json!({"id": id, "state": "answered"}));
    } else {
        style::note(&format!("answered {id}"));
    }
    Ok(0)
}

/// The answer by the names of its fields, or at the terminal.
fn typed(app: &App, id: &str, given: &[String]) -> Result<Value, Failure> {
    let found = app.block_on(app.store().approval(id)).map_err(Failure::store)?;
    // What is not there, or not asked any more, is refused where the answer goes.
    let Some(form) = found.and_then(|found| found.form).and_then(|form| read(&form)) else { return Ok(json!({})) };
    if given.is_empty() {
        return at_terminal(id, &form);
    }
    let fields = fields(&form.schema)
        .ok_or_else(|| CallError::invalid("this cannot be answered field by field").hint("answer it as JSON"))?;
    let pair = |text: &String| match (text.split_once('='), fields.as_slice()) {
        (Some((name, value)), _) if fields.iter().any(|field| field.name == name) => Ok((name.into(), value.into())),
        // One question needs no name.
        (_, [only]) => Ok((only.name.clone(), text.clone())),
        (Some((name, value)), _) => Ok((name.into(), value.into())),
        (None, _) => Err(CallError::invalid(format!("`{}` is not FIELD=VALUE", style::inert(text)))),
    };
    let given = given.iter().map(pair).collect::<Result<Vec<(String, String)>, _>>()?;
    filled(&fields, &given).map_err(|why| CallError::invalid(why).hint(look(id)).into())
}

fn at_terminal(id: &str, form: &Form) -> Result<Value, Failure> {
    if !Terminal::present() {
        return Err(CallError::invalid("there is no answer, and no terminal to ask at").hint(look(id)).into());
    }
    match terminal::fill_in(form) {
        Ok(Written::Answer(answer)) => Ok(answer),
        _ => Err(CallError::invalid("nothing was answered; it waits on")
            .hint(format!("`haft approvals reject {id}` declines"))
            .into()),
    }
}

fn look(id: &str) -> String {
    format!("`haft approvals show {id}` shows what is asked")
}

fn read(form: &Value) -> Option<Form> {
    let text = |key: &str| form[key].as_str().map(str::to_owned);
    Some(Form { from: text("from")?, message: text("message")?, schema: form.get("schema")?.clone() })
}

/// Shows what is asked, and how it is answered.
pub(super) fn show(id: &str, form: &Value) {
    let Some(form) = read(form) else { return };
    form.message.lines().for_each(|line| style::out(&format!("    {}", style::inert(line))));
    let fields = fields(&form.schema).unwrap_or_default();
    for field in &fields {
        style::out(&format!("    {}: {}", paint(NAME, &field.name), style::inert(&field.title)));
        if let Some(more) = &field.description {
            style::out(&format!("        {}", style::inert(more)));
        }
        style::out(&paint(FAINT, format!("        {}", style::inert(&answers(field)))));
    }
    let pairs: Vec<String> = fields.iter().map(|field| format!("{}=…", field.name)).collect();
    style::out(&format!("    `haft approvals answer {id} {}`", style::inert(&pairs.join(" "))));
}

/// What can be answered.
fn answers(field: &Field) -> String {
    let listed = |choices: &[haft_core::form::Choice]| {
        let titles: Vec<&str> = choices.iter().map(|choice| choice.title.as_str()).collect();
        titles.join(" | ")
    };
    let kind = match &field.kind {
        Kind::Choice(choices) => listed(choices),
        Kind::Several(choices) => format!("some of: {}", listed(choices)),
        Kind::Confirm => "yes | no".to_owned(),
        Kind::Number { whole: true } => "a whole number".to_owned(),
        Kind::Number { whole: false } => "a number".to_owned(),
        Kind::Text => "text".to_owned(),
    };
    match field.usual() {
        Some(usual) => format!("{kind} (default {usual})"),
        None => kind,
    }
}
