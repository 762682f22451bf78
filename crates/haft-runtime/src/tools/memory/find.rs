//! memory.search and memory.recall.

use super::{labels, namespace, namespace_schema, when};
use crate::memory::{Answer, Found, Question};
use crate::scene::Scene;
use crate::store_error;
use crate::tool::Reply;
use crate::tools::declare;
use haft_core::memory::{QUERY_MAX, Scope, is_tag};
use haft_core::{CallError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

const LIMIT: usize = 10;
const LIMIT_MAX: usize = 100;
/// How many pieces are recalled where nobody says otherwise.
const RECALLED: usize = 5;

pub(super) fn search_spec() -> ToolSpec {
    let answers = json!({"type": "array", "items": {
        "type": "object",
        "properties": {
            "namespace": {"type": "string"},
            "line": {"type": "integer", "minimum": 1},
            "content": {"type": "string"},
            "before": {"type": ["string", "null"]},
            "after": {"type": ["string", "null"]},
            "source": {"enum": ["keyword", "vector", "both"]},
            "score": {"type": "number", "minimum": 0, "maximum": 1},
            "at_ms": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["namespace", "line", "content", "source", "score"]
    }});
    declare("memory.search", "Search memory (notes from earlier) by words and meaning. Returns the best lines first, each with the lines around it.")
        .hint("remember recall find knowledge notes hybrid semantic keyword")
        .input(json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": QUERY_MAX, "description": "What to find, in plain words"},
                "namespace": {"type": "string", "minLength": 1, "maxLength": 202, "description": "Only in this namespace; `sessions/*` is everything below `sessions`"},
                "since": when::schema("Only what was kept since"),
                "until": when::schema("Only what was kept until"),
                "tags": {"type": "array", "maxItems": 20, "items": {"type": "string", "minLength": 1, "maxLength": 51}, "description": "Only notes with all of these tags"},
                "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT, "description": "Maximum number"},
                "keyword_only": {"type": "boolean", "default": false, "description": "Match by words only, not by meaning"}
            },
            "required": ["query"],
            "additionalProperties": false
        }))
        .output(json!({"type": "object", "properties": {"results": answers}, "required": ["results"]}))
}

#[derive(Deserialize)]
struct SearchArgs {
    query: String,
    namespace: Option<String>,
    since: Option<String>,
    until: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    limit: usize,
    keyword_only: bool,
}

pub(super) async fn search(scene: &Scene) -> Result<Reply, CallError> {
    let args: SearchArgs = scene.parse()?;
    let room = scene.room();
    let scope = args.namespace.as_deref().map(|said| room.scope(said)).transpose();
    let now = crate::now_ms();
    let time = |said: &Option<String>, late| said.as_deref().map(|text| when::read(text, now, late)).transpose();
    let question = Question {
        query: args.query,
        scope: scope.map_err(|error| CallError::invalid(error.to_string()))?,
        room: room.clone(),
        since_ms: time(&args.since, false)?,
        until_ms: time(&args.until, true)?,
        tags: args.tags.iter().map(|tag| tag_of(tag)).collect::<Result<_, _>>()?,
        limit: args.limit,
        keyword_only: args.keyword_only,
    };
    let mut found = scene.memory().search(scene, question).await?;
    for answer in &mut found.answers {
        answer.namespace = room.called(&answer.namespace).unwrap_or_default().to_owned();
    }
    let text = found.answers.iter().map(shown).collect::<Vec<_>>().join("\n\n");
    let text = if text.is_empty() { "nothing was found".to_owned() } else { text };
    let data = json!({"results": found.answers});
    Ok(reply(text, data, &found))
}

/// A tag, with or without its sign.
pub(super) fn tag_of(text: &str) -> Result<String, CallError> {
    let tag = text.trim_start_matches('#').to_lowercase();
    let wrong = || {
        CallError::invalid(format!("`{}` is no tag", haft_core::preview::inert(text)))
            .hint("a tag has letters, digits, `-`, `_` and `/`, and is not a number")
    };
    if is_tag(&tag) { Ok(tag) } else { Err(wrong()) }
}

fn shown(answer: &Answer) -> String {
    let Answer { namespace, snippet, source, score, .. } = answer;
    let around = |line: &Option<String>| {
        line.as_ref().filter(|line| !line.trim().is_empty()).map(|line| format!("  {line}")).into_iter()
    };
    let head = format!("{namespace}:{} ({}, {score:.2})", snippet.line, source.as_str());
    let lines = [head].into_iter().chain(around(&snippet.before));
    lines.chain([format!("> {}", snippet.content)]).chain(around(&snippet.after)).collect::<Vec<_>>().join("\n")
}

fn reply(text: String, data: Value, found: &Found) -> Reply {
    let labels = labels(found.answers.iter().filter_map(|answer| answer.label.as_deref()));
    Reply { labels, warnings: found.warning.iter().cloned().collect(), ..Reply::text(text).data(data) }
}

pub(super) fn recall_spec() -> ToolSpec {
    declare(
        "memory.recall",
        "Recall notes from a memory namespace: all of them, or with a query the whole parts that answer it best.",
    )
    .hint("remember knowledge learnings")
    .input(json!({
        "type": "object",
        "properties": {
            "namespace": namespace_schema("The namespace"),
            "query": {"type": "string", "minLength": 1, "maxLength": QUERY_MAX, "description": "What to recall, or what it is about"},
            "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": RECALLED, "description": "Maximum number of parts, with a query"}
        },
        "required": ["namespace"],
        "additionalProperties": false
    }))
    .output(json!({
        "type": "object",
        "properties": {"namespace": {"type": "string"}, "parts": {"type": "integer"}},
        "required": ["namespace"]
    }))
}

#[derive(Deserialize)]
struct RecallArgs {
    namespace: String,
    query: Option<String>,
    limit: usize,
}

pub(super) async fn recall(scene: &Scene) -> Result<Reply, CallError> {
    let args: RecallArgs = scene.parse()?;
    let (name, said) = (namespace(scene, &args.namespace)?, args.namespace);
    let Some(query) = args.query else {
        let found = scene.store().memory_document(name).await.map_err(store_error)?;
        let labels = labels(found.labels.iter().map(String::as_str));
        return Ok(Reply { labels, ..Reply::text(found.text).data(json!({"namespace": said})) });
    };
    let (scope, room) = (Some(Scope::One(name)), scene.room());
    let question = Question { query, scope, room, limit: args.limit, ..Question::default() };
    let found = scene.memory().search(scene, question).await?;
    let text = found.answers.iter().map(|answer| answer.piece.as_str()).collect::<Vec<_>>().join("\n\n");
    let data = json!({"namespace": said, "parts": found.answers.len()});
    Ok(reply(text, data, &found))
}
