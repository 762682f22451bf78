//! How the gateway is, and what it goes by.

use crate::gateway::{Gateway, Shared};
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use serde_json::{Value, json};

/// What there is, for programs that read such documents.
pub(crate) const OPENAPI: &str = include_str!("../../openapi.json");

/// `GET /health`.
pub(crate) async fn health(State(gateway): State<Shared>) -> Json<Value> {
    Json(gateway.health())
}

/// `GET /openapi.json`.
pub(crate) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// `GET /metrics`.
pub(crate) async fn metrics(State(gateway): State<Shared>) -> Result<Response, Problem> {
    gateway.meters.pending.set(gateway.haft.store().pending_count().await?);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], gateway.meters.text()).into_response())
}

/// `GET /v1/status`.
pub(crate) async fn status(State(gateway): State<Shared>) -> Result<Json<Value>, Problem> {
    Ok(Json(json!({
        "version": env!("CARGO_PKG_VERSION"), "root": gateway.haft.workspace().root(),
        "approvals_pending": gateway.haft.store().pending_count().await?,
        "links": gateway.options.links, "servers": (gateway.options.servers)(),
    })))
}

/// `GET /v1/config`.
pub(crate) async fn config(State(gateway): State<Shared>) -> Json<Value> {
    let mut config = gateway.options.config.clone();
    config["confinement"] = gateway.options.confinement.clone();
    Json(config)
}

/// `GET /v1/sessions`.
pub(crate) async fn sessions(State(gateway): State<Shared>) -> Result<Json<Value>, Problem> {
    Ok(Json(json!({ "sessions": gateway.haft.store().sessions().await? })))
}

impl Gateway {
    /// That it is there, and whether it is about to go. Nothing that is not public.
    pub(crate) fn health(&self) -> Value {
        let state = if self.work.closing.is_cancelled() { "closing" } else { "ok" };
        json!({ "status": state, "version": env!("CARGO_PKG_VERSION") })
    }
}
