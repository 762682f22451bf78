//! Edits of a JSON file as text: comments, trailing commas, order and layout of everything else stay as they are.
//!
//! The parser keeps where each value stands. What it reads is JSON with the two liberties that editors and agents take
//! in their configuration: comments (`//` and `/* */`), and a comma after the last member.

use super::edits::EditError;
use serde_json::{Map, Value};
use std::ops::Range;

/// Deeper nesting is no configuration.
const DEPTH_MAX: usize = 64;

/// A value and where it stands.
#[derive(Debug)]
struct Node {
    span: Range<usize>,
    kind: NodeKind,
}

#[derive(Debug)]
enum NodeKind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar(Value),
}

/// A member of an object: its name, where that begins, and its value.
#[derive(Debug)]
struct Member {
    name: String,
    start: usize,
    value: Node,
}

impl Node {
    fn value(&self) -> Value {
        match &self.kind {
            NodeKind::Scalar(value) => value.clone(),
            NodeKind::Array(items) => items.iter().map(Node::value).collect(),
            NodeKind::Object(members) => {
                Value::Object(members.iter().map(|member| (member.name.clone(), member.value.value())).collect())
            }
        }
    }

    /// Where the members or items stand, each with its name if it has one.
    fn items(&self) -> Vec<Range<usize>> {
        match &self.kind {
            NodeKind::Scalar(_) => Vec::new(),
            NodeKind::Array(items) => items.iter().map(|item| item.span.clone()).collect(),
            NodeKind::Object(members) => members.iter().map(|member| member.start..member.value.span.end).collect(),
        }
    }
}

/// What the text says; an empty text says an empty object.
pub(super) fn value(text: &str) -> Result<Value, EditError> {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    Ok(parse(text)?.value())
}

/// The text with a value at a path. Objects on the way are made.
pub(super) fn set(text: &str, path: &[String], value: &Value) -> Result<String, EditError> {
    let text = if value_is_missing(text) { "{}\n".to_owned() } else { text.to_owned() };
    let root = parse(&text)?;
    let unit = indent_unit(&text);
    let mut node = &root;
    for (depth, name) in path.iter().enumerate() {
        let NodeKind::Object(members) = &node.kind else {
            return Err(EditError::wrong_kind(&path[..depth], "an object"));
        };
        let Some(member) = members.iter().find(|member| &member.name == name) else {
            let nested = path[depth + 1..]
                .iter()
                .rev()
                .fold(value.clone(), |inner, name| Value::Object(Map::from_iter([(name.clone(), inner)])));
            let item = |style: ItemStyle| format!("{}: {}", Value::from(name.as_str()), style.render(&nested));
            return Ok(insert(&text, node, &unit, item));
        };
        node = &member.value;
    }
    let style = ItemStyle { indent: line_indent(&text, node.span.start), unit, inline: false };
    Ok(format!("{}{}{}", &text[..node.span.start], style.render(value), &text[node.span.end..]))
}

/// The text without the member at a path.
pub(super) fn remove(text: &str, path: &[String]) -> Result<String, EditError> {
    let root = parse(text)?;
    let Some((name, parents)) = path.split_last() else { return Err(EditError::missing(path)) };
    let parent = find(&root, parents).ok_or_else(|| EditError::missing(path))?;
    let NodeKind::Object(members) = &parent.kind else { return Err(EditError::missing(path)) };
    let at = members.iter().position(|member| &member.name == name).ok_or_else(|| EditError::missing(path))?;
    Ok(delete(text, parent, at))
}

/// The text with a value at the end of a list that is there.
pub(super) fn push(text: &str, path: &[String], value: &Value) -> Result<String, EditError> {
    let root = parse(text)?;
    let list = find(&root, path).ok_or_else(|| EditError::missing(path))?;
    Ok(insert(text, list, &indent_unit(text), |style| style.render(value)))
}

/// The text without a value of a list.
pub(super) fn remove_item(text: &str, path: &[String], value: &Value) -> Result<String, EditError> {
    let root = parse(text)?;
    let list = find(&root, path).ok_or_else(|| EditError::missing(path))?;
    let NodeKind::Array(items) = &list.kind else { return Err(EditError::wrong_kind(path, "a list")) };
    let at = items.iter().position(|item| &item.value() == value).ok_or_else(|| EditError::missing(path))?;
    Ok(delete(text, list, at))
}

fn value_is_missing(text: &str) -> bool {
    text.trim().is_empty()
}

fn find<'n>(root: &'n Node, path: &[String]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, name| match &node.kind {
        NodeKind::Object(members) => members.iter().find(|member| &member.name == name).map(|member| &member.value),
        _ => None,
    })
}

/// How a value is written where it is put.
struct ItemStyle {
    indent: String,
    unit: String,
    inline: bool,
}

impl ItemStyle {
    fn render(&self, value: &Value) -> String {
        if self.inline {
            return value.to_string();
        }
        let mut bytes = Vec::new();
        let pretty = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, pretty);
        if serde::Serialize::serialize(value, &mut serializer).is_err() {
            return value.to_string();
        }
        String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{}", self.indent))
    }
}

/// The text with one more member or item at the end of a container, in the container's own layout.
fn insert(text: &str, container: &Node, unit: &str, item: impl Fn(ItemStyle) -> String) -> String {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let outer = line_indent(text, container.span.start);
    let items = container.items();
    let close = container.span.end - 1;
    let Some(last) = items.last() else {
        // Comments may stand in an empty container.
        let inside = text[container.span.start + 1..close].trim_end();
        let indent = format!("{outer}{unit}");
        let body = item(ItemStyle { indent: indent.clone(), unit: unit.to_owned(), inline: false });
        let body = body.replace('\n', newline);
        let head = &text[..=container.span.start];
        return format!("{head}{inside}{newline}{indent}{body}{newline}{outer}{}", &text[close..]);
    };
    let comma = comma_after(text, last.end, close);
    let inline = !text[container.span.clone()].contains('\n');
    let indent = line_indent(text, last.start);
    let body = item(ItemStyle { indent: indent.clone(), unit: unit.to_owned(), inline }).replace('\n', newline);
    if inline {
        let separator = if comma.is_some() { " " } else { ", " };
        let at = comma.map_or(last.end, |comma| comma + 1);
        return format!("{}{separator}{body}{}", &text[..at], &text[at..]);
    }
    // A comment behind the last member belongs to it.
    let after = comma.map_or(last.end, |comma| comma + 1);
    let rest = &text[after..close];
    let line = rest.find('\n').map_or(rest.len(), |end| rest[..end].trim_end_matches('\r').len());
    let is_open = rest[..line].contains("/*") && !rest[..line].contains("*/");
    let line_end = if is_open { after } else { after + rest[..line].trim_end().len() };
    let separator = if comma.is_some() { "" } else { "," };
    let trailing = if comma.is_some() { "," } else { "" };
    let gap = if text[line_end..close].contains('\n') { String::new() } else { format!("{newline}{outer}") };
    let (head, behind) = (&text[..last.end], &text[last.end..line_end]);
    format!("{head}{separator}{behind}{newline}{indent}{body}{trailing}{gap}{}", &text[line_end..])
}

/// The text without one member or item of a container, and without a comma that would be left over.
fn delete(text: &str, container: &Node, at: usize) -> String {
    let items = container.items();
    let item = items[at].clone();
    let limit = items.get(at + 1).map_or(container.span.end - 1, |next| next.start);
    let mut gone = item.clone();
    let mut comma_before = None;
    if let Some(comma) = comma_after(text, item.end, limit) {
        gone.end = comma + 1;
    } else if at > 0 {
        comma_before = comma_after(text, items[at - 1].end, item.start);
    }
    // A line on which nothing else stands goes away whole.
    let start = text[..gone.start].rfind('\n').map_or(0, |newline| newline + 1);
    let rest = text[gone.end..].find('\n').map(|newline| gone.end + newline);
    let alone =
        text[start..gone.start].trim().is_empty() && rest.is_some_and(|end| text[gone.end..end].trim().is_empty());
    if let (true, Some(end)) = (alone, rest) {
        gone = start..end + 1;
    } else if text[gone.end..].starts_with(' ') && gone.end < limit {
        gone.end += 1;
    }
    let before = match comma_before {
        Some(comma) => {
            let between = &text[comma + 1..gone.start];
            // A blank behind the comma goes with it; a comment or a line end stays.
            let between = if between.trim_matches(' ').is_empty() { "" } else { between };
            format!("{}{between}", &text[..comma])
        }
        None => text[..gone.start].to_owned(),
    };
    format!("{before}{}", &text[gone.end..])
}

/// Where the comma stands that follows a value, before the next one begins.
fn comma_after(text: &str, from: usize, limit: usize) -> Option<usize> {
    let mut parser = Parser { text, at: from };
    parser.skip_blank().ok()?;
    (parser.at < limit && parser.peek() == Some(b',')).then_some(parser.at)
}

/// The blanks at the beginning of the line on which something stands.
fn line_indent(text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    text[start..at].chars().take_while(|letter| *letter == ' ' || *letter == '\t').collect()
}

/// How deep the first indented line stands.
fn indent_unit(text: &str) -> String {
    let blank = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(blank).find(|blank| !blank.is_empty()).unwrap_or_else(|| "  ".to_owned())
}

fn parse(text: &str) -> Result<Node, EditError> {
    let mut parser = Parser { text, at: 0 };
    if text.starts_with('\u{feff}') {
        parser.at = '\u{feff}'.len_utf8();
    }
    parser.skip_blank()?;
    let root = parser.node(0)?;
    parser.skip_blank()?;
    if parser.at < text.len() {
        return Err(parser.fault("more text after the end"));
    }
    if matches!(root.kind, NodeKind::Object(_)) { Ok(root) } else { Err(EditError::WrongRoot("JSON object")) }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault(&self, what: &str) -> EditError {
        let line = self.text[..self.at.min(self.text.len())].matches('\n').count() + 1;
        EditError::Unreadable { format: "JSON", what: format!("{what} (line {line})") }
    }

    /// Goes past blanks and comments.
    fn skip_blank(&mut self) -> Result<(), EditError> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            self.at += blank;
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/").ok_or_else(|| self.fault("a comment that does not end"))?;
                self.at += end + 4;
            } else if blank == 0 {
                return Ok(());
            }
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node, EditError> {
        if depth > DEPTH_MAX {
            return Err(self.fault("too deep"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => NodeKind::Object(self.members(depth)?),
            Some(b'[') => NodeKind::Array(self.list(depth)?),
            _ => NodeKind::Scalar(self.scalar()?),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn members(&mut self, depth: usize) -> Result<Vec<Member>, EditError> {
        let mut members: Vec<Member> = Vec::new();
        self.at += 1;
        while self.goes_on(b'}')? {
            let start = self.at;
            let Value::String(name) = self.scalar()? else { return Err(self.fault("a name that is not a text")) };
            if members.iter().any(|member| member.name == name) {
                return Err(self.fault(&format!("the name `{name}` twice")));
            }
            self.skip_blank()?;
            if self.peek() != Some(b':') {
                return Err(self.fault("no `:` after a name"));
            }
            self.at += 1;
            self.skip_blank()?;
            let value = self.node(depth + 1)?;
            members.push(Member { name, start, value });
            self.separator(b'}')?;
        }
        Ok(members)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, EditError> {
        let mut items = Vec::new();
        self.at += 1;
        while self.goes_on(b']')? {
            items.push(self.node(depth + 1)?);
            self.separator(b']')?;
        }
        Ok(items)
    }

    /// Whether another item follows; the closing bracket is taken.
    fn goes_on(&mut self, close: u8) -> Result<bool, EditError> {
        self.skip_blank()?;
        match self.peek() {
            None => Err(self.fault("it ends too early")),
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            Some(_) => Ok(true),
        }
    }

    /// Takes the comma after an item, unless the container ends.
    fn separator(&mut self, close: u8) -> Result<(), EditError> {
        self.skip_blank()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(())
            }
            Some(byte) if byte == close => Ok(()),
            None => Err(self.fault("it ends too early")),
            Some(_) => Err(self.fault("no comma between two values")),
        }
    }

    /// A text, number, truth value or null, read by `serde_json`.
    fn scalar(&mut self) -> Result<Value, EditError> {
        let mut stream = serde_json::Deserializer::from_str(&self.text[self.at..]).into_iter::<Value>();
        let scalar = match stream.next() {
            Some(Ok(value)) if !value.is_object() && !value.is_array() => value,
            Some(Err(error)) => return Err(self.fault(&error.to_string())),
            _ => return Err(self.fault("a value is missing")),
        };
        self.at += stream.byte_offset();
        Ok(scalar)
    }
}
