//! A form that a person fills in, field by field: a choice, several, yes or no, a number, or words. It is made of the shape
//! that the answer has to have.

use super::edit::Editor;
use super::text::inert;
use haft_runtime::{Form, Written};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Map, Value, json};

/// More fields than this nobody fills in.
const FIELDS_MAX: usize = 32;
/// More options than this nobody looks through.
const OPTIONS_MAX: usize = 200;

/// A form under way.
#[derive(Debug)]
pub(crate) struct Sheet {
    /// Who wants to know, made inert.
    pub(crate) from: String,
    /// What they say, line by line, made inert.
    pub(crate) message: Vec<String>,
    /// What is to be filled in.
    pub(crate) fields: Vec<Field>,
    /// Which of them is being filled in.
    pub(crate) at: usize,
    /// What is wrong with what was filled in.
    pub(crate) problem: Option<String>,
}

/// Something to fill in.
#[derive(Debug)]
pub(crate) struct Field {
    name: String,
    /// What it is called, made inert.
    pub(crate) title: String,
    required: bool,
    /// In which way.
    pub(crate) kind: Kind,
}

/// In which way a field is filled in.
#[derive(Debug)]
pub(crate) enum Kind {
    /// By typing words.
    Words(Editor),
    /// By typing something that is JSON: a number, or what nobody here knows a better way for.
    Data(Editor, &'static str),
    /// By saying yes or no.
    YesNo(bool),
    /// By choosing one.
    One(Vec<Choice>, usize),
    /// By choosing any number; which have been, and where the cursor is.
    Many(Vec<Choice>, Vec<bool>, usize),
}

/// What can be chosen: the value, and what it is called, made inert.
pub(crate) type Choice = (Value, String);

impl Sheet {
    /// A form of that shape.
    pub(crate) fn new(form: &Form) -> Self {
        let required = form.schema["required"].as_array().cloned().unwrap_or_default();
        let properties = form.schema["properties"].as_object().cloned().unwrap_or_default();
        let fields = properties.iter().take(FIELDS_MAX).map(|(name, shape)| {
            let title = shape["title"].as_str().or(shape["description"].as_str()).unwrap_or(name);
            let required = required.iter().any(|known| known == name);
            Field { name: name.clone(), title: inert(title), required, kind: kind(shape) }
        });
        Self {
            from: inert(&form.from),
            message: form.message.lines().map(inert).collect(),
            fields: fields.collect(),
            at: 0,
            problem: None,
        }
    }

    /// Does what a key means, and gives the answer if there is one with it.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Written> {
        self.problem = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Some(Written::Cancelled),
            KeyCode::Char('x') if control => return Some(Written::Declined),
            KeyCode::Enter => return self.next(),
            KeyCode::BackTab => self.at = self.at.saturating_sub(1),
            _ => {
                if let Some(field) = self.fields.get_mut(self.at) {
                    field.kind.key(key);
                }
            }
        }
        None
    }

    /// Pastes into the field that is being filled in.
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(Field { kind: Kind::Words(editor) | Kind::Data(editor, _), .. }) = self.fields.get_mut(self.at) {
            editor.insert(text);
        }
    }

    /// On to the next field, and after the last one to the answer.
    fn next(&mut self) -> Option<Written> {
        if self.at + 1 < self.fields.len() {
            self.at += 1;
            return None;
        }
        let mut answer = Map::new();
        for (at, field) in self.fields.iter().enumerate() {
            match field.value() {
                Ok(Some(value)) => {
                    answer.insert(field.name.clone(), value);
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

impl Field {
    /// What was filled in; nothing if that is allowed.
    fn value(&self) -> Result<Option<Value>, String> {
        let missing = || format!("{} is needed", self.title);
        match &self.kind {
            Kind::YesNo(yes) => Ok(Some(Value::Bool(*yes))),
            Kind::One(choices, at) => choices.get(*at).map(|(value, _)| Some(value.clone())).ok_or_else(missing),
            Kind::Many(choices, chosen, _) => {
                let values = choices.iter().zip(chosen).filter(|(_, chosen)| **chosen);
                Ok(Some(values.map(|((value, _), _)| value.clone()).collect()))
            }
            Kind::Words(editor) | Kind::Data(editor, _) if editor.text().trim().is_empty() => {
                if self.required {
                    Err(missing())
                } else {
                    Ok(None)
                }
            }
            Kind::Words(editor) => Ok(Some(Value::from(editor.text()))),
            Kind::Data(editor, kind) => {
                let value: Option<Value> = serde_json::from_str(editor.text().trim()).ok();
                let fits = |value: &Value| match *kind {
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    _ => true,
                };
                let value = value.filter(fits).ok_or_else(|| format!("{} has to be {kind}", self.title))?;
                Ok(Some(value))
            }
        }
    }
}

impl Kind {
    fn key(&mut self, key: KeyEvent) {
        match self {
            Self::Words(editor) | Self::Data(editor, _) => {
                let newline = key.code == KeyCode::Char('j') && key.modifiers.contains(KeyModifiers::CONTROL);
                if newline {
                    editor.insert("\n");
                } else {
                    editor.key(key);
                }
            }
            Self::YesNo(yes) => match key.code {
                KeyCode::Char('y' | 'Y') => *yes = true,
                KeyCode::Char('n' | 'N') => *yes = false,
                KeyCode::Char(' ') | KeyCode::Left | KeyCode::Right | KeyCode::Up | KeyCode::Down => *yes = !*yes,
                _ => {}
            },
            Self::One(choices, at) => *at = moved(*at, choices.len(), key.code),
            Self::Many(choices, chosen, at) => {
                *at = moved(*at, choices.len(), key.code);
                let toggles = matches!(key.code, KeyCode::Char(' ' | '1'..='9'));
                if let (true, Some(chosen)) = (toggles, chosen.get_mut(*at)) {
                    *chosen = !*chosen;
                }
            }
        }
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

fn kind(shape: &Value) -> Kind {
    if let Some(choices) = choices(shape) {
        let at = choices.iter().position(|(value, _)| *value == shape["default"]).unwrap_or(0);
        return Kind::One(choices, at);
    }
    match shape["type"].as_str() {
        Some("boolean") => Kind::YesNo(shape["default"] == true),
        Some("integer") => Kind::Data(given(shape), "integer"),
        Some("number") => Kind::Data(given(shape), "number"),
        Some("array") => match choices(&shape["items"]) {
            Some(choices) => {
                let usual = shape["default"].as_array().cloned().unwrap_or_default();
                let chosen = choices.iter().map(|(value, _)| usual.contains(value)).collect();
                Kind::Many(choices, chosen, 0)
            }
            None => Kind::Data(given(shape), "JSON"),
        },
        Some("object") => Kind::Data(given(shape), "JSON"),
        _ => Kind::Words(Editor::with(shape["default"].as_str().unwrap_or_default())),
    }
}

/// What is there before anybody types.
fn given(shape: &Value) -> Editor {
    shape.get("default").map_or_else(Editor::default, |value| Editor::with(value.to_string()))
}

/// The choices of a shape, if it leaves only these.
fn choices(shape: &Value) -> Option<Vec<Choice>> {
    let shown = |value: &Value| inert(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    if let Some(values) = shape["enum"].as_array() {
        let names = shape["enumNames"].as_array();
        let name = |at: usize, value: &Value| names.and_then(|names| names.get(at)).map_or(shown(value), shown);
        let named = values.iter().enumerate().map(|(at, value)| (value.clone(), name(at, value)));
        return Some(named.take(OPTIONS_MAX).collect());
    }
    let titled = shape["oneOf"].as_array().or(shape["anyOf"].as_array())?;
    let choice = |one: &Value| {
        let value = one.get("const")?;
        let title = one["title"].as_str().map_or_else(|| shown(value), inert);
        let more = one["description"].as_str().map(|text| format!(": {}", inert(text))).unwrap_or_default();
        Some((value.clone(), format!("{title}{more}")))
    };
    titled.iter().take(OPTIONS_MAX).map(choice).collect()
}

/// An empty object is an answer, too: a form without fields asks for a nod.
impl Default for Sheet {
    fn default() -> Self {
        Self::new(&Form { from: String::new(), message: String::new(), schema: json!({}) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(properties: Value, required: &[&str]) -> Sheet {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Sheet::new(&Form { from: "a tool".into(), message: "Which?".into(), schema })
    }

    fn press(sheet: &mut Sheet, codes: &[KeyCode]) -> Option<Written> {
        codes.iter().filter_map(|code| sheet.key(KeyEvent::from(*code))).last()
    }

    #[test]
    fn one_of_some_is_chosen() {
        let shape = json!({"oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]});
        let mut form = sheet(json!({ "which": shape }), &["which"]);
        let answer = press(&mut form, &[KeyCode::Down, KeyCode::Down, KeyCode::Enter]);
        assert_eq!(answer, Some(Written::Answer(json!({"which": "b"}))));
        let mut form = sheet(json!({"which": {"type": "string", "enum": ["x", "y", "z"]}}), &[]);
        assert_eq!(
            press(&mut form, &[KeyCode::Char('3'), KeyCode::Enter]),
            Some(Written::Answer(json!({"which": "z"})))
        );
    }

    #[test]
    fn yes_or_no_and_several_and_numbers() {
        let mut form = sheet(
            json!({"sure": {"type": "boolean"}, "some": {"type": "array", "items": {"enum": ["p", "q"]}}, "n": {"type": "integer"}}),
            &["n"],
        );
        press(&mut form, &[KeyCode::Char('y'), KeyCode::Enter, KeyCode::Down, KeyCode::Char(' '), KeyCode::Enter]);
        assert_eq!(press(&mut form, &[KeyCode::Enter]), None);
        assert_eq!(form.problem.as_deref(), Some("n is needed"));
        assert_eq!(press(&mut form, &[KeyCode::Char('x'), KeyCode::Enter]), None);
        assert_eq!(form.problem.as_deref(), Some("n has to be integer"));
        let answer = press(&mut form, &[KeyCode::Backspace, KeyCode::Char('7'), KeyCode::Enter]);
        assert_eq!(answer, Some(Written::Answer(json!({"sure": true, "some": ["q"], "n": 7}))));
    }

    #[test]
    fn words_are_typed_and_a_form_can_be_declined_or_closed() {
        let mut form = sheet(json!({"answer": {"type": "string"}}), &["answer"]);
        form.paste("so be it");
        assert_eq!(press(&mut form, &[KeyCode::Enter]), Some(Written::Answer(json!({"answer": "so be it"}))));
        assert_eq!(press(&mut form, &[KeyCode::Esc]), Some(Written::Cancelled));
        let decline = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::CONTROL);
        assert_eq!(form.key(decline), Some(Written::Declined));
        assert_eq!(press(&mut Sheet::default(), &[KeyCode::Enter]), Some(Written::Answer(json!({}))));
    }
}
