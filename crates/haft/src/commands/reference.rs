//! What the program says about itself: completions, the manual page, and the reference in docs/.

use crate::app::Failure;
use crate::cli::{Cli, Reference};
use crate::style;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use haft_core::CallError;
use haft_core::shape::Keep;
use serde_json::Value;
use std::fmt::Write as _;

/// Prints a completion script.
pub(super) fn completions(shell: Shell) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "haft", &mut script);
    style::out(&String::from_utf8_lossy(&script));
    0
}

/// Prints the manual page, or that of one command.
pub(super) fn man(name: Option<&str>) -> Result<u8, Failure> {
    let mut root = Cli::command();
    root.build();
    let command = match name {
        None => root,
        Some(name) => {
            let found = root.find_subcommand(name).cloned();
            found.ok_or_else(|| CallError::invalid(format!("there is no command `{name}`")))?
        }
    };
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|error| CallError::internal(format!("the manual page could not be made: {error}")))?;
    style::out(&String::from_utf8_lossy(&page));
    Ok(0)
}

/// Prints reference documentation.
pub(super) fn docs(kind: Reference) -> u8 {
    style::out(&match kind {
        Reference::Tools => tools(),
        Reference::Config => config(),
        Reference::Cli => command_line(),
    });
    0
}

fn tools() -> String {
    let mut text = "# Tools\n\nMade by `cargo xtask docs` from the tools themselves.\n".to_owned();
    for tool in haft_runtime::tools::all() {
        let spec = tool.spec();
        let effect = if spec.read_only() { "Only reads." } else { "Has effects; asked unless you allowed it." };
        let keep = match spec.limits.keep {
            Keep::Head => "the beginning",
            Keep::Tail => "the end",
            Keep::HeadAndTail => "both ends",
        };
        let _ = write!(
            text,
            "\n## {}\n\n{}\n\n{effect} At most {} s. Long output keeps {keep}.\n\n",
            spec.name,
            spec.description,
            spec.timeout.as_secs()
        );
        text.push_str(&parameters(&spec.shapes.input));
    }
    text
}

fn parameters(schema: &Value) -> String {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let required = |name: &str| schema["required"].as_array().is_some_and(|list| list.iter().any(|item| item == name));
    let rows: String = properties
        .map(|(name, property)| {
            let kind = property["type"].as_str().unwrap_or("any");
            let need = if required(name) { "yes" } else { "" };
            let default = property.get("default").map(ToString::to_string).unwrap_or_default();
            let about = property["description"].as_str().unwrap_or_default().replace('|', "\\|");
            format!("| `{name}` | {kind} | {need} | {default} | {about} |\n")
        })
        .collect();
    if rows.is_empty() {
        return "No parameters.\n".to_owned();
    }
    format!("| parameter | type | required | default | |\n|---|---|---|---|---|\n{rows}")
}

fn config() -> String {
    let schema = serde_json::to_string_pretty(&crate::config::schema()).unwrap_or_default();
    format!(
        "# Configuration\n\nMade by `cargo xtask docs`. `haft config path` says where the files are.\n\n\
         ## Example\n\n```yaml\n{}```\n\n## JSON Schema\n\n```json\n{schema}\n```\n",
        crate::config::example()
    )
}

fn command_line() -> String {
    let mut text = "# Command line\n\nMade by `cargo xtask docs`.\n".to_owned();
    let mut root = Cli::command().term_width(100);
    root.build();
    describe(&mut text, &mut root, "haft");
    text
}

fn describe(text: &mut String, command: &mut Command, path: &str) {
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(text, "\n## {path}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    for sub in command.get_subcommands_mut().filter(|sub| !sub.is_hide_set()) {
        let path = format!("{path} {}", sub.get_name());
        describe(text, sub, &path);
    }
}
