//! The voice of the rules that people write about shell commands.

use super::{Decision, Question, Resolver, ResolverError, Vote};
use crate::admit::Shell;
use crate::shell::rule::{Allowed, Denied, Rulebook};
use crate::tool::Effect;
use std::sync::Arc;

/// 100: rules about shell commands, from the configuration and for one run.
///
/// A deny is a Deny wherever the command stands; one that cannot be ruled out is an Ask. An allow is an Allow
/// only where every command is covered, everything it touches lies inside the roots, and nothing on this
/// machine makes it differ from what its text says. Reading elsewhere is allowed by a rule that names the
/// program. What holds credentials is the floor's to speak about.
pub struct Ruled(pub Arc<Rulebook>);

impl Ruled {
    fn allow(&self, question: Question<'_>, shell: &Shell) -> Vote {
        if !shell.unsettled.is_empty() {
            return None;
        }
        let Allowed::All { reason, named } = self.0.allows(&shell.judged) else { return None };
        // Where it runs is not known, so nothing is known to lie inside: the rule has to name each program.
        if question.facts.observed.as_ref().is_some_and(|observed| observed.unknown_directory.is_some()) {
            let holds = named && !question.facts.runs_by_unknown_directory();
            return holds.then_some((Decision::Allow, reason));
        }
        let home = question.facts.places.iter().all(|place| place.inside);
        (home || (named && shell.only_reads())).then_some((Decision::Allow, reason))
    }
}

impl Resolver for Ruled {
    /// Before the config's list, which ranks alike, by the alphabet: a deny that cannot be ruled out is asked.
    fn name(&self) -> &'static str {
        "command rules"
    }
    fn priority(&self) -> i32 {
        100
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let Some(shell) = &question.facts.shell else {
            let spec = question.checked.spec();
            let runs = spec.effects.effect == Effect::Runs && question.checked.args().get("command").is_some();
            let why = "what it runs was not looked at, and no deny rule can be ruled out".to_owned();
            return Ok((runs && self.0.can_deny()).then_some((Decision::Ask, why)));
        };
        Ok(match self.0.denies(&shell.judged) {
            Denied::Yes(why) => Some((Decision::Deny, why)),
            Denied::Maybe(why) => Some((Decision::Ask, why)),
            Denied::No => self.allow(question, shell),
        })
    }
}
