//! The approval chain: an ordered list of voices that each may say Allow, Ask or Deny about a call.
//!
//! The rule, in full: a Deny from anybody wins; otherwise the highest voice that has an opinion decides;
//! a voice that errs (or panics) makes the result at least Ask; if nobody has an opinion, it is Ask.
//! So adding a voice that denies can never loosen a verdict, and a broken voice can never open a door.

use crate::admit::{Checked, Facts};
use crate::policy::Policy;
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

mod decider;
mod lists;
mod manifest;
mod outward;
mod resolvers;
mod ruled;
mod skill;

pub use decider::{Decider, DeciderIdentity, DecisionRefused, DecisionRight, DecisionScope};
pub use lists::{BadList, List, Preset, shipped_presets};
pub use manifest::{Accepted, Manifested, Parted, Proposed};
pub use outward::{Provenance, SecretUse, WebCare, WebReading};
pub use resolvers::{
    Confirmed, Floor, Granted, Hooked, Level, Leveled, Listed, Pinned, Reading, Sandboxed, ShellReading,
    UnknownNativeParams,
};
pub use ruled::Ruled;
pub use skill::SkillCommands;

/// What is decided about a call. Ordered by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It runs.
    Allow,
    /// A person decides.
    Ask,
    /// It does not run.
    Deny,
}

/// A decision, who made it, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What was decided.
    pub decision: Decision,
    /// The voice that decided.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl Verdict {
    /// A verdict by `by`.
    pub fn new(decision: Decision, by: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { decision, by: by.into(), reason: reason.into() }
    }
}

/// What a resolver is asked about.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    /// The call, validated.
    pub checked: &'q Checked,
    /// What the runtime found out about the world beforehand.
    pub facts: &'q Facts,
}

/// An opinion and its reason. `None` from a resolver means: no opinion.
pub type Vote = Option<(Decision, String)>;

/// Why a resolver could not form an opinion.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ResolverError(pub String);

/// One voice in the chain. It must be pure: same question, same answer.
pub trait Resolver: Send + Sync {
    /// The name under which its verdicts are recorded.
    fn name(&self) -> &str;
    /// Higher speaks first. Shipped voices use 1000, 100, 90, 75, 25, 10 and 0; a plugin's usual place is 50.
    fn priority(&self) -> i32 {
        50
    }
    /// Its opinion.
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError>;
}

/// One voice's answer, for `haft explain` and the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cast {
    /// Whose.
    pub by: String,
    /// How high it speaks.
    pub priority: i32,
    /// What it said; none is no opinion.
    pub decision: Option<Decision>,
    /// Why.
    pub reason: String,
    /// Whether it could not form an opinion and counts as an Ask for that.
    pub erred: bool,
}

/// The voices, in the order in which they speak.
#[derive(Clone, Default)]
pub struct Chain {
    voices: Vec<Arc<dyn Resolver>>,
}

impl Chain {
    /// The voices that always speak under a policy, so that none can be forgotten. Lists, rules and levels are added.
    pub fn under(policy: &Arc<Policy>) -> Self {
        let mut chain = Self::default();
        let voices: [Arc<dyn Resolver>; 16] = [
            Arc::new(Floor(Arc::clone(policy))),
            Arc::new(Confirmed(Arc::clone(policy))),
            Arc::new(Hooked),
            Arc::new(UnknownNativeParams),
            Arc::new(Pinned),
            Arc::new(Accepted),
            Arc::new(Manifested),
            Arc::new(Parted),
            Arc::new(Proposed),
            Arc::new(Provenance),
            Arc::new(SecretUse),
            Arc::new(WebCare),
            Arc::new(Granted),
            Arc::new(Reading),
            Arc::new(ShellReading),
            Arc::new(WebReading),
        ];
        for voice in voices {
            chain.add(voice);
        }
        chain
    }

    /// Adds a voice. Equal priorities speak in the order of their names.
    pub fn add(&mut self, voice: Arc<dyn Resolver>) {
        self.voices.push(voice);
        self.voices.sort_by(|a, b| b.priority().cmp(&a.priority()).then_with(|| a.name().cmp(b.name())));
    }

    /// Asks every voice.
    pub fn poll(&self, question: Question<'_>) -> Vec<Cast> {
        self.voices.iter().map(|voice| cast(voice.as_ref(), question)).collect()
    }
}

/// Hears one voice. An error and a panic are both an Ask.
fn cast(voice: &dyn Resolver, question: Question<'_>) -> Cast {
    let heard = catch_unwind(AssertUnwindSafe(|| voice.resolve(question)));
    let (vote, erred) = match heard {
        Ok(Ok(vote)) => (vote, false),
        Ok(Err(error)) => (Some((Decision::Ask, format!("it failed: {error}"))), true),
        Err(_) => (Some((Decision::Ask, "it panicked".to_owned())), true),
    };
    let (decision, reason) = vote.map_or((None, String::new()), |(decision, reason)| (Some(decision), reason));
    Cast { by: voice.name().to_owned(), priority: voice.priority(), decision, reason, erred }
}

/// The verdict that follows from all votes, in speaking order. `silence` is why it is asked when nobody
/// has an opinion.
pub fn settle(votes: &[Cast], silence: &str) -> Verdict {
    let opinions = || votes.iter().filter_map(|cast| cast.decision.map(|decision| (decision, cast)));
    let first = opinions().find(|(decision, _)| *decision == Decision::Deny).or_else(|| opinions().next());
    let (decision, cast) = match first {
        Some((Decision::Allow, cast)) => opinions().find(|(_, cast)| cast.erred).unwrap_or((Decision::Allow, cast)),
        Some(strict) => strict,
        None => return Verdict::new(Decision::Ask, "default", silence),
    };
    Verdict::new(decision, &cast.by, &cast.reason)
}
