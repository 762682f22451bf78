//! Which pieces have a word, and how often: what BM25 is counted from.

use super::rank::Weights;
use super::words::Counted;
use std::collections::HashMap;

/// The pieces that have a word.
#[derive(Debug, Clone, Default)]
struct Posting {
    /// By place, in the order they came.
    places: Vec<u32>,
    counts: Vec<u8>,
    /// How many of them are there still.
    alive: u32,
}

/// All words.
#[derive(Debug, Clone, Default)]
pub(super) struct Postings {
    words: HashMap<u32, Posting>,
    /// How long each piece is; zero where there is none any more.
    lengths: Vec<u32>,
    total: u64,
    alive: u32,
}

impl Postings {
    /// Adds a piece, at the next place.
    pub(super) fn push(&mut self, counted: &Counted) {
        let place = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        for (word, count) in &counted.words {
            let posting = self.words.entry(*word).or_default();
            posting.places.push(place);
            posting.counts.push(*count);
            posting.alive += 1;
        }
        // A piece without a word has a length all the same: it is there.
        self.lengths.push(counted.length.max(1));
        self.total += u64::from(counted.length.max(1));
        self.alive += 1;
    }

    /// Takes a piece out. Its words stay where they are until everything is packed, and count for nothing.
    pub(super) fn remove(&mut self, place: usize) {
        let Some(length) = self.lengths.get_mut(place).filter(|length| **length > 0) else { return };
        self.total -= u64::from(*length);
        *length = 0;
        self.alive -= 1;
    }

    pub(super) fn is_alive(&self, place: usize) -> bool {
        self.lengths.get(place).is_some_and(|length| *length > 0)
    }

    /// How rare a word is: what having it is worth.
    #[expect(clippy::cast_precision_loss, reason = "counts of pieces")]
    pub(super) fn worth(&self, word: u32) -> f32 {
        let have = self.words.get(&word).map_or(0.0, |posting| posting.alive.min(self.alive) as f32);
        ((self.alive as f32 - have + 0.5) / (have + 0.5)).ln_1p()
    }

    /// What each piece has of these words, and the most that any could have.
    #[expect(clippy::cast_precision_loss, reason = "counts of words")]
    pub(super) fn scores(&self, words: &[u32], weights: &Weights) -> (Vec<f32>, f32) {
        let (mut scores, mut most) = (vec![0.0_f32; self.lengths.len()], 0.0_f32);
        let average = (self.total as f32 / self.alive.max(1) as f32).max(1.0);
        let Weights { k1, b, .. } = *weights;
        let norms: Vec<f32> = self.lengths.iter().map(|length| k1 * (1.0 - b + b * *length as f32 / average)).collect();
        for word in words {
            let worth = self.worth(*word);
            most += worth * (k1 + 1.0);
            let Some(posting) = self.words.get(word) else { continue };
            for (place, count) in posting.places.iter().zip(&posting.counts) {
                let (place, count) = (*place as usize, f32::from(*count));
                scores[place] += worth * count * (k1 + 1.0) / (count + norms[place]);
            }
        }
        (scores, most)
    }
}
