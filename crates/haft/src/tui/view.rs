//! The screen as it is drawn. It decides nothing: the same state and size give the same picture.
//!
//! ```text
//! ┌──────────────────────────────┬──────────┐
//! │ conversation                 │ work     │  the work beside it or above it, the help in its place
//! ├──────────────────────────────┴──────────┤
//! │ a question, if one waits                │
//! ├─────────────────────────────────────────┤
//! │ > what is typed                         │
//! │ status                                  │
//! └─────────────────────────────────────────┘
//! ```

mod ask;
mod bars;
mod lines;

use super::screen::{Focus, Screen, places};
use crate::style::{BOLD, FAINT, Row};
use crate::tui::text;
use anstyle::{AnsiColor, Color as Ansi, Effects, Style as AnsiStyle};
use lines::Lines;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};

/// Below this nobody could see what they decide about.
const SMALLEST: (u16, u16) = (40, 10);
/// From this width on the work is beside the conversation.
const WIDE: u16 = 100;
/// How wide it is there.
const WORK_COLUMNS: u16 = 40;

/// How it is drawn: with colours or without, and what need not be laid out again.
#[derive(Default)]
pub(crate) struct View {
    /// Whether there are colours. What matters can be told without.
    pub(crate) colours: bool,
    lines: Lines,
}

impl View {
    /// One that draws with colours or without.
    pub(crate) fn new(colours: bool) -> Self {
        Self { colours, ..Self::default() }
    }

    /// Draws everything.
    pub(crate) fn draw(&mut self, screen: &mut Screen, frame: &mut Frame<'_>) {
        let area = frame.area();
        if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
            return self.too_small(area, frame.buffer_mut());
        }
        let typed = height(bars::typing(screen, usize::from(area.width), usize::from(area.height)).rows.len());
        let asked = ask::rows(screen, usize::from(area.width));
        let room = area.height - 1 - typed;
        let asked_height = asked.as_ref().map_or(0, |asked| asked.height(usize::from(room)));
        let [above, middle, below, status] = split(area, [room - height(asked_height), height(asked_height), typed, 1]);
        self.above(screen, above, frame.buffer_mut());
        if let Some(asked) = asked {
            asked.draw(self, screen, middle, frame.buffer_mut());
        }
        // What was found is only known by now.
        let bar = bars::typing(screen, usize::from(area.width), usize::from(area.height));
        for (at, row) in bar.rows.iter().enumerate() {
            self.row(row, below, at, frame.buffer_mut());
        }
        self.row(&bars::status(screen, usize::from(area.width)), status, 0, frame.buffer_mut());
        if let Some((column, line)) = bar.cursor {
            frame.set_cursor_position(Position::new(below.x + height(column), below.y + height(line)));
        }
    }

    fn too_small(&self, area: Rect, buffer: &mut Buffer) {
        let (width, least) = ((area.width, area.height), SMALLEST);
        let text = format!("haft needs {}×{}, this is {}×{}", least.0, least.1, width.0, width.1);
        let rows = text::wrap(&text::row(AnsiStyle::new(), text), usize::from(area.width), text::Break::Words(0));
        rows.iter().enumerate().for_each(|(at, row)| self.row(row, area, at, buffer));
    }

    /// The conversation, and what is beside it or in its place.
    fn above(&mut self, screen: &mut Screen, area: Rect, buffer: &mut Buffer) {
        if let Focus::Help(top) = &mut screen.look.focus {
            let rows = bars::help(usize::from(area.width));
            *top = (*top).min(rows.len().saturating_sub(usize::from(area.height)));
            let seen = rows.iter().skip(*top).take(usize::from(area.height));
            return seen.enumerate().for_each(|(at, row)| self.row(row, area, at, buffer));
        }
        let Some(work) = &screen.look.work else { return self.talk(screen, area, buffer) };
        let beside = area.width >= WIDE;
        let (columns, lines) = if beside { (WORK_COLUMNS, area.height) } else { (area.width, area.height / 2) };
        let rows = bars::work(work, (usize::from(columns), usize::from(lines)), beside);
        // What is said and what comes of it stays in sight.
        let (pane, rest) = if beside {
            let left = Rect { width: area.width - columns, ..area };
            (Rect { x: left.right(), width: columns, ..area }, left)
        } else {
            let taken = height(rows.len()).min(lines);
            (Rect { height: taken, ..area }, Rect { y: area.y + taken, height: area.height - taken, ..area })
        };
        rows.iter().enumerate().for_each(|(at, row)| self.row(row, pane, at, buffer));
        self.talk(screen, rest, buffer);
    }

    fn talk(&mut self, screen: &mut Screen, area: Rect, buffer: &mut Buffer) {
        let width = usize::from(area.width);
        self.lines.lay(screen, width);
        let (mut rows, heads) = self.lines.all();
        // Before anything is said there are but notes, and nothing to choose.
        let welcome = if screen.begun() { Vec::new() } else { bars::welcome(screen, width) };
        rows.splice(0..0, &welcome);
        let chosen = match &screen.look.focus {
            Focus::Browse(path) => heads.iter().find(|(way, _)| way == path).map(|(_, at)| *at),
            _ => None,
        };
        let height = usize::from(area.height);
        screen.look.settle(&rows, height, chosen);
        let top = screen.look.top.unwrap_or(rows.len().saturating_sub(height));
        let wanted = screen.look.search.as_ref().map(|search| search.editor.text().to_lowercase());
        for (at, row) in rows.iter().skip(top).take(height).enumerate() {
            self.row(row, area, at, buffer);
            let y = area.y + self::height(at);
            if chosen == Some(top + at) {
                buffer.set_style(Rect { y, height: 1, ..area }, Style::new().add_modifier(Modifier::REVERSED));
            }
            for (column, columns) in wanted.iter().flat_map(|wanted| places(row, wanted)) {
                let found = Rect { x: area.x + self::height(column), y, width: self::height(columns), height: 1 };
                buffer.set_style(found.intersection(area), Style::new().add_modifier(Modifier::REVERSED));
            }
        }
        if screen.look.top.is_some() {
            let below = rows.len().saturating_sub(top + height);
            let note = text::row(BOLD, format!(" ↓ {below} more lines "));
            let wide = self::height(text::width(&note)).min(area.width);
            let place = Rect { x: area.right() - wide, y: area.bottom() - 1, width: wide, height: 1 };
            self.row(&note, place, 0, buffer);
        }
    }

    /// Draws one line, if it is in the area.
    fn row(&self, row: &Row, area: Rect, at: usize, buffer: &mut Buffer) {
        let y = area.y.saturating_add(height(at));
        if y >= area.bottom() {
            return;
        }
        let mut x = area.x;
        for (style, text) in row {
            // The last thing before the terminal: whatever comes from wherever, nothing in it acts.
            let shown = text::inert(text);
            let left = usize::from(area.right().saturating_sub(x));
            (x, _) = buffer.set_stringn(x, y, shown, left, self.style(*style));
        }
    }

    /// A style as it is drawn here.
    fn style(&self, style: AnsiStyle) -> Style {
        let effects = style.get_effects();
        let known = [
            (Effects::BOLD, Modifier::BOLD),
            (Effects::DIMMED, Modifier::DIM),
            (Effects::ITALIC, Modifier::ITALIC),
            (Effects::UNDERLINE, Modifier::UNDERLINED),
            (Effects::INVERT, Modifier::REVERSED),
        ];
        let set = known.into_iter().filter(|(effect, _)| effects.contains(*effect));
        let drawn = set.fold(Style::new(), |drawn, (_, modifier)| drawn.add_modifier(modifier));
        match style.get_fg_color() {
            Some(Ansi::Ansi(colour)) if self.colours => drawn.fg(self::colour(colour)),
            _ => drawn,
        }
    }
}

fn colour(colour: AnsiColor) -> Color {
    match colour {
        AnsiColor::Red | AnsiColor::BrightRed => Color::Red,
        AnsiColor::Green | AnsiColor::BrightGreen => Color::Green,
        AnsiColor::Yellow | AnsiColor::BrightYellow => Color::Yellow,
        AnsiColor::Blue | AnsiColor::BrightBlue => Color::Blue,
        AnsiColor::Magenta | AnsiColor::BrightMagenta => Color::Magenta,
        AnsiColor::Cyan | AnsiColor::BrightCyan => Color::Cyan,
        _ => Color::Reset,
    }
}

/// Areas of these heights, one below the other.
fn split<const N: usize>(area: Rect, heights: [u16; N]) -> [Rect; N] {
    let mut y = area.y;
    heights.map(|height| {
        let part = Rect { y, height, ..area };
        y += height;
        part
    })
}

/// Lines or columns as the terminal counts them.
fn height(lines: usize) -> u16 {
    u16::try_from(lines).unwrap_or(u16::MAX)
}

/// A line across, with a word in it.
fn rule(word: &str, width: usize) -> Row {
    let word = if word.is_empty() { String::new() } else { format!(" {word} ") };
    let rest = width.saturating_sub(2 + word.chars().count());
    vec![(FAINT, "──".to_owned()), (BOLD, word), (FAINT, "─".repeat(rest))]
}
