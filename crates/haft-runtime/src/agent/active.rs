//! The tools that each conversation has found and may be told of from then on.
//!
//! They are listed in the order in which they were first found, and never otherwise: a list that is the same at its
//! beginning is not paid for again.

use haft_core::{SessionId, ToolName};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// No conversation has more.
const TOOLS_MAX: usize = 256;
/// So many conversations are remembered; then the one that was longest without a find is forgotten.
const SESSIONS_MAX: usize = 1024;

/// What was found, by conversation.
#[derive(Debug, Default)]
pub struct Active {
    by_session: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    found: HashMap<SessionId, (u64, Vec<ToolName>)>,
    /// Counts what happens, to know what was last.
    clock: u64,
}

impl Active {
    /// Adds tools to a conversation's. Returns those that are new to it.
    pub fn activate(&self, session: &SessionId, names: impl IntoIterator<Item = ToolName>) -> Vec<ToolName> {
        let mut sessions = self.by_session.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.clock += 1;
        let clock = sessions.clock;
        if !sessions.found.contains_key(session) && sessions.found.len() >= SESSIONS_MAX {
            let oldest = sessions.found.iter().min_by_key(|(_, (last, _))| *last).map(|(session, _)| session.clone());
            oldest.map(|oldest| sessions.found.remove(&oldest));
        }
        let (last, known) = sessions.found.entry(session.clone()).or_default();
        *last = clock;
        let mut new = Vec::new();
        for name in names {
            if known.len() < TOOLS_MAX && !known.contains(&name) {
                known.push(name.clone());
                new.push(name);
            }
        }
        new
    }

    /// A conversation's tools, in the order in which they were first found.
    pub fn of(&self, session: &SessionId) -> Vec<ToolName> {
        let sessions = self.by_session.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.found.get(session).map(|(_, names)| names.clone()).unwrap_or_default()
    }

    /// Puts back what a conversation had before it was interrupted. What it has found since comes after that.
    pub fn restore(&self, session: &SessionId, names: impl IntoIterator<Item = ToolName>) {
        let since = {
            let mut sessions = self.by_session.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.found.remove(session).map(|(_, names)| names).unwrap_or_default()
        };
        self.activate(session, names.into_iter().chain(since));
    }

    /// Forgets a conversation.
    pub fn forget(&self, session: &SessionId) {
        self.by_session.lock().unwrap_or_else(PoisonError::into_inner).found.remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<ToolName> {
        all.iter().map(|name| ToolName::new(name).unwrap()).collect()
    }

    #[test]
    fn what_is_found_stays_where_it_was_first() {
        let (active, session) = (Active::default(), SessionId::new("s").unwrap());
        assert_eq!(active.activate(&session, names(&["b", "a"])), names(&["b", "a"]));
        assert_eq!(active.activate(&session, names(&["c", "a", "b"])), names(&["c"]));
        assert_eq!(active.of(&session), names(&["b", "a", "c"]));
        active.restore(&session, names(&["x", "a"]));
        assert_eq!(active.of(&session), names(&["x", "a", "b", "c"]));
        active.forget(&session);
        assert!(active.of(&session).is_empty());
    }

    #[test]
    fn there_is_an_end_to_it() {
        let active = Active::default();
        let many = |n: usize| (0..n).map(|n| ToolName::new(&format!("t{n}")).unwrap()).collect::<Vec<_>>();
        let first = SessionId::new("s0").unwrap();
        active.activate(&first, many(1000));
        assert_eq!(active.of(&first).len(), TOOLS_MAX);
        for n in 1..=SESSIONS_MAX {
            active.activate(&SessionId::new(&format!("s{n}")).unwrap(), many(1));
        }
        assert!(active.of(&first).is_empty(), "the oldest is forgotten");
        assert_eq!(active.of(&SessionId::new("s1").unwrap()).len(), 1);
    }
}
