//! What can be asked for by JSON-RPC.

use super::{BAD_PARAMS, BUSY, Fault, NO_METHOD};
use crate::agent::Send;
use crate::gateway::{Gateway, Shared};
use crate::guard::{Holder, Visitor};
use crate::problem::came_to_its_tool;
use crate::rest::approvals::{self, Answer, Decided, Resolved};
use crate::rest::tools;
use crate::run::{Manner, TOO_MANY_WAIT};
use haft_core::{Call, CallError, CallId, ErrorKind, Outcome, SessionId};
use haft_runtime::new_call_id;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A call, and how it is to be made.
pub(crate) struct Invoke {
    pub(crate) call: Call,
    pub(crate) manner: Manner,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invoked {
    #[serde(alias = "tool")]
    name: String,
    #[serde(alias = "arguments", alias = "input", alias = "params")]
    args: Option<Value>,
    session: Option<String>,
    dialect: Option<String>,
    #[serde(default)]
    dry_run: bool,
    wait_ms: Option<u64>,
    call_id: Option<String>,
    idempotency_key: Option<String>,
}

impl Invoke {
    pub(crate) fn read(gateway: &Shared, visitor: Visitor, params: Value) -> Result<Self, Fault> {
        let Invoked { name, args, session, dialect, dry_run, wait_ms, call_id, idempotency_key } = given(params)?;
        let wanted = tools::Wanted { args, session, dialect, dry_run, wait_ms, call_id, idempotency_key };
        let manner = gateway.manner(&wanted);
        let call = gateway.wanted(name, wanted, visitor)?;
        if !gateway.has_room(&call, manner) {
            return Err(Fault::new(BUSY, TOO_MANY_WAIT));
        }
        Ok(Self { call, manner })
    }
}

/// An outcome as the answer: a result once the tool ran, an error if it was not let through.
pub(crate) fn invoked(outcome: Outcome) -> Result<Value, Fault> {
    match &outcome.error {
        Some(error) if !came_to_its_tool(&outcome, error.kind) => {
            let fault = Fault::from(error.clone());
            Err(fault.with(serde_json::to_value(outcome).unwrap_or_default()))
        }
        _ => Ok(serde_json::to_value(outcome).unwrap_or_default()),
    }
}

pub(crate) fn given<T: DeserializeOwned>(params: Value) -> Result<T, Fault> {
    serde_json::from_value(params).map_err(|error| Fault::new(BAD_PARAMS, format!("the params do not fit: {error}")))
}

/// What is the owner's alone, besides decisions: who may make those is for the store to say, which also keeps who tried.
const FOR_THE_OWNER: [&str; 4] = ["agent.send", "sessions.list", "sessions.delete", "approvals.list"];

/// Answers every method but `tools.invoke`, which may take long and is watched while it does.
pub(crate) async fn answer(gateway: &Shared, visitor: Visitor, method: &str, params: Value) -> Result<Value, Fault> {
    if visitor.holder != Holder::Owner && FOR_THE_OWNER.contains(&method) {
        return Err(CallError::new(ErrorKind::Denied, "the agents' token makes calls and decides nothing").into());
    }
    match method {
        "system.health" => Ok(gateway.health()),
        "tools.list" => tools_list(gateway, params),
        "sessions.list" => Ok(json!({ "sessions": gateway.haft.store().sessions().await? })),
        "sessions.create" => sessions_create(gateway, visitor, params).await,
        "sessions.history" => sessions_history(gateway, visitor, params).await,
        "sessions.delete" => sessions_delete(gateway, visitor, params).await,
        "approvals.list" => approvals_list(gateway, params).await,
        "approvals.resolve" => approvals_resolve(gateway, visitor, params).await,
        "agent.cancel" => agent_cancel(gateway, visitor, params),
        "agent.send" => {
            let send: Send = given(params)?;
            let session = Gateway::spoken_in(visitor, send.session.as_deref())?;
            gateway.send(visitor, session, send).await
        }
        _ => {
            let method = haft_core::preview::cut(&haft_core::preview::inert(method), 80);
            Err(Fault::new(NO_METHOD, format!("there is no method `{method}`")))
        }
    }
}

fn tools_list(gateway: &Shared, params: Value) -> Result<Value, Fault> {
    #[derive(Deserialize)]
    struct Params {
        dialect: Option<String>,
        provider: Option<String>,
    }
    let Params { dialect, provider } = given(params)?;
    Ok(gateway.tools(dialect.as_deref(), provider.as_deref())?)
}

#[derive(Deserialize)]
struct Named {
    #[serde(alias = "id")]
    session: Option<String>,
    limit: Option<u32>,
}

fn session(visitor: Visitor, name: Option<String>) -> Result<SessionId, Fault> {
    let name = name.ok_or_else(|| Fault::new(BAD_PARAMS, "which session? name it in `session`"))?;
    visitor.session(&name).ok_or_else(|| Fault::new(BAD_PARAMS, "a session's name is 1 to 128 printable characters"))
}

async fn sessions_create(gateway: &Shared, visitor: Visitor, params: Value) -> Result<Value, Fault> {
    let Named { session: name, .. } = given(params)?;
    let id = session(visitor, Some(name.unwrap_or_else(|| format!("s-{}", new_call_id()))))?;
    let created = gateway.haft.store().create_session(id.clone()).await?;
    Ok(json!({ "id": id, "created": created }))
}

async fn sessions_history(gateway: &Shared, visitor: Visitor, params: Value) -> Result<Value, Fault> {
    let Named { session: name, limit } = given(params)?;
    let id = session(visitor, name)?;
    let calls = gateway.latest(limit.unwrap_or(200), Some(id.to_string())).await?;
    Ok(json!({ "session": id, "calls": calls }))
}

async fn sessions_delete(gateway: &Shared, visitor: Visitor, params: Value) -> Result<Value, Fault> {
    let Named { session: name, .. } = given(params)?;
    let id = session(visitor, name)?;
    let ended = gateway.haft.end_session(&id);
    let deleted = gateway.haft.store().delete_session(id).await?;
    Ok(json!({ "deleted": deleted, "ended": ended }))
}

async fn approvals_list(gateway: &Shared, params: Value) -> Result<Value, Fault> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        all: bool,
    }
    let Params { all } = given(params)?;
    Ok(gateway.inbox(all).await?)
}

async fn approvals_resolve(gateway: &Shared, visitor: Visitor, params: Value) -> Result<Value, Fault> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Params {
        id: String,
        decision: Option<Answer>,
        message: Option<String>,
        pattern: Option<String>,
        basis: Option<String>,
        args: Option<Value>,
        answer: Option<Value>,
    }
    let Params { id, decision, message, pattern, basis, args, answer } = given(params)?;
    // Whoever fills in a form need not say that they do.
    let decision = decision.or(answer.as_ref().map(|_| Answer::Form));
    match (decision, args) {
        (None, Some(args)) => {
            let question = gateway.haft.amend(&id, &visitor.decider(), args).await?;
            Ok(json!({ "id": id, "state": "pending", "question": approvals::asked(&question) }))
        }
        (Some(decision), None) => {
            match gateway
                .resolve(&id, &visitor.decider(), Decided { decision, pattern, message, answer, basis })
                .await?
            {
                Resolved::Ran(outcome) => Ok(serde_json::to_value(outcome).unwrap_or_default()),
                Resolved::Rejected => Ok(json!({ "id": id, "state": "rejected" })),
                Resolved::Answered => Ok(json!({ "id": id, "state": "answered" })),
            }
        }
        (Some(_), Some(_)) | (None, None) => {
            let why = "either decide, or put other `args` in place and look at what they would do";
            Err(Fault::new(BAD_PARAMS, why))
        }
    }
}

fn agent_cancel(gateway: &Shared, visitor: Visitor, params: Value) -> Result<Value, Fault> {
    #[derive(Deserialize)]
    struct Params {
        session: Option<String>,
        #[serde(alias = "id")]
        call_id: Option<CallId>,
    }
    let Params { session: name, call_id } = given(params)?;
    if let Some(call) = call_id {
        let cancelled: Vec<CallId> = Some(call).filter(|call| gateway.cancel(visitor, call)).into_iter().collect();
        return Ok(json!({ "cancelled": cancelled }));
    }
    let session = session(visitor, name)?;
    let talking = gateway.work.conversations.cancel(&session);
    Ok(json!({ "cancelled": gateway.cancel_session(&session), "conversation": talking }))
}
