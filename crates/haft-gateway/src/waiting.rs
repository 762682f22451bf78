//! The calls that wait for a person: so many and no more, because each costs something for as long as it waits.

use haft_core::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many calls of all sessions may wait.
const ALL_MAX: usize = 256;
/// How many calls of one session may wait.
const SESSION_MAX: usize = 64;

/// The sessions of the calls that wait, and how many there are of each.
#[derive(Clone, Default)]
pub(crate) struct Waiting(Arc<Mutex<HashMap<SessionId, usize>>>);

/// A place, as long as this lives.
pub(crate) struct Place {
    waiting: Waiting,
    session: SessionId,
}

impl Waiting {
    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more of this session may wait.
    pub(crate) fn has_room(&self, session: &SessionId) -> bool {
        has_room(&self.all(), session)
    }

    /// A place for one more, if there is room.
    pub(crate) fn enter(&self, session: &SessionId) -> Option<Place> {
        let mut all = self.all();
        if !has_room(&all, session) {
            return None;
        }
        *all.entry(session.clone()).or_default() += 1;
        drop(all);
        Some(Place { waiting: self.clone(), session: session.clone() })
    }
}

fn has_room(all: &HashMap<SessionId, usize>, session: &SessionId) -> bool {
    all.values().sum::<usize>() < ALL_MAX && all.get(session).is_none_or(|count| *count < SESSION_MAX)
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.waiting.all();
        if let Some(count) = all.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_and_all_of_them_have_so_many_places() {
        let (waiting, session) = (Waiting::default(), |number: usize| SessionId::new(&format!("s{number}")).unwrap());
        let one: Vec<Place> = (0..SESSION_MAX).map(|_| waiting.enter(&session(0)).unwrap()).collect();
        assert!(waiting.enter(&session(0)).is_none() && !waiting.has_room(&session(0)));
        let rest: Vec<Place> = (SESSION_MAX..ALL_MAX).map(|number| waiting.enter(&session(number)).unwrap()).collect();
        assert!(waiting.enter(&session(ALL_MAX)).is_none(), "all places are taken");
        drop(one);
        assert!(waiting.enter(&session(0)).is_some(), "who goes leaves a place");
        drop(rest);
        assert!(waiting.all().is_empty());
    }
}
