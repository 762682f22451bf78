//! Times of many rounds, and what is said of them.

use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long each round took, shortest first.
#[derive(Debug, Clone)]
pub(super) struct Samples(Vec<Duration>);

impl Samples {
    pub(super) fn new(mut rounds: Vec<Duration>) -> Self {
        rounds.sort_unstable();
        Self(rounds)
    }

    /// The time that so many percent of rounds did not exceed (nearest rank).
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }

    pub(super) fn p50(&self) -> Duration {
        self.percentile(50)
    }

    /// How many times as long as a peer.
    pub(super) fn ratio(&self, peer: &Self) -> f64 {
        self.p50().as_secs_f64() / peer.p50().as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// How often to measure, after how many rounds that only warm caches.
#[derive(Clone, Copy)]
pub(super) struct Rounds {
    pub(super) warm_up: usize,
    pub(super) counted: usize,
}

/// Peer and haft in turns; who goes first changes with every round.
pub(super) fn interleaved(rounds: Rounds, peer: &mut Command, ours: &mut Command) -> Result<(Samples, Samples)> {
    let (mut theirs, mut own) = (Vec::new(), Vec::new());
    for round in 0..rounds.warm_up + rounds.counted {
        let (peer_time, our_time) = if round % 2 == 0 {
            let first = time(peer)?;
            (first, time(ours)?)
        } else {
            let first = time(ours)?;
            (time(peer)?, first)
        };
        if round >= rounds.warm_up {
            theirs.push(peer_time);
            own.push(our_time);
        }
    }
    Ok((Samples::new(theirs), Samples::new(own)))
}

/// From spawning to the end of a process whose output nobody reads.
fn time(command: &mut Command) -> Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    let took = start.elapsed();
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(millis: impl IntoIterator<Item = u64>) -> Samples {
        Samples::new(millis.into_iter().map(Duration::from_millis).collect())
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let hundred = samples((1..=100).rev());
        let at = |percent| hundred.percentile(percent).as_millis();
        assert_eq!((at(0), at(10), at(50), at(99), at(100)), (1, 10, 50, 99, 100));
        assert_eq!(samples([7]).p50().as_millis(), 7);
        assert_eq!(samples([]).p50(), Duration::ZERO);
    }

    #[test]
    fn a_ratio_is_ours_over_the_peers() {
        assert!((samples([3, 6, 9]).ratio(&samples([1, 2, 3])) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn rounds_are_counted_and_failures_are_not() {
        let rounds = Rounds { warm_up: 1, counted: 3 };
        let (peer, ours) = interleaved(rounds, &mut Command::new("true"), &mut Command::new("true")).unwrap();
        assert_eq!((peer.0.len(), ours.0.len()), (3, 3));
        assert!(interleaved(rounds, &mut Command::new("true"), &mut Command::new("false")).is_err());
    }
}
