//! memory.write, memory.store, memory.forget and memory.reindex.

use super::find::tag_of;
use super::{namespace, namespace_schema};
use crate::scene::Scene;
use crate::store_error;
use crate::tool::Reply;
use crate::tools::declare;
use haft_core::memory::{DOCUMENT_MAX, NOTE_MAX, Namespace, Note};
use haft_core::outcome::Undo;
use haft_core::preview::size;
use haft_core::{CallError, ToolSpec};
use haft_store::{Added, By, Edit};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn write_spec() -> ToolSpec {
    declare("memory.write", "Replace everything in a memory namespace with this markdown. Empty content clears it.")
        .hint("remember keep knowledge document")
        .input(json!({
            "type": "object",
            "properties": {
                "namespace": namespace_schema("Namespace, e.g. `user` or `sessions/abc`"),
                "content": {"type": "string", "maxLength": DOCUMENT_MAX, "description": "The new markdown, up to 8 MiB"}
            },
            "required": ["namespace", "content"],
            "additionalProperties": false
        }))
        .output(changed())
        .body("content")
        .acts()
}

pub(super) fn store_spec() -> ToolSpec {
    declare(
        "memory.store",
        "Remember something: add a note to a memory namespace, with the time and tags. The same note with the same \
         tags is not added again; secrets are refused.",
    )
    .hint("remember keep append learn knowledge")
    .input(json!({
        "type": "object",
        "properties": {
            "namespace": namespace_schema("Namespace, e.g. `knowledge` or `user`"),
            "content": {"type": "string", "minLength": 1, "maxLength": NOTE_MAX, "description": "The note"},
            "tags": {"type": "array", "maxItems": 20, "items": {"type": "string", "minLength": 1, "maxLength": 51}, "description": "Tags to find it by"}
        },
        "required": ["namespace", "content"],
        "additionalProperties": false
    }))
    .output(changed())
    .body("content")
    .acts()
}

fn changed() -> Value {
    json!({
        "type": "object",
        "properties": {
            "namespace": {"type": "string"}, "changed": {"type": "boolean"},
            "bytes": {"type": "integer"}, "pieces": {"type": "integer"}
        },
        "required": ["namespace", "changed"]
    })
}

#[derive(Deserialize)]
struct Args {
    namespace: String,
    content: String,
    #[serde(default)]
    tags: Vec<String>,
}

pub(super) async fn write(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let name = namespace(scene, &args.namespace)?;
    no_secret(&args.content)?;
    edit(scene, (name, &args.namespace), Edit::Replace(args.content), "says that already").await
}

pub(super) async fn store(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let name = namespace(scene, &args.namespace)?;
    no_secret(&args.content)?;
    if args.content.trim().is_empty() {
        return Err(CallError::invalid("there is nothing to keep: `content` is blank"));
    }
    let tags = args.tags.iter().map(|tag| tag_of(tag)).collect::<Result<_, _>>()?;
    let note = Note { text: args.content, tags, at_ms: crate::now_ms() };
    edit(scene, (name, &args.namespace), Edit::Add(note), "holds that already").await
}

/// What is kept is read again, by whoever: no place for a key.
fn no_secret(content: &str) -> Result<(), CallError> {
    if !haft_core::secret::tells_secret(content) {
        return Ok(());
    }
    Err(CallError::invalid("the content holds what looks like a secret; memory keeps none")
        .hint("leave it out, or name where it is kept; `haft secret set` keeps secrets, encrypted"))
}

/// Changes a namespace, which goes by the name that was said.
async fn edit(scene: &Scene, (kept, name): (Namespace, &str), edit: Edit, same: &str) -> Result<Reply, CallError> {
    let call = scene.call();
    let by = By { call: call.id.clone(), session: call.session.clone() };
    let most = scene.memory().settings().max_total_bytes;
    let done = scene.store().memory_edit(kept, edit, by, most).await.map_err(store_error)?;
    match done {
        Added::Same => Ok(Reply::text(format!("{name} {same}")).data(json!({"namespace": name, "changed": false}))),
        Added::TooLarge { bytes, most } => Err(too_large(bytes, most)),
        Added::Changed { bytes, pieces, .. } => {
            let available = scene.store().memory_can_undo(&call.id).await.map_err(store_error)?;
            let reason = (!available).then(|| "what was there before is too large to be kept".to_owned());
            let undo = Undo { available, files: vec![format!("memory {name}")], reason };
            let text = format!("kept in {name}, which has {} now", size(bytes));
            let data = json!({"namespace": name, "changed": true, "bytes": bytes, "pieces": pieces});
            Ok(Reply { undo: Some(undo), ..Reply::text(text).data(data) })
        }
    }
}

fn too_large(bytes: usize, most: usize) -> CallError {
    let (has, most_shown) = (size(bytes), size(most));
    if most == DOCUMENT_MAX {
        return CallError::invalid(format!("the document would have {has}; {most_shown} is the most"))
            .hint("keep less, or spread it over several namespaces");
    }
    CallError::invalid(format!("all documents together would have {has}; {most_shown} is the most"))
        .hint("forget something, or raise `memory.max_total_bytes` in the configuration")
}

pub(super) fn forget_spec() -> ToolSpec {
    declare("memory.forget", "Delete everything in a memory namespace, permanently.")
        .hint("remove delete erase")
        .input(json!({
            "type": "object",
            "properties": {"namespace": namespace_schema("The namespace")},
            "required": ["namespace"],
            "additionalProperties": false
        }))
        .acts()
        .destructive()
}

#[derive(Deserialize)]
struct Which {
    namespace: String,
}

pub(super) async fn forget(scene: &Scene) -> Result<Reply, CallError> {
    let said = scene.parse::<Which>()?.namespace;
    let name = namespace(scene, &said)?;
    let store = scene.store();
    if store.memory_document(name.clone()).await.map_err(store_error)?.text.is_empty() {
        return Err(CallError::not_found(format!("nothing is kept in {said}")).hint("memory.list names what is there"));
    }
    let call = scene.call();
    let by = By { call: call.id.clone(), session: call.session.clone() };
    let done = store.memory_edit(name, Edit::Forget, by, usize::MAX).await;
    done.map_err(store_error)?;
    Ok(Reply::text(format!("forgot {said}")).data(json!({"namespace": said})))
}

pub(super) fn reindex_spec() -> ToolSpec {
    declare("memory.reindex", "Rebuild the search index of memory: words and vectors. The notes stay.")
        .hint("rebuild repair embeddings")
        .output(json!({
            "type": "object",
            "properties": {"pieces": {"type": "integer"}, "model": {"type": ["string", "null"]}},
            "required": ["pieces"]
        }))
        .acts()
        .timeout(Duration::from_mins(30))
}

pub(super) async fn reindex(scene: &Scene) -> Result<Reply, CallError> {
    let pieces = scene.store().memory_rebuild(true).await.map_err(store_error)?;
    let memory = scene.memory();
    let model = match memory.embedder().await {
        None => None,
        Some(embedder) => {
            let (portion, _) = embedder.portion();
            let mut made = 0;
            while memory.fill_some(scene, &embedder, portion).await? {
                made += portion;
                scene.progress(format!("{made} of {pieces} pieces"));
                scene.halt().check()?;
            }
            Some(embedder.model())
        }
    };
    let by = model.as_deref().unwrap_or("words alone");
    Ok(Reply::text(format!("{pieces} pieces, by {by}")).data(json!({"pieces": pieces, "model": model})))
}
