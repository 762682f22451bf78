//! Whether a model goes round in circles: the same call with the same result again and again, or the same two or three rounds
//! of calls in turn.

use crate::record::Digest;
use std::collections::{BTreeMap, VecDeque};

/// How often the same is done before the model is told, and before it is stopped.
const REPEATS: (u32, u32) = (3, 5);
/// How many rounds a circle may have.
const ROUND: usize = 3;
/// What a model is told of one call.
const SAME: &str =
    "This very call has given this very result several times now. Do something else, or say what you need.";
/// What it is told of several.
const CIRCLE: &str = "These calls go round in a circle: the same ones have given the same results several times now. Do something else, or say what you need.";

/// What was called in the last rounds, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// The calls of the last round, with how many rounds in a row have had them.
    calls: BTreeMap<String, u32>,
    /// The last rounds, each as one: what was called in it, and what came of that.
    rounds: VecDeque<Digest>,
}

/// What a round says about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// What is told with the result of each call, in their order.
    pub(super) told: Vec<Option<&'static str>>,
    /// Whether it has gone on for long enough.
    pub(super) stuck: bool,
}

impl Repeats {
    /// Somebody has spoken: whatever comes now is new.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes in a round: its calls with their results.
    pub(super) fn round(&mut self, calls: &[String]) -> Found {
        if calls.is_empty() {
            self.clear();
            return Found::default();
        }
        let often = |call: &String| self.calls.get(call).copied().unwrap_or_default() + 1;
        // What was not repeated this time is no loop.
        let seen: BTreeMap<String, u32> = calls.iter().map(|call| (call.clone(), often(call))).collect();
        let mut told: Vec<_> = calls.iter().map(|call| (seen[call] >= REPEATS.0).then_some(SAME)).collect();
        let mut stuck = seen.values().any(|often| *often >= REPEATS.1);
        let whole: Vec<&str> = seen.keys().map(String::as_str).collect();
        self.rounds.push_back(Digest::of(whole.join("\n").as_bytes()));
        let most = ROUND * REPEATS.1 as usize;
        while self.rounds.len() > most {
            self.rounds.pop_front();
        }
        let circled = (2..=ROUND).map(|length| self.circled(length)).max().unwrap_or_default();
        stuck |= circled >= REPEATS.1;
        if circled >= REPEATS.0
            && let Some(last) = told.last_mut()
        {
            last.get_or_insert(CIRCLE);
        }
        self.calls = seen;
        Found { told, stuck }
    }

    /// How often the last rounds have been gone through, so many at a time. It counts where a circle closes.
    fn circled(&self, length: usize) -> u32 {
        let rounds: Vec<&Digest> = self.rounds.iter().rev().collect();
        let alike = rounds.iter().zip(rounds.iter().skip(length)).take_while(|(now, then)| now == then).count();
        let whole = alike + length;
        // All the same is no circle: that is counted call by call.
        let moves = rounds.iter().take(length).any(|round| Some(round) != rounds.first());
        if moves && whole.is_multiple_of(length) && whole <= rounds.len() {
            u32::try_from(whole / length).unwrap_or(u32::MAX)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// In which rounds a model is told, and in which it is stopped; each letter is a round with that one call.
    fn story(rounds: &str) -> (Vec<usize>, Option<usize>) {
        let (mut repeats, mut told) = (Repeats::default(), Vec::new());
        for (number, call) in (1..).zip(rounds.chars()) {
            let found = repeats.round(&[call.to_string()]);
            if found.told[0].is_some() {
                told.push(number);
            }
            if found.stuck {
                return (told, Some(number));
            }
        }
        (told, None)
    }

    #[test]
    fn circles_are_told_where_they_close_and_stopped_at_the_fifth() {
        for (rounds, told, stopped) in [
            ("aaaaaaa", vec![3, 4, 5], Some(5)),
            ("ababababababab", vec![6, 8, 10], Some(10)),
            ("abcabcabcabcabcabc", vec![9, 12, 15], Some(15)),
            ("xyzababababababab", vec![9, 11, 13], Some(13)),
            ("aabaabaabaabaab", vec![9, 12, 15], Some(15)),
            ("ababab", vec![6], None),
            ("abababcababab", vec![6, 13], None),
            // What differs in between is work, though something is looked at after each step of it.
            ("abacadaeafagahai", vec![], None),
            ("abcdabcdabcdabcdabcd", vec![], None),
            ("abcdefghij", vec![], None),
        ] {
            assert_eq!(story(rounds), (told, stopped), "{rounds}");
        }
    }

    #[test]
    fn a_round_of_several_calls_is_the_same_in_any_order() {
        let mut repeats = Repeats::default();
        let rounds = [["a", "b"], ["c", "d"], ["b", "a"], ["d", "c"], ["a", "b"], ["c", "d"]];
        let found = rounds.map(|round| repeats.round(&round.map(str::to_owned)));
        assert_eq!(found[5].told, [None, Some(CIRCLE)]);
        repeats.clear();
        assert_eq!(repeats.round(&["c".to_owned()]), Found { told: vec![None], stuck: false });
    }

    proptest! {
        #[test]
        fn nobody_who_gets_something_new_in_every_third_round_is_stopped(calls in "[ab]{0,60}") {
            let mut repeats = Repeats::default();
            for (number, call) in calls.chars().enumerate() {
                let what = if number % 3 == 2 { format!("{call} {number}") } else { call.to_string() };
                prop_assert!(!repeats.round(&[what]).stuck);
            }
        }

        #[test]
        fn every_circle_is_left(circle in "[a-c]{1,3}", before in "[x-z]{0,5}") {
            let rounds = before + &circle.repeat(6);
            prop_assert!(story(&rounds).1.is_some(), "{}", rounds);
        }
    }
}
