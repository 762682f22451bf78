//! One line at the end of stderr that is kept up to date, where somebody looks. What is printed beside it takes its place
//! first, so that nothing is ever written into it.

use haft_core::approval::Decider;
use haft_core::preview::cut;
use haft_core::{CallError, CallId, ErrorKind};
use haft_runtime::{Approver, BoxFuture, Form, Question, Said, Written};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How wide a terminal is that does not say it.
const COLUMNS: usize = 80;

/// Whether the line is there now.
static DRAWN: Mutex<bool> = Mutex::new(false);

/// The line. It is silent while somebody is asked something, and where nobody looks.
#[derive(Debug, Default)]
pub(crate) struct Line {
    seen: bool,
    hushed: AtomicUsize,
}

impl Line {
    /// For a command that prints nothing but JSON, or for people. A terminal that cannot be drawn on shows none.
    pub(crate) fn new(json: bool) -> Self {
        let plain = matches!(std::env::var("TERM").as_deref(), Err(_) | Ok("" | "dumb"));
        Self { seen: !json && !plain && std::io::stderr().is_terminal(), hushed: AtomicUsize::new(0) }
    }

    /// Whether there is anybody to see it.
    pub(crate) fn is_seen(&self) -> bool {
        self.seen
    }

    /// Whether somebody is being asked something.
    pub(crate) fn is_hushed(&self) -> bool {
        self.hushed.load(Ordering::Acquire) > 0
    }

    /// Puts a text in the place of the last one. Nothing takes the line away.
    pub(crate) fn draw(&self, text: &str) {
        if !self.seen || self.is_hushed() {
            return;
        }
        let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
        if *drawn || !text.is_empty() {
            wipe(&cut(text, columns().saturating_sub(1)));
        }
        *drawn = !text.is_empty();
    }

    /// Keeps it away until what is given back is dropped.
    fn hush(&self) -> Hushed<'_> {
        self.draw("");
        self.hushed.fetch_add(1, Ordering::AcqRel);
        Hushed(self)
    }
}

/// The line is away.
struct Hushed<'l>(&'l Line);

impl Drop for Hushed<'_> {
    fn drop(&mut self) {
        self.0.hushed.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Takes the line away, wherever it is: something else is printed now.
pub(crate) fn clear() {
    let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
    if std::mem::take(&mut *drawn) {
        wipe("");
    }
}

fn wipe(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[2K{text}");
    let _ = stderr.flush();
}

fn columns() -> usize {
    let said = rustix::termios::tcgetwinsize(std::io::stderr()).map(|size| usize::from(size.ws_col));
    said.ok().filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}

/// Whoever answers, with the line out of the way while they are asked. It is kept in mind which questions found nobody,
/// however deep within a call they came up.
pub(crate) struct Aside {
    line: Arc<Line>,
    approver: Box<dyn Approver>,
    unanswered: Mutex<BTreeSet<CallId>>,
}

impl Aside {
    pub(crate) fn new(line: &Arc<Line>, approver: Box<dyn Approver>) -> Self {
        Self { line: Arc::clone(line), approver, unanswered: Mutex::default() }
    }

    /// How many calls wait for a person.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How a command ends that would end so: what waits for a person was not done, whoever made do without it.
    pub(crate) fn code(&self, code: u8) -> u8 {
        let waits = self.unanswered() > 0 && [0, ErrorKind::Failed.exit_code()].contains(&code);
        if waits { ErrorKind::ApprovalRequired.exit_code() } else { code }
    }
}

impl Approver for Aside {
    fn decider(&self) -> Decider {
        self.approver.decider()
    }

    fn note_unasked(&self, question: &Question) {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).insert(question.call_id.clone());
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(async move {
            let _away = self.line.hush();
            let said = self.approver.ask(question).await;
            if said == Said::Nobody {
                self.note_unasked(question);
            }
            said
        })
    }

    fn patience(&self) -> Duration {
        self.approver.patience()
    }

    fn elicit<'a>(&'a self, form: &'a Form) -> BoxFuture<'a, Written> {
        Box::pin(async move {
            let _away = self.line.hush();
            self.approver.elicit(form).await
        })
    }

    fn sample<'a>(&'a self, request: &'a Value) -> BoxFuture<'a, Result<Value, CallError>> {
        self.approver.sample(request)
    }
    fn has_model(&self) -> bool {
        self.approver.has_model()
    }
    fn has_forms(&self) -> bool {
        self.approver.has_forms()
    }
}
