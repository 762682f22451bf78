//! What is marked within a line: code, links, deletions, superscripts and subscripts.
//!
//! What would change the meaning of a text if it were left out is marked in both forms: 10⁶ is `10^6`, a price that no
//! longer holds is `~~$100~~`. Links and code have marks in markdown only.

use super::Writer;

/// So many marks are open at once; those inside are left out.
const SPANS_MAX: usize = 8;
/// Longer targets of links are left out.
pub(super) const URL_MAX: usize = 2000;
/// A longer text above or below the line is no index, but small print.
const SCRIPT_MAX: usize = 40;
/// What stands above the line after a number and is no power.
const ORDINALS: &[&str] = &["st", "nd", "rd", "th", "er", "re", "ère", "ème"];

/// How a part of a line is marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    Code,
    /// With its address.
    Link(String),
    /// Text that no longer holds.
    Deleted,
    Superscript,
    Subscript,
}

/// A part of a line that is being written.
#[derive(Debug)]
pub(super) struct Span {
    mark: Mark,
    /// Where its text begins, once it has some.
    start: Option<usize>,
}

impl Span {
    fn is_like(&self, mark: &Mark) -> bool {
        std::mem::discriminant(&self.mark) == std::mem::discriminant(mark)
    }
}

impl Writer {
    /// Begins a mark, unless it is left out here.
    pub(crate) fn open_span(&mut self, mark: Mark) -> bool {
        let shown = match &mark {
            Mark::Link(url) => self.marks() && !self.is_code() && !self.pre && url.len() <= URL_MAX,
            Mark::Code | Mark::Deleted => !self.spans.iter().any(|span| span.is_like(&mark)),
            Mark::Superscript | Mark::Subscript => true,
        };
        let opens = shown && self.spans.len() < SPANS_MAX;
        if opens {
            self.spans.push(Span { mark, start: None });
            self.unstarted = true;
        }
        opens
    }

    /// Ends the last mark of this kind.
    pub(crate) fn close_span(&mut self, mark: &Mark) {
        let Some(at) = self.spans.iter().rposition(|span| span.is_like(mark)) else { return };
        for inner in (at..self.spans.len()).rev() {
            self.finish_span(inner);
        }
        self.spans.remove(at);
    }

    pub(super) fn is_code(&self) -> bool {
        self.spans.iter().any(|span| span.mark == Mark::Code)
    }

    pub(super) fn is_linked(&self) -> bool {
        self.spans.iter().any(|span| matches!(span.mark, Mark::Link(_)))
    }

    fn is_deleted(&self) -> bool {
        self.spans.iter().any(|span| span.mark == Mark::Deleted)
    }

    /// Notes that the text of what is open begins here.
    pub(super) fn start_spans(&mut self) {
        let (here, pre) = (self.out.len(), self.pre);
        for span in &mut self.spans {
            // Where every space counts there are no links, and all of it is code.
            if span.start.is_none() && !(pre && matches!(span.mark, Mark::Code | Mark::Link(_))) {
                span.start = Some(here);
            }
        }
        self.unstarted = self.spans.iter().any(|span| span.start.is_none());
    }

    /// Nothing within a line reaches over its end. What has no text yet goes on; code and deletions begin anew.
    pub(super) fn finish_inline(&mut self) {
        for at in (0..self.spans.len()).rev() {
            let ends = self.spans[at].start.is_some() && !matches!(self.spans[at].mark, Mark::Code | Mark::Deleted);
            self.finish_span(at);
            if ends {
                self.spans.remove(at);
            }
        }
    }

    /// Writes the mark around the text that is there, if there is any.
    fn finish_span(&mut self, at: usize) {
        let Some(start) = self.spans[at].start.take() else { return };
        self.unstarted = true;
        let text = self.out.get(start..).unwrap_or_default().trim_end();
        let end = start + text.len();
        let marks = if text.is_empty() { None } else { self.marks_around(at, start, text) };
        let Some((open, close)) = marks else { return };
        self.out.insert_str(end, &close);
        self.out.insert_str(start, &open);
        for inner in &mut self.spans[at + 1..] {
            inner.start = inner.start.map(|inner| inner + open.len());
        }
        let is_script = matches!(self.spans[at].mark, Mark::Superscript | Mark::Subscript);
        self.script = (is_script && close.is_empty()).then_some((start + open.len(), self.out.len()));
    }

    fn marks_around(&self, at: usize, start: usize, text: &str) -> Option<(String, String)> {
        let pair = |open: &str, close: &str| Some((open.to_owned(), close.to_owned()));
        let before = self.out[..start].chars().next_back();
        match &self.spans[at].mark {
            Mark::Code if self.marks() => code_marks(text),
            Mark::Code => None,
            Mark::Link(url) if url.contains(['(', ')']) => pair("[", &format!("](<{url}>)")),
            Mark::Link(url) => pair("[", &format!("]({url})")),
            Mark::Deleted => pair("~~", "~~"),
            Mark::Superscript => script("^", before, text),
            Mark::Subscript => script("_", before, text),
        }
    }

    /// Goes on with a word. Where it would run into what stands above or below the line, that gets parentheses: `x_(1)2`.
    pub(super) fn join_script(&mut self, word: &str) {
        let Some((start, end)) = self.script.take().filter(|(_, end)| *end == self.out.len()) else { return };
        let another = |span: &Span| span.start == Some(end) && matches!(span.mark, Mark::Superscript | Mark::Subscript);
        let (last, next) = (self.out.chars().next_back(), word.chars().next());
        let (Some(last), Some(next)) = (last, next) else { return };
        let runs_on = last.is_alphabetic() && next.is_alphanumeric() || last.is_numeric() && next.is_numeric();
        if !runs_on || self.spans.iter().any(another) {
            return;
        }
        self.out.insert(start, '(');
        self.out.push(')');
        for span in &mut self.spans {
            span.start = span.start.map(|begin| if begin == end { self.out.len() } else { begin });
        }
    }

    /// Forgets where what is open began.
    pub(super) fn restart_spans(&mut self) {
        self.spans.retain(|span| !matches!(span.mark, Mark::Link(_)));
        self.spans.iter_mut().for_each(|span| span.start = None);
        self.unstarted = !self.spans.is_empty();
        self.script = None;
    }

    /// Writes a word of the page, so that it cannot take the form of a mark.
    pub(super) fn word(&mut self, word: &str) {
        self.join_script(word);
        let head = !self.open;
        self.open = true;
        if !self.marks() || self.is_code() {
            return self.out.push_str(word);
        }
        let word = if head { self.head(word) } else { word };
        let (linked, deleted) = (self.is_linked(), self.is_deleted());
        let mut from = 0;
        for (at, byte) in word.bytes().enumerate() {
            if !matches!(byte, b'`' | b'<' | b'[' | b']' | b'(' | b'~') {
                continue;
            }
            let next = word.as_bytes().get(at + 1);
            let forges = match byte {
                b'`' => true,
                b'~' => deleted || next == Some(&b'~'),
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
            // Those are escaped anywhere.
            b'~' if word.as_bytes().get(1) == Some(&b'~') || self.is_deleted() => {}
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
}

/// Code of one line, as it stands within a line.
pub(crate) fn code_span(line: &str) -> String {
    code_marks(line).map_or_else(String::new, |(open, close)| format!("{open}{line}{close}"))
}

/// A fence that is longer than any inside.
fn code_marks(text: &str) -> Option<(String, String)> {
    let fence = "`".repeat(longest_run(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    (!text.is_empty()).then(|| (format!("{fence}{pad}"), format!("{pad}{fence}")))
}

/// The marks around what stands above or below the line, unless it is no index: a note in brackets, the `st` of 1st, a
/// sign, or small print.
fn script(sign: &str, before: Option<char>, text: &str) -> Option<(String, String)> {
    let number = |c: char| c.is_numeric() || "+-\u{2212}.,".contains(c);
    let numeric = text.contains(char::is_numeric) && text.chars().all(number);
    let attached = before.is_some_and(|c| !c.is_whitespace());
    let ordinal = sign == "^" && before.is_some_and(|c| c.is_ascii_digit()) && ORDINALS.contains(&text);
    let meant = text.chars().any(|c| c.is_alphanumeric() || "+-\u{2212}".contains(c));
    if text.len() > SCRIPT_MAX || !(attached || numeric) || text.starts_with('[') || !meant || ordinal {
        return None;
    }
    let inner = text.trim_matches(['+', '-', '\u{2212}']);
    let plain =
        numeric && inner == text.trim_start_matches(['+', '-', '\u{2212}']) || inner.chars().all(char::is_alphanumeric);
    if plain || text.starts_with('(') && text.ends_with(')') {
        return Some((sign.to_owned(), String::new()));
    }
    Some((format!("{sign}("), ")".to_owned()))
}

/// The longest run of backticks.
pub(super) fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for byte in text.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
