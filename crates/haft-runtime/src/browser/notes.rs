//! What a browser's pages asked of the network: every connection is in the record, and what was refused is told to
//! whoever made the call.

use super::launch::OWN_HOSTS;
use haft_core::CallId;
use haft_core::record::Kind;
use haft_sandbox::net::{Contact, Via};
use haft_store::{Entry, Store};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// How many connections of one call are recorded one by one. A page may make as many as it likes, the log may not grow
/// as it likes.
const RECORDED_MAX: usize = 1000;
/// How many refusals of one call are told.
const TOLD_MAX: usize = 10;

pub(super) struct Notes {
    store: Store,
    state: Mutex<State>,
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notes").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct State {
    call: CallId,
    recorded: usize,
    refused: Vec<String>,
}

impl Notes {
    pub(super) fn new(store: Store, call: CallId) -> Self {
        Self { store, state: Mutex::new(State { call, recorded: 0, refused: Vec::new() }) }
    }

    /// What comes from now on belongs to this call.
    pub(super) fn turn_to(&self, call: &CallId) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { call: call.clone(), recorded: 0, refused: Vec::new() };
    }

    /// What was refused in this call.
    pub(super) fn refused(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).refused)
    }

    /// Records a connection that has ended.
    pub(super) fn note(&self, contact: &Contact) {
        if contact.how == Via::Name && OWN_HOSTS.contains(&contact.host.as_str()) {
            return;
        }
        let entry = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let refusal = contact.reason.as_ref().filter(|_| !contact.allowed);
            if let Some(why) = refusal.filter(|why| state.refused.len() < TOLD_MAX && !state.refused.contains(why)) {
                state.refused.push(why.clone());
            }
            state.recorded += 1;
            if state.recorded > RECORDED_MAX {
                return;
            }
            let entry = Entry::new(Kind::Request).call(&state.call).with("method", "CONNECT");
            if state.recorded == RECORDED_MAX { entry.with("more", "not recorded one by one") } else { entry }
        };
        let entry = entry
            .with("host", format!("{}:{}", contact.host, contact.port))
            .with("by", "browser")
            .with("sent", contact.sent)
            .with("bytes", contact.received);
        let error = match (&contact.reason, contact.allowed) {
            (None, _) => None,
            (Some(_), true) => Some("upstream"),
            (Some(_), false) => Some("denied"),
        };
        self.store.record_later(match error {
            Some(kind) => entry.with("error", kind),
            None => entry,
        });
    }
}
