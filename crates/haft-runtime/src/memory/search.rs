//! Answering a question from all that is known.

use super::embedder::Embedder;
use super::{LEFT_ALONE, Memory, Room};
use crate::scene::Scene;
use crate::store_error;
use crate::tool::off_thread;
use haft_core::CallError;
use haft_core::memory::{Asked, Entry, Hit, Scope, Snippet, Source, Weights, hash, snippet, words};
use haft_store::ShownPiece;
use serde::Serialize;
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// A question with as many words as this has been asked.
const WORDS_MAX: usize = 64;

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// In words.
    pub query: String,
    /// Where.
    pub scope: Option<Scope>,
    /// In whose memory.
    pub(crate) room: Room,
    /// Not before.
    pub since_ms: Option<i64>,
    /// Not after.
    pub until_ms: Option<i64>,
    /// With all of these.
    pub tags: Vec<String>,
    /// How many answers.
    pub limit: usize,
    /// Whether words alone count.
    pub keyword_only: bool,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The namespace that it is in.
    pub namespace: String,
    /// The line, with one before and one after it.
    #[serde(flatten)]
    pub snippet: Snippet,
    /// What it was found by.
    pub source: Source,
    /// How well it answers, from 0 to 1.
    pub score: f64,
    /// When it was written.
    pub at_ms: i64,
    /// Its tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The whole piece, for who wants to read on.
    #[serde(skip)]
    pub piece: String,
    /// What whoever wrote it had heard.
    #[serde(skip)]
    pub label: Option<String>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Best first.
    pub answers: Vec<Answer>,
    /// What did not work, if words alone counted for that.
    pub warning: Option<String>,
}

impl Memory {
    /// The best answers. Whatever keeps meaning from counting is a warning; words always count.
    pub async fn search(self: &Arc<Self>, scene: &Scene, question: Question) -> Result<Found, CallError> {
        let mut warning = None;
        let embedder = if question.keyword_only { None } else { self.embedder().await };
        let mut vector = None;
        if let Some(embedder) = &embedder {
            match self.meaning(scene, embedder, &question.query).await {
                Ok(made) => vector = made,
                Err(why) => warning = Some(format!("words alone counted: {why}")),
            }
        }
        scene.halt().check()?;
        let model = self.model_held(embedder.as_ref().map(Embedder::model));
        self.sync(scene.store(), model.as_deref()).await?;
        let (memory, asked) = (Arc::clone(self), question.clone());
        let look = move || Ok(memory.look(&asked, vector.as_deref()));
        let (hits, worths) = off_thread(scene.halt().clone(), look).await?;
        let ids = hits.iter().map(|hit| hit.id).collect();
        let pieces = scene.store().memory_pieces(ids).await.map_err(store_error)?;
        let mut answers = Vec::new();
        let mut seen = HashSet::new();
        for piece in pieces {
            let Some(hit) = hits.iter().find(|hit| hit.id == piece.id) else { continue };
            let answer = answer(piece, *hit, &worths);
            // Pieces overlap, and may answer by the same line.
            if answers.len() < question.limit && seen.insert((answer.namespace.clone(), answer.snippet.line)) {
                answers.push(answer);
            }
        }
        Ok(Found { answers, warning })
    }

    /// The meaning of a question, after that of pieces that have none yet. Whoever failed is not asked again at once:
    /// every search would wait for it.
    async fn meaning(
        self: &Arc<Self>,
        scene: &Scene,
        embedder: &Embedder,
        query: &str,
    ) -> Result<Option<Vec<i8>>, String> {
        let alone = self.left_alone.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, why)) = alone.filter(|(until, _)| Instant::now() < *until) {
            return Err(why);
        }
        let made = match self.fill(scene, embedder).await {
            Ok(()) => embedder.embed(scene, vec![query.to_owned()]).await,
            Err(error) => Err(error),
        };
        made.map(|vectors| vectors.into_iter().next()).map_err(|error| {
            let until = Instant::now() + LEFT_ALONE;
            *self.left_alone.lock().unwrap_or_else(PoisonError::into_inner) = Some((until, error.message.clone()));
            error.message
        })
    }

    /// Words alone need no vectors, but those that are held stay.
    fn model_held(&self, model: Option<String>) -> Option<String> {
        model.or_else(|| self.held.read().unwrap_or_else(PoisonError::into_inner).model().map(str::to_owned))
    }

    /// The best pieces, and what each word of the question is worth.
    fn look(&self, question: &Question, vector: Option<&[i8]>) -> (Vec<Hit>, Vec<(u32, f32)>) {
        let mut asked = Vec::new();
        words(&question.query, |word| {
            let word = hash(word);
            if asked.len() < WORDS_MAX && !asked.contains(&word) {
                asked.push(word);
            }
        });
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let numbers = held.numbers_of(question.scope.as_ref(), &question.room);
        let tags: Vec<u32> = question.tags.iter().map(|tag| hash(&tag.to_lowercase())).collect();
        let wanted = |entry: &Entry| {
            numbers.as_ref().is_none_or(|numbers| numbers.contains(&entry.namespace))
                && question.since_ms.is_none_or(|since| entry.at_ms >= since)
                && question.until_ms.is_none_or(|until| entry.at_ms <= until)
                && tags.iter().all(|tag| entry.tags.contains(tag))
        };
        let limit = question.limit * 2;
        let asked = Asked { words: &asked, vector, wanted: &wanted, limit, weights: Weights::default() };
        let hits = held.index.search(&asked);
        (hits, asked.words.iter().map(|word| (*word, held.index.worth(*word))).collect())
    }
}

fn answer(piece: ShownPiece, hit: Hit, worths: &[(u32, f32)]) -> Answer {
    let worth = |word: u32| worths.iter().find(|(other, _)| *other == word).map_or(0.0, |(_, worth)| *worth);
    let ShownPiece { namespace, line, text, tags, at_ms, label, around: [before, after], .. } = piece;
    let last = line.saturating_add(u32::try_from(text.lines().count()).unwrap_or(u32::MAX)).saturating_sub(1);
    let in_line = |found: &Option<(u32, String)>, wanted: u32| {
        let (first, text) = found.as_ref()?;
        text.lines().nth(usize::try_from(wanted.checked_sub(*first)?).ok()?).map(str::to_owned)
    };
    let (above, below) = (in_line(&before, line.saturating_sub(1)), in_line(&after, last.saturating_add(1)));
    let snippet = snippet((&text, line), (above.as_deref(), below.as_deref()), worth);
    let score = (f64::from(hit.score) * 1000.0).round() / 1000.0;
    Answer { namespace, snippet, source: hit.source, score, at_ms, tags, piece: text, label }
}
