//! A form that a person fills in, field by field: a choice, several, yes or no, a number, or words. What fields there are and
//! what a word means in them is [`haft_core::form`]'s; here are the keys.

use super::edit::Editor;
use super::text::inert;
use haft_core::form::{Choice, Field, Kind, fields};
use haft_runtime::{Form, Written};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Map, Value, json};

/// A form under way.
#[derive(Debug)]
pub(crate) struct Sheet {
    /// Who wants to know, made inert.
    pub(crate) from: String,
    /// What they say, line by line, made inert.
    pub(crate) message: Vec<String>,
    /// What is to be filled in, and what was so far.
    pub(crate) blanks: Vec<Blank>,
    /// Which of them is being filled in.
    pub(crate) at: usize,
    /// What is wrong with what was filled in.
    pub(crate) problem: Option<String>,
}

/// Something to fill in.
#[derive(Debug)]
pub(crate) struct Blank {
    /// What is asked for.
    pub(crate) field: Field,
    /// What was filled in.
    pub(crate) filled: Filled,
}

/// What was filled in so far.
#[derive(Debug)]
pub(crate) enum Filled {
    /// These words.
    Words(Editor),
    /// Yes or no.
    YesNo(bool),
    /// The choice with this number.
    One(usize),
    /// These choices; and where the cursor is.
    Many(Vec<bool>, usize),
}

impl Sheet {
    /// A form, if it is one that can be filled in field by field.
    pub(crate) fn new(form: &Form) -> Option<Self> {
        let blank = |field: Field| Blank { filled: usual(&field), field };
        Some(Self {
            from: inert(&form.from),
            message: form.message.lines().map(inert).collect(),
            blanks: fields(&form.schema)?.into_iter().map(blank).collect(),
            at: 0,
            problem: None,
        })
    }

    /// Does what a key means, and gives the answer if there is one with it.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Written> {
        self.problem = None;
        match key.code {
            KeyCode::Esc => return Some(Written::Cancelled),
            KeyCode::Char('x') if key.modifiers.contains(KeyModifiers::CONTROL) => return Some(Written::Declined),
            KeyCode::Enter => return self.next(),
            KeyCode::BackTab => self.at = self.at.saturating_sub(1),
            _ => {
                if let Some(blank) = self.blanks.get_mut(self.at) {
                    blank.key(key);
                }
            }
        }
        None
    }

    /// Pastes into the field that is being filled in.
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(Blank { filled: Filled::Words(editor), .. }) = self.blanks.get_mut(self.at) {
            editor.insert(text);
        }
    }

    /// On to the next field, and after the last one to the answer.
    fn next(&mut self) -> Option<Written> {
        if self.at + 1 < self.blanks.len() {
            self.at += 1;
            return None;
        }
        let mut answer = Map::new();
        for (at, blank) in self.blanks.iter().enumerate() {
            match blank.value() {
                Ok(Some(value)) => {
                    answer.insert(blank.field.name.clone(), value);
                }
                Ok(None) => {}
                Err(problem) => {
                    (self.at, self.problem) = (at, Some(problem));
                    return None;
                }
            }
        }
        Some(Written::Answer(Value::Object(answer)))
    }
}

/// What is filled in before anybody does anything.
fn usual(field: &Field) -> Filled {
    let default = field.default.as_ref();
    match &field.kind {
        Kind::Confirm => Filled::YesNo(default == Some(&Value::Bool(true))),
        Kind::Choice(choices) => {
            let is = |choice: &Choice| default.and_then(Value::as_str) == Some(choice.value.as_str());
            Filled::One(choices.iter().position(is).unwrap_or(0))
        }
        Kind::Several(choices) => {
            let among = |choice: &Choice| default.is_some_and(|list| list_has(list, &choice.value));
            Filled::Many(choices.iter().map(among).collect(), 0)
        }
        Kind::Number { .. } | Kind::Text => Filled::Words(Editor::with(field.usual().unwrap_or_default())),
    }
}

fn list_has(list: &Value, value: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|one| one == value))
}

impl Blank {
    /// What was filled in; nothing if that is allowed.
    fn value(&self) -> Result<Option<Value>, String> {
        match (&self.filled, &self.field.kind) {
            (Filled::YesNo(yes), _) => Ok(Some(Value::Bool(*yes))),
            (Filled::One(at), Kind::Choice(choices)) => choices
                .get(*at)
                .map(|choice| Some(json!(choice.value)))
                .ok_or_else(|| "nothing can be chosen".to_owned()),
            (Filled::Many(chosen, _), Kind::Several(choices)) => {
                let chosen = choices.iter().zip(chosen).filter(|(_, chosen)| **chosen);
                Ok(Some(chosen.map(|(choice, _)| json!(choice.value)).collect()))
            }
            (Filled::Words(editor), _) => self.field.read(editor.text()),
            _ => Ok(None),
        }
    }

    fn key(&mut self, key: KeyEvent) {
        match &mut self.filled {
            Filled::Words(editor) => {
                if key.code == KeyCode::Char('j') && key.modifiers.contains(KeyModifiers::CONTROL) {
                    editor.insert("\n");
                } else {
                    editor.key(key);
                }
            }
            Filled::YesNo(yes) => match key.code {
                KeyCode::Char('y' | 'Y') => *yes = true,
                KeyCode::Char('n' | 'N') => *yes = false,
                KeyCode::Char(' ') | KeyCode::Left | KeyCode::Right | KeyCode::Up | KeyCode::Down => *yes = !*yes,
                _ => {}
            },
            Filled::One(at) => *at = moved(*at, choices(&self.field.kind).len(), key.code),
            Filled::Many(chosen, at) => {
                *at = moved(*at, chosen.len(), key.code);
                let toggles = matches!(key.code, KeyCode::Char(' ' | '1'..='9'));
                if let (true, Some(chosen)) = (toggles, chosen.get_mut(*at)) {
                    *chosen = !*chosen;
                }
            }
        }
    }
}

/// What can be chosen.
pub(crate) fn choices(kind: &Kind) -> &[Choice] {
    match kind {
        Kind::Choice(choices) | Kind::Several(choices) => choices,
        _ => &[],
    }
}

/// Where the cursor is after a key: a step up or down, or at that number.
fn moved(at: usize, count: usize, code: KeyCode) -> usize {
    match code {
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => (at + 1).min(count.saturating_sub(1)),
        KeyCode::Char(c @ '1'..='9') => {
            let wanted = c as usize - '1' as usize;
            if wanted < count { wanted } else { at }
        }
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(properties: &Value, required: &[&str]) -> Sheet {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Sheet::new(&Form { from: "a tool".into(), message: "Which?".into(), schema }).unwrap()
    }

    fn press(sheet: &mut Sheet, codes: &[KeyCode]) -> Option<Written> {
        codes.iter().filter_map(|code| sheet.key(KeyEvent::from(*code))).last()
    }

    #[test]
    fn one_of_some_is_chosen() {
        let shape = json!({"oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]});
        let mut form = sheet(&json!({ "which": shape }), &["which"]);
        let answer = press(&mut form, &[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
        assert_eq!(answer, Some(Written::Answer(json!({"which": "b"}))));
        let mut form = sheet(&json!({"which": {"type": "string", "enum": ["x", "y", "z"]}}), &[]);
        let answer = press(&mut form, &[KeyCode::Char('3'), KeyCode::Enter]);
        assert_eq!(answer, Some(Written::Answer(json!({"which": "z"}))));
    }

    #[test]
    fn yes_or_no_and_several_and_numbers() {
        let some = json!({"type": "array", "items": {"enum": ["p", "q"]}});
        let properties = json!({"sure": {"type": "boolean"}, "some": some, "n": {"type": "integer"}});
        let mut form = sheet(&properties, &["n"]);
        press(&mut form, &[KeyCode::Char('y'), KeyCode::Enter, KeyCode::Down, KeyCode::Char(' '), KeyCode::Enter]);
        assert_eq!(press(&mut form, &[KeyCode::Enter]), None);
        assert_eq!(form.problem.as_deref(), Some("this has to be answered"));
        assert_eq!(press(&mut form, &[KeyCode::Char('x'), KeyCode::Enter]), None);
        assert_eq!(form.problem.as_deref(), Some("answer a whole number"));
        let answer = press(&mut form, &[KeyCode::Backspace, KeyCode::Char('7'), KeyCode::Enter]);
        assert_eq!(answer, Some(Written::Answer(json!({"sure": true, "some": ["q"], "n": 7}))));
    }

    #[test]
    fn words_are_typed_and_a_form_can_be_declined_or_closed() {
        let mut form = sheet(&json!({"answer": {"type": "string"}}), &["answer"]);
        form.paste("so be it");
        assert_eq!(press(&mut form, &[KeyCode::Enter]), Some(Written::Answer(json!({"answer": "so be it"}))));
        assert_eq!(press(&mut form, &[KeyCode::Esc]), Some(Written::Cancelled));
        let decline = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::CONTROL);
        assert_eq!(form.key(decline), Some(Written::Declined));
    }

    #[test]
    fn what_cannot_be_filled_in_is_not_shown() {
        let schema = json!({"properties": {"a": {"type": "object"}}});
        assert!(Sheet::new(&Form { from: "x".into(), message: "y".into(), schema }).is_none());
    }
}
