//! The voices about tools that are files: whether anybody has accepted one, and what it says of itself.

use super::{Decision, Question, Resolver, ResolverError, Vote};
use crate::manifest::Kind;

/// 1000: tools that nobody has accepted as they stand. Nothing lifts that but accepting them.
pub struct Accepted;

impl Resolver for Accepted {
    fn name(&self) -> &'static str {
        "accepted tools"
    }
    fn priority(&self) -> i32 {
        1000
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        Ok(question.facts.barred.as_ref().map(|why| (Decision::Deny, why.clone())))
    }
}

/// 1000: what an agent makes to be used later, and what is a question by itself. A person looks at each, whatever lists, grants and levels say.
pub struct Proposed;

impl Resolver for Proposed {
    fn name(&self) -> &'static str {
        "proposal"
    }
    fn priority(&self) -> i32 {
        1000
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let reach = &question.checked.spec().reach;
        let kept = reach.proposes.then_some("it is kept and used later, so a person looks at each");
        let why = kept.or(reach.asks.then_some("it is a question to a person"));
        Ok(why.map(|why| (Decision::Ask, why.to_owned())))
    }
}

/// 50: what does nothing but make calls, each of which is decided by itself.
pub struct Parted;

impl Resolver for Parted {
    fn name(&self) -> &'static str {
        "parts"
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let why = "it does nothing by itself, and each of its calls is decided";
        Ok(question.checked.spec().reach.by_parts.then(|| (Decision::Allow, why.to_owned())))
    }
}

/// 50: what an accepted manifest says about being asked. It lets a call through only if the call is held to what the
/// manifest declares.
pub struct Manifested;

impl Resolver for Manifested {
    fn name(&self) -> &'static str {
        "manifest"
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let spec = question.checked.spec();
        let Some(declared) = &spec.reach.declared else { return Ok(None) };
        if declared.approval.required {
            let why = declared.approval.reason.as_deref().unwrap_or("its manifest wants a person to be asked");
            return Ok(Some((Decision::Ask, crate::preview::inert(why))));
        }
        let held = match declared.kind {
            Kind::Command | Kind::Python => question.facts.confined(spec),
            Kind::Http => question.facts.web.as_ref().is_some_and(|errand| errand.doubts.is_empty()),
            // It does nothing by itself: each of its calls is decided.
            Kind::Mcp | Kind::Pipeline => true,
        };
        Ok(held.then(|| {
            let why = match declared.kind {
                Kind::Command | Kind::Python => "its manifest needs no approval, and the kernel holds it to that",
                Kind::Http => "its manifest needs no approval, and it goes where that says",
                Kind::Mcp | Kind::Pipeline => "its manifest needs no approval, and its calls are decided one by one",
            };
            (Decision::Allow, why.to_owned())
        }))
    }
}
