//! Observed calls: a coding agent runs a tool of its own, and its hook asks haft before and tells haft after.
//!
//! ```text
//! NativeToolCall ── table ──► Call (origin: hook) ── the same check, facts and approval chain ──► HookRuling
//!                                                     before-images, intent on disk
//! NativeToolReport ── the open call ──► what the files are now, outcome
//! ```
//!
//! haft does not sandbox these calls: no verdict rests on a sandbox, and the record says so. haft does not verify what the
//! agent reports. It compares files with their before-images, so `haft changes` and `haft undo` do not rest on the report.

mod expected;
mod images;
mod report;

pub use report::{NativeToolOutcome, NativeToolReport};

use crate::admit::Effects;
use crate::apply::Viewer;
use crate::halt::Halt;
use crate::inbox::{refused, rejection, required};
use crate::journal;
use crate::judge::subtree::{Coverage, NAMES_MAX, SearchedTree, Unclear, careful_places};
use crate::lasting_approval::Lasting;
use crate::pipeline::{Haft, Stop};
use crate::recall::Resolution;
use crate::{Question, new_call_id, now_ms, store_error};
use haft_core::admit::Answer;
use haft_core::approval::{Decider, DeciderIdentity, Decision, DecisionScope, Verdict};
use haft_core::observed::{
    ContentSearch, HookClient, McpTarget, NativeToolKind, Observation, ObservedTool, meaning, own_tool_name,
};
use haft_core::place::{Access, Place};
use haft_core::preview::{cut, inert};
use haft_core::record::{Digest, redact_unchecked, sealed};
use haft_core::secret::mask;
use haft_core::tool::Effect;
use haft_core::{Call, CallError, Caller, Checked, Facts, Origin, Outcome, Pending, Ruling, Schema, SessionId};
use haft_store::{AgentProcess, Approval, ApprovalState, Mode, ObservedCall};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often the inbox is looked at while a call waits there.
const LOOK_AGAIN: Duration = Duration::from_millis(150);
/// How long an approval of a call holds that its agent has to make again.
const APPROVAL_HOLDS: Duration = Duration::from_hours(12);
/// The same for a command: what it runs is looked at when it runs.
const COMMAND_APPROVAL_HOLDS: Duration = Duration::from_mins(10);
/// The key under which the agent's own words about a call are kept.
const NOTE: &str = haft_core::observed::NOTE;

/// A call that an agent is about to make by a tool of its own.
#[derive(Debug, Clone)]
pub struct NativeToolCall {
    /// Whose tool it is.
    pub client: HookClient,
    /// The agent's conversation.
    pub session: SessionId,
    /// The agent's id of the call, if it has one.
    pub use_id: Option<String>,
    /// The agent's working directory.
    pub cwd: String,
    /// What the agent calls the tool.
    pub tool: String,
    /// The MCP server's words for it, if the agent says so.
    pub target: Option<McpTarget>,
    /// The arguments in the agent's words.
    pub input: Value,
    /// Who policies know the agent as.
    pub caller: Caller,
    /// The agent's process: the call is open as long as it lives.
    pub agent: AgentProcess,
}

impl NativeToolCall {
    fn observed(&self) -> ObservedTool<'_> {
        ObservedTool::new(self.client, &self.tool)
    }

    /// What tells this call from others of an agent that gives its calls no ids.
    fn print(&self) -> String {
        print_of(&self.tool, &self.input)
    }
}

fn print_of(tool: &str, input: &Value) -> String {
    Digest::of(format!("{tool} {input}").as_bytes()).to_string()
}

/// Where to ask when approval is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskVia<'a> {
    /// The agent's program asks, and this identity answers there. If it may not decide, the call is denied.
    Client(Decider),
    /// The question waits in haft's inbox.
    Inbox(InboxWait<'a>),
}

/// How a call waits in the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxWait<'a> {
    /// How long it waits for an answer.
    pub patience: Duration,
    /// The address of the web page, for the model to name; none while no gateway runs.
    pub page: Option<&'a str>,
}

/// By whose word an observed call runs.
#[derive(Clone, Copy)]
enum DecidedBy<'a> {
    /// The rules allow it.
    Rules,
    /// Whoever answers at the agent's prompt. The agent does not say what they said.
    Prompt(&'a Decider),
    /// The approval of this id.
    Approval(&'a str),
}

/// What haft says to an agent about a call of its own.
#[derive(Debug, Clone)]
pub enum HookRuling {
    /// haft does not decide about it, and why.
    NoOpinion(&'static str),
    /// It may run.
    Allowed(Verdict),
    /// The agent is to ask its user.
    Ask(Verdict),
    /// It must not run.
    Denied(CallError),
}

impl Haft {
    /// Decides about a call that an agent is about to make by itself, and records it.
    pub async fn observe(&self, native: &NativeToolCall, via: AskVia<'_>, halt: &Halt) -> HookRuling {
        if self.serves(native.client, &native.tool, native.target.as_ref()) {
            return HookRuling::NoOpinion("haft decides about its own tools where it serves them");
        }
        if let Some(NativeToolKind::Internal { reason, .. }) = meaning(native.client, &native.tool, &native.input) {
            return HookRuling::NoOpinion(reason);
        }
        let call = match Self::native_call(native) {
            Ok(call) => call,
            Err(error) => return HookRuling::Denied(error),
        };
        match self.rule_observed(native, call.clone(), via, halt).await {
            Ok(ruling) => ruling,
            Err(stop) => {
                let outcome = Outcome::failure(call.id.clone(), stop.tool, stop.error.clone(), stop.verdict);
                journal::refuse(&self.store, &call, self.loggable(&call), &outcome);
                self.store.touch_session(&call.session);
                HookRuling::Denied(stop.error)
            }
        }
    }

    /// Whether a client's tool is by its name one of those that haft lists. The name says nothing about who serves it:
    /// the client knows servers by names that people give them.
    pub fn serves(&self, client: HookClient, tool: &str, target: Option<&McpTarget>) -> bool {
        let Some(name) = own_tool_name(client, tool, target) else { return false };
        self.registry.list().iter().any(|entry| entry.spec().name.api_name() == name)
    }

    /// The call in haft's words.
    fn native_call(native: &NativeToolCall) -> Result<Call, CallError> {
        let observed = native.observed();
        Ok(Call {
            session: native.session.clone(),
            caller: native.caller.clone(),
            origin: Origin::Hook,
            ..Call::new(new_call_id(), observed.stored_name(), observed.arguments(&native.input, &native.cwd)?)
        })
    }

    /// Validates an observed call: its declaration is made from the table, not registered.
    pub(crate) fn check_observed(call: Call) -> Result<Checked, CallError> {
        let observed = ObservedTool::spoken(&call.spoken)
            .ok_or_else(|| CallError::internal(format!("`{}` is no agent's tool", inert(&call.spoken))))?;
        let spec = Arc::new(observed.spec()?);
        let schema = Schema::compile(&spec.shapes.input)
            .map_err(|error| CallError::internal(format!("{}: {error}", spec.name)))?;
        let mut args = call.args.clone();
        let note = args.as_object_mut().and_then(|args| args.remove(NOTE));
        let note = note.and_then(|note| note.as_str().map(str::to_owned));
        Checked::new(call, spec, &schema, haft_core::dialect::Translated { args, note })
    }

    /// What is known of an observed call besides the places that its parameters name.
    pub(crate) fn observation(&self, checked: &Checked) -> Result<Option<(Observation, Vec<Place>)>, CallError> {
        if checked.call().origin != Origin::Hook {
            return Ok(None);
        }
        let Some(observed) = ObservedTool::spoken(&checked.call().spoken) else { return Ok(None) };
        let patched = expected::patched_paths(&observed, checked)?;
        let mut doubt = observed.doubt(checked.args());
        doubt = doubt.or_else(|| patched.iter().find_map(|path| observed.path_doubt(path)));
        let place = |path: &String| self.workspace.place_of_program(haft_core::observed::PATCH, Access::Write, path);
        let mut places: Vec<Place> = patched.iter().map(place).collect::<Result<_, _>>()?;
        for path in observed.pattern_places(checked.args()) {
            match self.workspace.place_of_program("pattern", Access::Read, &path) {
                Ok(place) => places.push(place),
                Err(error) => doubt = doubt.or(Some(error.message)),
            }
        }
        if let Some(search) = observed.content_search(checked.args())
            && let Some(top) = self.workspace.places(checked.spec(), checked.args())?.first()
        {
            let coverage = match search {
                ContentSearch::Ripgrep { glob } => Coverage::VisibleOrHidden(glob),
                ContentSearch::Everything => Coverage::Everything,
            };
            let tree = SearchedTree { top: &top.real, coverage };
            let mut names_left = NAMES_MAX;
            match careful_places(&self.workspace, "path", tree, &mut names_left) {
                Ok(below) => places.extend(below),
                Err(Unclear(why)) => doubt = doubt.or(Some(format!("what lies below {} {why}", top.shown))),
            }
        }
        let observation = Observation {
            client: observed.client,
            doubt,
            unknown_directory: observed.unknown_directory(),
            stands_for_own: observed.native.is_some(),
        };
        Ok(Some((observation, places)))
    }

    async fn rule_observed(
        &self,
        native: &NativeToolCall,
        call: Call,
        via: AskVia<'_>,
        halt: &Halt,
    ) -> Result<HookRuling, Stop> {
        let checked = self.check(call, halt)?;
        let args = checked.args().clone();
        match self.rule(checked, halt).await? {
            Ruling::Refused(refused) => Err(refused.into()),
            Ruling::Admitted(admitted) => {
                ensure_arguments_unchanged(admitted.checked(), &args)?;
                let verdict = admitted.verdict().clone();
                let decided = DecidedBy::Rules;
                self.open_observed(native, (admitted.checked(), admitted.facts()), &verdict, decided).await?;
                Ok(HookRuling::Allowed(verdict))
            }
            Ruling::Ask(pending) => {
                ensure_arguments_unchanged(pending.checked(), &args)?;
                match via {
                    AskVia::Client(by) => {
                        let verdict = pending.verdict().clone();
                        let checked = pending.checked();
                        if let Err(refused) = by.check(checked.call().id.as_str(), DecisionScope::Once) {
                            let tool = checked.spec().name.to_string();
                            return Err(Stop { tool, verdict, error: refused.into_error() });
                        }
                        let decided = DecidedBy::Prompt(&by);
                        self.open_observed(native, (checked, pending.facts()), &verdict, decided).await?;
                        Ok(HookRuling::Ask(verdict))
                    }
                    AskVia::Inbox(wait) => self.ask_inbox(native, pending, wait, halt).await,
                }
            }
        }
    }

    /// Uses an approval of just this call that was given earlier, or stores the question and waits for an answer.
    async fn ask_inbox(
        &self,
        native: &NativeToolCall,
        pending: Pending,
        wait: InboxWait<'_>,
        halt: &Halt,
    ) -> Result<HookRuling, Stop> {
        let mut question = self.question(&pending, halt).await;
        let stop = |pending: &Pending, error| Stop {
            tool: pending.checked().spec().name.to_string(),
            verdict: pending.verdict().clone(),
            error,
        };
        let session = &pending.checked().call().session;
        let holds = approval_holds(pending.checked());
        let earlier = self.store.observed_question(session, &question.basis.to_string(), holds).await;
        match earlier.map_err(|error| stop(&pending, store_error(error)))? {
            Some(asked) => question.call_id = haft_core::CallId::parse(&asked.id).unwrap_or(question.call_id),
            None => self.store_question(&pending, &question).await?,
        }
        let until = tokio::time::Instant::now() + wait.patience;
        loop {
            let found = self.store.approval(question.call_id.as_str()).await;
            let found = found.map_err(|error| stop(&pending, store_error(error)))?;
            match found.as_ref().map(|found| found.state) {
                Some(ApprovalState::Rejected) => {
                    let found = found.unwrap_or_else(|| self.approval(&pending, &question));
                    let error = rejection(&found);
                    return Err(refused(&pending, &found, error));
                }
                Some(ApprovalState::Approved) => {
                    let by = found.and_then(|found| found.decided_by).unwrap_or_default();
                    let by = DeciderIdentity::Stored { by }.into();
                    return self.run_approved(native, pending, &question, by).await;
                }
                // Approved on another machine, without the files; apply it here.
                Some(ApprovalState::Pending) if found.as_ref().is_some_and(|found| found.consent.is_some()) => {
                    let by = found.and_then(|found| found.consent).unwrap_or_default();
                    let by = DeciderIdentity::Stored { by }.into();
                    let approved =
                        self.store.approve(question.call_id.as_str(), &by, &question.basis.to_string()).await;
                    approved.map_err(|error| stop(&pending, store_error(error)))?;
                }
                Some(ApprovalState::Done) | None => return Err(required(pending, &question)),
                Some(ApprovalState::Pending) => {}
            }
            if tokio::time::Instant::now() >= until {
                return Err(waiting(pending, &question, wait.page));
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                error = halt.stopped() => return Err(stop(&pending, error)),
            }
        }
    }

    /// Lets a call run that a person approved, once.
    async fn run_approved(
        &self,
        native: &NativeToolCall,
        pending: Pending,
        question: &Question,
        by: Decider,
    ) -> Result<HookRuling, Stop> {
        let (name, verdict) = (pending.checked().spec().name.clone(), pending.verdict().clone());
        let text = format!("{} runs it as call {}", native.client.title(), pending.checked().call().id);
        let outcome = Outcome::success(question.call_id.clone(), &name, text, verdict.clone());
        let used = self.store.use_observed_approval(question.call_id.as_str(), &outcome).await;
        match used {
            Ok(true) => {}
            // Another identical call used the approval first; ask again.
            Ok(false) => return Err(required(pending, question)),
            Err(error) => return Err(Stop { tool: name.to_string(), verdict, error: store_error(error) }),
        }
        let admitted = pending.answer(Answer::Yes(by), question.shown)?;
        let verdict = admitted.verdict().clone();
        let decided = DecidedBy::Approval(question.call_id.as_str());
        self.open_observed(native, (admitted.checked(), admitted.facts()), &verdict, decided).await?;
        Ok(HookRuling::Allowed(verdict))
    }

    /// Writes the intent of a call, then keeps what it will change.
    async fn open_observed(
        &self,
        native: &NativeToolCall,
        (checked, facts): (&Checked, &Facts),
        verdict: &Verdict,
        decided_by: DecidedBy<'_>,
    ) -> Result<(), Stop> {
        let stop = |error| Stop { tool: checked.spec().name.to_string(), verdict: verdict.clone(), error };
        let asked = verdict.decision == Decision::Ask;
        let mut entry = journal::describe(haft_core::record::Kind::Intent, checked)
            .with("verdict", journal::shown(verdict, checked.args()))
            .with("places", journal::shown_places(facts, checked.args()))
            .with("observed", particulars(native, asked));
        if native.observed().native.is_none() {
            // Nothing is known of what these arguments are.
            entry = entry.with("args", sealed(checked.args()));
        }
        match decided_by {
            DecidedBy::Rules => {}
            DecidedBy::Prompt(decider) => {
                entry = entry.with("decider", serde_json::to_value(decider).unwrap_or_default());
            }
            DecidedBy::Approval(approval) => entry = entry.with("approval", approval),
        }
        let reads = checked.spec().effects.effect == Effect::Reads;
        let call = &checked.call().id;
        let observed = ObservedCall {
            call_id: call.clone(),
            session: native.session.clone(),
            use_id: native.use_id.clone().unwrap_or_default(),
            native: native.tool.clone(),
            print: native.print(),
            asked,
            settled: false,
            at_ms: now_ms(),
        };
        let mode = if reads { Mode::Write } else { Mode::Durable };
        let opened =
            self.store.open_observed(observed, checked.spec().name.as_str(), native.agent.clone(), entry, mode);
        opened.await.map_err(|error| stop(store_error(error)))?;
        crate::crash_point("opened");
        if checked.spec().effects.effect == Effect::Changes
            && let Err(error) = self.keep_before_images(checked, facts).await
        {
            // Without a before-image the call cannot be undone, so deny it.
            self.close_not_run(call, &native.session, &error).await.map_err(stop)?;
            return Err(stop(error));
        }
        self.store.touch_session(&native.session);
        Ok(())
    }

    /// What an observed call would change, as far as that can be foreseen.
    pub(crate) fn observed_effect(&self, checked: &Checked, facts: &Facts) -> Effects {
        let Some(observed) = ObservedTool::spoken(&checked.call().spoken) else { return Effects::default() };
        let expected = expected::expected_files(&observed, checked, facts);
        match expected.changes() {
            Ok(changes) if changes.is_empty() => Effects::default(),
            Ok(changes) => {
                let workspace = Arc::clone(&self.workspace);
                let shown = |path: &Path| workspace.shown(path);
                let viewer = Viewer { project: Some(workspace.root()), shown: &shown, under: None };
                let view = crate::apply::view(&changes, viewer, &[]);
                Effects { view: Some(view), problem: None, shown: Some(haft_core::change::digest(&changes)) }
            }
            Err(why) => Effects { view: None, problem: Some(why), shown: None },
        }
    }

    /// Notes that a person approved a call that its agent runs. The agent runs it if it still waits, or when it makes the
    /// same call again.
    pub(crate) async fn approve_observed(
        &self,
        asked: &Approval,
        by: &Decider,
        resolution: Resolution,
        halt: &Halt,
    ) -> Result<Outcome, CallError> {
        let id = asked.id.as_str();
        let pending = self.pending_of(id, halt).await?;
        let pending = pending.ok_or_else(|| {
            CallError::conflict(format!("approval {id} is obsolete: the call no longer needs approval"))
                .hint("the agent may make the call again")
        })?;
        let Some(call) = self.store.approve(id, by, &asked.basis).await.map_err(store_error)? else {
            return Err(self.decided_already(id).await);
        };
        self.tell_decided(&call.id, "approved", by);
        let stopped = |stop: Stop| stop.error;
        match resolution {
            Resolution::Once => {}
            Resolution::Session => self.remember(&pending, by, Lasting::Session(None)).await.map_err(stopped)?,
            Resolution::Always(pattern) => {
                self.remember(&pending, by, Lasting::Always(pattern)).await.map_err(stopped)?;
            }
        }
        let client = pending.facts().observed.as_ref().map_or("its agent", |observed| observed.client.title());
        let minutes = approval_holds(pending.checked()).as_secs() / 60;
        let holds = if minutes < 60 { format!("{minutes} minutes") } else { format!("{} hours", minutes / 60) };
        let text = format!(
            "Approved. If the call still waits, {client} runs it now. Otherwise the approval covers the next identical call, once, \
             within {holds}."
        );
        let verdict = Verdict::new(
            Decision::Allow,
            by.to_string(),
            format!("approved; asked because {}", pending.verdict().reason),
        );
        Ok(Outcome::success(call.id, &pending.checked().spec().name, text, verdict))
    }
}

/// How long a yes to an observed call holds: what a command runs may be another thing soon.
fn approval_holds(checked: &Checked) -> Duration {
    if checked.spec().effects.effect == Effect::Runs { COMMAND_APPROVAL_HOLDS } else { APPROVAL_HOLDS }
}

/// What the record says of an observed call: whose it is, and that nothing confines it.
fn particulars(native: &NativeToolCall, asked: bool) -> Value {
    let mut particulars = json!({
        "client": native.client.word(), "tool": mask(&cut(&native.tool, 120)), "confined": false,
    });
    if let Some(id) = &native.use_id {
        particulars["use_id"] = json!(mask(&cut(id, 120)));
    }
    if asked {
        particulars["asks"] = json!("the client's user");
    }
    particulars
}

/// The arguments of an observed call that was stopped, as far as they may be written down.
pub(crate) fn loggable(call: &Call) -> Value {
    let known = ObservedTool::spoken(&call.spoken).filter(|observed| observed.native.is_some());
    known
        .and_then(|observed| observed.spec().ok())
        .map_or_else(|| sealed(&call.args), |spec| redact_unchecked(&call.args, &spec.shapes.input, &spec.reach.bodies))
}

/// A hook of the user's may not put other arguments in place: the agent would run its own.
fn ensure_arguments_unchanged(checked: &Checked, args: &Value) -> Result<(), Stop> {
    if checked.args() == args {
        return Ok(());
    }
    let error = CallError::new(
        haft_core::ErrorKind::Denied,
        "a configured hook changed the arguments, which is not possible for an agent's own tool",
    )
    .hint("make the call with haft's own tool, where a hook can change arguments");
    let verdict =
        Verdict::new(Decision::Deny, "hook", "a hook cannot change the arguments of an agent's own tool call");
    Err(Stop { tool: checked.spec().name.to_string(), verdict, error })
}

/// What the model is told whose call waits for a person.
fn waiting(pending: Pending, question: &Question, page: Option<&str>) -> Stop {
    let id = &question.call_id;
    let at = page.map(|page| format!("at {page}#/inbox/{id} or ")).unwrap_or_default();
    let mut stop = required(pending, question);
    stop.error.hint = Some(format!(
        "The call waits for approval {id}. A person approves it {at}with `haft approvals approve {id}`. After approval, make \
         the same call again."
    ));
    stop
}
