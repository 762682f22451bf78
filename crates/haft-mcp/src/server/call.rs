//! One `tools/call`.

#![expect(deprecated, reason = "sampling and logging go, but clients of all but the newest version have them")]

use super::Shared;
use super::approver::{Client, Era, said};
use super::door::Door;
use super::progress::{Reporter, Told, log};
use super::reply::reply;
use futures_util::FutureExt as _;
use haft_core::{Call, CallError, CallId, Caller, ErrorKind, Origin, Outcome, SessionId};
use haft_runtime::{Approver, Halt, Resolution, Said, new_call_id};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequest, ElicitResult, ErrorData, InputRequest, InputRequests,
    InputRequiredResult, LoggingLevel,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;

/// The key of the one question that goes out with an answer.
const APPROVAL: &str = "approval";
/// By this tool others are called that were not listed.
const BY_WAY_OF: [&str; 2] = ["tool_call", "tool.call"];

/// Makes a call for a client, and always has an answer.
pub(super) async fn answer(
    door: &Door,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    // Boxed, because a request's future is moved several times before it runs.
    let making = Box::pin(make(door, request, &context));
    match AssertUnwindSafe(making).catch_unwind().await {
        Ok(answer) => answer,
        Err(_) => Err(ErrorData::internal_error("the call crashed; `haft log` shows how far it came", None)),
    }
}

async fn make(
    door: &Door,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let (shared, session) = (door.shared(), door.session());
    let caller = door.caller(context);
    let era = Era::of(context);
    let client = Client::new(shared, context, era, caller.agent.as_deref(), door.gone().clone());
    if let (Era::Rounds, Some(word)) = (era, &request.request_state) {
        let answered = request.input_responses.as_ref().and_then(|all| all.get(APPROVAL)).cloned();
        let outcome = Box::pin(resume(door, context, (&session, word), answered, client.name())).await?;
        return Ok(reply(outcome, &shared.options.decide_at).into());
    }
    let call = call(shared, request, session, caller);
    let by_way = BY_WAY_OF.contains(&call.spoken.as_str());
    let id = call.id.clone();
    shared.recent.add(&call.session, &id);
    let outcome = Box::pin(run(door, context, call, &client)).await;
    if let Some(error) = outcome.error.as_ref().filter(|error| error.kind == ErrorKind::UnknownTool && !by_way) {
        let hint = error.hint.as_deref().unwrap_or_default();
        return Err(ErrorData::invalid_params(format!("{}. {hint}", error.message), None));
    }
    door.updated(&context.peer, &id).await;
    if let Some(form) = client.take_asked().filter(|_| waits(&outcome)) {
        let word = shared.held.keep(&door.session(), &id);
        if word.is_some() {
            let mut asked = InputRequests::new();
            asked.insert(APPROVAL.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)));
            return Ok(InputRequiredResult::new(Some(asked), word).into());
        }
    }
    for warning in outcome.warnings.iter().filter(|_| door.logs(context, LoggingLevel::Warning)) {
        // A client that has gone need not be told.
        let _ = log(&context.peer, LoggingLevel::Warning, &outcome.tool, warning.clone()).await;
    }
    Ok(reply(outcome, &shared.options.decide_at).into())
}

fn call(shared: &Shared, request: CallToolRequestParams, session: SessionId, caller: Caller) -> Call {
    Call {
        id: new_call_id(),
        spoken: request.name.into_owned(),
        args: Value::Object(request.arguments.unwrap_or_default()),
        dialect: shared.options.dialect,
        session,
        caller,
        origin: Origin::Mcp,
    }
}

fn waits(outcome: &Outcome) -> bool {
    outcome.error.as_ref().is_some_and(|error| error.kind == ErrorKind::ApprovalRequired)
}

/// Carries a call to its end, telling the client how far it is if it wants to know.
async fn run(door: &Door, context: &RequestContext<RoleServer>, call: Call, client: &Client<'_>) -> Outcome {
    let shared = door.shared();
    let told = match context.meta.get_progress_token() {
        Some(token) => Some(Told::Progress(token)),
        None => door.logs(context, LoggingLevel::Info).then(|| Told::Log(call.spoken.clone())),
    };
    let reporter =
        told.map(|told| Reporter::new(context.peer.clone(), told, call.id.clone(), shared.haft.events().listen()));
    let halt = Halt::new();
    let calling = heeding(door, context, &halt, shared.haft.call(call, client, &halt));
    let Some(mut reporter) = reporter else { return calling.await };
    let outcome = tokio::select! {
        outcome = calling => outcome,
        never = reporter.run() => match never {},
    };
    reporter.rest().await;
    outcome
}

/// Cancels the work when the client does, or has gone.
async fn heeding<T>(
    door: &Door,
    context: &RequestContext<RoleServer>,
    halt: &Halt,
    work: impl Future<Output = T>,
) -> T {
    tokio::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = door.abandoned(context) => halt.cancel(),
    }
    // What was cancelled still has an end, and a record of it.
    work.await
}

/// Takes up a question that went out with an answer.
async fn resume(
    door: &Door,
    context: &RequestContext<RoleServer>,
    (session, word): (&SessionId, &str),
    answered: Option<Value>,
    by: &str,
) -> Result<Outcome, ErrorData> {
    let shared = door.shared();
    let id = shared.held.take(session, word).ok_or_else(|| {
        let why = "this request state is not known here, or was used before: call the tool anew";
        ErrorData::invalid_params(why, None)
    })?;
    let answer = answered.and_then(|value| serde_json::from_value::<ElicitResult>(value).ok());
    let halt = Halt::new();
    let decide = |resolution| {
        let deciding = shared.haft.decide(id.as_str(), by, resolution, &halt);
        Box::pin(heeding(door, context, &halt, deciding))
    };
    let decided = match answer.map_or(Said::Nobody, said) {
        Said::Once => decide(Resolution::Once).await,
        Said::Session => decide(Resolution::Session).await,
        Said::Reject(message) => {
            shared.haft.reject(id.as_str(), by, &message).await.and(Err(CallError::new(ErrorKind::Rejected, message)))
        }
        _ => {
            Err(CallError::new(ErrorKind::ApprovalRequired, "nobody has decided yet")
                .details(json!({ "approval_id": id })))
        }
    };
    match decided {
        Ok(outcome) => Ok(outcome),
        Err(error) => Ok(settled(shared, &id, error).await),
    }
}

/// What came of a question: what somebody else's decision led to, if there was one; otherwise the error.
async fn settled(shared: &Shared, id: &CallId, error: CallError) -> Outcome {
    let found = shared.haft.store().approval(id.as_str()).await.ok().flatten();
    let kept = found.as_ref().and_then(|found| found.outcome.clone());
    if let Some(outcome) = kept.and_then(|value| serde_json::from_value(value).ok()) {
        return outcome;
    }
    let by = found.as_ref().and_then(|found| found.decided_by.clone()).unwrap_or_default();
    let verdict = haft_core::approval::Verdict::new(haft_core::approval::Decision::Deny, by, "a person decides");
    let tool = found.map(|found| found.tool).unwrap_or_default();
    Outcome::failure(id.clone(), tool, error, verdict)
}
