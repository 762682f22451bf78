//! The lines of a conversation. What is as it was when it was last drawn is not laid out again.

use crate::style::{BAD, BOLD, CARE, FAINT, GOOD, NAME, Row};
use crate::tui::markdown;
use crate::tui::screen::Screen;
use crate::tui::talk::{Child, Entry, Item, Path, Talk, Tone, Tool};
use crate::tui::text::{Break, cut, inert, lasted, row, width, wrap};
use anstyle::Style;

/// What turns while something goes on.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How many lines of what a call prints are shown while it runs.
const TAIL: usize = 3;
/// How many lines of a result are shown when it is unfolded.
const RESULT_LINES: usize = 400;

/// The spinner as it stands.
pub(super) fn spinner(now: u64) -> &'static str {
    let at = usize::try_from(now / 100 % 10).unwrap_or(0);
    SPINNER.get(at).copied().unwrap_or("⠋")
}

/// Where things that can be chosen begin.
type Heads = Vec<(Path, usize)>;

/// The lines of one entry.
#[derive(Default)]
struct Laid {
    version: u64,
    rows: Vec<Row>,
    heads: Heads,
}

/// The lines of a conversation.
#[derive(Default)]
pub(super) struct Lines {
    laid: Vec<Laid>,
    /// For which conversation and width that was.
    fits: (u64, usize),
}

impl Lines {
    /// Lays out what has changed.
    pub(super) fn lay(&mut self, screen: &Screen, width: usize) {
        let fits = (screen.look.conversation, width);
        if self.fits != fits {
            (self.laid, self.fits) = (Vec::new(), fits);
        }
        self.laid.truncate(screen.talk.entries.len());
        self.laid.resize_with(screen.talk.entries.len(), Laid::default);
        let mut before: Option<&Entry> = None;
        for (entry, laid) in screen.talk.entries.iter().zip(&mut self.laid) {
            if laid.version != entry.version || entry.item.moves() {
                let mut fresh = Laid { version: entry.version, ..Laid::default() };
                if before.is_some_and(|before| apart(&before.item, &entry.item)) {
                    fresh.rows.push(Row::new());
                }
                put(entry, width, screen.pace.now, &mut fresh);
                *laid = fresh;
            }
            before = Some(entry);
        }
    }

    /// All lines, and where things that can be chosen begin.
    pub(super) fn all(&self) -> (Vec<&Row>, Heads) {
        let (mut rows, mut heads) = (Vec::new(), Heads::new());
        for (at, laid) in self.laid.iter().enumerate() {
            let first = rows.len();
            let found = laid.heads.iter().map(|(path, row)| ([vec![at], path.clone()].concat(), first + row));
            heads.extend(found);
            rows.extend(&laid.rows);
        }
        (rows, heads)
    }
}

/// Whether there is an empty line between two entries: calls that follow each other stand together, and so do notes.
fn apart(before: &Item, after: &Item) -> bool {
    let small = |item: &Item| matches!(item, Item::Tool(_) | Item::Child(_) | Item::Thought(_));
    let notes = matches!((before, after), (Item::Note(..), Item::Note(..)));
    !(notes || small(before) && small(after))
}

/// Adds the lines of an entry.
fn put(entry: &Entry, width: usize, now: u64, laid: &mut Laid) {
    match &entry.item {
        Item::You { text, waits } => you(text, *waits, width, &mut laid.rows),
        Item::Model(text) => laid.rows.extend(markdown::rows(text, width)),
        Item::Thought(text) => thought(text, entry.open, width, laid),
        Item::Tool(tool) => call(tool, entry.open, width, now, laid),
        Item::Child(child) => family(child, entry.open, width, now, laid),
        Item::Note(tone, text) => note(*tone, text, width, &mut laid.rows),
    }
}

fn you(text: &str, waits: bool, width: usize, rows: &mut Vec<Row>) {
    let mark = |at: usize| if at == 0 { "> " } else { "  " };
    let lines = text.trim_end().lines().flat_map(|line| {
        wrap(&row(if waits { FAINT } else { BOLD }, inert(line)), width.saturating_sub(2), Break::Words(0))
    });
    rows.extend(lines.enumerate().map(|(at, line)| [row(NAME, mark(at)), line].concat()));
    if waits {
        rows.push(row(FAINT, "  (told with the next results)"));
    }
}

fn note(tone: Tone, text: &str, width: usize, rows: &mut Vec<Row>) {
    let (mark, style) = match tone {
        Tone::Plain => ("· ", FAINT),
        Tone::Care => ("! ", CARE),
        Tone::Bad => ("✗ ", BAD),
    };
    for (at, line) in text.trim_end().lines().enumerate() {
        let lead = if at == 0 { mark } else { "  " };
        rows.extend(wrap(&row(style, format!("{lead}{}", inert(line))), width, Break::Words(2)));
    }
}

fn thought(text: &str, open: bool, width: usize, laid: &mut Laid) {
    laid.heads.push((Path::new(), laid.rows.len()));
    if !open {
        let last = text.trim_end().lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        return laid.rows.push(cut(&row(FAINT.italic(), format!("∴ {}", inert(last.trim()))), width));
    }
    laid.rows.push(row(FAINT.italic(), "∴ thoughts"));
    for line in text.trim_end().lines() {
        let parts = wrap(&row(FAINT.italic(), inert(line)), width.saturating_sub(2), Break::Words(0));
        laid.rows.extend(parts.into_iter().map(|part| [row(FAINT, "  "), part].concat()));
    }
}

/// A mark, a line about it, and how long it took or takes.
fn head(mark: (Style, &str), about: &[(Style, String)], time: &str, columns: usize) -> Row {
    let time = if time.is_empty() { String::new() } else { format!("  {time}") };
    let room = columns.saturating_sub(2 + time.chars().count());
    [vec![(mark.0, format!("{} ", mark.1))], cut(about, room), row(FAINT, time)].concat()
}

fn call(tool: &Tool, open: bool, width: usize, now: u64, laid: &mut Laid) {
    laid.heads.push((Path::new(), laid.rows.len()));
    let (mark, time) = match &tool.end {
        None => ((NAME, spinner(now)), lasted(now.saturating_sub(tool.since))),
        Some(end) if end.well => ((GOOD, "✓"), end.took.map(lasted).unwrap_or_default()),
        Some(end) => ((BAD, "✗"), end.took.map(lasted).unwrap_or_default()),
    };
    let (name, rest) = tool.preview.split_once(':').map_or((tool.preview.as_str(), ""), |at| at);
    let about = vec![(NAME, name.to_owned()), (Style::new(), rest.to_owned())];
    laid.rows.push(head(mark, &about, &time, width));
    let inside = |style: Style, text: &str| {
        let parts = wrap(&row(style, text.to_owned()), width.saturating_sub(4), Break::Anywhere);
        parts.into_iter().map(|part| [row(FAINT, "  │ "), part].concat()).collect::<Vec<Row>>()
    };
    let Some(end) = &tool.end else {
        let skip = if open { 0 } else { tool.printed.len().saturating_sub(TAIL) };
        let tail = tool.printed.iter().skip(skip);
        if open {
            laid.rows.extend(tail.flat_map(|line| inside(FAINT, line)));
        } else {
            laid.rows.extend(tail.map(|line| cut(&row(FAINT, format!("  │ {line}")), width)));
        }
        return;
    };
    let style = if end.well { FAINT } else { BAD };
    let lines = || end.text.trim_end().lines().skip_while(|line| line.trim().is_empty());
    if open {
        laid.rows.extend(lines().take(RESULT_LINES).flat_map(|line| inside(style, &inert(line))));
        let more = lines().count().saturating_sub(RESULT_LINES);
        laid.rows.extend((more > 0).then(|| row(FAINT, format!("  │ … {more} more lines: haft log shows them"))));
    } else if let Some(first) = lines().next() {
        let more = lines().count() - 1;
        let more = if more > 0 { format!("  (+{more} lines)") } else { String::new() };
        let room = width.saturating_sub(more.chars().count());
        let line = cut(&row(style, format!("  └ {}", inert(first))), room);
        laid.rows.push([line, row(FAINT, more)].concat());
    }
}

/// A child: one line about it, and all that happens in it if it is unfolded.
fn family(child: &Child, open: bool, columns: usize, now: u64, laid: &mut Laid) {
    laid.heads.push((Path::new(), laid.rows.len()));
    let (mark, state) = match &child.ended {
        None => ((NAME, spinner(now)), format!("{}, {}", child.used(), lasted(now.saturating_sub(child.since)))),
        Some((true, _)) => ((GOOD, "✓"), child.used()),
        Some((false, _)) => ((BAD, "✗"), child.used()),
    };
    let fold = if open { "▾ " } else { "▸ " };
    let mode = if child.mode == "sync" { String::new() } else { format!(" [{}]", child.mode) };
    let about =
        vec![(BOLD, format!("{fold}{}", child.name)), (FAINT, mode), (Style::new(), format!(": {}", child.task))];
    laid.rows.push(head(mark, &about, &state, columns));
    if !open {
        let doing = child.ended.as_ref().map_or_else(|| child.doing(), |(_, text)| text.clone());
        if !doing.is_empty() {
            laid.rows.push(cut(&row(FAINT, format!("  └ {doing}")), columns));
        }
        return;
    }
    inside(&child.talk, columns, now, laid);
}

/// The lines of a conversation within another one, further to the right.
fn inside(talk: &Talk, columns: usize, now: u64, laid: &mut Laid) {
    for (at, entry) in talk.entries.iter().enumerate() {
        let mut inner = Laid::default();
        put(entry, columns.saturating_sub(2).max(20), now, &mut inner);
        let first = laid.rows.len();
        laid.heads.extend(inner.heads.into_iter().map(|(path, row)| ([vec![at], path].concat(), first + row)));
        laid.rows.extend(inner.rows.into_iter().map(|line| {
            debug_assert!(width(&line) <= columns);
            [row(FAINT, "│ "), line].concat()
        }));
    }
}
