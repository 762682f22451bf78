//! How the gateway is, and what it goes by.

use crate::gateway::{Gateway, Shared};
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_core::path_text;
use http::{StatusCode, header};
use serde_json::{Value, json};

/// What there is, for programs that read such documents.
pub(crate) const OPENAPI: &str = include_str!("../../openapi.json");

/// `GET /health`.
pub(crate) async fn health(State(gateway): State<Shared>) -> Response {
    let health = gateway.health();
    // Whoever sends requests here by how healthy this is goes by the number.
    let status = if health["status"] == "degraded" { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    (status, Json(health)).into_response()
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
        "version": env!("CARGO_PKG_VERSION"), "root": path_text::show(gateway.haft.workspace().root().as_os_str()),
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
    /// That it is there, whether it is about to go, and whether its store answers. Nothing that is not public, and nothing
    /// that has to be asked for: a store that is away must not keep anybody waiting here.
    pub(crate) fn health(&self) -> Value {
        let version = env!("CARGO_PKG_VERSION");
        if self.work.closing.is_cancelled() {
            return json!({ "status": "closing", "version": version });
        }
        match self.haft.store().ails() {
            None => json!({ "status": "ok", "version": version }),
            // Where it is and what it said is the operator's to know.
            Some(_) => {
                json!({ "status": "degraded", "version": version, "store": "does not answer; calls wait for it" })
            }
        }
    }
}
