//! What counts how much when a tool is looked for.

use super::card::FIELDS;

/// What counts how much. The defaults were chosen on one half of a labelled set and are reported on the other
/// (`BENCHMARKS.md`).
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// What a word is worth in the name, the aliases, the hint, the description, the parameters.
    pub fields: [f32; FIELDS],
    /// How much the length of a field counts.
    pub b: f32,
    /// How fast more of a word stops counting.
    pub k1: f32,
    /// What a word counts that begins with the one that was asked for, or the other way round.
    pub begins: f32,
    /// What a word counts that is spelled nearly so; half for two mistakes.
    pub misspelled: f32,
    /// What a synonym counts.
    pub synonym: f32,
    /// What a word counts that means the very same by its vector, and from which likeness on it counts at all.
    pub akin: (f32, f32),
    /// How much of the score is the meaning of the whole.
    pub meaning: f32,
    /// A tool with none of the words has to be so like the question.
    pub like: f32,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            fields: [6.0, 2.0, 2.0, 0.75, 0.4],
            b: 0.5,
            k1: 0.8,
            begins: 0.3,
            misspelled: 0.9,
            synonym: 0.7,
            akin: (0.4, 0.2),
            meaning: 0.7,
            like: 0.4,
        }
    }
}
