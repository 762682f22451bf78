//! Spans and events: what a call and its stages did, for a collector; when calls begin and end, for the operational log.
//!
//! Spans: one for each call and one for each stage of it, named as the conventions for generative AI have it. Without
//! somebody who collects them they cost nothing: their fields are not even computed.

use crate::registry::Registry;
use haft_core::preview::{cut, inert};
use haft_core::{Call, CallId, ErrorKind, Outcome};
use haft_store::waits::{Wait, WaitKind};
use std::time::Instant;
use tracing::Span;

/// The span of a whole call. What a model says when it means no tool may be anything, so it is named after the tool.
pub(crate) fn call(call: &Call, registry: &Registry) -> Span {
    let tool =
        || registry.resolve(call).map_or_else(|_| "unknown".to_owned(), |meant| meant.entry.spec().name.to_string());
    tracing::info_span!(
        target: "haft",
        "execute_tool",
        otel.name = format!("execute_tool {}", tool()),
        otel.kind = "internal",
        otel.status_code = tracing::field::Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tracing::field::Empty,
        gen_ai.tool.type = "function",
        gen_ai.tool.call.id = call.id.as_str(),
        gen_ai.conversation.id = call.session.as_str(),
        gen_ai.agent.name = call.caller.agent.as_deref(),
        error.type = tracing::field::Empty,
        haft.decision = tracing::field::Empty,
        haft.decided_by = tracing::field::Empty,
    )
}

/// What became of it.
pub(crate) fn ended(span: &Span, outcome: &Outcome) {
    if span.is_disabled() {
        return;
    }
    let unknown = outcome.error.as_ref().is_some_and(|error| error.kind == ErrorKind::UnknownTool);
    span.record("gen_ai.tool.name", if unknown { "unknown" } else { outcome.tool.as_str() });
    span.record("haft.decision", tracing::field::debug(outcome.verdict.decision));
    span.record("haft.decided_by", outcome.verdict.by.as_str());
    if let Some(error) = &outcome.error {
        span.record("error.type", error.kind.as_str());
        span.record("otel.status_code", "ERROR");
    }
}

/// The beginning and the end of a call in the operational log. One that is dropped before its end was given up by whoever
/// waited for it.
pub(crate) struct CallLog {
    call: CallId,
    begun: Instant,
    ended: bool,
    _wait: Wait,
}

impl CallLog {
    pub(crate) fn begin(call: &Call) -> Self {
        let tool = || cut(&inert(&call.spoken), 80);
        tracing::info!(
            target: "haft::call", call = call.id.as_str(), tool = tool(), session = call.session.as_str(),
            agent = call.caller.agent.as_deref(), "a call begins"
        );
        let wait = Wait::begin(WaitKind::Call, || format!("{} ({})", call.id, tool()));
        Self { call: call.id.clone(), begun: Instant::now(), ended: false, _wait: wait }
    }

    pub(crate) fn end(mut self, outcome: &Outcome) {
        self.ended = true;
        tracing::info!(
            target: "haft::call", call = self.call.as_str(), tool = outcome.tool.as_str(), success = outcome.success,
            error = outcome.error.as_ref().map(|error| error.kind.as_str()), ms = self.ms(), "a call ends"
        );
    }

    fn ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for CallLog {
    fn drop(&mut self) {
        if !self.ended {
            tracing::info!(
                target: "haft::call", call = self.call.as_str(), ms = self.ms(), "a call was given up by its caller"
            );
        }
    }
}

/// The span of one stage.
macro_rules! stage {
    ($name:literal) => {
        tracing::info_span!(target: "haft", $name)
    };
}
pub(crate) use stage;
