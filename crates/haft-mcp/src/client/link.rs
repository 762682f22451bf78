//! One server and its task: started when it is wanted, followed while it runs, started again when it has crashed.

use super::call::Connection;
use super::catalogue::{Catalogue, OfferNews, ServerNews};
use super::connect::{Site, connect};
use super::declared::Declared;
use super::follow::follow;
use super::status::{State, Status};
use super::tool::Bridged;
use super::{Server, Start};
use haft_core::{CallError, ErrorKind};
use haft_runtime::Haft;
use haft_store::Store;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::sync::CancellationToken;

/// How long a server that failed is left alone at first.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// And at most.
const PAUSE_MOST: Duration = Duration::from_secs(30);
/// A server that stood so long is a sound one again.
const SOUND: Duration = Duration::from_mins(1);

/// Shows the user a line.
pub(super) type Warn = fn(&str);

/// Where a server stands.
#[derive(Clone)]
pub(super) enum Phase {
    Idle,
    Starting,
    Ready(Arc<Connection>),
    Waiting { until: Instant, error: CallError },
    Failed(CallError),
    Closed,
}

/// What is known of what a server offers.
#[derive(Default)]
pub(super) struct Memory {
    /// What was accepted, by the tools' names there.
    pub(super) accepted: BTreeMap<String, Declared>,
    /// What is offered, by the tools' names here.
    pub(super) offered: BTreeMap<String, Arc<Bridged>>,
    /// Its resources and prompts, as it listed them last.
    pub(super) catalogue: Catalogue,
    /// The resources that clients watch, and how many do.
    pub(super) watched: BTreeMap<String, usize>,
    pub(super) refused: Vec<String>,
    pub(super) error: Option<String>,
}

impl Memory {
    /// The resources to watch: those that the server lists, or has a template for.
    pub(super) fn watched_resources(&self) -> Vec<String> {
        self.watched.keys().filter(|uri| self.catalogue.has_resource(uri)).cloned().collect()
    }
}

/// One server.
pub(super) struct Link {
    pub(super) server: Server,
    pub(super) haft: Weak<Haft>,
    pub(super) store: Store,
    site: Site,
    phase: watch::Sender<Phase>,
    wanted: Notify,
    /// Somebody has mended what was wrong.
    hurry: Notify,
    /// Somebody wants it to be started again.
    pub(super) again: Notify,
    memory: Mutex<Memory>,
    /// What changes in its resources and prompts.
    news: broadcast::Sender<ServerNews>,
    /// Tells the user what providers cannot take of tools that the server lists.
    pub(super) warn: Warn,
    /// The resources that clients watch have changed.
    pub(super) rewatch: Notify,
}

impl Link {
    pub(super) fn new(
        server: Server,
        haft: &Arc<Haft>,
        site: Site,
        news: broadcast::Sender<ServerNews>,
        warn: Warn,
    ) -> Self {
        Self {
            server,
            haft: Arc::downgrade(haft),
            store: haft.store().clone(),
            site,
            phase: watch::Sender::new(Phase::Idle),
            wanted: Notify::new(),
            hurry: Notify::new(),
            again: Notify::new(),
            memory: Mutex::default(),
            news,
            warn,
            rewatch: Notify::new(),
        }
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Memory) -> T) -> T {
        look(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells whoever listens what changed in what the server offers.
    pub(super) fn tell(&self, news: OfferNews) {
        // Often nobody listens.
        let _ = self.news.send(ServerNews { server: self.server.name.clone(), news });
    }

    /// The connection, if there is one now.
    pub(super) fn standing(&self) -> Option<Arc<Connection>> {
        match &*self.phase.borrow() {
            Phase::Ready(connection) => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    pub(super) fn set(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Keeps the server as it should be until nobody wants it any more.
    pub(super) async fn supervise(self: Arc<Self>, mut at_once: bool, stop: CancellationToken) {
        let mut pause = PAUSE_FIRST;
        loop {
            if !at_once {
                tokio::select! {
                    () = self.wanted.notified() => {}
                    () = stop.cancelled() => break,
                }
            }
            self.set(Phase::Starting);
            let begun = Instant::now();
            let (error, has_stood) = match Box::pin(connect(&self.server, &self.site)).await_or(&stop).await {
                None => break,
                Some(Err(error)) => (error, false),
                Some(Ok(standing)) => match follow(&self, standing, &stop).await {
                    None => break,
                    Some(ended) => ended,
                },
            };
            if begun.elapsed() >= SOUND {
                pause = PAUSE_FIRST;
            }
            self.with(|memory| memory.error = Some(error.message.clone()));
            self.set(Phase::Waiting { until: Instant::now() + pause, error: error.clone() });
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.hurry.notified() => {}
                () = stop.cancelled() => break,
            }
            pause = (pause * 2).min(PAUSE_MOST);
            // What never stood is tried again when somebody wants it, unless it should always be there.
            at_once = has_stood || self.server.start == Start::Eager;
            if !at_once {
                self.set(Phase::Failed(error));
            }
        }
        self.set(Phase::Closed);
    }

    /// Ends the pause after a failure.
    pub(super) fn retry(&self) {
        self.hurry.notify_one();
    }

    /// Ends the connection, if there is one, and waits until it is gone.
    pub(super) async fn end(&self) {
        let mut phases = self.phase.subscribe();
        let ready = matches!(&*phases.borrow_and_update(), Phase::Ready(_));
        if ready {
            self.again.notify_one();
            let _ = phases.wait_for(|phase| !matches!(phase, Phase::Ready(_))).await;
        }
    }

    /// Waits until a pause after a failure is over.
    pub(super) async fn settled(&self) {
        // The sender is part of this.
        let _ = self.phase.subscribe().wait_for(|phase| !matches!(phase, Phase::Waiting { .. })).await;
    }

    /// The connection, once there is one; starts the server if it has to.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, CallError> {
        let mut phases = self.phase.subscribe();
        let mut asked = false;
        loop {
            let phase = phases.borrow_and_update().clone();
            match phase {
                Phase::Ready(connection) => return Ok(connection),
                Phase::Waiting { until, error } => return Err(self.waiting(until, &error)),
                Phase::Failed(error) if asked => return Err(self.down(&error, "")),
                Phase::Closed => return Err(self.closed()),
                Phase::Starting => asked = true,
                Phase::Idle | Phase::Failed(_) => {
                    asked = true;
                    self.wanted.notify_one();
                }
            }
            if phases.changed().await.is_err() {
                return Err(self.closed());
            }
        }
    }

    /// Why a connection that calls went over is gone. Its end may be known a moment later than it is felt.
    pub(super) async fn why_gone(&self, connection: &Arc<Connection>) -> CallError {
        let mut phases = self.phase.subscribe();
        let left = phases.wait_for(|phase| !matches!(phase, Phase::Ready(now) if Arc::ptr_eq(now, connection)));
        let phase = match tokio::time::timeout(Duration::from_secs(2), left).await {
            Ok(Ok(phase)) => phase.clone(),
            Ok(Err(_)) | Err(_) => Phase::Closed,
        };
        match phase {
            Phase::Waiting { until, error } => self.waiting(until, &error),
            Phase::Failed(error) => self.down(&error, ""),
            _ => {
                let error = self.with(|memory| memory.error.clone()).unwrap_or_else(|| "the connection broke".into());
                self.down(&CallError::failed(error), "")
            }
        }
    }

    fn waiting(&self, until: Instant, error: &CallError) -> CallError {
        let left = until.saturating_duration_since(Instant::now()).as_millis().div_ceil(1000).max(1);
        self.down(error, &format!("; it is tried again in {left} s"))
    }

    fn down(&self, error: &CallError, more: &str) -> CallError {
        let kind = match error.kind {
            kind @ (ErrorKind::Confinement | ErrorKind::NotFound) => kind,
            _ => ErrorKind::Upstream,
        };
        let message = format!("the MCP server `{}` is not there: {}{more}", self.server.name, error.message);
        let mut failure = CallError::new(kind, message);
        let hint = format!("`haft mcp test {}` shows what it says", self.server.name);
        failure.hint = error.hint.clone().or(Some(hint));
        failure.details.clone_from(&error.details);
        failure
    }

    fn closed(&self) -> CallError {
        CallError::new(ErrorKind::Upstream, format!("the MCP server `{}` is being ended", self.server.name))
    }

    /// How it is.
    pub(super) fn status(&self) -> Status {
        let phase = self.phase.borrow().clone();
        let (state, garbage) = match &phase {
            Phase::Idle => (State::Idle, None),
            Phase::Starting => (State::Starting, None),
            Phase::Ready(connection) => (State::Ready, connection.noticed.garbage()),
            Phase::Waiting { until, error } => {
                let left = until.saturating_duration_since(Instant::now()).as_millis();
                let retry_in_ms = u64::try_from(left).unwrap_or(u64::MAX);
                (State::Waiting { retry_in_ms, why: error.message.clone() }, None)
            }
            Phase::Failed(_) => (State::Failed, None),
            Phase::Closed => (State::Closed, None),
        };
        self.with(|memory| Status {
            name: self.server.name.clone(),
            state,
            tools: memory.offered.keys().cloned().collect(),
            altered: memory
                .offered
                .iter()
                .filter_map(|(name, tool)| Some(format!("{name}: {}", tool.why()?)))
                .collect(),
            refused: memory.refused.clone(),
            provider_warnings: memory
                .offered
                .values()
                .flat_map(|tool| tool.provider_notes().iter().map(ToString::to_string))
                .collect(),
            error: memory.error.clone(),
            garbage,
        })
    }
}

/// Work that ends early when nobody wants it any more.
pub(super) trait OrStop: Future + Sized {
    /// What it gave, or none if it was stopped.
    async fn await_or(self, stop: &CancellationToken) -> Option<Self::Output> {
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            done = self => Some(done),
        }
    }
}

impl<F: Future> OrStop for F {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_that_a_server_does_not_list_is_not_watched_there() {
        let mut memory = Memory::default();
        memory.catalogue.resources = vec![rmcp::model::Resource::new("a://listed", "listed")];
        memory.watched = ["a://listed", "a://other", "file:///etc/passwd"].map(|uri| (uri.to_owned(), 1)).into();
        assert_eq!(memory.watched_resources(), ["a://listed"]);
    }
}
