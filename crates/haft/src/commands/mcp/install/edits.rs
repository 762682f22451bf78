//! Edits of a configuration file, whatever its format: applied to its text, and taken back again.
//!
//! An edit is checked by its meaning: the new text is read again and must say exactly what the old one said, with the
//! edit. A file in a form that an editor does not know is therefore refused and stays as it is.

use super::{jsonc, toml, yaml};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// Why a text cannot be read or edited.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum EditError {
    /// The text is not of its format.
    #[error("not valid {format}: {what}")]
    Unreadable { format: &'static str, what: String },
    /// The file as a whole is something else.
    #[error("the top level is not a {0}")]
    WrongRoot(&'static str),
    /// Something stands where another kind of value is expected.
    #[error("`{path}` in it is not {expected}")]
    WrongKind { path: String, expected: &'static str },
    /// Something that should be changed is not there.
    #[error("`{0}` is not in it")]
    Missing(String),
    /// The format has no form for a value.
    #[error("{0} cannot be written in this format")]
    NoForm(String),
    /// The new text would not say what is meant.
    #[error("its layout is too unusual to edit safely")]
    TooUnusual,
}

impl EditError {
    pub(super) fn wrong_kind(path: &[String], expected: &'static str) -> Self {
        Self::WrongKind { path: path.join("."), expected }
    }

    pub(super) fn missing(path: &[String]) -> Self {
        Self::Missing(path.join("."))
    }
}

/// In what form a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FileFormat {
    /// JSON, with comments if there are any.
    Json,
    Toml,
    Yaml,
}

/// A change that haft makes in a configuration file.
#[derive(Debug, Clone)]
pub(super) enum ConfigEdit {
    /// A value at a path of keys.
    Set { path: Vec<String>, value: Value },
    /// A value at a path where there is none.
    Default { path: Vec<String>, value: Value },
    /// Values in a list, beside those that are in it.
    Include { path: Vec<String>, values: Vec<Value> },
}

impl ConfigEdit {
    pub(super) fn set(path: &[&str], value: Value) -> Self {
        Self::Set { path: owned(path), value }
    }

    pub(super) fn default(path: &[&str], value: Value) -> Self {
        Self::Default { path: owned(path), value }
    }

    pub(super) fn include(path: &[&str], values: Vec<Value>) -> Self {
        Self::Include { path: owned(path), values }
    }

    /// Whether a file says this already.
    pub(super) fn is_in(&self, file: &Value) -> bool {
        match self {
            Self::Set { path, value } => get(file, path) == Some(value),
            Self::Default { path, .. } => get(file, path).is_some(),
            Self::Include { path, values } => {
                let list = get(file, path).and_then(Value::as_array);
                list.is_some_and(|list| values.iter().all(|value| list.contains(value)))
            }
        }
    }
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|name| (*name).to_owned()).collect()
}

/// An edit as it was made: enough to take it back from a file that somebody has changed since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AppliedEdit {
    path: Vec<String>,
    what: AppliedChange,
    /// How many keys of the path were there before.
    existed: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AppliedChange {
    Set {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Value>,
        after: Value,
    },
    Included {
        values: Vec<Value>,
    },
}

/// What a text says.
pub(super) fn read(format: FileFormat, text: &str) -> Result<Value, EditError> {
    match format {
        FileFormat::Json => jsonc::value(text),
        FileFormat::Toml => toml::value(text),
        FileFormat::Yaml => yaml::value(text),
    }
}

/// The text with the edits in it, and the edits as they were made. An edit that changes nothing is not among them.
pub(super) fn apply(
    format: FileFormat,
    text: &str,
    edits: &[ConfigEdit],
) -> Result<(String, Vec<AppliedEdit>), EditError> {
    let mut document = Document::read(format, text)?;
    let mut applied = Vec::new();
    for edit in edits.iter().filter(|edit| !matches!(edit, ConfigEdit::Include { values, .. } if values.is_empty())) {
        if edit.is_in(&document.value) {
            continue;
        }
        applied.push(match edit {
            ConfigEdit::Set { path, value } | ConfigEdit::Default { path, value } => document.set_anew(path, value)?,
            ConfigEdit::Include { path, values } => document.include(path, values)?,
        });
    }
    Ok((document.text, applied))
}

/// The text without these edits, and what was left because somebody has changed it since.
pub(super) fn take_back(
    format: FileFormat,
    text: &str,
    applied: &[AppliedEdit],
) -> Result<(String, Vec<String>), EditError> {
    let mut document = Document::read(format, text)?;
    let mut left = Vec::new();
    for edit in applied.iter().rev() {
        match &edit.what {
            AppliedChange::Set { before, after } => match (get(&document.value, &edit.path), before) {
                (None, _) => {}
                (Some(now), _) if now != after => left.push(edit.path.join(".")),
                (Some(_), Some(before)) => document.set(&edit.path, before)?,
                (Some(_), None) => document.remove(&edit.path)?,
            },
            AppliedChange::Included { values } => {
                for value in values {
                    let list = get(&document.value, &edit.path).and_then(Value::as_array);
                    if list.is_some_and(|list| list.contains(value)) {
                        document.remove_item(&edit.path, value)?;
                    }
                }
            }
        }
        document.prune(&edit.path, edit.existed)?;
    }
    Ok((document.text, left))
}

/// The text without one entry, for a file of which there is no record.
pub(super) fn without(format: FileFormat, text: &str, path: &[&str]) -> Result<String, EditError> {
    let mut document = Document::read(format, text)?;
    let path = owned(path);
    if get(&document.value, &path).is_some() {
        document.remove(&path)?;
    }
    Ok(document.text)
}

pub(super) fn get<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.as_object()?.get(name))
}

/// A text and what it says.
struct Document {
    format: FileFormat,
    text: String,
    value: Value,
}

impl Document {
    fn read(format: FileFormat, text: &str) -> Result<Self, EditError> {
        Ok(Self { format, text: text.to_owned(), value: read(format, text)? })
    }

    /// Takes a new text only if it says what is meant.
    fn become_text(&mut self, text: String, meant: Value) -> Result<(), EditError> {
        if read(self.format, &text).as_ref() != Ok(&meant) {
            return Err(EditError::TooUnusual);
        }
        self.text = text;
        self.value = meant;
        Ok(())
    }

    fn set_anew(&mut self, path: &[String], value: &Value) -> Result<AppliedEdit, EditError> {
        let before = get(&self.value, path).cloned();
        let existed = self.existing_keys(path);
        self.set(path, value)?;
        let what = AppliedChange::Set { before, after: value.clone() };
        Ok(AppliedEdit { path: path.to_vec(), what, existed })
    }

    fn include(&mut self, path: &[String], values: &[Value]) -> Result<AppliedEdit, EditError> {
        let existed = self.existing_keys(path);
        let known = match get(&self.value, path) {
            None => Vec::new(),
            Some(Value::Array(list)) => list.clone(),
            Some(_) => return Err(EditError::wrong_kind(path, "a list")),
        };
        let values: Vec<Value> = values.iter().filter(|value| !known.contains(value)).cloned().collect();
        if existed < path.len() {
            self.set_list(path, &values)?;
        } else {
            for value in &values {
                self.push(path, value)?;
            }
        }
        Ok(AppliedEdit { path: path.to_vec(), what: AppliedChange::Included { values }, existed })
    }

    fn existing_keys(&self, path: &[String]) -> usize {
        (1..=path.len()).take_while(|length| get(&self.value, &path[..*length]).is_some()).count()
    }

    fn set(&mut self, path: &[String], value: &Value) -> Result<(), EditError> {
        let mut meant = self.value.clone();
        *slot(&mut meant, path)? = value.clone();
        let text = match self.format {
            FileFormat::Json => jsonc::set(&self.text, path, value),
            FileFormat::Toml => toml::set(&self.text, path, value),
            FileFormat::Yaml => yaml::set(&self.text, path, value),
        };
        self.become_text(text?, meant)
    }

    /// A list that is not there yet.
    fn set_list(&mut self, path: &[String], values: &[Value]) -> Result<(), EditError> {
        let list = Value::Array(values.to_vec());
        if self.format != FileFormat::Toml || !values.iter().all(Value::is_object) {
            return self.set(path, &list);
        }
        let mut meant = self.value.clone();
        *slot(&mut meant, path)? = list;
        let text = toml::set_tables(&self.text, path, values)?;
        self.become_text(text, meant)
    }

    fn remove(&mut self, path: &[String]) -> Result<(), EditError> {
        let mut meant = self.value.clone();
        let Some((name, parents)) = path.split_last() else { return Ok(()) };
        if let Some(parent) = slot(&mut meant, parents)?.as_object_mut() {
            parent.shift_remove(name);
        }
        let text = match self.format {
            FileFormat::Json => jsonc::remove(&self.text, path),
            FileFormat::Toml => toml::remove(&self.text, path),
            FileFormat::Yaml => yaml::remove(&self.text, path),
        }?;
        // A block without entries says null.
        if self.format == FileFormat::Yaml && !parents.is_empty() && get(&meant, parents) == Some(&empty()) {
            let text = yaml::set(&text, parents, &empty())?;
            return self.become_text(text, meant);
        }
        // An empty TOML table without a header of its own is not written at all.
        if self.format == FileFormat::Toml && read(self.format, &text).as_ref() != Ok(&meant) {
            drop_empty_parents(&mut meant, parents);
        }
        self.become_text(text, meant)
    }

    fn push(&mut self, path: &[String], value: &Value) -> Result<(), EditError> {
        let mut meant = self.value.clone();
        if let Value::Array(list) = slot(&mut meant, path)? {
            list.push(value.clone());
        }
        let text = match self.format {
            FileFormat::Json => jsonc::push(&self.text, path, value),
            FileFormat::Toml => toml::push(&self.text, path, value),
            FileFormat::Yaml => yaml::push(&self.text, path, value),
        };
        self.become_text(text?, meant)
    }

    fn remove_item(&mut self, path: &[String], value: &Value) -> Result<(), EditError> {
        let mut meant = self.value.clone();
        if let Value::Array(list) = slot(&mut meant, path)? {
            let at = list.iter().position(|known| known == value);
            at.map(|at| list.remove(at));
        }
        // An empty TOML list of tables is not written at all.
        let is_last_table = self.format == FileFormat::Toml
            && value.is_object()
            && get(&meant, path).and_then(Value::as_array).is_some_and(Vec::is_empty);
        if is_last_table {
            return self.remove(path);
        }
        let text = match self.format {
            FileFormat::Json => jsonc::remove_item(&self.text, path, value),
            FileFormat::Toml => toml::remove_item(&self.text, path, value),
            FileFormat::Yaml => yaml::remove_item(&self.text, path, value),
        };
        self.become_text(text?, meant)
    }

    /// Removes the containers that haft made on the way, as far as they are empty now.
    fn prune(&mut self, path: &[String], existed: usize) -> Result<(), EditError> {
        for length in (existed + 1..=path.len()).rev() {
            let is_empty = match get(&self.value, &path[..length]) {
                Some(Value::Object(members)) => members.is_empty(),
                Some(Value::Array(items)) => items.is_empty(),
                _ => false,
            };
            if is_empty {
                self.remove(&path[..length])?;
            }
        }
        Ok(())
    }
}

/// Removes the innermost of these objects if it is empty, then the one around it, and so on.
fn drop_empty_parents(value: &mut Value, path: &[String]) {
    for length in (1..=path.len()).rev() {
        if get(value, &path[..length]) != Some(&empty()) {
            return;
        }
        if let Ok(Value::Object(parent)) = slot(value, &path[..length - 1]) {
            parent.shift_remove(&path[length - 1]);
        }
    }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

/// The place of a value, with objects made on the way.
fn slot<'v>(value: &'v mut Value, path: &[String]) -> Result<&'v mut Value, EditError> {
    let mut value = value;
    for (depth, name) in path.iter().enumerate() {
        let Value::Object(members) = value else {
            return Err(match depth {
                0 => EditError::WrongRoot("mapping"),
                depth => EditError::wrong_kind(&path[..depth], "an object"),
            });
        };
        value = members.entry(name.clone()).or_insert(match path.len() - depth {
            1 => Value::Null,
            _ => empty(),
        });
    }
    Ok(value)
}

#[cfg(test)]
mod tests;
