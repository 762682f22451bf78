//! Tables: written as lines while they are read, and made a table of when all of it is known and fits one.
//!
//! A cell that reaches over several columns or rows has its text in the first of them; the others are empty, so that what
//! follows stands below its own heading.

use crate::Form;
use crate::write::{Cell, Writer, code_span};

/// Tables nest visibly so far.
pub(crate) const NESTED_MAX: usize = 8;
const ROWS_MAX: usize = 1000;
const CELLS_MAX: usize = 10_000;
const COLUMNS_MAX: usize = 40;
const CELL_MAX: usize = 1000;
/// So many cells may be missing from a row.
const MISSING_MAX: usize = 2;

/// How many columns and rows a cell takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellSpan {
    columns: usize,
    rows: usize,
}

impl CellSpan {
    /// As attributes say it. A cell of no rows goes on to the end of its group.
    pub(crate) fn read(columns: &str, rows: &str) -> Self {
        let columns = number(columns).filter(|columns| *columns > 0).unwrap_or(1).min(COLUMNS_MAX + 1);
        let rows = number(rows).map_or(1, |rows| if rows == 0 { usize::MAX } else { rows });
        Self { columns, rows }
    }
}

/// The number that an attribute begins with, however large.
fn number(text: &str) -> Option<usize> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix('+').unwrap_or(text);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| text[..digits].parse().unwrap_or(usize::MAX))
}

/// A table that is being read.
#[derive(Debug)]
pub(crate) struct Table {
    /// Where its first cell begins in the text.
    start: Option<usize>,
    rows: Vec<Vec<String>>,
    cells: usize,
    /// Whether a row is open, and where the text was when it began.
    row: Option<usize>,
    /// The column that the next cell of the row begins in, and the one that the last began in.
    column: usize,
    last: Option<usize>,
    /// Into how many more rows a cell reaches, column by column.
    reaching: Vec<usize>,
    /// What the cell that is open takes.
    span: CellSpan,
    /// Whether it has heading cells: then the place of every cell counts, also where it cannot be a table of lines.
    headed: bool,
    /// Whether it holds what a table of lines cannot.
    pub(crate) odd: bool,
    /// The cell around the table, which goes on after it.
    around: Option<Cell>,
}

impl Table {
    pub(crate) fn open(writer: &mut Writer) -> Self {
        writer.end_line(2);
        Self {
            start: None,
            rows: Vec::new(),
            cells: 0,
            row: None,
            column: 0,
            last: None,
            reaching: Vec::new(),
            span: CellSpan { columns: 1, rows: 1 },
            headed: false,
            odd: false,
            around: writer.cell.take(),
        }
    }

    /// Rows before and after it belong to different groups, and no cell reaches from one into the other.
    pub(crate) fn part_rows(&mut self) {
        self.end_row();
        self.reaching.clear();
    }

    pub(crate) fn open_row(&mut self, writer: &mut Writer) {
        self.end_row();
        writer.begin_row();
        self.row = Some(writer.out.len());
        if self.rows.len() < ROWS_MAX {
            self.rows.push(Vec::new());
        } else {
            self.odd = true;
        }
    }

    /// Steps over the columns that cells above reach into.
    fn end_row(&mut self) {
        if self.row.take().is_some() {
            let reached = self.reaching.iter().rposition(|rows| *rows > 0).map_or(0, |last| last + 1);
            while self.column < reached {
                self.step_over();
            }
        }
        (self.column, self.last) = (0, None);
    }

    /// Whether a cell above reaches into this column; then the row has no cell of its own there.
    fn step_over(&mut self) -> bool {
        let rows = self.reaching.get_mut(self.column).filter(|rows| **rows > 0);
        let reaches = rows.map(|rows| *rows -= 1).is_some();
        self.push(String::new());
        self.column += 1;
        reaches
    }

    fn push(&mut self, text: String) {
        if let Some(row) = self.rows.last_mut().filter(|row| !self.odd && row.len() <= COLUMNS_MAX) {
            row.push(text);
        }
    }

    pub(crate) fn open_cell(&mut self, writer: &mut Writer, span: CellSpan, heads: bool) {
        if self.row.is_none() {
            self.open_row(writer);
        }
        self.headed |= heads;
        while self.reaching.get(self.column).is_some_and(|rows| *rows > 0) {
            self.step_over();
        }
        let written = self.row.is_some_and(|row| writer.out.len() > row);
        let bars = self.column - self.last.unwrap_or(0);
        match (self.headed, self.last) {
            (true, _) if bars > 0 => writer.bars_next(bars.min(COLUMNS_MAX), written),
            (false, Some(_)) if written => writer.bar_next(),
            _ => {}
        }
        (self.last, self.span) = (Some(self.column), span);
        writer.cell = Some(Cell::default());
    }

    pub(crate) fn close_cell(&mut self, writer: &mut Writer) {
        let Some(cell) = writer.cell.take() else { return };
        self.cells += 1;
        self.odd |= cell.broken || self.cells > CELLS_MAX;
        // What is open in the line belongs to the cell.
        let text = cell.start.and_then(|start| writer.out.get(start..)).unwrap_or_default();
        self.odd |= text.len() > CELL_MAX;
        if !self.odd {
            let text = one_line(text, &cell, &writer.lead());
            self.push(text);
        }
        if self.start.is_none() && cell.start.is_some() {
            self.start = writer.bars_at.or(cell.start);
        }
        self.reach(self.span);
    }

    /// Steps over the columns of a cell, and notes how far down it reaches.
    fn reach(&mut self, CellSpan { columns, rows }: CellSpan) {
        let columns = if self.column < COLUMNS_MAX { columns } else { 1 };
        for column in self.column..self.column + columns {
            if column > self.column {
                self.push(String::new());
            }
            if column < COLUMNS_MAX && rows > 1 {
                self.reaching.resize(self.reaching.len().max(column + 1), 0);
            }
            if let Some(reaching) = self.reaching.get_mut(column) {
                *reaching = reaching.saturating_sub(1).max(rows - 1);
            }
        }
        self.column += columns;
    }

    /// The rows as lines of a table, if it is one.
    fn lines(&mut self, form: Form) -> Option<Vec<String>> {
        self.end_row();
        self.rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
        let filled = |row: &Vec<String>| row.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
        // A cell may say that it reaches over more columns than there are.
        let most = self.rows.iter().map(filled).max().unwrap_or(0);
        let least = self.rows.iter().map(|row| row.len().min(most)).min().unwrap_or(0);
        let even = most <= least + MISSING_MAX && self.rows.first().is_some_and(|row| row.len() >= most);
        if self.odd || !even || self.rows.len() < 2 || !(2..=COLUMNS_MAX).contains(&most) {
            return None;
        }
        for row in &mut self.rows {
            row.resize(most, String::new());
        }
        if form == Form::Text {
            return Some(self.rows.iter().map(|row| row.join(" | ").trim_end().to_owned()).collect());
        }
        let line = |row: &Vec<String>| {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |", cells.join(" | "))
        };
        let mut lines: Vec<String> = self.rows.iter().map(line).collect();
        lines.insert(1, format!("|{}", " --- |".repeat(most)));
        Some(lines)
    }

    /// Ends it. Whether what was written was replaced, and from where.
    pub(crate) fn close(mut self, writer: &mut Writer, form: Form) -> Option<usize> {
        writer.begin_row();
        let lines = self.lines(form);
        // The cell around it holds more than a line now.
        writer.cell = self.around.map(|cell| Cell { broken: true, ..cell });
        let written = self.start.zip(lines).map(|(start, lines)| {
            writer.rewind(start);
            writer.lines(&lines);
            start
        });
        writer.end_line(2);
        written
    }
}

/// A cell on one line: words with a space between lines, and what was in fences as code, line by line.
fn one_line(text: &str, cell: &Cell, lead: &str) -> String {
    let start = cell.start.unwrap_or_default();
    let bare = |line: &'_ str| line.strip_prefix(lead).unwrap_or(line.trim_start()).to_owned();
    let mut parts: Vec<String> = Vec::new();
    let words = |text: &str, parts: &mut Vec<String>| {
        let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix(lead).unwrap_or(line).trim()).collect();
        let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        parts.extend(Some(lines.join(" ")).filter(|line| !line.is_empty()));
    };
    let mut at = 0;
    for (begin, end) in &cell.fences {
        let (Some(before), Some(fence)) = (text.get(at..begin - start), text.get(begin - start..end - start)) else {
            break;
        };
        words(before, &mut parts);
        let lines: Vec<&str> = fence.lines().collect();
        let inside = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
        parts.extend(inside.iter().map(|line| code_span(bare(line).trim_end())));
        at = end - start;
    }
    words(text.get(at..).unwrap_or_default(), &mut parts);
    parts.join("<br>")
}
