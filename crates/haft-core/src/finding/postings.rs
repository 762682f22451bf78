//! Which tools have a word, in which fields and how often.

use super::card::{FIELDS, NAME};
use super::weights::Weights;
use crate::memory::spelled;
use std::collections::BTreeMap;

/// A tool that has a word, and how often in each field.
#[derive(Debug, Clone, Copy)]
struct Posting {
    place: u32,
    counts: [u8; FIELDS],
}

/// A word that some tool has.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    postings: Vec<Posting>,
    /// How it was first spelled.
    pub(super) spelled: Box<str>,
    /// Which letters it has, to see quickly that another is not nearly the same.
    pub(super) letters: u32,
    /// How many characters.
    pub(super) length: u8,
    /// Whether it is in a name.
    pub(super) named: bool,
}

/// All words of all tools.
#[derive(Debug, Clone, Default)]
pub(super) struct Postings {
    /// Words by their stems, sorted so that those with one beginning are together.
    numbers: BTreeMap<Box<str>, u32>,
    words: Vec<Word>,
    /// How many words each field of each tool has; nothing where there is none any more.
    lengths: Vec<Option<[u16; FIELDS]>>,
    totals: [u64; FIELDS],
    alive: u32,
}

impl Postings {
    /// Adds a tool at the next place. Returns the words that are new.
    pub(super) fn push(&mut self, fields: &[String; FIELDS]) -> Vec<u32> {
        let place = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        let (mut lengths, mut new) = ([0_u16; FIELDS], Vec::new());
        for (field, text) in fields.iter().enumerate() {
            spelled(text, |whole, stem| {
                let number = self.number(whole, stem, &mut new);
                let word = &mut self.words[number as usize];
                word.named |= field == NAME;
                if word.postings.last().is_none_or(|last| last.place != place) {
                    word.postings.push(Posting { place, counts: [0; FIELDS] });
                }
                if let Some(last) = word.postings.last_mut() {
                    last.counts[field] = last.counts[field].saturating_add(1);
                }
                lengths[field] = lengths[field].saturating_add(1);
            });
        }
        self.totals.iter_mut().zip(lengths).for_each(|(total, length)| *total += u64::from(length));
        self.lengths.push(Some(lengths));
        self.alive += 1;
        new
    }

    fn number(&mut self, whole: &str, stem: &str, new: &mut Vec<u32>) -> u32 {
        if let Some(number) = self.numbers.get(stem) {
            return *number;
        }
        let number = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        self.numbers.insert(stem.into(), number);
        let length = u8::try_from(stem.chars().count()).unwrap_or(u8::MAX);
        self.words.push(Word { spelled: whole.into(), letters: letters(stem), length, ..Word::default() });
        new.push(number);
        number
    }

    /// Takes a tool out. Its words stay where they are until everything is made anew, and count for nothing.
    pub(super) fn remove(&mut self, place: usize) {
        let Some(lengths) = self.lengths.get_mut(place).and_then(Option::take) else { return };
        self.totals.iter_mut().zip(lengths).for_each(|(total, length)| *total -= u64::from(length));
        self.alive -= 1;
    }

    pub(super) fn is_alive(&self, place: usize) -> bool {
        self.lengths.get(place).is_some_and(Option::is_some)
    }

    /// How many places there are, empty ones too.
    pub(super) fn places(&self) -> usize {
        self.lengths.len()
    }

    /// The word with this stem.
    pub(super) fn get(&self, stem: &str) -> Option<u32> {
        self.numbers.get(stem).copied()
    }

    /// A word by its number.
    pub(super) fn word(&self, number: u32) -> &Word {
        &self.words[number as usize]
    }

    /// How many words there are.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// All stems in order from this one on.
    pub(super) fn from<'s>(&'s self, stem: &str) -> impl Iterator<Item = (&'s str, u32)> {
        let from = (std::ops::Bound::Included(stem), std::ops::Bound::Unbounded);
        self.numbers.range::<str, _>(from).map(|(stem, number)| (&**stem, *number))
    }

    /// All stems.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, u32)> {
        self.numbers.iter().map(|(stem, number)| (&**stem, *number))
    }

    /// How rare a word is: what having it is worth. Without one, that of a word that nobody has.
    #[expect(clippy::cast_precision_loss, reason = "counts of tools")]
    pub(super) fn worth(&self, number: Option<u32>) -> f32 {
        let have = number.map_or(0, |number| self.words[number as usize].postings.len());
        let (all, have) = (self.alive as f32, (have as f32).min(self.alive as f32));
        ((all - have + 0.5) / (have + 0.5)).ln_1p()
    }

    /// How much each field's length counts, on the average.
    #[expect(clippy::cast_precision_loss, reason = "counts of words")]
    pub(super) fn averages(&self) -> [f32; FIELDS] {
        self.totals.map(|total| (total as f32 / self.alive.max(1) as f32).max(1.0))
    }

    /// Hands over each tool that has a word, and how much it has of it, from 0 to 1.
    pub(super) fn each(
        &self,
        number: u32,
        averages: &[f32; FIELDS],
        weights: &Weights,
        mut each: impl FnMut(usize, f32),
    ) {
        let Weights { b, k1, .. } = *weights;
        for posting in &self.words[number as usize].postings {
            let place = posting.place as usize;
            let Some(lengths) = self.lengths[place] else { continue };
            let mut much = 0.0;
            for field in 0..FIELDS {
                if posting.counts[field] > 0 {
                    let long = 1.0 - b + b * f32::from(lengths[field]) / averages[field];
                    much += weights.fields[field] * f32::from(posting.counts[field]) / long;
                }
            }
            each(place, much / (much + k1));
        }
    }
}

/// Which letters a word has; other signs share the last bits.
pub(super) fn letters(word: &str) -> u32 {
    word.chars().fold(0, |bits, c| {
        let at = if c.is_ascii_lowercase() { u32::from(c) - u32::from('a') } else { 26 + u32::from(c) % 6 };
        bits | (1 << at)
    })
}
