//! memory.read and memory.list.

use super::{labels, namespace, namespace_schema};
use crate::scene::Scene;
use crate::store_error;
use crate::tool::Reply;
use crate::tools::declare;
use haft_core::memory::stamp;
use haft_core::{CallError, ToolSpec};
use serde::Deserialize;
use serde_json::json;

pub(super) fn read_spec() -> ToolSpec {
    declare(
        "memory.read",
        "Read everything in a memory namespace, as markdown. A namespace that was never written is empty.",
    )
    .hint("remember knowledge notes document")
    .input(json!({
        "type": "object",
        "properties": {"namespace": namespace_schema("Namespace, e.g. `user` or `sessions/abc`")},
        "required": ["namespace"],
        "additionalProperties": false
    }))
    .output(json!({
        "type": "object",
        "properties": {"namespace": {"type": "string"}, "bytes": {"type": "integer"}, "at_ms": {"type": "integer"}},
        "required": ["namespace", "bytes"]
    }))
}

#[derive(Deserialize)]
struct Args {
    namespace: String,
}

pub(super) async fn read(scene: &Scene) -> Result<Reply, CallError> {
    let said = scene.parse::<Args>()?.namespace;
    let found = scene.store().memory_document(namespace(scene, &said)?).await.map_err(store_error)?;
    let mut data = json!({"namespace": said, "bytes": found.text.len()});
    if found.at_ms > 0 {
        data["at_ms"] = found.at_ms.into();
    }
    let labels = labels(found.labels.iter().map(String::as_str));
    Ok(Reply { labels, ..Reply::text(found.text).data(data) })
}

pub(super) fn list_spec() -> ToolSpec {
    declare("memory.list", "List the memory namespaces that are not empty.")
        .hint("remember knowledge namespaces")
        .output(json!({
            "type": "object",
            "properties": {"namespaces": {"type": "array", "items": {"type": "object"}}},
            "required": ["namespaces"]
        }))
}

pub(super) async fn list(scene: &Scene) -> Result<Reply, CallError> {
    let room = scene.room();
    let all = scene.store().memory_namespaces().await.map_err(store_error)?.into_iter();
    let all = all.filter_map(|found| {
        let namespace = room.called(&found.namespace)?.to_owned();
        Some(haft_store::Remembered { namespace, ..found })
    });
    let all: Vec<haft_store::Remembered> = all.collect();
    let line =
        |found: &haft_store::Remembered| format!("{}  {} bytes  {}", found.namespace, found.bytes, stamp(found.at_ms));
    let text = if all.is_empty() {
        "nothing is kept yet".to_owned()
    } else {
        all.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    Ok(Reply::text(text).data(json!({"namespaces": all})))
}
