//! Tasks as people and models read them.

use haft_core::preview::{cut, inert};
use haft_store::tasks::{Priority, Task};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};

/// So much of a name is shown: enough for a million tasks, and more is given where it matters.
const NAME: usize = 8;

/// The beginning of a task's name.
pub fn short(id: &str) -> &str {
    id.get(..NAME).unwrap_or(id)
}

/// A moment for somebody in this zone: without what goes without saying.
pub fn moment(ms: i64, now_ms: i64, zone: &TimeZone) -> String {
    let zoned = |ms: i64| Timestamp::from_millisecond(ms).map(|time| time.to_zoned(zone.clone()));
    let (Ok(time), Ok(now)) = (zoned(ms), zoned(now_ms)) else { return "?".to_owned() };
    let end_of_day = (time.hour(), time.minute()) == (23, 59);
    let clock = if end_of_day { String::new() } else { time.strftime(" %H:%M").to_string() };
    let day = day(&time, &now).map_or_else(|| time.strftime("%Y-%m-%d").to_string(), str::to_owned);
    format!("{day}{clock}")
}

fn day(time: &Zoned, now: &Zoned) -> Option<&'static str> {
    let (date, today) = (time.date(), now.date());
    match () {
        () if date == today => Some("today"),
        () if Some(date) == today.tomorrow().ok() => Some("tomorrow"),
        () if Some(date) == today.yesterday().ok() => Some("yesterday"),
        () => None,
    }
}

/// Where it stands, in a word or two.
pub fn standing(task: &Task) -> String {
    match &task.standing.waits_for {
        Some(_) => "needs you".to_owned(),
        None => task.status.as_str().replace('_', " "),
    }
}

/// What is said of each task in a table: name, status, priority, when, title.
pub fn row(task: &Task, now_ms: i64, zone: &TimeZone) -> [String; 5] {
    let due = task.about.due_ms.map(|due| format!("due {}", moment(due, now_ms, zone)));
    let next =
        task.standing.next_ms.filter(|_| !task.is_owed()).map(|next| format!("next {}", moment(next, now_ms, zone)));
    let priority = if task.about.priority == Priority::Medium { "" } else { task.about.priority.as_str() };
    let tags: String = task.about.tags.iter().map(|tag| format!(" #{}", inert(tag))).collect();
    let part = if task.about.parent.is_some() { "↳ " } else { "" };
    [
        short(&task.id).to_owned(),
        standing(task),
        priority.to_owned(),
        due.into_iter().chain(next).collect::<Vec<_>>().join(", "),
        format!("{part}{}{tags}", cut(&inert(&task.about.title), 80)),
    ]
}

/// Tasks in columns, without colours.
pub fn table(tasks: &[Task], now_ms: i64, zone: &TimeZone) -> String {
    let rows: Vec<[String; 5]> = tasks.iter().map(|task| row(task, now_ms, zone)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let line = |row: &[String; 5]| {
        let cells = widths.iter().zip(row).filter(|(width, _)| **width > 0);
        let head: String = cells.map(|(width, cell)| format!("{cell:width$}  ", width = *width)).collect();
        format!("{head}{}", row[4]).trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A task as data, with its times as text as well.
pub fn data(task: &Task) -> Value {
    let mut value = serde_json::to_value(task).unwrap_or_default();
    let iso = |ms: Option<i64>| ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()).map(|time| time.to_string());
    for (name, ms) in [("due", task.about.due_ms), ("next", task.standing.next_ms)] {
        if let Some(text) = iso(ms) {
            value[name] = json!(text);
        }
    }
    value
}
