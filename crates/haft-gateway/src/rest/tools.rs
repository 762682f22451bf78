//! The tools: what there is, calling them, and what a call would do.

use crate::body::{self, Asked};
use crate::gateway::{Gateway, Shared};
use crate::guard::Visitor;
use crate::problem::{Problem, told};
use crate::run::{Manner, TOO_MANY_WAIT};
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::{Extension, Json};
use haft_core::provider::{Provider, ToolDeclarations};
use haft_core::{Call, CallError, CallName, Dialect};
use haft_runtime::provider_tools::provider_tools;
use haft_runtime::registry::{Entry, declaration, visible};
use haft_runtime::{Explained, new_call_id};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[derive(Deserialize)]
pub(crate) struct Which {
    dialect: Option<String>,
    /// The model provider in whose form the tools are declared.
    provider: Option<String>,
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
    /// The call's name, for a caller that may have to send it again.
    pub(crate) call_id: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

/// `GET /v1/tools`.
pub(crate) async fn list(State(gateway): State<Shared>, Asked(which): Asked<Which>) -> Result<Json<Value>, Problem> {
    Ok(Json(gateway.tools(which.dialect.as_deref(), which.provider.as_deref())?))
}

/// `POST /v1/tools/NAME/call`.
pub(crate) async fn call(
    State(gateway): State<Shared>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let key = idempotency_key(request.headers())?;
    let mut wanted: Wanted = body::json(&gateway, request).await?;
    wanted.idempotency_key = key.or(wanted.idempotency_key);
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

/// The header by which a call is named, as HTTP clients send it: a text in quotes, or without.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut said = headers.get_all("idempotency-key").iter();
    let Some(value) = said.next() else { return Ok(None) };
    let quoted = |text: &str| text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).map(str::to_owned);
    match (value.to_str(), said.next()) {
        (Ok(text), None) => Ok(Some(quoted(text).unwrap_or_else(|| text.to_owned()))),
        _ => Err(Problem::invalid("Idempotency-Key is to hold one key, in printable ASCII characters")),
    }
}

impl Gateway {
    /// The tools that there are for callers of this door: in the words of a dialect, or as a request to a model provider
    /// declares them, with what differs from their own schemas.
    pub(crate) fn tools(&self, dialect: Option<&str>, provider: Option<&str>) -> Result<Value, CallError> {
        let dialect = self.dialect(dialect)?;
        let provider = provider.map(Provider::named).transpose()?;
        let mut caller = self.options.caller.clone();
        if let Some(provider) = provider {
            caller.provider = Some(provider.name().to_owned());
        }
        let entries = visible(self.haft.registry(), self.haft.settings().policy(), &caller);
        let declared: Vec<(Arc<Entry>, Value)> = entries
            .iter()
            .flat_map(|entry| declaration(entry, dialect).into_iter().map(|value| (Arc::clone(entry), value)))
            .collect();
        let Some(provider) = provider else {
            let tools: Vec<Value> = declared.into_iter().map(|(_, value)| value).collect();
            return Ok(json!({ "dialect": dialect.name(), "tools": tools }));
        };
        let ToolDeclarations { tools, notes } = provider_tools(provider, &declared, dialect);
        Ok(json!({ "dialect": dialect.name(), "provider": provider.name(), "tools": tools, "notes": notes }))
    }

    /// A call as it was asked for.
    pub(crate) fn wanted(&self, name: String, wanted: Wanted, visitor: Visitor) -> Result<Call, CallError> {
        let session = match wanted.session {
            Some(name) => visitor
                .session(&name)
                .ok_or_else(|| CallError::invalid("a session's name is 1 to 128 printable characters"))?,
            None => visitor.session(self.options.session.as_str()).unwrap_or_else(|| self.options.session.clone()),
        };
        let name_of_call = CallName { call_id: wanted.call_id, idempotency_key: wanted.idempotency_key };
        let chosen = name_of_call.id(visitor.origin, &session)?;
        Ok(Call {
            // A dry run makes no call that could be sent again.
            id: chosen.filter(|_| !wanted.dry_run).unwrap_or_else(new_call_id),
            spoken: name,
            args: wanted.args.unwrap_or_else(|| json!({})),
            dialect: self.dialect(wanted.dialect.as_deref())?,
            session,
            caller: self.options.caller.clone(),
            origin: visitor.origin,
            parents: Vec::new(),
            turn: None,
            autonomy: None,
            independent: false,
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
