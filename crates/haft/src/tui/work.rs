//! What is to be done in this project, and how far it is: open tasks, and runs with their steps.

use crate::app::App;
use crate::style::{BAD, BOLD, CARE, FAINT, GOOD, NAME, Row};
use crate::tui::text::{inert, row};
use anstyle::Style;
use haft_runtime::{now_ms, promised};
use haft_store::StoreError;
use haft_store::tasks::TaskFilter;
use haft_store::work::{RunSeen, StepSeen};
use jiff::tz::TimeZone;

/// How many tasks and runs are shown.
const SHOWN: u32 = 20;
/// How many runs are shown that are over.
const OVER: usize = 3;

/// The lines of it.
pub(super) async fn rows(app: &App) -> Result<Vec<Row>, StoreError> {
    let root = app.haft.workspace().stored_root();
    let filter = TaskFilter { places: vec![root.clone(), String::new()], limit: SHOWN, ..TaskFilter::default() };
    let (tasks, now, zone) = (app.store().tasks(filter).await?, now_ms(), TimeZone::system());
    let mut rows = Vec::new();
    if !tasks.is_empty() {
        rows.push(row(BOLD, "tasks"));
    }
    for task in &tasks {
        let [id, status, _, due, title] = promised::row(task, now, &zone).map(|cell| inert(&cell));
        let due = if due.is_empty() { due } else { format!(" {due}") };
        rows.push(vec![(NAME, id), (FAINT, format!(" {status}{due} ")), (Style::new(), title)]);
    }
    let runs = app.store().runs(&root, SHOWN).await?;
    let (over, under_way): (Vec<RunSeen>, Vec<RunSeen>) = runs.into_iter().partition(|run| run.ended_ms.is_some());
    if !under_way.is_empty() || !over.is_empty() {
        rows.extend([Row::new(), row(BOLD, "runs")]);
    }
    for run in &under_way {
        rows.push(line(run));
        rows.extend(app.store().steps(&run.id).await?.iter().map(step));
    }
    rows.extend(over.iter().take(OVER).map(line));
    Ok(rows)
}

/// A state by its mark.
fn mark(state: &str) -> (Style, String) {
    let (style, mark) = match state {
        "done" => (GOOD, "✓"),
        "failed" | "uncertain" | "cancelled" => (BAD, "✗"),
        "running" | "nested" => (NAME, "▸"),
        "asking" => (CARE, "?"),
        _ => (FAINT, "·"),
    };
    (style, format!("{mark} "))
}

fn line(run: &RunSeen) -> Row {
    let done = run.count - run.unsettled;
    let far = format!("  {} {done}/{}", run.stands, run.count);
    vec![mark(&run.stands), (Style::new(), inert(&run.name)), (FAINT, far)]
}

fn step(step: &StepSeen) -> Row {
    let (style, mark) = mark(&step.state);
    vec![(style, format!("  {mark}")), (Style::new(), inert(&step.id)), (FAINT, format!("  {}", step.state))]
}
