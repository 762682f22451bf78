//! The cheap view of a page: its accessibility tree as indented lines, `role "name" [ref=e12]`, without what says
//! nothing. What is not there for a person who listens to the page is not there, either.

use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The longest name or value that is shown.
const TEXT_MAX: usize = 300;
/// How many lines a tree may have.
const LINES_MAX: usize = 5000;
/// How many nodes are looked at.
const NODES_MAX: usize = 200_000;
/// Beyond this, nothing is indented further.
const DEPTH_MAX: usize = 12;

/// Roles that one can do something with.
const USABLE: [&str; 22] = [
    "link",
    "button",
    "textbox",
    "searchbox",
    "combobox",
    "checkbox",
    "radio",
    "switch",
    "slider",
    "spinbutton",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "option",
    "tab",
    "treeitem",
    "listbox",
    "DisclosureTriangle",
    "ComboBoxMenuButton",
    "PopUpButton",
    "ColorWell",
    "Date",
];
/// Roles that say nothing by themselves.
const SILENT: [&str; 17] = [
    "none",
    "generic",
    "presentation",
    "InlineTextBox",
    "LineBreak",
    "RootWebArea",
    "WebArea",
    "Section",
    "group",
    "form",
    "LayoutTable",
    "LayoutTableRow",
    "LayoutTableCell",
    "paragraph",
    "LabelText",
    "MenuListPopup",
    "ListMarker",
];
/// Of these, those that say something once they have a name.
const SILENT_UNNAMED: [&str; 2] = ["group", "form"];
/// Of these, those between which a text does not go on.
const APART: [&str; 3] = ["paragraph", "LabelText", "LayoutTableCell"];
/// Where one is in the line of what is still to be drawn, one of those has ended.
const END: &str = "";
/// Roles whose name is their content, which then need not be said twice.
const NAMED_BY_CONTENT: [&str; 14] = [
    "link",
    "button",
    "heading",
    "option",
    "tab",
    "menuitem",
    "treeitem",
    "cell",
    "gridcell",
    "columnheader",
    "rowheader",
    "switch",
    "checkbox",
    "radio",
];

/// By which name a model knows an element. A name means one element of one document, and is never given again.
#[derive(Debug, Default)]
pub(super) struct Refs {
    given: u64,
    document: String,
    by_node: HashMap<i64, u64>,
}

impl Refs {
    /// Forgets the elements of every other document.
    pub(super) fn turn_to(&mut self, document: &str) {
        if self.document != document {
            self.by_node.clear();
            document.clone_into(&mut self.document);
        }
    }

    fn name(&mut self, node: i64) -> u64 {
        if let Some(known) = self.by_node.get(&node) {
            return *known;
        }
        self.given += 1;
        self.by_node.insert(node, self.given);
        self.given
    }

    /// The element of this document that has this name.
    pub(super) fn node(&self, document: &str, name: &str) -> Option<i64> {
        let number: u64 = name.strip_prefix('e')?.parse().ok()?;
        let here = self.document == document;
        self.by_node.iter().find(|(_, given)| here && **given == number).map(|(node, _)| *node)
    }
}

struct Node<'t> {
    role: &'t str,
    name: String,
    value: String,
    ignored: bool,
    children: Vec<&'t str>,
    whole: &'t Value,
}

impl<'t> Node<'t> {
    fn read(whole: &'t Value) -> Option<(&'t str, Self)> {
        let ids = whole["childIds"].as_array().map(Vec::as_slice).unwrap_or_default();
        let node = Self {
            role: whole["role"]["value"].as_str().unwrap_or_default(),
            name: text(&whole["name"]["value"]),
            value: text(&whole["value"]["value"]),
            ignored: whole["ignored"].as_bool().unwrap_or(false),
            children: ids.iter().filter_map(Value::as_str).collect(),
            whole,
        };
        Some((whole["nodeId"].as_str()?, node))
    }

    fn property(&self, name: &str) -> Option<&'t Value> {
        let all = self.whole["properties"].as_array()?;
        all.iter().find(|one| one["name"] == name).map(|one| &one["value"]["value"])
    }

    fn is_usable(&self) -> bool {
        USABLE.contains(&self.role) || self.property("focusable").is_some_and(|value| *value == true)
    }

    fn is_silent(&self) -> bool {
        let nameless = SILENT.contains(&self.role) && (self.name.is_empty() || !SILENT_UNNAMED.contains(&self.role));
        self.ignored || (nameless && !(self.is_usable() && self.role != "RootWebArea"))
    }

    /// What is the case about it, besides its name.
    fn state(&self) -> String {
        let mut state = String::new();
        if !self.value.is_empty() && self.value != self.name {
            state.push_str(&format!(" value={}", quoted(&self.value)));
        }
        for name in ["checked", "selected", "expanded", "pressed", "disabled", "required", "level"] {
            match self.property(name) {
                None | Some(Value::Bool(false)) => {}
                Some(Value::String(word)) if word == "false" && name != "checked" => {}
                Some(Value::Bool(true)) => state.push_str(&format!(" {name}")),
                Some(Value::String(word)) => state.push_str(&format!(" {name}={word}")),
                Some(other) => state.push_str(&format!(" {name}={other}")),
            }
        }
        state
    }
}

/// One text on one line, of bounded length.
fn text(value: &Value) -> String {
    let whole = match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let mut kept = String::new();
    for word in whole.split_whitespace() {
        if kept.len() + word.len() > TEXT_MAX {
            let room = TEXT_MAX.saturating_sub(kept.len());
            kept.extend(word.chars().take(room));
            kept.push('…');
            break;
        }
        if !kept.is_empty() {
            kept.push(' ');
        }
        kept.push_str(word);
    }
    kept
}

/// Written so that a page cannot write what is not its own: marks and other lines.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A tree as lines, and whether it is not all of it. Elements that can be used get names.
pub(super) fn draw(nodes: &[Value], refs: &mut Refs) -> (String, bool) {
    let all: HashMap<&str, Node<'_>> = nodes.iter().take(NODES_MAX).filter_map(Node::read).collect();
    let below: HashSet<&str> = all.values().flat_map(|node| node.children.iter().copied()).collect();
    let mut roots = nodes.iter().take(NODES_MAX).filter_map(|node| node["nodeId"].as_str());
    let Some(root) = roots.find(|id| !below.contains(id)) else { return (String::new(), false) };
    let mut drawing = Drawing { lines: Vec::new(), said: String::new(), said_at: 0 };
    // A page may be nested as deeply as it likes; what is still to be drawn is kept here, and not on the stack.
    let mut left: Vec<(&str, usize, &str)> = vec![(root, 0, "")];
    let mut cut = nodes.len() > NODES_MAX;
    let mut drawn = HashSet::new();
    while let Some((id, depth, around)) = left.pop() {
        if id == END {
            drawing.flush();
        }
        let Some(node) = all.get(id).filter(|_| drawn.insert(id)) else { continue };
        if drawing.lines.len() >= LINES_MAX {
            cut = true;
            break;
        }
        if !node.ignored && node.role == "StaticText" {
            if !around.contains(node.name.as_str()) {
                drawing.say(&node.name, depth);
            }
            continue;
        }
        let silent = node.is_silent();
        if !silent {
            drawing.flush();
            drawing.line(node, depth, refs);
        }
        if silent && !node.ignored && APART.contains(&node.role) {
            drawing.flush();
            left.push((END, depth, ""));
        }
        let inner = if silent { depth } else { depth + 1 };
        let around = if silent { around } else { named(node) };
        left.extend(node.children.iter().rev().map(|child| (*child, inner, around)));
    }
    drawing.flush();
    (drawing.lines.join("\n"), cut)
}

fn named<'n>(node: &'n Node<'_>) -> &'n str {
    match node.role {
        role if NAMED_BY_CONTENT.contains(&role) => &node.name,
        "textbox" | "searchbox" => &node.value,
        _ => "",
    }
}

struct Drawing {
    lines: Vec<String>,
    /// Texts that stand beside each other are one line.
    said: String,
    said_at: usize,
}

impl Drawing {
    fn say(&mut self, text: &str, depth: usize) {
        if self.said_at != depth || self.said.len() > TEXT_MAX {
            self.flush();
        }
        self.said_at = depth;
        if !self.said.is_empty() && !text.is_empty() {
            self.said.push(' ');
        }
        self.said.push_str(text);
    }

    fn flush(&mut self) {
        if !self.said.is_empty() {
            let said = quoted(&std::mem::take(&mut self.said));
            self.lines.push(format!("{}text {said}", indent(self.said_at)));
        }
    }

    fn line(&mut self, node: &Node<'_>, depth: usize, refs: &mut Refs) {
        let mut line = format!("{}{}", indent(depth), node.role);
        if !node.name.is_empty() {
            line.push_str(&format!(" {}", quoted(&node.name)));
        }
        if let Some(element) = node.whole["backendDOMNodeId"].as_i64().filter(|_| node.is_usable()) {
            line.push_str(&format!(" [ref=e{}]", refs.name(element)));
        }
        line.push_str(&node.state());
        self.lines.push(line);
    }
}

fn indent(depth: usize) -> String {
    "  ".repeat(depth.min(DEPTH_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(id: i64, role: &str, name: &str, children: &[i64]) -> Value {
        let children: Vec<String> = children.iter().map(ToString::to_string).collect();
        json!({
            "nodeId": id.to_string(),
            "role": { "value": role },
            "name": { "value": name },
            "childIds": children,
            "backendDOMNodeId": id + 100,
        })
    }

    #[test]
    fn what_says_nothing_is_left_out_and_what_can_be_used_has_a_name() {
        let mut hidden = node(9, "generic", "", &[]);
        hidden["ignored"] = json!(true);
        let mut field = node(6, "textbox", "Your name", &[]);
        field["value"] = json!({ "value": "Ada" });
        field["properties"] = json!([
            { "name": "required", "value": { "value": true } },
            { "name": "disabled", "value": { "value": false } },
        ]);
        let nodes = [
            node(1, "RootWebArea", "Shop", &[2, 3, 9]),
            node(2, "heading", "Welcome", &[4]),
            node(3, "generic", "", &[5, 6, 7, 8]),
            node(4, "StaticText", "Welcome", &[]),
            node(5, "link", "More \"here\" [ref=e1]", &[]),
            field,
            node(7, "StaticText", "some", &[]),
            node(8, "StaticText", "words", &[]),
            hidden,
        ];
        let mut refs = Refs::default();
        refs.turn_to("L1");
        let (drawn, cut) = draw(&nodes, &mut refs);
        insta::assert_snapshot!(drawn, @r#"
        heading "Welcome"
        link "More \"here\" [ref=e1]" [ref=e1]
        textbox "Your name" [ref=e2] value="Ada" required
        text "some words"
        "#);
        assert!(!cut);
        assert_eq!(draw(&nodes, &mut refs).0, drawn, "the same element keeps its name");
        assert_eq!((refs.node("L1", "e1"), refs.node("L1", "e2")), (Some(105), Some(106)));
        assert_eq!(refs.node("L2", "e1"), None, "of another document");
        refs.turn_to("L2");
        assert!(draw(&nodes, &mut refs).0.contains("[ref=e3]"), "a name is never given again");
        assert_eq!(refs.node("L2", "e1"), None);
    }

    #[test]
    fn a_tree_of_any_depth_width_or_shape_is_bounded() {
        let deep: Vec<Value> = (0..100_000).map(|at| node(at, "list", "x", &[at + 1])).collect();
        let (drawn, cut) = draw(&deep, &mut Refs::default());
        assert!(cut && drawn.lines().count() <= LINES_MAX && drawn.lines().all(|line| line.len() < 200));
        let circle = [node(1, "list", "a", &[2]), node(2, "list", "b", &[3]), node(3, "list", "c", &[2])];
        assert_eq!(draw(&circle, &mut Refs::default()).0.lines().count(), 3);
        let long = [node(1, "link", &"word ".repeat(10_000), &[])];
        assert!(draw(&long, &mut Refs::default()).0.len() < 400);
    }
}
