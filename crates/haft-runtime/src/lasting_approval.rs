//! A yes that holds for more than one call: kept as a grant, for the session or for good.

use crate::pipeline::{Haft, Stop};
use crate::{now_ms, store_error};
use haft_core::approval::{Decider, DecisionScope};
use haft_core::grant::{Grant, GrantScope, literal, subject};
use haft_core::record::secrets_in;
use haft_core::web::{Errand, Target};
use haft_core::{CallError, Pending};

/// How long a yes "for this session" holds at the most: twelve hours.
const SESSION_GRANT_MS: i64 = 12 * 3_600_000;

/// For how long a yes is remembered, and for what.
pub(crate) enum Lasting {
    /// Until the session ends: for a pattern, or for exactly this.
    Session(Option<String>),
    /// From now on, a number of times.
    Always(String),
}

/// Whether something may be remembered of this identity's yes.
fn may_last(pending: &Pending, by: &Decider) -> bool {
    by.check(pending.checked().call().id.as_str(), DecisionScope::Lasting).is_ok()
}

impl Haft {
    /// Remembers, for the session, the host that a first write goes to. A yes that is for one call alone leaves nothing.
    pub(crate) async fn remember_host(&self, pending: &Pending, by: &Decider) -> Result<(), Stop> {
        if !may_last(pending, by) {
            return Ok(());
        }
        let errand = pending.facts().web.as_ref().filter(|errand| errand.lasts());
        match errand.and_then(|errand| Target::read(&errand.url).ok()) {
            Some(target) => self.remember(pending, by, Lasting::Session(Some(Errand::host_pattern(&target)))).await,
            None => Ok(()),
        }
    }

    /// Remembers, for the session, which secrets go to that host.
    pub(crate) async fn remember_secrets(&self, pending: &Pending, by: &Decider) -> Result<(), Stop> {
        let Some(errand) = pending.facts().web.as_ref().filter(|_| may_last(pending, by)) else { return Ok(()) };
        for name in &errand.secrets {
            let subject = literal(&errand.secret_subject(name));
            self.remember(pending, by, Lasting::Session(Some(subject))).await?;
        }
        Ok(())
    }

    /// Remembers a yes.
    pub(crate) async fn remember(&self, pending: &Pending, by: &Decider, lasting: Lasting) -> Result<(), Stop> {
        let checked = pending.checked();
        let name = &checked.spec().name;
        let stop = |error: CallError| Stop { tool: name.to_string(), verdict: pending.verdict().clone(), error };
        let allowed = self.store.authorize(checked.call().id.as_str(), by, DecisionScope::Lasting).await;
        allowed.map_err(|error| stop(store_error(error)))?;
        let (pattern, lasting) = match lasting {
            Lasting::Session(pattern) => (pattern, false),
            Lasting::Always(pattern) => (Some(pattern), true),
        };
        let secrets = secrets_in(checked.args());
        let pattern = match pattern {
            Some(pattern) if secrets.iter().any(|secret| pattern.contains(secret)) => {
                let error =
                    CallError::invalid("the pattern holds a secret of the command, and a grant is kept in clear");
                return Err(stop(error.hint("write `*` in its place, or approve the call once")));
            }
            // Kept in clear it would be written down, and masked it would cover other calls: the yes is for this one.
            None if !secrets.is_empty() => return Ok(()),
            pattern => pattern.unwrap_or_else(|| literal(&subject(checked, pending.facts()))),
        };
        Grant::check_pattern(name, &pattern).map_err(|error| stop(CallError::invalid(error.to_string())))?;
        let grant = Grant {
            id: format!("g-{}", crate::new_call_id()),
            tool: name.clone(),
            pattern,
            session: (!lasting).then(|| checked.call().session.clone()),
            uses_left: lasting.then_some(self.settings.grant_uses),
            // A session has no end that haft could see, so what is granted for one ends by itself.
            expires_ms: (!lasting).then(|| now_ms().saturating_add(SESSION_GRANT_MS)),
            scope: GrantScope::of(checked, pending.facts()),
            executed: pending.facts().shell.as_ref().map(|_| pending.facts().executed.files.clone()),
        };
        let stored = self.store.grant(self.workspace.root(), grant).await;
        stored.map_err(|error| stop(store_error(error)))
    }
}
