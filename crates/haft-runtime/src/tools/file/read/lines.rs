//! Pages of text: some lines out of a stream of any length, in bounded memory.
//!
//! What lies before the page is passed over without being looked at, so the millionth line of a huge file costs one pass of
//! a byte search.

use super::Subject;
use crate::text_encoding::TextEncoding;
use haft_core::CallError;
use haft_core::preview::size;
use memchr::{memchr, memchr_iter};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};

/// How much is read at once; the call can be stopped between two pieces.
const PIECE: usize = 256 << 10;
/// How many lines a page has at most, which is also how many it has unless the caller wants fewer.
pub(super) const LINES_MAX: u64 = 2000;
/// How much text a page has at most, line numbers included.
pub(super) const BYTES_MAX: usize = 51_200;
/// The rest of a larger file is not counted.
const COUNT_MAX: u64 = 64 << 20;

/// Lines that begin further on are not looked for.
const PASS_MAX: u64 = 4 << 30;

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As `cat -n` does; a byte order mark and carriage returns at line ends are left out.
    Numbered,
    /// Byte for byte.
    Plain,
}

/// Which lines are wanted, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The first line, counted from one.
    pub(super) first: u64,
    /// At most so many.
    pub(super) limit: u64,
    /// How they are written.
    pub(super) form: Form,
}

/// What follows a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// Nothing.
    Nothing,
    /// More, in a text of so many lines.
    Counted(u64),
    /// More; nobody counted.
    Uncounted,
}

/// A line that is longer than a page, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Broken {
    /// How much of it is shown.
    shown: usize,
    /// How long it is, if that was found out.
    whole: Option<u64>,
}

impl Broken {
    /// What is missing of it.
    fn note(self, line: u64) -> String {
        let of = self.whole.map(|whole| format!(" of {whole}")).unwrap_or_default();
        format!("line {line} is cut after {}{of} bytes (a shell shows the rest: `cut -b`, `tail -c`); ", self.shown)
    }
}

/// Some lines of a text.
#[derive(Debug)]
pub(super) struct Page {
    /// The lines, written as asked.
    pub(super) text: String,
    /// The number of the first.
    pub(super) first: u64,
    /// The number of the last.
    pub(super) last: u64,
    /// How much of the last line is shown, if it was too long for a page.
    pub(super) broken: Option<Broken>,
    /// Whether some bytes could not be decoded.
    pub(super) is_garbled: bool,
    /// What follows.
    pub(super) rest: Rest,
}

impl Page {
    /// Whether it shows the text from beginning to end.
    pub(super) fn is_whole(&self) -> bool {
        self.first == 1 && self.rest == Rest::Nothing
    }

    /// What is missing and how to get it, if anything follows.
    pub(super) fn note(&self) -> Option<String> {
        let Self { first, last, .. } = self;
        let broken = self.broken.map(|broken| broken.note(*last)).unwrap_or_default();
        let next = last + 1;
        match self.rest {
            Rest::Nothing => None,
            Rest::Counted(total) if total <= *last => Some(format!("[{broken}lines {first}-{last} of {total}]")),
            Rest::Counted(total) => Some(format!("[{broken}lines {first}-{last} of {total}; line {next} comes next]")),
            Rest::Uncounted => {
                Some(format!("[{broken}lines {first}-{last}; the file goes on; line {next} comes next]"))
            }
        }
    }

    fn has_room_for_lines(&self, limit: u64) -> bool {
        self.last + 1 - self.first < limit
    }
}

/// Reads one page. A text without any lines is the caller's affair.
pub(super) fn page(
    source: impl Read,
    encoding: TextEncoding,
    subject: &Subject<'_>,
    window: Window,
) -> Result<Page, CallError> {
    let source = BufReader::with_capacity(PIECE, encoding.reader(source));
    let mut stream = Stream { source, subject, at: 0, ends: 0, open: false };
    stream.pass(window.first - 1)?;
    if stream.piece()?.is_empty() {
        return Err(past_end(subject, window.first, stream.lines()));
    }
    let mut page = Page {
        text: String::new(),
        first: window.first,
        last: window.first - 1,
        broken: None,
        is_garbled: false,
        rest: Rest::Nothing,
    };
    let mut line = Vec::new();
    while page.has_room_for_lines(window.limit) {
        let prefix = prefix(window.form, page.last + 1);
        let fit = stream.line(BYTES_MAX.saturating_sub(page.text.len() + prefix.len()), &mut line)?;
        if fit == Fit::Nothing || (fit == Fit::Part && !page.text.is_empty()) {
            break;
        }
        let text = decode(&line, fit);
        // In UTF-8 the character may stand in the file itself.
        page.is_garbled |= match &text {
            Cow::Owned(_) => true,
            Cow::Borrowed(text) => !encoding.is_utf8() && text.contains(char::REPLACEMENT_CHARACTER),
        };
        page.last += 1;
        let _ = write!(page.text, "{prefix}{}", dressed(&text, window.form, page.last).as_ref());
        if fit == Fit::Part {
            let whole = stream.rest_of_line()?.map(|rest| rest + line.len() as u64);
            page.broken = Some(Broken { shown: text.len(), whole });
            break;
        }
    }
    page.rest = stream.rest()?;
    if page.broken.is_some() && page.rest == Rest::Nothing {
        page.rest = Rest::Counted(stream.lines());
    }
    Ok(page)
}

fn prefix(form: Form, number: u64) -> String {
    match form {
        Form::Numbered => format!("{number:>6}\t"),
        Form::Plain => String::new(),
    }
}

/// The line as the form wants it.
fn dressed(line: &str, form: Form, number: u64) -> Cow<'_, str> {
    if form == Form::Plain {
        return line.into();
    }
    let line = if number == 1 { line.trim_start_matches('\u{feff}') } else { line };
    match line.strip_suffix("\r\n") {
        Some(body) => format!("{body}\n").into(),
        None => line.into(),
    }
}

/// The line as text. Bytes that are not UTF-8 become U+FFFD; a character that the cut went through is left out.
fn decode(line: &[u8], fit: Fit) -> Cow<'_, str> {
    let goes_on = |bytes: &&[u8]| std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none());
    let last = line.utf8_chunks().last().map(|chunk| chunk.invalid()).filter(goes_on);
    let cut = last.filter(|_| fit == Fit::Part).map_or(0, <[u8]>::len);
    String::from_utf8_lossy(&line[..line.len() - cut])
}

/// How much of a line was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// There is none.
    Nothing,
    /// All, its end included.
    Whole,
    /// As much as there was room for.
    Part,
}

/// A text on its way past, counted as it goes.
struct Stream<'s, R> {
    source: BufReader<R>,
    subject: &'s Subject<'s>,
    /// Bytes passed.
    at: u64,
    /// Line ends passed.
    ends: u64,
    /// Whether the last byte passed was inside a line.
    open: bool,
}

impl<R: Read> Stream<'_, R> {
    /// What is read and not yet passed; empty only at the end.
    fn piece(&mut self) -> Result<&[u8], CallError> {
        if self.source.buffer().is_empty() {
            self.subject.scene.halt().check()?;
        }
        self.source.fill_buf().map_err(|error| self.subject.explain(&error))
    }

    /// Goes past `lines` line ends, or to the end.
    fn pass(&mut self, lines: u64) -> Result<(), CallError> {
        let mut left = lines;
        while left > 0 {
            if self.at > PASS_MAX {
                return Err(too_far(self.subject, lines + 1));
            }
            let piece = self.piece()?;
            let ends = memchr_iter(b'\n', piece).count() as u64;
            // Counting is much faster than stopping at every line end, so only the last piece is searched.
            let stop = usize::try_from(left - 1).ok().filter(|_| ends >= left);
            let stop = stop.and_then(|nth| memchr_iter(b'\n', piece).nth(nth));
            let length = stop.map_or(piece.len(), |at| at + 1);
            if length == 0 {
                break;
            }
            self.advance(length, ends.min(left));
            left = left.saturating_sub(ends);
        }
        Ok(())
    }

    /// The next line, or as much of it as there is room for.
    fn line(&mut self, room: usize, line: &mut Vec<u8>) -> Result<Fit, CallError> {
        line.clear();
        loop {
            let piece = self.piece()?;
            if piece.is_empty() {
                return Ok(if line.is_empty() { Fit::Nothing } else { Fit::Whole });
            }
            let end = memchr(b'\n', piece);
            let length = end.map_or(piece.len(), |at| at + 1);
            let allowed = room - line.len();
            line.extend_from_slice(&piece[..length.min(allowed)]);
            if length > allowed {
                self.advance(allowed, 0);
                return Ok(Fit::Part);
            }
            self.advance(length, u64::from(end.is_some()));
            if end.is_some() {
                return Ok(Fit::Whole);
            }
        }
    }

    /// Goes past some of what was read, in which there are so many line ends.
    fn advance(&mut self, length: usize, ends: u64) {
        if let Some(last) = self.source.buffer()[..length].last() {
            self.open = *last != b'\n';
        }
        self.source.consume(length);
        self.at += length as u64;
        self.ends += ends;
    }

    /// How many lines were passed, the one in the middle of which it stands included.
    fn lines(&self) -> u64 {
        self.ends + u64::from(self.open)
    }

    /// How much of the line is still to come, without its end; unknown if that is too much to be counted.
    fn rest_of_line(&mut self) -> Result<Option<u64>, CallError> {
        let from = self.at;
        loop {
            let piece = self.piece()?;
            let end = memchr(b'\n', piece);
            let length = end.unwrap_or(piece.len());
            let is_over = end.is_some() || length == 0;
            self.advance(length, 0);
            if is_over {
                return Ok(Some(self.at - from));
            }
            if self.at > COUNT_MAX {
                return Ok(None);
            }
        }
    }

    /// What is still to come; a text that is not too large is counted to its end, unless it grows all the while.
    fn rest(&mut self) -> Result<Rest, CallError> {
        if self.piece()?.is_empty() {
            return Ok(Rest::Nothing);
        }
        while self.at <= COUNT_MAX && self.subject.meta.len() <= COUNT_MAX {
            if self.piece()?.is_empty() {
                return Ok(Rest::Counted(self.lines()));
            }
            self.pass_piece()?;
        }
        Ok(Rest::Uncounted)
    }

    /// Goes past what is read already.
    fn pass_piece(&mut self) -> Result<(), CallError> {
        let piece = self.piece()?;
        let (length, ends) = (piece.len(), memchr_iter(b'\n', piece).count() as u64);
        self.advance(length, ends);
        Ok(())
    }
}

fn past_end(subject: &Subject<'_>, offset: u64, lines: u64) -> CallError {
    let noun = if lines == 1 { "line" } else { "lines" };
    CallError::invalid(format!("{} has {lines} {noun}; line {offset} is past its end", subject.place.shown))
}

fn too_far(subject: &Subject<'_>, line: u64) -> CallError {
    let most = size(usize::try_from(PASS_MAX).unwrap_or(usize::MAX));
    CallError::failed(format!("line {line} of {} does not begin within its first {most}", subject.place.shown))
        .hint("read it in a shell, with `tail -c` or `sed -n`")
}
