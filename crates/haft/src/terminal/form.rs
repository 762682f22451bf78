//! A form at the terminal: one question after the other, each with what can be answered.

use super::prompt;
use crate::style::{self, BOLD, FAINT, NAME, paint};
use haft_core::form::{Choice, Field, Kind, fields};
use haft_core::preview::inert;
use haft_runtime::{Form, Written};
use serde_json::{Map, Value};
use std::io::BufRead;

/// How often one question is asked before it counts as declined.
const TRIES: usize = 5;

/// Shows a form and takes what is typed. Nothing at a question without a default declines, and so does a terminal that
/// ends; a form that cannot be filled in here finds nobody.
pub(crate) fn fill_in(keys: &mut impl BufRead, form: &Form) -> std::io::Result<Written> {
    let Some(fields) = fields(&form.schema) else { return Ok(Written::Nobody) };
    style::note(&format!("\n{} {} asks", paint(BOLD, "haft:"), paint(NAME, inert(&form.from))));
    // A single question says all that the message does.
    if fields.len() != 1 || !fields.iter().any(|field| form.message == field.title) {
        form.message.lines().for_each(|line| style::note(&inert(line)));
    }
    let mut answer = Map::new();
    for (at, field) in fields.iter().enumerate() {
        let number = if fields.len() > 1 { format!("{}/{} ", at + 1, fields.len()) } else { String::new() };
        style::note(&format!("{}{}", paint(FAINT, number), paint(BOLD, inert(&field.title))));
        match ask(keys, field)? {
            Typed::Value(value) => drop(answer.insert(field.name.clone(), value)),
            Typed::LeftOut => {}
            Typed::Declined => return Ok(Written::Declined),
        }
    }
    Ok(Written::Answer(Value::Object(answer)))
}

/// What somebody did with one field.
enum Typed {
    Value(Value),
    LeftOut,
    Declined,
}

/// Asks for one field.
fn ask(keys: &mut impl BufRead, field: &Field) -> std::io::Result<Typed> {
    if let Some(more) = &field.description {
        more.lines().for_each(|line| style::note(&inert(line)));
    }
    if let Kind::Choice(choices) | Kind::Several(choices) = &field.kind {
        choices.iter().enumerate().for_each(|(at, choice)| style::note(&option(at, choice)));
    }
    for _ in 0..TRIES {
        let Some(typed) = prompt(keys, &hint(field))? else { return Ok(Typed::Declined) };
        if typed.is_empty() && field.default.is_none() && field.required {
            return Ok(Typed::Declined);
        }
        match field.read(&typed) {
            Ok(Some(value)) => return Ok(Typed::Value(value)),
            Ok(None) => return Ok(Typed::LeftOut),
            Err(why) => style::note(&why),
        }
    }
    Ok(Typed::Declined)
}

fn option(at: usize, choice: &Choice) -> String {
    format!("  {} {}", paint(BOLD, format!("{:>2}.", at + 1)), inert(&choice.title))
}

/// What can be typed.
fn hint(field: &Field) -> String {
    let kind = match &field.kind {
        Kind::Choice(choices) => format!("1-{}", choices.len()),
        Kind::Several(choices) => format!("some of 1-{}, with commas", choices.len()),
        Kind::Confirm => "y/n".to_owned(),
        Kind::Number { whole: true } => "a whole number".to_owned(),
        Kind::Number { whole: false } => "a number".to_owned(),
        Kind::Text => "text".to_owned(),
    };
    let empty = match field.usual() {
        Some(usual) => format!("enter for {}", inert(&usual)),
        None if field.required => "enter declines".to_owned(),
        None => "enter leaves it out".to_owned(),
    };
    format!("{} > ", paint(FAINT, format!("[{kind}; {empty}]")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form() -> Form {
        let schema = json!({"properties": {
            "db": {"type": "string", "title": "Which?", "enum": ["sqlite", "postgres"]},
            "sure": {"type": "boolean", "default": true},
            "why": {"type": "string", "title": "Why\u{1b}[2J?"}
        }, "required": ["db", "why"]});
        Form { from: "planner".to_owned(), message: "Set up".to_owned(), schema }
    }

    fn typed(keys: &str) -> Written {
        fill_in(&mut keys.as_bytes(), &form()).unwrap()
    }

    #[test]
    fn what_is_typed_fills_it_in_and_what_does_not_fit_is_asked_again() {
        let answer = json!({"db": "postgres", "sure": true, "why": "speed"});
        assert_eq!(typed("9\n2\n\nspeed\n"), Written::Answer(answer));
    }

    #[test]
    fn nothing_where_something_is_needed_declines() {
        for keys in ["\n", "", "1\ny\n\n", "x\nx\nx\nx\nx\n1\n"] {
            assert_eq!(typed(keys), Written::Declined, "{keys:?}");
        }
    }

    #[test]
    fn a_form_that_cannot_be_shown_finds_nobody() {
        let form = Form { schema: json!({"properties": {"a": {"type": "object"}}}), ..form() };
        assert_eq!(fill_in(&mut "x\n".as_bytes(), &form).unwrap(), Written::Nobody);
    }
}
