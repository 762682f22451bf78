//! Tasks as a terminal shows them.

use crate::style::{self, BAD, BOLD, CARE, FAINT, GOOD, NAME, paint};
use crate::time;
use anstyle::Style;
use haft_core::preview::cut;
use haft_runtime::promised;
use haft_store::tasks::{Priority, Task, TaskRun, TaskStatus};
use jiff::tz::TimeZone;

fn colour(status: TaskStatus) -> Style {
    match status {
        TaskStatus::Done => GOOD,
        TaskStatus::Failed => BAD,
        TaskStatus::Waiting => CARE,
        TaskStatus::InProgress => NAME,
        TaskStatus::Pending | TaskStatus::Cancelled => FAINT,
    }
}

/// Tasks in columns.
pub(super) fn table(tasks: &[Task], now_ms: i64) -> String {
    let zone = TimeZone::system();
    let rows: Vec<[String; 5]> = tasks.iter().map(|task| promised::row(task, now_ms, &zone)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let line = |(task, row): (&Task, &[String; 5])| painted(task, row, widths, now_ms);
    tasks.iter().zip(&rows).map(line).collect::<Vec<_>>().join("\n")
}

fn painted(task: &Task, row: &[String; 5], widths: [usize; 4], now_ms: i64) -> String {
    let late = task.about.due_ms.is_some_and(|due| due < now_ms) && !task.status.closed();
    let urgent = task.about.priority >= Priority::High;
    let styles = [NAME, colour(task.status), if urgent { CARE } else { FAINT }, if late { BAD } else { FAINT }];
    let cells = widths.iter().zip(row).zip(styles).filter(|((width, _), _)| **width > 0);
    // Spaces outside the colour, so that lines end where they end.
    let cell = |((width, cell), style): ((&usize, &String), Style)| {
        let space = " ".repeat(width.saturating_sub(cell.chars().count()) + 2);
        if cell.is_empty() { space } else { format!("{}{space}", paint(style, cell)) }
    };
    let head: String = cells.map(cell).collect();
    format!("{head}{}", if task.status.closed() { paint(FAINT, &row[4]) } else { row[4].clone() })
}

/// One task in one line.
pub(super) fn line(task: &Task, now_ms: i64) -> String {
    table(std::slice::from_ref(task), now_ms)
}

/// All that is known of a task.
pub(super) fn whole(task: &Task, parts: &[Task], now_ms: i64) -> String {
    let (about, promise, standing) = (&task.about, &task.promise, &task.standing);
    let mut text = vec![format!("{} {}", paint(NAME, &task.id), paint(BOLD, style::inert(&about.title)))];
    let mut say = |name: &str, value: Option<String>| {
        text.extend(value.map(|value| format!("  {} {}", paint(FAINT, format!("{name:<10}")), style::inert(&value))));
    };
    say("status", Some(promised::standing(task)));
    say("approval", standing.waits_for.as_ref().map(|id| format!("{id}: `haft approvals show {id}`")));
    say("kind", Some(task.kind.as_str().to_owned()));
    say("priority", Some(about.priority.as_str().to_owned()));
    say("due", about.due_ms.map(time::shown));
    say("tags", (!about.tags.is_empty()).then(|| about.tags.join(", ")));
    say("part of", about.parent.clone());
    say("project", Some(if task.place.is_empty() { "(yours, anywhere)".to_owned() } else { task.place.clone() }));
    say("assignee", promise.assignee.clone());
    say("does", promise.spec.as_ref().map(|spec| cut(&spec.to_string(), 400)));
    let zone = || promise.zone.as_deref().unwrap_or("UTC");
    say(
        "schedule",
        promise.schedule.as_ref().map(|when| format!("{when} ({}; missed: {})", zone(), promise.missed.as_str())),
    );
    say("autonomy", promise.owner.autonomy.map(|level| format!("{level:?}").to_lowercase()));
    say("next", standing.next_ms.filter(|_| !task.is_owed()).map(time::shown));
    say("run", standing.run.clone());
    say("missed", (standing.missed > 0).then(|| format!("{} times", standing.missed)));
    say("made", Some(time::shown(standing.made_ms)));
    say("last run", standing.ran_ms.map(|ran| format!("{}, {}", time::shown(ran), ended(standing.ok))));
    for (heading, words) in [("", &about.description), ("result", &standing.result)] {
        if let Some(words) = words {
            text.push(if heading.is_empty() { String::new() } else { format!("\n{}", paint(BOLD, heading)) });
            text.push(style::inert(words));
        }
    }
    if !parts.is_empty() {
        text.push(format!("\n{}", paint(BOLD, "parts")));
        text.push(table(parts, now_ms));
    }
    text.join("\n")
}

fn ended(ok: Option<bool>) -> &'static str {
    match ok {
        Some(true) => "well",
        Some(false) => "failed",
        None => "under way",
    }
}

/// One run.
pub(super) fn run(run: &TaskRun) -> String {
    let style = match run.ok {
        Some(true) => GOOD,
        Some(false) => BAD,
        None => NAME,
    };
    let head = format!("{}  {}", paint(FAINT, time::shown(run.at_ms)), paint(style, ended(run.ok)));
    let words = run.result.as_ref().filter(|text| !text.is_empty());
    match words {
        Some(words) => {
            let lines: Vec<String> = words.lines().map(|line| format!("    {}", style::inert(line))).collect();
            format!("{head}\n{}", lines.join("\n"))
        }
        None => head,
    }
}
