//! tool.search, tool.list and tool.call: a model need not be told about every tool to use it.
//!
//! tool.call never runs itself: a call by way of it is resolved to the call that is meant before anything is
//! decided (`registry::unwrapped`).

use crate::finding::Wanted;
use crate::registry::{CALLER, Entry, declaration};
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool, off_thread};
use crate::tools::declare;
use haft_core::{CallError, Dialect, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The tools about tools.
pub(super) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Search { spec: Arc::new(search()) }),
        Arc::new(About { spec: Arc::new(list()), work: run_list }),
        Arc::new(About { spec: Arc::new(call()), work: run_call }),
    ]
}

/// A tool that looks at the other tools.
struct About {
    spec: Arc<ToolSpec>,
    work: fn(&Scene) -> Result<Reply, CallError>,
}

impl Tool for About {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(std::future::ready((self.work)(scene)))
    }
}

fn search() -> ToolSpec {
    declare(
        "tool.search",
        "Find more tools by what they do, e.g. for the web, a browser, memory, tasks or background processes. \
         Returns name, description and parameters; call one with tool.call.",
    )
    .input(json!({"type": "object", "additionalProperties": false, "required": ["query"], "properties": {
        "query": {"type": "string", "description": "What the tool should do, or its name", "minLength": 1, "maxLength": 400},
        "limit": {"type": "integer", "description": "Maximum number", "minimum": 1, "maximum": 20, "default": 5}}}))
    .hint("find discover capability")
}

fn list() -> ToolSpec {
    declare("tool.list", "List all available tools by name, with one line about each.")
        .hint("catalogue names available")
}

fn call() -> ToolSpec {
    declare(CALLER, "Call a tool that tool.search found. Returns what that tool returns.")
        .input(json!({"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
            "name": {"type": "string", "description": "The tool's name"},
            "args": {"type": "object", "description": "Its arguments"}}}))
        .hint("invoke run use")
        .acts()
}

#[derive(Deserialize)]
struct Query {
    query: String,
    limit: usize,
}

/// tool.search: what it finds, the conversation may be told of from then on.
struct Search {
    spec: Arc<ToolSpec>,
}

impl Tool for Search {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let Query { query, limit } = scene.parse()?;
            let table = scene.memory().word_vectors().await;
            let (finder, catalogue) = (Arc::clone(scene.finder()), scene.catalogue().clone());
            let caller = scene.call().caller.clone();
            let look = move || {
                let seen = catalogue.sees(caller);
                Ok(finder.find(&catalogue.registry, table.as_deref(), &Wanted { query: &query, limit, seen: &seen }))
            };
            let found = off_thread(scene.halt().clone(), look).await?;
            let entries: Vec<Arc<Entry>> =
                found.iter().filter_map(|found| scene.catalogue().registry.get(&found.name)).collect();
            if !scene.is_trial() {
                scene.active().activate(&scene.call().session, entries.iter().map(|entry| entry.spec().name.clone()));
            }
            Ok(shown(&entries))
        })
    }
}

fn shown(found: &[Arc<Entry>]) -> Reply {
    let tools: Vec<Value> = found.iter().flat_map(|entry| declaration(entry, Dialect::Haft)).map(short).collect();
    let line = |tool: &Value| {
        format!(
            "{}: {}\n{}",
            tool["name"].as_str().unwrap_or_default(),
            tool["description"].as_str().unwrap_or_default(),
            tool["input_schema"]
        )
    };
    let text = if tools.is_empty() {
        "No tool fits. tool.list names them all.".to_owned()
    } else {
        tools.iter().map(line).collect::<Vec<_>>().join("\n\n")
    };
    let activated: Vec<&str> = found.iter().map(|entry| entry.spec().name.as_str()).collect();
    Reply::text(text).data(json!({ "tools": tools, "activated": activated }))
}

/// What a model needs to call it.
fn short(mut declared: Value) -> Value {
    if let Some(object) = declared.as_object_mut() {
        object.retain(|key, _| matches!(key.as_str(), "name" | "description" | "input_schema" | "read_only"));
    }
    declared
}

#[expect(clippy::unnecessary_wraps, reason = "the others can fail, and one type fits all")]
fn run_list(scene: &Scene) -> Result<Reply, CallError> {
    let entries = scene.catalogue().visible(&scene.call().caller);
    if scene.call().spoken == "glee_tools_list" {
        return Ok(glee_list(&entries));
    }
    let first = |text: &str| text.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned();
    let lines: Vec<String> =
        entries.iter().map(|entry| format!("{}: {}", entry.spec().name, first(&entry.spec().description))).collect();
    let names: Vec<&str> = entries.iter().map(|entry| entry.spec().name.as_str()).collect();
    Ok(Reply::text(lines.join("\n")).data(json!({ "tools": names, "manifests": manifests(scene, &entries) })))
}

/// Where the tools that are files come from, and how they stand.
fn manifests(scene: &Scene, entries: &[Arc<Entry>]) -> Vec<Value> {
    if !entries.iter().any(|entry| entry.spec().reach.declared.is_some()) {
        return Vec::new();
    }
    let seen = |name: &str| entries.iter().any(|entry| entry.spec().name.as_str() == name);
    let shown = scene.shelf().report().tools.into_iter().filter(|tool| seen(&tool.name));
    shown
        .map(|tool| {
            let source = scene.shown(&tool.file);
            json!({"name": tool.name, "kind": tool.kind, "source": source, "standing": tool.standing})
        })
        .collect()
}

/// The list as Glee has it: what is a file, by name and description.
fn glee_list(entries: &[Arc<Entry>]) -> Reply {
    let made = entries.iter().filter(|entry| entry.spec().reach.declared.is_some());
    let tools: Vec<Value> = made
        .map(|entry| json!({"name": entry.spec().name.as_str(), "description": entry.spec().description.trim()}))
        .collect();
    Reply::text(serde_json::to_string_pretty(&tools).unwrap_or_default()).data(json!({ "tools": tools }))
}

/// Never comes to be run: see `Haft::check`.
fn run_call(_: &Scene) -> Result<Reply, CallError> {
    Err(CallError::internal("tool.call stands for another tool"))
}
