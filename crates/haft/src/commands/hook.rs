//! `haft hook CLIENT`: one event of a coding agent's hooks, decided or recorded, and answered in the agent's format.
//!
//! It fails closed: whatever goes wrong before a call is a denial, as an answer where the event is understood and as exit
//! status 2 (which every agent takes for "blocked") where it is not. After a call, nothing that goes wrong here disturbs
//! the agent.

mod answer;
mod event;
mod process;

use crate::app::{App, Failure};
use crate::cli::{AskTarget, Common, HookArgs, HookClientArg};
use crate::started_by::client_prompt;
use answer::HookAnswer;
use event::{CallEvent, HookEvent};
use haft_core::observed::{HookClient, own_tool_name};
use haft_core::{CallError, Caller, ErrorKind};
use haft_runtime::{AskVia, Halt, HookRuling, InboxWait, NativeToolCall, page_address};
use std::io::{IsTerminal, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

/// More is not read.
const INPUT_MAX: u64 = 64 << 20;
/// How long deciding may take besides waiting for a person.
const DECISION_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest wait for a person, whatever the configuration says: the answer must come before [`DEADLINE`].
const WAIT_MAX: Duration = Duration::from_mins(4);
/// When the hook answers at the latest. Agents run a call whose hook is late, and haft's hooks are installed with a time
/// limit of 300 seconds.
const DEADLINE: Duration = Duration::from_secs(280);
/// The exit status that every agent takes for "blocked".
const BLOCKED: u8 = 2;

/// What the hook tells the agent.
enum HookReply {
    /// A text in the agent's format.
    Answer(String),
    /// Nothing; the call has happened, and the agent goes on.
    Silence,
    /// The exit status that blocks a call, with the reason.
    Block(CallError),
}

/// Handles one event within the time limit. Whatever hangs (a locked store, a hung mount, a client that never ends its
/// input) must not become a call that runs unasked.
pub(super) fn run(common: &Common, args: &HookArgs) -> u8 {
    let (sender, receiver) = mpsc::channel();
    let deadline = args.deadline_ms.map_or(DEADLINE, Duration::from_millis);
    let (common, args) = (common.clone(), args.clone());
    std::thread::spawn(move || {
        // Nobody listens any more once the time is over.
        let _ = sender.send(reply(&common, &args));
    });
    let late = |_| {
        let error =
            CallError::new(ErrorKind::Timeout, format!("haft did not decide within {} ms", deadline.as_millis()));
        HookReply::Block(error.hint("a question about it may wait: see `haft approvals`"))
    };
    match receiver.recv_timeout(deadline).unwrap_or_else(late) {
        HookReply::Answer(text) => print_answer(&text),
        HookReply::Silence => 0,
        HookReply::Block(error) => blocked(&error),
    }
}

fn reply(common: &Common, args: &HookArgs) -> HookReply {
    let client = match args.client {
        HookClientArg::Claude => HookClient::ClaudeCode,
        HookClientArg::Codex => HookClient::Codex,
        HookClientArg::Gemini => HookClient::GeminiCli,
        HookClientArg::Cursor => HookClient::Cursor,
    };
    let event = match input().and_then(|text| event::read(client, &text)) {
        Ok(event) => event,
        // It may be a call that waits for an answer.
        Err(error) => return HookReply::Block(error),
    };
    let handled = catch_unwind(AssertUnwindSafe(|| handle(common, args, client, &event)));
    let handled = handled.unwrap_or_else(|_| Err(CallError::internal("haft panicked; this is a bug in haft").into()));
    match (event, handled) {
        (HookEvent::Before(_), Ok(answer)) => HookReply::Answer(answer::render(client, &answer)),
        (HookEvent::Before(_), Err(failure)) => {
            let mut error =
                CallError::new(ErrorKind::Internal, format!("haft could not decide: {}", failure.message()));
            error.hint = failure.hint().map(str::to_owned);
            HookReply::Answer(answer::render(client, &HookAnswer::Deny(answer::denial(&error))))
        }
        (_, Ok(_)) => HookReply::Silence,
        (_, Err(failure)) => {
            crate::style::warn(&format!("haft could not record it: {}", failure.message()));
            HookReply::Silence
        }
    }
}

fn input() -> Result<String, CallError> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(CallError::invalid(
            "`haft hook` reads a hook event from standard input, but standard input is a terminal",
        )
        .hint("see docs/client-hooks.md for the agent's hook settings"));
    }
    let mut text = String::new();
    let read = stdin.lock().take(INPUT_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| CallError::invalid(format!("the hook event cannot be read: {error}")))?;
    if u64::try_from(text.len()).is_ok_and(|length| length > INPUT_MAX) {
        return Err(CallError::invalid(format!("the hook event is larger than {} MiB", INPUT_MAX >> 20)));
    }
    Ok(text)
}

/// Blocks a call whose event is not understood.
fn blocked(error: &CallError) -> u8 {
    let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "haft: {}{hint}", error.message);
    BLOCKED
}

fn print_answer(text: &str) -> u8 {
    let mut out = std::io::stdout();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => 0,
        Err(error) => blocked(&CallError::internal(format!("haft's answer cannot be written: {error}"))),
    }
}

fn handle(common: &Common, args: &HookArgs, client: HookClient, event: &HookEvent) -> Result<HookAnswer, Failure> {
    let project = match event {
        HookEvent::Before(call) => &call.project,
        HookEvent::After { project, .. } | HookEvent::End { project, .. } => project,
        HookEvent::Other => return Ok(HookAnswer::Nothing),
    };
    if let Some(dir) = project.as_ref().filter(|_| common.root.is_none()) {
        let fail = |error| CallError::invalid(format!("the agent's project {} cannot be used: {error}", dir.display()));
        std::env::set_current_dir(dir).map_err(fail)?;
    }
    let mut app = App::open_for_event(common)?;
    let tool = match event {
        HookEvent::Before(call) => Some((&call.tool, call.target.as_ref())),
        HookEvent::After { report, .. } => Some((&report.tool, report.target.as_ref())),
        HookEvent::End { .. } | HookEvent::Other => None,
    };
    let may_be_own = |(tool, target): (&String, _)| {
        own_tool_name(client, tool, target).is_some() && !app.haft.serves(client, tool, target)
    };
    if tool.is_some_and(may_be_own) {
        // The tool may be a bridged one or a manifest, which are not loaded yet.
        app.load_served_tools();
    }
    let done = match event {
        HookEvent::Before(call) => return before(&app, args, client, call),
        HookEvent::After { report, .. } => app.block_on(app.haft.report(report)),
        HookEvent::End { session, ids, .. } => {
            app.block_on(app.haft.settle_unreported(client, session, ids.as_deref()))
        }
        HookEvent::Other => Ok(()),
    };
    app.block_on(app.haft.flush())?;
    done.map(|()| HookAnswer::Nothing).map_err(Into::into)
}

fn before(app: &App, args: &HookArgs, client: HookClient, call: &CallEvent) -> Result<HookAnswer, Failure> {
    let agent = process::agent().ok_or_else(|| CallError::internal("the agent's process cannot be found in /proc"))?;
    let mut caller = app.caller.clone();
    if caller.agent.is_none() {
        caller = Caller { agent: Some(client.agent().to_owned()), claimed: true, ..caller };
    }
    let native = NativeToolCall {
        client,
        session: call.session.clone(),
        use_id: call.use_id.clone(),
        cwd: call.cwd.clone(),
        tool: call.tool.clone(),
        target: call.target.clone(),
        input: call.input.clone(),
        caller,
        agent,
    };
    let patience = args.wait_ms.map_or(app.doors.mcp.patience, Duration::from_millis).min(WAIT_MAX);
    let page = page_address::find(&app.haft.settings().data_dir);
    let prompt = client_prompt(client);
    let via = match args.ask {
        AskTarget::Auto if event::can_ask(client, call) && prompt.may_decide() => AskVia::Client(prompt),
        AskTarget::Auto | AskTarget::Inbox => AskVia::Inbox(InboxWait { patience, page: page.as_deref() }),
    };
    let ruling = app.block_on(async {
        let decided =
            tokio::time::timeout(patience + DECISION_TIMEOUT, app.haft.observe(&native, via, &Halt::new())).await;
        let late = |_| HookRuling::Denied(CallError::new(ErrorKind::Timeout, "haft took too long to decide"));
        let ruling = decided.unwrap_or_else(late);
        app.haft.flush().await.map(|()| ruling)
    })?;
    Ok(match ruling {
        HookRuling::NoOpinion(_) => HookAnswer::Nothing,
        HookRuling::Allowed(verdict) => HookAnswer::Allow(answer::reason(&verdict)),
        HookRuling::Ask(verdict) => HookAnswer::Ask(answer::reason(&verdict)),
        HookRuling::Denied(error) => HookAnswer::Deny(answer::denial(&error)),
    })
}
