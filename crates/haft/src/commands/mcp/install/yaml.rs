//! Edits of a YAML file as text: only the lines of an edited entry change.
//!
//! The text is edited by indentation, as the clients write their files: mappings as blocks, entries found by their key
//! and depth. `edits.rs` reads the result again and refuses it unless it says what was meant, so that a form this editor
//! does not know is refused and never damaged.

use super::edits::EditError;
use serde_json::{Map, Value};
use std::ops::Range;

/// What the text says; an empty text says an empty mapping.
pub(super) fn value(text: &str) -> Result<Value, EditError> {
    let value: Value =
        if text.trim().is_empty() { Value::Null } else { serde_saphyr::from_str(text).map_err(unreadable)? };
    match value {
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Object(_) => Ok(value),
        _ => Err(EditError::WrongRoot("YAML mapping")),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn unreadable(error: serde_saphyr::Error) -> EditError {
    let what = error.to_string().lines().next().unwrap_or_default().to_owned();
    EditError::Unreadable { format: "YAML", what }
}

/// The text with a value at a path. Mappings on the way are made.
pub(super) fn set(text: &str, path: &[String], value: &Value) -> Result<String, EditError> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut place = Place { lines: 0..lines.len(), depth: None };
    for (depth, name) in path.iter().enumerate() {
        let rest = &path[depth + 1..];
        let nested =
            rest.iter().rev().fold(value.clone(), |inner, name| Value::Object(Map::from_iter([(name.clone(), inner)])));
        let indent = place.child_indent(&lines);
        let Some(entry) = entry(&lines, &place, indent, name) else {
            let block = block(name, &nested, indent);
            return Ok(if depth == 0 { appended(text, &block) } else { spliced(&lines, place.head(), &block) });
        };
        if rest.is_empty() {
            return Ok(spliced(&lines, entry, &block(name, value, indent)));
        }
        let inline = inline_value(lines[entry.start]);
        if matches!(inline, "{}" | "null" | "~") {
            return Ok(spliced(&lines, entry, &block(name, &nested, indent)));
        }
        if !inline.is_empty() {
            return Err(EditError::wrong_kind(&path[..=depth], "written as a block"));
        }
        place = Place { lines: entry.start + 1..entry.end, depth: Some(indent) };
    }
    Err(EditError::missing(path))
}

/// The text without the entry at a path.
pub(super) fn remove(text: &str, path: &[String]) -> Result<String, EditError> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut place = Place { lines: 0..lines.len(), depth: None };
    let mut found = None;
    for name in path {
        let indent = place.child_indent(&lines);
        let entry = entry(&lines, &place, indent, name).ok_or_else(|| EditError::missing(path))?;
        place = Place { lines: entry.start + 1..entry.end, depth: Some(indent) };
        found = Some(entry);
    }
    found.map(|entry| spliced(&lines, entry, "")).ok_or_else(|| EditError::missing(path))
}

/// The text with a value at the end of a list that is there. The list is written anew, in one line.
pub(super) fn push(text: &str, path: &[String], item: &Value) -> Result<String, EditError> {
    let mut list = list(text, path)?;
    list.push(item.clone());
    set(text, path, &Value::Array(list))
}

/// The text without a value of a list.
pub(super) fn remove_item(text: &str, path: &[String], item: &Value) -> Result<String, EditError> {
    let mut list = list(text, path)?;
    let at = list.iter().position(|known| known == item).ok_or_else(|| EditError::missing(path))?;
    list.remove(at);
    set(text, path, &Value::Array(list))
}

fn list(text: &str, path: &[String]) -> Result<Vec<Value>, EditError> {
    let value = value(text)?;
    let list = path.iter().try_fold(&value, |value, name| value.get(name)).and_then(Value::as_array);
    list.cloned().ok_or_else(|| EditError::wrong_kind(path, "a list"))
}

/// The lines in which entries of one mapping stand, and how deep the mapping's own key stands.
struct Place {
    lines: Range<usize>,
    depth: Option<usize>,
}

impl Place {
    /// How deep the entries stand.
    fn child_indent(&self, lines: &[&str]) -> usize {
        let first = lines[self.lines.clone()].iter().find(|line| says(line) && !line.starts_with("---"));
        match (first, self.depth) {
            (_, None) => 0,
            (Some(line), Some(depth)) if indent_of(line) > depth => indent_of(line),
            (_, Some(depth)) => depth + 2,
        }
    }

    /// The place before the first entry.
    fn head(&self) -> Range<usize> {
        self.lines.start..self.lines.start
    }
}

/// The lines of an entry: its key, and what stands deeper.
fn entry(lines: &[&str], place: &Place, indent: usize, name: &str) -> Option<Range<usize>> {
    let start = place
        .lines
        .clone()
        .find(|at| says(lines[*at]) && indent_of(lines[*at]) == indent && has_key(lines[*at], name))?;
    let is_inside = |line: &str| {
        !says(line) || indent_of(line) > indent || (indent_of(line) == indent && line.trim_start().starts_with("- "))
    };
    let after = (start + 1..place.lines.end).take_while(|at| is_inside(lines[*at]));
    // Blank lines and comments before the next entry belong to that one.
    let last = after.filter(|at| says(lines[*at])).last().unwrap_or(start);
    Some(start..last + 1)
}

fn has_key(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    [name.to_owned(), format!("\"{name}\""), format!("'{name}'")].iter().any(|key| {
        let rest = line.strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix(':'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\n', '\r']))
    })
}

/// What stands behind the key in its line, without a comment.
fn inline_value(line: &str) -> &str {
    let behind = line.split_once(':').map_or("", |(_, behind)| behind);
    behind.split(" #").next().unwrap_or_default().trim()
}

fn says(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The lines with some of them replaced by a text.
fn spliced(lines: &[&str], gone: Range<usize>, text: &str) -> String {
    let mut before = lines[..gone.start].concat();
    if !before.is_empty() && !before.ends_with('\n') {
        before.push('\n');
    }
    format!("{before}{text}{}", lines[gone.end..].concat())
}

fn appended(text: &str, block: &str) -> String {
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{gap}{block}")
}

/// An entry as lines: mappings as blocks, everything else as JSON, which is YAML, too.
fn block(name: &str, value: &Value, indent: usize) -> String {
    let blank = " ".repeat(indent);
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-');
    let key = if is_plain { name.to_owned() } else { Value::from(name).to_string() };
    match value {
        Value::Object(members) if !members.is_empty() => {
            let members = members.iter().map(|(name, member)| block(name, member, indent + 2));
            format!("{blank}{key}:\n{}", members.collect::<String>())
        }
        value => format!("{blank}{key}: {value}\n"),
    }
}
