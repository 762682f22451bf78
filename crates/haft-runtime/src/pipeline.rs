//! The path of one call, from a door to an outcome.
//!
//! [`Haft::call`] names the stages and does nothing else. Each stage takes what only the one before it can
//! make (`Call` → `Checked` → `Admitted` → `Opened` → `Raw` → `Outcome`), so none can be left out.

mod settings;

use crate::admit::Entered;
use crate::agent::{Active, Agents, Models};
use crate::approver::Approver;
use crate::browser::Browsers;
use crate::confined::Terms;
use crate::events::{Event, Events};
use crate::finding::Finder;
use crate::halt::Halt;
use crate::idempotency::Claimed;
use crate::inbox::Conversation;
use crate::judge::executed_files::ExecutedCheck;
use crate::maker::Maker;
use crate::media::MediaSettings;
use crate::memory::Memory;
use crate::registry::{self, Meant, Registry};
use crate::shelf::{Interpreters, Shelf};
use crate::shown_questions::ShownQuestions;
use crate::skills::SkillCatalog;
use crate::task::Desk;
use crate::trace::{self, stage};
use crate::trial::Trials;
use crate::undo::Vault;
use crate::web::Web;
use crate::workspace::Workspace;
use crate::{journal, observed, panics, run, tools};
use haft_core::approval::{Decider, Verdict};
use haft_core::record::{redact_unchecked, sealed, secrets_in};
use haft_core::shell::masking::mask_quoted;
use haft_core::{Call, CallError, CallId, Checked, Origin, Outcome, SessionId};
use haft_store::Store;
use haft_store::waits::{Wait, WaitKind};
pub use settings::Settings;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tracing::Instrument;

/// Arguments larger than this are refused unread.
const ARGS_MAX: usize = 16 << 20;
/// How often one call is decided about because the files that it runs change meanwhile.
const DECISIONS_MAX: usize = 3;

/// A tool layer: tools, policy, record and undo around one project. Share it by reference.
pub struct Haft {
    pub(crate) registry: Arc<Registry>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) store: Store,
    pub(crate) settings: Settings,
    pub(crate) events: Events,
    pub(crate) vault: Vault,
    /// When this process last looked whether the log's retention is due.
    pub(crate) retention_looked_ms: Arc<std::sync::atomic::AtomicI64>,
    pub(crate) terms: Arc<Terms>,
    pub(crate) trials: Arc<Trials>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) lanes: Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>>,
    /// How many calls each outermost call has made.
    pub(crate) trees: crate::back::Trees,
    /// The calls under way, to be cancelled by their ids.
    pub(crate) running: Mutex<HashMap<CallId, (u64, Halt)>>,
    /// Stored questions that were decided at the door of their own call, and by whom.
    pub(crate) claimed: Mutex<HashMap<CallId, Decider>>,
    /// What stored questions looked like when somebody was shown them.
    pub(crate) shown_questions: Arc<ShownQuestions>,
    /// What each conversation has heard from elsewhere, and when.
    pub(crate) heard: Mutex<BTreeMap<SessionId, Conversation>>,
    pub(crate) web: Arc<Web>,
    pub(crate) browsers: Arc<Browsers>,
    pub(crate) media: Arc<MediaSettings>,
    pub(crate) memory: Arc<Memory>,
    /// Whose part of it.
    pub(crate) room: crate::memory::Room,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) skills: Arc<SkillCatalog>,
    pub(crate) interpreters: Arc<Interpreters>,
    /// The tools that conversations have found.
    pub(crate) active: Arc<Active>,
    /// The agents of this process.
    pub(crate) agents: Arc<Agents>,
    /// The models that can be asked.
    pub(crate) models: Arc<Models>,
    pub(crate) finder: Arc<Finder>,
    /// What its agents are told, where that is more than what they have: what their parent is told.
    pub(crate) told: Option<Arc<crate::agent::Like>>,
}

/// A call that ended before it ran.
pub(crate) struct Stop {
    pub(crate) tool: String,
    pub(crate) verdict: Verdict,
    pub(crate) error: CallError,
}

/// A call that may run now, or somebody else's outcome of it.
enum PreparedCall {
    /// Its intent is written, and it is its turn.
    Here(Box<journal::Opened>, Option<Turn>),
    /// Somebody else decided about it, and ran it.
    Elsewhere(Box<Outcome>),
}

/// A call whose turn has come.
enum InTurn {
    /// It may run.
    Admitted(Box<haft_core::Admitted>, Option<Turn>),
    /// It has run: somebody decided about it elsewhere.
    Elsewhere(Box<Outcome>),
}

/// How far a call came.
enum Passed {
    /// To its end.
    Here(Box<Outcome>),
    /// To its question; somebody else decided that, and ran it.
    Elsewhere(Box<Outcome>),
}

/// A call under way, as long as this lives. A call that waits and the run that somebody decided upon have one id, and
/// each takes out only itself.
struct Running<'r> {
    all: &'r Mutex<HashMap<CallId, (u64, Halt)>>,
    id: &'r CallId,
    number: u64,
}

impl<'r> Running<'r> {
    fn new(all: &'r Mutex<HashMap<CallId, (u64, Halt)>>, id: &'r CallId, halt: &Halt) -> Self {
        let mut held = all.lock().unwrap_or_else(PoisonError::into_inner);
        let number = held.get(id).map_or(0, |(number, _)| number + 1);
        held.insert(id.clone(), (number, halt.clone()));
        Self { all, id, number }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut held = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if held.get(self.id).is_some_and(|(number, _)| *number == self.number) {
            held.remove(self.id);
        }
    }
}

impl Haft {
    /// A tool layer with the shipped tools.
    pub fn new(workspace: Workspace, store: Store, settings: Settings) -> Self {
        let registry = Arc::new(Registry::default());
        for tool in tools::all() {
            // Shipped names are distinct; a test registers them all.
            let _ = registry.register_shipped(Arc::clone(tool));
        }
        store.keep_lock_in(&settings.data_dir);
        let vault = Vault::new(&settings.data_dir, settings.undo);
        let workspace = Arc::new(workspace.own(&settings.data_dir));
        let terms = Arc::new(Terms { data_dir: settings.data_dir.clone(), ..settings.terms.clone() });
        let (events, trials, lanes) = (Events::default(), Arc::default(), Mutex::default());
        let maker = Maker {
            vault: vault.clone(),
            store: store.clone(),
            workspace: Arc::clone(&workspace),
            policy: Arc::clone(&settings.policy),
        };
        let desk = Arc::new(Desk::new(maker, Arc::clone(&terms), settings.undo, settings.keeper.clone()));
        let (running, claimed, heard) = (Mutex::default(), Mutex::default(), Mutex::default());
        let browsers = Arc::new(Browsers::new(settings.browser.clone()));
        let media = Arc::new(settings.media.clone());
        let memory = Arc::new(Memory::new(settings.memory.clone(), &settings.data_dir));
        let web = Arc::new(Web::new(settings.web.clone(), &settings.data_dir));
        let shelf = Shelf::new(settings.folders.clone(), workspace.root(), Arc::clone(&registry), store.clone());
        let shelf = Arc::new(shelf);
        let skills = SkillCatalog::new(settings.skill_folders.clone(), workspace.root(), store.clone());
        let skills = Arc::new(skills);
        let models = Models::new(Arc::clone(&settings.agent), Arc::clone(&settings.secrets), settings.web.carrier);
        let models = Arc::new(models);
        Self {
            retention_looked_ms: Arc::default(),
            registry,
            workspace,
            store,
            settings,
            events,
            vault,
            terms,
            trials,
            desk,
            lanes,
            trees: crate::back::Trees::default(),
            running,
            claimed,
            shown_questions: Arc::default(),
            heard,
            web,
            browsers,
            media,
            memory,
            room: crate::memory::Room::default(),
            shelf,
            skills,
            interpreters: Arc::default(),
            active: Arc::default(),
            agents: Arc::default(),
            models,
            finder: Arc::default(),
            told: None,
        }
    }

    /// The tools that are files.
    pub fn shelf(&self) -> &Arc<Shelf> {
        &self.shelf
    }

    /// The skills there are.
    pub fn skills(&self) -> &Arc<SkillCatalog> {
        &self.skills
    }

    /// The tools there are. Register your own here.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The tools that each conversation has found.
    pub fn active(&self) -> &Arc<Active> {
        &self.active
    }

    /// The project.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The agents of this process.
    pub fn agents(&self) -> &Arc<Agents> {
        &self.agents
    }

    /// The models that can be asked.
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// The bus of progress events.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// What it goes by.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Ends what a session left running in the background, but for what was to go on, and its browser. A host calls
    /// this when a session ends; deleting one does it, too. Returns the tasks.
    pub fn end_session(&self, session: &SessionId) -> Vec<String> {
        self.browsers.end_session(session);
        self.desk.end_session(session).iter().map(ToString::to_string).collect()
    }

    /// Carries a call through every stage. One that is sent again under the same id is not made again: its caller gets the
    /// first outcome, and waits for it while the call runs.
    pub async fn call(&self, call: Call, approver: &dyn Approver, halt: &Halt) -> Outcome {
        let call = registry::unwrapped(call);
        let span = trace::call(&call, &self.registry);
        let log = trace::CallLog::begin(&call);
        // On the heap: callers of callers, such as sub-agents, would need more stack than a thread has.
        let outcome = Box::pin(self.once(call, approver, halt)).instrument(span.clone()).await;
        trace::ended(&span, &outcome);
        log.end(&outcome);
        outcome
    }

    async fn once(&self, call: Call, approver: &dyn Approver, halt: &Halt) -> Outcome {
        match self.claim_call(&call, approver, halt).await {
            Claimed::No => Box::pin(self.carry(call, approver, halt)).await,
            Claimed::New(claim) => {
                let outcome = Box::pin(self.carry(call, approver, halt)).await;
                claim.end(&outcome);
                outcome
            }
            Claimed::Before(outcome) => *outcome,
        }
    }

    async fn carry(&self, call: Call, approver: &dyn Approver, halt: &Halt) -> Outcome {
        let begun = Instant::now();
        let halt = halt.narrowed();
        let _running = Running::new(&self.running, &call.id, &halt);
        let mut outcome = match self.pass(call.clone(), approver, &halt, begun).await {
            Ok(Passed::Here(outcome)) => *outcome,
            // Whoever decided has also recorded it and told everybody.
            Ok(Passed::Elsewhere(outcome)) => return *outcome,
            Err(stop) => {
                let mut outcome = Outcome::failure(call.id.clone(), stop.tool, stop.error, stop.verdict);
                outcome.duration_ms = millis(begun);
                journal::refuse(&self.store, &call, self.loggable(&call), &outcome);
                outcome
            }
        };
        // What was tried and not kept is discarded.
        drop(self.trials.take(&call.id));
        outcome.duration_ms = millis(begun);
        mask_reason(&mut outcome.verdict.reason, &call.args);
        self.end_approved_claim(&call, &outcome);
        self.settle_claim(&call, &outcome).await;
        self.note_source(&call.session, &outcome);
        self.store.touch_session(&call.session);
        self.apply_log_retention().await;
        let session = &call.session;
        self.events.send_with(|| Event::CallEnd { session: session.clone(), outcome: Box::new(outcome.clone()) });
        outcome
    }

    /// The arguments of a call that was stopped, as far as they may be written down.
    pub(crate) fn loggable(&self, call: &Call) -> serde_json::Value {
        if call.origin == Origin::Hook {
            return observed::loggable(call);
        }
        match self.registry.resolve(call) {
            Ok(Meant { entry, args }) => {
                let spec = entry.spec();
                redact_unchecked(&args.args, &spec.shapes.input, &spec.reach.bodies)
            }
            Err(_) => sealed(&call.args),
        }
    }

    /// Makes sure that the tools are there which a call means, where those are files.
    pub(crate) async fn ready(&self, call: &Call) -> Result<(), CallError> {
        if registry::is_about_all(call) { self.shelf.load_all().await } else { self.shelf.ready(&call.spoken).await }
    }

    /// The same for a call that stops if they are not.
    pub(crate) async fn made_ready(&self, call: &Call) -> Result<(), Stop> {
        let verdict = || registry::undecided("its manifest cannot be read, so nothing was decided");
        self.ready(call).await.map_err(|error| Stop { tool: spoken(call), verdict: verdict(), error })
    }

    async fn pass(&self, call: Call, approver: &dyn Approver, halt: &Halt, begun: Instant) -> Result<Passed, Stop> {
        let tool = spoken(&call);
        let prepared =
            panics::caught("an approver or a check of the call", Box::pin(self.open_in_turn(call, approver, halt)))
                .await;
        let (opened, _turn) = match prepared.map_err(|error| panicked(tool, error))?? {
            PreparedCall::Here(opened, turn) => (*opened, turn),
            PreparedCall::Elsewhere(outcome) => return Ok(Passed::Elsewhere(outcome)),
        };
        let record = journal::Unfinished::new(&self.store, &opened);
        let ended = panics::caught("the running call", Box::pin(self.complete(&opened, approver, halt))).await;
        let (mut outcome, goes_on) = ended.unwrap_or_else(|error| (panicked_outcome(&opened, error), false));
        outcome.duration_ms = millis(begun);
        record.close(&outcome, goes_on);
        Ok(Passed::Here(Box::new(outcome)))
    }

    /// Decides about a call, waits for its turn and writes its intent.
    async fn open_in_turn(&self, call: Call, approver: &dyn Approver, halt: &Halt) -> Result<PreparedCall, Stop> {
        self.made_ready(&call).await?;
        let checked = stage!("validate").in_scope(|| self.check(call, halt))?;
        let (admitted, turn) = match self.enter(checked, approver, halt).await? {
            InTurn::Admitted(admitted, turn) => (*admitted, turn),
            InTurn::Elsewhere(outcome) => return Ok(PreparedCall::Elsewhere(outcome)),
        };
        let opened = self.open(admitted).instrument(stage!("record")).await?;
        Ok(PreparedCall::Here(Box::new(opened), turn))
    }

    /// Runs a call whose intent is written. Also says whether something goes on after it.
    async fn complete(&self, opened: &journal::Opened, approver: &dyn Approver, halt: &Halt) -> (Outcome, bool) {
        let raw = self.run(opened, approver, halt).instrument(stage!("run")).await;
        let goes_on = raw.goes_on();
        let outcome = self.shape(opened, raw).instrument(stage!("shape")).await;
        let mut outcome = self.heed_after(opened, outcome, halt).await;
        let warning = self.note_executed(opened.admitted(), &outcome).await;
        outcome.warnings.extend(warning);
        (outcome, goes_on)
    }

    /// Lets a call in and waits for its turn. If the files that it runs have changed by then, it is decided about anew.
    async fn enter(&self, mut checked: Checked, approver: &dyn Approver, halt: &Halt) -> Result<InTurn, Stop> {
        let mut decisions = 0;
        loop {
            let admitted = match self.admit(checked, approver, halt).instrument(stage!("admit")).await? {
                Entered::Admitted(admitted) => *admitted,
                Entered::Elsewhere(outcome) => return Ok(InTurn::Elsewhere(outcome)),
            };
            let turn = self.turn(&admitted, halt).instrument(stage!("queue")).await?;
            decisions += 1;
            let changed = match self.verify_executed(&admitted, halt).await {
                Ok(ExecutedCheck::NotBound | ExecutedCheck::Same(_)) => {
                    return Ok(InTurn::Admitted(Box::new(admitted), turn));
                }
                Ok(ExecutedCheck::Changed(changed)) => changed,
                Err(error) => {
                    let tool = admitted.checked().spec().name.to_string();
                    return Err(Stop { tool, verdict: admitted.verdict().clone(), error });
                }
            };
            // What was tried were other bytes.
            drop(self.trials.take(&admitted.checked().call().id));
            // An answer from the inbox is used up; at a door, the same person is asked again.
            let is_stored = admitted.checked().call().origin == Origin::Approval || !approver.patience().is_zero();
            if (admitted.asked() && is_stored) || decisions >= DECISIONS_MAX {
                let error = self.asked_anew(admitted.checked(), &changed).await;
                let tool = admitted.checked().spec().name.to_string();
                return Err(Stop { tool, verdict: admitted.verdict().clone(), error });
            }
            checked = admitted.into_checked();
        }
    }

    /// Finds the tool, translates and validates the arguments.
    pub(crate) fn check(&self, call: Call, halt: &Halt) -> Result<Checked, Stop> {
        let spoken = haft_core::preview::cut(&haft_core::preview::inert(&call.spoken), 80);
        let stop = |tool: &str, error: CallError| {
            let verdict = registry::undecided("the call was not well formed, so nothing was decided");
            Stop { tool: tool.to_owned(), verdict, error }
        };
        halt.check().map_err(|error| stop(&spoken, error))?;
        if too_large(&call.args) {
            let message = format!("the arguments are larger than {} MiB", ARGS_MAX >> 20);
            return Err(stop(&spoken, CallError::invalid(message).hint("pass large content by file")));
        }
        if call.origin == Origin::Hook {
            return Self::check_observed(call).map_err(|error| stop(&spoken, error));
        }
        let Meant { entry, args } = self.registry.resolve(&call).map_err(|error| stop(&spoken, error))?;
        let name = entry.spec().name.to_string();
        let schema = entry.input().map_err(|error| stop(&name, error))?;
        let checked = Checked::new(call, Arc::clone(entry.spec()), schema, args).map_err(|error| stop(&name, error))?;
        if name == registry::CALLER {
            // Whatever else it named has been taken for the call that is meant.
            let error = CallError::invalid("tool.call cannot call itself").hint("name the tool that is meant");
            return Err(stop(&name, error));
        }
        Ok(checked)
    }

    /// Writes the intent before anything happens.
    async fn open(&self, admitted: haft_core::Admitted) -> Result<journal::Opened, Stop> {
        crate::crash_point("admitted");
        let (hook, _) = self.settings.policy.hooks.action(&admitted.checked().spec().name);
        let opened = journal::open(&self.store, admitted, hook).await.map_err(|(admitted, error)| {
            let error = crate::store_error(error);
            let tool = admitted.checked().spec().name.to_string();
            Stop { tool, verdict: admitted.verdict().clone(), error }
        })?;
        crate::crash_point("opened");
        let checked = opened.admitted().checked();
        self.events.send_with(|| Event::CallStart {
            call_id: checked.call().id.clone(),
            session: checked.call().session.clone(),
            tool: checked.spec().name.to_string(),
            preview: checked.preview(run::PREVIEW_COLUMNS),
        });
        Ok(opened)
    }

    /// Waits for this session's turn: calls with effects run one after the other, in the order they came. An independent
    /// call has no place in that order.
    async fn turn(&self, admitted: &haft_core::Admitted, halt: &Halt) -> Result<Option<Turn>, Stop> {
        let checked = admitted.checked();
        // What another call makes runs in the turn of that one.
        let has_turn = !checked.call().independent && checked.call().parents.is_empty();
        if !has_turn || checked.only_reads() || admitted.facts().only_looks() {
            return Ok(None);
        }
        let lane = {
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
            Arc::clone(lanes.entry(checked.call().session.clone()).or_default())
        };
        let _wait = Wait::begin(WaitKind::Lock, || {
            let call = checked.call();
            format!("the turn of call {} in session {}", call.id, call.session)
        });
        tokio::select! {
            turn = lane.lock_owned() => Ok(Some(turn)),
            error = halt.stopped() => {
                Err(Stop { tool: checked.spec().name.to_string(), verdict: admitted.verdict().clone(), error })
            }
        }
    }
}

/// A tool's name as the caller said it, for people.
pub(crate) fn spoken(call: &Call) -> String {
    haft_core::preview::cut(&haft_core::preview::inert(&call.spoken), 80)
}

/// A call that a panic ended before it ran.
pub(crate) fn panicked(tool: String, error: CallError) -> Stop {
    Stop { tool, verdict: registry::undecided("a panic ended the call before it ran"), error }
}

/// The outcome of a call that a panic ended while it ran.
fn panicked_outcome(opened: &journal::Opened, error: CallError) -> Outcome {
    let admitted = opened.admitted();
    let checked = admitted.checked();
    let name = checked.spec().name.as_str();
    Outcome::failure(checked.call().id.clone(), name, error, admitted.verdict().clone())
}

/// Milliseconds since then.
/// Masks the secrets of a call's arguments where the reason of a verdict quotes them.
pub(crate) fn mask_reason(reason: &mut String, args: &serde_json::Value) {
    let secrets = secrets_in(args);
    if !secrets.is_empty() {
        *reason = mask_quoted(reason, &secrets).into_owned();
    }
}

fn millis(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

type Turn = tokio::sync::OwnedMutexGuard<()>;

/// Whether arguments are too large, found out without writing them down.
fn too_large(args: &serde_json::Value) -> bool {
    use serde_json::Value;
    fn weigh(value: &Value, left: &mut usize) -> bool {
        let weight = match value {
            Value::String(text) => text.len(),
            Value::Array(items) => return items.iter().any(|item| weigh(item, left)),
            Value::Object(map) => {
                return map.iter().any(|(name, item)| take(name.len(), left) || weigh(item, left));
            }
            _ => 8,
        };
        take(weight, left)
    }
    fn take(weight: usize, left: &mut usize) -> bool {
        match left.checked_sub(weight + 1) {
            Some(rest) => {
                *left = rest;
                false
            }
            None => true,
        }
    }
    weigh(args, &mut { ARGS_MAX })
}
