//! Many calls at once: consecutive concurrency-safe ones together, others alone, results in call order.

use crate::approver::Approver;
use crate::halt::Halt;
use crate::pipeline::Haft;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use haft_core::orchestrate::Running;
use haft_core::{Call, Outcome};
use tokio::sync::mpsc;

/// One of many calls; or what came of it, where that is known before it could be made.
pub type Asked = Result<Call, Box<Outcome>>;

impl Haft {
    /// Runs calls and hands each outcome on, in the order of the calls, as soon as it and all before it are there.
    pub async fn call_all(&self, calls: Vec<Call>, approver: &dyn Approver, halt: &Halt, each: impl FnMut(Outcome)) {
        let (sender, asked) = mpsc::channel(calls.len().max(1));
        for call in calls {
            // There is room for all of them.
            let _ = sender.try_send(Ok(call));
        }
        drop(sender);
        self.call_each(asked, approver, halt, each).await;
    }

    /// The same for calls that are still being made: each runs when it comes, unless it has to wait for those before it.
    /// Ends when there are no more, or when it is halted and those that run have ended.
    pub async fn call_each(
        &self,
        mut asked: mpsc::Receiver<Asked>,
        approver: &dyn Approver,
        halt: &Halt,
        mut each: impl FnMut(Outcome),
    ) {
        let (mut outcomes, mut running) = (FuturesOrdered::new(), Running::default());
        let (mut next, mut open) = (None, true);
        loop {
            if let Some((call, safe)) = next.take_if(|(_, safe)| running.admits(*safe)) {
                running.start(safe);
                outcomes.push_back(self.outcome_of(call, approver, halt));
            }
            tokio::select! {
                Some(outcome) = outcomes.next() => {
                    running.end();
                    each(outcome);
                }
                more = asked.recv(), if open && next.is_none() => match more {
                    Some(asked) => next = Some(self.sorted(asked)),
                    None => open = false,
                },
                _ = halt.stopped(), if open => open = false,
                else => return,
            }
        }
    }

    async fn outcome_of(&self, asked: Asked, approver: &dyn Approver, halt: &Halt) -> Outcome {
        match asked {
            Ok(call) => self.call(call, approver, halt).await,
            Err(known) => *known,
        }
    }

    /// A call, and whether it may run together with others. One that nobody understands runs alone: it fails anyway.
    fn sorted(&self, asked: Asked) -> (Asked, bool) {
        let asked = asked.map(crate::registry::unwrapped);
        let resolved = |call: &Call| self.registry.resolve(call);
        let safe = asked
            .as_ref()
            .map_or(true, |call| resolved(call).is_ok_and(|meant| meant.entry.spec().effects.concurrency_safe));
        (asked, safe)
    }
}
