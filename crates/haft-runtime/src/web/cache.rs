//! Pages that a session has fetched, so that reading on costs no second request. Few, bounded, and not for long.

use crate::hygiene::Looked;
use haft_core::SessionId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// So many pages are kept, of all sessions together.
const PAGES_MAX: usize = 32;
/// So many of one session.
const OWN_MAX: usize = 4;
/// As many bytes of text are kept altogether.
const BYTES_MAX: usize = 16 << 20;
/// As long is a page kept.
const LIFE_MS: i64 = 10 * 60 * 1000;

/// A page as text, with what is said about it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Page {
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) title: Option<String>,
    pub(crate) text: String,
    pub(crate) warnings: Vec<String>,
    /// Whether it is not the page's text but a sentence of ours about it.
    pub(crate) notice: bool,
    /// What was found in all of it, whichever part is shown.
    pub(crate) looked: Looked,
}

/// The pages of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    kept: Mutex<VecDeque<Kept>>,
}

#[derive(Debug)]
struct Kept {
    session: SessionId,
    /// What was asked for: the address, and how it was to be read.
    asked: String,
    until_ms: i64,
    page: Arc<Page>,
}

impl Pages {
    /// A page that this session asked for in the same way.
    pub(crate) fn get(&self, session: &SessionId, asked: &str, now_ms: i64) -> Option<Arc<Page>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|entry| entry.until_ms > now_ms);
        let found = kept.iter().find(|entry| entry.session == *session && entry.asked == asked);
        found.map(|entry| Arc::clone(&entry.page))
    }

    /// Keeps a page, and lets go of older ones.
    pub(crate) fn keep(&self, session: &SessionId, asked: String, page: Arc<Page>, now_ms: i64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|entry| entry.until_ms > now_ms && !(entry.session == *session && entry.asked == asked));
        kept.push_back(Kept { session: session.clone(), asked, until_ms: now_ms + LIFE_MS, page });
        let own = kept.iter().filter(|entry| entry.session == *session).count();
        if own > OWN_MAX
            && let Some(oldest) = kept.iter().position(|entry| entry.session == *session)
        {
            kept.remove(oldest);
        }
        let size = |kept: &VecDeque<Kept>| kept.iter().map(|entry| entry.page.text.len()).sum::<usize>();
        while kept.len() > PAGES_MAX || size(&kept) > BYTES_MAX {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::new(name).unwrap()
    }

    fn page(bytes: usize) -> Arc<Page> {
        Arc::new(Page { text: "x".repeat(bytes), ..Page::default() })
    }

    #[test]
    fn a_page_is_kept_for_its_session_and_a_while() {
        let pages = Pages::default();
        pages.keep(&session("a"), "u".to_owned(), page(3), 0);
        assert_eq!(pages.get(&session("a"), "u", LIFE_MS - 1), Some(page(3)));
        assert_eq!(pages.get(&session("b"), "u", 1), None);
        assert_eq!(pages.get(&session("a"), "v", 1), None);
        assert_eq!(pages.get(&session("a"), "u", LIFE_MS), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let pages = Pages::default();
        for number in 0..=OWN_MAX {
            pages.keep(&session("a"), number.to_string(), page(1), 0);
        }
        assert_eq!(pages.get(&session("a"), "0", 0), None);
        assert!(pages.get(&session("a"), "1", 0).is_some());
        pages.keep(&session("b"), "big".to_owned(), page(BYTES_MAX), 0);
        assert_eq!(pages.get(&session("a"), "1", 0), None);
        pages.keep(&session("b"), "too big".to_owned(), page(BYTES_MAX + 1), 0);
        assert_eq!(pages.kept.lock().unwrap().len(), 0);
    }
}
