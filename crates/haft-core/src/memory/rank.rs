//! How much the words of a piece and its meaning count.
//!
//! Plain fusion of ranks loses to words alone on many collections, because a weak list counts as much as a strong one.
//! Here scores are added, each on a scale of its own from 0 to 1, with weights that were tuned on one half of a labelled
//! set and reported on the other (`docs/memory.md`).

use serde::Serialize;

/// What counts how much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// How fast more of a word stops counting.
    pub k1: f32,
    /// How much the length of a piece counts.
    pub b: f32,
    /// How much of the score is meaning.
    pub meaning: f32,
    /// A piece with none of the words has to be so like the question.
    pub like: f32,
}

impl Default for Weights {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75, meaning: 0.3, like: 0.3 }
    }
}

/// What a piece was found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Its words.
    Keyword,
    /// Its meaning.
    Vector,
    /// Both.
    Both,
}

impl Source {
    /// By which of both.
    pub(super) fn of(keyword: f32, cosine: f32, like: f32) -> Option<Self> {
        match (keyword > 0.0, cosine >= like) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Keyword),
            (false, true) => Some(Self::Vector),
            (false, false) => None,
        }
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keyword => "keyword",
            Self::Vector => "vector",
            Self::Both => "both",
        }
    }
}

impl Weights {
    /// The score of a piece, from 0 to 1: `keyword` is its share of what the best piece for these words could have.
    pub(super) fn score(&self, keyword: f32, cosine: f32, by_meaning: bool) -> f32 {
        let fused =
            if by_meaning { keyword.mul_add(1.0 - self.meaning, self.meaning * cosine.max(0.0)) } else { keyword };
        fused.clamp(0.0, 1.0)
    }
}
