//! `{{path}}` in a plan, filled in from what a run was given and what its steps gave. A lone `{{path}}` keeps its value's
//! type; inside text it is rendered. `{{name}}` is an input, `{{step}}` what a step said, `{{step.data.x}}` a part of what
//! it gave. In a command for the shell it is one quoted word.

use super::command::{self, COMMAND, Unquotable};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;

/// The most that a step is given, filled in.
const FILLED_MAX: usize = 4 << 20;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Itself.
    Text(&'t str),
    /// What stands for something else.
    Path(&'t str),
}

/// The pieces of a text. Braces around what is no path are text: a plan may well speak of other templates.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut found, mut rest, mut from) = (Vec::new(), 0, 0);
    while let Some(at) = text[rest..].find("{{").map(|at| at + rest) {
        let inner = &text[at + 2..];
        let Some(end) = inner.find("}}") else { break };
        let path = inner[..end].trim();
        if !is_path(path) {
            rest = at + 2;
            continue;
        }
        if at > from {
            found.push(Piece::Text(&text[from..at]));
        }
        found.push(Piece::Path(path));
        rest = at + 2 + end + 2;
        from = rest;
    }
    if from < text.len() {
        found.push(Piece::Text(&text[from..]));
    }
    found
}

fn is_path(path: &str) -> bool {
    let word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
    path.len() <= 256 && path.split('.').all(word)
}

/// The paths in a value, wherever they are in it.
pub fn paths(value: &Value) -> Vec<&str> {
    let path = |piece| match piece {
        Piece::Path(path) => Some(path),
        Piece::Text(_) => None,
    };
    match value {
        Value::String(text) => pieces(text).into_iter().filter_map(path).collect(),
        Value::Array(items) => items.iter().flat_map(paths).collect(),
        Value::Object(map) => map.values().flat_map(paths).collect(),
        _ => Vec::new(),
    }
}

/// What a step gave, as far as others may ask.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gave {
    /// Whether it ended well. What did not gives nothing else.
    pub success: bool,
    /// What it said.
    pub output: String,
    /// The same as data.
    pub data: Value,
}

/// What a plan's words stand for.
#[derive(Debug, Clone, Copy)]
pub struct Known<'k> {
    /// What the run was given.
    pub inputs: &'k Map<String, Value>,
    /// What steps gave that are over.
    pub steps: &'k BTreeMap<String, Gave>,
}

/// A path leads to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{{{{{0}}}}}` stands for nothing: {1}")]
pub struct Nothing(pub String, pub String);

/// Why something cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfilled {
    /// It stands for nothing.
    #[error(transparent)]
    Nothing(#[from] Nothing),
    /// It stands in a command where it cannot be one word.
    #[error(transparent)]
    Unquotable(#[from] Unquotable),
}

impl Known<'_> {
    /// What a path stands for. A step that did not end well, or was not wanted, gives nothing, and that is empty.
    pub fn get(&self, path: &str) -> Result<Cow<'_, Value>, Nothing> {
        let nothing = |why: String| Nothing(path.to_owned(), why);
        let path_in = path.strip_prefix("steps.").unwrap_or(path);
        let (first, rest) = path_in.split_once('.').map_or((path_in, None), |(first, rest)| (first, Some(rest)));
        if let Some(gave) = self.steps.get(first) {
            return gave.part(rest).ok_or_else(|| nothing(format!("the step `{first}` gave no such thing")));
        }
        if let Some(found) = self.inputs.get(first) {
            let found = rest.map_or(Some(found), |rest| within(found, rest));
            return found.map(Cow::Borrowed).ok_or_else(|| nothing(format!("`{first}` has no such part")));
        }
        Err(nothing("there is no input and no step of that name before it".to_owned()))
    }

    /// Fills in a value. What comes out is bounded, however often something stands in it.
    pub fn fill(&self, template: &Value) -> Result<Value, Nothing> {
        self.fill_within(template, &Cell::new(FILLED_MAX))
    }

    /// Fills in the arguments of a tool. What comes into a command for the shell is one word of it.
    pub fn fill_args(&self, tool: &str, args: &Map<String, Value>) -> Result<Value, Unfilled> {
        let left = Cell::new(FILLED_MAX);
        self.fill_call(tool, args, &left)
    }

    fn fill_call(&self, tool: &str, args: &Map<String, Value>, left: &Cell<usize>) -> Result<Value, Unfilled> {
        if let Some((_, why)) = command::unquotable(tool, args) {
            return Err(why.into());
        }
        let (shell, inner) = (command::is_shell(tool, args), command::inner(tool));
        let each = args.iter().map(|(name, value)| {
            let filled = match value {
                Value::String(text) if shell && name == COMMAND => self.fill_command(text, left)?,
                // What is called by way of another tool is filled in as itself.
                value if inner == Some(name.as_str()) => self.fill_inner(args, value, left)?,
                value => self.fill_within(value, left)?,
            };
            Ok((name.clone(), filled))
        });
        each.collect::<Result<Map<_, _>, Unfilled>>().map(Value::Object)
    }

    fn fill_inner(&self, outer: &Map<String, Value>, value: &Value, left: &Cell<usize>) -> Result<Value, Unfilled> {
        let named = outer.get("name").map(|name| self.fill_within(name, left)).transpose()?;
        let named = named.as_ref().and_then(Value::as_str).unwrap_or_default();
        match value {
            Value::Object(args) => self.fill_call(named, args, left),
            other if !command::is_shell(named, &Map::new()) => Ok(self.fill_within(other, left)?),
            other => match paths(other).first() {
                Some(path) => Err(Unquotable::Whole((*path).to_owned()).into()),
                None => Ok(other.clone()),
            },
        }
    }

    fn fill_command(&self, text: &str, left: &Cell<usize>) -> Result<Value, Unfilled> {
        let mut filled = String::with_capacity(text.len());
        for piece in command::parts(text)? {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Path(path) => {
                    let found = self.get(path)?;
                    let word = command::quoted(&crate::manifest::template::rendered(&found));
                    take(left, path, word.len())?;
                    filled.push_str(&word);
                }
            }
        }
        Ok(Value::String(filled))
    }

    fn fill_within(&self, template: &Value, left: &Cell<usize>) -> Result<Value, Nothing> {
        Ok(match template {
            Value::String(text) => self.fill_text(text, left)?,
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.fill_within(item, left)).collect::<Result<_, _>>()?)
            }
            Value::Object(map) => {
                let each = map.iter().map(|(key, value)| Ok((key.clone(), self.fill_within(value, left)?)));
                Value::Object(each.collect::<Result<_, _>>()?)
            }
            other => other.clone(),
        })
    }

    fn fill_text(&self, text: &str, left: &Cell<usize>) -> Result<Value, Nothing> {
        let pieces = pieces(text);
        if let [Piece::Path(path)] = pieces.as_slice() {
            let found = self.get(path)?;
            take(left, path, weight(&found))?;
            return Ok(found.into_owned());
        }
        let mut filled = String::with_capacity(text.len());
        for piece in pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Path(path) => {
                    let found = self.get(path)?;
                    take(left, path, weight(&found))?;
                    filled.push_str(&crate::manifest::template::rendered(&found));
                }
            }
        }
        Ok(Value::String(filled))
    }
}

/// Takes so many bytes of those that may be filled in.
fn take(left: &Cell<usize>, path: &str, bytes: usize) -> Result<(), Nothing> {
    let much = || Nothing(path.to_owned(), format!("filled in, it is more than {} MiB", FILLED_MAX >> 20));
    left.set(left.get().checked_sub(bytes).ok_or_else(much)?);
    Ok(())
}

/// About how many bytes a value is.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| weight(item) + 1).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + weight(value) + 4).sum(),
        _ => 8,
    }
}

impl Gave {
    fn part(&self, rest: Option<&str>) -> Option<Cow<'_, Value>> {
        let text = || Some(Cow::Owned(Value::from(self.output.as_str())));
        match rest {
            None | Some("output") => text(),
            Some("success") => Some(Cow::Owned(Value::from(self.success))),
            Some("data") => Some(Cow::Borrowed(&self.data)),
            Some(rest) => {
                let found = within(&self.data, rest.strip_prefix("data.").unwrap_or(rest));
                // Nobody can have asked more of what gave nothing.
                found.map(Cow::Borrowed).or_else(|| (!self.success).then(|| Cow::Owned(Value::from(""))))
            }
        }
    }
}

fn within<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, word| match value {
        Value::Array(items) => items.get(word.parse::<usize>().ok()?),
        other => other.get(word),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn known(test: impl FnOnce(Known<'_>)) {
        let inputs = json!({"name": "Ada", "list": [1, {"x": true}], "fetch": "shadowed"});
        let gave = |success, output: &str, data| Gave { success, output: output.to_owned(), data };
        let steps = BTreeMap::from([
            ("fetch".to_owned(), gave(true, "words", json!({"count": 3, "items": ["a"]}))),
            ("failed".to_owned(), gave(false, "", Value::Null)),
        ]);
        test(Known { inputs: inputs.as_object().unwrap(), steps: &steps });
    }

    #[test]
    fn a_lone_path_keeps_its_type_and_others_are_rendered() {
        known(|known| {
            let template = json!({
                "a": "{{fetch.data.count}}", "b": "{{ fetch.count }}!", "c": ["{{list}}", "{{list.1.x}}"],
                "d": "{{fetch}} for {{name}}", "e": "{{steps.fetch.success}}", "f": "{{not a path}} {{}} {{name", "g": 7,
            });
            let filled = known.fill(&template).unwrap();
            let expected = json!({
                "a": 3, "b": "3!", "c": [[1, {"x": true}], true], "d": "words for Ada", "e": true,
                "f": "{{not a path}} {{}} {{name", "g": 7,
            });
            assert_eq!(filled, expected);
        });
    }

    #[test]
    fn what_stands_for_nothing_is_told_and_what_failed_is_empty() {
        known(|known| {
            let said = known.fill(&json!("{{nobody.x}}")).unwrap_err().to_string();
            assert_eq!(said, "`{{nobody.x}}` stands for nothing: there is no input and no step of that name before it");
            assert!(known.get("fetch.data.no").unwrap_err().to_string().contains("gave no such thing"));
            assert!(known.get("name.x").is_err());
            assert_eq!(known.fill(&json!("[{{failed}}{{failed.data.x.y}}]")).unwrap(), json!("[]"));
        });
    }

    #[test]
    fn what_is_filled_in_is_bounded() {
        let inputs = json!({"a": "x".repeat(50_000)});
        let known = Known { inputs: inputs.as_object().unwrap(), steps: &BTreeMap::new() };
        assert!(known.fill(&json!("{{a}}".repeat(80))).is_ok());
        let said = known.fill(&json!("{{a}}".repeat(80_000))).unwrap_err().to_string();
        assert!(said.contains("more than 4 MiB"), "{said}");
        assert!(known.fill(&json!(vec!["{{a}}"; 1000])).is_err());
    }

    #[test]
    fn what_comes_into_a_command_is_one_word_of_it() {
        let hostile = [
            "; rm -rf x",
            "$(touch x)",
            "`touch x`",
            "'; touch x; '",
            "a\nb",
            "",
            "-rf",
            "\\",
            "\"",
            "*",
            "~",
            "${IFS}",
        ];
        for value in hostile {
            let inputs = json!({ "x": value, "shell": "shell.exec" });
            let known = Known { inputs: inputs.as_object().unwrap(), steps: &BTreeMap::new() };
            let filled = |tool: &str, args: Value| known.fill_args(tool, args.as_object().unwrap());
            let word = command::quoted(value);
            let args = json!({"command": "printf %s {{x}} >a{{x}}", "cwd": "{{x}}"});
            let expected = json!({"command": format!("printf %s {word} >a{word}"), "cwd": value});
            assert_eq!(filled("Bash", args.clone()).unwrap(), expected);
            assert_eq!(filled("file.write", args.clone()).unwrap()["command"], format!("printf %s {value} >a{value}"));
            let by_way = filled("tool.call", json!({"name": "{{shell}}", "args": args})).unwrap();
            assert_eq!(by_way["args"], expected);
            for (tool, args) in [
                ("shell.exec", json!({"command": "{{x}}"})),
                ("shell.exec", json!({"command": "echo \"{{x}}\""})),
                ("tool.call", json!({"name": "{{shell}}", "args": "{{x}}"})),
                ("tool.call", json!({"name": "{{shell}}", "args": {"command": "{{x}}"}})),
            ] {
                assert!(filled(tool, args.clone()).is_err(), "{args}");
            }
        }
    }

    #[test]
    fn paths_are_found_wherever_they_are() {
        let value = json!({"a": ["{{x.y}} and {{z}}"], "b": {"c": "{{ w }}"}, "d": 1});
        assert_eq!(paths(&value), ["x.y", "z", "w"]);
    }
}
