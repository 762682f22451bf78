//! What no schema can say of a manifest: whether its parts fit each other, its directory, and what lies around it.
//!
//! Nothing is looked up here. What only the file system knows comes as [`Found`]; what nobody looked at is not judged.

mod examples;
mod permissions;
mod pipeline;
mod program;
mod providers;
mod rules;
mod uses;
mod words;

pub use rules::{RULES, Rule};

use super::fix::Fix;
use super::flaw::Flaw;
use super::{Exec, Format, Manifest, Permissions, Written, reach};
use crate::name::ToolName;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use uses::Uses;

/// What lies around a manifest. None is: nobody looked.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The program that `entrypoint` names.
    pub program: Option<Program>,
    /// The file of the python module.
    pub module: Option<Module>,
    /// The virtual environment.
    pub venv: Option<Place>,
    /// Where it starts.
    pub start: Option<Place>,
    /// The tools that a step may call.
    pub tools: Option<Arc<BTreeSet<String>>>,
    /// The servers that are bridged.
    pub servers: Option<Arc<BTreeSet<String>>>,
    /// Whose it is, which is where its paths begin.
    pub whose: Whose,
}

/// Whose a tool is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Whose {
    /// The project's: it counts as it was accepted, and its paths begin at the root.
    #[default]
    Project,
    /// The user's own: it counts as it stands, and its paths begin beside its manifest.
    Own,
}

impl Whose {
    /// What its files have to be in.
    pub(super) const fn ground(self) -> &'static str {
        match self {
            Self::Project => "the project",
            Self::Own => "the tool's directory",
        }
    }
}

/// What is where something is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Nothing.
    Missing,
    /// Something that may not be used.
    Outside,
    /// What is looked for.
    There,
}

/// What `entrypoint` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Nothing.
    Missing,
    /// Something that is neither in the project nor installed for everybody.
    Outside,
    /// A file that nobody may run.
    NotExecutable,
    /// A program, and the interpreter that its first line names.
    Runs(Option<String>),
}

/// What `module` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Module {
    /// Nothing.
    Missing,
    /// A file, and the first thing it imports that is not python's own.
    File(Option<String>),
}

/// Everything that is wrong with a manifest of the right shape, in the order of its lines. `dir_name` is the name of the
/// directory that it is in.
pub fn lint(manifest: &Manifest, written: &Written<'_>, dir_name: &str, found: &Found) -> Vec<Flaw> {
    let uses = Uses::of(manifest);
    let own = [name(manifest, dir_name), reason(manifest, &uses), formats(manifest)];
    let mut flaws: Vec<Flaw> = own.into_iter().flatten().collect();
    words::check(manifest, &mut flaws);
    uses.check(manifest, &mut flaws);
    permissions::check(manifest, &mut flaws);
    program::check(manifest, &uses, found, &mut flaws);
    pipeline::check(manifest, &uses, found, &mut flaws);
    examples::check(manifest, &mut flaws);
    providers::check(manifest, &mut flaws);
    let mut flaws: Vec<Flaw> = flaws.into_iter().map(|flaw| written.placed(flaw)).collect();
    flaws.sort_by_key(|flaw| (flaw.line, flaw.column));
    flaws
}

fn name(manifest: &Manifest, dir_name: &str) -> Option<Flaw> {
    if manifest.name == dir_name {
        return None;
    }
    let shown = crate::preview::cut(&crate::preview::inert(dir_name), 80);
    let message = format!("its directory is `{shown}`, and a tool has its directory's name");
    let flaw = Flaw::error("name-directory", "/name", message);
    let fits = dir_name.len() <= 64 && !dir_name.contains(['.', ':']) && ToolName::new(dir_name).is_ok();
    let fix = Fix::Set { pointer: "/name".to_owned(), value: Value::from(dir_name) };
    Some(if fits { flaw.mended_by(fix) } else { flaw })
}

fn reason(manifest: &Manifest, uses: &Uses<'_>) -> Option<Flaw> {
    let given = manifest.approval.reason.as_deref();
    if !manifest.approval.required || given.is_some_and(|reason| !reason.trim().is_empty()) {
        return None;
    }
    let value = Value::from(a_reason(manifest, uses));
    let fix = match given {
        Some(_) => Fix::Set { pointer: "/approval/reason".to_owned(), value },
        None => Fix::Add { after: "/approval/required".to_owned(), key: "reason", value },
    };
    let message = "is missing: whoever is asked for approval has to be told why";
    Some(Flaw::error("reason", "/approval/reason", message).mended_by(fix))
}

/// A reason that is true, also of what is left once everything else is mended.
fn a_reason(manifest: &Manifest, uses: &Uses<'_>) -> String {
    let (what, runs) = match &manifest.exec {
        Exec::Http(http) => {
            let host = reach::of(http).map(|own| own.rule);
            (format!("Sends a {} request to {}", http.method, host.as_deref().unwrap_or("a server")), false)
        }
        Exec::Command(command) => (format!("Runs {}", command.entrypoint), true),
        Exec::Python(python) => (format!("Runs {}.{}", python.module, python.function), true),
        Exec::Mcp(mcp) => (format!("Calls {} of the server {}", mcp.tool, mcp.server), false),
        Exec::Pipeline(pipeline) => (format!("Makes {} calls", pipeline.steps.len()), false),
    };
    let Permissions { network, fs, secrets } = &manifest.permissions;
    let with = [
        (runs && network.is_any(), "the network"),
        (runs && !fs.write.is_empty(), "files to write"),
        (secrets.keys().any(|name| runs || uses.uses(name)), "secrets"),
    ];
    let with: Vec<&str> = with.into_iter().filter(|(has, _)| *has).map(|(_, what)| what).collect();
    if with.is_empty() { what } else { format!("{what} with {}", with.join(" and ")) }
}

/// What is said twice, and differently.
fn formats(manifest: &Manifest) -> Option<Flaw> {
    let (pointer, own) = match &manifest.exec {
        Exec::Command(command) => ("/exec/command/stdout/format", command.stdout?.format),
        Exec::Python(python) => ("/exec/python/return", python.gives),
        _ => return None,
    };
    let message = "is text, and `outputs.format` is json: text cannot be checked against a schema";
    (own == Format::Text && manifest.outputs.format == Format::Json).then(|| Flaw::warning("formats", pointer, message))
}

#[cfg(test)]
mod tests;
