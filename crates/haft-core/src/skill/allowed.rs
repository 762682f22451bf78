//! `allowed-tools`: the tools that a skill lists, in whatever vocabulary.
//!
//! In haft the list never allows anything. Where a skill is run by an agent of its own, that agent has at the most what the
//! list names; so whatever cannot be understood or held to is left out, and never stands for more.

use crate::dialect::client_tool;
use crate::pattern::ToolPattern;
use crate::preview::inert;
use crate::shell::rule::Rule;
use serde::{Deserialize, Serialize};

/// The tool that runs shell commands.
const SHELL: &str = "shell.exec";
/// Tools of other programs for which haft has none.
const ABSENT: [&str; 9] = [
    "TodoWrite",
    "TodoRead",
    "SlashCommand",
    "EnterPlanMode",
    "ExitPlanMode",
    "NotebookEdit",
    "NotebookRead",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
];

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedTool {
    /// As it was written.
    pub written: String,
    /// What it means here.
    pub meaning: Meaning,
}

/// What an entry means in haft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// A tool, or a pattern for tools.
    Tool(String),
    /// Shell commands that a rule names: `Bash(git log:*)`.
    Commands(Rule),
    /// A tool of another program, for which haft has none.
    Absent,
    /// A part of a tool that haft cannot tell from the rest: `Read(docs/**)`.
    Part,
    /// Nothing that can be read.
    Unreadable,
}

/// Splits a list at blanks and commas, but not in parentheses.
pub(super) fn split(text: &str) -> Vec<String> {
    let (mut words, mut depth) = (vec![String::new()], 0_usize);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match words.last_mut() {
            Some(last) if depth > 0 || !(c == ',' || c.is_whitespace()) => last.push(c),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

impl AllowedTool {
    /// Reads an entry.
    pub fn read(written: &str) -> Self {
        Self { written: written.to_owned(), meaning: meaning(written) }
    }

    /// Why an entry names nothing in haft, if that is so.
    pub(super) fn lost(&self) -> Option<String> {
        let shown = inert(&self.written);
        match self.meaning {
            Meaning::Tool(_) | Meaning::Commands(_) => None,
            Meaning::Absent => Some(format!("haft has no equivalent of `{shown}`; the entry is ignored")),
            Meaning::Part => Some(format!("haft cannot enforce `{shown}`; the entry is ignored")),
            Meaning::Unreadable => Some(format!("`{shown}` is not a tool name")),
        }
    }
}

fn meaning(written: &str) -> Meaning {
    let Some((name, rest)) = written.split_once('(') else { return tool(written) };
    let Some(part) = rest.strip_suffix(')') else { return Meaning::Unreadable };
    let tool = tool(name);
    match (&tool, part.trim()) {
        (Meaning::Tool(_), "" | "*") => tool,
        (Meaning::Tool(name), part) if name == SHELL => {
            let words = part.strip_suffix(":*").unwrap_or(part);
            Rule::parse(words).map_or(Meaning::Unreadable, Meaning::Commands)
        }
        (Meaning::Tool(_), _) => Meaning::Part,
        _ => tool,
    }
}

fn tool(name: &str) -> Meaning {
    if ABSENT.contains(&name) {
        return Meaning::Absent;
    }
    if let Some(rest) = name.strip_prefix("mcp__") {
        let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
        return Meaning::Tool(format!("mcp:{server}:{tool}"));
    }
    let name = client_tool(name).unwrap_or(name);
    if name.is_empty() || ToolPattern::new(name).is_err() {
        Meaning::Unreadable
    } else {
        Meaning::Tool(name.to_owned())
    }
}

/// What an agent that runs a skill has at the most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrowing {
    /// The tools, as patterns.
    pub tools: Vec<String>,
    /// The shell commands, as rules; empty if the list names shell commands as a whole, or none.
    pub commands: Vec<String>,
}

impl Narrowing {
    /// What a list comes to.
    pub fn of(list: &[AllowedTool]) -> Self {
        let mut narrowing = Self::default();
        for entry in list {
            let tool = match &entry.meaning {
                Meaning::Tool(tool) => tool.clone(),
                Meaning::Commands(rule) => {
                    narrowing.commands.push(rule.as_str().to_owned());
                    SHELL.to_owned()
                }
                Meaning::Absent | Meaning::Part | Meaning::Unreadable => continue,
            };
            if !narrowing.tools.contains(&tool) {
                narrowing.tools.push(tool);
            }
        }
        // An entry for all shell commands overrides entries for some.
        let whole = |entry: &AllowedTool| matches!(&entry.meaning, Meaning::Tool(tool) if names_shell(tool));
        if list.iter().any(whole) {
            narrowing.commands.clear();
        }
        narrowing
    }
}

fn names_shell(pattern: &str) -> bool {
    let shell = crate::name::ToolName::new(SHELL);
    ToolPattern::new(pattern).is_ok_and(|pattern| shell.is_ok_and(|shell| pattern.matches(&shell)))
}
