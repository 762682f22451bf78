//! Streamable HTTP: to which conversation a request belongs, and where older clients and the SDK differ.
//!
//! The transport itself is the SDK's. Three things are decided here:
//!
//! - **The conversation.** A client that opens a session has a conversation of its own, unless whoever let the request
//!   in says which one it means ([`NamedSession`]). Requests without a session share one.
//! - **Priming events.** The empty event at the beginning of a stream, by which a client can resume it, exists since
//!   2025-11-25. Older clients take it for a malformed message, so that they get none.
//! - **The end of a session.** `DELETE` is answered with 204. The SDK answers 202, which clients report as a failure.

use super::Shared;
use super::door::Door;
use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _};
use haft_core::SessionId;
use http::{Method, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage, ServerResult};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId as TransportSessionId};
use rmcp::transport::streamable_http_server::{SessionManager, StreamableHttpServerConfig, StreamableHttpService};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A session over HTTP ends when its client has been silent for so long: people think, but clients forget to say goodbye.
const IDLE_MAX: Duration = Duration::from_mins(30);
/// An HTTP request's body may be this large.
const BODY_MAX: usize = 16 << 20;
/// How long a client is told to wait before it resumes a stream.
const RECONNECT_AFTER: Duration = Duration::from_secs(3);
/// The first event of a stream that belongs to no request.
const FIRST_EVENT: &str = "0";

/// The conversation that a request belongs to, as an extension of the request. Only the program that authenticates
/// requests may set it, because a name leads into what was allowed for that conversation.
#[derive(Debug, Clone)]
pub struct NamedSession(pub SessionId);

/// The routes of a server over Streamable HTTP.
pub(super) fn router(shared: Arc<Shared>, allowed_hosts: Vec<String>, halt: CancellationToken) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(allowed_hosts)
        .with_max_request_body_bytes(BODY_MAX)
        // `ClientSessions` primes streams, because it knows which clients understand it.
        .with_sse_retry(None)
        .with_cancellation_token(halt);
    let endpoint = Endpoint { shared, sessions: Arc::default(), config };
    Router::new().fallback(move |request: Request| {
        let endpoint = endpoint.clone();
        async move { endpoint.answer(request).await }
    })
}

/// What answers requests.
#[derive(Clone)]
struct Endpoint {
    shared: Arc<Shared>,
    sessions: Arc<ClientSessions>,
    config: StreamableHttpServerConfig,
}

impl Endpoint {
    async fn answer(&self, request: Request) -> Response {
        let named = request.extensions().get::<NamedSession>().map(|NamedSession(session)| session.clone());
        let ends_session = request.method() == Method::DELETE;
        let mut response = self.service(named).handle(request).await.into_response();
        if ends_session && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        response
    }

    /// The SDK's service for one request: what it makes for a connection depends on the request's conversation.
    fn service(&self, named: Option<SessionId>) -> StreamableHttpService<Door, ClientSessions> {
        let (shared, halt) = (Arc::clone(&self.shared), self.config.cancellation_token.clone());
        let make = move || Ok(Door::http(Arc::clone(&shared), halt.child_token(), named.clone()));
        StreamableHttpService::new(make, Arc::clone(&self.sessions), self.config.clone())
    }
}

/// The sessions that clients have opened.
struct ClientSessions {
    local: LocalSessionManager,
    /// The sessions whose clients understand priming events.
    primed: Mutex<HashSet<TransportSessionId>>,
}

impl Default for ClientSessions {
    fn default() -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(IDLE_MAX);
        local.session_config.sse_retry = Some(RECONNECT_AFTER);
        Self { local, primed: Mutex::default() }
    }
}

impl ClientSessions {
    fn primed(&self) -> MutexGuard<'_, HashSet<TransportSessionId>> {
        self.primed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_primed(&self, id: &TransportSessionId) -> bool {
        self.primed().contains(id)
    }
}

/// Whether the client that gets this answer to `initialize` understands priming events.
fn understands_priming(answer: &ServerJsonRpcMessage) -> bool {
    let ServerJsonRpcMessage::Response(response) = answer else { return false };
    let ServerResult::InitializeResult(agreed) = &response.result else { return false };
    agreed.protocol_version.as_str() >= ProtocolVersion::V_2025_11_25.as_str()
}

/// A stream as a client understands it: without priming events, unless they mean something to it.
fn understood(
    stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    is_primed: bool,
) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
    stream.filter(move |event| std::future::ready(is_primed || event.message.is_some()))
}

impl SessionManager for ClientSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(TransportSessionId, Self::Transport), Self::Error> {
        self.local.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &TransportSessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let answer = self.local.initialize_session(id, message).await?;
        if understands_priming(&answer) {
            self.primed().insert(Arc::clone(id));
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &TransportSessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &TransportSessionId) -> Result<(), Self::Error> {
        self.primed().remove(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &TransportSessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let is_primed = self.is_primed(id);
        Ok(understood(self.local.create_stream(id, message).await?, is_primed))
    }

    async fn accept_message(&self, id: &TransportSessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &TransportSessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let first = ServerSseMessage::priming(FIRST_EVENT, RECONNECT_AFTER);
        let stream = futures_util::stream::iter([first]).chain(self.local.create_standalone_stream(id).await?);
        Ok(understood(stream, self.is_primed(id)))
    }

    async fn resume(
        &self,
        id: &TransportSessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let is_primed = self.is_primed(id);
        Ok(understood(self.local.resume(id, last_event_id).await?, is_primed))
    }
}
