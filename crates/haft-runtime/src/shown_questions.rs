//! What stored questions looked like when they were shown, so that a decision about what is not there any more is answered
//! with what has changed since.

use crate::approver::Question;
use haft_core::CallId;
use haft_core::executed::{ExecutedFile, described};
use haft_core::record::Digest;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of how many questions it is known what was shown; of more, of the latest.
const QUESTIONS_MAX: usize = 256;
/// How many looks of one question are known.
const LOOKS_MAX: usize = 16;

/// A question as somebody was shown it.
#[derive(Debug, Clone, PartialEq)]
struct ShownQuestion {
    face: Digest,
    basis: Digest,
    arguments: Digest,
    places: Vec<String>,
    executed: Vec<ExecutedFile>,
    changes: Option<Digest>,
    tried: Option<String>,
}

impl ShownQuestion {
    fn of(question: &Question) -> Self {
        Self {
            face: question.face(),
            basis: question.basis,
            arguments: Digest::of(format!("{} {}", question.tool, question.args).as_bytes()),
            places: question.places.clone(),
            executed: question.executed.files.clone(),
            changes: question.shown,
            tried: question.tried.clone(),
        }
    }

    /// What is otherwise now.
    fn differences(&self, question: &Question) -> String {
        let now = Self::of(question);
        let executed = match described(&question.executed.changed_since(&self.executed)) {
            none if none.is_empty() => none,
            files => format!("what it runs has changed: {files}"),
        };
        let mut all: Vec<&str> = Some(executed.as_str()).filter(|text| !text.is_empty()).into_iter().collect();
        if self.arguments != now.arguments {
            all.push("its arguments were edited");
        }
        if self.places != now.places {
            all.push("its paths lead elsewhere");
        }
        if self.tried != now.tried {
            all.push("it was tried");
        } else if self.changes != now.changes {
            all.push("its diff is different now, because the files changed");
        }
        if all.is_empty() {
            all.push("its tool, or the policy, has changed");
        }
        all.join("; ")
    }
}

/// What was shown, by the calls that were asked about.
#[derive(Debug, Default)]
pub(crate) struct ShownQuestions(Mutex<BTreeMap<CallId, VecDeque<ShownQuestion>>>);

impl ShownQuestions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<CallId, VecDeque<ShownQuestion>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that somebody is shown a question.
    pub(crate) fn note(&self, question: &Question) {
        let shown = ShownQuestion::of(question);
        let mut all = self.all();
        if all.len() >= QUESTIONS_MAX && !all.contains_key(&question.call_id) {
            // Ids sort by time.
            all.pop_first();
        }
        let looks = all.entry(question.call_id.clone()).or_default();
        looks.retain(|known| known.face != shown.face);
        if looks.len() >= LOOKS_MAX {
            looks.pop_front();
        }
        looks.push_back(shown);
    }

    /// What has changed since a question had this face; none if it was never shown with it here.
    pub(crate) fn changed_since_face(&self, face: &str, now: &Question) -> Option<String> {
        self.changed_since(now, |shown| shown.face.to_string() == face)
    }

    /// The same for this basis.
    pub(crate) fn changed_since_basis(&self, basis: &str, now: &Question) -> Option<String> {
        self.changed_since(now, |shown| shown.basis.to_string() == basis)
    }

    fn changed_since(&self, now: &Question, is_meant: impl Fn(&ShownQuestion) -> bool) -> Option<String> {
        let all = self.all();
        let then = all.get(&now.call_id)?.iter().rev().find(|shown| is_meant(shown))?;
        Some(then.differences(now))
    }
}
