//! How the store is, known without asking it: a server that is away must not keep anybody from saying so.

use crate::StoreError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long work may take before somebody should know.
const LONG: Duration = Duration::from_secs(5);

/// How it is.
#[derive(Default)]
pub(crate) struct Pulse(Mutex<State>);

#[derive(Default)]
struct State {
    /// Since when it is away, and what was said last.
    away: Option<(Instant, String)>,
    /// Since when it works on something.
    busy: Option<Instant>,
}

impl Pulse {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn away(&self, error: &StoreError) {
        let mut state = self.state();
        if state.away.is_none() {
            tracing::warn!(%error, "the store's server is away; it is tried again");
        }
        let since = state.away.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        state.away = Some((since, error.to_string()));
    }

    pub(crate) fn back(&self) {
        let mut state = self.state();
        if let Some((since, _)) = &state.away {
            tracing::info!(seconds = since.elapsed().as_secs(), "the store's server is back");
        }
        state.away = None;
        // What it works on has had no time of its own until now.
        state.busy = state.busy.map(|_| Instant::now());
    }

    pub(crate) fn begins(&self) {
        self.state().busy = Some(Instant::now());
    }

    pub(crate) fn ends(&self) {
        self.state().busy = None;
    }

    /// What is wrong, if something is.
    pub(crate) fn ails(&self) -> Option<String> {
        let state = self.state();
        if let Some((since, why)) = &state.away {
            return Some(format!("away for {} s: {why}", since.elapsed().as_secs()));
        }
        let busy = state.busy.map(|since| since.elapsed()).filter(|busy| *busy > LONG)?;
        Some(format!("has not answered for {} s", busy.as_secs()))
    }
}
