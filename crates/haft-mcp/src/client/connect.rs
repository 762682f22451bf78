//! Making one connection to a server, and calling over it.

use super::answer::{Answerer, Desk};
use super::wire::{Noticed, Wire};
use super::{Program, Reach, Server, expanded, oauth, tamed};
use haft_core::preview::{cut, inert};
use haft_core::record::Digest;
use haft_core::{CallError, ErrorKind};
use haft_runtime::confined::{Errand, Resident, Terms};
use haft_runtime::{Scene, Workspace};
use http::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputRequiredResult, ProtocolVersion,
    RequestId, ServerResult,
};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, PeerRequestOptions, RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig};
use rmcp::{ClientLifecycleMode, Peer, RoleClient, ServiceError};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How often a server may ask for more before it gives a result.
const ROUNDS_MAX: usize = 10;
/// How often a call looks whether its time is up.
const LOOK: Duration = Duration::from_millis(250);

/// What a connection is made from.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) workspace: Arc<Workspace>,
    pub(super) terms: Terms,
    /// Where tokens are kept.
    pub(super) oauth: PathBuf,
}

/// A connection that calls go over.
#[derive(Debug)]
pub(super) struct Connection {
    server: String,
    timeout: Duration,
    pub(super) peer: Peer<RoleClient>,
    pub(super) desk: Arc<Desk>,
    pub(super) noticed: Arc<Noticed>,
    /// What the server says of its tools now.
    declared: Mutex<HashMap<String, Digest>>,
    /// Requests that nobody waits for any more.
    abandoned: mpsc::UnboundedSender<RequestId>,
}

/// A connection and what keeps it up.
pub(super) struct Standing {
    pub(super) connection: Arc<Connection>,
    pub(super) service: RunningService<RoleClient, Answerer>,
    pub(super) resident: Option<Resident>,
    pub(super) abandoned: mpsc::UnboundedReceiver<RequestId>,
    pub(super) tasks: JoinSet<()>,
}

/// How the versions are found out: the newest first, then what has been usual.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

/// Connects to a server.
pub(super) async fn connect(server: &Server, site: &Site) -> Result<Standing, CallError> {
    let noticed = Arc::new(Noticed::default());
    let root = server.is_program().then(|| format!("file://{}", site.workspace.root().display()));
    let desk = Arc::new(Desk::new(&server.name, root));
    let mut tasks = JoinSet::new();
    let (service, resident) = match &server.reach {
        Reach::Program(program) => {
            let (wire, resident) = spawn(program, site, &noticed, &mut tasks).await?;
            let work = serve_client_with_lifecycle(Answerer(Arc::clone(&desk)), wire, lifecycle());
            match tokio::time::timeout(server.timeout, work).await {
                Ok(Ok(service)) => (service, Some(resident)),
                Ok(Err(error)) => return Err(broken(server, &noticed, resident, Some(&error)).await),
                Err(_) => return Err(broken(server, &noticed, resident, None).await),
            }
        }
        Reach::Url { url, headers } => (reach(server, (url, headers), site, &desk).await?, None),
    };
    service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
    let (abandoned, heard) = mpsc::unbounded_channel();
    let connection = Arc::new(Connection {
        server: server.name.clone(),
        timeout: server.timeout,
        peer: service.peer().clone(),
        desk,
        noticed,
        declared: Mutex::default(),
        abandoned,
    });
    Ok(Standing { connection, service, resident, abandoned: heard, tasks })
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
    let ended = tokio::time::timeout(LOOK, resident.ended()).await.ok();
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

async fn reach(
    server: &Server,
    (url, headers): (&str, &std::collections::BTreeMap<String, String>),
    site: &Site,
    desk: &Arc<Desk>,
) -> Result<RunningService<RoleClient, Answerer>, CallError> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let bad = || CallError::invalid(format!("the header `{}` cannot be sent", inert(name)));
        let value = expanded(value)?;
        match value.strip_prefix("Bearer ").filter(|_| name.eq_ignore_ascii_case("authorization")) {
            Some(token) => config = config.auth_header(token.trim()),
            None => {
                let name = HeaderName::try_from(name).map_err(|_| bad())?;
                let mut value = HeaderValue::try_from(value).map_err(|_| bad())?;
                value.set_sensitive(true);
                custom.insert(name, value);
            }
        }
    }
    config = config.custom_headers(custom);
    let client = haft_runtime::http::client()?;
    let answerer = Answerer(Arc::clone(desk));
    let token = if config.auth_header.is_none() { oauth::known(&site.oauth, &server.name, url).await? } else { None };
    let work = async {
        match token {
            Some(manager) => {
                let client = rmcp::transport::AuthClient::new(client, manager);
                let transport = StreamableHttpClientTransport::with_client(client, config);
                serve_client_with_lifecycle(answerer, transport, lifecycle()).await
            }
            None => {
                let transport = StreamableHttpClientTransport::with_client(client, config);
                serve_client_with_lifecycle(answerer, transport, lifecycle()).await
            }
        }
    };
    match tokio::time::timeout(server.timeout, work).await {
        Ok(Ok(service)) => Ok(service),
        Ok(Err(error)) => Err(unreached(server, &error)),
        Err(_) => {
            let seconds = server.timeout.as_secs_f64();
            Err(CallError::new(ErrorKind::Upstream, format!("it did not answer `initialize` within {seconds} s")))
        }
    }
}

fn unreached(server: &Server, error: &ClientInitializeError) -> CallError {
    if error.is_authorization_required() {
        let challenge = error.auth_challenge().unwrap_or_default().to_owned();
        let failure = CallError::new(ErrorKind::Upstream, "it wants to know who asks (401)");
        return failure
            .hint(format!("`haft mcp test {}` signs in; or give a header with a token in the entry", server.name))
            .details(serde_json::json!({ "challenge": challenge }));
    }
    let mut why = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        why = format!("{why}: {cause}");
        source = cause.source();
    }
    CallError::new(ErrorKind::Upstream, format!("it cannot be reached: {}", tamed(&inert(&why), 500)))
}

/// A request on its way. Dropped before the answer came, the server is told.
struct Pending<'c> {
    connection: &'c Connection,
    id: Option<RequestId>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            // Nobody hears it once the connection is gone, and then nobody has to.
            let _ = self.connection.abandoned.send(id);
        }
    }
}

/// How a call over a connection failed.
pub(super) enum Broken {
    /// The connection is gone.
    Gone,
    /// Something else.
    Because(CallError),
}

impl Connection {
    /// Notes what the server says of its tools now.
    pub(super) fn declare(&self, declared: HashMap<String, Digest>) {
        *self.declared.lock().unwrap_or_else(PoisonError::into_inner) = declared;
    }

    /// What the server says of a tool now.
    pub(super) fn declared(&self, tool: &str) -> Option<Digest> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner).get(tool).copied()
    }

    /// Calls a tool.
    pub(super) async fn call(&self, tool: &str, scene: &Scene) -> Result<CallToolResult, Broken> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = scene.args().as_object().cloned();
        let _served = self.desk.serve(scene);
        for _ in 0..ROUNDS_MAX {
            match self.request(params.clone(), scene).await? {
                ServerResult::CallToolResult(result) => return Ok(result),
                ServerResult::InputRequiredResult(more) => {
                    params.request_state.clone_from(&more.request_state);
                    params.input_responses = self.fulfil(more).await?;
                }
                // Nothing known in it: an empty result.
                ServerResult::CustomResult(result) => {
                    let text = result.0.to_string();
                    return Ok(CallToolResult::success(vec![rmcp::model::ContentBlock::text(text)]));
                }
                ServerResult::EmptyResult(_) => return Ok(CallToolResult::success(Vec::new())),
                _ => return Err(Broken::Because(self.upstream("answered with something that is no tool's result"))),
            }
        }
        Err(Broken::Because(self.upstream(&format!("asked for more {ROUNDS_MAX} times and gave no result"))))
    }

    async fn request(&self, params: CallToolRequestParams, scene: &Scene) -> Result<ServerResult, Broken> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let handle = match tokio::time::timeout(self.timeout, sent).await {
            Ok(handle) => handle.map_err(|error| self.explain(error))?,
            Err(_) => return Err(Broken::Because(self.late())),
        };
        let _tracked = self.desk.track(handle.progress_token.clone(), scene);
        let mut pending = Pending { connection: self, id: Some(handle.id.clone()) };
        let answer = handle.await_response();
        tokio::pin!(answer);
        let (mut left, mut heard) = (self.timeout, self.desk.heard());
        loop {
            let slice = LOOK.min(left);
            tokio::select! {
                answer = &mut answer => {
                    pending.id = None;
                    return answer.map_err(|error| self.explain(error));
                }
                () = tokio::time::sleep(slice) => {
                    // Whoever reports how far it is, or waits for a person, is not late.
                    let now = self.desk.heard();
                    if now != heard || self.desk.is_asking() {
                        (heard, left) = (now, self.timeout);
                    } else {
                        left = left.saturating_sub(slice);
                    }
                    if left.is_zero() {
                        return Err(Broken::Because(self.late()));
                    }
                }
            }
        }
    }

    async fn fulfil(
        &self,
        more: InputRequiredResult,
    ) -> Result<Option<std::collections::BTreeMap<String, Value>>, Broken> {
        let Some(requests) = more.input_requests.filter(|requests| !requests.is_empty()) else {
            // It only wants time.
            tokio::time::sleep(LOOK).await;
            return Ok(None);
        };
        let mut answers = std::collections::BTreeMap::new();
        for (key, request) in requests {
            let answer = self.desk.fulfil(request).await;
            let answer = answer.map_err(|error| Broken::Because(CallError::failed(inert(&error.message))))?;
            answers.insert(key, answer);
        }
        Ok(Some(answers))
    }

    fn explain(&self, error: ServiceError) -> Broken {
        match error {
            ServiceError::McpError(error) => {
                let said = cut(&inert(&error.message), 500);
                let message = format!("the MCP server `{}` refused the call: {said} ({})", self.server, error.code.0);
                Broken::Because(CallError::failed(message))
            }
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => Broken::Gone,
            ServiceError::TransportSend(error) => {
                let said = cut(&inert(&error.to_string()), 500);
                if self.peer.is_transport_closed() {
                    return Broken::Gone;
                }
                Broken::Because(self.upstream(&format!("could not be reached: {said}")))
            }
            error => {
                Broken::Because(self.upstream(&format!("gave no result: {}", cut(&inert(&error.to_string()), 300))))
            }
        }
    }

    fn upstream(&self, what: &str) -> CallError {
        CallError::new(ErrorKind::Upstream, format!("the MCP server `{}` {what}", self.server))
    }

    fn late(&self) -> CallError {
        let seconds = self.timeout.as_secs_f64();
        let message = format!("the MCP server `{}` did not answer within {seconds} s", self.server);
        CallError::new(ErrorKind::Timeout, message).hint("give it more time with `timeout_ms` in its entry")
    }
}
