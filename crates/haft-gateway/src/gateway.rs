//! What all requests share.

use crate::agent::Conversations;
use crate::failures::Failures;
use crate::guard::Access;
use crate::hub::Hub;
use crate::links::Links;
use crate::meters::Meters;
use crate::options::Options;
use crate::waiting::Waiting;
use haft_core::{CallId, SessionId};
use haft_runtime::{Haft, Halt};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How many large bodies are read at once; the others wait. What is small is not counted.
const LARGE_AT_ONCE: usize = 8;

/// What all requests share.
pub(crate) struct Gateway {
    pub(crate) haft: Arc<Haft>,
    pub(crate) options: Options,
    pub(crate) hub: Hub,
    pub(crate) links: Links,
    pub(crate) failures: Failures,
    pub(crate) meters: Meters,
    pub(crate) work: Work,
}

/// What is under way, and how it ends.
pub(crate) struct Work {
    /// The calls that came through this door, and whose they are.
    pub(crate) active: Mutex<HashMap<CallId, SessionId>>,
    /// The calls among them that wait for a person, and whose they are.
    pub(crate) waiting: Waiting,
    /// The conversations with models, by session.
    pub(crate) conversations: Conversations,
    /// Everything that runs, beyond the request that started it.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the gateway closes: nothing new begins.
    pub(crate) closing: CancellationToken,
    /// Cancels every call that came through this door.
    pub(crate) halt: Halt,
    /// Room for large bodies.
    pub(crate) large: Semaphore,
    /// One check of the whole log at a time.
    pub(crate) verifying: Semaphore,
}

pub(crate) type Shared = Arc<Gateway>;

impl Gateway {
    pub(crate) fn new(haft: Arc<Haft>, options: Options) -> Shared {
        let work = Work {
            active: Mutex::default(),
            waiting: Waiting::default(),
            conversations: Conversations::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            halt: Halt::new(),
            large: Semaphore::new(LARGE_AT_ONCE),
            verifying: Semaphore::new(1),
        };
        let (hub, links, failures, meters) = (Hub::new(), Links::default(), Failures::default(), Meters::new());
        Arc::new(Self { haft, options, hub, links, failures, meters, work })
    }

    /// What a token is good for.
    pub(crate) fn access(&self, token: &str) -> Option<Access> {
        if self.options.token.is(token) {
            return Some(Access::Full);
        }
        if self.options.agent_token.is(token) {
            return Some(Access::Calls);
        }
        self.links.approval_of(token).map(Access::Only)
    }
}
