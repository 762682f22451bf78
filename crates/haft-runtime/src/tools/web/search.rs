//! web.search and web.research: one shape of results, whoever found them.
//!
//! Who searches is a small pure pair in `adapter`: what is asked, and what the answer says. Everything is sent by the
//! guarded way, with the key as a credential that is shown nowhere.

mod adapter;
mod brave;
mod choice;
mod duckduckgo;
mod generic;
mod google;
mod html;
mod searxng;
mod tavily;

pub use choice::{Pointers, Provider, SearchSettings};

use super::fetch;
use crate::scene::Scene;
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use crate::web::{Request, Response};
use adapter::{Ask, Hit, Wanted, tidied};
use choice::Chosen;
use haft_core::outcome::Label;
use haft_core::preview::{cut, inert};
use haft_core::tool::Outward;
use haft_core::{CallError, ErrorKind, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The most that is read of an answer.
const BYTES_MAX: usize = 4 << 20;
const TIMEOUT: Duration = Duration::from_mins(1);

/// The tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Search { spec: Arc::new(search()), work: |scene| Box::pin(run_search(scene)) }),
        Arc::new(Search { spec: Arc::new(research()), work: |scene| Box::pin(run_research(scene)) }),
    ]
}

/// A tool that finds something.
struct Search {
    spec: Arc<ToolSpec>,
    work: for<'a> fn(&'a Scene) -> BoxFuture<'a, Result<Reply, CallError>>,
}

impl Tool for Search {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        (self.work)(scene)
    }
}

/// What both tools take.
fn parameters(usual: u64) -> Value {
    json!({
        "query": {"type": "string", "description": "The search query", "minLength": 1, "maxLength": 400},
        "max_results": {"type": "integer", "description": "Maximum number", "minimum": 1, "maximum": 20, "default": usual},
        "topic": {"type": "string", "enum": ["general", "news", "finance"], "default": "general"},
        "time_range": {"type": "string", "description": "Only results from the last day, week, month or year", "enum": ["day", "week", "month", "year"]}
    })
}

fn search() -> ToolSpec {
    declare("web.search", "Search the web. Returns title, URL and snippet of each result; read one with web.fetch.")
        .hint("google find look up internet news")
        .input(json!({"type": "object", "additionalProperties": false, "required": ["query"], "properties": parameters(10)}))
        .output(results_schema())
        .web(Outward::Configured)
        .timeout(TIMEOUT)
}

fn research() -> ToolSpec {
    let mut properties = parameters(5);
    properties["action"] =
        json!({"type": "string", "enum": ["search", "read"], "description": "search needs query, read needs url"});
    properties["url"] = json!({"type": "string", "description": "The page to read", "minLength": 1, "maxLength": 8192});
    declare("web.research", "Search the web, or read the main content of a page that the search found.")
        .hint("search read article page internet")
        .input(
            json!({"type": "object", "additionalProperties": false, "required": ["action"], "properties": properties}),
        )
        .web(Outward::Url("url", None))
        .timeout(TIMEOUT)
}

fn results_schema() -> Value {
    json!({"type": "object", "required": ["provider", "results"], "properties": {
        "provider": {"type": "string"},
        "results": {"type": "array", "items": {"type": "object", "required": ["title", "url", "snippet"], "properties": {
            "title": {"type": "string"}, "url": {"type": "string"}, "snippet": {"type": "string"}, "published": {"type": "string"}}}}}})
}

#[derive(Deserialize)]
struct ResearchArgs {
    action: String,
    url: Option<String>,
    query: Option<String>,
}

async fn run_search(scene: &Scene) -> Result<Reply, CallError> {
    let ask: Ask = scene.parse()?;
    find(scene, &ask).await
}

async fn run_research(scene: &Scene) -> Result<Reply, CallError> {
    let args: ResearchArgs = scene.parse()?;
    match (args.action.as_str(), args.url, args.query) {
        ("read", Some(url), None) => fetch::main_content(scene, &url).await,
        ("search", None, Some(_)) => run_search(scene).await,
        ("read", ..) => Err(CallError::invalid("read takes `url`, and no `query`")),
        _ => Err(CallError::invalid("search takes `query`, and no `url`")),
    }
}

/// Asks whoever searches.
async fn find(scene: &Scene, ask: &Ask) -> Result<Reply, CallError> {
    let chosen = choice::choose(&scene.web().settings().search, &|name| std::env::var(name).ok())?;
    let response = send(scene, &chosen, chosen.adapter.wanted(ask)?).await?;
    let name = chosen.adapter.name();
    refused(&chosen, &response)?;
    let unreadable = |why: String| {
        CallError::new(ErrorKind::Upstream, format!("the answer of {name} cannot be used: {why}"))
            .hint("try again later, or let somebody else search with `web.search.provider` in the configuration")
    };
    let hits = tidied(chosen.adapter.parse(&response.body).map_err(unreadable)?, ask.max_results);
    let data = response.masked_data(json!({ "provider": name, "results": hits }));
    let mut reply = Reply::text(response.masked(listed(&hits))).data(data);
    reply.labels.push(Label::Untrusted);
    Ok(reply)
}

async fn send(scene: &Scene, chosen: &Chosen, wanted: Wanted) -> Result<Response, CallError> {
    let way = scene.way();
    let method = if wanted.post.is_some() { "POST" } else { "GET" };
    let mut request = Request::new(&way, method, wanted.target)?.at_most(BYTES_MAX);
    if chosen.named {
        request = request.named_by_the_user();
    }
    if let Some(credential) = wanted.credential {
        request = request.signed(credential);
    }
    request = request.header("accept", wanted.accept)?;
    if let Some(body) = wanted.post {
        request = request.header("content-type", "application/json")?.body(body.to_string());
    }
    way.send(request).await
}

/// What a status says that is no answer.
fn refused(chosen: &Chosen, response: &Response) -> Result<(), CallError> {
    let name = chosen.adapter.name();
    let said = serde_json::from_slice::<Value>(&response.body).ok().and_then(|value| {
        let places = ["/error/message", "/error/detail", "/detail/error", "/detail", "/message", "/error"];
        places.iter().find_map(|place| value.pointer(place).and_then(Value::as_str).map(str::to_owned))
    });
    let said = said.map(|said| format!(": {}", cut(&inert(&response.masked(said)), 200))).unwrap_or_default();
    let error = |what: &str, hint: String| {
        Err(CallError::new(ErrorKind::Upstream, format!("{name} {what} ({}){said}", response.status)).hint(hint))
    };
    match (response.status, &chosen.key) {
        (200..=201 | 203..=299, _) => Ok(()),
        (401 | 403, Some(key)) => error("does not accept the key", format!("check {key}")),
        (403, None) => error("does not answer programs", chosen.adapter.when_forbidden().to_owned()),
        (429, _) => error("wants fewer requests", "wait a while".to_owned()),
        (202, _) => error("does not answer", "wait a while, or configure a provider with a key".to_owned()),
        _ => error("does not answer", "try again later".to_owned()),
    }
}

fn listed(hits: &[Hit]) -> String {
    if hits.is_empty() {
        return "No results".to_owned();
    }
    let line = |(index, hit): (usize, &Hit)| {
        let published = hit.published.as_ref().map(|at| format!(" ({at})")).unwrap_or_default();
        let snippet = if hit.snippet.is_empty() { String::new() } else { format!("\n   {}", hit.snippet) };
        format!("{}. {}{published}\n   {}{snippet}", index + 1, hit.title, hit.url)
    };
    hits.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
