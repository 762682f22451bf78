//! What has to be read again when a run is taken up again: a step that failed because a file is not what it was, or to whose
//! proposal somebody said no, would fail or propose the same once more.

use crate::registry::Registry;
use haft_core::work::{Does, Plan, Step};
use haft_store::work::StepSeen;

/// The steps of a run that ended well, only read, and fed a step that was out of date or unwanted: by number.
pub(super) fn stale(registry: &Registry, plan: &Plan, steps: &[StepSeen]) -> Vec<u32> {
    let Ok(graph) = plan.order() else { return Vec::new() };
    if steps.iter().any(|step| matches!(step.state.as_str(), "uncertain" | "running")) {
        return Vec::new();
    }
    let reads = |at: usize| match plan.steps.get(at).and_then(Step::does) {
        Some(Does::Tool(tool, _)) => registry.get(tool).is_some_and(|entry| entry.spec().read_only()),
        _ => false,
    };
    let done = |at: usize| steps.get(at).is_some_and(|step| step.state == "done");
    let mut left: Vec<usize> =
        (0..steps.len()).filter(|at| is_outdated(&steps[*at]) || is_unwanted(&steps[*at])).collect();
    let mut found: Vec<usize> = Vec::new();
    while let Some(at) = left.pop() {
        for need in graph.needs(at) {
            if done(*need) && reads(*need) && !found.contains(need) {
                found.push(*need);
                left.push(*need);
            }
        }
    }
    found.into_iter().filter_map(|at| steps.get(at)).map(|step| step.nr).collect()
}

/// Whether a step failed because something is not what it was.
pub(super) fn is_outdated(step: &StepSeen) -> bool {
    failed_as(step, "conflict")
}

fn is_unwanted(step: &StepSeen) -> bool {
    failed_as(step, "rejected")
}

fn failed_as(step: &StepSeen, kind: &str) -> bool {
    step.state == "failed" && step.outcome.as_ref().is_some_and(|outcome| outcome["error"]["kind"] == kind)
}
