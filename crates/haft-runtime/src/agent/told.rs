//! What happens in a conversation, as whoever watches is told.

use crate::events::Event;
use haft_core::agent::turns::End;
use haft_core::agent::{Message, Usage};
use haft_core::{CallId, Outcome, SessionId};
use serde::Serialize;
use std::sync::Arc;

/// What happens in a conversation.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Told {
    /// It begins, or goes on.
    Start {
        /// Which.
        session: SessionId,
        /// The model that is asked first.
        model: String,
        /// How many tools it is told about, and how many more there are to be found.
        tools: usize,
        /// See `tools`.
        deferred: usize,
    },
    /// The model is asked.
    Turn {
        /// How often it was before, in this run.
        number: u32,
        /// Which.
        model: String,
    },
    /// Words, as they come.
    Content {
        /// They.
        text: String,
    },
    /// Thoughts, as they come.
    Thinking {
        /// They.
        text: String,
    },
    /// The model begins to write a call; its arguments are still to come.
    ToolInput {
        /// Its id in the conversation.
        id: String,
        /// The tool as the model calls it.
        name: String,
    },
    /// A call is made.
    ToolStart {
        /// Its id in the conversation.
        id: String,
        /// Its id everywhere else.
        call_id: CallId,
        /// The tool as the model calls it.
        name: String,
        /// One line about it.
        preview: String,
    },
    /// A call says how far it is, or what it printed.
    ToolProgress {
        /// Its id in the conversation.
        id: String,
        /// In its own words.
        message: String,
    },
    /// A call ended.
    ToolEnd {
        /// Its id in the conversation.
        id: String,
        /// What it gave.
        outcome: Box<Outcome>,
    },
    /// A model did not answer, and is asked again.
    Retry {
        /// Why.
        why: String,
        /// When, in milliseconds from now.
        after_ms: i64,
        /// Whether its provider asked for that wait.
        requested: bool,
    },
    /// Another model is asked from now on.
    Fallback {
        /// Which.
        model: String,
        /// Why.
        why: String,
    },
    /// What is sent is shorter now. The store keeps all of it.
    Compacted {
        /// About how many tokens it was.
        before: u64,
        /// And is.
        after: u64,
    },
    /// A message is whole, and is kept as it is.
    Message {
        /// It.
        message: Message,
    },
    /// What was used so far.
    Usage {
        /// By the last answer.
        last: Usage,
        /// In all.
        total: Usage,
        /// In millionths of a dollar; none if nobody knows the price.
        cost_micros: Option<u64>,
        /// How many tokens the model takes at once.
        window: u64,
    },
    /// Something worth knowing.
    Warning {
        /// What.
        message: String,
    },
    /// A child begins.
    SubagentStart {
        /// Which.
        subagent_id: String,
        /// What it is called.
        name: String,
        /// What it is to do.
        task: String,
        /// As what.
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        /// `sync`, `background` or `worktree`.
        mode: String,
    },
    /// Something happens in a child.
    SubagentEvent {
        /// Which.
        subagent_id: String,
        /// What.
        inner: Box<Told>,
    },
    /// A child has ended.
    SubagentEnd {
        /// Which.
        subagent_id: String,
        /// How, and what it used.
        ended: Box<Ended>,
    },
    /// It is over, until somebody says something again.
    Done {
        /// How.
        ended: Box<Ended>,
    },
}

/// How a conversation stands when nobody has anything more to do in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ended {
    /// Which.
    pub session: SessionId,
    /// Why it ended.
    pub end: End,
    /// The model's last words.
    pub text: String,
    /// How often a model was asked.
    pub turns: u32,
    /// How many calls were made.
    pub calls: u32,
    /// What was used.
    pub usage: Usage,
    /// In millionths of a dollar; none if nobody knows the price.
    pub cost_micros: Option<u64>,
    /// How long it took.
    pub duration_ms: u64,
}

impl Ended {
    /// Whether it went as it should.
    pub fn is_done(&self) -> bool {
        self.end == End::Done
    }
}

/// Whoever watches. It must not wait.
pub type Watch = Arc<dyn Fn(&Told) + Send + Sync>;

/// Watches for nobody in particular: all doors of this process hear of it.
pub fn on_the_bus(events: crate::Events, session: SessionId) -> Watch {
    Arc::new(move |told: &Told| {
        events.send_with(|| Event::Agent { session: session.clone(), told: Box::new(told.clone()) });
    })
}
