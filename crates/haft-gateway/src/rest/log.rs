//! The log: reading it, checking it, taking it away.

use crate::body::Asked;
use crate::gateway::Shared;
use crate::problem::Problem;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use haft_store::Wanted;
use http::header;
use serde::Deserialize;
use serde_json::{Value, json};

/// How many records are given at once.
const LIMIT: u32 = 2000;

#[derive(Deserialize)]
pub(crate) struct Which {
    after: Option<i64>,
    before: Option<i64>,
    limit: Option<u32>,
    call: Option<String>,
    kind: Option<String>,
    q: Option<String>,
}

/// `GET /v1/log`.
pub(crate) async fn records(State(gateway): State<Shared>, Asked(which): Asked<Which>) -> Result<Json<Value>, Problem> {
    let said = |text: Option<String>| text.filter(|text| !text.is_empty());
    let Which { after, before, limit, call, kind, q } = which;
    let limit = limit.unwrap_or(200).min(LIMIT);
    let wanted = Wanted { after, before, limit, call: said(call), kind: said(kind), text: said(q) };
    let (records, head) = gateway.haft.store().search(wanted).await?;
    Ok(Json(json!({ "records": records, "head": head })))
}

/// `GET /v1/log/verify`.
pub(crate) async fn verify(State(gateway): State<Shared>) -> Result<Json<Value>, Problem> {
    let _turn = gateway.work.verifying.acquire().await.map_err(|_| Problem::busy("the gateway closes", 5))?;
    let verified = gateway.haft.store().verify(None).await?;
    Ok(Json(match verified {
        Ok(verified) => json!({ "ok": true, "head": verified.head }),
        Err(broken) => json!({ "ok": false, "broken": broken }),
    }))
}

/// `GET /v1/log/export`: one record a line, read while it is sent.
pub(crate) async fn export(State(gateway): State<Shared>) -> Response {
    let pages = stream::unfold((gateway, 0), |(gateway, after)| async move {
        let page = match gateway.haft.store().records(after, LIMIT, None).await {
            Ok(page) => page,
            // A stream that breaks off is no whole log, and its reader sees that.
            Err(error) => return Some((Err(error), (gateway, i64::MAX))),
        };
        let last = page.last()?.seq;
        let lines = page.iter().map(|record| serde_json::to_string(record).unwrap_or_default() + "\n");
        Some((Ok(Bytes::from(lines.collect::<String>())), (gateway, last)))
    });
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"haft-log.jsonl\""),
    ];
    (headers, Body::from_stream(pages)).into_response()
}
