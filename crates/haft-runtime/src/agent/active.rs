//! The tools that conversations have found, in the order in which they were.

use haft_core::{SessionId, ToolName};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How many tools one conversation is told of besides the core, and how many conversations are remembered.
const TOOLS_MAX: usize = 64;
const SESSIONS_MAX: usize = 4096;

/// What each conversation has found.
#[derive(Debug, Default)]
pub struct Active {
    by_session: Mutex<BTreeMap<SessionId, Vec<ToolName>>>,
}

impl Active {
    /// Notes what a conversation found. What it knows already keeps its place.
    pub fn activate(&self, session: &SessionId, names: &[ToolName]) {
        let mut all = self.by_session.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(session) && all.len() >= SESSIONS_MAX {
            all.pop_first();
        }
        let known = all.entry(session.clone()).or_default();
        for name in names {
            if !known.contains(name) && known.len() < TOOLS_MAX {
                known.push(name.clone());
            }
        }
    }

    /// What it has found, in order.
    pub fn of(&self, session: &SessionId) -> Vec<ToolName> {
        self.by_session.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned().unwrap_or_default()
    }
}
