//! Contestants that take turns.

use super::Result;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long each turn of each contestant took.
pub(crate) type Times = BTreeMap<String, Vec<Duration>>;

/// Who takes longer than this is not asked in every round.
const PATIENCE: Duration = Duration::from_millis(40);
/// Turns that only warm caches.
const WARM_UP: usize = 5;
/// Even the slowest has so many turns.
const TURNS_MIN: usize = 10;

/// Somebody who does a job once and says how long that took.
pub(crate) struct Contestant<'c> {
    name: String,
    once: Box<dyn FnMut() -> Result<Duration> + 'c>,
}

impl<'c> Contestant<'c> {
    /// One whose whole turn is measured.
    pub(crate) fn new(name: &str, mut once: impl FnMut() -> Result<()> + 'c) -> Self {
        Self::timed(name, move || {
            let begun = Instant::now();
            once()?;
            Ok(begun.elapsed())
        })
    }

    /// One who measures a part of its turn itself.
    pub(crate) fn timed(name: &str, once: impl FnMut() -> Result<Duration> + 'c) -> Self {
        Self { name: name.to_owned(), once: Box::new(once) }
    }

    fn turn(&mut self) -> Result<Duration> {
        (self.once)().map_err(|error| format!("{}: {error}", self.name).into())
    }
}

/// Everybody in turns; who goes first changes with every round.
pub(crate) fn race(rounds: usize, mut contestants: Vec<Contestant<'_>>) -> Result<Times> {
    let mut every = Vec::new();
    for contestant in &mut contestants {
        let mut fastest = Duration::MAX;
        for _ in 0..WARM_UP {
            fastest = fastest.min(contestant.turn()?);
        }
        let seldom = usize::try_from(fastest.as_millis() / PATIENCE.as_millis()).unwrap_or(usize::MAX);
        every.push(seldom.clamp(1, (rounds / TURNS_MIN).max(1)));
    }
    let mut times = Times::new();
    let count = contestants.len();
    for round in 0..rounds {
        for place in 0..count {
            let number = (place + round) % count;
            let (Some(contestant), Some(every)) = (contestants.get_mut(number), every.get(number)) else { continue };
            if round.is_multiple_of(*every) {
                let took = contestant.turn()?;
                times.entry(contestant.name.clone()).or_default().push(took);
            }
        }
    }
    Ok(times)
}
