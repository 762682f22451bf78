//! The tools as a client is told about them, made once and again when they change.

use haft_core::tokens::estimate;
use haft_core::{Caller, Dialect};
use haft_runtime::Haft;
use haft_runtime::budget::{Priced, listed};
use haft_runtime::registry::{Entry, declaration, visible};
use rmcp::model::{ErrorData, JsonObject, ListToolsResult, Tool, ToolAnnotations};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many tools are on a page.
const PAGE: usize = 100;
/// For how many callers a list is kept.
const CALLERS_MAX: usize = 16;

/// The lists made so far, by caller: policy may differ.
#[derive(Default)]
pub(super) struct Listings(Mutex<BTreeMap<Whose, Listing>>);

/// An agent and its provider.
type Whose = (Option<String>, Option<String>);

struct Listing {
    version: u64,
    tools: Arc<Vec<Tool>>,
}

impl Listings {
    /// What this caller is told.
    pub(super) fn of(&self, haft: &Haft, caller: &Caller, dialect: Dialect, budget: usize) -> Arc<Vec<Tool>> {
        let version = *haft.registry().changes().borrow();
        let key = (caller.agent.clone(), caller.provider.clone());
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listing) = made.get(&key).filter(|listing| listing.version == version) {
            return Arc::clone(&listing.tools);
        }
        let tools = Arc::new(list(haft, caller, dialect, budget));
        if made.len() >= CALLERS_MAX {
            made.pop_first();
        }
        made.insert(key, Listing { version, tools: Arc::clone(&tools) });
        tools
    }
}

fn list(haft: &Haft, caller: &Caller, dialect: Dialect, budget: usize) -> Vec<Tool> {
    let entries = visible(haft.registry(), haft.settings().policy(), caller);
    let mut tools: Vec<Tool> = if dialect == Dialect::Haft {
        let told = entries.iter().map(|entry| (entry, canonical(entry)));
        let told: Vec<(&Arc<Entry>, Tool)> = told.collect();
        let price =
            |(entry, tool): &(&Arc<Entry>, Tool)| Priced { name: entry.spec().name.clone(), tokens: cost(tool) };
        let names = listed(&told.iter().map(price).collect::<Vec<_>>(), budget);
        told.into_iter().filter(|(entry, _)| names.contains(&entry.spec().name)).map(|(_, tool)| tool).collect()
    } else {
        entries.iter().flat_map(|entry| spoken(entry, dialect)).collect()
    };
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
}

/// About how many tokens a tool costs a model: a client passes on its name, its description and its schema.
fn cost(tool: &Tool) -> usize {
    let schema = serde_json::to_string(&*tool.input_schema).unwrap_or_default();
    estimate(&tool.name) + estimate(tool.description.as_deref().unwrap_or_default()) + estimate(&schema)
}

/// A tool under haft's own name. No output schema is listed: a client may require structured content of a tool that has one,
/// and haft sends it only where it is the whole result (decision 0014).
fn canonical(entry: &Entry) -> Tool {
    let spec = entry.spec();
    let mut tool = Tool::new(spec.name.api_name(), spec.description.clone(), input(&spec.shapes.input));
    tool.annotations = Some(annotations(entry));
    tool
}

/// A tool in the words of a dialect.
fn spoken(entry: &Entry, dialect: Dialect) -> Vec<Tool> {
    let declared = declaration(entry, dialect).into_iter().filter_map(|said| {
        let name = said.get("name")?.as_str()?.to_owned();
        let description = said.get("description").and_then(Value::as_str).unwrap_or(&entry.spec().description);
        let mut tool = Tool::new(name, description.to_owned(), input(said.get("input_schema")?));
        tool.annotations = Some(annotations(entry));
        Some(tool)
    });
    declared.collect()
}

fn annotations(entry: &Entry) -> ToolAnnotations {
    let spec = entry.spec();
    ToolAnnotations::with_title(spec.name.as_str())
        .read_only(spec.read_only())
        .destructive(spec.effects.destructive)
        .idempotent(spec.effects.idempotent)
        .open_world(spec.effects.open_world)
}

/// The schema of a tool's parameters. Some clients (smolagents) read its `properties` without asking whether it has any.
fn input(schema: &Value) -> Arc<JsonObject> {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.entry("properties").or_insert_with(|| JsonObject::new().into());
    Arc::new(schema)
}

/// The page after a cursor. A cursor is the name of the last tool of the page before: it stays good when tools come
/// and go.
pub(super) fn page(tools: &[Tool], cursor: Option<&str>) -> Result<ListToolsResult, ErrorData> {
    let begin = match cursor {
        None => 0,
        Some(cursor) => {
            let last = cursor.strip_prefix("after:").ok_or_else(|| {
                ErrorData::invalid_params("this cursor is none of this server's; begin without one", None)
            })?;
            tools.partition_point(|tool| &*tool.name <= last)
        }
    };
    let rest = &tools[begin..];
    let shown = &rest[..rest.len().min(PAGE)];
    let mut result = ListToolsResult::with_all_items(shown.to_vec());
    if rest.len() > PAGE {
        result.next_cursor = shown.last().map(|tool| format!("after:{}", tool.name));
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_and_end() {
        let tools: Vec<Tool> = (0..250).map(|n| Tool::new(format!("t{n:03}"), "", Arc::default())).collect();
        let (mut cursor, mut names, mut sizes) = (None, Vec::new(), Vec::new());
        loop {
            let page = page(&tools, cursor.as_deref()).unwrap();
            sizes.push(page.tools.len());
            names.extend(page.tools.into_iter().map(|tool| tool.name));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(sizes, [100, 100, 50]);
        assert!(names.iter().eq(tools.iter().map(|tool| &tool.name)));
        assert!(page(&tools, Some("x")).is_err());
    }
}
