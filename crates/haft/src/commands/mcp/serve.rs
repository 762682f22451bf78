//! `haft mcp`: the tools for an MCP client, over stdin and stdout.

use crate::app::{App, Failure, Threads};
use crate::cli::{Common, McpArgs};
use crate::config::OnDisconnect;
use crate::started_by::call_sign;
use haft_core::{CallError, ErrorKind, SessionId, preview};
use haft_mcp::server::{ClientHolder, DecisionPlace, Options, Server, TASK_AFTER, fresh_session};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Serves one client until it goes.
pub(super) fn run(common: &Common, args: &McpArgs) -> Result<u8, Failure> {
    let app = App::open_to_serve(common, Threads::One)?;
    // Nobody who starts a client names a session; each connection is a conversation of its own.
    let session = if *app.session() == SessionId::default() { fresh_session() } else { app.session().clone() };
    let options = Options {
        dialect: app.dialect(args.dialect.as_deref())?,
        caller: app.caller.clone(),
        session: session.clone(),
        session_prefix: "",
        budget_tokens: app.doors.listing_budget(args.budget_tokens),
        patience: app.doors.mcp.patience,
        elicitation: app.doors.elicitation,
        holder: call_sign().map_or(ClientHolder::User, ClientHolder::AgentProgram),
        finish_when_gone: app.doors.mcp.on_disconnect == OnDisconnect::Finish,
        task_after: TASK_AFTER,
        decision_place: DecisionPlace::CommandLine(app.haft.settings().data_dir.clone()),
    };
    let mut server = Server::new(Arc::clone(&app.haft), options);
    server = match (args.front.as_deref(), app.bridge()) {
        (Some(name), bridge) => {
            let bridge = bridge.filter(|bridge| bridge.has(name)).ok_or_else(|| {
                CallError::new(ErrorKind::NotFound, format!("there is no MCP server `{}`", preview::inert(name)))
                    .hint("`haft mcp list` lists them; `haft mcp add` enters one")
            })?;
            // Whoever wants one server alone wants it now.
            app.block_on(bridge.start(name))?;
            server.fronting(Arc::clone(bridge), name)
        }
        (None, Some(bridge)) => server.bridging(Arc::clone(bridge)),
        (None, None) => server,
    };
    let ended = app.block_on(until_told(server));
    app.haft.end_session(&session);
    // What is still to be written is written before the process ends.
    app.block_on(app.haft.flush())?;
    ended.map(|()| 0)
}

/// Serves until the client goes, or somebody ends the process.
async fn until_told(server: Server) -> Result<(), Failure> {
    let halt = CancellationToken::new();
    let failed = |error: std::io::Error| CallError::internal(format!("signals cannot be heard: {error}"));
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt()).map_err(failed)?, signal(SignalKind::terminate()).map_err(failed)?);
    let serving = server.serve_stdio(halt.clone());
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        _ = interrupt.recv() => { halt.cancel(); serving.await }
        _ = terminate.recv() => { halt.cancel(); serving.await }
    };
    ended.map_err(|error| CallError::internal(error.to_string()).into())
}
