//! The tools of a caller as a request to a model provider declares them, for `haft tools --provider` and
//! `GET /v1/tools?provider=`. `haft run` declares the tools that it offers by the same `Provider::declare_all`.

use crate::registry::Entry;
use haft_core::Dialect;
use haft_core::provider::{Offered, Provider, ToolDeclarations};
use serde_json::Value;
use std::sync::Arc;

/// The declarations of these tools, each given with its declaration in the words of a dialect.
pub fn provider_tools(provider: Provider, declared: &[(Arc<Entry>, Value)], dialect: Dialect) -> ToolDeclarations {
    let names: Vec<String> = declared.iter().map(|(entry, value)| spoken_name(entry, value, dialect)).collect();
    let offered = declared.iter().zip(&names).map(|((entry, value), name)| Offered {
        name,
        spec: entry.spec(),
        input: &value["input_schema"],
    });
    provider.declare_all(offered)
}

/// The name by which models call a tool.
fn spoken_name(entry: &Entry, value: &Value, dialect: Dialect) -> String {
    match dialect {
        Dialect::Haft => entry.spec().name.api_name(),
        _ => value["name"].as_str().unwrap_or_default().replace('.', "_"),
    }
}
