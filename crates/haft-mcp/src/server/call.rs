//! One `tools/call`.

#![expect(deprecated, reason = "sampling and logging go, but clients of all but the newest version have them")]

use super::Shared;
use super::approver::{Client, Era, Lack, Way};
use super::bridged::{self, BridgedServers};
use super::call_task::{CallTasks, NewCallTask, TaskOwner};
use super::client_mode::ClientMode;
use super::door::Door;
use super::progress::{Reporter, Told, log};
use super::reply::reply;
use super::rounds::{Asked, Ended, LongCall, Rounds, Running, Turn, Whose};
use futures_util::FutureExt as _;
use haft_core::approval::{Decision, Verdict};
use haft_core::{Call, CallError, CallId, CallName, Caller, ErrorKind, Origin, Outcome};
use haft_runtime::tool::ResultSource;
use haft_runtime::{Halt, new_call_id};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult, ErrorCode, ErrorData,
    InputRequiredResult, InputResponses, LoggingLevel,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::time::Instant;

/// Makes a call for a client, and always has an answer.
pub(super) async fn answer(
    door: &Door,
    mut request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let shared = door.shared();
    let spoken = request.name.into_owned();
    let name = shared.bridged.as_ref().and_then(|bridged| bridged.front_tool_name(&spoken)).unwrap_or(spoken);
    let args = Value::Object(request.arguments.unwrap_or_default());
    let mut call = new_call(door, name, args, door.caller(&context));
    if let Some(id) = chosen_id(&context, &call)? {
        call.id = id;
    }
    let input = RoundInput::take(&mut request.input_responses, &mut request.request_state);
    let (id, tool) = (call.id.clone(), call.spoken.clone());
    // Boxed, because a request's future is moved several times before it runs.
    let making = Box::pin(make(door, call, input, &context));
    match AssertUnwindSafe(making).catch_unwind().await {
        Ok(answer) => answer,
        Err(_) => result_of(shared, crash(id, &tool), true).map(Into::into),
    }
}

/// The id that a client chose for its call, in `_meta.haft.call_id`, so that it can send the call again.
fn chosen_id(context: &RequestContext<RoleServer>, call: &Call) -> Result<Option<CallId>, ErrorData> {
    let Some(said) = context.meta.get("haft").cloned() else { return Ok(None) };
    let wrong = |why: String| ErrorData::invalid_params(format!("`_meta.haft` does not name a call: {why}"), None);
    let name: CallName = serde_json::from_value(said).map_err(|error| wrong(error.to_string()))?;
    name.id(call.origin, &call.session).map_err(|error| wrong(error.message))
}

async fn make(
    door: &Door,
    call: Call,
    input: RoundInput,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let by_way = is_by_way(&call);
    match begin_or_resume(door, context, call, input, long_call(door, context)).await? {
        CallReply::Asked(told) => Ok(told.into()),
        CallReply::Task(created) => Ok((*created).into()),
        CallReply::Ended(ended) => told_of(door, context, *ended, by_way).await,
    }
}

/// What a client sent along to come back to a call that asked it something.
pub(super) struct RoundInput {
    given: InputResponses,
    word: Option<String>,
}

impl RoundInput {
    /// Takes it out of a request.
    pub(super) fn take(responses: &mut Option<InputResponses>, state: &mut Option<String>) -> Self {
        Self { given: responses.take().unwrap_or_default(), word: state.take() }
    }
}

/// What a request for a call is answered with.
pub(super) enum CallReply {
    /// The call asks its client something.
    Asked(InputRequiredResult),
    /// The call goes on as a task.
    Task(Box<CreateTaskResult>),
    /// It is over.
    Ended(Box<Ended>),
}

/// Makes a call for a client, or goes on with one, and reports to the client meanwhile.
pub(super) async fn begin_or_resume(
    door: &Door,
    context: &RequestContext<RoleServer>,
    call: Call,
    input: RoundInput,
    long_call: LongCall,
) -> Result<CallReply, ErrorData> {
    let shared = door.shared();
    let (able, agent, gone) = (context.client_capabilities(), call.caller.agent.clone(), door.gone().clone());
    let (apart, mode) = (door.is_apart(), ClientMode::of(context, door.is_over_http()));
    let client =
        |way: Way| Client::new(Arc::clone(shared), way, able.as_ref(), mode, agent.as_deref(), gone.clone()).of(apart);
    if Era::of(context) == Era::Rounds {
        return Box::pin(round(door, context, (call, long_call), input, client)).await;
    }
    shared.recent.add(&call);
    let client = client(Way::Requests(context.peer.clone()));
    let mut told = Telling::new(door, context, LongCall::Retry, &call);
    let halt = Halt::new();
    let calling = heeding(door, context, &halt, shared.haft.call(call, &client, &halt));
    let outcome = Box::pin(told.during(calling)).await;
    Ok(CallReply::Ended(Box::new(Ended { outcome, lacks: None })))
}

/// A request of a client that is asked in rounds: it begins a call, or comes back to one with an answer. A client that
/// knows tasks gets one as soon as the call asks something or takes long.
async fn round(
    door: &Door,
    context: &RequestContext<RoleServer>,
    (call, long_call): (Call, LongCall),
    RoundInput { mut given, word }: RoundInput,
    client: impl FnOnce(Way) -> Client,
) -> Result<CallReply, ErrorData> {
    let shared = door.shared();
    let (whose, owner, by_way) = (Whose::of(&call), TaskOwner::of(&call), is_by_way(&call));
    let mut telling = Telling::new(door, context, long_call, &call);
    let (running, asked) = if let Some(word) = word {
        let (running, asked) = shared.rounds.take(&whose, &word).ok_or_else(|| {
            let why = "this request state is not known here, was used before, or is another call's: call the tool anew";
            ErrorData::invalid_params(why, None)
        })?;
        telling.is_about(&running.id);
        (running, Some(asked).filter(Asked::is_open))
    } else {
        shared.recent.add(&call);
        (Rounds::begin(shared, call, long_call, |turns| client(Way::Rounds(turns))), None)
    };
    let overdue_at = (long_call == LongCall::Task).then(|| Instant::now() + shared.options.task_after);
    let mut open = OpenCall { telling, running, overdue_at };
    let mut pause = open.go_on(door, context, asked, &mut given).await;
    loop {
        let question = match pause {
            Pause::Ended(ended) => return Ok(CallReply::Ended(ended)),
            Pause::Lost => return Ok(CallReply::Ended(Box::new(crash(open.running.id, &open.running.spoken)))),
            Pause::Question(question) => Some(question),
            Pause::Overdue => None,
        };
        let is_for_task = open.overdue_at.is_some() && !question.as_ref().is_some_and(Asked::is_named);
        if is_for_task && let Some(id) = shared.call_tasks.create(&owner, &open.running) {
            let new_task = NewCallTask { owner, running: open.running, question, reporter: open.telling.0, by_way };
            return Ok(CallReply::Task(Box::new(CreateTaskResult::new(CallTasks::attach(shared, id, new_task)))));
        }
        // There is no room for a task: the call is waited for.
        open.overdue_at = None;
        if let Some(question) = question {
            match shared.rounds.hold(whose.clone(), open.running, question) {
                Ok(told) => return Ok(CallReply::Asked(told)),
                Err(kept) => open.running = kept,
            }
        }
        pause = open.go_on(door, context, None, &mut given).await;
    }
}

/// Whether a client gets a task when its call takes long. A headless one does not: it may end its run while the task waits,
/// and its model would not hear where the question is decided.
fn long_call(door: &Door, context: &RequestContext<RoleServer>) -> LongCall {
    let knows_tasks = context.client_capabilities().is_some_and(|able| able.supports_tasks());
    let is_attended = ClientMode::of(context, door.is_over_http()) == ClientMode::Attended;
    if knows_tasks && is_attended { LongCall::Task } else { LongCall::Retry }
}

/// A call that its client waits for, request by request.
struct OpenCall {
    telling: Telling,
    running: Running,
    /// When the call takes so long that it becomes a task, if it can.
    overdue_at: Option<Instant>,
}

/// Why a call does not go on within its request.
enum Pause {
    /// It asks something that is not answered yet.
    Question(Asked),
    /// It takes long, or is a task at the server that it goes to.
    Overdue,
    /// It is over.
    Ended(Box<Ended>),
    /// It is over without an outcome: it crashed.
    Lost,
}

impl OpenCall {
    /// Lets the call go on, from a question that the client came back to, with the answers that it sent.
    async fn go_on(
        &mut self,
        door: &Door,
        context: &RequestContext<RoleServer>,
        mut asked: Option<Asked>,
        given: &mut InputResponses,
    ) -> Pause {
        loop {
            if let Some(question) = asked.take()
                && let Err(question) = question.answered(given)
            {
                return Pause::Question(question);
            }
            let turn = self.telling.during(next(door, context, &mut self.running));
            let turn = match self.overdue_at {
                Some(overdue_at) => tokio::time::timeout_at(overdue_at, turn).await.ok(),
                None => Some(turn.await),
            };
            match turn {
                // What a tool calls by a name of its own can be answered with the first request.
                Some(Turn::Asked(question)) if question.is_named() => asked = Some(question),
                Some(Turn::Asked(question)) => return Pause::Question(question),
                Some(Turn::RemoteTask) if self.overdue_at.is_some() => return Pause::Overdue,
                Some(Turn::RemoteTask) => {}
                Some(Turn::Ended(ended)) => return Pause::Ended(ended),
                Some(Turn::Lost) => return Pause::Lost,
                None => return Pause::Overdue,
            }
        }
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
            Turn::RemoteTask => {}
            turn => return turn,
        }
    }
}

/// What a client hears whose call needed what it does not offer.
pub(super) fn lacking(lack: Lack, outcome: &Outcome) -> ErrorData {
    let needed = match lack {
        Lack::Elicitation => json!({"elicitation": {}}),
        Lack::Sampling => json!({"sampling": {}}),
    };
    let message = outcome.error.as_ref().map_or_else(String::new, |error| error.message.clone());
    let data = json!({"requiredCapabilities": needed, "call_id": outcome.call_id});
    ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, message, Some(data))
}

/// What came of a call that a panic ended outside of the path that every call goes.
pub(super) fn crash(id: CallId, tool: &str) -> Ended {
    let error = CallError::internal("the call crashed").hint(format!("`haft log {id}` shows how far it came"));
    let verdict = Verdict::new(Decision::Deny, "mcp", "the call did not come to its end");
    let outcome = Outcome::failure(id, haft_core::preview::inert(tool), error, verdict);
    Ended { outcome, lacks: None }
}

pub(super) fn crashed() -> ErrorData {
    ErrorData::internal_error("the call crashed; `haft log` shows how far it came", None)
}

/// What a client is told of a call that is over.
async fn told_of(
    door: &Door,
    context: &RequestContext<RoleServer>,
    ended: Ended,
    by_way: bool,
) -> Result<CallToolResponse, ErrorData> {
    let (call, tool, warnings) =
        (ended.outcome.call_id.clone(), ended.outcome.tool.clone(), ended.outcome.warnings.clone());
    let result = result_of(door.shared(), ended, by_way)?;
    door.updated(&context.peer, &call).await;
    for warning in warnings.into_iter().filter(|_| door.logs(context, LoggingLevel::Warning)) {
        // A client that has gone need not be told.
        let _ = log(&context.peer, LoggingLevel::Warning, &tool, warning).await;
    }
    Ok(result.into())
}

/// A call's end in the words of the protocol.
pub(super) fn result_of(shared: &Shared, ended: Ended, by_way: bool) -> Result<CallToolResult, ErrorData> {
    let Ended { outcome, lacks } = ended;
    if let Some(lack) = lacks.filter(|_| !outcome.success) {
        return Err(lacking(lack, &outcome));
    }
    if let Some(error) = outcome.error.as_ref().filter(|error| error.kind == ErrorKind::UnknownTool && !by_way) {
        let hint = error.hint.as_deref().unwrap_or_default();
        return Err(ErrorData::invalid_params(format!("{}. {hint}", error.message), None));
    }
    if let Some(refusal) = outcome.error.as_ref().and_then(bridged::missing_capability) {
        return Err(refusal);
    }
    let entry = shared.haft.registry().get(&outcome.tool);
    let schema = entry.as_ref().and_then(|entry| entry.output());
    let source = entry.as_ref().map_or(ResultSource::Haft, |entry| entry.tool().result_source());
    Ok(reply(outcome, &shared.options.decision_place, schema, source))
}

/// Whether a call is one of another tool by way of haft's own.
fn is_by_way(call: &Call) -> bool {
    haft_runtime::registry::is_caller(&call.spoken)
}

/// A call that a client makes.
pub(super) fn new_call(door: &Door, spoken: String, args: Value, caller: Caller) -> Call {
    Call {
        id: new_call_id(),
        spoken,
        args,
        dialect: door.shared().options.dialect,
        session: door.session(),
        caller,
        origin: Origin::Mcp,
        parents: Vec::new(),
        turn: None,
        autonomy: None,
        // Requests without a session are no sequence: one that waits for an answer holds up no other.
        independent: !door.is_apart(),
    }
}

/// Tells the client how far a call is, if it wants to know.
struct Telling(Option<Reporter>);

impl Telling {
    /// It listens from here on: to be made before there is anything to be heard.
    fn new(door: &Door, context: &RequestContext<RoleServer>, long_call: LongCall, call: &Call) -> Self {
        let log_from = door.log_threshold(context);
        let told = match context.meta.get_progress_token() {
            Some(token) => Some(Told::Progress(token)),
            None if door.logs(context, LoggingLevel::Info) => Some(Told::Log(call.spoken.clone())),
            None => (long_call == LongCall::Task || log_from.is_some()).then_some(Told::OnRequest),
        };
        let events = || door.shared().haft.events().listen();
        let front = door.shared().bridged.as_ref().and_then(BridgedServers::front_server);
        let reporter = |told| {
            let reporter = Reporter::new(context.peer.clone(), told, call.id.clone(), events());
            reporter.logging_from(log_from).in_front_of(front)
        };
        Self(told.map(reporter))
    }

    /// Tells of this call.
    fn is_about(&mut self, call: &CallId) {
        if let Some(reporter) = &mut self.0 {
            reporter.call = call.clone();
        }
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
pub(super) async fn heeding<T>(
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
