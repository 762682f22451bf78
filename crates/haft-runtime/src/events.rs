//! One bus of progress events that every door listens to.

use crate::agent::Told;
use crate::media::Attachment;
use haft_core::approval::Verdict;
use haft_core::{CallId, Outcome, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::broadcast;

/// How many events a slow listener may fall behind before it loses the oldest.
const BACKLOG: usize = 512;

/// What happens to a call, as it happens.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A call is about to run.
    CallStart {
        /// Which.
        call_id: CallId,
        /// Whose.
        session: SessionId,
        /// The canonical tool.
        tool: String,
        /// One line about it.
        preview: String,
    },
    /// A call waits for a person.
    Approval {
        /// Which.
        call_id: CallId,
        /// Whose.
        session: SessionId,
        /// One line about it.
        preview: String,
        /// Why it is asked.
        verdict: Verdict,
    },
    /// A stored question was decided, or is another one now.
    Decided {
        /// Which.
        call_id: CallId,
        /// What became of it: `approved`, `rejected`, `amended`, `withdrawn`.
        state: &'static str,
        /// By whom.
        by: String,
    },
    /// A call that waited here was approved by another process, which runs it. That process tells of its start and end.
    RunsElsewhere {
        /// Which.
        call_id: CallId,
    },
    /// A call reports how far it is.
    Progress {
        /// Which.
        call_id: CallId,
        /// Whose.
        session: SessionId,
        /// In its own words.
        message: String,
        /// How far, and out of how much, where that is known.
        #[serde(flatten)]
        done: Option<Share>,
    },
    /// A call writes to the log of whoever made it.
    Log {
        /// Which.
        call_id: CallId,
        /// Whose.
        session: SessionId,
        /// How serious it is.
        level: LogLevel,
        /// Which part of the tool says it.
        #[serde(skip_serializing_if = "Option::is_none")]
        logger: Option<String>,
        /// What it says.
        data: Value,
    },
    /// A call gives the person something that is not text.
    Attachment {
        /// Which.
        call_id: CallId,
        /// Whose.
        session: SessionId,
        /// What.
        attachment: Attachment,
    },
    /// A step of a run stands somewhere else.
    Step {
        /// Whose.
        session: SessionId,
        /// Of which run.
        run: String,
        /// Which.
        step: String,
        /// Where: `running`, `done`, `failed`, `skipped`, `asking`, `nested`, `ready`; `told` if somebody is to know.
        state: String,
    },
    /// Something happens in a conversation with a model.
    Agent {
        /// Which.
        session: SessionId,
        /// What.
        told: Box<Told>,
    },
    /// A call ended.
    CallEnd {
        /// Whose.
        session: SessionId,
        /// What it gave.
        outcome: Box<Outcome>,
    },
}

/// How serious a log message is, in the words of syslog (RFC 5424). Ordered by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for whoever looks for a fault.
    Debug,
    /// What happens in the normal course.
    Info,
    /// Normal, and worth knowing.
    Notice,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
    /// A part does not work any more.
    Critical,
    /// Somebody has to act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

/// How much of the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// So far.
    pub progress: f64,
    /// In all, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
}

/// The bus. Cheap to clone; sending never waits and never fails.
#[derive(Debug, Clone)]
pub struct Events(broadcast::Sender<Event>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl Events {
    /// Tells all listeners.
    pub fn send(&self, event: Event) {
        // An error only says that nobody listens.
        let _ = self.0.send(event);
    }

    /// Sends an event that is costly to make, if anybody listens.
    pub fn send_with(&self, make: impl FnOnce() -> Event) {
        if self.0.receiver_count() > 0 {
            self.send(make());
        }
    }

    /// Listens from now on.
    pub fn listen(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}
