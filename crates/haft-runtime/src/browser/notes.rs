//! What a browser's pages asked of the network: every connection is in the record, and what was refused is told to
//! whoever made the call.

use super::launch::OWN_HOSTS;
use haft_core::CallId;
use haft_core::record::Kind;
use haft_sandbox::net::{Contact, Via};
use haft_store::{Entry, Store};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// How many connections of one call are recorded one by one. A page may make as many as it likes, the log may not grow
/// as it likes.
const RECORDED_MAX: usize = 1000;
/// How many refusals of one call are told.
const TOLD_MAX: usize = 10;
/// Of how many hosts is known why they were not reached.
const FAILED_MAX: usize = 64;

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
    /// The hosts that were not reached, the latest last.
    failed: VecDeque<(String, Failed)>,
}

impl State {
    fn of(call: CallId) -> Self {
        Self { call, recorded: 0, refused: Vec::new(), failed: VecDeque::new() }
    }

    fn fail(&mut self, contact: &Contact, why: &str) {
        let failed = Failed { why: why.to_owned(), denied: !contact.allowed };
        self.failed.push_back((format!("{}:{}", contact.host, contact.port), failed));
        if self.failed.len() > FAILED_MAX {
            self.failed.pop_front();
        }
    }
}

/// Why a host was not reached.
#[derive(Debug, Clone)]
pub(super) struct Failed {
    pub(super) why: String,
    /// Whether the rules said no, rather than the network.
    pub(super) denied: bool,
}

impl Notes {
    pub(super) fn new(store: Store, call: CallId) -> Self {
        Self { store, state: Mutex::new(State::of(call)) }
    }

    /// What comes from now on belongs to this call.
    pub(super) fn turn_to(&self, call: &CallId) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State::of(call.clone());
    }

    /// What was refused in this call.
    pub(super) fn refused(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).refused)
    }

    /// Why a host and port was not reached in this call, if it was not.
    pub(super) fn failed(&self, authority: &str) -> Option<Failed> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.iter().rev().find(|(of, _)| of == authority).map(|(_, failed)| failed.clone())
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
            if let Some(why) = &contact.reason {
                state.fail(contact, why);
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
