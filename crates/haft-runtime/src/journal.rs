//! What of a call is written down, and when: its intent before anything happens, its outcome after.

use haft_core::policy::Hook;
use haft_core::record::{Digest, Kind, redact, secrets_in, without};
use haft_core::secret::mask;
use haft_core::{Admitted, Call, CallError, Checked, ErrorKind, Facts, Hold, Outcome};
use haft_store::{Entry, Store, StoreError};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What is known of a step that is somebody's is true for so long, and much longer.
const PROMPT: Duration = Duration::from_millis(250);

/// A call whose intent is written. Only this can be run.
pub(crate) struct Opened {
    admitted: Admitted,
}

impl Opened {
    pub(crate) fn admitted(&self) -> &Admitted {
        &self.admitted
    }
}

/// Writes the intent. A call with effects waits until it is on disk; if that fails, it does not run. A
/// call that only reads need not wait.
pub(crate) async fn open(store: &Store, admitted: Admitted, hook: Hook) -> Result<Opened, (Box<Admitted>, StoreError)> {
    let checked = admitted.checked();
    let (id, tool) = (checked.call().id.clone(), checked.spec().name.to_string());
    let entry = describe(Kind::Intent, checked)
        .with("verdict", shown(admitted.verdict(), checked.args()))
        .with("places", shown_places(admitted.facts(), checked.args()));
    // What will be in force, and what could not be taken back, stands there before anything runs.
    let entry = match &admitted.facts().hold {
        Some(hold) => entry.with("confinement", shown(hold, checked.args())),
        None => entry,
    };
    let entry = match admitted.facts().executed.files.as_slice() {
        [] => entry,
        files => entry.with("executed", shown(&files, checked.args())),
    };
    // A tool that a hook marks stands out for whoever reads the log.
    let entry = if hook == Hook::Log { entry.with("marked", true) } else { entry };
    if has_no_effect(&admitted) {
        store.record_later(entry);
        return Ok(Opened { admitted });
    }
    let begun = Instant::now();
    let mut opened = store.open_call(&id, &tool, entry).await;
    // A store that took its time may have given the step to somebody else since it wrote the intent.
    let mut late = begun.elapsed() > PROMPT;
    while late && opened.is_ok() {
        let begun = Instant::now();
        opened = store.is_still_mine(&id).await;
        late = begun.elapsed() > PROMPT;
    }
    match opened {
        Ok(()) => Ok(Opened { admitted }),
        Err(error) => Err((Box::new(admitted), error)),
    }
}

/// Whether nothing can have been lost if the process dies before the record is on disk.
fn has_no_effect(admitted: &Admitted) -> bool {
    admitted.checked().only_reads() || admitted.facts().only_looks()
}

/// A record that is still open. If the caller drops the call half-way, it is closed as cancelled: changes
/// under way are carried to their end, and the log must not say that the process died.
pub(crate) struct Unfinished<'o> {
    store: &'o Store,
    opened: &'o Opened,
    closed: bool,
    goes_on: bool,
}

impl<'o> Unfinished<'o> {
    pub(crate) fn new(store: &'o Store, opened: &'o Opened) -> Self {
        Self { store, opened, closed: false, goes_on: false }
    }

    /// Closes the record. If something goes on after the call, the outcome is written, and the call stays open
    /// until whoever keeps that something closes it: if that one dies, the next start says so.
    pub(crate) fn close(mut self, outcome: &Outcome, goes_on: bool) {
        self.closed = true;
        self.goes_on = goes_on;
        self.write(outcome);
    }

    fn write(&self, outcome: &Outcome) {
        let checked = self.opened.admitted.checked();
        let entry = ended(Kind::Outcome, checked.call(), outcome);
        if has_no_effect(&self.opened.admitted) || self.goes_on {
            self.store.record_later(entry);
        } else {
            self.store.close_call(&checked.call().id, entry);
        }
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let admitted = &self.opened.admitted;
        let checked = admitted.checked();
        let message = "the caller went away; changes that had begun were carried to their end";
        let error = CallError::new(ErrorKind::Cancelled, message);
        let name = checked.spec().name.as_str();
        self.write(&Outcome::failure(checked.call().id.clone(), name, error, admitted.verdict().clone()));
    }
}

/// Records a call that was stopped before it ran.
pub(crate) fn refuse(store: &Store, call: &Call, args: Value, outcome: &Outcome) {
    let entry = ended(Kind::Refused, call, outcome)
        .with("args", args)
        .with("spoken", mask(&haft_core::preview::cut(&call.spoken, 120)).into_owned())
        .with("session", call.session.as_str())
        .with("verdict", shown(&outcome.verdict, &call.args));
    store.record_later(entry);
}

/// Records that a call was tried and nothing was kept: what, under what, and whom it contacted.
pub(crate) fn rehearsed(store: &Store, call: &Call, args: Value, hold: Option<&Hold>, outcome: &Outcome) {
    let entry = ended(Kind::Outcome, call, outcome)
        .with("dry_run", true)
        .with("args", args)
        .with("session", call.session.as_str())
        .with("verdict", shown(&outcome.verdict, &call.args));
    store.record_later(match hold {
        Some(hold) => entry.with("confinement", shown(hold, &call.args)),
        None => entry,
    });
}

pub(crate) fn describe(kind: Kind, checked: &Checked) -> Entry {
    let (call, spec) = (checked.call(), checked.spec());
    let entry = match call.parents.last() {
        Some(parent) => Entry::new(kind).with("parent", parent.as_str()),
        None => Entry::new(kind),
    };
    entry
        .call(&call.id)
        .with("tool", spec.name.as_str())
        .with("args", redact(checked.args(), &spec.shapes.input, &spec.reach.bodies))
        .with("session", call.session.as_str())
        .with("origin", serde_json::to_value(call.origin).unwrap_or_default())
        .with("caller", serde_json::to_value(&call.caller).unwrap_or_default())
        .with_some("turn", call.turn)
}

/// What is said about a call, without the secrets of its commands that it may quote.
pub(crate) fn shown(about: &impl serde::Serialize, args: &Value) -> Value {
    without(serde_json::to_value(about).unwrap_or_default(), &secrets_in(args))
}

/// The places of a call as the log has them.
pub(crate) fn shown_places(facts: &Facts, args: &Value) -> Value {
    let places = facts.places.iter().map(|place| json!({"path": place.shown, "access": place.access}));
    shown(&places.collect::<Vec<_>>(), args)
}

/// The outcome without its content: what came out is kept as hash and size.
fn ended(kind: Kind, call: &Call, outcome: &Outcome) -> Entry {
    let mut entry = Entry::new(kind)
        .call(&call.id)
        .with("tool", outcome.tool.as_str())
        .with("success", outcome.success)
        .with("duration_ms", outcome.duration_ms)
        .with("output", json!({"sha256": Digest::of(outcome.output.as_bytes()), "bytes": outcome.output.len()}));
    if let Some(error) = &outcome.error {
        // Lines after the first quote what was sent or what stands in a file; the log is not the place for it.
        let first = error.message.lines().next().unwrap_or_default();
        entry = entry.with("error", shown(&json!({"kind": error.kind, "message": mask(first)}), &call.args));
    }
    let run = |data: &Value| data.get("run").or_else(|| data.get("result")?.get("run")).cloned();
    if let Some(run) = outcome.data.as_ref().and_then(run) {
        entry = entry.with("run", run);
    }
    if let Some(task) = outcome.data.as_ref().and_then(|data| data.get("task")).and_then(|task| task.get("id")) {
        entry = entry.with("task", task.clone());
    }
    if let Some(undo) = &outcome.undo {
        entry = entry.with("undo", serde_json::to_value(undo).unwrap_or_default());
    }
    entry
}
