//! Pictures of terminals as SVG: text, colours and backgrounds, cell by cell.

use std::fmt::Write;
use vt100::{Cell, Color, Screen};

const CELL_WIDTH: f32 = 8.4;
const CELL_HEIGHT: f32 = 18.0;
const MARGIN: f32 = 12.0;
const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d7dae0";
/// The first sixteen colours of a terminal.
const PALETTE: [&str; 16] = [
    "#2b2f38", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4", "#7f8694", "#ef8d95",
    "#b2d99a", "#f0d49b", "#8cc5f5", "#d69ce6", "#80cdd6", "#ffffff",
];

/// The screen without the empty lines above and below what it shows, and with `~` for the home directory.
pub(crate) fn svg(screen: &Screen, title: &str, home: &str) -> String {
    let (rows, columns) = screen.size();
    let is_empty = |row: &u16| (0..columns).all(|column| content(screen, *row, column).trim().is_empty());
    let first = (0..rows).find(|row| !is_empty(row)).unwrap_or(0);
    let last = (0..rows).rev().find(|row| !is_empty(row)).unwrap_or(0);
    let shown = squeezed((first..=last).collect(), &is_empty);
    let width = f32::from(columns) * CELL_WIDTH + 2.0 * MARGIN;
    let height = f32::from(u16::try_from(shown.len()).unwrap()) * CELL_HEIGHT + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n",
        escaped(title)
    );
    for (line, row) in shown.iter().enumerate() {
        let top = MARGIN + f32::from(u16::try_from(line).unwrap()) * CELL_HEIGHT;
        for mut run in runs(screen, *row, columns) {
            run.text = run.text.replace(home, "~");
            run.draw(&mut svg, top);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The rows with at most two empty ones in a row.
fn squeezed(rows: Vec<u16>, is_empty: &impl Fn(&u16) -> bool) -> Vec<u16> {
    let mut empty = 0;
    let keep = |row: &u16| {
        empty = if is_empty(row) { empty + 1 } else { 0 };
        empty <= 1
    };
    rows.into_iter().filter(keep).collect()
}

fn content(screen: &Screen, row: u16, column: u16) -> String {
    screen.cell(row, column).map(|cell| cell.contents().to_owned()).unwrap_or_default()
}

/// Neighbouring cells that look alike.
struct Run {
    column: u16,
    cells: u16,
    text: String,
    style: Style,
}

#[derive(Debug, Clone, PartialEq)]
struct Style {
    foreground: String,
    background: Option<String>,
    is_bold: bool,
    is_dim: bool,
}

impl Style {
    fn of(cell: Option<&Cell>) -> Self {
        let (mut foreground, mut background) =
            cell.map_or((Color::Default, Color::Default), |c| (c.fgcolor(), c.bgcolor()));
        let inverse = cell.is_some_and(Cell::inverse);
        if inverse {
            std::mem::swap(&mut foreground, &mut background);
        }
        let plain = if inverse { BACKGROUND } else { FOREGROUND };
        let behind = if inverse { Some(FOREGROUND.to_owned()) } else { None };
        Self {
            foreground: colour(foreground).unwrap_or_else(|| plain.to_owned()),
            background: colour(background).or(behind),
            is_bold: cell.is_some_and(Cell::bold),
            is_dim: cell.is_some_and(Cell::dim),
        }
    }
}

fn colour(colour: Color) -> Option<String> {
    match colour {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        Color::Idx(index @ 0..16) => Some(PALETTE[usize::from(index)].to_owned()),
        Color::Idx(index @ 16..232) => {
            let step = |level: u8| if level == 0 { 0 } else { 55 + 40 * level };
            let cube = index - 16;
            Some(format!("#{:02x}{:02x}{:02x}", step(cube / 36), step(cube / 6 % 6), step(cube % 6)))
        }
        Color::Idx(index) => {
            let grey = 8 + 10 * (index - 232);
            Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
        }
    }
}

fn runs(screen: &Screen, row: u16, columns: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..columns {
        let cell = screen.cell(row, column);
        if cell.is_some_and(Cell::is_wide_continuation) {
            continue;
        }
        let (style, text) = (Style::of(cell), content(screen, row, column));
        let text = if text.is_empty() { " ".to_owned() } else { text };
        let cells = if cell.is_some_and(Cell::is_wide) { 2 } else { 1 };
        match runs.last_mut() {
            Some(last) if last.style == style => {
                last.text.push_str(&text);
                last.cells += cells;
            }
            _ => runs.push(Run { column, cells, text, style }),
        }
    }
    runs
}

impl Run {
    fn draw(&self, svg: &mut String, top: f32) {
        let left = MARGIN + f32::from(self.column) * CELL_WIDTH;
        let width = f32::from(self.cells) * CELL_WIDTH;
        if let Some(background) = &self.style.background {
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{CELL_HEIGHT:.1}\" fill=\"{background}\"/>"
            );
        }
        let (text, skipped) = (self.text.trim_end(), self.text.len() - self.text.trim_start().len());
        if text.trim().is_empty() {
            return;
        }
        // Leading blanks are all one byte and one cell.
        let blanks = u16::try_from(skipped).unwrap_or(0);
        let cells = u16::try_from(unicode_width::UnicodeWidthStr::width(text)).unwrap() - blanks;
        let left = left + f32::from(blanks) * CELL_WIDTH;
        let weight = if self.style.is_bold { " font-weight=\"bold\"" } else { "" };
        let opacity = if self.style.is_dim { " opacity=\"0.6\"" } else { "" };
        let _ = writeln!(
            svg,
            "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
             xml:space=\"preserve\" fill=\"{}\"{weight}{opacity}>{}</text>",
            top + 13.5,
            f32::from(cells) * CELL_WIDTH,
            self.style.foreground,
            escaped(text.trim_start())
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
