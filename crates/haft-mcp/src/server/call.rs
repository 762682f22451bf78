//! One `tools/call`.

#![expect(deprecated, reason = "sampling and logging go, but clients of all but the newest version have them")]

use super::Shared;
use super::approver::{Client, Era, Lack, Way};
use super::door::Door;
use super::progress::{Reporter, Told, log};
use super::reply::reply;
use super::rounds::{Asked, Rounds, Running, Turn, Whose};
use futures_util::FutureExt as _;
use haft_core::{Call, CallId, Caller, ErrorKind, Origin, Outcome, SessionId};
use haft_runtime::tool::ResultSource;
use haft_runtime::{Halt, new_call_id};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ErrorCode, ErrorData, LoggingLevel};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

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
        Err(_) => Err(crashed()),
    }
}

async fn make(
    door: &Door,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let shared = door.shared();
    let caller = door.caller(context);
    let (able, agent, gone) = (context.client_capabilities(), caller.agent.clone(), door.gone().clone());
    let apart = door.is_apart();
    let client =
        |way: Way| Client::new(Arc::clone(shared), way, able.as_ref(), agent.as_deref(), gone.clone()).of(apart);
    if Era::of(context) == Era::Rounds {
        return Box::pin(round(door, context, request, caller, client)).await;
    }
    let call = call(shared, request, door.session(), caller);
    shared.recent.add(&call);
    let client = client(Way::Requests(context.peer.clone()));
    let mut told = Telling::new(door, context, &call.id, &call.spoken);
    let (by_way, halt) = (is_by_way(&call), Halt::new());
    let calling = heeding(door, context, &halt, shared.haft.call(call, &client, &halt));
    let outcome = Box::pin(told.during(calling)).await;
    told_of(door, context, outcome, by_way).await
}

/// A request of a client that is asked in rounds: it begins a call, or comes back to one with an answer.
async fn round(
    door: &Door,
    context: &RequestContext<RoleServer>,
    mut request: CallToolRequestParams,
    caller: Caller,
    client: impl FnOnce(Way) -> Client,
) -> Result<CallToolResponse, ErrorData> {
    let shared = door.shared();
    let mut given = request.input_responses.take().unwrap_or_default();
    let word = request.request_state.take();
    let call = call(shared, request, door.session(), caller);
    let (whose, by_way, spoken) = (Whose::of(&call), is_by_way(&call), call.spoken.clone());
    let telling = |id: &CallId| Telling::new(door, context, id, &spoken);
    let (mut telling, mut running, mut asked) = if let Some(word) = word {
        let (running, asked) = shared.rounds.take(&whose, &word).ok_or_else(|| {
            let why = "this request state is not known here, was used before, or is another call's: call the tool anew";
            ErrorData::invalid_params(why, None)
        })?;
        (telling(&running.id), running, Some(asked).filter(Asked::is_open))
    } else {
        shared.recent.add(&call);
        // It listens before there is anything to be heard.
        let telling = telling(&call.id);
        (telling, Rounds::begin(shared, call, |turns| client(Way::Rounds(turns))), None)
    };
    let ended = loop {
        let question = match asked.take() {
            Some(question) => question.answered(&mut given),
            None => match telling.during(next(door, context, &mut running)).await {
                // What a tool calls by a name of its own can be answered with the first request.
                Turn::Asked(question) if question.is_named() => question.answered(&mut given),
                Turn::Asked(question) => Err(question),
                Turn::Ended(ended) => break *ended,
                Turn::Lost => return Err(crashed()),
            },
        };
        if let Err(question) = question {
            match shared.rounds.hold(whose.clone(), running, question) {
                Ok(told) => return Ok(told.into()),
                Err(kept) => running = kept,
            }
        }
    };
    match ended.lacks.filter(|_| !ended.outcome.success) {
        Some(lack) => Err(lacking(lack, &ended.outcome)),
        None => told_of(door, context, ended.outcome, by_way).await,
    }
}

/// What a call does next. It is cancelled when nobody waits for it any more.
async fn next(door: &Door, context: &RequestContext<RoleServer>, running: &mut Running) -> Turn {
    tokio::select! {
        biased;
        turn = running.next() => return turn,
        () = door.abandoned(context) => {}
    }
    running.halt.cancel();
    loop {
        // Nobody is asked any more; what was cancelled still has an end.
        match running.next().await {
            Turn::Asked(question) => drop(question),
            turn => return turn,
        }
    }
}

/// What a client hears whose call needed what it does not offer.
fn lacking(lack: Lack, outcome: &Outcome) -> ErrorData {
    let needed = match lack {
        Lack::Elicitation => json!({"elicitation": {}}),
        Lack::Sampling => json!({"sampling": {}}),
    };
    let message = outcome.error.as_ref().map_or_else(String::new, |error| error.message.clone());
    let data = json!({"requiredCapabilities": needed, "call_id": outcome.call_id});
    ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, message, Some(data))
}

fn crashed() -> ErrorData {
    ErrorData::internal_error("the call crashed; `haft log` shows how far it came", None)
}

/// What a client is told of an outcome.
async fn told_of(
    door: &Door,
    context: &RequestContext<RoleServer>,
    outcome: Outcome,
    by_way: bool,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(error) = outcome.error.as_ref().filter(|error| error.kind == ErrorKind::UnknownTool && !by_way) {
        let hint = error.hint.as_deref().unwrap_or_default();
        return Err(ErrorData::invalid_params(format!("{}. {hint}", error.message), None));
    }
    door.updated(&context.peer, &outcome.call_id).await;
    for warning in outcome.warnings.iter().filter(|_| door.logs(context, LoggingLevel::Warning)) {
        // A client that has gone need not be told.
        let _ = log(&context.peer, LoggingLevel::Warning, &outcome.tool, warning.clone()).await;
    }
    let entry = door.shared().haft.registry().get(&outcome.tool);
    let schema = entry.as_ref().and_then(|entry| entry.output());
    let source = entry.as_ref().map_or(ResultSource::Haft, |entry| entry.tool().result_source());
    Ok(reply(outcome, &door.shared().options.decide_at, schema, source).into())
}

/// Whether a call is one of another tool by way of haft's own.
fn is_by_way(call: &Call) -> bool {
    haft_runtime::registry::is_caller(&call.spoken)
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
        parents: Vec::new(),
        autonomy: None,
    }
}

/// Tells the client how far a call is, if it wants to know.
struct Telling(Option<Reporter>);

impl Telling {
    fn new(door: &Door, context: &RequestContext<RoleServer>, call: &CallId, spoken: &str) -> Self {
        let told = match context.meta.get_progress_token() {
            Some(token) => Some(Told::Progress(token)),
            None => door.logs(context, LoggingLevel::Info).then(|| Told::Log(spoken.to_owned())),
        };
        let events = || door.shared().haft.events().listen();
        Self(told.map(|told| Reporter::new(context.peer.clone(), told, call.clone(), events())))
    }

    /// Tells of it while this is waited for.
    async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let Some(reporter) = &mut self.0 else { return work.await };
        let done = tokio::select! {
            done = work => done,
            never = reporter.run() => match never {},
        };
        reporter.rest().await;
        done
    }
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
