//! What is below the conversation and beside it: what is typed, the status, the help, the work.

use super::lines::spinner;
use super::rule;
use crate::style::{BOLD, CARE, FAINT, NAME, Row};
use crate::tui::command::{self, COMMANDS};
use crate::tui::keys::KEYS;
use crate::tui::screen::{Focus, Screen};
use crate::tui::text::{Break, count, cut, inert, lasted, money, row, width, wrap};
use anstyle::Style;

/// What is typed, and where the cursor is in it.
pub(super) struct Bar {
    pub(super) rows: Vec<Row>,
    /// Its column and its line; none if keys are for something else.
    pub(super) cursor: Option<(usize, usize)>,
}

/// What is typed: a message, or what is looked for.
pub(super) fn typing(screen: &Screen, columns: usize, lines: usize) -> Bar {
    let searched = screen.look.search.as_ref().filter(|_| screen.look.focus == Focus::Search);
    let (mark, editor) = searched.map_or(("> ", &screen.editor), |search| ("/ ", &search.editor));
    let (typed, (column, line)) = editor.lines(columns.saturating_sub(3));
    let most = (lines / 4).clamp(1, 8);
    let skip = (line + 1).saturating_sub(most).min(typed.len().saturating_sub(most));
    let mut rows = vec![rule(&heading(screen), columns)];
    for (at, text) in typed.iter().enumerate().skip(skip).take(most) {
        rows.push(vec![(NAME, if at == 0 { mark } else { "  " }.to_owned()), (Style::new(), text.clone())]);
    }
    if editor.is_empty() && screen.look.focus == Focus::Type {
        let hint = if screen.works() { "say something meanwhile" } else { "say something   ? for the keys" };
        rows.truncate(1);
        rows.push(vec![(NAME, mark.to_owned()), (FAINT, hint.to_owned())]);
    }
    let typing = matches!(screen.look.focus, Focus::Type | Focus::Search);
    Bar { rows, cursor: typing.then_some((column + 2, line - skip + 1)) }
}

/// What is said above what is typed.
fn heading(screen: &Screen) -> String {
    match &screen.look.focus {
        Focus::Search => {
            let at = screen.look.search.as_ref().map_or(0, |search| search.back + 1);
            let found =
                if screen.look.hits == 0 { "nothing".to_owned() } else { format!("{at} of {}", screen.look.hits) };
            format!("search: {found}; up and down between them, esc closes")
        }
        Focus::Browse(_) if !screen.asked.is_empty() => "looking: tab to answer the question above".to_owned(),
        Focus::Browse(_) => "looking: up down, enter unfolds, esc goes back".to_owned(),
        Focus::Help(_) => "help: up down, any other key closes".to_owned(),
        Focus::Type if !screen.asked.is_empty() => "tab to answer the question above".to_owned(),
        Focus::Type => command::completions(screen.editor.text()).join(" "),
        Focus::Ask => String::new(),
    }
}

/// One line: what goes on, the model, the conversation, how full it is, what it cost.
pub(super) fn status(screen: &Screen, columns: usize) -> Row {
    let pace = &screen.pace;
    let mut left = match pace.since {
        Some(since) => {
            let doing = if pace.stopping { "stopping" } else { "working" };
            let lasts = lasted(pace.now.saturating_sub(since));
            vec![
                (NAME, format!("{} {doing} {lasts}", spinner(pace.now))),
                (FAINT, if pace.stopping { String::new() } else { format!("  {}", screen.escapes()) }),
            ]
        }
        None => row(FAINT, "ready"),
    };
    if pace.leaving.is_some() {
        left = row(CARE, "ctrl-c again to leave");
    }
    let tally = &screen.talk.tally;
    let mut facts = vec![screen.about.model.clone()];
    if let Some(share) = (tally.filled * 100).checked_div(tally.window) {
        facts.push(format!("{}/{} ({share}%)", count(tally.filled), count(tally.window)));
    }
    facts.extend(tally.cost.map(money));
    facts.push(screen.about.session.clone());
    let mut room = columns.saturating_sub(width(&left) + 2);
    // The session goes first if there is no room, then what it cost.
    while facts.len() > 1 && facts.iter().map(|fact| fact.chars().count() + 3).sum::<usize>() > room + 3 {
        facts.pop();
    }
    facts.retain(|fact| !fact.is_empty());
    let right = cut(&row(FAINT, facts.join(" · ")), room);
    room = room.saturating_sub(width(&right));
    [left, row(FAINT, " ".repeat(room + 2)), right].concat()
}

/// All keys and commands.
pub(super) fn help(columns: usize) -> Vec<Row> {
    let mut rows =
        vec![row(BOLD, "haft"), row(FAINT, "Every call is shown, decided, recorded, and can be taken back.")];
    let line = |key: &str, does: &str| {
        let text = vec![(NAME, format!("  {key:<21} ")), (Style::new(), does.to_owned())];
        wrap(&text, columns, Break::Words(24))
    };
    for (place, keys) in KEYS {
        rows.extend([Row::new(), row(BOLD, *place)]);
        rows.extend(keys.iter().flat_map(|(key, does)| line(key, does)));
    }
    rows.extend([Row::new(), row(BOLD, "commands")]);
    rows.extend(COMMANDS.iter().flat_map(|(name, given, does)| line(format!("{name} {given}").trim_end(), does)));
    rows
}

/// What is to be done, and how far it is.
pub(super) fn work(work: &[Row], (columns, lines): (usize, usize), beside: bool) -> Vec<Row> {
    let edge = if beside { "│ " } else { "" };
    let room = columns.saturating_sub(edge.chars().count());
    let mut rows = vec![vec![(BOLD, "tasks and runs".to_owned()), (FAINT, "  esc closes this".to_owned())]];
    if beside {
        rows.push(Row::new());
    }
    if work.is_empty() {
        rows.push(row(FAINT, "nothing is to be done"));
    }
    rows.extend(work.iter().map(|line| cut(line, room)));
    // Beside the conversation the edge goes all the way down; above it, a line ends what is shown.
    let most = if beside { lines } else { lines.saturating_sub(1) };
    if rows.len() > most {
        let left = rows.len() + 1 - most.max(1);
        rows.truncate(most.saturating_sub(1));
        rows.push(row(FAINT, format!("… {left} more lines")));
    }
    if beside {
        rows.resize_with(lines, Row::new);
    } else {
        rows.push(rule("", columns));
    }
    rows.into_iter().map(|line| [row(FAINT, edge), line].concat()).collect()
}

/// What is shown before anything was said: where this is, who is asked, and what to do.
pub(super) fn welcome(screen: &Screen, columns: usize) -> Vec<Row> {
    let about = &screen.about;
    let facts = [("project", &about.project), ("model", &about.model)];
    let known = facts.into_iter().filter(|(_, fact)| !fact.is_empty());
    let facts = known.map(|(name, fact)| vec![(FAINT, format!("{name:<8} ")), (Style::new(), inert(fact))]);
    let todo = [
        "Type what is to be done; enter says it.",
        "What needs your yes is asked here.",
        "? shows the keys, ctrl-d leaves.",
    ];
    let todo = todo.into_iter().map(|line| row(FAINT, line));
    let rows: Vec<Row> = facts.chain([Row::new()]).chain(todo).chain([Row::new()]).collect();
    rows.iter().flat_map(|line| wrap(line, columns, Break::Words(0))).collect()
}
