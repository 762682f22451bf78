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
    pub meaning: AllowedToolMeaning,
}

/// What an entry means in haft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedToolMeaning {
    /// A tool, or a pattern for tools.
    Tool(String),
    /// Shell commands that a rule names: `Bash(git log:*)`.
    Commands(Rule),
    /// A tool of another program, for which haft has none.
    NoEquivalent,
    /// A part of a tool that haft cannot tell from the rest: `Read(docs/**)`.
    Unenforceable,
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
    pub(super) fn ignored_reason(&self) -> Option<String> {
        let shown = inert(&self.written);
        match self.meaning {
            AllowedToolMeaning::Tool(_) | AllowedToolMeaning::Commands(_) => None,
            AllowedToolMeaning::NoEquivalent => {
                Some(format!("haft has no equivalent of `{shown}`; the entry is ignored"))
            }
            AllowedToolMeaning::Unenforceable => Some(format!("haft cannot enforce `{shown}`; the entry is ignored")),
            AllowedToolMeaning::Unreadable => Some(format!("`{shown}` is not a tool name")),
        }
    }
}

fn meaning(written: &str) -> AllowedToolMeaning {
    let Some((name, rest)) = written.split_once('(') else { return tool(written) };
    let Some(part) = rest.strip_suffix(')') else { return AllowedToolMeaning::Unreadable };
    let tool = tool(name);
    match (&tool, part.trim()) {
        (AllowedToolMeaning::Tool(_), "" | "*") => tool,
        (AllowedToolMeaning::Tool(name), part) if name == SHELL => {
            let words = part.strip_suffix(":*").unwrap_or(part);
            Rule::parse(words).map_or(AllowedToolMeaning::Unreadable, AllowedToolMeaning::Commands)
        }
        (AllowedToolMeaning::Tool(_), _) => AllowedToolMeaning::Unenforceable,
        _ => tool,
    }
}

fn tool(name: &str) -> AllowedToolMeaning {
    if ABSENT.contains(&name) {
        return AllowedToolMeaning::NoEquivalent;
    }
    if let Some(rest) = name.strip_prefix("mcp__") {
        let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
        return AllowedToolMeaning::Tool(format!("mcp:{server}:{tool}"));
    }
    let name = client_tool(name).unwrap_or(name);
    if name.is_empty() || ToolPattern::new(name).is_err() {
        AllowedToolMeaning::Unreadable
    } else {
        AllowedToolMeaning::Tool(name.to_owned())
    }
}

/// The tools and shell commands to which `allowed-tools` limits an agent that runs the skill.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolAllowlist {
    /// The tools, as patterns.
    pub tools: Vec<String>,
    /// The shell commands, as rules; empty if the list names shell commands as a whole, or none.
    pub commands: Vec<String>,
}

impl ToolAllowlist {
    /// The limits that a list sets.
    pub fn of(list: &[AllowedTool]) -> Self {
        let mut allowlist = Self::default();
        for entry in list {
            let tool = match &entry.meaning {
                AllowedToolMeaning::Tool(tool) => tool.clone(),
                AllowedToolMeaning::Commands(rule) => {
                    allowlist.commands.push(rule.as_str().to_owned());
                    SHELL.to_owned()
                }
                AllowedToolMeaning::NoEquivalent
                | AllowedToolMeaning::Unenforceable
                | AllowedToolMeaning::Unreadable => continue,
            };
            if !allowlist.tools.contains(&tool) {
                allowlist.tools.push(tool);
            }
        }
        // An entry for all shell commands overrides entries for some.
        let whole = |entry: &AllowedTool| matches!(&entry.meaning, AllowedToolMeaning::Tool(tool) if names_shell(tool));
        if list.iter().any(whole) {
            allowlist.commands.clear();
        }
        allowlist
    }
}

fn names_shell(pattern: &str) -> bool {
    let shell = crate::name::ToolName::new(SHELL);
    ToolPattern::new(pattern).is_ok_and(|pattern| shell.is_ok_and(|shell| pattern.matches(&shell)))
}
