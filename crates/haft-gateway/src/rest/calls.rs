//! The calls: what they did, cancelling them, taking them back.

use crate::body::{self, Asked};
use crate::gateway::{Gateway, Shared};
use crate::guard::Visitor;
use crate::lines;
use crate::problem::Problem;
use crate::rest::call_id;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use haft_core::{CallError, CallId, SessionId};
use haft_runtime::media::{Attachment, url_safe};
use haft_runtime::{CallUndone, LastUndoable, PartlyUndone, SelectionUndone, undo_selection};
use haft_store::UndoSelection;
use http::header;
use serde::Deserialize;
use serde_json::{Value, json};

/// How many calls are listed at the most.
const LIMIT: u32 = 1000;

#[derive(Deserialize)]
pub(crate) struct Which {
    limit: Option<u32>,
    session: Option<String>,
}

/// `GET /v1/calls`.
pub(crate) async fn list(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Asked(which): Asked<Which>,
) -> Result<Json<Value>, Problem> {
    let session = match which.session {
        Some(name) => Some(
            visitor
                .session(&name)
                .ok_or_else(|| Problem::invalid("`session` has 1 to 128 printable characters"))?
                .to_string(),
        ),
        None => None,
    };
    let mut calls = gateway.latest(which.limit.unwrap_or(200), session).await?;
    calls.retain(|line| visitor.sees(line["session"].as_str()));
    Ok(Json(json!({ "calls": calls })))
}

/// `GET /v1/calls/ID`.
pub(crate) async fn one(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let call = call_id(&id)?;
    let store = gateway.haft.store();
    let unknown = || Problem::not_found("the log knows no such call");
    // What was written without waiting is to be seen by whoever asks next.
    let traced = store.traced(call.clone()).await?.ok_or_else(unknown)?;
    let mut line = lines::line(&gateway, &traced);
    if !visitor.sees(line["session"].as_str()) {
        return Err(unknown());
    }
    line["records"] = serde_json::to_value(&traced.records).unwrap_or_default();
    if let Some(outcome) = gateway.hub.outcome(&call) {
        line["outcome"] = serde_json::to_value(&*outcome).unwrap_or_default();
    }
    Ok(Json(line))
}

/// `POST /v1/calls/ID/cancel`.
pub(crate) async fn cancel(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let cancelled = gateway.cancel(visitor, &call_id(&id)?);
    Ok(Json(json!({ "cancelled": cancelled })))
}

/// `POST /v1/calls/ID/undo`.
pub(crate) async fn undo(State(gateway): State<Shared>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let (call, haft) = (call_id(&id)?, gateway.haft.clone());
    let (call_id, undo) = gateway.to_its_end(async move { haft.undo(&call).await }).await?;
    Ok(Json(json!({ "call_id": call_id, "undo": undo })))
}

/// `GET /v1/calls/ID/attachments/NAME`. It is saved, never shown: what an agent sends must not run as this page.
pub(crate) async fn attachment(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Path((id, name)): Path<(String, String)>,
) -> Result<impl IntoResponse, Problem> {
    let call = call_id(&id)?;
    let unknown = || Problem::not_found("there is no such attachment");
    let traced = gateway.haft.store().traced(call.clone()).await?.ok_or_else(unknown)?;
    if !visitor.sees(lines::line(&gateway, &traced)["session"].as_str()) {
        return Err(unknown());
    }
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    let path = Attachment::dir(&gateway.haft.settings().data_dir, &call).join(&name);
    let bytes = if plain { tokio::fs::read(path).await.map_err(|_| unknown())? } else { return Err(unknown()) };
    let disposition = format!("attachment; filename*=UTF-8''{}", url_safe(&name));
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    Ok((headers, bytes))
}

/// Which part of a change is wanted.
#[derive(Deserialize)]
pub(crate) struct ChangesQuery {
    path: Option<String>,
}

/// `GET /v1/calls/ID/changes`.
pub(crate) async fn changes(
    State(gateway): State<Shared>,
    Path(id): Path<String>,
    Asked(part): Asked<ChangesQuery>,
) -> Result<Json<Value>, Problem> {
    let changed = gateway.haft.changes_under(&call_id(&id)?, part.path.as_deref()).await?;
    Ok(Json(serde_json::to_value(changed).unwrap_or_default()))
}

/// Which calls that changed files are meant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Selected {
    session: Option<String>,
    turn: Option<u32>,
    since: Option<String>,
    limit: Option<u32>,
}

impl Selected {
    fn selection(self) -> Result<UndoSelection, Problem> {
        let bad = || Problem::invalid("`session` has 1 to 128 printable characters");
        let session = self.session.map(|name| SessionId::new(&name).ok_or_else(bad)).transpose()?;
        Ok(undo_selection(session, self.turn, self.since.as_deref())?)
    }
}

/// What is to be taken back.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoRequest {
    session: Option<String>,
    turn: Option<u32>,
    since: Option<String>,
    /// Only the latest that can be taken back.
    #[serde(default)]
    last: bool,
    /// What can be restored of each, where all of it cannot.
    #[serde(default)]
    partial: bool,
}

/// `GET /v1/changes`.
pub(crate) async fn changing(
    State(gateway): State<Shared>,
    Asked(selected): Asked<Selected>,
) -> Result<Json<Value>, Problem> {
    let limit = selected.limit.unwrap_or(200).min(LIMIT);
    let calls = gateway.haft.change_entries(selected.selection()?, limit).await?;
    Ok(Json(json!({ "calls": calls })))
}

/// `POST /v1/undo`.
pub(crate) async fn undo_selected(
    State(gateway): State<Shared>,
    request: axum::extract::Request,
) -> Result<Json<Value>, Problem> {
    let UndoRequest { session, turn, since, last, partial } = body::json(&gateway, request).await?;
    if !last && turn.is_none() && since.is_none() {
        return Err(Problem::invalid("nothing says which calls are to be taken back").hint(
            "give `last: true`, a `turn` or `since`; `session` narrows these and alone selects nothing; \
                 `POST /v1/calls/ID/undo` takes back one call",
        ));
    }
    let selection = Selected { session, turn, since, limit: None }.selection()?;
    let haft = gateway.haft.clone();
    let done = async move {
        if !last {
            let SelectionUndone { undone, passed_over } = haft.undo_selection(selection, partial).await?;
            return Ok(json!({ "undone": undone, "passed_over": passed_over }));
        }
        let LastUndoable { call_id: undone, passed_over } = haft.last_undoable(selection).await?;
        let PartlyUndone { call_id, undo, left } = if partial {
            haft.undo_partly(&undone).await?
        } else {
            let (call_id, undo) = haft.undo(&undone).await?;
            PartlyUndone { call_id, undo, left: Vec::new() }
        };
        let undone = CallUndone { undone, call_id, files: undo.files, left, reason: undo.reason };
        Ok::<_, CallError>(json!({ "undone": [undone], "passed_over": passed_over }))
    };
    Ok(Json(gateway.to_its_end(done).await?))
}

impl Gateway {
    /// Cancels a call, if it is one of the visitor's.
    pub(crate) fn cancel(&self, visitor: Visitor, call: &CallId) -> bool {
        visitor.sees(self.whose(call).as_ref().map(SessionId::as_str)) && self.haft.cancel(call)
    }

    /// The latest calls, in a line each.
    pub(crate) async fn latest(
        self: &Shared,
        limit: u32,
        session: Option<String>,
    ) -> Result<Vec<Value>, haft_store::StoreError> {
        let traced = self.haft.store().latest_calls(limit.min(LIMIT), session).await?;
        Ok(traced.iter().map(|traced| lines::line(self, traced)).collect())
    }
}
