//! The loop of the lexer, and its stack.

use super::frame::{Frame, Kind, State, Target, Word};
use super::heredoc::Heredoc;
use super::text::Text;
use super::{DEEPEST, Job, Look};
use std::mem;

/// How often `((` may turn out not to be arithmetic. Each time is read again.
const REFUSALS: usize = 64;

/// The reading of one [`Job`].
pub(super) struct Scan<'s, 'a, 'o> {
    pub(super) text: &'s Text<'a>,
    /// Up to where the job ends.
    pub(super) bytes: &'s [u8],
    pub(super) at: usize,
    /// The innermost thing that is open; those around it are on the stack.
    pub(super) frame: Frame,
    stack: Vec<Frame>,
    pub(super) depth: usize,
    /// How many `$(`, `<(` and `>(` are open.
    pub(super) inside: usize,
    /// Here-documents whose bodies are still to come.
    pub(super) pending: Vec<Heredoc>,
    /// What was found when each open `((` began.
    tries: Vec<Found>,
    /// The `((` that were no arithmetic.
    refused: Vec<usize>,
    /// How many bytes may still be read again.
    fuel: usize,
    stopped: bool,
    pub(super) look: &'o mut Look,
    pub(super) jobs: &'o mut Vec<Job<'a>>,
}

/// How much was found at some moment, so that it can be forgotten.
struct Found {
    substitutions: usize,
    separators: usize,
    redirects: usize,
    commands: usize,
    words: usize,
    jobs: usize,
    pending: usize,
}

impl<'s, 'a, 'o> Scan<'s, 'a, 'o> {
    pub(super) fn new(job: &'s Job<'a>, look: &'o mut Look, jobs: &'o mut Vec<Job<'a>>) -> Self {
        let bytes = job.text.bytes().get(..job.end).unwrap_or_default();
        look.depth = look.depth.max(job.depth);
        Self {
            text: &job.text,
            bytes,
            at: job.start,
            frame: Frame::new(job.kind, job.start),
            stack: Vec::new(),
            depth: job.depth,
            inside: 0,
            pending: Vec::new(),
            tries: Vec::new(),
            refused: Vec::new(),
            fuel: 4 * bytes.len().saturating_sub(job.start),
            stopped: false,
            look,
            jobs,
        }
    }

    pub(super) fn run(mut self) {
        while self.at < self.bytes.len() {
            match self.frame.kind {
                kind if kind.holds_words() => self.token(),
                Kind::Double | Kind::Body => self.quoted(),
                Kind::Param => self.param(),
                _ => self.bracketed(),
            }
        }
        self.finish();
    }

    /// The text is over: nothing may be open.
    fn finish(&mut self) {
        if self.frame.word.active && !self.stopped {
            self.end_word();
        }
        let end = self.bytes.len();
        if !self.stack.is_empty() {
            self.fail(self.frame.open, self.frame.kind.unclosed());
        } else if self.frame.kind == Kind::Body {
        } else if self.frame.target != Target::None {
            self.fail(end, "a redirection has no target");
        } else if !self.frame.state.may_close() {
            self.fail(end, "the command is not complete");
        } else if !self.pending.is_empty() {
            self.fail(end, "a here-document has no body");
        }
    }

    /// One token, or the rest of a word that something nested interrupted.
    fn token(&mut self) {
        if self.frame.word.active {
            return self.word();
        }
        self.skip_blanks();
        match self.byte(self.at) {
            0 => {}
            b'#' => self.skip_comment(),
            b'\n' => self.newline(),
            // Unlike a group, it may end in the middle of a word.
            b'}' if self.frame.kind == Kind::Funsub && matches!(self.frame.state, State::Start | State::Closed) => {
                self.at += 1;
                self.pop();
            }
            byte @ (b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>') if !self.begins_word(byte) => self.operator(byte),
            b'-' if self.frame.target == Target::Descriptor => {
                self.at += 1;
                self.frame.target = Target::None;
                self.found_word(self.at - 1);
            }
            _ => {
                self.frame.word = Word::begin(self.at);
                self.word();
            }
        }
    }

    /// Whether an operator's byte begins a word after all.
    fn begins_word(&self, byte: u8) -> bool {
        match byte {
            b'<' | b'>' => self.byte(self.next(self.at)) == b'(',
            b'(' | b'|' => self.frame.regex,
            _ => false,
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.byte(self.at) {
                b' ' | b'\t' => self.at += 1,
                b'\\' if self.byte(self.at + 1) == b'\n' => self.at += 2,
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }

    /// The byte at `at`, or 0 past the end: the text has no NUL.
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or_default()
    }

    /// Where the byte after `at` stands, past newlines that a backslash removes.
    pub(super) fn next(&self, at: usize) -> usize {
        let mut next = at + 1;
        while self.byte(next) == b'\\' && self.byte(next + 1) == b'\n' {
            next += 2;
        }
        next
    }

    /// Goes into something that opened at `open`, to read on at `at`.
    pub(super) fn push(&mut self, kind: Kind, open: usize, at: usize) {
        let mut frame = Frame::new(kind, open);
        frame.quoted = match self.frame.kind {
            Kind::Param => self.frame.quoted,
            kind => !kind.holds_words() && kind != Kind::Pattern,
        };
        frame.pending = self.frame.pending;
        if matches!(kind, Kind::Substitution | Kind::Funsub) {
            frame.pending = self.pending.len();
            self.inside += 1;
        }
        self.frame.word.blur();
        self.stack.push(mem::replace(&mut self.frame, frame));
        self.at = at;
        self.deepen();
    }

    pub(super) fn deepen(&mut self) {
        self.depth += 1;
        self.look.depth = self.look.depth.max(self.depth);
        if self.depth > DEEPEST {
            self.fail(self.frame.open, "nested too deeply");
        }
    }

    /// Leaves what is innermost.
    pub(super) fn pop(&mut self) {
        if matches!(self.frame.kind, Kind::Substitution | Kind::Funsub) {
            self.inside = self.inside.saturating_sub(1);
            if self.pending.len() > self.frame.pending {
                self.fail(self.frame.open, "a here-document has no body");
            }
        }
        self.depth = self.depth.saturating_sub(1);
        if let Some(frame) = self.stack.pop() {
            self.frame = frame;
        }
    }

    /// Whether the group around the innermost thing is the body of a coprocess.
    pub(super) fn in_coprocess(&self) -> bool {
        self.stack.iter().rev().nth(1).is_some_and(|frame| frame.state == State::Coproc)
    }

    /// Goes into `((`, which may turn out to be two parentheses.
    pub(super) fn try_arithmetic(&mut self, kind: Kind, open: usize, at: usize) {
        self.tries.push(Found {
            substitutions: self.look.substitutions.len(),
            separators: self.look.separators.len(),
            redirects: self.look.redirects.len(),
            commands: self.look.commands.len(),
            words: self.look.words.len(),
            jobs: self.jobs.len(),
            pending: self.pending.len(),
        });
        self.push(kind, open, at);
    }

    pub(super) fn was_refused(&self, open: usize) -> bool {
        self.refused.contains(&open)
    }

    /// At a `)` that closes all that `((` opened: arithmetic if another follows, else read again.
    pub(super) fn close_arithmetic(&mut self) {
        let next = self.next(self.at);
        let Some(found) = self.tries.pop() else { return self.fail(self.at, "`)` without `(`") };
        if self.byte(next) == b')' {
            self.at = next + 1;
            let kind = self.frame.kind;
            self.pop();
            return self.after_arithmetic(kind);
        }
        let open = self.frame.open;
        let cost = self.at - open;
        if self.frame.kind == Kind::ArithFor || self.refused.len() >= REFUSALS || cost > self.fuel {
            return self.fail(open, "`((` is not closed by `))`");
        }
        self.fuel -= cost;
        self.forget(&found);
        self.pop();
        self.refused.push(open);
        self.at = open;
    }

    fn forget(&mut self, found: &Found) {
        self.look.substitutions.truncate(found.substitutions);
        self.look.separators.truncate(found.separators);
        self.look.redirects.truncate(found.redirects);
        self.look.commands.truncate(found.commands);
        self.look.words.truncate(found.words);
        self.jobs.truncate(found.jobs);
        self.pending.truncate(found.pending);
    }

    pub(super) fn found_separator(&mut self, at: usize) {
        self.look.separators.push(self.text.place(at));
    }

    pub(super) fn found_substitution(&mut self, at: usize) {
        self.look.substitutions.push(self.text.place(at));
        self.found_separator(at);
    }

    /// A word that ends here.
    pub(super) fn found_word(&mut self, start: usize) {
        let end = self.text.place(self.at.saturating_sub(1)) + 1;
        self.look.words.push((self.text.place(start), end));
    }

    /// Notes what may be read in two ways, and goes on.
    pub(super) fn doubt(&mut self, at: usize, why: &'static str) {
        let place = self.text.place(at);
        self.look.trouble.get_or_insert((place, why));
    }

    /// Notes what cannot be read, and stops.
    pub(super) fn fail(&mut self, at: usize, why: &'static str) {
        if !self.stopped {
            self.doubt(at, why);
        }
        self.stopped = true;
        self.at = self.bytes.len();
    }
}
