//! Trying a call that runs a program: on a copy-on-write view, so that a person can approve the effect and
//! not the intention. What was tried is what is kept; the program does not run a second time.

use crate::apply::Viewer;
use crate::approver::Question;
use crate::confined::{self, Terms};
use crate::dry::may_look;
use crate::halt::Halt;
use crate::pipeline::Haft;
use crate::ranked_changes::ChangeView;
use crate::scene::Basis;
use crate::secrets::Used;
use crate::tool::Reply;
use crate::{apply, journal, new_call_id, panics};
use haft_core::change::digest;
use haft_core::executed::TrialResult;
use haft_core::tool::Effect;
use haft_core::{Call, CallError, CallId, Checked, Facts, Hold, Origin, Outcome, Pending};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How much of what a trial printed is shown with the question.
const SHOWN: haft_core::shape::Limits =
    haft_core::shape::Limits { lines: 40, bytes: 4096, keep: haft_core::shape::Keep::HeadAndTail };

/// How much of what a trial changed is stored with the question, after the names.
const STORED_DIFF: haft_core::shape::Limits =
    haft_core::shape::Limits { lines: 2000, bytes: 128 << 10, keep: haft_core::shape::Keep::Head };
/// How long a stored question's call is tried.
const STORED_MAX: Duration = Duration::from_secs(10);

/// How many trials wait for their calls to be decided; then the oldest goes. Each holds files on disk.
const TRIALS_MAX: usize = 32;

/// What came of a trial, and what a person sees of it.
struct Trial {
    reply: Reply,
    tried: String,
    view: ChangeView,
    gap: Option<String>,
    used: Used,
}

/// What came of trials whose calls are not decided yet. Dropping one discards it without a trace.
#[derive(Default)]
pub(crate) struct Trials(Mutex<BTreeMap<CallId, Trial>>);

impl Trials {
    fn keep(&self, call: &CallId, trial: Trial) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= TRIALS_MAX {
            // Ids sort by time.
            held.pop_first();
        }
        held.insert(call.clone(), trial);
    }

    /// What came of a call's trial. It can be had once.
    pub(crate) fn take(&self, call: &CallId) -> Option<Reply> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(call).map(|trial| trial.reply)
    }

    /// What a call's trial changed, as far as the viewer wants to see it.
    fn view(&self, call: &CallId, viewer: Viewer<'_>) -> Option<ChangeView> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let trial = held.get(call)?;
        let mut view = apply::view(&trial.reply.changes, viewer, &[]);
        view.each_text(&|text| trial.used.mask(text));
        Some(view)
    }

    /// A question with what came of trying it, if it was tried.
    pub(crate) fn shown_with(&self, mut question: Question) -> Question {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trial) = held.get(&question.call_id) {
            question.tried = Some(trial.tried.clone());
            question.diff = Some(trial.view.diff.clone());
            question.ranked = Some(trial.view.ranked.clone());
            question.shown = Some(digest(&trial.reply.changes));
            if let Some(hold) = &mut question.hold {
                hold.gap.clone_from(&trial.gap);
            }
        }
        question
    }
}

/// The changes of a trial as they are stored: all names, and as much of the differences as there is room for.
fn stored_diff(view: &ChangeView) -> String {
    let names = view.ranked.listing();
    let mut limits = STORED_DIFF;
    limits.lines += names.len();
    limits.bytes += names.iter().map(|name| name.len() + 1).sum::<usize>();
    haft_core::shape::truncate(&view.diff, limits).text
}

impl Haft {
    /// What the trial of a call changed at or below a path; a folded directory that the path names is opened. None: the call was
    /// not tried.
    pub(crate) async fn trial_under(&self, call: CallId, under: PathBuf) -> Result<Option<ChangeView>, CallError> {
        let (trials, workspace) = (Arc::clone(&self.trials), Arc::clone(&self.workspace));
        let draw = move || {
            let shown = |path: &Path| workspace.shown(path);
            let viewer = Viewer { project: Some(workspace.root()), shown: &shown, under: Some(&under) };
            Ok(trials.view(&call, viewer))
        };
        crate::tool::off_thread(Halt::new(), draw).await
    }

    /// How the program of this call would be held, if it runs one.
    pub(crate) fn hold(&self, checked: &Checked) -> Result<Option<Hold>, CallError> {
        if checked.spec().effects.effect != Effect::Runs {
            return Ok(None);
        }
        let staging = || Terms::staging_of(&self.settings.data_dir, &checked.call().id);
        let rules = || self.web.rules(&checked.call().caller, &checked.spec().name);
        let tool = self.registry.get(checked.spec().name.as_str());
        let guest = tool.map(|entry| entry.tool().guest(checked.args(), &self.workspace)).transpose()?.flatten();
        if let Some(guest) = guest {
            let settled = self.terms.settle_guest(&self.workspace, (&guest, &rules()), &staging());
            return settled.map(|settled| Some(guest.told(settled.hold()))).map_err(|error| confined::explain(&error));
        }
        let settled = match &checked.spec().reach.declared {
            Some(declared) => {
                let rules = rules();
                // What writes nothing needs no layers.
                let layers = !declared.permissions.fs.write.is_empty();
                let staging = if layers { staging() } else { PathBuf::new() };
                self.terms.settle_declared(&self.workspace, &declared.permissions, (&[], &rules), &staging)
            }
            None => self.terms.settle(&self.workspace, &staging()),
        };
        Ok(Some(settled.map_err(|error| confined::explain(&error))?.hold()))
    }

    /// Runs a call on a copy-on-write view. Nothing has happened when this returns.
    pub(crate) async fn rehearsal(
        &self,
        checked: &Checked,
        facts: &Facts,
        halt: &Halt,
    ) -> Result<(Reply, Used), CallError> {
        let name = &checked.spec().name;
        let basis = Basis::trial(checked, facts).ok_or_else(|| {
            let gap = facts.hold.as_ref().and_then(|hold| hold.gap.clone());
            let why = gap.unwrap_or_else(|| "it acts by itself".to_owned());
            CallError::failed(format!("`{name}` cannot be tried without doing it: {why}"))
        })?;
        let entry = self.registry.get(name.as_str()).ok_or_else(|| CallError::failed("it was just unregistered"))?;
        let scene = self.scene(basis, &halt.within(checked.spec().timeout));
        let mut reply = panics::act(entry.tool().as_ref(), &scene).await;
        scene.used().mask_reply(&mut reply);
        reply.map(|reply| (reply, scene.used().clone()))
    }

    /// A trial is no call, but it ran, and may have contacted somebody.
    fn record_trial(&self, checked: &Checked, pending: &Pending, reply: &Reply) {
        let (call, name) = (checked.call(), &checked.spec().name);
        let mut outcome = Outcome::success(call.id.clone(), name, reply.text.clone(), pending.verdict().clone());
        outcome.success = reply.error.is_none();
        outcome.error.clone_from(&reply.error);
        outcome.data.clone_from(&reply.data);
        journal::rehearsed(&self.store, call, self.loggable(call), pending.facts().hold.as_ref(), &outcome);
    }

    /// Tries a call whose question is stored, where nothing of it can reach anybody, and keeps what came of it for those who
    /// decide. It has an id of its own: the call may be approved elsewhere and run meanwhile.
    pub(crate) async fn try_stored(&self, pending: &Pending, question: &Question) {
        let (checked, facts) = (pending.checked(), pending.facts());
        let is_program = checked.spec().effects.effect == Effect::Runs && checked.call().origin != Origin::Hook;
        let reaches_nobody = facts.hold.as_ref().is_some_and(Hold::harmless);
        // What a read would have to be asked for is not stored unasked, either.
        if !is_program || !reaches_nobody || !may_look(&facts.places) || !question.can_try() {
            return;
        }
        let (halt, call) = (Halt::new(), Call { id: new_call_id(), ..checked.call().clone() });
        let Ok(own) = self.check(call, &halt) else { return };
        if own.args() != checked.args() {
            return;
        }
        let tried = self.rehearsal(&own, facts, &halt.within(STORED_MAX)).await;
        let basis = question.basis.to_string();
        let trial = match tried {
            Ok((reply, used)) => {
                let mut view = self.tried_view(&reply);
                view.each_text(&|text| used.mask(text));
                self.record_trial(checked, pending, &reply);
                TrialResult {
                    basis,
                    printed: haft_core::shape::truncate(&reply.text, SHOWN).text,
                    diff: stored_diff(&view),
                    gap: self.vault.gap(&reply.changes),
                    problem: reply.error.as_ref().map(|error| error.message.clone()),
                }
            }
            Err(error) => TrialResult {
                basis,
                printed: String::new(),
                diff: String::new(),
                gap: None,
                problem: Some(format!("the trial did not come to its end: {}", error.message)),
            },
        };
        // The question stands without it.
        let _ = self.store.note_trial(question.call_id.as_str(), &trial).await;
    }

    /// What a trial would change, in the order in which a person reads it.
    fn tried_view(&self, reply: &Reply) -> ChangeView {
        let shown = |path: &Path| self.workspace.shown(path);
        let viewer = Viewer { project: Some(self.workspace.root()), shown: &shown, under: None };
        apply::shown_before(&reply.changes, &self.vault, viewer)
    }

    /// Tries a call that is being asked about, and adds what came of it to the question.
    pub(crate) async fn try_out(&self, pending: &Pending, question: &mut Question, halt: &Halt) {
        let checked = pending.checked();
        match self.rehearsal(checked, pending.facts(), halt).await {
            Ok((reply, used)) => {
                let text = haft_core::shape::truncate(&reply.text, SHOWN).text;
                let failed = reply.error.as_ref().map(|error| format!("\n{}", error.message)).unwrap_or_default();
                let mut view = self.tried_view(&reply);
                view.each_text(&|text| used.mask(text));
                self.record_trial(checked, pending, &reply);
                let gap = self.vault.gap(&reply.changes);
                let trial = Trial { tried: format!("{text}{failed}"), view, gap, reply, used };
                self.trials.keep(&checked.call().id, trial);
                *question = self.trials.shown_with(question.clone());
            }
            Err(error) => {
                question.tried = Some(String::new());
                question.problem = Some(error.message);
                // Whoever says yes to a call that would fail has seen no change, and so allows none.
                question.shown = Some(digest(&[]));
            }
        }
    }
}
