//! `haft explain`.

use crate::app::{App, Failure};
use crate::cli::ExplainArgs;
use crate::input;
use crate::style::{self, BAD, BOLD, CARE, FAINT, GOOD, paint};
use haft_core::approval::Decision;
use haft_runtime::Explained;

/// Says what would happen to a call, and why.
pub(super) fn run(app: &App, args: &ExplainArgs) -> Result<u8, Failure> {
    let call = app.call(&args.name, input::arguments(&args.args)?, args.dialect.as_deref())?;
    let explained = app.block_on(app.haft.explain(call))?;
    if app.json {
        style::json(&explained);
    } else {
        show(&explained);
    }
    Ok(0)
}

fn show(explained: &Explained) {
    style::out(&paint(BOLD, &explained.preview));
    let verdict = &explained.verdict;
    style::out(&format!(
        "{} by {}: {}",
        word(verdict.decision),
        verdict.by,
        haft_core::preview::inert(&verdict.reason)
    ));
    for place in &explained.places {
        let inside = if place.inside { "inside the project" } else { "outside the project" };
        let care = place.sensitive.map(|why| format!(", holds {}", why.noun())).unwrap_or_default();
        style::out(
            &format!("  {:?} {} ({inside}{care})", place.access, haft_core::preview::inert(&place.shown))
                .to_lowercase(),
        );
    }
    for vote in &explained.votes {
        let said = vote.decision.map_or_else(|| paint(FAINT, "no opinion"), word);
        style::out(&format!(
            "  {:>5}  {:<14} {said}  {}",
            vote.priority,
            vote.by,
            haft_core::preview::inert(&vote.reason)
        ));
    }
    if let Some(problem) = &explained.problem {
        style::out(&format!("{} {}", paint(CARE, "it would fail:"), haft_core::preview::inert(problem)));
    }
    if let Some(diff) = &explained.diff {
        style::out(&style::diff(diff));
    }
}

fn word(decision: Decision) -> String {
    match decision {
        Decision::Allow => paint(GOOD, "allow"),
        Decision::Ask => paint(CARE, "ask"),
        Decision::Deny => paint(BAD, "deny"),
    }
}
