//! Many calls at once: consecutive concurrency-safe ones together, others alone, results in call order.

use crate::approver::Approver;
use crate::halt::Halt;
use crate::pipeline::Haft;
use futures_util::StreamExt;
use futures_util::stream;
use haft_core::orchestrate::{AT_ONCE, batches};
use haft_core::{Call, Outcome};

impl Haft {
    /// Runs calls batch by batch and hands each outcome on, in the order of the calls, as soon as it and
    /// all before it are there.
    pub async fn call_all(
        &self,
        calls: Vec<Call>,
        approver: &dyn Approver,
        halt: &Halt,
        mut each: impl FnMut(Outcome),
    ) {
        let calls: Vec<Call> = calls.into_iter().map(crate::registry::unwrapped).collect();
        let safe: Vec<bool> = calls.iter().map(|call| self.is_concurrency_safe(call)).collect();
        let mut calls = calls.into_iter();
        for batch in batches(&safe) {
            let together = calls.by_ref().take(batch.len()).map(|call| self.call(call, approver, halt));
            let mut outcomes = stream::iter(together).buffered(AT_ONCE);
            while let Some(outcome) = outcomes.next().await {
                each(outcome);
            }
        }
    }

    /// A call that nobody understands runs alone: it fails anyway.
    fn is_concurrency_safe(&self, call: &Call) -> bool {
        self.registry.resolve(call).is_ok_and(|meant| meant.entry.spec().effects.concurrency_safe)
    }
}
