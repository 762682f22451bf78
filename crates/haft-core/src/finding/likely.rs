//! Which words of tools a word of a question may stand for, and how much each counts.

use super::index::Meaning;
use super::postings::{Postings, letters};
use super::synonyms;
use super::weights::Weights;
use crate::memory::{Vectors, spelled};

/// A question with more words has been asked.
const WORDS_MAX: usize = 32;
/// A shorter beginning is the beginning of too much.
const BEGINNING_MIN: usize = 3;
/// So many words that begin alike, that are spelled nearly so, or that are near are looked at.
const ALIKE_MAX: usize = 8;
/// Among more words than this, those near to one are found by a quick look first.
const CLOSELY: usize = 1024;
/// How many of them are then looked at closely.
const PROMISING: usize = 192;

/// One word of a question.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Term {
    /// What it is worth.
    pub(super) worth: f32,
    /// The words of tools that it stands for, and how much each counts.
    pub(super) likely: Vec<(u32, f32)>,
}

/// The words of a question, each once, and those of them that say something.
fn asked(text: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    spelled(text, |whole, stem| {
        if all.len() < WORDS_MAX && !all.iter().any(|(_, other)| other == stem) {
            all.push((whole.to_owned(), stem.to_owned()));
        }
    });
    let telling: Vec<_> = all.iter().filter(|(whole, _)| !synonyms::says_nothing(whole)).cloned().collect();
    if telling.is_empty() { all } else { telling }
}

/// A question without the words that say nothing.
pub(super) fn telling(text: &str) -> String {
    asked(text).into_iter().map(|(whole, _)| whole).collect::<Vec<_>>().join(" ")
}

/// What a question asks for.
pub(super) fn terms(
    text: &str,
    postings: &Postings,
    (vectors, meaning): (&Vectors, Option<Meaning<'_>>),
    weights: &Weights,
) -> Vec<Term> {
    let everywhere: Vec<usize> = if meaning.is_some() { (0..postings.len()).collect() } else { Vec::new() };
    let term = |(whole, stem): (String, String)| {
        let exact = postings.get(&stem);
        let mut likely: Vec<(u32, f32)> = exact.map(|number| (number, 1.0)).into_iter().collect();
        begun(&stem, postings, weights, &mut likely);
        // A word that is known is what it says, although no tool has it.
        if exact.is_none() && !meaning.is_some_and(|meaning| (meaning.knows)(&whole)) {
            misspelled(&stem, postings, weights, &mut likely);
        }
        same(&whole, postings, weights, &mut likely);
        // What nobody can read means nothing.
        if let Some(meaning) = meaning.filter(|_| whole.len() > 2) {
            let vector = (meaning.of)(&whole);
            akin((vectors, &vector), &everywhere, weights, &mut likely);
        }
        let worth = likely.iter().map(|(number, much)| postings.worth(Some(*number)) * much.sqrt());
        let worth = exact.map_or_else(|| worth.fold(0.0, f32::max), |number| postings.worth(Some(number)));
        Term { worth: if likely.is_empty() { postings.worth(None) / 2.0 } else { worth }, likely }
    };
    asked(text).into_iter().map(term).collect()
}

/// Adds a word, or lets it count more.
fn put(likely: &mut Vec<(u32, f32)>, number: u32, much: f32) {
    match likely.iter_mut().find(|(other, _)| *other == number) {
        Some((_, known)) => *known = known.max(much),
        None => likely.push((number, much)),
    }
}

/// Words in names that begin with a word, and words that it begins with.
fn begun(stem: &str, postings: &Postings, weights: &Weights, likely: &mut Vec<(u32, f32)>) {
    let count = stem.chars().count();
    if count < BEGINNING_MIN {
        return;
    }
    let longer = postings.from(stem).take_while(|(other, _)| other.starts_with(stem)).take(ALIKE_MAX * 8);
    let named = longer.filter(|(other, number)| *other != stem && postings.word(*number).named);
    for (_, number) in named.take(ALIKE_MAX) {
        // Whoever types three letters of twelve may mean anything.
        let share = f32::from(u8::try_from(count).unwrap_or(u8::MAX)) / f32::from(postings.word(number).length);
        put(likely, number, weights.begins * share.sqrt());
    }
    for (at, _) in stem.char_indices().skip(count.div_ceil(2).max(4)) {
        if let Some(number) = postings.get(&stem[..at]) {
            put(likely, number, weights.begins);
        }
    }
}

/// Words that are spelled nearly so.
fn misspelled(stem: &str, postings: &Postings, weights: &Weights, likely: &mut Vec<(u32, f32)>) {
    let count = stem.chars().count();
    let reach = match count {
        0..=3 => return,
        4..=7 => 1,
        _ => 2_usize,
    };
    let (own, mut found) = (letters(stem), Vec::new());
    for (other, number) in postings.all() {
        let word = postings.word(number);
        if usize::from(word.length).abs_diff(count) > reach
            || (word.letters ^ own).count_ones() as usize > 2 * reach
            || word.length < 4
        {
            continue;
        }
        let distance = strsim::osa_distance(stem, other);
        if distance <= reach {
            found.push((distance, !word.named, number));
        }
    }
    found.sort_unstable();
    let nearest = found.first().map_or(0, |(distance, ..)| *distance);
    for (_, _, number) in found.into_iter().take_while(|(distance, ..)| *distance == nearest).take(ALIKE_MAX) {
        put(likely, number, if nearest == 1 { weights.misspelled } else { weights.misspelled / 2.0 });
    }
}

/// Words that mean the same.
fn same(whole: &str, postings: &Postings, weights: &Weights, likely: &mut Vec<(u32, f32)>) {
    if weights.synonym <= 0.0 {
        return;
    }
    for other in synonyms::of(whole) {
        spelled(other, |_, stem| {
            if let Some(number) = postings.get(stem) {
                put(likely, number, weights.synonym);
            }
        });
    }
}

/// Words whose vectors are near.
fn akin((vectors, vector): (&Vectors, &[i8]), everywhere: &[usize], weights: &Weights, likely: &mut Vec<(u32, f32)>) {
    let (most, least) = weights.akin;
    if most <= 0.0 {
        return;
    }
    let chosen = (everywhere.len() > CLOSELY).then(|| vectors.near(vector, everywhere, PROMISING));
    let places = chosen.as_deref().unwrap_or(everywhere);
    let mut near: Vec<(f32, usize)> =
        vectors.likeness(vector, places).zip(places).map(|(cosine, place)| (cosine, *place)).collect();
    near.retain(|(cosine, _)| *cosine > least);
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (cosine, place) in near.into_iter().take(ALIKE_MAX * 2) {
        let much = most * ((cosine - least) / (1.0 - least)).min(1.0);
        put(likely, u32::try_from(place).unwrap_or(u32::MAX), much);
    }
}
