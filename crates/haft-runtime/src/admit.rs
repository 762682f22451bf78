//! Admission: gathering the facts that the pure decision needs, and asking whoever has to be asked.

mod facts;

use crate::apply::Viewer;
use crate::approver::{Approver, Question, Said, asker};
use crate::events::Event;
use crate::halt::Halt;
use crate::hooked::Purpose;
use crate::inbox::{Heard, required};
use crate::judge::ShellShown;
use crate::lasting_approval::Lasting;
use crate::memory::Room;
use crate::pipeline::{Haft, Stop};
use crate::ranked_changes::{ChangeView, RankedChanges};
use crate::registry::Catalogue;
use crate::run::PREVIEW_COLUMNS;
use crate::scene::{Basis, Outfit, Scene};
use crate::tool::off_thread;
use crate::tools::api;
use crate::{apply, panics, store_error};
use haft_core::admit::{decide, judge};
use haft_core::approval::{Cast, Decider, DeciderIdentity, Decision, Verdict};
use haft_core::change::digest;
use haft_core::executed::ChangedFile;
use haft_core::grant::{Grant, subject};
use haft_core::place::Place;
use haft_core::preview::{cut, inert};
use haft_core::record::{Digest, Kind, secrets_in, without};
use haft_core::shell::rule;
use haft_core::tool::{Effect, Outward};
use haft_core::{
    Admitted, Answer, Call, CallError, Checked, ErrorKind, Facts, Hold, Origin, Outcome, Pending, Refused, Ruling,
    Shell,
};
use haft_store::Entry;
use haft_store::waits::{Wait, WaitKind};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// What would happen to a call, and why. Nothing runs to find out.
#[derive(Debug, Clone, Serialize)]
pub struct Explained {
    /// The canonical tool.
    pub tool: String,
    /// The canonical arguments, defaults filled.
    pub args: Value,
    /// One line about it.
    pub preview: String,
    /// The places it names.
    pub places: Vec<Place>,
    /// How the kernel would hold the program that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// What is known of the shell command that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellShown>,
    /// Every voice and what it said.
    pub votes: Vec<Cast>,
    /// What follows.
    pub verdict: Verdict,
    /// What it would change, for tools that can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The names of what it would change, in the order in which they have to be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranked: Option<RankedChanges>,
    /// Why it would fail even if it were let through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl From<Box<Refused>> for Stop {
    fn from(refused: Box<Refused>) -> Self {
        (*refused).into()
    }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Self { tool: refused.checked.spec().name.to_string(), verdict: refused.verdict, error: refused.error }
    }
}

/// A call with the arguments that a person edited: they are canonical, whatever dialect the call came in.
fn edited_call(pending: Pending, tool: String, args: serde_json::Value) -> Result<Call, Stop> {
    match api::edited_args(args, pending.checked()) {
        Ok(args) => Ok(Call { spoken: tool, dialect: haft_core::Dialect::Haft, args, ..pending.into_call() }),
        Err(error) => Err(pending.defer(error).into()),
    }
}

/// The rules under which a command would have run unasked.
fn suggested(shell: &Shell) -> Vec<String> {
    rule::suggest(&shell.judged).iter().map(ToString::to_string).collect()
}

/// One line about a request that a manifest makes: where it goes, with which secrets, and what it was called with.
fn requested(checked: &Checked, facts: &Facts) -> Option<String> {
    let (spec, errand) = (checked.spec(), facts.web.as_ref()?);
    let declared = spec.reach.declared.as_ref().filter(|_| spec.reach.web == Some(Outward::Made))?;
    let names: Vec<&str> = declared.permissions.secrets.keys().map(String::as_str).collect();
    // The URL has them by their names, which are readable only unescaped.
    let url =
        names.iter().fold(errand.url.clone(), |url, name| url.replace(&format!("%3C{name}%3E"), &format!("<{name}>")));
    let with = if names.is_empty() { String::new() } else { format!(" with the secret {}", names.join(" and ")) };
    let line = format!("{}: {} {url}{with}", spec.name, errand.method);
    let args = checked.preview_with(&api::masked_args(checked), PREVIEW_COLUMNS);
    let args = args.split_once(": ").map(|(_, args)| args.trim()).filter(|args| !args.is_empty());
    let line = args.map_or_else(|| line.clone(), |args| format!("{line}; {args}"));
    Some(cut(&inert(&line), 2 * PREVIEW_COLUMNS))
}

/// What a call would do.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) view: Option<ChangeView>,
    pub(crate) problem: Option<String>,
    pub(crate) shown: Option<Digest>,
}

/// The files that a call runs and that are not what they were when a grant was given that would cover it.
fn changed_since_granted(pending: &Pending, grants: &[Grant]) -> Vec<ChangedFile> {
    let (checked, facts) = (pending.checked(), pending.facts());
    let subject = subject(checked, facts);
    let mut covering = grants.iter().filter(|grant| grant.covers(checked, &subject, facts.now_ms));
    covering
        .find_map(|grant| Some(grant.changed_files(facts)).filter(|changed| !changed.is_empty()))
        .unwrap_or_default()
}

/// Whether an identity says yes without having looked.
fn is_blind(by: &Decider) -> bool {
    *by.identity() == DeciderIdentity::YesFlag
}

/// What consulting a person led to.
enum Consulted {
    Admitted(Box<Admitted>),
    Again(Box<Call>),
    Elsewhere(Box<Outcome>),
}

/// What admission led to.
pub(crate) enum Entered {
    /// It may run.
    Admitted(Box<Admitted>),
    /// It has run: somebody decided about it elsewhere.
    Elsewhere(Box<Outcome>),
}

impl Haft {
    /// Decides about a call, asking a person where the verdict is Ask.
    pub(crate) async fn admit(
        &self,
        mut checked: Checked,
        approver: &dyn Approver,
        halt: &Halt,
    ) -> Result<Entered, Stop> {
        loop {
            let pending = match self.rule(checked, halt).await? {
                Ruling::Admitted(admitted) => return Ok(Entered::Admitted(Box::new(admitted))),
                Ruling::Refused(refused) => return Err(refused.into()),
                Ruling::Ask(pending) => pending,
            };
            match self.consult(pending, approver, halt).await? {
                Consulted::Admitted(admitted) => return Ok(Entered::Admitted(admitted)),
                Consulted::Elsewhere(outcome) => return Ok(Entered::Elsewhere(outcome)),
                Consulted::Again(call) => checked = self.check(*call, halt)?,
            }
        }
    }

    /// The decision. Grants are only looked up when there would be a question without them, and a grant
    /// that somebody else used up in the meantime leads to the question after all.
    pub(crate) async fn rule(&self, checked: Checked, halt: &Halt) -> Result<Ruling, Stop> {
        let (policy, chain) = (&self.settings.policy, &self.settings.chain);
        let (checked, facts) = self.known(checked, halt, Purpose::Run).await?;
        let pending = match decide(checked, facts, policy, chain) {
            Ruling::Ask(pending) => pending,
            decided => return Ok(decided),
        };
        let tool = pending.checked().spec().name.clone();
        let stop = |verdict: &Verdict, error| Stop { tool: tool.to_string(), verdict: verdict.clone(), error };
        let found = self.store.grants(self.workspace.root(), Some(&tool)).await;
        let mut grants = found.map_err(|error| stop(pending.verdict(), store_error(error)))?;
        loop {
            let Ruling::Admitted(admitted) = pending.clone().with_grants(grants.clone(), policy, chain) else {
                self.note_lapsed(&pending, &grants);
                let changed = changed_since_granted(&pending, &grants);
                return Ok(Ruling::Ask(pending.after_changes(&changed)));
            };
            let Some(grant) = admitted.facts().grant_for(admitted.checked()).cloned() else {
                return Ok(Ruling::Admitted(admitted));
            };
            let used = self.store.use_grant(&grant.id, &admitted.checked().call().id).await;
            if used.map_err(|error| stop(admitted.verdict(), store_error(error)))? {
                return Ok(Ruling::Admitted(admitted));
            }
            grants.retain(|other| other.id != grant.id);
        }
    }

    /// Records which grants would have covered a call, had they not ended.
    fn note_lapsed(&self, pending: &Pending, grants: &[Grant]) {
        let (checked, facts) = (pending.checked(), pending.facts());
        let subject = subject(checked, facts);
        for grant in grants.iter().filter(|grant| grant.is_about(checked, &subject)) {
            if let Some(said) = grant.lapsed(facts.now_ms) {
                let entry = Entry::new(Kind::Grant).call(&checked.call().id);
                self.store.record_later(entry.with("grant", grant.id.as_str()).with("said", said));
            }
        }
    }

    async fn consult(&self, pending: Pending, approver: &dyn Approver, halt: &Halt) -> Result<Consulted, Stop> {
        // Nobody is asked about what cannot run.
        if let Some(error) = self.lacking(pending.checked()) {
            return Err(pending.defer(error).into());
        }
        if !approver.takes_questions() {
            let why =
                format!("a person would have to decide about it, and nobody is asked: {}", pending.verdict().reason);
            return Err(pending.defer(CallError::new(ErrorKind::Denied, why)).into());
        }
        if pending.checked().spec().reach.proposes {
            self.propose(&pending, halt).await?;
        }
        let mut question = self.question(&pending, halt).await;
        // What runs now is not what was approved: that is another question.
        let changed = approver.approved_files().map(|approved| question.executed.changed_since(approved));
        if let Some(changed) = changed.filter(|changed| !changed.is_empty()) {
            let error = self.asked_anew(pending.checked(), &changed).await;
            return Err(pending.defer(error).into());
        }
        // What was approved earlier has its answer: nobody is asked again.
        let answered = pending.checked().call().origin == Origin::Approval;
        let (said, decider) = loop {
            if !answered {
                self.tell_asked(&pending, &question);
            }
            let _wait =
                Wait::begin(WaitKind::Approval, || format!("{} ({})", question.call_id, pending.checked().spec().name));
            let heard = tokio::select! {
                heard = self.put(&pending, &question, approver) => heard?,
                error = halt.stopped() => {
                    self.withdraw(&question.call_id).await;
                    return Err(pending.defer(error).into());
                }
            };
            match heard {
                Heard::Elsewhere(outcome) => return Ok(Consulted::Elsewhere(outcome)),
                Heard::Nobody => return Err(required(pending, &question)),
                // What is proposed is for a person to look at.
                Heard::Said(Said::Once, by) if is_blind(&by) && pending.checked().spec().reach.proposes => {
                    self.store_question(&pending, &question).await?;
                    let mut stop = required(pending, &question);
                    stop.error.message.push_str("; --yes approves no proposal");
                    return Err(stop);
                }
                Heard::Said(Said::Try, _) if question.can_try() => self.try_out(&pending, &mut question, halt).await,
                // Whoever cannot be shown more has not said yes.
                Heard::Said(Said::Try | Said::Nobody, _) => {
                    self.store_question(&pending, &question).await?;
                    return Err(required(pending, &question));
                }
                Heard::Said(said, by) => break (said, by),
            }
        };
        let answer = match said {
            Said::Once | Said::Session | Said::Always(_) => {
                self.remember_yes(&pending, &decider, said).await?;
                Answer::Yes(decider)
            }
            Said::Reject(message) => {
                if pending.checked().spec().reach.proposes {
                    self.note_rejected(&pending, &decider).await?;
                }
                Answer::No(decider, message)
            }
            Said::Edit(args) => {
                // What was tried was something else, and so is what others were asked.
                drop(self.trials.take(&question.call_id));
                if !approver.patience().is_zero()
                    && let Err(error) = self.unask(&question.call_id).await
                {
                    return Err(pending.defer(error).into());
                }
                let call = edited_call(pending, question.tool.to_string(), args)?;
                return Ok(Consulted::Again(Box::new(call)));
            }
            Said::Nobody | Said::Try => return Err(required(pending, &question)),
        };
        Ok(Consulted::Admitted(Box::new(pending.answer(answer, question.shown)?)))
    }

    /// Remembers what a yes is for besides this call. One that answers everything has looked at nothing.
    async fn remember_yes(&self, pending: &Pending, by: &Decider, said: Said) -> Result<(), Stop> {
        if is_blind(by) {
            return Ok(());
        }
        match said {
            // What is proposed is looked at each time.
            Said::Session | Said::Always(_) if pending.checked().spec().reach.proposes => {}
            Said::Session => self.remember(pending, by, Lasting::Session(None)).await?,
            Said::Always(pattern) => self.remember(pending, by, Lasting::Always(pattern)).await?,
            _ => self.remember_host(pending, by).await?,
        }
        self.remember_secrets(pending, by).await
    }

    /// A secret that a tool cannot do without and that nobody has, or that it must not have.
    fn lacking(&self, checked: &Checked) -> Option<CallError> {
        let declared = checked.spec().reach.declared.as_ref()?;
        self.settings.secrets.lacking(declared)
    }

    fn tell_asked(&self, pending: &Pending, question: &Question) {
        self.events.send_with(|| Event::Approval {
            call_id: question.call_id.clone(),
            session: pending.checked().call().session.clone(),
            preview: question.preview.clone(),
            verdict: question.verdict.clone(),
        });
    }

    /// What a person is shown: for a tool that can tell, its real effect.
    pub(crate) async fn question(&self, pending: &Pending, halt: &Halt) -> Question {
        let (checked, facts) = (pending.checked(), pending.facts());
        let Effects { view, problem, shown } = self.effect(checked, facts, halt).await;
        let (ranked, diff) = view.map(|view| (view.ranked, view.diff)).unzip();
        // Whoever says yes to a call that would fail has seen no change, and so allows none.
        let shown = if problem.is_some() { Some(digest(&[])) } else { shown };
        let real: Vec<_> = facts.places.iter().map(|place| &place.real).collect();
        // What the tool says it is belongs to what is approved: a server may change its mind.
        let spec = checked.spec();
        let said = Digest::of(format!("{} {:?}", spec.description, spec.shapes).as_bytes());
        // So does the host: a page may move on by itself.
        let host = facts.web.as_ref().map(|errand| &errand.authority);
        // And what a manifest does, which its declaration does not say.
        let made = spec.reach.declared.as_ref().map(|declared| declared.digest);
        let mut basis =
            format!("{} {said} {} {real:?} {shown:?} {:?} {host:?} {made:?}", spec.name, checked.args(), facts.altered);
        if let Some(guest) = facts.hold.as_ref().and_then(|hold| hold.guest.as_ref()) {
            basis.push_str(&format!(" {guest}"));
        }
        // And what is in the files that it runs.
        if !facts.executed.is_empty() {
            basis.push_str(&format!(" {}", facts.executed.identity()));
        }
        // The same name is something else in another part of memory.
        if self.room != Room::Everybodys {
            basis.push_str(&format!(" {:?}", self.room));
        }
        let args = api::masked_args(checked);
        let secrets = secrets_in(checked.args());
        let quoted = |text: String| without(text.into(), &secrets).as_str().map(str::to_owned).unwrap_or_default();
        let mut verdict = pending.verdict().clone();
        verdict.reason = quoted(verdict.reason);
        let shell = self.shown_shell(checked, facts);
        let question = Question {
            call_id: checked.call().id.clone(),
            tool: checked.spec().name.clone(),
            preview: requested(checked, facts)
                .unwrap_or_else(|| api::preview(checked, &args, self.web.profiles(), PREVIEW_COLUMNS)),
            verdict,
            severity: checked.spec().severity(facts),
            args,
            diff,
            ranked,
            problem: problem.map(quoted),
            subject: quoted(subject(checked, facts)),
            places: facts.places.iter().map(|place| quoted(self.workspace.shown(&place.real))).collect(),
            hold: facts.hold.clone(),
            class: facts.shell.as_ref().map(|shell| shell.judged.class),
            shell,
            asker: asker(&checked.call().caller, &self.workspace),
            sources: self.sources(&checked.call().session),
            // A rule would have to quote the secret.
            rules: facts.shell.as_ref().filter(|_| secrets.is_empty()).map(suggested).unwrap_or_default(),
            tried: None,
            trial: None,
            executed: facts.executed.clone().map_texts(&quoted),
            shown,
            basis: Digest::of(basis.as_bytes()),
        };
        self.trials.shown_with(question)
    }

    /// What is known of a shell command, for people. One with secrets is judged again without them, so that nothing that is
    /// shown of it quotes one.
    fn shown_shell(&self, checked: &Checked, facts: &Facts) -> Option<ShellShown> {
        let shell = facts.shell.clone()?;
        // Where the masks would hide something of what it does, it is shown as it is.
        let is_alike = |masked: &Shell| {
            masked.judged.class == shell.judged.class
                && masked.judged.commands.len() == shell.judged.commands.len()
                && masked.judged.doubts.len() == shell.judged.doubts.len()
                && masked.unsettled.len() == shell.unsettled.len()
        };
        let without = self.judge_masked(checked, &facts.places).filter(is_alike);
        Some(ShellShown::new(without.unwrap_or(shell), &facts.places, &self.settings.rules))
    }

    /// What a call would change, or why it would fail. Only tools without side effects are asked.
    async fn effect(&self, checked: &Checked, facts: &Facts, halt: &Halt) -> Effects {
        if checked.call().origin == Origin::Hook {
            return self.observed_effect(checked, facts);
        }
        if checked.spec().effects.effect != Effect::Changes {
            return Effects::default();
        }
        let (Some(basis), Some(entry)) = (Basis::look(checked, facts), self.registry.get(checked.spec().name.as_str()))
        else {
            return Effects::default();
        };
        let halt = halt.within(checked.spec().timeout);
        let scene = self.scene(basis, &halt);
        let looked = match panics::act(entry.tool().as_ref(), &scene).await {
            Ok(reply) => {
                let shown = digest(&reply.changes);
                let (workspace, vault) = (Arc::clone(&self.workspace), self.vault.clone());
                let draw = move || {
                    let shown = |path: &Path| workspace.shown(path);
                    let viewer = Viewer { project: Some(workspace.root()), shown: &shown, under: None };
                    let mut view = apply::shown_before(&reply.changes, &vault, viewer);
                    if let Some(proposal) = &reply.proposal {
                        view.diff = format!("{}\n\n{}", proposal.foreword, view.diff);
                    }
                    Ok(view)
                };
                off_thread(halt, draw).await.map(|view| (view, shown))
            }
            Err(error) => Err(error),
        };
        match looked {
            Ok((view, shown)) => Effects { view: Some(view), problem: None, shown: Some(shown) },
            Err(error) => Effects { view: None, problem: Some(error.message), shown: None },
        }
    }

    fn outfit(&self) -> Outfit {
        Outfit {
            web: Arc::clone(&self.web),
            browsers: Arc::clone(&self.browsers),
            media: Arc::clone(&self.media),
            memory: Arc::clone(&self.memory),
            room: self.room.clone(),
            shelf: Arc::clone(&self.shelf),
            skills: Arc::clone(&self.skills),
            secrets: Arc::clone(&self.settings.secrets),
            interpreters: Arc::clone(&self.interpreters),
            making: Arc::clone(&self.settings.making),
            agents: Arc::clone(&self.agents),
            active: Arc::clone(&self.active),
            finder: Arc::clone(&self.finder),
        }
    }

    pub(crate) fn scene(&self, basis: Arc<Basis>, halt: &Halt) -> Scene {
        let catalogue = Catalogue { registry: Arc::clone(&self.registry), policy: Arc::clone(&self.settings.policy) };
        let ground =
            (Arc::clone(&self.workspace), Arc::clone(&self.terms), Arc::clone(&self.desk), catalogue, self.outfit());
        Scene::new(basis, ground, self.store.clone(), self.events.clone(), halt.clone())
    }

    /// Says what would happen to a call and why, without running it or asking anybody.
    pub async fn explain(&self, call: Call) -> Result<Explained, CallError> {
        panics::caught("a check of the call", self.explain_checked(call)).await?
    }

    async fn explain_checked(&self, call: Call) -> Result<Explained, CallError> {
        let halt = Halt::new();
        let call = crate::registry::unwrapped(call);
        self.ready(&call).await?;
        let checked = self.check(call, &halt).map_err(|stop| stop.error)?;
        let (checked, mut facts) = self.known(checked, &halt, Purpose::Look).await.map_err(|stop| stop.error)?;
        let grants = self.store.grants(self.workspace.root(), Some(&checked.spec().name)).await;
        facts.grants = grants.map_err(store_error)?;
        let (mut votes, mut verdict) = judge(&checked, &facts, &self.settings.policy, &self.settings.chain);
        crate::pipeline::mask_reason(&mut verdict.reason, checked.args());
        for vote in &mut votes {
            crate::pipeline::mask_reason(&mut vote.reason, checked.args());
        }
        // What a read would have to ask for is not given away by explaining, either.
        let look = crate::dry::may_look(&facts.places) && verdict.decision != Decision::Deny;
        let Effects { view, problem, .. } =
            if look { self.effect(&checked, &facts, &halt).await } else { Effects::default() };
        let problem = problem.or_else(|| self.lacking(&checked).map(|error| error.message));
        let (ranked, diff) = view.map(|view| (view.ranked, view.diff)).unzip();
        Ok(Explained {
            tool: checked.spec().name.to_string(),
            args: api::masked_args(&checked),
            preview: checked.preview(PREVIEW_COLUMNS),
            shell: self.shown_shell(&checked, &facts),
            places: facts.places,
            hold: facts.hold,
            votes,
            verdict,
            diff,
            ranked,
            problem,
        })
    }
}
