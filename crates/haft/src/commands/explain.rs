//! `haft explain`.

use crate::app::{App, Failure};
use crate::cli::ExplainArgs;
use crate::input;
use crate::style::{self, BAD, BOLD, CARE, FAINT, GOOD, paint};
use haft_core::approval::Decision;
use haft_runtime::{Explained, Halt};

/// Says what would happen to a call, and why.
pub(super) fn run(app: &App, args: &ExplainArgs) -> Result<u8, Failure> {
    let call = app.call(&args.name, input::arguments(&args.args)?, args.dialect.as_deref())?;
    let explained = app.block_on(app.haft.explain(call.clone()))?;
    let tried = args.run.then(|| app.block_on(app.haft.dry_run(call, &Halt::new())));
    app.block_on(app.haft.flush())?;
    if app.json {
        let mut value = serde_json::to_value(&explained).unwrap_or_default();
        if let Some(tried) = &tried {
            value["trial"] = serde_json::to_value(tried).unwrap_or_default();
        }
        style::json(&value);
    } else {
        show(&explained);
        tried.iter().for_each(super::call::show);
    }
    // Explaining went well even where what it explains would not.
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
    if let Some(hold) = &explained.hold {
        style::out(&format!("  confinement {}", hold.level));
        for (name, held) in &hold.permissions {
            style::out(&format!("    {name:<8} {held}"));
        }
        let undo =
            hold.gap.as_ref().map_or_else(|| "can be undone".to_owned(), |gap| format!("cannot be undone: {gap}"));
        style::out(&format!("    {:<8} {undo}", "changes"));
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
