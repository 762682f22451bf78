//! The voices about what leaves this machine, and about who may have put the idea there.

use super::{Decision, Question, Resolver, ResolverError, Vote};
use crate::grant::literal;
use crate::outcome::Label;

/// 1000: hosts that may not be reached, and requests that look as if they carried data out. No list, grant or level
/// lifts that.
pub struct WebCare;

impl Resolver for WebCare {
    fn name(&self) -> &'static str {
        "web care"
    }
    fn priority(&self) -> i32 {
        1000
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let Some(errand) = &question.facts.web else { return Ok(None) };
        if let Some(why) = &errand.refusal {
            return Ok(Some((Decision::Deny, why.clone())));
        }
        Ok(errand.doubts.first().map(|doubt| (Decision::Ask, doubt.clone())))
    }
}

/// 1000: secrets that would be sent along. Each is a person's decision once for a host and a session; a grant for exactly
/// that secret and host is the answer, and nothing wider is.
pub struct SecretUse;

impl Resolver for SecretUse {
    fn name(&self) -> &'static str {
        "secret use"
    }
    fn priority(&self) -> i32 {
        1000
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let Some(errand) = &question.facts.web else { return Ok(None) };
        let granted = |name: &String| {
            let subject = errand.secret_subject(name);
            let exact = literal(&subject);
            let held = |grant: &crate::grant::Grant| {
                grant.pattern == exact && grant.covers(question.checked, &subject, question.facts.now_ms)
            };
            question.facts.grants.iter().any(held)
        };
        let unasked: Vec<&str> = errand.secrets.iter().filter(|name| !granted(name)).map(String::as_str).collect();
        Ok((!unasked.is_empty()).then(|| {
            let why = format!(
                "it sends the secret {} to {}; a yes holds for that host until the session ends",
                unasked.join(" and "),
                errand.authority
            );
            (Decision::Ask, why)
        }))
    }
}

/// 10: requests that change nothing where they go.
pub struct WebReading;

impl Resolver for WebReading {
    fn name(&self) -> &'static str {
        "web reading"
    }
    fn priority(&self) -> i32 {
        10
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        // An agent's own fetch bypasses haft's SSRF check.
        let guarded = question.facts.observed.is_none();
        let reads =
            guarded && question.facts.web.as_ref().is_some_and(|errand| !errand.writes && errand.refusal.is_none());
        let home = question.facts.places.iter().all(|place| place.inside);
        Ok((reads && home).then(|| (Decision::Allow, "it only reads, from a host that may be reached".to_owned())))
    }
}

/// 1000: what a conversation has heard. After text that tries to give orders, everything but looking around here is a
/// person's decision; after credentials, everything that could carry them away is.
pub struct Provenance;

impl Resolver for Provenance {
    fn name(&self) -> &'static str {
        "provenance"
    }
    fn priority(&self) -> i32 {
        1000
    }
    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        let (checked, facts) = (question.checked, question.facts);
        let out = facts.reaches_out(checked.spec());
        let heard = |label: Label| facts.heard.iter().find(|source| source.label == label);
        let acts = out || !facts.only_reads(checked);
        if let Some(source) = heard(Label::Flagged).filter(|_| acts) {
            let why = format!("this conversation has heard text, from {}, that tries to give orders", source.tool);
            return Ok(Some((Decision::Ask, why)));
        }
        let secret = heard(Label::Sensitive).filter(|_| out);
        Ok(secret.map(|source| {
            let why = format!("it could carry away what {} read, which looks like credentials", source.tool);
            (Decision::Ask, why)
        }))
    }
}
