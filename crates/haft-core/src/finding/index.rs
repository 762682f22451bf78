//! All tools, held so that the best for a question are found in a millisecond.

use super::card::{Card, FIELDS, plain, tail};
use super::likely::{Term, telling, terms};
use super::postings::Postings;
use super::weights::Weights;
use crate::memory::Vectors;
use std::collections::{BinaryHeap, HashMap};

/// So many places may be empty before everything should be made anew.
const EMPTY_MAX: usize = 512;
/// Among more tools than this, meaning is looked at closely only where a quick look is promising.
const CLOSELY: usize = 2048;
/// How many are promising by their meaning.
const PROMISING: usize = 512;

/// Who makes vectors of texts.
#[derive(Clone, Copy)]
pub struct Meaning<'m> {
    /// The vector of a text.
    pub of: &'m dyn Fn(&str) -> Vec<i8>,
    /// Whether a word is known as it is spelled.
    pub knows: &'m dyn Fn(&str) -> bool,
}

/// Tools that can be found.
#[derive(Debug, Clone, Default)]
pub struct Index {
    names: Vec<Box<str>>,
    by_name: HashMap<Box<str>, usize>,
    /// Places by names without what separates words: whole, aliases, and as they are called where they come from.
    exact: HashMap<Box<str>, Vec<(u8, usize)>>,
    postings: Postings,
    /// The meaning of each tool, and of each word.
    tools: Vectors,
    words: Vectors,
}

/// A question.
pub struct Asked<'q> {
    /// In words.
    pub text: &'q str,
    /// Who makes vectors, unless words alone count.
    pub meaning: Option<Meaning<'q>>,
    /// Whether a tool is wanted at all. Only the best are asked about.
    pub wanted: &'q dyn Fn(&str) -> bool,
    /// How many, at the most.
    pub limit: usize,
    /// What counts how much.
    pub weights: &'q Weights,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// How well it fits: up to 1, and more where it was named.
    pub score: f32,
}

/// How a tool was named: by its name, another dialect's, or the one it has where it comes from.
const WHOLE: u8 = 3;
const ALIAS: u8 = 2;
const TAIL: u8 = 1;

impl Index {
    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Adds a tool, in the place of one with its name.
    pub fn insert(&mut self, card: &Card, meaning: Option<Meaning<'_>>) {
        self.remove(&card.name);
        let place = self.names.len();
        let new = self.postings.push(&card.fields());
        self.tools.grow();
        for number in new {
            self.words.grow();
            if let Some(meaning) = meaning {
                self.words.set(number as usize, &(meaning.of)(&self.postings.word(number).spelled));
            }
        }
        if let Some(meaning) = meaning {
            self.tools.set(place, &(meaning.of)(&card.meaning()));
        }
        self.names.push(card.name.as_str().into());
        self.by_name.insert(card.name.as_str().into(), place);
        let named = [(WHOLE, card.name.as_str()), (TAIL, tail(&card.name))];
        for (how, name) in named.into_iter().chain(card.aliases.iter().map(|alias| (ALIAS, alias.as_str()))) {
            self.exact.entry(plain(name).into()).or_default().push((how, place));
        }
    }

    /// Takes a tool out.
    pub fn remove(&mut self, name: &str) {
        let Some(place) = self.by_name.remove(name) else { return };
        self.postings.remove(place);
        self.tools.clear(place);
    }

    /// Whether so much has been taken out that it should be made anew.
    pub fn is_loose(&self) -> bool {
        self.names.len() - self.by_name.len() > EMPTY_MAX.max(self.by_name.len())
    }

    /// The best tools, best first; of equals, by name.
    pub fn search(&self, asked: &Asked<'_>) -> Vec<Found> {
        let Asked { text, meaning, weights, .. } = *asked;
        let terms = terms(text, &self.postings, (&self.words, meaning), weights);
        let mut scores = self.by_words(&terms, weights);
        if let Some(meaning) = meaning {
            self.add_meaning(&mut scores, &(meaning.of)(&telling(text)), weights);
        }
        for (place, bonus) in self.named(text) {
            scores[place] = scores[place].max(0.0) + bonus;
        }
        let fits = scores.iter().enumerate().filter(|(place, score)| **score > 0.0 && self.postings.is_alive(*place));
        // A score above zero keeps its order as bits.
        let mut best: BinaryHeap<(u32, std::cmp::Reverse<&str>)> =
            fits.map(|(place, score)| (score.to_bits(), std::cmp::Reverse(&*self.names[place]))).collect();
        let mut found = Vec::with_capacity(asked.limit);
        while found.len() < asked.limit
            && let Some((score, std::cmp::Reverse(name))) = best.pop()
        {
            if (asked.wanted)(name) {
                found.push(Found { name: name.to_owned(), score: f32::from_bits(score) });
            }
        }
        found
    }

    /// How much of what was asked for each tool has in words, from 0 to 1.
    fn by_words(&self, terms: &[Term], weights: &Weights) -> Vec<f32> {
        let mut scores = vec![0.0_f32; self.postings.places()];
        let averages: [f32; FIELDS] = self.postings.averages();
        let all = terms.iter().map(|term| term.worth).sum::<f32>().max(f32::MIN_POSITIVE);
        let mut best = vec![0.0_f32; scores.len()];
        for term in terms {
            let mut touched = Vec::new();
            for (number, much) in &term.likely {
                // A rare word that is only like the one asked for is not worth more than that.
                let worth = self.postings.worth(Some(*number)).min(term.worth) * much / all;
                self.postings.each(*number, &averages, weights, |place, share| {
                    if best[place] <= 0.0 {
                        touched.push(place);
                    }
                    best[place] = best[place].max(worth * share);
                });
            }
            for place in touched {
                scores[place] += std::mem::take(&mut best[place]);
            }
        }
        scores
    }

    /// Adds how like the question each tool is. Those with no word and little likeness stay at nothing.
    fn add_meaning(&self, scores: &mut [f32], vector: &[i8], weights: &Weights) {
        let all: Vec<usize> = (0..scores.len()).collect();
        let chosen = (all.len() > CLOSELY).then(|| {
            let mut chosen = self.tools.near(vector, &all, PROMISING);
            let least = least_of(scores, PROMISING);
            chosen.extend(all.iter().filter(|place| scores[**place] > least));
            chosen.sort_unstable();
            chosen.dedup();
            chosen
        });
        let places = chosen.as_ref().unwrap_or(&all);
        for score in &mut *scores {
            *score *= 1.0 - weights.meaning;
        }
        for (cosine, place) in self.tools.likeness(vector, places).zip(places) {
            if scores[*place] > 0.0 || cosine >= weights.like {
                scores[*place] += weights.meaning * cosine.max(0.0);
            }
        }
    }

    /// The tools that are named by the question, and what that is worth.
    fn named(&self, text: &str) -> Vec<(usize, f32)> {
        let text = text.trim();
        let plain_text = plain(text);
        let Some(places) = self.exact.get(plain_text.as_str()).filter(|_| !plain_text.is_empty()) else {
            return Vec::new();
        };
        // `search` is a word; `list_issues` and `listIssues` are names.
        let name = text.contains(['_', '.', '-', ':']) || text.chars().skip(1).any(char::is_uppercase);
        let counts = |how: u8| how > TAIL || (name && !text.contains(' '));
        let mut best: HashMap<usize, u8> = HashMap::new();
        for (how, place) in places.iter().filter(|(how, _)| counts(*how)) {
            let known = best.entry(*place).or_default();
            *known = (*known).max(*how);
        }
        best.into_iter().map(|(place, how)| (place, f32::from(how))).collect()
    }
}

/// The least that one of the best so many has.
fn least_of(scores: &[f32], best: usize) -> f32 {
    let mut with: Vec<f32> = scores.iter().copied().filter(|score| *score > 0.0).collect();
    if with.len() > best { *with.select_nth_unstable_by(best, |a, b| b.total_cmp(a)).1 } else { 0.0 }
}
