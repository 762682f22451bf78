//! Calling over a connection.

use super::answer::Desk;
use super::connect::unauthorized;
use super::wire::Noticed;
use super::{Server, oauth};
use haft_core::preview::{cut, inert};
use haft_core::record::Digest;
use haft_core::{CallError, ErrorKind};
use haft_runtime::Scene;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock, InputRequiredResult,
    InputResponses, RequestId, ServerResult,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient, ServiceError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often a server may ask for more before it gives a result.
const ROUNDS_MAX: usize = 10;
/// How often a call looks whether its time is up.
const LOOK: Duration = Duration::from_millis(250);

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
    pub(super) fn new(
        server: &Server,
        peer: Peer<RoleClient>,
        (desk, noticed): (Arc<Desk>, Arc<Noticed>),
        abandoned: mpsc::UnboundedSender<RequestId>,
    ) -> Self {
        let (name, timeout) = (server.name.clone(), server.timeout);
        Self { server: name, timeout, peer, desk, noticed, declared: Mutex::default(), abandoned }
    }

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
                    params.input_responses = self.fulfil(more, scene).await?;
                }
                // Nothing known in it: an empty result.
                ServerResult::CustomResult(result) => {
                    let text = result.0.to_string();
                    return Ok(CallToolResult::success(vec![ContentBlock::text(text)]));
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

    async fn fulfil(&self, more: InputRequiredResult, scene: &Scene) -> Result<Option<InputResponses>, Broken> {
        let Some(requests) = more.input_requests.filter(|requests| !requests.is_empty()) else {
            // It only wants time.
            tokio::time::sleep(LOOK).await;
            return Ok(None);
        };
        let mut answers = InputResponses::new();
        for (key, request) in requests {
            let answer = self.desk.fulfil(scene, request).await;
            let answer = answer.map_err(|error| Broken::Because(CallError::failed(inert(&error.message))))?;
            answers.insert(key, answer);
        }
        Ok(Some(answers))
    }

    /// Why the server does not list its tools. One that took a token when it was greeted may want another by now.
    pub(super) fn unlisted(&self, error: &ServiceError) -> CallError {
        if let ServiceError::TransportSend(error) = error
            && let Some(challenge) = oauth::challenge(error.error.as_ref())
        {
            return unauthorized(&self.server, &challenge);
        }
        let said = cut(&inert(&error.to_string()), 300);
        CallError::new(ErrorKind::Upstream, format!("it does not list its tools: {said}"))
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
                if let Some(challenge) = oauth::challenge(error.error.as_ref()) {
                    let mut error = unauthorized(&self.server, &challenge);
                    error.message = format!("the MCP server `{}`: {}", self.server, error.message);
                    return Broken::Because(error);
                }
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
