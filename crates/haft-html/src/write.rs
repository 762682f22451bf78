//! Writing lines: breaks, leads of lists and quotes, escapes, links, code.
//!
//! Text of the page cannot take the form of what this writes itself: what would begin a heading, a fence, a list or a
//! quote at the head of a line is escaped there, backticks everywhere.

use crate::Form;

/// Quotes and lists nest visibly so far.
const LEADS_MAX: usize = 16;
/// Longer targets of links are left out.
const URL_MAX: usize = 2000;

/// What stands before every line of a list item or a quote.
#[derive(Debug)]
struct Lead {
    first: Option<String>,
    rest: String,
}

/// A link that is being written.
#[derive(Debug)]
struct Anchor {
    url: String,
    start: Option<usize>,
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
    between: bool,
    anchor: Option<Anchor>,
    code: usize,
    code_start: Option<usize>,
    pre: bool,
    /// Where the cell that is being written begins, and whether it holds more than a line.
    pub(crate) cell: Option<Cell>,
}

/// A cell that is being written.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) start: Option<usize>,
    pub(crate) broken: bool,
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
            between: false,
            anchor: None,
            code: 0,
            code_start: None,
            pre: false,
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

    /// A bar before the next word, if it comes on this line: cells of a row.
    pub(crate) fn bar_next(&mut self) {
        self.finish_inline();
        self.between = self.open;
        (self.breaks, self.space) = if self.open { (0, false) } else { (self.breaks, false) };
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
        if self.breaks > 0 || self.out.is_empty() {
            if !self.out.is_empty() {
                self.out.push('\n');
                if self.breaks > 1 {
                    self.blank_line();
                }
                if let Some(cell) = self.cell.as_mut().filter(|cell| cell.start.is_some()) {
                    cell.broken |= !self.soft;
                }
            }
            self.begin_line();
            (self.breaks, self.soft) = (0, false);
        }
        if self.between {
            self.out.push_str(if self.open { " | " } else { "" });
        } else if self.space && self.open {
            self.out.push(' ');
        }
        (self.between, self.space) = (false, false);
        if !self.mark.is_empty() {
            self.out.push_str(self.mark);
            self.mark = "";
            // Nothing begins a block after the mark of a heading.
            self.open = true;
        }
        let here = self.out.len();
        if let Some(anchor) = &mut self.anchor {
            anchor.start.get_or_insert(here);
        }
        if self.code > 0 && !self.pre {
            self.code_start.get_or_insert(here);
        }
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
            if self.breaks > 0 || !self.open || self.space || self.between || self.anchor.is_some() || self.code > 0 {
                self.begin_word();
            }
            self.word(&text[at..end]);
            at = end;
        }
    }

    fn word(&mut self, word: &str) {
        let head = !self.open;
        self.open = true;
        if !self.marks() || self.code > 0 {
            return self.out.push_str(word);
        }
        let word = if head { self.head(word) } else { word };
        let linked = self.anchor.is_some();
        let mut from = 0;
        for (at, byte) in word.bytes().enumerate() {
            if !matches!(byte, b'`' | b'<' | b'[' | b']' | b'(') {
                continue;
            }
            let next = word.as_bytes().get(at + 1);
            let forges = match byte {
                b'`' => true,
                b'<' => next.is_none_or(|next| next.is_ascii_alphabetic() || b"/!?".contains(next)),
                b'(' => {
                    let before = if at > 0 { word.as_bytes().get(at - 1) } else { self.out.as_bytes().last() };
                    before == Some(&b']')
                }
                _ => linked,
            };
            if forges {
                self.out.push_str(&word[from..at]);
                self.out.push('\\');
                from = at;
            }
        }
        self.out.push_str(&word[from..]);
    }

    /// Writes what of a word could begin a block at the head of a line, escaped, and gives the rest.
    fn head<'w>(&mut self, word: &'w str) -> &'w str {
        let first = word.as_bytes()[0];
        let only = |c: u8| word.bytes().all(|byte| byte == c);
        match first {
            b'#' | b'-' | b'+' | b'*' | b'=' | b'_' if only(first) => self.out.push('\\'),
            b'>' | b'~' | b'|' => self.out.push('\\'),
            b'0'..=b'9' => {
                let digits = word.bytes().take_while(u8::is_ascii_digit).count();
                if word.len() == digits + 1 && matches!(word.as_bytes()[digits], b'.' | b')') {
                    self.out.push_str(&word[..digits]);
                    self.out.push('\\');
                    return &word[digits..];
                }
            }
            _ => {}
        }
        word
    }

    /// Opens a link to this address, where there is one.
    pub(crate) fn open_link(&mut self, url: Option<String>) {
        self.close_link();
        let url = url.filter(|url| self.marks() && self.code == 0 && !self.pre && url.len() <= URL_MAX);
        self.anchor = url.map(|url| Anchor { url, start: None });
    }

    pub(crate) fn close_link(&mut self) {
        if let Some(Anchor { url, start: Some(start) }) = self.anchor.take() {
            self.out.insert(start, '[');
            if url.contains(['(', ')']) {
                self.out.push_str(&format!("](<{url}>)"));
            } else {
                self.out.push_str("](");
                self.out.push_str(&url);
                self.out.push(')');
            }
        }
    }

    pub(crate) fn open_code(&mut self) {
        self.code += 1;
    }

    pub(crate) fn close_code(&mut self) {
        self.code = self.code.saturating_sub(1);
        if self.code == 0 {
            self.finish_code();
        }
    }

    fn finish_code(&mut self) {
        if self.pre {
            return;
        }
        let Some(start) = self.code_start.take().filter(|_| self.marks()) else { return };
        let inner = &self.out[start..];
        let fence = "`".repeat(longest_run(inner) + 1);
        let pad = if inner.starts_with('`') || inner.ends_with('`') { " " } else { "" };
        self.out.insert_str(start, &format!("{fence}{pad}"));
        self.out.push_str(&format!("{pad}{fence}"));
    }

    /// Nothing within a line reaches over its end. A link that has no text yet goes on.
    fn finish_inline(&mut self) {
        self.finish_code();
        if self.anchor.as_ref().is_some_and(|anchor| anchor.start.is_some()) {
            self.close_link();
        }
    }

    /// Writes an image: what it shows in words, and where it is.
    pub(crate) fn image(&mut self, alt: &str, url: Option<&str>) {
        let Some(url) = url.filter(|url| self.marks() && self.code == 0 && !self.pre && url.len() <= URL_MAX) else {
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
                    // Where the block begins is kept as that of code is.
                    self.code_start = Some(self.out.len());
                }
                self.open = true;
                self.out.push_str(line);
            }
        }
    }

    /// It ends: a fence goes around it that is longer than any inside.
    pub(crate) fn close_pre(&mut self, language: &str) {
        self.pre = false;
        let lead = self.lead();
        if let Some(start) = self.code_start.take() {
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
        }
        self.end_line(2);
    }

    /// Takes back everything from here on.
    pub(crate) fn rewind(&mut self, to: usize) {
        self.out.truncate(to);
        self.anchor = None;
        self.code_start = None;
    }

    /// Writes lines of our own where the last one was taken back.
    pub(crate) fn lines(&mut self, lines: &[String]) {
        self.out.push_str(&lines.join(&format!("\n{}", self.lead())));
        self.open = true;
        self.breaks = 0;
    }
}

/// The longest run of backticks.
fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
