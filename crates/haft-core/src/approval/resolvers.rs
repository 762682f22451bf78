//! The voices that haft ships, from the floor (1000) to the catch-all (0).

use super::{Decision, List, Question, Resolver, ResolverError, Vote};
use crate::place::{Access, Sensitive};
use crate::policy::{Hook, Policy};
use crate::tool::{Effect, Severity};
use std::sync::Arc;

/// 1000: immutable denies, and places that always need a person.
pub struct Floor(pub Arc<Policy>);

impl Resolver for Floor {
    fn name(&self) -> &'static str {
        "floor"
    }
    fn priority(&self) -> i32 {
        1000
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let checked = question.checked;
        if !self.0.floor.is_empty() {
            // A path can be spelled in many ways: the rule sees the arguments and where they lead.
            let mut args = checked.args().clone();
            if let Some(object) = args.as_object_mut() {
                object.retain(|name, _| !checked.spec().reach.bodies.contains(&name.as_str()));
            }
            let mut texts = vec![args.to_string()];
            for place in &question.facts.places {
                texts.push(place.shown.clone());
                texts.push(place.real.to_string_lossy().into_owned());
            }
            if let Some(rule) = self.0.forbidden(&checked.spec().name, &texts) {
                return Ok(Some((Decision::Deny, rule.reason.clone())));
            }
        }
        // Of several the strictest counts, wherever it stands.
        let careful = question.facts.places.iter().filter_map(|place| place.sensitive.map(|why| (place, why)));
        let careful = careful.map(|(place, why)| (care(why, place.access), place, why)).rev();
        let strictest = careful.max_by_key(|(decision, ..)| *decision);
        Ok(strictest.map(|(decision, place, why)| (decision, format!("{} holds {}", place.shown, why.noun()))))
    }
}

/// What access to such a place takes. haft's own state is nobody's to read or to change by a tool, whoever says yes.
const fn care(why: Sensitive, access: Access) -> Decision {
    match (why, access) {
        (Sensitive::OwnState, _) | (Sensitive::OwnFiles, Access::Write) => Decision::Deny,
        (Sensitive::OwnFiles, Access::Read)
        | (Sensitive::Credentials | Sensitive::VersionControl | Sensitive::ClientControl, _) => Decision::Ask,
    }
}

/// 1000: tools that the policy's hooks hold for confirmation. No list, grant or level lifts that.
pub struct Confirmed(pub Arc<Policy>);

impl Resolver for Confirmed {
    fn name(&self) -> &'static str {
        "confirm hook"
    }
    fn priority(&self) -> i32 {
        1000
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let (hook, pattern) = self.0.hooks.action(&question.checked.spec().name);
        let pattern = pattern.map(ToString::to_string).unwrap_or_default();
        Ok((hook == Hook::Confirm).then(|| (Decision::Ask, format!("hooks.confirm holds `{pattern}`"))))
    }
}

/// 1000: what the user's own programs said. They were asked beforehand; the strictest counts, and none can loosen.
pub struct Hooked;

impl Resolver for Hooked {
    fn name(&self) -> &'static str {
        "hook"
    }
    fn priority(&self) -> i32 {
        1000
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let said = &question.facts.hooked;
        let strictest = said.iter().find(|said| said.decision == Decision::Deny).or_else(|| said.first());
        let strict = strictest.filter(|said| said.decision != Decision::Allow);
        Ok(strict.map(|said| (said.decision, format!("the hook `{}` says: {}", said.hook, said.reason))))
    }
}

/// 1000: tools whose declaration is not the one that a person accepted. No list, grant or level lifts that.
pub struct Pinned;

impl Resolver for Pinned {
    fn name(&self) -> &'static str {
        "pinned declaration"
    }
    fn priority(&self) -> i32 {
        1000
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        Ok(question.facts.altered.as_ref().map(|why| (Decision::Ask, why.clone())))
    }
}

/// 1000: calls of an agent's own tools with parameters that haft does not know. No list, rule or grant lifts that.
pub struct UnknownNativeParams;

impl Resolver for UnknownNativeParams {
    fn name(&self) -> &'static str {
        "observed call"
    }
    fn priority(&self) -> i32 {
        1000
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let doubt = question.facts.observed.as_ref().and_then(|observed| observed.doubt.clone());
        Ok(doubt.map(|why| (Decision::Ask, why)))
    }
}

/// 100 for the config's list, 90 for a document's: approves and denies by tool name.
pub struct Listed {
    /// The list.
    pub list: List,
    /// Whether it is a document's: then it replaces the config's, and what it does not hold is Ask.
    pub document: bool,
}

impl Resolver for Listed {
    fn name(&self) -> &'static str {
        if self.document { "document list" } else { "config list" }
    }
    fn priority(&self) -> i32 {
        if self.document { 90 } else { 100 }
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let tool = &question.checked.spec().name;
        if let Some(pattern) = self.list.denies(tool) {
            return Ok(Some((Decision::Deny, format!("its deny list holds `{pattern}`"))));
        }
        // A list approves a tool where it is at home. Elsewhere on the machine it has no opinion, so that
        // a grant for just that place still counts.
        let home = question.facts.places.iter().all(|place| place.inside);
        // Whoever lists a tool that runs programs or opens addresses means one that haft guards. A rule says which commands
        // an agent may run by itself, and a grant which hosts it may ask.
        let unguarded = question.facts.bypasses_guards(question.checked.spec());
        Ok(match self.list.approves(tool).filter(|_| home && !unguarded) {
            Some(pattern) => Some((Decision::Allow, format!("auto_approve holds `{pattern}`"))),
            None if self.document => Some((Decision::Ask, "the document's list does not hold it here".to_owned())),
            None => None,
        })
    }
}

/// 75: what a person allowed before, for a pattern, a number of times, for a while.
pub struct Granted;

impl Resolver for Granted {
    fn name(&self) -> &'static str {
        "grant"
    }
    fn priority(&self) -> i32 {
        75
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let found = question.facts.grant_for(question.checked);
        Ok(found.map(|grant| (Decision::Allow, format!("you allowed `{}` ({})", grant.pattern, grant.id))))
    }
}

/// 25: tools that are safe to run unasked because the kernel holds them, when it really does.
pub struct Sandboxed {
    /// The list in force; without one this voice has no opinion.
    pub list: Option<List>,
}

impl Resolver for Sandboxed {
    fn name(&self) -> &'static str {
        "sandbox"
    }
    fn priority(&self) -> i32 {
        25
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let spec = question.checked.spec();
        let wanted = self.list.as_ref().is_some_and(|list| !list.excludes(&spec.name));
        let held = spec.effects.effect == Effect::Runs && question.facts.confined(spec);
        Ok((wanted && held).then(|| (Decision::Allow, "the kernel confines it".to_owned())))
    }
}

/// 10: calls that provably only read, inside the readable roots.
pub struct Reading;

impl Resolver for Reading {
    fn name(&self) -> &'static str {
        "reading"
    }
    fn priority(&self) -> i32 {
        10
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let spec = question.checked.spec();
        if !question.checked.only_reads() || spec.effects.open_world {
            return Ok(None);
        }
        Ok(match question.facts.places.iter().find(|place| !place.inside) {
            Some(place) => Some((Decision::Ask, format!("{} lies outside the readable roots", place.shown))),
            None => Some((Decision::Allow, "it only reads, inside the readable roots".to_owned())),
        })
    }
}

/// 10: shell commands, by what they are known to do.
pub struct ShellReading;

impl ShellReading {
    /// The name of this voice.
    pub const NAME: &'static str = "shell reading";
}

impl Resolver for ShellReading {
    fn name(&self) -> &'static str {
        Self::NAME
    }
    fn priority(&self) -> i32 {
        10
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let Some(shell) = &question.facts.shell else { return Ok(None) };
        // A Deny wins from any priority: nothing that is remembered or listed lets a catastrophe through.
        if let Some(why) = &shell.judged.catastrophe {
            return Ok(Some((Decision::Deny, why.clone())));
        }
        if let Some(why) = question.facts.observed.as_ref().and_then(|observed| observed.unknown_directory) {
            return Ok(Some((Decision::Ask, why.to_owned())));
        }
        if !shell.only_reads() {
            return Ok(None);
        }
        // Where links lead, only the kernel knows.
        if shell.judged.follows && !question.facts.confined(question.checked.spec()) {
            return Ok(None);
        }
        Ok(match question.facts.places.iter().find(|place| !place.inside) {
            Some(place) => Some((Decision::Ask, format!("{} lies outside the readable roots", place.shown))),
            None if shell.judged.follows => {
                Some((Decision::Allow, "it only reads, and the kernel keeps it inside the readable roots".to_owned()))
            }
            None => Some((Decision::Allow, "it provably only reads, inside the readable roots".to_owned())),
        })
    }
}

/// How much is asked, by what a mistake would cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Asks nothing; refused where nothing confines.
    Yolo,
    /// Asks critical calls.
    Autonomous,
    /// Asks high and critical calls.
    Supervised,
    /// Asks every call, reading included.
    Hitl,
}

/// 0, the catch-all: decides by severity what nobody above had an opinion about. `hitl` speaks at 1000,
/// because it outranks every approval.
pub struct Leveled(pub Level);

impl Resolver for Leveled {
    fn name(&self) -> &'static str {
        "level"
    }
    fn priority(&self) -> i32 {
        if self.0 == Level::Hitl { 1000 } else { 0 }
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let severity = question.checked.spec().severity(question.facts);
        let asks_from = match self.0 {
            Level::Hitl => return Ok(Some((Decision::Ask, "level hitl asks every call".to_owned()))),
            Level::Supervised => Severity::High,
            Level::Autonomous => Severity::Critical,
            Level::Yolo if question.facts.confined(question.checked.spec()) => {
                return Ok(Some((Decision::Allow, "level yolo asks nothing".to_owned())));
            }
            Level::Yolo => {
                return Ok(Some((Decision::Ask, "level yolo needs confinement, and none is in force".to_owned())));
            }
        };
        let decision = if severity >= asks_from { Decision::Ask } else { Decision::Allow };
        Ok(Some((decision, format!("severity {severity:?} at level {:?}", self.0).to_lowercase())))
    }
}
