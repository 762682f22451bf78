//! Making one connection to a server.

use super::answer::{Answerer, Desk};
use super::call::{Abandoned, Connection};
use super::observed::ObservedTransport;
use super::wire::{Noticed, Wire};
use super::{Program, Reach, Server, courier, expanded, oauth, tamed};
use haft_core::preview::{cut, inert};
use haft_core::{CallError, ErrorKind};
use haft_runtime::Workspace;
use haft_runtime::confined::{Errand, Resident, Terms};
use haft_runtime::http::Carrier;
use http::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientCacheConfig, ClientInitializeError, RunningService, serve_client_with_lifecycle};
use rmcp::transport::AuthClient;
use rmcp::transport::auth::AuthorizationManager;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig};
use rmcp::{ClientLifecycleMode, RoleClient};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How long word of an end may take.
const WORD: Duration = Duration::from_millis(250);

/// What a connection is made from.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) workspace: Arc<Workspace>,
    pub(super) terms: Terms,
    /// Where tokens are kept.
    pub(super) oauth: PathBuf,
    /// Who carries what goes out.
    pub(super) carrier: Carrier,
}

/// A connection and what keeps it up.
pub(super) struct Standing {
    pub(super) connection: Arc<Connection>,
    pub(super) service: RunningService<RoleClient, Answerer>,
    pub(super) resident: Option<Resident>,
    pub(super) abandoned: mpsc::UnboundedReceiver<Abandoned>,
    pub(super) tasks: JoinSet<()>,
}

/// How the versions are found out: the newest first, then what has been usual. A server that cannot stand being asked
/// for the newest is asked again as it always was.
fn lifecycles() -> [ClientLifecycleMode; 2] {
    let newest = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    [newest, ClientLifecycleMode::Initialize]
}

/// Connects to a server.
pub(super) async fn connect(server: &Server, site: &Site) -> Result<Standing, CallError> {
    let root = server.is_program().then(|| format!("file://{}", site.workspace.root().display()));
    let desk = Arc::new(Desk::new(&server.name, root, server.sampling));
    let mut tasks = JoinSet::new();
    let (noticed, service, resident) = match &server.reach {
        Reach::Program(program) => {
            let (noticed, service, resident) = run(server, program, site, &desk, &mut tasks).await?;
            (noticed, service, Some(resident))
        }
        Reach::Url { url, headers, .. } => (Arc::default(), reach(server, (url, headers), site, &desk).await?, None),
    };
    service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
    let (abandoned, heard) = mpsc::unbounded_channel();
    let connection = Arc::new(Connection::new(server, service.peer().clone(), (desk, noticed), abandoned));
    Ok(Standing { connection, service, resident, abandoned: heard, tasks })
}

type Service = RunningService<RoleClient, Answerer>;

/// Starts a program and greets it.
async fn run(
    server: &Server,
    program: &Program,
    site: &Site,
    desk: &Arc<Desk>,
    tasks: &mut JoinSet<()>,
) -> Result<(Arc<Noticed>, Service, Resident), CallError> {
    let mut first = None;
    for lifecycle in lifecycles() {
        let noticed = Arc::new(Noticed::default());
        let (wire, resident) = spawn(program, site, &noticed, tasks).await?;
        let wire = ObservedTransport::new(wire, desk);
        let work = serve_client_with_lifecycle(Answerer(Arc::clone(desk)), wire, lifecycle);
        match tokio::time::timeout(server.timeout, work).await {
            Ok(Ok(service)) => return Ok((noticed, service, resident)),
            Ok(Err(error)) => {
                let why = broken(server, &noticed, resident, Some(&error)).await;
                first.get_or_insert(why);
            }
            Err(_) => return Err(broken(server, &noticed, resident, None).await),
        }
    }
    Err(first.unwrap_or_else(|| CallError::internal("no version was tried")))
}

/// Starts a program, confined.
async fn spawn(
    program: &Program,
    site: &Site,
    noticed: &Arc<Noticed>,
    tasks: &mut JoinSet<()>,
) -> Result<(Wire, Resident), CallError> {
    let mut env = Vec::new();
    for (name, value) in &program.env {
        env.push((name.into(), expanded(value)?.into()));
    }
    let terms = Terms {
        network: program.network.clone(),
        pass: program.pass.clone(),
        secrets: program.secrets.clone(),
        direct: true,
        ..site.terms.clone()
    };
    let errand = Errand {
        argv: program.argv.clone(),
        env,
        cwd: program.cwd.clone(),
        read: program.read.clone(),
        write: program.write.clone(),
    };
    let (resident, pipes) = Resident::start(terms, Arc::clone(&site.workspace), errand).await?;
    tasks.spawn(Arc::clone(noticed).listen(pipes.stderr));
    let wire = Wire::new(pipes.stdin, pipes.stdout, Arc::clone(noticed));
    let wire = wire.map_err(|error| CallError::internal(format!("the program's pipes cannot be used: {error}")))?;
    Ok((wire, resident))
}

/// Why a program did not become a server.
async fn broken(
    server: &Server,
    noticed: &Noticed,
    mut resident: Resident,
    error: Option<&ClientInitializeError>,
) -> CallError {
    // One that was given up ends because it was.
    let ended = match error {
        Some(_) => tokio::time::timeout(WORD, resident.ended()).await.ok(),
        None => None,
    };
    let seconds = server.timeout.as_secs_f64();
    let mut why = match (noticed.fatal(), ended, error) {
        (Some(fatal), _, _) => fatal,
        (None, Some(ended), _) => ended,
        (None, None, Some(error)) => format!("it does not speak MCP: {}", cut(&inert(&error.to_string()), 300)),
        (None, None, None) => format!("it did not answer `initialize` within {seconds} s"),
    };
    if let Some(complaint) = noticed.complaint() {
        why = format!("{why}; it says: {complaint}");
    }
    if let Some(garbage) = noticed.garbage() {
        why = format!("{why}; it printed {} lines that are no MCP, the last: {}", garbage.lines, garbage.last);
    }
    CallError::new(ErrorKind::Upstream, why)
}

/// Greets a server at an address.
async fn reach(
    server: &Server,
    (url, headers): (&str, &BTreeMap<String, String>),
    site: &Site,
    desk: &Arc<Desk>,
) -> Result<Service, CallError> {
    let config = config(url, headers)?;
    let client = courier::client(url, site.carrier)?;
    let mut first = None;
    for lifecycle in lifecycles() {
        let token = match config.auth_header {
            Some(_) => None,
            None => oauth::known(&site.oauth, (&server.name, url), site.carrier).await?,
        };
        let work = greet(desk, (client.clone(), token), config.clone(), lifecycle);
        match tokio::time::timeout(server.timeout, work).await {
            Ok(Ok(service)) => return Ok(service),
            Ok(Err(error)) if error.is_authorization_required() => return Err(unreached(server, &error)),
            Ok(Err(error)) => {
                first.get_or_insert(unreached(server, &error));
            }
            Err(_) => {
                let seconds = server.timeout.as_secs_f64();
                let message = format!("it did not answer `initialize` within {seconds} s");
                return Err(CallError::new(ErrorKind::Upstream, message));
            }
        }
    }
    Err(first.unwrap_or_else(|| CallError::internal("no version was tried")))
}

async fn greet(
    desk: &Arc<Desk>,
    (client, token): (haft_runtime::http::Client, Option<AuthorizationManager>),
    config: StreamableHttpClientTransportConfig,
    lifecycle: ClientLifecycleMode,
) -> Result<Service, ClientInitializeError> {
    let answerer = Answerer(Arc::clone(desk));
    if let Some(manager) = token {
        let transport = StreamableHttpClientTransport::with_client(AuthClient::new(client, manager), config);
        return serve_client_with_lifecycle(answerer, ObservedTransport::new(transport, desk), lifecycle).await;
    }
    let transport = StreamableHttpClientTransport::with_client(client, config);
    serve_client_with_lifecycle(answerer, ObservedTransport::new(transport, desk), lifecycle).await
}

/// The address and what is sent with every request.
fn config(url: &str, headers: &BTreeMap<String, String>) -> Result<StreamableHttpClientTransportConfig, CallError> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let bad = || CallError::invalid(format!("the header `{}` cannot be sent", inert(name)));
        let value = expanded(value)?;
        if let Some(token) = value.strip_prefix("Bearer ").filter(|_| name.eq_ignore_ascii_case("authorization")) {
            config = config.auth_header(token.trim());
            continue;
        }
        let name = HeaderName::try_from(name).map_err(|_| bad())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        custom.insert(name, value);
    }
    Ok(config.custom_headers(custom))
}

fn unreached(server: &Server, error: &ClientInitializeError) -> CallError {
    if error.is_authorization_required() {
        return unauthorized(&server.name, error.auth_challenge().unwrap_or_default());
    }
    let mut why = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        why = format!("{why}: {cause}");
        source = cause.source();
    }
    CallError::new(ErrorKind::Upstream, format!("it cannot be reached: {}", tamed(&inert(&why), 500)))
}

pub(super) fn unauthorized(server: &str, challenge: &str) -> CallError {
    CallError::new(ErrorKind::Upstream, "it wants to know who asks, or whether they may")
        .hint(format!("`haft mcp test {server}` signs in; or give a header with a token in the entry"))
        .details(serde_json::json!({ "challenge": challenge }))
}
