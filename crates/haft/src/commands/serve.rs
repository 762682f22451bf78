//! `haft serve`: the gateway.

mod veil;

use crate::app::{App, Failure, Ground, Threads};
use crate::cli::{Common, ServeArgs};
use crate::commands::doctor;
use crate::config::{self, OnDisconnect};
use crate::started_by::require_user;
use crate::style::{self, BOLD, CARE, FAINT, NAME, paint};
use haft_core::{CallError, SessionId, preview};
use haft_gateway::{AGENT_SESSIONS, McpServers, Options, ServeError, Tls, Token, WhenGone};
use haft_mcp::server::{self as mcp, ClientHolder, DecisionPlace, TASK_AFTER};
use haft_runtime::work::Until;
use haft_runtime::{Halt, Nobody, page_address};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use veil::veiled;

/// How many connections there may be at once, where the machine lets one process have so many.
const CONNECTIONS: u64 = 2048;
/// How many files are left for everything else.
const RESERVED: u64 = 256;
/// How many steps of pipelines it does at once.
const SLOTS: u32 = 8;
/// The file of the token that may do everything.
const TOKEN: &str = "gateway-token";
/// The file of the token that makes calls and decides nothing.
const AGENT_TOKEN: &str = "gateway-agent-token";
/// The largest certificate or key that is read.
const PEM_MAX: u64 = 1 << 20;

/// Serves until it is told to end.
pub(super) fn run(common: &Common, args: &ServeArgs) -> Result<u8, Failure> {
    if args.print_url {
        // The address holds the owner token.
        require_user()?;
    }
    let app = App::open_to_serve(common, Threads::Many)?;
    let tell = Telling { json: common.json(), print_url: args.print_url };
    let halt = CancellationToken::new();
    let mut options = options(&app, common, args, tell)?;
    options.mcp = Some(mcp(&app, &options, args, halt.clone())?);
    app.block_on(serve(&app, options, tell, halt))?;
    Ok(0)
}

/// The MCP servers: one for the owner's clients, one for those of agents. Who may come is decided by the gateway; the SDK
/// checks the host once more.
#[expect(clippy::needless_pass_by_value, reason = "a token is handed on, not lent")]
fn mcp(app: &App, options: &Options, args: &ServeArgs, halt: CancellationToken) -> Result<McpServers, Failure> {
    let local = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), options.listen.ip().to_string()];
    let hosts: Vec<String> = local.into_iter().chain(options.hosts.iter().cloned()).collect();
    let doors = &app.doors;
    let of_owner = mcp::Options {
        dialect: app.dialect(args.dialect.as_deref())?,
        caller: app.caller.clone(),
        // Clients that open no session of their own share this one: with each other, and with nobody else.
        session: mcp::session_with_prefix(""),
        session_prefix: "",
        budget_tokens: doors.budget_tokens,
        patience: doors.mcp.patience,
        elicitation: doors.elicitation,
        holder: ClientHolder::Owner,
        finish_when_gone: doors.mcp.on_disconnect == OnDisconnect::Finish,
        task_after: TASK_AFTER,
        // With its own address as soon as it listens.
        decision_place: DecisionPlace::CommandLine(app.haft.settings().data_dir.clone()),
    };
    let of_agents = mcp::Options {
        session: mcp::session_with_prefix(AGENT_SESSIONS),
        session_prefix: AGENT_SESSIONS,
        holder: ClientHolder::Agent,
        ..of_owner.clone()
    };
    let router = |own: mcp::Options| mcp_router(app, mcp::Server::new(Arc::clone(&app.haft), own), &hosts, &halt);
    Ok(McpServers { owner: router(of_owner), agents: router(of_agents) })
}

/// The routes of one MCP server: all tools, and below that each bridged server alone, under its own names.
fn mcp_router(app: &App, server: mcp::Server, hosts: &[String], halt: &CancellationToken) -> axum::Router {
    let service = |server: mcp::Server| server.http(hosts.to_vec(), halt.clone());
    let Some(bridge) = app.bridge() else { return service(server) };
    let mut router = axum::Router::new();
    for status in bridge.status() {
        let front = server.clone().fronting(Arc::clone(bridge), &status.name);
        router = router.nest_service(&format!("/{}", status.name), service(front));
    }
    router.fallback_service(service(server.bridging(Arc::clone(bridge))))
}

async fn serve(app: &App, mut options: Options, tell: Telling, halt: CancellationToken) -> Result<(), Failure> {
    let listener = haft_gateway::bind(options.listen).await.map_err(refused)?;
    options.listen = listener.local_addr().map_err(|error| CallError::internal(error.to_string()))?;
    let fail = |error: std::io::Error| CallError::internal(format!("signals cannot be heard: {error}"));
    // Whoever reads the address may say that it is enough.
    let mut signals = Signals::new().map_err(fail)?;
    // Without it the page is there all the same; only other processes do not name it.
    let _published = page_address::publish(&app.haft.settings().data_dir, &address(&options)).ok();
    tell.listening(&options, &app.haft.settings().data_dir);
    let (closing, insisted) = (tokio::sync::Notify::new(), tokio::sync::Notify::new());
    let heard = async {
        signals.next().await;
        tell.closing();
        closing.notify_one();
        halt.cancel();
        signals.next().await;
        insisted.notify_one();
        std::future::pending::<()>().await;
    };
    let served = haft_gateway::serve(Arc::clone(&app.haft), options, listener, closing.notified());
    let (worker, enough) = (app.haft.worker(SLOTS), Halt::new());
    // Who serves also works and looks after tasks, as long as it serves: what has begun comes to its end before this process does.
    let served = async {
        let tasks = app.haft.scheduler(&worker.root);
        let work = app.haft.work(&worker, &Until::Told, &Nobody, &enough);
        let served = async {
            let served = served.await;
            enough.cancel();
            served
        };
        let (done, (), served) = tokio::join!(work, tasks.run(&enough), served);
        if let Err(error) = done {
            style::warn(&format!("the worker ended: {}", error.message));
        }
        served
    };
    tokio::select! {
        served = served => served.map_err(refused)?,
        // Whoever says it twice does not want to wait. What runs is recorded as interrupted by the next start.
        () = insisted.notified() => {}
        () = heard => {}
    }
    app.haft.flush().await?;
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn refused(error: ServeError) -> Failure {
    CallError::invalid(error.to_string()).hint(error.hint()).into()
}

fn options(app: &App, common: &Common, args: &ServeArgs, tell: Telling) -> Result<Options, Failure> {
    let (doors, data_dir) = (&app.doors, &app.haft.settings().data_dir);
    let bad_token = |error: haft_gateway::TokenError| CallError::internal(error.to_string());
    Ok(Options {
        listen: args.listen.unwrap_or(doors.listen),
        token: Token::load_or_make(&data_dir.join(TOKEN)).map_err(bad_token)?,
        agent_token: Token::load_or_make(&data_dir.join(AGENT_TOKEN)).map_err(bad_token)?,
        hosts: doors.hosts.clone(),
        links: args.links || doors.links,
        patience: doors.gateway.patience,
        when_gone: match doors.gateway.on_disconnect {
            OnDisconnect::Cancel => WhenGone::Cancel,
            OnDisconnect::Finish => WhenGone::Finish,
        },
        tls: tls(args)?,
        connections: room(),
        caller: app.caller.clone(),
        session: session(app),
        dialect: app.dialect(None)?,
        config: in_force(app, common)?,
        confinement: doctor::confined(data_dir),
        servers: servers(app),
        waiting: Arc::new(move |id, shown| tell.waiting(id, shown)),
        mcp: None,
    })
}

/// The session of calls that name none. Unless one was named, it is a new one at every start, so that what was allowed
/// for a session does not outlive it, and is not for the command line, too.
fn session(app: &App) -> SessionId {
    let fresh = || SessionId::gateway_default(&haft_runtime::new_call_id());
    Some(app.session().clone()).filter(|named| *named != SessionId::default()).or_else(fresh).unwrap_or_default()
}

/// How the bridged servers are, whenever somebody asks.
fn servers(app: &App) -> Arc<dyn Fn() -> Value + Send + Sync> {
    match app.bridge().map(Arc::clone) {
        Some(bridge) => Arc::new(move || veiled(json!(bridge.status()))),
        None => Arc::new(|| json!([])),
    }
}

fn tls(args: &ServeArgs) -> Result<Option<Tls>, Failure> {
    let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    Ok(Some(Tls { cert: pem(cert)?, key: pem(key)? }))
}

fn pem(path: &Path) -> Result<Vec<u8>, CallError> {
    let fail = |why: String| CallError::invalid(format!("{}: {why}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| fail(error.to_string()))?.len();
    if size > PEM_MAX {
        return Err(fail("this is too large for a certificate or a key".to_owned()));
    }
    std::fs::read(path).map_err(|error| fail(error.to_string()))
}

/// How many connections there is room for, after asking the machine for as much as it gives.
fn room() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = CONNECTIONS * 2 + RESERVED;
    let wanted = maximum.map_or(wanted, |most| wanted.min(most));
    if current.is_some_and(|current| current < wanted) {
        // If it says no, fewer have to do.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let room = (files.saturating_sub(RESERVED) / 2).clamp(16, CONNECTIONS);
    usize::try_from(room).unwrap_or(16)
}

/// The configuration as the page shows it.
fn in_force(app: &App, common: &Common) -> Result<Value, Failure> {
    let shown = config::show(&Ground::find(common)?.resolve(app.store())?);
    let settings = shown["settings"].as_object().cloned().unwrap_or_default();
    let pick = |what: &str| settings.iter().map(|(key, entry)| (key.clone(), entry[what].clone())).collect();
    let (config, origins): (Map<_, _>, Map<_, _>) = (pick("value"), pick("from"));
    let (config, warnings) = (veiled(Value::Object(config)), veiled(shown["warnings"].clone()));
    Ok(json!({ "config": config, "origins": origins, "sources": shown["sources"], "warnings": warnings }))
}

/// The signals that end it.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// How people, and programs, are told what happens.
#[derive(Clone, Copy)]
struct Telling {
    json: bool,
    print_url: bool,
}

impl Telling {
    fn listening(self, options: &Options, data_dir: &Path) {
        let base = address(options);
        let url = format!("{base}#token={}", options.token.reveal());
        let remote = !options.listen.ip().is_loopback();
        if self.print_url {
            style::out(&url);
        }
        if self.json {
            // Logs are kept, and a token must not be.
            return self
                .log(&json!({ "event": "listening", "address": base, "remote": remote, "links": options.links }));
        }
        style::note(&format!("{} {}", paint(BOLD, "haft listens on"), paint(NAME, &base)));
        if !self.print_url {
            // What is not seen by somebody at a terminal is kept, and a token must not be.
            let open = if std::io::stderr().is_terminal() && require_user().is_ok() { url } else { base };
            style::note(&format!("open {}", paint(NAME, &open)));
            style::note(&format!("its token is in {}", data_dir.join(TOKEN).display()));
            let agents = data_dir.join(AGENT_TOKEN);
            style::note(&format!("agents call with the one in {}: it decides nothing", agents.display()));
        }
        if remote {
            let how =
                if options.tls.is_some() { "" } else { ", and what is said is not encrypted (--tls-cert, --tls-key)" };
            style::warn(&format!("other machines can reach it{how}"));
        }
        style::note(&paint(FAINT, "Ctrl-C ends it"));
    }

    fn waiting(self, id: &str, shown: &str) {
        if self.json {
            return self.log(&json!({ "event": "approval", "call_id": id, "preview": shown }));
        }
        // Whoever works in another window hears it.
        let bell = if std::io::stderr().is_terminal() { "\x07" } else { "" };
        let (id, shown) = (preview::inert(id), preview::inert(shown));
        style::note(&format!("{bell}{} {shown}  {}", paint(CARE, "waits:"), paint(FAINT, id)));
    }

    fn closing(self) {
        if self.json {
            return self.log(&json!({ "event": "closing" }));
        }
        style::note("closing; what runs gets 10 s to finish. Ctrl-C again ends it at once");
    }

    /// A line of the log: on stdout, unless that is for the address alone.
    fn log(self, line: &Value) {
        if self.print_url {
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        } else {
            style::json(line);
        }
    }
}

fn address(options: &Options) -> String {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{}/", opened(options.listen))
}

/// Nobody can open an address that means all of them.
fn opened(listen: SocketAddr) -> SocketAddr {
    match listen.ip() {
        IpAddr::V4(any) if any.is_unspecified() => (Ipv4Addr::LOCALHOST, listen.port()).into(),
        IpAddr::V6(any) if any.is_unspecified() => (Ipv6Addr::LOCALHOST, listen.port()).into(),
        _ => listen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_means_all_is_shown_as_one_that_opens() {
        let shown = |text: &str| opened(text.parse().unwrap());
        assert_eq!(shown("0.0.0.0:80").to_string(), "127.0.0.1:80");
        assert_eq!(shown("[::]:80").to_string(), "[::1]:80");
        assert_eq!(shown("10.0.0.1:80").to_string(), "10.0.0.1:80");
    }
}
