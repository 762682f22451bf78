//! Tables: written as lines while they are read, and made a table of when all of it is known and fits one.

use crate::write::{Cell, Writer};

/// Tables nest visibly so far.
pub(crate) const NESTED_MAX: usize = 8;
const ROWS_MAX: usize = 1000;
const CELLS_MAX: usize = 10_000;
const COLUMNS_MAX: usize = 40;
const CELL_MAX: usize = 1000;
/// So many cells may be missing from a row, for those that reach over several.
const MISSING_MAX: usize = 2;

/// A table that is being read.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Where its first cell begins in the text.
    start: Option<usize>,
    rows: Vec<Vec<String>>,
    cells: usize,
    /// Whether the row has a cell.
    begun: bool,
    /// Whether it holds what a table of lines cannot.
    pub(crate) odd: bool,
    /// The cell around the table, which goes on after it.
    around: Option<Cell>,
}

impl Table {
    pub(crate) fn open(writer: &mut Writer) -> Self {
        writer.end_line(2);
        Self { around: writer.cell.take(), ..Self::default() }
    }

    pub(crate) fn open_row(&mut self, writer: &mut Writer) {
        writer.end_line(1);
        self.begun = false;
        if self.rows.len() < ROWS_MAX {
            self.rows.push(Vec::new());
        } else {
            self.odd = true;
        }
    }

    pub(crate) fn open_cell(&mut self, writer: &mut Writer) {
        if self.rows.is_empty() {
            self.open_row(writer);
        }
        if std::mem::replace(&mut self.begun, true) {
            writer.bar_next();
        }
        writer.cell = Some(Cell::default());
    }

    pub(crate) fn close_cell(&mut self, writer: &mut Writer, span: usize) {
        let Some(cell) = writer.cell.take() else { return };
        self.cells += 1;
        self.odd |= cell.broken || self.cells > CELLS_MAX;
        let Some(row) = self.rows.last_mut().filter(|_| !self.odd) else { return };
        // What is open in the line belongs to the cell.
        let text = cell.start.and_then(|start| writer.out.get(start..)).unwrap_or_default();
        if text.len() > CELL_MAX {
            self.odd = true;
            return;
        }
        let lead = writer.lead();
        let lines = text.lines().map(|line| line.strip_prefix(lead.as_str()).unwrap_or(line).trim());
        row.push(lines.collect::<Vec<_>>().join(" ").replace('|', "\\|"));
        row.extend(std::iter::repeat_n(String::new(), span.saturating_sub(1).min(COLUMNS_MAX)));
        if self.start.is_none() {
            self.start = cell.start;
        }
    }

    /// The rows as lines of a table, if it is one.
    fn lines(&mut self) -> Option<Vec<String>> {
        self.rows.retain(|row| !row.is_empty());
        let most = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let least = self.rows.iter().map(Vec::len).min().unwrap_or(0);
        let even = most <= least + MISSING_MAX && self.rows.first().is_some_and(|row| row.len() == most);
        if self.odd || !even || self.rows.len() < 2 || !(2..=COLUMNS_MAX).contains(&most) {
            return None;
        }
        for row in &mut self.rows {
            row.resize(most, String::new());
        }
        let line = |row: &Vec<String>| format!("| {} |", row.join(" | "));
        let mut lines: Vec<String> = self.rows.iter().map(line).collect();
        lines.insert(1, format!("|{}", " --- |".repeat(most)));
        Some(lines)
    }

    /// Ends it. Whether what was written was replaced, and from where.
    pub(crate) fn close(mut self, writer: &mut Writer, marks: bool) -> Option<usize> {
        writer.end_line(2);
        let lines = if marks { self.lines() } else { None };
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
