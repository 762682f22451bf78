//! All pieces, held so that the best for a question are found in milliseconds. Every piece is looked at by its words. By
//! its meaning, too, where there are not many; otherwise those that a quick look at all of them finds promising.

use super::postings::Postings;
use super::rank::{Source, Weights};
use super::vectors::Vectors;
use super::words::Counted;
use std::collections::HashMap;

/// So many places may be empty before everything is packed.
const EMPTY_MAX: usize = 1024;

/// Of more pieces than this, the meaning is looked at closely only where a quick look is promising.
const CLOSELY: usize = 8192;
/// How many are promising by their meaning, and how many by their words.
const PROMISING: (usize, usize) = (2048, 1024);

/// A piece, as far as finding it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the store.
    pub id: i64,
    /// A number for its namespace.
    pub namespace: u32,
    /// When it was written.
    pub at_ms: i64,
    /// Its tags, as numbers of words.
    pub tags: Vec<u32>,
    /// Its words.
    pub words: Counted,
    /// Its meaning.
    pub vector: Option<Vec<i8>>,
}

/// Pieces that can be found.
#[derive(Debug, Clone, Default)]
pub struct Index {
    places: Vec<Entry>,
    by_id: HashMap<i64, usize>,
    postings: Postings,
    vectors: Vectors,
}

/// A question.
pub struct Asked<'q> {
    /// Its words, each once.
    pub words: &'q [u32],
    /// Its meaning, unless words alone count.
    pub vector: Option<&'q [i8]>,
    /// Whether a piece is wanted at all.
    pub wanted: &'q dyn Fn(&Entry) -> bool,
    /// How many, at the most.
    pub limit: usize,
    /// What counts how much.
    pub weights: Weights,
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The piece's number in the store.
    pub id: i64,
    /// How well it answers, from 0 to 1.
    pub score: f32,
    /// What it was found by.
    pub source: Source,
}

impl Index {
    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Up to so many pieces that have no vector, oldest first.
    pub fn missing(&self, most: usize) -> Vec<i64> {
        let all = self.places.iter().enumerate();
        let missing = all.filter(|(place, _)| !self.vectors.has(*place) && self.postings.is_alive(*place));
        missing.map(|(_, place)| place.id).take(most).collect()
    }

    /// Whether a piece is there.
    pub fn has(&self, id: i64) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Gives a piece its vector.
    pub fn set_vector(&mut self, id: i64, vector: &[i8]) {
        if let Some(place) = self.by_id.get(&id) {
            self.vectors.set(*place, vector);
        }
    }

    /// Adds a piece, in place of one with its number.
    pub fn insert(&mut self, mut entry: Entry) {
        self.remove(entry.id);
        self.postings.push(&entry.words);
        self.vectors.grow();
        let place = self.places.len();
        if let Some(vector) = entry.vector.take() {
            self.vectors.set(place, &vector);
        }
        // Held once is enough.
        entry.words = Counted::default();
        self.by_id.insert(entry.id, place);
        self.places.push(entry);
    }

    /// Takes a piece out.
    pub fn remove(&mut self, id: i64) {
        let Some(place) = self.by_id.remove(&id) else { return };
        self.postings.remove(place);
        self.vectors.clear(place);
    }

    /// The pieces of a namespace.
    pub fn ids_of(&self, namespace: u32) -> Vec<i64> {
        let of = |(id, place): (&i64, &usize)| (self.places[*place].namespace == namespace).then_some(*id);
        self.by_id.iter().filter_map(of).collect()
    }

    /// How rare a word is: what having it is worth.
    pub fn worth(&self, word: u32) -> f32 {
        self.postings.worth(word)
    }

    /// Whether so much has been taken out that it should be made anew.
    pub fn is_loose(&self) -> bool {
        self.places.len() - self.by_id.len() > EMPTY_MAX.max(self.by_id.len())
    }

    /// The best answers, best first; of equals, the newer.
    pub fn search(&self, asked: &Asked<'_>) -> Vec<Hit> {
        let (scores, most) = self.postings.scores(asked.words, &asked.weights);
        let there = |place: &usize| self.postings.is_alive(*place) && (asked.wanted)(&self.places[*place]);
        let places: Vec<usize> = (0..self.places.len()).filter(there).collect();
        let cosines = asked.vector.map(|vector| {
            let chosen = (places.len() > CLOSELY).then(|| self.promising(vector, &places, &scores));
            self.vectors.cosines(vector, chosen.as_ref().unwrap_or(&places))
        });
        let mut best: Vec<(f32, i64, usize, Source)> = Vec::with_capacity(asked.limit * 2 + 1);
        let mut least = f32::MIN;
        for number in places {
            let score = &scores[number];
            let cosine = cosines.as_ref().map_or(0.0, |all| all[number]);
            let Some(source) = Source::of(*score, cosine, asked.weights.like) else { continue };
            let keyword = if most > 0.0 { score / most } else { 0.0 };
            let score = asked.weights.score(keyword, cosine, cosines.is_some());
            let entry = &self.places[number];
            if score < least {
                continue;
            }
            best.push((score, entry.at_ms, number, source));
            if best.len() > asked.limit * 2 {
                cut(&mut best, asked.limit);
                least = best.last().map_or(f32::MIN, |(score, ..)| *score);
            }
        }
        cut(&mut best, asked.limit);
        let hit =
            |(score, _, number, source): (f32, i64, usize, Source)| Hit { id: self.places[number].id, score, source };
        best.into_iter().map(hit).collect()
    }
}

impl Index {
    /// Places that may be among the best: those nearest in meaning, and those with the best words.
    fn promising(&self, vector: &[i8], places: &[usize], scores: &[f32]) -> Vec<usize> {
        let mut chosen = self.vectors.near(vector, places, PROMISING.0);
        let mut with: Vec<f32> = places.iter().map(|place| scores[*place]).filter(|score| *score > 0.0).collect();
        let least = if with.len() > PROMISING.1 {
            *with.select_nth_unstable_by(PROMISING.1, |a, b| b.total_cmp(a)).1
        } else {
            0.0
        };
        chosen.extend(places.iter().copied().filter(|place| scores[*place] > least));
        chosen
    }
}

/// Keeps the best, in order.
fn cut(best: &mut Vec<(f32, i64, usize, Source)>, limit: usize) {
    best.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
    best.truncate(limit);
}

#[cfg(test)]
mod tests {
    use super::super::{hash, narrowed, words};
    use super::*;

    fn entry(id: i64, text: &str, vector: Option<&[f32]>) -> Entry {
        let tags = Vec::new();
        let vector = vector.map(narrowed);
        Entry { id, namespace: u32::from(id > 10), at_ms: id, tags, words: Counted::of(&[text]), vector }
    }

    fn found(index: &Index, text: &str, vector: Option<&[f32]>) -> Vec<(i64, Source)> {
        let mut asked = Vec::new();
        words(text, |word| asked.push(hash(word)));
        let vector = vector.map(narrowed);
        let wanted = |_: &Entry| true;
        let weights = Weights::default();
        let asked = Asked { words: &asked, vector: vector.as_deref(), wanted: &wanted, limit: 3, weights };
        let hits = index.search(&asked);
        assert!(hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
        assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
        hits.iter().map(|hit| (hit.id, hit.source)).collect()
    }

    #[test]
    fn rare_words_count_more_and_what_is_gone_is_gone() {
        let mut index = Index::default();
        for (id, text) in [(1, "the cat"), (2, "the dog"), (3, "the the the"), (4, "the zebra"), (5, "dogs and cats")] {
            index.insert(entry(id, text, None));
        }
        assert_eq!(found(&index, "the zebra", None)[0].0, 4);
        index.remove(4);
        assert!(found(&index, "zebra", None).is_empty());
        index.insert(entry(2, "the fish", None));
        assert_eq!(found(&index, "dog", None), [(5, Source::Keyword)]);
        assert_eq!((index.len(), index.missing(9)), (4, vec![1, 3, 5, 2]));
        assert!(found(&index, "", None).is_empty() && found(&index, "unheard", None).is_empty());
    }

    #[test]
    fn among_many_the_same_is_found() {
        let mut index = Index::default();
        let mut seed = 7_u32;
        let mut any = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u8::try_from(seed >> 24).unwrap()) - 127.5
        };
        let mut vectors: Vec<Vec<f32>> = (0..CLOSELY + 500).map(|_| (0..64).map(|_| any()).collect()).collect();
        // One is nearly what is asked for, in other words; and one has the word.
        let wanted = vectors[77].clone();
        vectors[4000] = wanted.iter().map(|x| x * 2.0 + 1.0).collect();
        for (id, vector) in (0..).zip(&vectors) {
            index.insert(entry(id, if id == 5000 { "zebra" } else { "horse" }, Some(vector)));
        }
        let ids: Vec<i64> = found(&index, "zebra", Some(&wanted)).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [5000, 77, 4000]);
    }

    #[test]
    fn meaning_finds_what_words_do_not() {
        let mut index = Index::default();
        index.insert(entry(1, "automobile", Some(&[1.0, 0.1, 0.0])));
        index.insert(entry(2, "car", Some(&[0.9, 0.2, 0.0])));
        index.insert(entry(3, "pear", Some(&[0.0, 0.1, 1.0])));
        assert_eq!(found(&index, "car", Some(&[1.0, 0.2, 0.0])), [(2, Source::Both), (1, Source::Vector)]);
        assert!(index.missing(9).is_empty());
        assert_eq!(index.ids_of(0).len(), 3);
    }
}
