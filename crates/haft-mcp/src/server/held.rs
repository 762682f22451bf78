//! Questions that went out with an answer (2026-07-28): the client comes back with what the person said, and with a
//! word by which the question is found again. The word is a key to what is kept here and says nothing by itself.

use haft_core::{CallId, SessionId};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many questions may be out. The oldest is forgotten first; it stays in the inbox.
const HELD_MAX: usize = 1024;

/// A question that is out.
struct Out {
    word: String,
    session: SessionId,
    call: CallId,
}

/// The questions that are out.
#[derive(Default)]
pub(super) struct Held(Mutex<VecDeque<Out>>);

impl Held {
    fn out(&self) -> MutexGuard<'_, VecDeque<Out>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a question, and gives the word for it. None without a source of chance.
    pub(super) fn keep(&self, session: &SessionId, call: &CallId) -> Option<String> {
        let mut chance = [0_u8; 16];
        getrandom::fill(&mut chance).ok()?;
        let word = format!("{call}.{:032x}", u128::from_le_bytes(chance));
        let mut out = self.out();
        if out.len() >= HELD_MAX {
            out.pop_front();
        }
        out.push_back(Out { word: word.clone(), session: session.clone(), call: call.clone() });
        Some(word)
    }

    /// The question for a word, once, and only in the session that it belongs to.
    pub(super) fn take(&self, session: &SessionId, word: &str) -> Option<CallId> {
        let mut out = self.out();
        let at = out.iter().position(|held| held.word == word && held.session == *session)?;
        out.remove(at).map(|held| held.call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_good_once_and_for_its_session() {
        let (held, session) = (Held::default(), SessionId::new("a").unwrap());
        let call = CallId::new(1, 2);
        let word = held.keep(&session, &call).unwrap();
        assert_eq!(held.take(&SessionId::default(), &word), None);
        assert_eq!(held.take(&session, call.as_str()), None);
        assert_eq!(held.take(&session, &word), Some(call));
        assert_eq!(held.take(&session, &word), None);
    }
}
