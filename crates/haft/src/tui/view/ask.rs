//! A question, above what is typed.

use super::{View, height, rule};
use crate::style::{BAD, BOLD, CARE, FAINT, NAME, Row};
use crate::terminal;
use crate::tui::ask::{Asked, Stage, What};
use crate::tui::edit::Editor;
use crate::tui::form::{Blank, Filled, Sheet, choices};
use crate::tui::screen::{Focus, Screen};
use crate::tui::text::{Break, inert, row, width, wrap};
use anstyle::Style;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// As many lines it may take, however few there are.
const LEAST: usize = 8;
/// So much of a child's name is shown.
const NAMED: usize = 30;

/// A question as lines.
pub(super) struct Shown {
    head: Row,
    /// What can be scrolled.
    body: Vec<Row>,
    /// What is always seen: the answers.
    feet: Vec<Row>,
    whole: bool,
}

/// The first question that waits.
pub(super) fn rows(screen: &Screen, columns: usize) -> Option<Shown> {
    let asked = screen.asked.front()?;
    let focused = screen.look.focus == Focus::Ask;
    let more = screen.asked.len() - 1;
    let more = if more > 0 { format!(", {more} more after it") } else { String::new() };
    let word = match &asked.what {
        What::Call(question, _) => format!("may it?{}", who(screen, question)),
        What::Form(_) => "a tool asks".to_owned(),
    };
    let (body, mut feet) = match &asked.what {
        What::Call(question, stage) => {
            (about(question, asked.unfolded, columns), answers(question, stage, asked.whole, columns))
        }
        What::Form(sheet) => form(sheet, screen.look.work.is_some(), columns),
    };
    feet.extend(asked.problem.iter().map(|problem| row(CARE, problem.clone())));
    if !focused {
        feet = vec![row(CARE, "tab to answer")];
    }
    Some(Shown { head: rule(&format!("{word}{more}"), columns), body, feet, whole: asked.whole })
}

/// Who asks and where, if it is a child.
fn who(screen: &Screen, question: &haft_runtime::Question) -> String {
    let Some(child) = screen.talk.maker(&question.call_id) else { return String::new() };
    let place = if child.mode == "worktree" { ", in a worktree" } else { "" };
    format!(" {} asks{place}", haft_core::preview::cut(&child.name, NAMED))
}

/// What is asked, as every terminal shows it. Differences are broken anywhere: every column of them means something.
fn about(question: &haft_runtime::Question, unfolded: bool, columns: usize) -> Vec<Row> {
    let mut rows = terminal::rows(question, usize::MAX);
    let mut changes = question.diff.as_ref().map_or(0, |diff| diff.lines().count());
    if unfolded {
        let folded = terminal::folded_rows(question);
        changes += folded.len();
        rows.extend(folded);
    }
    let first = rows.len().saturating_sub(changes);
    let broken = rows
        .iter()
        .enumerate()
        .flat_map(|(at, line)| wrap(line, columns, if at < first { Break::Words(2) } else { Break::Anywhere }));
    broken.collect()
}

fn answers(question: &haft_runtime::Question, stage: &Stage, whole: bool, columns: usize) -> Vec<Row> {
    match stage {
        Stage::Choose => {
            let keys = terminal::keys(question).into_iter().flat_map(|(key, rest)| {
                [(Style::new(), "[".to_owned()), (BOLD, key.to_owned()), (Style::new(), format!("]{rest} "))]
            });
            let back = whole.then(|| (FAINT, " esc or d goes back".to_owned()));
            wrap(&keys.chain(back).collect::<Row>(), columns, Break::Words(0))
        }
        Stage::Pattern(editor) => typed("for which pattern?", editor, columns),
        Stage::Reason(editor) => typed("what should the model be told? (enter for nothing)", editor, columns),
        Stage::Arguments(editor) => typed("with which arguments? (JSON)", editor, columns),
    }
}

/// Something that is typed, with a cursor of its own.
fn typed(asks: &str, editor: &Editor, columns: usize) -> Vec<Row> {
    let mut rows = wrap(&row(FAINT, format!("{asks}  esc goes back")), columns, Break::Words(0));
    rows.extend(boxed(editor, columns));
    rows
}

fn boxed(editor: &Editor, columns: usize) -> Vec<Row> {
    let (lines, (column, line)) = editor.lines(columns.saturating_sub(3));
    let skip = (line + 1).saturating_sub(4);
    let shown = |(at, text): (usize, &String)| {
        if at != line {
            return vec![(NAME, "  ".to_owned()), (Style::new(), text.clone())];
        }
        let at = split_at(text, column);
        let under = text[at..].chars().next();
        let after = &text[at + under.map_or(0, char::len_utf8)..];
        vec![
            (NAME, "> ".to_owned()),
            (Style::new(), text[..at].to_owned()),
            (Style::new().invert(), under.unwrap_or(' ').to_string()),
            (Style::new(), after.to_owned()),
        ]
    };
    lines.iter().enumerate().skip(skip).take(4).map(shown).collect()
}

/// The place in a text where a column is.
fn split_at(text: &str, column: usize) -> usize {
    use unicode_width::UnicodeWidthChar;
    let mut used = 0;
    for (at, c) in text.char_indices() {
        if used >= column {
            return at;
        }
        used += c.width().unwrap_or(0);
    }
    text.len()
}

fn form(sheet: &Sheet, covered: bool, columns: usize) -> (Vec<Row>, Vec<Row>) {
    let mut body = wrap(&[(BOLD, sheet.from.clone()), (FAINT, " asks:".to_owned())], columns, Break::Words(0));
    body.extend(sheet.message.iter().flat_map(|line| wrap(&row(Style::new(), line.clone()), columns, Break::Words(0))));
    for (at, blank) in sheet.blanks.iter().enumerate() {
        body.extend(filled(blank, at == sheet.at, columns));
    }
    let closes = if covered { "close the tasks" } else { "close" };
    let mut feet = vec![row(FAINT, format!("enter: next, and done   esc: {closes}   ctrl-x: decline"))];
    feet.extend(sheet.problem.iter().map(|problem| row(BAD, problem.clone())));
    (body, feet)
}

fn filled(blank: &Blank, here: bool, columns: usize) -> Vec<Row> {
    let field = &blank.field;
    let mut rows = wrap(&row(if here { BOLD } else { FAINT }, inert(&field.title)), columns, Break::Words(0));
    if let Some(more) = field.description.as_ref().filter(|_| here) {
        rows.extend(more.lines().flat_map(|line| wrap(&row(FAINT, inert(line)), columns, Break::Words(0))));
    }
    let cursor = |at: bool| if at && here { "> " } else { "  " };
    let option = |index: usize, mark: &str, title: &str, at: bool| {
        let line = row(Style::new(), format!("{}{mark} {}. {}", cursor(at), index + 1, inert(title)));
        wrap(&line, columns, Break::Words(9))
    };
    match &blank.filled {
        Filled::Words(editor) if here => rows.extend(boxed(editor, columns)),
        Filled::Words(editor) => rows.push(row(FAINT, format!("  {}", editor.text()))),
        Filled::YesNo(yes) => {
            let mark = |on: bool| if on { "(•)" } else { "( )" };
            rows.push(row(Style::new(), format!("{}{} yes  {} no", cursor(true), mark(*yes), mark(!*yes))));
        }
        Filled::One(at) => {
            for (index, choice) in choices(&field.kind).iter().enumerate() {
                let mark = if index == *at { "(•)" } else { "( )" };
                rows.extend(option(index, mark, &choice.title, index == *at));
            }
        }
        Filled::Many(chosen, at) => {
            for (index, choice) in choices(&field.kind).iter().enumerate() {
                let mark = if chosen.get(index) == Some(&true) { "[x]" } else { "[ ]" };
                rows.extend(option(index, mark, &choice.title, index == *at));
            }
        }
    }
    rows
}

impl Shown {
    /// How many lines it takes of those there are. Most of the screen, or nearly all of it if all is wanted.
    pub(super) fn height(&self, room: usize) -> usize {
        let all = 1 + self.body.len() + self.feet.len();
        let most = if self.whole { room } else { (room * 7 / 10).max(LEAST) };
        all.min(most.max(1 + self.feet.len() + 2)).min(room)
    }

    /// Draws it.
    pub(super) fn draw(&self, view: &View, screen: &mut Screen, area: Rect, buffer: &mut Buffer) {
        let lines = usize::from(area.height).saturating_sub(1 + self.feet.len());
        let last = self.body.len().saturating_sub(lines);
        let Some(asked) = screen.asked.front_mut() else { return };
        asked.scroll = asked.scroll.min(last);
        follow(asked, self.body.len(), lines);
        let top = asked.scroll;
        view.row(&self.head, area, 0, buffer);
        for (at, line) in self.body.iter().skip(top).take(lines).enumerate() {
            view.row(line, area, at + 1, buffer);
        }
        if last > 0 {
            let below = self.body.len().saturating_sub(top + lines);
            let note = row(BOLD, format!(" ↑ {top} ↓ {below} lines "));
            let wide = height(width(&note)).min(area.width);
            view.row(&note, Rect { x: area.right() - wide, width: wide, ..area }, 0, buffer);
        }
        let feet = height(self.feet.len()).min(area.height);
        let below = Rect { y: area.bottom() - feet, height: feet, ..area };
        self.feet.iter().enumerate().for_each(|(at, line)| view.row(line, below, at, buffer));
    }
}

/// Keeps the field that is being filled in within sight.
fn follow(asked: &mut Asked, rows: usize, lines: usize) {
    if let What::Form(sheet) = &asked.what {
        let share = rows * (sheet.at + 1) / sheet.blanks.len().max(1);
        asked.scroll = asked.scroll.max(share.saturating_sub(lines));
    }
}
