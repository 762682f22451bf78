//! Runs as people see them in a terminal: a line, a list of steps, and the graph.

use haft_core::preview::{cut, inert};
use haft_core::work::Plan;
use haft_store::work::{RunSeen, StepSeen};
use std::fmt::Write as _;

/// The sign of a state.
pub fn sign(state: &str) -> char {
    match state {
        "done" => '✓',
        "failed" => '✗',
        "skipped" => '-',
        "running" => '▶',
        "asking" => '?',
        "uncertain" => '!',
        "nested" => '▷',
        "ready" | "held" => '○',
        _ => '·',
    }
}

/// One line about a run.
pub fn line(run: &RunSeen, steps: &[StepSeen]) -> String {
    let count = |state: &str| steps.iter().filter(|step| step.state == state).count();
    let mut text =
        format!("{} {}: {}, {} of {} steps done", run.id, inert(&run.name), run.stands, count("done"), run.count);
    for state in ["failed", "skipped", "running", "asking", "uncertain"] {
        let found = count(state);
        if found > 0 {
            let _ = write!(text, ", {found} {state}");
        }
    }
    if let Some(why) = &run.why {
        let _ = write!(text, " ({})", inert(why));
    }
    text
}

/// The steps, a line each.
pub fn list(steps: &[StepSeen]) -> String {
    const SHOWN: usize = 200;
    let mut lines: Vec<String> =
        steps.iter().take(SHOWN).map(|step| format!("  {} {}", sign(&step.state), said(step))).collect();
    if steps.len() > SHOWN {
        lines.push(format!("  … and {} more", steps.len() - SHOWN));
    }
    lines.join("\n")
}

/// Those steps about which there is something to say beside where they stand, a line each; nothing if there is none.
pub fn notes(steps: &[StepSeen]) -> Option<String> {
    let odd = |step: &&StepSeen| !matches!(step.state.as_str(), "done" | "running") && !note(step).is_empty();
    let told: Vec<StepSeen> = steps.iter().filter(odd).cloned().collect();
    (!told.is_empty()).then(|| list(&told))
}

/// How somebody gets a step on that does not go on by itself.
pub fn remedy(step: &StepSeen) -> Option<String> {
    match step.state.as_str() {
        "asking" => Some(format!("haft approvals show {}", step.call_id.as_deref().unwrap_or_default())),
        "uncertain" => Some(settle(&step.run, &step.id)),
        "failed" if super::stale::is_outdated(step) => Some(format!("haft pipeline retry {}", step.run)),
        _ if step.unserved => {
            let label = step.label.as_ref().map(|label| format!(" --label {label}")).unwrap_or_default();
            Some(format!("haft worker{label}"))
        }
        _ => None,
    }
}

/// The command by which somebody says what became of a step.
pub fn settle(run: &str, step: &str) -> String {
    format!("haft pipeline settle {run} {step} done|failed|again")
}

/// A step, and what there is to say about it.
fn said(step: &StepSeen) -> String {
    let tries =
        if step.attempt > 1 && step.state != "done" { format!(" (attempt {})", step.attempt) } else { String::new() };
    let note = note(step);
    if note.is_empty() { format!("{}{tries}", step.id) } else { format!("{}{tries}: {note}", step.id) }
}

/// What there is to say about a step. A remedy is whole, however long the reason is.
fn note(step: &StepSeen) -> String {
    let outcome = step.outcome.as_ref();
    let part = |name: &str| outcome.and_then(|outcome| outcome[name].as_str());
    let message = outcome.and_then(|outcome| outcome["error"]["message"].as_str());
    let left_ms = step.from_ms - crate::now_ms();
    let reason = match step.state.as_str() {
        "failed" if remedy(step).is_some() => {
            format!("{}; what it was made from is read again by", message.unwrap_or("it is out of date"))
        }
        "failed" => message.or(part("settled")).unwrap_or("it failed").to_owned(),
        "asking" => "waits for a person".to_owned(),
        "uncertain" => {
            format!("{}; say what became of it", part("uncertain").unwrap_or("nobody knows what came of it"))
        }
        "running" => step.worker.as_ref().map(|worker| format!("by {worker}")).unwrap_or_default(),
        "nested" => format!("goes on as {}-{}", step.run, step.nr),
        "ready" if step.unserved => unserved(step),
        "ready" if left_ms > 0 => format!("begins in {}", span(left_ms)),
        "ready" => step.label.as_ref().map(|label| format!("for a worker with {label}")).unwrap_or_default(),
        _ => String::new(),
    };
    let reason = cut(&inert(&reason), 160);
    remedy(step).map_or_else(|| reason.clone(), |remedy| format!("{reason}: {}", inert(&remedy)))
}

/// That nobody is there for a step.
fn unserved(step: &StepSeen) -> String {
    match &step.label {
        Some(label) => format!("waits for a worker with the label `{label}`; none is there"),
        None => "waits for a worker; none is there".to_owned(),
    }
}

/// A while, as people say it.
fn span(ms: i64) -> String {
    match ms / 1000 + 1 {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 2 * 3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// The graph of a plan, drawn as text: each step under what it waits for, with the sign of where it stands.
pub fn graph(plan: &Plan, steps: &[StepSeen]) -> String {
    let Ok(graph) = plan.order() else { return String::new() };
    let mut level = vec![0_usize; graph.nodes().len()];
    let mut order: Vec<usize> = (0..level.len()).collect();
    // Levels settle in as many rounds as the graph is deep; steps usually stand in their order, and then it is one.
    loop {
        let mut changed = false;
        for at in 0..level.len() {
            let deep = graph.needs(at).iter().map(|need| level[*need] + 1).max().unwrap_or(0);
            if deep > level[at] {
                level[at] = deep;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    order.sort_by_key(|at| (level[*at], *at));
    let state = |at: usize| steps.get(at).map_or("waiting", |step| step.state.as_str());
    let mut lines = Vec::new();
    for at in order {
        let from: Vec<&str> = graph.needs(at).iter().map(|need| graph.nodes()[*need].id.as_str()).collect();
        let from = if from.is_empty() { String::new() } else { format!(" ◄─ {}", from.join(", ")) };
        lines.push(format!("{}{} {}{from}", "    ".repeat(level[at].min(12)), sign(state(at)), graph.nodes()[at].id));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_graph_shows_what_waits_for_what() {
        let plan: Plan = serde_json::from_value(json!({"steps": [
            {"id": "c", "tool": "t", "needs": ["a", "b"]}, {"id": "a", "tool": "t"}, {"id": "b", "tool": "t", "needs": ["a"]},
        ]}))
        .unwrap();
        assert_eq!(graph(&plan, &[]), "· a\n    · b ◄─ a\n        · c ◄─ a, b");
    }
}
