//! The keeper of one task: it runs the program to its end, writes down what it prints as it comes, keeps what
//! it changed as a call in the foreground would, and says how it ended.

use crate::agent::notes::plain;
use crate::confined::command::{self, Command, Done, Ending, Reins, Site};
use crate::judge::executed_files::verify_untouched;
use crate::output::{Collector, Pace, Printed};
use crate::task::dir::{End, Task, TaskDir, Wish};
use crate::task::leash::{Collar, Word};
use crate::task::order::{Ground, Order};
use haft_core::agent::talk::NOTE;
use haft_core::outcome::Undo;
use haft_core::record::Kind;
use haft_core::{CallError, ErrorKind, ToolName};
use haft_store::{Entry, NoteKind};
use serde_json::json;
use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

/// How wide the words are by which a note says how a task ended.
const HOW_MAX: usize = 1000;

/// What one keeper is for.
pub(super) struct Charge<'k> {
    pub(super) ground: &'k Ground,
    pub(super) dir: &'k TaskDir,
    pub(super) task: Task,
    pub(super) command: &'k Command,
    pub(super) collar: Collar,
    pub(super) say: &'k dyn Fn(Word),
}

/// Carries out an order that comes through a pipe: the life of a keeper that is a process of its own. Returns
/// when the task has ended. The order was decided upon by whoever wrote it. Somebody else could write one, too,
/// and would gain nothing: they run as the same user, and could start the program without haft.
pub fn keep(input: impl Read + Send + 'static, output: impl Write) -> Result<(), CallError> {
    // Whoever started this may be ended from a terminal; that is not meant for the task.
    let _ = rustix::process::setsid();
    let mut input = BufReader::new(input);
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| CallError::internal(format!("no order came: {error}")))?;
    let order: Order =
        serde_json::from_str(&line).map_err(|error| CallError::invalid(format!("this is not an order: {error}")))?;
    let output = std::cell::RefCell::new(output);
    let say = |word: Word| {
        if let Ok(mut text) = serde_json::to_vec(&word) {
            text.push(b'\n');
            // Whoever does not listen need not hear it.
            let mut output = output.borrow_mut();
            let _ = output.write_all(&text).and_then(|()| output.flush());
        }
    };
    let collar = Collar::default();
    collar.follow(input);
    let dir = TaskDir::at(order.dir.clone());
    let ground = match order.ground() {
        Ok(ground) => ground,
        Err(error) => {
            say(Word::Refused(error.clone()));
            return Err(error);
        }
    };
    let charge =
        Charge { ground: &ground, dir: &dir, task: order.task.clone(), command: &order.command, collar, say: &say };
    charge.carry_out();
    Ok(())
}

impl Charge<'_> {
    /// Runs the task to its end. What keeps it from running at all is said, and nothing has happened.
    pub(super) fn carry_out(mut self) {
        // As long as it is locked, the task runs, for everybody who looks.
        let _held = match self.dir.hold() {
            Ok(held) => held,
            Err(error) => {
                let why = format!("the task's directory {} cannot be locked: {error}", self.dir.path().display());
                (self.say)(Word::Refused(CallError::internal(why)));
                return;
            }
        };
        (self.task.keeper, self.task.locked) = (haft_store::myself(), true);
        let begun = Cell::new(false);
        let Err(error) = self.run(&begun) else { return };
        if begun.get() {
            // It ran, and somebody may know its name by now: how it ended has to be found there.
            let ending = Ending { error: Some(error), ..Ending::default() };
            self.close(End::of(ending, false, None, Vec::new()));
        } else {
            (self.say)(Word::Refused(error));
        }
    }

    fn run(&mut self, begun: &Cell<bool>) -> Result<(), CallError> {
        let unwritten = |error: std::io::Error| CallError::internal(format!("the task cannot be written: {error}"));
        let ground = self.ground;
        ground.maker.store.adopt_call_blocking(&self.task.errand.call_id).map_err(crate::store_error)?;
        self.dir.write(&self.task).map_err(unwritten)?;
        let (say, collar) = (self.say, self.collar.clone());
        let mut pace = Pace::default();
        let mut line = |line: &[u8]| {
            if !collar.is_free() {
                pace.line(line, &mut |line| say(Word::Line(line)));
            }
        };
        let mut collector = Collector::spooled(self.dir.output(), &mut line).map_err(unwritten)?;
        let killed = Cell::new(false);
        let kill_once = || {
            let now = !killed.get() && self.dir.wish() == Some(Wish::Kill);
            killed.set(killed.get() || now);
            now.then_some(rustix::process::Signal::KILL.as_raw())
        };
        let reins = Reins {
            stop: &|| self.collar.is_cut() || self.dir.wish().is_some(),
            signal: &kill_once,
            begun: &|| {
                begun.set(true);
                say(Word::Started);
            },
        };
        let terms = ground.terms.for_a_look(self.task.errand.looks);
        let site = Site { workspace: &ground.maker.workspace, terms: &terms, call: &self.task.errand.call_id };
        let done = command::run(self.command, &site, &reins, &mut collector)?;
        let printed = collector.finish();
        let end = self.settle(done, printed);
        self.close(end);
        Ok(())
    }

    /// Writes down how it ended.
    fn close(&mut self, end: End) {
        self.record(&end);
        self.task.end = Some(end);
        self.note_end();
        // What cannot be written is found as lost when this keeper is gone.
        let _ = self.dir.write(&self.task);
    }

    /// Leaves a note for the conversation that started it, before anybody can see its end elsewhere. Whoever waits for the task
    /// takes the note away: only they know whether they still waited.
    fn note_end(&self) {
        let (Task { id, errand, .. }, Some(end)) = (&self.task, &self.task.end) else { return };
        let how = match &end.ending.error {
            Some(error) => format!("{}: {}", end.state.word(), error.message.lines().next().unwrap_or_default()),
            None => end.state.word().to_owned(),
        };
        let command = plain(&errand.command, 200);
        let took = command::seconds(end.ending.duration_ms);
        let text = format!(
            "{NOTE}the background command {id} (`{command}`) has ended after {took}: {}. process.output {{\"id\": \"{id}\"}} \
             shows what it printed.]",
            haft_core::secret::mask(&plain(&how, HOW_MAX))
        );
        let store = &self.ground.maker.store;
        if let Err(error) = store.leave_note_blocking(&errand.session, NoteKind::Process, &id.to_string(), &text) {
            tracing::warn!(task = %id, %error, "the conversation is not told that a background command has ended");
        }
    }

    /// What came of it: what it changed is kept as after a call in the foreground.
    fn settle(&self, done: Done, printed: Printed) -> End {
        let maker = &self.ground.maker;
        let shown = |path: &Path| maker.workspace.shown(path);
        let gone = || CallError::new(ErrorKind::Cancelled, "whoever waited for it went away; nothing was kept");
        let cut_off = (done.stopped() && self.dir.wish().is_none()).then(gone);
        let cancelled = done.stopped();
        let (kept, mut ending) = done.settle(cut_off, &shown);
        let made = if kept.changes.is_empty() { Ok(None) } else { self.make(kept).map(Some) };
        let undo: Option<Undo> = match made {
            Ok(Some((undo, linked))) => {
                ending.warnings.extend(linked);
                Some(undo)
            }
            Ok(None) => None,
            Err(error) => {
                ending.error = Some(error);
                None
            }
        };
        if cancelled && ending.error.as_ref().is_none_or(|error| error.kind == ErrorKind::Failed) {
            let kept = if undo.is_some() { "; what it had changed is kept, and can be undone" } else { "" };
            ending.error = Some(CallError::new(ErrorKind::Cancelled, format!("it was ended on request{kept}")));
        }
        End::of(ending, cancelled, undo, printed.notices)
    }

    fn make(&self, kept: command::Kept) -> Result<(Undo, Vec<String>), CallError> {
        let (maker, errand) = (&self.ground.maker, &self.task.errand);
        if !kept.changes.is_empty() {
            verify_untouched(&errand.started)?;
        }
        if errand.looks {
            maker.unchanged(&kept.changes)?;
        }
        if !errand.asked {
            maker.revocable(&kept.changes)?;
        } else if !errand.accepts_gaps {
            maker.revocable_unseen(&kept.changes)?;
        }
        let tool = ToolName::new(&errand.tool).map_err(|error| CallError::internal(error.to_string()))?;
        maker.permitted(&tool, &kept.changes)?;
        maker.make((&errand.call_id, &errand.session), &kept.changes, kept.staging)
    }

    /// The task's end has a record of its own, about the call that started it.
    fn record(&self, end: &End) {
        let errand = &self.task.errand;
        let mut entry = Entry::new(Kind::Task)
            .call(&errand.call_id)
            .with("tool", errand.tool.as_str())
            .with("task", self.task.id.to_string())
            .with("state", end.state.word())
            .with("success", end.ending.error.is_none())
            .with("duration_ms", end.ending.duration_ms)
            .with("exit_code", end.ending.exit_code)
            .with("signal", end.ending.signal)
            .with("run", end.ending.run.clone());
        if let Some(error) = &end.ending.error {
            let first = error.message.lines().next().unwrap_or_default();
            entry = entry.with("error", json!({"kind": error.kind, "message": haft_core::secret::mask(first)}));
        }
        if let Some(undo) = &end.undo {
            entry = entry.with("undo", serde_json::to_value(undo).unwrap_or_default());
        }
        self.ground.maker.store.close_call(&errand.call_id, entry);
    }
}
