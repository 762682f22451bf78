//! agent.send and agent.cancel: a conversation with a model, by this door.
//!
//! What is said in one session is said one after the other; sessions do not wait for each other. What the agent's calls ask
//! goes to the inbox, where whoever looks decides.

use crate::gateway::{Gateway, Shared};
use crate::guard::Visitor;
use crate::rpc::{BAD_PARAMS, BUSY, Fault, NO_AGENT};
use crate::run::{Inbox, PATIENCE_MAX};
use haft_core::agent::Block;
use haft_core::approval::{Decider, DeciderIdentity};
use haft_core::{CallError, SessionId};
use haft_runtime::agent::told::on_the_bus;
use haft_runtime::agent::{Chat, Door, Ended, ModelRef, Told, Who, tend};
use haft_runtime::{Approver, BoxFuture, Halt, Question, Said, new_call_id};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many conversations are followed or wait to be at once.
const CONVERSATIONS_MAX: usize = 256;

/// What is to be said, and to whom.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Send {
    pub(crate) session: Option<String>,
    #[serde(alias = "text", alias = "content", alias = "prompt")]
    message: String,
    model: Option<String>,
    wait_ms: Option<u64>,
}

/// The conversations of this door.
#[derive(Default)]
pub(crate) struct Conversations {
    lanes: Mutex<HashMap<SessionId, Lane>>,
}

/// The turns of one session, and what stops whoever has one or waits for one.
#[derive(Clone, Default)]
struct Lane {
    turn: Arc<tokio::sync::Mutex<()>>,
    halt: Halt,
}

/// A place in a lane, as long as this lives.
struct Place<'c> {
    all: &'c Conversations,
    session: SessionId,
    lane: Lane,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lanes = self.all.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let own = lanes.get(&self.session).is_some_and(|lane| Arc::ptr_eq(&lane.turn, &self.lane.turn));
        // The map has one, and this.
        if own && Arc::strong_count(&self.lane.turn) <= 2 {
            lanes.remove(&self.session);
        }
    }
}

impl Conversations {
    fn enter(&self, session: &SessionId, halt: &Halt) -> Option<Place<'_>> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() >= CONVERSATIONS_MAX && !lanes.contains_key(session) {
            return None;
        }
        let fresh = || Lane { turn: Arc::default(), halt: halt.narrowed() };
        let lane = lanes.entry(session.clone()).or_insert_with(fresh).clone();
        Some(Place { all: self, session: session.clone(), lane })
    }

    /// Stops what is said in a session, and what waits to be. Returns whether there was anything.
    pub(crate) fn cancel(&self, session: &SessionId) -> bool {
        let gone = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
        gone.inspect(|lane| lane.halt.cancel()).is_some()
    }
}

impl Gateway {
    /// The session that somebody means; a new one if they name none.
    pub(crate) fn spoken_in(visitor: Visitor, named: Option<&str>) -> Result<SessionId, Fault> {
        let fresh = || format!("chat-{}", new_call_id());
        let name = named.map_or_else(fresh, str::to_owned);
        let bad = || Fault::new(BAD_PARAMS, "a session's name is 1 to 128 printable characters");
        visitor.session(&name).ok_or_else(bad)
    }

    /// Says something in a session, and answers when that has come to its end. It goes on if whoever said it goes away.
    pub(crate) async fn send(self: &Shared, visitor: Visitor, session: SessionId, send: Send) -> Result<Value, Fault> {
        if send.message.trim().is_empty() {
            return Err(Fault::new(BAD_PARAMS, "`message` is empty"));
        }
        let model = send.model.map(ModelRef::try_from).transpose().map_err(|why| Fault::new(BAD_PARAMS, why))?;
        let mut caller = self.options.caller.clone();
        caller.agent.get_or_insert_with(|| "main".to_owned());
        let who = Who { session: session.clone(), caller, models: model.into_iter().collect(), ..Who::default() };
        let gateway = Shared::clone(self);
        let patience = send.wait_ms.map_or(self.options.patience, Duration::from_millis).min(PATIENCE_MAX);
        let work = async move { gateway.converse(visitor, who, send.message, patience).await };
        let done = self.work.tasks.spawn(work).await;
        let ended = done.map_err(|crash| Fault::from(CallError::internal(format!("it crashed: {crash}"))))??;
        Ok(json!({ "session": session, "ended": ended, "text": ended.text }))
    }

    async fn converse(&self, visitor: Visitor, who: Who, message: String, patience: Duration) -> Result<Ended, Fault> {
        let busy = || Fault::new(BUSY, "busy: there are too many conversations");
        let session = who.session.clone();
        let place = self.work.conversations.enter(&session, &self.work.halt).ok_or_else(busy)?;
        let halt = place.lane.halt.clone();
        let _turn = tokio::select! {
            turn = place.lane.turn.lock() => turn,
            error = halt.stopped() => return Err(error.into()),
        };
        let inbox = Inbox::new(patience, &self.work.waiting, session.clone());
        let door = Door {
            approver: &inbox,
            halt: &halt,
            origin: visitor.origin,
            watch: on_the_bus(self.haft.events().clone(), session),
            meanwhile: None,
        };
        let said = async {
            Chat::possible(&self.haft, &who).await?;
            let mut chat = Chat::open(&self.haft, who).await?;
            chat.say(vec![Block::Text { text: message }], door).await
        };
        said.await.map_err(|error| match error.kind {
            // Nobody has said which model, and there is no key for any.
            haft_core::ErrorKind::NotFound => {
                Fault::new(NO_AGENT, error.message.clone()).with(json!({ "hint": error.hint }))
            }
            _ => error.into(),
        })
    }

    /// Runs the agents in the background, until the gateway closes.
    pub(crate) async fn tend_agents(self: Shared) {
        let halt = self.work.halt.narrowed();
        let tended = tend(&self.haft, Arc::new(Later), &halt);
        tokio::pin!(tended);
        tokio::select! {
            () = &mut tended => return,
            // Nobody waits for them: what they have said is kept.
            () = self.work.closing.cancelled() => halt.cancel(),
        }
        tended.await;
    }
}

/// Asks nobody at this door: what agents in the background ask is decided in the inbox.
struct Later;

impl Approver for Later {
    fn decider(&self) -> Decider {
        DeciderIdentity::Unattended { door: "gateway" }.into()
    }

    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(std::future::ready(Said::Nobody))
    }

    fn patience(&self) -> Duration {
        PATIENCE_MAX
    }
}

/// What happens in a conversation, in the words of this door: a name, and the rest as data.
pub(crate) fn worded(told: &Told) -> (String, Value) {
    let mut data = serde_json::to_value(told).unwrap_or_default();
    let name = data.as_object_mut().and_then(|fields| fields.remove("event"));
    let name = name.as_ref().and_then(Value::as_str).unwrap_or("agent").to_owned();
    (name, data)
}
