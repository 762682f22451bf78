//! Agents that are files.

use super::Checked;
use super::look::Around;
use haft_core::ToolName;
use haft_core::agent::file::AgentFile;
use haft_core::manifest::lint::Rule;
use haft_core::manifest::{Flaw, Written};
use haft_core::pattern::ToolPattern;
use haft_core::preview::inert;
use haft_core::suggest;
use haft_runtime::Workspace;
use haft_runtime::agent::roles::{Filed, filed};

/// What is asked of agents.
pub(super) const RULES: [Rule; 2] = [
    Rule { id: "agent", asks: "An agent's file can be read, and says what it has to." },
    Rule { id: "agent-tool", asks: "The patterns of an agent's tools match some tool." },
];

/// Looks at each of them.
pub(super) fn checked(workspace: &Workspace, around: &Around<'_>) -> Vec<Checked> {
    filed(workspace).iter().map(|file| one(workspace, around, file)).collect()
}

fn one(workspace: &Workspace, around: &Around<'_>, file: &Filed) -> Checked {
    let shown = file.path.strip_prefix(workspace.root()).unwrap_or(&file.path).display().to_string();
    let flaws = match &file.says {
        Ok(says) => {
            // It was read a moment ago; where a name stands is all that is wanted now.
            let text = std::fs::read_to_string(&file.path).unwrap_or_default();
            strays(says, around, &Written::new(&text))
        }
        Err(misfits) => misfits
            .iter()
            .map(|misfit| {
                let pointer: String =
                    misfit.fault.at.split('.').filter(|part| !part.is_empty()).map(|part| format!("/{part}")).collect();
                Flaw::error("agent", pointer, misfit.fault.what.clone()).at((misfit.line, misfit.column))
            })
            .collect(),
    };
    Checked { shown, flaws }
}

/// Patterns that match nothing that is known here. A tool may come later, so that is no error.
fn strays(says: &AgentFile, around: &Around<'_>, written: &Written<'_>) -> Vec<Flaw> {
    let tools = around.tools();
    let names: Vec<ToolName> = tools.iter().filter_map(|name| ToolName::new(name).ok()).collect();
    let lists = [("tools", says.tools.as_deref().unwrap_or_default()), ("deny", says.deny.as_slice())];
    let all = lists.iter().flat_map(|(key, list)| list.iter().enumerate().map(move |(at, text)| (*key, at, text)));
    all.filter(|(_, _, text)| {
        let matches = ToolPattern::new(text).is_ok_and(|pattern| names.iter().any(|name| pattern.matches(name)));
        !matches && !text.starts_with("agent.") && !text.starts_with("group:") && !around.may_serve(text)
    })
    .map(|(key, at, text)| {
        let near = suggest::did_you_mean(text, tools.iter().map(String::as_str));
        let hint = near.unwrap_or_else(|| "`haft tools` lists them".to_owned());
        let pointer = format!("/{key}/{at}");
        let place = written.place(&pointer);
        Flaw::warning("agent-tool", pointer, format!("no tool here matches `{}`; {hint}", inert(text))).at(place)
    })
    .collect()
}
