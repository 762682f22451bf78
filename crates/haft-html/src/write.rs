//! Writing lines: breaks, leads of lists and quotes, escapes, links, code.
//!
//! Text of the page cannot take the form of what this writes itself: what would begin a heading, a fence, a list or a
//! quote at the head of a line is escaped there, backticks everywhere.

mod inline;

pub(crate) use inline::{Mark, code_span};

use crate::Form;
use inline::{Span, URL_MAX, longest_run};

/// Quotes and lists nest visibly so far.
const LEADS_MAX: usize = 16;

/// What stands before every line of a list item or a quote.
#[derive(Debug)]
struct Lead {
    first: Option<String>,
    rest: String,
}

/// The text so far.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "where a line stands is a few facts that change one by one")]
pub(crate) struct Writer {
    pub(crate) out: String,
    pub(crate) form: Form,
    leads: Vec<Lead>,
    /// Leads beyond the limit, which are not written.
    deeper: usize,
    /// Line ends that come before the next word.
    breaks: u8,
    /// How many leads an empty line there has.
    outer: usize,
    /// Whether they come of a br, which does not end a cell.
    soft: bool,
    space: bool,
    /// Whether the line has something on it besides its lead.
    open: bool,
    mark: &'static str,
    /// Bars between cells that come before the next word, and where they were written at the head of a line.
    bars: Bars,
    pub(crate) bars_at: Option<usize>,
    /// What is marked within the line, and whether some of it has no text yet.
    spans: Vec<Span>,
    unstarted: bool,
    /// Where the last text above or below the line begins and ends.
    script: Option<(usize, usize)>,
    pre: bool,
    pre_start: Option<usize>,
    /// Whether the last line is the end of a fence.
    fenced: bool,
    /// Where the cell that is being written begins, and whether it holds more than a line.
    pub(crate) cell: Option<Cell>,
}

/// Bars between cells.
#[derive(Debug, Default, Clone, Copy)]
struct Bars {
    count: usize,
    /// Whether they stand for empty cells at the head of a line.
    lead: bool,
    /// Whether the cell stays on the line if it begins with a paragraph, and how many leads there were before it.
    stays: Option<usize>,
}

/// A cell that is being written.
#[derive(Debug, Default, Clone)]
pub(crate) struct Cell {
    pub(crate) start: Option<usize>,
    /// Whether it holds more than a line, not counting fences.
    pub(crate) broken: bool,
    /// Where the fences in it begin and end.
    pub(crate) fences: Vec<(usize, usize)>,
}

impl Writer {
    pub(crate) fn new(form: Form, size: usize) -> Self {
        Self {
            out: String::with_capacity(size),
            form,
            leads: Vec::new(),
            deeper: 0,
            breaks: 0,
            outer: 0,
            soft: false,
            space: false,
            open: false,
            mark: "",
            bars: Bars::default(),
            bars_at: None,
            spans: Vec::new(),
            unstarted: false,
            script: None,
            pre: false,
            pre_start: None,
            fenced: false,
            cell: None,
        }
    }

    fn marks(&self) -> bool {
        self.form == Form::Markdown
    }

    /// Whether something was written on this line.
    pub(crate) fn in_line(&self) -> bool {
        self.open && self.breaks == 0
    }

    /// Ends the line, with so many line ends before the next word.
    pub(crate) fn end_line(&mut self, breaks: u8) {
        if self.pre {
            let line = self.out.rfind('\n').map_or(0, |at| at + 1);
            if self.in_line() && self.out[line..] != self.lead() {
                self.raw_line();
            }
            return;
        }
        self.finish_inline();
        // A list item begins on the line of its mark.
        let fresh = self.leads.last().is_some_and(|lead| lead.first.is_some());
        self.outer = if self.breaks == 0 { self.leads.len() } else { self.outer.min(self.leads.len()) };
        self.breaks = self.breaks.max(if fresh { 1 } else { breaks });
        (self.space, self.soft, self.mark) = (false, false, "");
    }

    /// The next item of a list follows on the next line.
    pub(crate) fn end_item(&mut self) {
        self.end_line(1);
        self.breaks = 1;
    }

    /// A br.
    pub(crate) fn soft_break(&mut self) {
        if self.pre {
            self.raw_line();
        } else if self.open && self.breaks == 0 {
            self.finish_inline();
            (self.breaks, self.soft, self.space) = (1, true, false);
        }
    }

    /// The next word is apart from the last.
    pub(crate) fn part(&mut self) {
        self.space = true;
    }

    /// A mark of a heading before the next word.
    pub(crate) fn mark_next(&mut self, mark: &'static str) {
        self.mark = if self.marks() { mark } else { "" };
    }

    /// The cells of a row follow, or no more.
    pub(crate) fn begin_row(&mut self) {
        self.end_line(1);
        (self.bars, self.bars_at) = (Bars::default(), None);
    }

    /// A bar before the next word, if it comes on this line: cells of a row, of which empty ones are left out.
    pub(crate) fn bar_next(&mut self) {
        self.bars_next(1, true);
        (self.bars.count, self.bars.stays) = (self.bars.count.min(1), None);
    }

    /// So many bars before the next word, for empty cells too: between the cells of a row on one line, or at its head if
    /// nothing is `written` of it.
    pub(crate) fn bars_next(&mut self, count: usize, written: bool) {
        self.finish_inline();
        self.space = false;
        if !(written && self.fenced) {
            let stays = Some(self.leads.len()).filter(|_| written);
            self.bars = Bars { count: self.bars.count + count, lead: !written, stays };
            self.breaks = if written { 0 } else { self.breaks };
        }
    }

    /// Puts this before the lines to come.
    pub(crate) fn push_lead(&mut self, first: Option<String>, rest: &str) {
        if self.leads.len() == LEADS_MAX {
            self.deeper += 1;
        } else {
            self.leads.push(Lead { first, rest: rest.to_owned() });
        }
    }

    pub(crate) fn pop_lead(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else {
            self.leads.pop();
            self.outer = self.outer.min(self.leads.len());
        }
    }

    /// The lead of a line that goes on.
    pub(crate) fn lead(&self) -> String {
        self.leads.iter().map(|lead| lead.rest.as_str()).collect()
    }

    fn blank_line(&mut self) {
        let lead: String = self.leads[..self.outer]
            .iter()
            .take_while(|lead| lead.first.is_none())
            .map(|lead| lead.rest.as_str())
            .collect();
        self.out.push_str(lead.trim_end());
        self.out.push('\n');
    }

    fn begin_line(&mut self) {
        for lead in &mut self.leads {
            match lead.first.take() {
                Some(first) => self.out.push_str(&first),
                None => self.out.push_str(&lead.rest),
            }
        }
        self.open = false;
    }

    /// Writes what is due before the next word, and notes where it begins.
    fn begin_word(&mut self) {
        if self.bars.stays == Some(self.leads.len()) && !self.pre {
            self.breaks = 0;
        }
        if self.breaks > 0 || self.out.is_empty() {
            if !self.out.is_empty() {
                self.out.push('\n');
                if self.breaks > 1 {
                    self.blank_line();
                }
                if let Some(cell) = self.cell.as_mut().filter(|cell| cell.start.is_some()) {
                    cell.broken |= !(self.soft || self.pre || self.fenced);
                }
            }
            self.begin_line();
            (self.breaks, self.soft) = (0, false);
        }
        let Bars { count, lead, .. } = std::mem::take(&mut self.bars);
        if count > 0 && self.open {
            self.out.push_str(&" | ".repeat(count));
        } else if count > 0 && lead {
            self.bars_at = Some(self.out.len());
            self.out.push_str(&"| ".repeat(count));
        } else if self.space && self.open {
            self.out.push(' ');
        }
        self.space = false;
        if !self.mark.is_empty() {
            self.out.push_str(self.mark);
            self.mark = "";
            // Nothing begins a block after the mark of a heading.
            self.open = true;
        }
        self.fenced = false;
        if self.unstarted {
            self.start_spans();
        }
        let here = self.out.len();
        if let Some(cell) = &mut self.cell {
            cell.start.get_or_insert(here);
        }
    }

    /// Writes text of the page.
    pub(crate) fn text(&mut self, text: &str) {
        if self.pre {
            return self.raw(text);
        }
        let space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'\x0c');
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if space(&bytes[at]) {
                self.space = true;
                at += 1;
                continue;
            }
            let end = bytes[at..].iter().position(space).map_or(bytes.len(), |length| at + length);
            if self.breaks > 0 || !self.open || self.space || self.bars.count > 0 || self.unstarted {
                self.begin_word();
            }
            self.word(&text[at..end]);
            at = end;
        }
    }

    /// Writes an image: what it shows in words, and where it is.
    pub(crate) fn image(&mut self, alt: &str, url: Option<&str>) {
        let Some(url) = url.filter(|url| self.marks() && !self.is_code() && !self.pre && url.len() <= URL_MAX) else {
            return self.text(alt);
        };
        self.begin_word();
        let alt: Vec<&str> = alt.split_whitespace().collect();
        let alt = alt.join(" ").replace(['[', ']', '`', '<'], " ");
        self.open = true;
        let (open, close) = if url.contains(['(', ')']) { ("<", ">") } else { ("", "") };
        self.out.push_str(&format!("![{}]({open}{url}{close})", alt.trim()));
    }

    /// A line across the page.
    pub(crate) fn rule(&mut self) {
        self.end_line(2);
        self.begin_word();
        self.out.push_str("---");
        self.open = true;
        self.end_line(2);
    }

    /// Text in which every space counts begins. Where it begins.
    pub(crate) fn open_pre(&mut self) {
        self.end_line(2);
        self.pre = true;
    }

    fn raw_line(&mut self) {
        self.out.push('\n');
        let lead = self.lead();
        self.out.push_str(&lead);
    }

    fn raw(&mut self, text: &str) {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 && self.in_line() {
                self.raw_line();
            }
            let line = line.trim_end_matches('\r');
            if !line.is_empty() {
                if self.breaks > 0 || !self.open {
                    self.begin_word();
                    self.pre_start = Some(self.out.len());
                }
                if self.unstarted {
                    self.start_spans();
                }
                self.join_script(line);
                self.open = true;
                self.out.push_str(line);
            }
        }
    }

    /// It ends: a fence goes around it that is longer than any inside.
    pub(crate) fn close_pre(&mut self, language: &str) {
        self.finish_inline();
        self.pre = false;
        let lead = self.lead();
        if let Some(start) = self.pre_start.take() {
            let empty = format!("\n{}", lead.trim_end());
            loop {
                let length = self.out[start..].trim_end().len();
                self.out.truncate(start + length);
                match self.out[start..].strip_suffix(&empty).map(str::len) {
                    Some(length) if !lead.is_empty() => self.out.truncate(start + length),
                    _ => break,
                }
            }
            if self.marks() {
                let fence = "`".repeat((longest_run(&self.out[start..]) + 1).max(3));
                self.out.insert_str(start, &format!("{fence}{language}\n{lead}"));
                self.out.push_str(&format!("\n{lead}{fence}"));
            }
            let (end, marks) = (self.out.len(), self.marks());
            let lines = self.out[start..].contains('\n');
            if let Some(cell) = &mut self.cell {
                // A fence may have begun before the cell, in a page that closes nothing.
                let inside = cell.start.is_some_and(|cell| cell <= start);
                cell.broken |= !inside || lines && !marks;
                cell.fences.extend((inside && marks).then_some((start, end)));
            }
            self.fenced = lines;
        }
        self.end_line(2);
    }

    /// Takes back everything from here on.
    pub(crate) fn rewind(&mut self, to: usize) {
        self.out.truncate(to);
        self.restart_spans();
        self.pre_start = None;
    }

    /// Writes lines of our own where the last one was taken back.
    pub(crate) fn lines(&mut self, lines: &[String]) {
        self.out.push_str(&lines.join(&format!("\n{}", self.lead())));
        self.open = true;
        self.breaks = 0;
    }
}
