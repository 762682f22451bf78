//! What comes of an answer that failed: the model is asked again after a pause, or the next one is, or the run ends.

use super::{Effect, End, Failure, FailureKind, Phase, Turns, Waits};

/// How often a model is asked before the next one is; the first attempt counts.
const ATTEMPTS_MAX: u32 = 5;
/// The first wait between attempts. Each further one is twice as long, and jitter takes off up to half of it.
const BACKOFF_FIRST_MS: i64 = 1000;
/// The longest wait between attempts.
const BACKOFF_MAX_MS: i64 = 60_000;
/// How long the waits that a provider asks for (`retry-after`) may add up to for one request, if there is another model to ask.
const PATIENCE_MS: i64 = 600_000;
/// The same if there is none: a quota of a day is over by then.
const PATIENCE_ALONE_MS: i64 = 2 * 86_400_000;
/// Jitter makes a wait that a provider asked for longer by up to this part of it: those who were told the same do not come back at
/// the same moment.
const JITTER_DIVISOR: i64 = 10;
/// And by no more than this.
const JITTER_MAX_MS: i64 = 5_000;

impl Turns {
    pub(super) fn failed(&mut self, failure: Failure, now_ms: i64) -> Vec<Effect> {
        let turn = match &mut self.phase {
            Phase::Turn(turn) => turn,
            Phase::Shortening => return self.end(End::Failed(failure)),
            _ => return Vec::new(),
        };
        // The answer has made calls already: the model is asked again with their results.
        if !turn.calls.is_empty() {
            turn.spoken = true;
            return self.go_on(now_ms);
        }
        match failure.kind {
            FailureKind::Overflow if !self.shortened => {
                self.phase = Phase::Shortening;
                return vec![Effect::Shorten];
            }
            FailureKind::Overflow => return self.end(End::Overflow),
            FailureKind::Busy(Some(after_ms)) => {
                if let Some(pause) = self.asked_pause(after_ms) {
                    return self.rest(now_ms.saturating_add(pause));
                }
            }
            FailureKind::Busy(None) | FailureKind::Away | FailureKind::Odd if self.failures + 1 < ATTEMPTS_MAX => {
                let pause = self.backoff(self.failures);
                self.failures += 1;
                return self.rest(now_ms.saturating_add(pause));
            }
            _ => {}
        }
        if self.model < self.limits.fallbacks {
            (self.model, self.failures, self.waits) = (self.model + 1, 0, Waits::default());
            return self.ask(now_ms);
        }
        self.end(End::Failed(failure))
    }

    fn rest(&mut self, until_ms: i64) -> Vec<Effect> {
        self.phase = Phase::Resting;
        vec![Effect::Rest(until_ms)]
    }

    /// How long to wait before the model is asked again, by exponential backoff with jitter.
    fn backoff(&mut self, failures: u32) -> i64 {
        let pause = BACKOFF_FIRST_MS.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX_MS);
        pause - self.jitter(pause / 2)
    }

    /// How long to wait if the provider asked for a wait (`retry-after`): never less than it said. None if all its
    /// waits together are too long: then the next model is asked, or the run ends.
    fn asked_pause(&mut self, after_ms: i64) -> Option<i64> {
        let patience = if self.model < self.limits.fallbacks { PATIENCE_MS } else { PATIENCE_ALONE_MS };
        // Whoever says "at once" again and again is not believed.
        let least = if self.waits.count == 0 { 0 } else { self.backoff(self.waits.count - 1) / 2 };
        let pause = after_ms.max(least);
        let asked_ms = self.waits.asked_ms.saturating_add(pause);
        if asked_ms > patience {
            return None;
        }
        self.waits = Waits { count: self.waits.count + 1, asked_ms };
        Some(pause + self.jitter((after_ms / JITTER_DIVISOR).min(JITTER_MAX_MS)))
    }

    /// A number from nought up to this, by chance that the seed decides (`SplitMix64`).
    fn jitter(&mut self, most: i64) -> i64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let most = u64::try_from(most).unwrap_or_default();
        i64::try_from(mixed % (most + 1)).unwrap_or_default()
    }
}
