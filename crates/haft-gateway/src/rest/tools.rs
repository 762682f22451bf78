//! The tools: what there is, calling them, and what a call would do.

use crate::body::{self, Asked};
use crate::gateway::{Gateway, Shared};
use crate::guard::Visitor;
use crate::problem::{Problem, told};
use crate::run::{Manner, TOO_MANY_WAIT};
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::{Extension, Json};
use haft_core::{Call, CallError, Dialect};
use haft_runtime::registry::{declaration, visible};
use haft_runtime::{Explained, new_call_id};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Deserialize)]
pub(crate) struct Which {
    dialect: Option<String>,
}

/// What a call is made with.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Wanted {
    pub(crate) args: Option<Value>,
    pub(crate) session: Option<String>,
    pub(crate) dialect: Option<String>,
    pub(crate) dry_run: bool,
    pub(crate) wait_ms: Option<u64>,
}

/// `GET /v1/tools`.
pub(crate) async fn list(State(gateway): State<Shared>, Asked(which): Asked<Which>) -> Result<Json<Value>, Problem> {
    Ok(Json(gateway.tools(which.dialect.as_deref())?))
}

/// `POST /v1/tools/NAME/call`.
pub(crate) async fn call(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let wanted: Wanted = body::json(&gateway, request).await?;
    let manner = gateway.manner(&wanted);
    let call = gateway.wanted(name, wanted, visitor)?;
    if !gateway.has_room(&call, manner) {
        return Err(Problem::busy(TOO_MANY_WAIT, 5));
    }
    Ok(told(&gateway.call(call, manner).await))
}

/// `POST /v1/tools/NAME/explain`.
pub(crate) async fn explain(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Json<Explained>, Problem> {
    let wanted: Wanted = body::json(&gateway, request).await?;
    let call = gateway.wanted(name, wanted, visitor)?;
    Ok(Json(gateway.haft.explain(call).await?))
}

impl Gateway {
    /// The tools that there are for callers of this door.
    pub(crate) fn tools(&self, dialect: Option<&str>) -> Result<Value, CallError> {
        let dialect = self.dialect(dialect)?;
        let entries = visible(self.haft.registry(), self.haft.settings().policy(), &self.options.caller);
        let tools: Vec<Value> = entries.iter().flat_map(|entry| declaration(entry, dialect)).collect();
        Ok(json!({ "dialect": dialect.name(), "tools": tools }))
    }

    /// A call as it was asked for.
    pub(crate) fn wanted(&self, name: String, wanted: Wanted, visitor: Visitor) -> Result<Call, CallError> {
        let session = match wanted.session {
            Some(name) => visitor
                .session(&name)
                .ok_or_else(|| CallError::invalid("a session's name is 1 to 128 printable characters"))?,
            None => visitor.session(self.options.session.as_str()).unwrap_or_else(|| self.options.session.clone()),
        };
        Ok(Call {
            id: new_call_id(),
            spoken: name,
            args: wanted.args.unwrap_or_else(|| json!({})),
            dialect: self.dialect(wanted.dialect.as_deref())?,
            session,
            caller: self.options.caller.clone(),
            origin: visitor.origin,
            parents: Vec::new(),
            autonomy: None,
        })
    }

    /// How a call is made.
    pub(crate) fn manner(&self, wanted: &Wanted) -> Manner {
        let patience = wanted.wait_ms.map_or(self.options.patience, Duration::from_millis);
        Manner { patience, dry_run: wanted.dry_run }
    }

    fn dialect(&self, name: Option<&str>) -> Result<Dialect, CallError> {
        name.map_or(Ok(self.options.dialect), Dialect::named)
    }
}
