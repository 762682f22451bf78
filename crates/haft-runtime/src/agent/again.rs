//! Children that are spoken to again after they have ended, in this process or in a later one: they go on from what was said,
//! behind the same gates, with what is left of their money, and in the same place.

use super::agents::Agents;
use super::spawn::{Order, Report, named};
use crate::approver::Approver;
use crate::halt::Halt;
use crate::pipeline::Haft;
use crate::store_error;
use haft_core::agent::{Message, Role};
use haft_core::outcome::Label;
use haft_core::preview::{cut, inert};
use haft_core::{Call, CallError, SessionId};
use haft_store::Store;
use haft_store::talks::Talk;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How many children of one conversation are listed.
const LISTED_MAX: i64 = 256;

impl Haft {
    /// Says something to a child that has ended. Its parent waits for it if it waited the first time.
    pub(crate) async fn follow_up(
        &self,
        (id, words): (&str, String),
        call: &Call,
        approver: &dyn Approver,
        halt: &Halt,
    ) -> Result<Report, CallError> {
        let talk = child(&self.store, &call.session, id).await?;
        let order = order(&talk).ok_or_else(|| {
            CallError::conflict(format!("nobody knows any more what {} was asked for", cut(&inert(id), 80)))
                .hint("spawn another one, and tell it what this one said")
        })?;
        let roles = self.roles().await?;
        let known = talk.session.strip_prefix("agent-").unwrap_or(id).to_owned();
        let ready = self.prepare(known, (order, Some(&talk)), &roles, call, halt).await?.told(words);
        Ok(if ready.is_awaited() { ready.run(approver, halt, None).await } else { self.send_off(ready) })
    }
}

/// What a child was asked for.
pub(super) fn order(talk: &Talk) -> Option<Order> {
    serde_json::from_str(talk.asked.as_deref()?).ok()
}

/// The conversation of a child of this one.
pub(crate) async fn child(store: &Store, above: &SessionId, id: &str) -> Result<Talk, CallError> {
    let talk = match SessionId::new(&format!("agent-{id}")) {
        Some(session) => store.talk(&session).await.map_err(store_error)?,
        None => None,
    };
    talk.filter(|talk| talk.above.as_deref() == Some(above.as_str())).ok_or_else(|| {
        CallError::not_found(format!("there is no agent `{}` of this conversation", cut(&inert(id), 80)))
            .hint("agent.control lists them")
    })
}

/// The children of a conversation: those that ended in an earlier process, and then those of this one.
pub(crate) async fn children(agents: &Agents, store: &Store, above: &SessionId) -> Result<Vec<Value>, CallError> {
    let here = agents.of(above);
    let talks = store.talks("", Some(above.as_str()), LISTED_MAX).await.map_err(store_error)?;
    let known = |talk: &Talk| here.iter().any(|child| child["session"] == talk.session.as_str());
    let earlier = talks.iter().filter(|talk| !known(talk)).map(|talk| {
        let order = order(talk).unwrap_or_default();
        // Whoever ran it may have died; nobody here knows.
        let state = if talk.state == "running" { "cut off, or elsewhere" } else { "ended" };
        json!({
            "id": talk.session.strip_prefix("agent-").unwrap_or(&talk.session), "name": named(&order), "role": talk.role,
            "mode": talk.mode, "task": talk.title, "session": talk.session, "state": state, "ended": null,
        })
    });
    Ok(earlier.collect::<Vec<_>>().into_iter().chain(here).collect())
}

/// The last words of a child, how it ended, and what it has heard: for whoever asks in a later process.
pub(crate) async fn last_words(
    store: &Store,
    above: &SessionId,
    id: &str,
) -> Result<(String, String, Vec<Label>), CallError> {
    let talk = child(store, above, id).await?;
    let session = SessionId::new(&talk.session).unwrap_or_default();
    let said = store.said(&session).await.map_err(store_error)?.pop().unwrap_or_default();
    let last = said.iter().rfind(|message| message.role == Role::Assistant);
    let heard = store.heard(&session).await.map_err(store_error)?;
    let labels: BTreeSet<Label> = heard.into_iter().map(|(source, _)| source.label).collect();
    Ok((last.map(Message::text).unwrap_or_default(), talk.state, labels.into_iter().collect()))
}
