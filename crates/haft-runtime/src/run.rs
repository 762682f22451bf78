//! Running an admitted, recorded call, cutting what it gives to size, and marking off what nobody vouches for.

use crate::approver::Approver;
use crate::back::{self, Wish};
use crate::halt::Halt;
use crate::hygiene::{self, Looked};
use crate::journal::Opened;
use crate::judge::executed_files::{ExecutedCheck, ExecutedSnapshot};
use crate::maker::Maker;
use crate::making::{Proposed, SKILL, TOOL};
use crate::panics;
use crate::pipeline::Haft;
use crate::scene::Basis;
use crate::store_error;
use crate::tool::Reply;
use haft_core::change::{Change, digest};
use haft_core::outcome::{Label, Undo};
use haft_core::shape::{Cut, truncate};
use haft_core::tool::Effect;
use haft_core::{Call, CallError, ErrorKind, Outcome};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

/// How wide one line about a call may be where nobody says otherwise.
pub(crate) const PREVIEW_COLUMNS: usize = 120;
/// Where whole outputs are kept, in the data directory.
pub(crate) const OUTPUTS: &str = "outputs";
/// How long a call may take that its caller looks after as a task: as long as a client's task is kept.
const TASK_MAX: Duration = Duration::from_hours(2);

/// What a run gave, not yet cut to size.
pub(crate) struct Raw {
    reply: Result<Reply, CallError>,
    undo: Option<Undo>,
}

impl Raw {
    /// Whether something that the call started goes on after it.
    pub(crate) fn goes_on(&self) -> bool {
        self.reply.as_ref().is_ok_and(|reply| reply.goes_on)
    }
}

impl Haft {
    /// Runs the tool within its deadline and applies the changes it asks for.
    pub(crate) async fn run(&self, opened: &Opened, approver: &dyn Approver, cancelled: &Halt) -> Raw {
        let checked = opened.admitted().checked();
        let mut halt = cancelled.within(checked.spec().timeout);
        let Some(entry) = self.registry.get(checked.spec().name.as_str()) else {
            let error =
                CallError::new(ErrorKind::UnknownTool, format!("`{}` was just unregistered", checked.spec().name));
            return Raw { reply: Err(error), undo: None };
        };
        let tried = self.trials.take(&checked.call().id);
        let mut executed = None;
        let reply = if let Some(reply) = tried.filter(|_| opened.admitted().shown().is_some()) {
            // It has run already, and this is what somebody saw.
            Ok(reply)
        } else {
            executed = match self.verify_executed(opened.admitted(), &halt).await {
                Ok(ExecutedCheck::NotBound) => None,
                Ok(ExecutedCheck::Same(executed)) => Some(executed),
                Ok(ExecutedCheck::Changed(changed)) => {
                    let error = self.asked_anew(checked, &changed).await;
                    return Raw { reply: Err(error), undo: None };
                }
                Err(error) => return Raw { reply: Err(error), undo: None },
            };
            let (back, mut wishes) = back::channel(approver);
            let basis = Basis::of(opened.admitted(), executed.as_ref());
            let scene = self.scene(basis, &halt).asking(back);
            let mut act = std::pin::pin!(panics::act(entry.tool().as_ref(), &scene));
            // It hears the halt itself, and first ends and clears away what it started.
            let hears = checked.spec().effects.effect == Effect::Runs;
            let mut reply = loop {
                tokio::select! {
                    biased;
                    reply = &mut act => break reply,
                    error = halt.stopped(), if !hears => break Err(error),
                    wish = wishes.next() => {
                        if matches!(wish, Wish::GoOnAsTask) {
                            halt = cancelled.within(TASK_MAX);
                        }
                        self.grant_wish(opened, (approver, &halt), &mut wishes, wish).await;
                    }
                }
            };
            scene.used().mask_reply(&mut reply);
            reply
        };
        let changes = matches!(checked.spec().effects.effect, Effect::Changes | Effect::Runs);
        match reply {
            Ok(mut reply) if changes && !reply.changes.is_empty() => {
                match self.permitted(opened, &reply.changes, executed.as_ref(), &halt).await {
                    Ok(()) => {
                        let proposal = reply.proposal.take();
                        let made = self.change(checked.call(), reply, &halt).await;
                        let made = self.accepted(opened, proposal.as_deref(), made).await;
                        self.noted(opened, proposal, made).await
                    }
                    Err(error) => Raw { reply: Err(error), undo: None },
                }
            }
            // What a task in the background changed is changed already.
            Ok(mut reply) => {
                let undo = reply.undo.take();
                Raw { reply: Ok(reply), undo }
            }
            Err(error) => Raw { reply: Err(error), undo: None },
        }
    }

    /// Accepts the tool or the skill that a person approved, now that it is there; as it was shown, and not otherwise.
    async fn accepted(&self, opened: &Opened, proposal: Option<&Proposed>, mut made: Raw) -> Raw {
        let Some(proposed) = proposal.filter(|_| opened.admitted().asked()) else { return made };
        let Ok(reply) = &mut made.reply else { return made };
        let accepted = match proposed.what {
            TOOL => self.shelf.accept_proposed(proposed).await,
            SKILL => self.skills.accept_proposed(proposed).await,
            _ => Ok(()),
        };
        if let Err(error) = accepted {
            reply.warnings.push(format!("it is not accepted yet: {}; `haft trust` does that", error.message));
        }
        made
    }

    /// Notes that a person approved what was proposed, now that it is there.
    async fn noted(&self, opened: &Opened, proposal: Option<Box<Proposed>>, mut made: Raw) -> Raw {
        if let (Ok(reply), Some(proposal)) = (&mut made.reply, proposal) {
            reply.warnings.extend(self.note_approved(opened.admitted(), &proposal).await);
        }
        made
    }

    /// Whether these are the changes that a person saw, at places that no floor rule forbids.
    async fn permitted(
        &self,
        opened: &Opened,
        changes: &[Change],
        executed: Option<&ExecutedSnapshot>,
        halt: &Halt,
    ) -> Result<(), CallError> {
        let admitted = opened.admitted();
        if let Some(executed) = executed {
            self.verify_after(admitted, executed, halt).await?;
        }
        if admitted.shown().is_some_and(|shown| shown != digest(changes)) {
            return Err(CallError::conflict("the files changed after the diff was shown; nothing was changed")
                .hint("call again to see what it would do now"));
        }
        if admitted.looks() {
            self.maker().unchanged(changes)?;
        }
        let runs = admitted.checked().spec().effects.effect == Effect::Runs;
        // Whoever turned undo off wants to change files all the same.
        if (runs || !self.vault.is_off()) && !admitted.asked() {
            self.maker().revocable(changes)?;
        } else if runs && !admitted.accepts_gaps() {
            self.maker().revocable_unseen(changes)?;
        }
        self.maker().permitted(&admitted.checked().spec().name, changes)
    }

    pub(crate) fn maker(&self) -> &Maker {
        self.desk.maker()
    }

    /// Keeps what is there, then makes the changes. Once begun, this is carried to its end.
    async fn change(&self, call: &Call, mut reply: Reply, halt: &Halt) -> Raw {
        if let Err(error) = halt.check() {
            return Raw { reply: Err(error), undo: None };
        }
        let changes = std::mem::take(&mut reply.changes);
        let maker = self.maker().clone();
        let (id, session) = (call.id.clone(), call.session.clone());
        // Whoever waits for the reply may go away; this goes on.
        let (staging, spent) = (reply.staging.clone(), reply.spent.take());
        let data_dir = self.settings.data_dir.clone();
        let work = move || {
            let made = maker.make((&id, &session), &changes, staging)?;
            // One that cannot be removed is listed by `haft agents worktrees`.
            let _ = spent.map(|spent| crate::agent::tree::remove(&data_dir, &spent));
            Ok(made)
        };
        let done = tokio::task::spawn_blocking(work).await;
        match done.unwrap_or_else(|crash| Err(CallError::internal(format!("applying the changes crashed: {crash}")))) {
            Ok((undo, linked)) => {
                reply.warnings.extend(linked);
                Raw { reply: Ok(reply), undo: Some(undo) }
            }
            Err(error) => Raw { reply: Err(error), undo: None },
        }
    }

    /// Cuts the output to size, keeps what is cut, and checks the data against the declared shape.
    pub(crate) async fn shape(&self, opened: &Opened, raw: Raw) -> Outcome {
        crate::crash_point("ran");
        let admitted = opened.admitted();
        let checked = admitted.checked();
        let (id, name) = (checked.call().id.clone(), &checked.spec().name);
        let reply = match raw.reply {
            Ok(reply) => reply,
            Err(error) => {
                let mut outcome = Outcome::failure(id, name.as_str(), error, admitted.verdict().clone());
                if checked.spec().effects.open_world {
                    hygiene::hear(&mut outcome);
                }
                return outcome;
            }
        };
        let limits = checked.limits(admitted.facts());
        let was_cut = reply.whole.is_some() || reply.whole_text.is_some();
        let Cut { text, hidden_bytes, .. } = if was_cut {
            // By the tool itself, which says how much is missing.
            Cut { text: reply.text.clone(), hidden_bytes: 0, hidden_lines: 0 }
        } else {
            truncate(&reply.text, limits)
        };
        let is_to_be_kept = hidden_bytes > 0 || reply.whole_text.is_some();
        let whole = reply.whole_text.unwrap_or(reply.text);
        let mut outcome = Outcome::success(id, name, text, admitted.verdict().clone());
        outcome.labels = reply.labels;
        outcome.warnings = reply.warnings;
        outcome.warnings.extend(self.mismatches(checked.spec().name.as_str(), reply.data.as_ref()));
        outcome.data = reply.data;
        outcome.content = if hidden_bytes > 0 { reply.content.truncated(limits) } else { reply.content };
        outcome.success = reply.error.is_none();
        outcome.error = reply.error;
        let (looked, whole) = match reply.looked {
            Some(looked) => (looked, whole),
            None if outcome.labels.contains(&Label::Untrusted) => Looked::at_all(whole).await,
            None => (Looked::default(), whole),
        };
        let wrapper = hygiene::tend(&mut outcome, looked).await;
        outcome.truncated = hidden_bytes > 0 || was_cut;
        outcome.full_output = reply.whole;
        if let Some(path) = &outcome.full_output {
            outcome.output = format!("{}\n[the whole output is in {path}]", outcome.output.trim_end_matches('\n'));
        }
        if is_to_be_kept && outcome.full_output.is_none() {
            // What is read back later is marked off like what is shown now.
            let whole = match wrapper {
                Some(wrapper) => wrapper.around(&whole, &outcome.tool),
                None => whole,
            };
            match self.keep_output(checked.call(), whole).await {
                Ok(path) => {
                    outcome.output.push_str(&format!("\n[the whole output is in {path}]"));
                    outcome.full_output = Some(path);
                }
                Err(error) => outcome.warnings.push(format!("the whole output could not be kept: {error}")),
            }
        }
        outcome.undo = raw.undo;
        outcome
    }

    async fn keep_output(&self, call: &Call, text: String) -> std::io::Result<String> {
        let (data_dir, bytes) = (self.settings.data_dir.clone(), text.len() as u64);
        let (kept, dir) = (self.settings.terms.kept, data_dir.join(OUTPUTS));
        let path = dir.join(format!("{}.txt", call.id));
        let shown = path.to_string_lossy().into_owned();
        let write = move || {
            let room = kept.make_room(&data_dir, bytes);
            room.map_err(|error| std::io::Error::other(error.message))?;
            crate::shared_data::make_directory(&dir)?;
            let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(text.as_bytes())
        };
        tokio::task::spawn_blocking(write).await.unwrap_or_else(|crash| Err(std::io::Error::other(crash)))?;
        Ok(shown)
    }

    /// Where the data does not have the shape that the tool declares. The data is passed on all the same.
    fn mismatches(&self, tool: &str, data: Option<&serde_json::Value>) -> Vec<String> {
        let (Some(data), Some(entry)) = (data, self.registry.get(tool)) else { return Vec::new() };
        let violations = entry.output().map(|schema| schema.violations(data)).unwrap_or_default();
        let line = |v: &haft_core::schema::Violation| {
            format!("output does not fit its schema: {}: expected {}, got {}", v.pointer, v.expected, v.found)
        };
        violations.iter().map(line).collect()
    }

    /// Waits until everything is written, and says what could not be.
    pub async fn flush(&self) -> Result<(), CallError> {
        self.store.flush().await.map_err(store_error)
    }
}
