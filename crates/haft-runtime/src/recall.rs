//! Looking back: taking a call back, and running what a person approved later.

use crate::halt::Halt;
use crate::hooked::Purpose;
use crate::judge::executed_files::{CHANGED, changed_error};
use crate::pipeline::Haft;
use crate::ranked_changes::{ChangeView, RankedChanges};
use crate::tool::BoxFuture;
use crate::{Approver, Question, Said, go_to, new_call_id, panics, store_error};
use haft_core::admit::decide;
use haft_core::approval::{Decider, DecisionScope};
use haft_core::executed::{ChangedFile, ExecutedFile, described};
use haft_core::grant::Grant;
use haft_core::preview::inert;
use haft_core::{Call, CallError, CallId, Checked, ErrorKind, Origin, Outcome, Pending, Ruling, path_text};
use haft_store::work::RUN_PREFIX;
use haft_store::{Approval, ApprovalState, Topic};
use serde_json::json;
use std::time::Duration;

/// How long another machine is waited for that has to run what was allowed here.
const ELSEWHERE: Duration = Duration::from_mins(1);
/// How often it is looked for, where nobody tells.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The person who approved a stored call. They said yes to exactly what was asked: if it has become
/// something else, that is a no. A deny still stands.
struct Earlier {
    decider: Decider,
    basis: String,
    executed: Vec<ExecutedFile>,
    said: Said,
}

/// What somebody decides about a stored call.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolution {
    /// Yes, this once.
    Once,
    /// Yes, and the same again until the session ends.
    Session,
    /// Yes, and for this pattern from now on, a limited number of times.
    Always(String),
}

impl Resolution {
    /// For how long it holds.
    const fn scope(&self) -> DecisionScope {
        match self {
            Self::Once => DecisionScope::Once,
            Self::Session | Self::Always(_) => DecisionScope::Lasting,
        }
    }
}

impl From<Resolution> for Said {
    fn from(resolution: Resolution) -> Self {
        match resolution {
            Resolution::Once => Self::Once,
            Resolution::Session => Self::Session,
            Resolution::Always(pattern) => Self::Always(pattern),
        }
    }
}

impl Approver for Earlier {
    fn decider(&self) -> Decider {
        self.decider.clone()
    }
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        let same = question.basis.to_string() == self.basis;
        let said =
            if same { self.said.clone() } else { Said::Reject("it changed while it was being approved".to_owned()) };
        Box::pin(std::future::ready(said))
    }
    fn approved_files(&self) -> Option<&[ExecutedFile]> {
        Some(&self.executed)
    }
}

impl Haft {
    /// Approves a stored call and runs it: once, whoever else tries at the same time, and only if it is
    /// still what was asked about.
    pub async fn approve(&self, id: &str, by: &Decider, halt: &Halt) -> Result<Outcome, CallError> {
        self.decide(id, by, Resolution::Once, halt).await
    }

    /// The same, and perhaps for more than this once.
    pub async fn decide(
        &self,
        id: &str,
        by: &Decider,
        resolution: Resolution,
        halt: &Halt,
    ) -> Result<Outcome, CallError> {
        self.decide_as_seen(id, by, None, resolution, halt).await
    }

    /// The same, by somebody who says what they saw ([`Question::face`]): whatever anybody else has looked at, edited
    /// or tried since, a yes is for that.
    pub async fn decide_as_seen(
        &self,
        id: &str,
        by: &Decider,
        seen: Option<&str>,
        resolution: Resolution,
        halt: &Halt,
    ) -> Result<Outcome, CallError> {
        self.store.authorize(id, by, resolution.scope()).await.map_err(store_error)?;
        if id.starts_with(haft_store::FORM_PREFIX) {
            return Err(CallError::invalid(format!("{id} asks for an answer, not for a yes"))
                .hint(format!("`haft approvals answer {id}` gives one, `haft approvals reject {id}` declines")));
        }
        if let Some((asked, host)) = self.belongs_elsewhere(id).await? {
            return self.consent(asked, by, &resolution, &host).await;
        }
        let asked = self.belongs_here(id).await?;
        if asked.state != ApprovalState::Pending {
            return Err(self.decided_already(id).await);
        }
        let layer = self.around(&asked).await?;
        let decides = layer.as_deref().unwrap_or(self).decide_here(asked, (by, seen), resolution, halt);
        panics::caught("a check of the call", decides).await?
    }

    /// The same in the layer that the call is made in.
    async fn decide_here(
        &self,
        mut asked: Approval,
        (by, seen): (&Decider, Option<&str>),
        resolution: Resolution,
        halt: &Halt,
    ) -> Result<Outcome, CallError> {
        let now = self.question_here(&asked.id, halt).await?;
        if let Some(now) = &now {
            self.check_face(now, seen)?;
            // Somebody who says what they saw decides about that, whatever was shown to others.
            if seen.is_none() {
                self.check_basis(now, &asked)?;
            }
        }
        if let (Resolution::Always(pattern), Some(question)) = (&resolution, &now) {
            // Before anything is decided: a bad pattern must not use the question up.
            Grant::check_pattern(&question.tool, pattern)
                .map_err(|error| CallError::invalid(error.to_string()).hint("name a narrower pattern"))?;
        }
        if let Some(now) = now.filter(|_| seen.is_some()) {
            self.rebase(&mut asked, &now).await?;
        }
        let id = &asked.id;
        let waits = self.store.waiting_call(id).await.map_err(store_error)?;
        if waits.is_some_and(|call| call.origin == Origin::Hook) {
            return self.approve_observed(&asked, by, resolution, halt).await;
        }
        let Some(mut call) = self.store.approve(id, by, &asked.basis).await.map_err(store_error)? else {
            return Err(self.decided_already(id).await);
        };
        self.tell_decided(&call.id, "approved", by);
        call.origin = Origin::Approval;
        crate::crash_point("approved");
        let Approval { basis, executed, .. } = asked;
        let approver = Earlier { decider: by.clone(), basis, executed, said: resolution.into() };
        // Settled before its end is told, so that whoever hears of the end finds the question done.
        self.claims().insert(call.id.clone(), by.clone());
        Ok(self.call(call, &approver, halt).await)
    }

    /// Why a question cannot be decided: somebody has, or it is not asked any more.
    pub(crate) async fn decided_already(&self, id: &str) -> CallError {
        let found = self.store.approval(id).await.ok().flatten();
        let said = |approval: &Approval| {
            let why = approval.outcome.as_ref().and_then(|outcome| outcome["rejected"].as_str()).unwrap_or_default();
            let by = approval.decided_by.as_deref().unwrap_or_default();
            match (approval.state, by) {
                (ApprovalState::Rejected, "caller") => format!("{id} is not asked any more: {}", inert(why)),
                _ => format!("{id} has been decided already, or is another question now"),
            }
        };
        CallError::conflict(found.as_ref().map_or_else(|| format!("{id} has been decided already"), said))
    }

    /// Puts other arguments in the place of those that wait, and shows what is asked now. Nobody has said yes to
    /// it yet.
    pub async fn amend(&self, id: &str, by: &Decider, args: serde_json::Value) -> Result<Question, CallError> {
        self.store.authorize(id, by, DecisionScope::Once).await.map_err(store_error)?;
        let asked = self.belongs_here(id).await?;
        if asked.state != ApprovalState::Pending {
            return Err(CallError::conflict(format!("{id} has been decided already")));
        }
        let layer = self.around(&asked).await?;
        layer.as_deref().unwrap_or(self).amend_here(id, by, args).await
    }

    async fn amend_here(&self, id: &str, by: &Decider, args: serde_json::Value) -> Result<Question, CallError> {
        let decided = || CallError::conflict(format!("{id} has been decided already"));
        let mut call = self.store.waiting_call(id).await.map_err(store_error)?.ok_or_else(decided)?;
        if call.origin == Origin::Hook {
            return Err(CallError::conflict("this call runs in the agent, so its arguments cannot be edited here")
                .hint("reject it, and say in the message what to do instead"));
        }
        let halt = Halt::new();
        // What waits may be said in any dialect; what a person edits is canonical.
        let before = self.check(call.clone(), &halt).map_err(|stop| stop.error)?;
        call.spoken = before.spec().name.to_string();
        (call.dialect, call.args) = (haft_core::Dialect::Haft, crate::tools::api::edited_args(args, &before)?);
        let checked = self.check(call.clone(), &halt).map_err(|stop| stop.error)?;
        let (checked, facts) = self.known(checked, &halt, Purpose::Look).await.map_err(|stop| stop.error)?;
        let pending = match decide(checked, facts, &self.settings.policy, &self.settings.chain) {
            Ruling::Ask(pending) => pending,
            Ruling::Refused(refused) => return Err(refused.error),
            Ruling::Admitted(admitted) => {
                let why = format!("it would run unasked now ({})", admitted.verdict().reason);
                return Err(CallError::conflict(why).hint("reject this one; the agent may call that itself"));
            }
        };
        drop(self.trials.take(&call.id));
        let question = self.question(&pending, &halt).await;
        self.shown_questions.note(&question);
        let approval = self.approval(&pending, &question);
        if !self.store.amend(approval, &call, by).await.map_err(store_error)? {
            return Err(decided());
        }
        self.tell_decided(&call.id, "amended", by);
        Ok(question)
    }

    /// Runs a waiting call on a copy-on-write view, and shows what came of it. A yes in this process then keeps
    /// exactly that. For an identity that may decide: what it is shown is what its yes is for.
    pub async fn try_waiting(&self, id: &str, by: &Decider, halt: &Halt) -> Result<Question, CallError> {
        self.store.authorize(id, by, DecisionScope::Once).await.map_err(store_error)?;
        let asked = self.belongs_here(id).await?;
        let decided = || CallError::conflict(format!("{id} has been decided already"));
        if asked.state != ApprovalState::Pending {
            return Err(decided());
        }
        let layer = self.around(&asked).await?;
        let layer = layer.as_deref().unwrap_or(self);
        let pending = layer.pending_of(id, halt).await?.ok_or_else(decided)?;
        let mut question = layer.question(&pending, halt).await;
        if !question.can_try() {
            return Err(CallError::conflict("it cannot be tried without doing it, or has been tried"));
        }
        layer.try_out(&pending, &mut question, halt).await;
        self.shown_questions.note(&question);
        Ok(question)
    }

    /// Refuses if files, links or rules have made a question into another one since it was asked or last
    /// looked at.
    fn check_basis(&self, now: &Question, asked: &Approval) -> Result<(), CallError> {
        if !is_changed(asked, now) {
            return Ok(());
        }
        let changed = now.executed.changed_since(&asked.executed);
        let what = match described(&changed) {
            none if none.is_empty() => {
                let what = self.shown_questions.changed_since_basis(&asked.basis, now);
                what.unwrap_or_else(|| "the files it names, where they lead, or its tool have changed".to_owned())
            }
            files => format!("what it runs has changed: {files}"),
        };
        let error = CallError::conflict(format!("{} is no longer what was asked about: {what}", asked.id));
        let error = if changed.is_empty() { error } else { error.details(json!({ CHANGED: changed })) };
        Err(error.hint(look_again(&asked.id)))
    }

    /// Refuses if somebody says that they saw another question than this one, and says what has changed since they did.
    fn check_face(&self, now: &Question, seen: Option<&str>) -> Result<(), CallError> {
        let Some(seen) = seen.filter(|seen| now.face().to_string() != *seen) else { return Ok(()) };
        let id = &now.call_id;
        Err(match self.shown_questions.changed_since_face(seen, now) {
            Some(what) => CallError::conflict(format!("{id} is not what you saw any more: {what}"))
                .hint("look at it again, then decide"),
            None => CallError::conflict(format!(
                "`basis` matches no version of {id} that was shown here: it belongs to another question or has expired"
            ))
            .hint("look at the question again, and name its `basis` as it is shown then"),
        })
    }

    /// Stores the question anew that a call raises now, because what it runs has changed since somebody said yes. Returns what
    /// the caller is told.
    pub(crate) async fn asked_anew(&self, checked: &Checked, changed: &[ChangedFile]) -> CallError {
        let error = changed_error(checked, changed);
        match self.ask_anew(checked, changed).await {
            Ok(Some(id)) => error
                .hint(format!("it is asked again as {id}: look at it with `haft approvals show {id}`"))
                .details(json!({ CHANGED: changed, "approval_id": id })),
            // Nobody would be asked now, or it cannot be stored; the caller can call again.
            Ok(None) | Err(_) => error,
        }
    }

    async fn ask_anew(&self, checked: &Checked, changed: &[ChangedFile]) -> Result<Option<CallId>, CallError> {
        let (halt, old) = (Halt::new(), checked.call());
        let asked = self.store.approval(old.id.as_str()).await.map_err(store_error)?;
        let origin = asked.and_then(|asked| serde_json::from_value(json!(asked.origin?)).ok());
        let origin = origin.unwrap_or(old.origin);
        if origin == Origin::Work {
            // The run begins the step again, as a call of its own.
            return Ok(None);
        }
        let call = Call { id: new_call_id(), origin, ..old.clone() };
        let id = call.id.clone();
        let checked = self.check(call, &halt).map_err(|stop| stop.error)?;
        let (checked, facts) = self.known(checked, &halt, Purpose::Look).await.map_err(|stop| stop.error)?;
        let Ruling::Ask(pending) = decide(checked, facts, &self.settings.policy, &self.settings.chain) else {
            return Ok(None);
        };
        let pending = pending.after_changes(changed);
        let question = self.question(&pending, &halt).await;
        self.store_question(&pending, &question).await.map_err(|stop| stop.error)?;
        self.try_stored(&pending, &question).await;
        Ok(Some(id))
    }

    /// The question that a stored call raises now; none if it is decided, or would not be asked any more.
    async fn question_of(&self, id: &str, halt: &Halt) -> Result<Option<Question>, CallError> {
        let asked = self.store.approval(id).await.map_err(store_error)?;
        let Some(asked) = asked.filter(|asked| asked.state == ApprovalState::Pending) else { return Ok(None) };
        let layer = self.around(&asked).await?;
        layer.as_deref().unwrap_or(self).question_here(id, halt).await
    }

    /// The same in the layer that the call is made in.
    async fn question_here(&self, id: &str, halt: &Halt) -> Result<Option<Question>, CallError> {
        match self.pending_of(id, halt).await? {
            Some(pending) => {
                let mut question = self.question(&pending, halt).await;
                let asked = self.store.approval(id).await.map_err(store_error)?;
                let basis = question.basis.to_string();
                question.trial = asked.and_then(|asked| asked.trial).filter(|trial| trial.basis == basis);
                Ok(Some(question))
            }
            None => Ok(None),
        }
    }

    pub(crate) async fn pending_of(&self, id: &str, halt: &Halt) -> Result<Option<Pending>, CallError> {
        let Some(call) = self.store.waiting_call(id).await.map_err(store_error)? else { return Ok(None) };
        self.ready(&call).await?;
        let checked = self.check(call, halt).map_err(|stop| stop.error)?;
        let (checked, facts) = self.known(checked, halt, Purpose::Look).await.map_err(|stop| stop.error)?;
        match decide(checked, facts, &self.settings.policy, &self.settings.chain) {
            Ruling::Ask(pending) => Ok(Some(pending)),
            Ruling::Admitted(_) | Ruling::Refused(_) => Ok(None),
        }
    }

    /// The question that a stored call raises now, for a person who asked to see it. What they see is what an
    /// approval is for from here on, so an identity that may not decide is refused. What shows questions unasked, such as a page
    /// that loads itself again, has [`Haft::glance_at`].
    pub async fn look_at(&self, id: &str, by: &Decider) -> Result<Option<Question>, CallError> {
        self.store.authorize(id, by, DecisionScope::Once).await.map_err(store_error)?;
        let mut asked = self.belongs_here(id).await?;
        let Some(now) = self.question_of(id, &Halt::new()).await? else { return Ok(None) };
        self.rebase(&mut asked, &now).await?;
        self.shown_questions.note(&now);
        Ok(Some(now))
    }

    /// Makes a question as it is now what an approval is for.
    async fn rebase(&self, asked: &mut Approval, now: &Question) -> Result<(), CallError> {
        if !is_changed(asked, now) {
            return Ok(());
        }
        asked.reason = reason_now(asked, now);
        asked.basis = now.basis.to_string();
        asked.executed.clone_from(&now.executed.files);
        let rebased = self.store.rebase(&asked.id, &asked.basis, &asked.reason, &asked.executed).await;
        rebased.map_err(store_error)
    }

    /// The question that a stored call raises now. What an approval is for stays what it was: a decision about what is shown
    /// has to name it ([`Haft::decide_as_seen`]).
    pub async fn glance_at(&self, id: &str) -> Result<Option<Question>, CallError> {
        self.belongs_here(id).await?;
        let now = self.question_of(id, &Halt::new()).await?;
        Ok(now.inspect(|now| self.shown_questions.note(now)))
    }

    /// What a stored call would change at or below a path of its project, as far as it was tried or can be foreseen. A folded
    /// directory that the path names is opened.
    pub async fn waiting_changes(&self, id: &str, path: &str) -> Result<ChangeView, CallError> {
        let asked = self.belongs_here(id).await?;
        let layer = self.around(&asked).await?;
        let layer = layer.as_deref().unwrap_or(self);
        let under = layer.workspace.lexical_path(path)?;
        let shown = layer.workspace.shown(&under);
        if let Some(call) = CallId::parse(id)
            && let Some(view) = layer.trial_under(call, under).await?.filter(|view| !view.diff.is_empty())
        {
            return Ok(view);
        }
        let question = layer.question_here(id, &Halt::new()).await?;
        let folded = question.and_then(|question| question.ranked).map(|ranked| ranked.folded).unwrap_or_default();
        let tree = folded.into_iter().find(|tree| tree.path == shown).ok_or_else(|| {
            CallError::not_found(format!("nothing is known of a change of {shown} by {id}"))
                .hint("the question names what would change; a command has to be tried first")
        })?;
        let diff = tree.opened().iter().map(|line| format!("{line}\n")).collect();
        Ok(ChangeView { ranked: RankedChanges { folded: vec![tree], ..RankedChanges::default() }, diff })
    }

    /// The rules under which a stored shell command would have run unasked, where there are safe ones.
    pub async fn suggested(&self, id: &str) -> Vec<String> {
        let now = self.question_of(id, &Halt::new()).await;
        now.ok().flatten().map(|question| question.rules).unwrap_or_default()
    }

    /// Refuses if a stored call raises another question than the one that somebody saw.
    pub async fn check_seen(&self, id: &str, seen: &str) -> Result<(), CallError> {
        let now = self.question_of(id, &Halt::new()).await?;
        now.map_or(Ok(()), |now| self.check_face(&now, Some(seen)))
    }

    /// Rejects a stored call.
    pub async fn reject(&self, id: &str, by: &Decider, message: &str) -> Result<(), CallError> {
        self.store.authorize(id, by, DecisionScope::Once).await.map_err(store_error)?;
        // Nothing runs, so it does not matter where.
        if self.belongs_elsewhere(id).await?.is_none() {
            self.belongs_here(id).await?;
        }
        if self.store.reject(id, by, message).await.map_err(store_error)? {
            if let Some(call) = CallId::parse(id) {
                drop(self.trials.take(&call));
                self.tell_decided(&call, "rejected", by);
            }
            Ok(())
        } else {
            Err(CallError::conflict(format!("{id} has been decided already")))
        }
    }

    /// A question about another machine, of a store that many share, and that machine's name.
    async fn belongs_elsewhere(&self, id: &str) -> Result<Option<(Approval, String)>, CallError> {
        let found = self.store.approval(id).await.map_err(store_error)?;
        Ok(found.and_then(|asked| asked.elsewhere().map(str::to_owned).map(|host| (asked, host))))
    }

    /// Says yes to a call that another machine has to run, and waits for a while until it has.
    async fn consent(
        &self,
        asked: Approval,
        by: &Decider,
        resolution: &Resolution,
        host: &str,
    ) -> Result<Outcome, CallError> {
        let id = &asked.id;
        if *resolution != Resolution::Once {
            return Err(CallError::conflict(format!(
                "{id} is about files of {host}; from here it can be allowed once"
            ))
            .hint(format!("say `once`, or decide it on {host}")));
        }
        let mut changed = self.store.changed_elsewhere(Topic::Approvals);
        if !self.store.consent(id, by, &asked.basis).await.map_err(store_error)? {
            return Err(CallError::conflict(format!("{id} has been decided already, or is another question now")));
        }
        let until = tokio::time::Instant::now() + ELSEWHERE;
        while tokio::time::Instant::now() < until {
            let found = self.store.approval(id).await.map_err(store_error)?;
            let ended = found.filter(|found| !matches!(found.state, ApprovalState::Pending | ApprovalState::Approved));
            if let Some(outcome) = ended.and_then(|found| found.outcome) {
                return serde_json::from_value(outcome)
                    .map_err(|_| CallError::conflict(format!("{id} was decided otherwise on {host}")));
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, changed.changed()).await;
        }
        Err(CallError::new(ErrorKind::Timeout, format!("{id} is allowed, and nobody on {host} has run it yet")).hint(
            format!("`haft serve` on {host} runs what is allowed; `haft approvals show {id}` says what came of it"),
        ))
    }

    /// A call runs in the project it was made in; one that a child made on a copy belongs to the project that is copied.
    async fn belongs_here(&self, id: &str) -> Result<Approval, CallError> {
        let found = self.store.approval(id).await.map_err(store_error)?;
        let approval = found.ok_or_else(|| {
            CallError::not_found(format!("there is no approval `{}`", haft_core::preview::inert(id)))
                .hint("`haft approvals` lists what waits")
        })?;
        if let Some(host) = approval.elsewhere() {
            return Err(CallError::conflict(format!("{id} is about files of {host}, which are not here"))
                .hint("it can be allowed or rejected as it is; whatever needs its files is done there"));
        }
        if path_text::load(&approval.root) == self.workspace.project() {
            return Ok(approval);
        }
        let root = path_text::load(&approval.root);
        Err(CallError::conflict(format!("{id} belongs to the project {}", path_text::show(root.as_os_str())))
            .hint(format!("decide it there: {}", go_to(&root))))
    }
}

/// Whether a question has become another one since it was asked, or since a person looked at it.
fn is_changed(asked: &Approval, now: &Question) -> bool {
    now.basis.to_string() != asked.basis
}

/// Why a stored question is asked now, and which files of it have changed.
pub fn reason_now(asked: &Approval, now: &Question) -> String {
    if !is_changed(asked, now) {
        return asked.reason.clone();
    }
    match described(&now.executed.changed_since(&asked.executed)) {
        none if none.is_empty() => now.why(),
        files => format!("{}; changed since it was asked: {files}", now.why()),
    }
}

/// What to do about a question that has become another one. What a step of a run was made from can be read again.
fn look_again(id: &str) -> String {
    let look = format!("look at it again with `haft approvals show {id}`; then approve or reject it");
    let run = id.starts_with(RUN_PREFIX).then(|| id.rsplitn(4, '-').nth(3)).flatten();
    run.map_or_else(
        || look.clone(),
        |run| format!("{look}, and if it cannot be done any more, `haft pipeline retry {run}` reads again what it was made from"),
    )
}
