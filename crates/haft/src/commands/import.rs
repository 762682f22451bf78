//! `haft import`: tools that are files, made from what others have. What is written is not accepted: a person reviews it
//! and runs `haft trust`.

mod agents;
mod skills;
mod toml;
mod write;

use crate::app::{App, Failure};
use crate::cli::{ImportFrom, Writing};
use crate::openapi::{self, Document};
use crate::style;
use haft_core::CallError;
use haft_core::manifest::{Manifest, reach};
use serde_json::{Value, json};
use std::path::Path;
use write::{Draft, Place};

/// What was found, and what cannot be said in a manifest.
#[derive(Default)]
struct Taken {
    drafts: Vec<Draft>,
    notes: Vec<String>,
}

/// Takes tools from elsewhere.
pub(super) fn run(app: &App, from: ImportFrom) -> Result<u8, Failure> {
    let (taken, writing) = match from {
        ImportFrom::Openapi { file, id, url, only, writing } => {
            (operations(&file, (id.as_deref(), url.as_deref()), only.as_deref())?, writing)
        }
        ImportFrom::Mcp { server, tools, writing } => (bridged(app, &server, &tools)?, writing),
        ImportFrom::ClaudeSkills { dir, writing } => (skills::read(&dir)?, writing),
        ImportFrom::Agents { from, writing } => {
            (agents::read(from.as_deref().unwrap_or_else(|| app.haft.workspace().root()))?, writing)
        }
    };
    finish(app, &taken, writing)
}

fn operations(file: &Path, (id, url): (Option<&str>, Option<&str>), only: Option<&str>) -> Result<Taken, CallError> {
    let document = Document::read(&super::api::text_of(file)?)?;
    let (profile, mut notes) = openapi::profile(&document, id, url)?;
    let base = profile.base()?;
    let (all, why_not) = openapi::manifests(&document, &profile.id, &base);
    notes.extend(why_not);
    notes.extend(reach::own(base.url()).filter(|own| own.private).map(|own| {
        let host = own.rule;
        format!(
            "`{host}` is private: the tools reach it here because they name it with its port, and nothing else there"
        )
    }));
    let mut taken = Taken { drafts: Vec::new(), notes };
    for made in super::api::chosen(all, only)? {
        taken.notes.extend(made.warnings);
        taken.add(&made.manifest, Vec::new());
    }
    Ok(taken)
}

fn bridged(app: &App, server: &str, wanted: &[String]) -> Result<Taken, CallError> {
    let unknown = || {
        CallError::not_found(format!("no MCP server `{}` is bridged", style::inert(server)))
            .hint("`haft mcp list` names those that are, and `haft mcp add` bridges one")
    };
    let bridge = app.bridge().filter(|bridge| bridge.has(server)).ok_or_else(unknown)?;
    app.block_on(bridge.learn(server))?;
    let start = format!("mcp:{server}:");
    let mut taken = Taken::default();
    let mut missing: Vec<&String> = wanted.iter().collect();
    for entry in app.haft.registry().list() {
        let Some(tool) = entry.spec().name.as_str().strip_prefix(&start).map(str::to_owned) else { continue };
        if !wanted.is_empty() && !wanted.contains(&tool) {
            continue;
        }
        missing.retain(|name| **name != tool);
        taken.add(&of_tool(server, &tool, entry.spec()), Vec::new());
    }
    match missing.first() {
        Some(name) => Err(CallError::not_found(format!("the server `{server}` has no tool `{}`", style::inert(name)))),
        None => Ok(taken),
    }
}

/// A manifest for a bridged tool. It does nothing by itself, so it needs no permissions of its own.
fn of_tool(server: &str, tool: &str, spec: &haft_core::ToolSpec) -> Value {
    let format = if spec.shapes.output.is_some() { "json" } else { "text" };
    let description = haft_core::preview::cut(spec.description.trim(), 500);
    let mut manifest = json!({
        "name": name_of(&format!("{server}_{tool}")),
        "description": if description.is_empty() { format!("{tool} of the server {server}") } else { description },
        "kind": "mcp", "version": 1,
        "permissions": {"network": false, "fs": {"read": [], "write": []}, "secrets": {}},
        "approval": {"required": !spec.read_only()},
        "inputs": {"schema": spec.shapes.input}, "outputs": {"format": format},
        "exec": {"mcp": {"server": server, "tool": tool}}
    });
    if !spec.read_only() {
        manifest["approval"]["reason"] = format!("Calls {tool} of the server {server}").into();
    }
    manifest
}

/// A text as a tool's name.
fn name_of(text: &str) -> String {
    let name: String = openapi::ident(text).chars().take(60).collect();
    let name = name.trim_matches('_');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name.to_owned() } else { format!("tool_{name}") }
}

impl Taken {
    /// Adds a tool, with files beside it. One that would not be a manifest is told instead.
    fn add(&mut self, manifest: &Value, files: Vec<(String, Vec<u8>)>) {
        let name = manifest["name"].as_str().unwrap_or_default().to_owned();
        if self.drafts.iter().any(|draft| draft.name == name) {
            self.notes.push(format!("{name}: another tool has that name already"));
            return;
        }
        match Manifest::of(manifest.clone()) {
            Ok(_) => match serde_saphyr::to_string(manifest) {
                Ok(text) => {
                    let main = ("tool.yml".to_owned(), text.into_bytes());
                    let files = files.into_iter().chain([main]).collect();
                    self.drafts.push(Draft { place: Place::Tool, name, files });
                }
                Err(error) => self.notes.push(format!("{name}: it cannot be written: {error}")),
            },
            Err(flaws) => self.notes.extend(flaws.iter().map(|flaw| format!("{name}: {flaw}"))),
        }
    }
}

fn finish(app: &App, taken: &Taken, writing: Writing) -> Result<u8, Failure> {
    let root = app.haft.workspace().root();
    if taken.drafts.is_empty() {
        taken.notes.iter().for_each(|note| style::warn(note));
        return Err(CallError::not_found("there is nothing to import").into());
    }
    let written = write::all(root, &taken.drafts, writing)?;
    let shown: Vec<String> = written.iter().map(|path| app.haft.workspace().shown(path)).collect();
    if app.json {
        let made: Vec<Value> =
            taken.drafts.iter().map(|draft| json!({"name": draft.name, "what": draft.place.word()})).collect();
        style::pretty(&json!({"made": made, "files": shown, "dry_run": writing.dry_run, "notes": taken.notes}));
        return Ok(0);
    }
    taken.notes.iter().for_each(|note| style::warn(note));
    let verb = if writing.dry_run { "would write" } else { "wrote" };
    for path in &shown {
        style::out(&format!("{} {}", style::paint(style::GOOD, verb), style::inert(path)));
    }
    for draft in taken.drafts.iter().filter(|draft| writing.dry_run && draft.place == Place::Agent) {
        style::out(&style::paint(style::BOLD, &draft.name));
        let text = draft.files.iter().map(|(_, content)| String::from_utf8_lossy(content)).collect::<String>();
        text.lines().for_each(|line| style::out(&format!("  {}", style::inert(line))));
    }
    if !writing.dry_run {
        style::note("review them, run `haft lint`, and accept them with `haft trust`: until then they are not used");
    }
    Ok(0)
}
