//! haft as an MCP server: the same path of a call for every client.
//!
//! [`Server`] is one tool layer as MCP clients see it. `haft mcp` serves one client over stdin and stdout; the gateway
//! mounts [`Server::http`] at `/mcp`. What a client may do is decided behind the door like any other call; the door
//! only translates.

mod approval_form;
mod approver;
mod batch;
mod bridged;
mod call;
mod call_task;
mod client_mode;
mod decision_place;
mod door;
mod flow;
mod http;
mod listing;
mod log_level;
mod news;
mod offer;
mod own;
mod pipes;
mod progress;
mod recent;
mod reply;
mod rounds;
mod skills;
#[cfg(test)]
mod tests;
mod unknown_method;
mod wire;

pub use self::http::NamedSession;
pub use decision_place::DecisionPlace;
pub use offer::Offer;
pub use rmcp::model;

use crate::client::Bridge;
use bridged::BridgedServers;
use call_task::CallTasks;
use door::Door;
use flow::Flow;
use haft_core::approval::{Decider, DeciderIdentity};
use haft_core::{Caller, Dialect, SessionId};
use haft_runtime::{Approver, Haft};
use listing::Listings;
use recent::Recent;
use rmcp::service::{QuitReason, serve_server_with_ct};
use rounds::Rounds;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::Wire;

/// After how long a running call usually becomes a task: well before the usual time limit of clients, a minute, but not
/// for every build, because a model goes on with other things while a task runs.
pub const TASK_AFTER: Duration = Duration::from_secs(30);

/// How clients are served.
#[derive(Debug, Clone)]
pub struct Options {
    /// The words in which tools are listed.
    pub dialect: Dialect,
    /// On whose behalf calls are made. Without an agent's name, the client's own name is taken.
    pub caller: Caller,
    /// The conversation that calls belong to. Over HTTP, a client that opens a session has one of its own.
    pub session: SessionId,
    /// What the names of those begin with.
    pub session_prefix: &'static str,
    /// About how many tokens the listed tools may cost; 0 lists all of them.
    pub budget_tokens: usize,
    /// How long a call waits for somebody to decide about it.
    pub patience: Duration,
    /// Whether questions are put to the person behind a client that can do so.
    pub elicitation: bool,
    /// Whose clients these are, from which it follows whether they are asked for a person's decision.
    pub holder: ClientHolder,
    /// Whether calls are carried to their end when the client has gone; otherwise they are cancelled.
    pub finish_when_gone: bool,
    /// After how long a running call becomes a task, for clients that know tasks. One that asks becomes a task at once.
    pub task_after: Duration,
    /// Where what waits is decided.
    pub decision_place: DecisionPlace,
}

/// Whose a client is: the identity behind what it answers to a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientHolder {
    /// The user's, who started the client. Over stdin and stdout the client is the user's own door.
    User,
    /// The owner's, over HTTP with the owner token.
    Owner,
    /// An agent's, over HTTP with the agents' token. It would answer a form for its own call.
    Agent,
    /// An agent's that started this very server, known by this sign.
    AgentProgram(String),
}

impl ClientHolder {
    /// Who answers behind a client of this name.
    fn decider(&self, client: Option<&str>) -> Decider {
        let client = client.map(str::to_owned);
        match self {
            Self::User => DeciderIdentity::LocalClient { client },
            Self::Owner => DeciderIdentity::OwnerClient { client },
            Self::Agent => DeciderIdentity::AgentClient { client },
            Self::AgentProgram(sign) => DeciderIdentity::AgentProgram { sign: sign.clone() },
        }
        .into()
    }
}

#[cfg(test)]
#[test]
fn only_the_users_clients_decide() {
    let sign = "process 1 above it is haft".to_owned();
    let holders = [ClientHolder::User, ClientHolder::Owner, ClientHolder::Agent, ClientHolder::AgentProgram(sign)];
    let may = |holder: &ClientHolder| holder.decider(Some("owner token")).may_decide();
    assert_eq!(holders.each_ref().map(may), [true, true, false, false]);
}

/// Why serving ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// stdin or stdout cannot be used.
    #[error("stdin and stdout cannot be used: {0}")]
    Stdio(std::io::Error),
    /// The server itself failed.
    #[error("the MCP server failed: {0}")]
    Failed(String),
}

/// What all connections share.
pub(crate) struct Shared {
    haft: Arc<Haft>,
    options: Options,
    offers: Vec<Arc<dyn Offer>>,
    /// The servers whose resources and prompts are offered, too.
    bridged: Option<BridgedServers>,
    approver: Option<Arc<dyn Approver>>,
    listings: Listings,
    rounds: Rounds,
    call_tasks: CallTasks,
    recent: Arc<Recent>,
}

/// A tool layer as MCP clients see it. Cheap to clone.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// Serves this tool layer.
    pub fn new(haft: Arc<Haft>, options: Options) -> Self {
        let recent = Arc::new(Recent::default());
        let own = own::Own::new(Arc::clone(&haft), Arc::clone(&recent));
        let shared = Shared {
            haft,
            options,
            offers: vec![Arc::new(own)],
            bridged: None,
            approver: None,
            listings: Listings::default(),
            rounds: Rounds::default(),
            call_tasks: CallTasks::default(),
            recent,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Offers more resources and prompts than haft's own.
    #[must_use]
    pub fn offering(self, offer: Arc<dyn Offer>) -> Self {
        self.with(|shared| shared.offers.push(offer))
    }

    /// Offers the resources and prompts of bridged servers. Their tools are in the registry.
    #[must_use]
    pub fn bridging(self, bridge: Arc<Bridge>) -> Self {
        self.with(|shared| shared.bridged = Some(BridgedServers::all(bridge, &shared.options.caller)))
    }

    /// Stands in front of one bridged server: a client sees its tools, resources and prompts alone, under its own names.
    #[must_use]
    pub fn fronting(self, bridge: Arc<Bridge>, server: &str) -> Self {
        self.with(|shared| shared.bridged = Some(BridgedServers::front(bridge, server, &shared.options.caller)))
    }

    /// Puts questions to somebody of the embedding program, not to the client. What a tool itself asks its caller
    /// still goes to the client.
    #[must_use]
    pub fn asking(self, approver: Arc<dyn Approver>) -> Self {
        self.with(|shared| shared.approver = Some(approver))
    }

    fn with(self, change: impl FnOnce(&mut Shared)) -> Self {
        let mut shared = Arc::try_unwrap(self.shared).unwrap_or_else(|shared| Shared {
            haft: Arc::clone(&shared.haft),
            options: shared.options.clone(),
            offers: shared.offers.clone(),
            bridged: shared.bridged.clone(),
            approver: shared.approver.clone(),
            listings: Listings::default(),
            rounds: Rounds::default(),
            call_tasks: CallTasks::default(),
            recent: Arc::clone(&shared.recent),
        });
        change(&mut shared);
        Self { shared: Arc::new(shared) }
    }

    /// Serves one client over stdin and stdout until it goes or `halt` is cancelled. Nothing else may use them.
    pub async fn serve_stdio(self, halt: CancellationToken) -> Result<(), ServeError> {
        let flow = Arc::new(Flow::default());
        let wire = Wire::stdio(Arc::clone(&flow), self.shared.options.finish_when_gone).map_err(ServeError::Stdio)?;
        let door = Door::stdio(Arc::clone(&self.shared), flow.gone.clone());
        let _ends = flow.gone.clone().drop_guard();
        let running = tokio::select! {
            running = serve_server_with_ct(door, wire, halt.child_token()) => running,
            () = halt.cancelled() => return Ok(()),
        };
        let running = match running {
            Ok(running) => running,
            // The client went before it said anything.
            Err(_) if flow.gone.is_cancelled() => return Ok(()),
            Err(error) => return Err(ServeError::Failed(error.to_string())),
        };
        flow.begin();
        let ended = flow.gone.clone();
        let cancelled = halt.clone();
        let quit = async move {
            tokio::pin! { let waiting = running.waiting(); }
            tokio::select! {
                quit = &mut waiting => quit,
                () = cancelled.cancelled() => {
                    // What is under way hears that nobody waits for it.
                    ended.cancel();
                    waiting.await
                }
            }
        };
        let quit = quit.await;
        flow.gone.cancel();
        // Calls that wait for an answer of the client's have no request that would be waited for.
        self.shared.rounds.end(self.shared.options.finish_when_gone).await;
        match quit {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Failed(error.to_string())),
            Ok(_) => Ok(()),
        }
    }

    /// The same over Streamable HTTP, to be mounted. Who may come is for the mounting program to decide, and so is which
    /// conversation a request names ([`NamedSession`]); requests for other hosts than these are refused.
    pub fn http(&self, allowed_hosts: Vec<String>, ct: CancellationToken) -> axum::Router {
        self::http::router(Arc::clone(&self.shared), allowed_hosts, ct)
    }
}

/// A fresh name for a conversation.
pub fn fresh_session() -> SessionId {
    session_with_prefix("")
}

/// A fresh name for a conversation, with something before it.
pub fn session_with_prefix(prefix: &str) -> SessionId {
    SessionId::new(&format!("{prefix}mcp-{}", haft_runtime::new_call_id())).unwrap_or_default()
}
