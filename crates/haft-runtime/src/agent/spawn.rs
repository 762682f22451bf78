//! Children: the same loop behind more gates, with its own session and a share of its parent's purse.
//!
//! ```text
//! agent.spawn ─► Order ─► child Haft (role's gate, worktree) ─► Chat::say ─► Child's report
//!                             sync, worktree: in the call that spawned it, asked at the same door
//!                             background: by whoever tends agents in this process
//! ```

mod closing;
mod skill;

use super::agents::{Live, Noted, Running, Standing};
use super::chat::{Chat, Child, Door, Who};
use super::model::ModelRef;
use super::purse::Purse;
use super::roles;
use super::settings::Role;
use super::told::{Ended, Told, Watch};
use super::tree::{self, Tree};
use crate::approver::Approver;
use crate::halt::Halt;
use crate::new_call_id;
use crate::pipeline::Haft;
use closing::close_tree;
pub(crate) use closing::is_awaited;
use futures_util::StreamExt;
use haft_core::agent::Block;
use haft_core::agent::turns::End;
use haft_core::agent::wire::Effort;
use haft_core::outcome::Label;
use haft_core::pattern::ToolPattern;
use haft_core::policy::{Autonomy, Gate, Rules};
use haft_core::preview::{cut, inert};
use haft_core::skill::ToolAllowlist;
use haft_core::{Call, CallError, Caller, ErrorKind, SessionId};
use haft_store::talks::Talk;
use serde::{Deserialize, Serialize};
use skill::skill_gate;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How many children one call may ask for.
pub(crate) const ORDERS_MAX: usize = 16;
/// What children may never do unless they may have children themselves.
const FAMILY: [&str; 3] = ["agent.spawn", "agent.control", "agent.merge"];
/// What no child does: an agent of others knows nothing of the gates that the child is behind.
const OTHERS: &str = "agent.delegate";
/// What goes on by itself, where the gates of whoever began it are not known: nobody behind one begins it.
const LASTING: [&str; 3] = ["task.create", "task.update", "pipeline.*"];
/// How long the end of what a child left running is waited for: it is asked first, and made to after five seconds.
const REST: Duration = Duration::from_secs(8);
/// How much of a diff a parent is shown.
const DIFF_MAX: usize = 20_000;

/// What a child is to do, and as what.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default, alias = "prompt")]
    pub(crate) task: String,
    #[serde(default)]
    pub(crate) role: Option<String>,
    #[serde(default)]
    pub(crate) context: Option<String>,
    #[serde(default)]
    pub(crate) mode: Mode,
    #[serde(default)]
    pub(crate) branch: Option<String>,
    #[serde(default)]
    pub(crate) model: Option<String>,
    #[serde(default, alias = "thinking")]
    pub(crate) effort: Option<Effort>,
    #[serde(default)]
    pub(crate) tools: Option<Vec<String>>,
    #[serde(default, alias = "system_prompt")]
    pub(crate) instructions: Option<String>,
    /// The skill that it runs.
    #[serde(default)]
    pub(crate) skill: Option<String>,
    /// What that skill narrows it to: always as the skill says, whatever an order says.
    #[serde(default)]
    pub(crate) narrowing: Option<ToolAllowlist>,
    #[serde(default)]
    pub(crate) isolated_memory: bool,
    #[serde(default)]
    pub(crate) max_turns: Option<u32>,
    #[serde(default)]
    pub(crate) max_tokens: Option<u64>,
    #[serde(default, alias = "max_budget_usd")]
    pub(crate) max_usd: Option<f64>,
}

/// How a child runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// Its parent waits for it.
    #[default]
    Sync,
    /// Its parent goes on, and is told when it has ended.
    Background,
    /// Its parent waits, and it works on a copy of the project.
    Worktree,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Background => "background",
            Self::Worktree => "worktree",
        }
    }
}

/// What a child reports.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) mode: &'static str,
    /// How it ended; none while it still runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Ended>,
    /// Why it could not begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<CallError>,
    /// What it changed on its copy of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<Changed>,
    #[serde(skip)]
    pub(crate) labels: Vec<Label>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
}

/// What came of a copy of the project.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Changed {
    pub(crate) path: String,
    pub(crate) branch: String,
    /// None if it cannot be brought over as it is.
    pub(crate) files: Option<Vec<String>>,
    #[serde(skip)]
    pub(crate) diff: String,
}

impl Report {
    /// Whether it did what it was to do.
    pub(crate) fn is_done(&self) -> bool {
        self.error.is_none() && self.ended.as_ref().is_none_or(Ended::is_done)
    }

    /// Why it did not.
    pub(crate) fn why(&self) -> String {
        match (&self.error, &self.ended) {
            (Some(error), _) => error.message.clone(),
            (None, Some(ended)) => worded(&ended.end),
            (None, None) => "it has not ended".to_owned(),
        }
    }
}

/// How something ended, for its parent.
pub fn worded(end: &End) -> String {
    match end {
        End::Done => "done".to_owned(),
        End::Refused => "the model would not say more".to_owned(),
        End::Length => "the model ran into the limit of what it may write, again and again".to_owned(),
        End::Loop => "the model made the same call again and again".to_owned(),
        End::Turns => "it took as many turns as it may".to_owned(),
        End::Tokens => "it used as many tokens as it may".to_owned(),
        End::Time => "it took as long as it may".to_owned(),
        End::Funds => "there is no money left for it".to_owned(),
        End::Overflow => "more was said than the model takes".to_owned(),
        End::Failed(failure) => format!("no model answered: {}", failure.message),
        End::Cancelled => "it was cancelled".to_owned(),
    }
}

/// A child that is ready to run.
pub(crate) struct Ready {
    id: String,
    name: String,
    order: Order,
    /// What it is told.
    words: String,
    haft: Haft,
    who: Who,
    tree: Option<Tree>,
    warnings: Vec<String>,
    watch: Watch,
    call: Call,
}

impl Haft {
    /// Runs the children that a call asks for, those in the background by whoever tends them. Reports are in the order of the
    /// orders.
    pub(crate) async fn spawn(
        &self,
        orders: Vec<Order>,
        call: &Call,
        approver: &dyn Approver,
        halt: &Halt,
    ) -> Result<Vec<Report>, CallError> {
        let roles = self.roles().await?;
        let at_once = self.settings.agent.max_children.max(1);
        let room = self.agents.live(&call.session).map(|live| live.room);
        let run = |order: Order| {
            let (roles, room) = (&roles, room.as_deref());
            async move {
                let _place = match room {
                    Some(room) if order.mode != Mode::Background => room.acquire().await.ok(),
                    _ => None,
                };
                let (id, name, mode) = (new_call_id().to_string(), named(&order), order.mode.word());
                match self.prepare(id.clone(), (order, None), roles, call, halt).await {
                    Ok(ready) if ready.order.mode == Mode::Background => self.send_off(ready),
                    Ok(ready) => ready.run(approver, halt, None).await,
                    Err(error) => failed(id, name, mode, error),
                }
            }
        };
        Ok(futures_util::stream::iter(orders).map(run).buffered(at_once).collect().await)
    }

    /// The same tool layer in a role: behind its gate, and with what it is told.
    pub async fn in_role(&self, name: &str) -> Result<(Self, Role), CallError> {
        let roles = self.roles().await?;
        let role = roles.get(name).cloned().ok_or_else(|| self.unknown_role(name, &roles))?;
        let lasting = Rules::new(&["*"], &LASTING).map_err(|error| CallError::invalid(error.to_string()))?;
        let gates = vec![role_gate(name, &role)?, Gate { by: format!("role {name}"), rules: lasting }];
        Ok((self.narrowed(gates, None), role))
    }

    pub(super) fn unknown_role(&self, name: &str, roles: &BTreeMap<String, Role>) -> CallError {
        let shown = cut(&inert(name), 80);
        if roles::filed(&self.workspace).iter().any(|file| file.name == name) {
            return CallError::invalid(format!(
                "the role `{shown}` is a file of this project that nobody has accepted as it stands"
            ))
            .hint("`haft trust` shows it and accepts it");
        }
        let known: Vec<&str> = roles.keys().map(String::as_str).collect();
        CallError::invalid(format!("there is no role `{shown}`")).hint(format!("the roles are {}", known.join(", ")))
    }

    /// The roles that children may have.
    pub(super) async fn roles(&self) -> Result<BTreeMap<String, Role>, CallError> {
        let accepted = roles::accepted(&self.store, &self.workspace).await?;
        Ok(roles::roles(&self.settings.agent, &self.workspace, &accepted))
    }

    /// What a child will be, or is again. Nothing has happened yet, but for its copy of the project.
    pub(super) async fn prepare(
        &self,
        id: String,
        (order, again): (Order, Option<&Talk>),
        roles: &BTreeMap<String, Role>,
        call: &Call,
        halt: &Halt,
    ) -> Result<Ready, CallError> {
        self.may_have_children(call)?;
        if order.task.trim().is_empty() {
            return Err(CallError::invalid("`task` is missing: say what the agent is to do"));
        }
        let role = self.role_of(&order, roles)?;
        // What is kept of it is read again where nobody knows in which words it was said.
        let tools = order.tools.map(|tools| tools.iter().map(|name| self.canonical(name, call)).collect());
        let (narrowing, skill) = self.skill_of(order.skill.as_deref(), call).await?;
        let order = Order { tools, narrowing, ..order };
        let name = named(&order);
        let mut warnings = Vec::new();
        let live = self.agents.live(&call.session);
        let models = live.as_ref().map(|live| live.models.as_slice()).unwrap_or_default();
        let model = order.model.as_deref().filter(|name| !name.trim().is_empty()).map(|name| model(name, models));
        let model = model.transpose()?;
        let tree = match order.mode {
            Mode::Worktree => Some(self.copy(&order, &id, halt, &mut warnings).await?),
            Mode::Sync | Mode::Background => None,
        };
        let workspace = tree.as_ref().map(|tree| tree.workspace(&self.workspace)).transpose()?;
        let mut layer =
            self.child_layer((&id, &order), role.as_ref(), call.caller.depth(), workspace, &mut warnings)?;
        if role.is_none() && order.tools.is_none() && order.narrowing.is_none() {
            layer.told = live.as_ref().map(|live| Arc::clone(&live.like));
        }
        let session = SessionId::new(&format!("agent-{id}")).unwrap_or_default();
        // What its parent has heard may be in its task.
        for source in self.heard_in(&call.session).await {
            layer.note_labels(&session, &[source.label], &source.tool);
        }
        if again.is_none() && layer.told.is_some() {
            layer.active.activate(&session, self.active.of(&call.session));
        }
        let purse = self.share(&order, again, live.as_ref());
        let least = |all: [Option<u32>; 2]| all.into_iter().flatten().min();
        let parent = call.caller.agent.clone().unwrap_or_else(|| "main".to_owned());
        let parents = call.parents.iter().chain([&call.id]).cloned().collect();
        let who = Who {
            session,
            caller: Caller { agent: Some(format!("{parent}/{name}")), ..call.caller.clone() },
            models: match model.or_else(|| role.as_ref()?.model.clone()) {
                Some(model) => vec![model],
                None => live.as_ref().map(|live| live.models.clone()).unwrap_or_default(),
            },
            effort: order.effort.or_else(|| role.as_ref()?.effort).or_else(|| live.as_ref()?.effort),
            max_turns: least([order.max_turns, role.as_ref().and_then(|role| role.max_turns)]),
            max_tokens: order.max_tokens,
            tokens: live.as_ref().map(|live| Arc::clone(&live.tokens)),
            instructions: order.instructions.iter().cloned().chain(skill).collect(),
            purse: Some(purse),
            child: Some(Child {
                above: call.session.clone(),
                role: order.role.clone(),
                mode: order.mode.word(),
                place: tree.as_ref().map(|tree| tree.root().display().to_string()),
                parents,
                asked: serde_json::to_string(&order).ok(),
            }),
            autonomy: match call.autonomy {
                // Whoever asks about everything is not lifted by a role that asks nobody.
                Some(Autonomy::Conservative) => Some(Autonomy::Conservative),
                _ if role.as_ref().is_some_and(|role| role.autonomous) => Some(Autonomy::Autonomous),
                other => other,
            },
            role,
        };
        let watch =
            live.map_or_else(|| super::told::on_the_bus(self.events.clone(), call.session.clone()), |live| live.watch);
        let words = words(&order);
        Ok(Ready { id, name, order, words, haft: layer, who, tree, warnings, watch, call: call.clone() })
    }

    fn may_have_children(&self, call: &Call) -> Result<(), CallError> {
        if call.caller.depth() < self.settings.agent.max_depth {
            return Ok(());
        }
        Err(CallError::new(ErrorKind::Denied, "a sub-agent cannot have sub-agents of its own here")
            .hint("`agent.max_depth` in the configuration says how deep they may go"))
    }

    /// What a child may spend: a share of what its parent has, or of what all have whose parent is no conversation here.
    fn share(&self, order: &Order, again: Option<&Talk>, live: Option<&Live>) -> Arc<Purse> {
        let spent = again.and_then(|talk| u64::try_from(talk.cost_micros?).ok()).unwrap_or_default();
        let limit = order.max_usd.map(|usd| super::purse::micros(usd).saturating_sub(spent));
        let common = || self.agents.common(self.settings.agent.max_micros);
        live.map_or_else(common, |live| Arc::clone(&live.purse)).share(limit)
    }

    /// The copy of the project that a child works on: the one that it has, or a new one.
    async fn copy(&self, order: &Order, id: &str, halt: &Halt, warnings: &mut Vec<String>) -> Result<Tree, CallError> {
        let (workspace, data_dir) = (Arc::clone(&self.workspace), self.settings.data_dir.clone());
        let (id, branch) = (id.to_owned(), tree::branch(order.branch.as_deref(), id)?);
        let (own, until) = (halt.clone(), halt.clone());
        // What is left of one is never made anew: it may hold what is nowhere else.
        let make = move || {
            if tree::is_kept(&data_dir, &id) {
                return Tree::open(&workspace, &data_dir, &id).map(|tree| (tree, Vec::new()));
            }
            Tree::make(&workspace, &data_dir, &id, &branch, &own)
        };
        let (tree, more) = crate::tool::off_thread(until, make).await?;
        warnings.extend(more);
        Ok(tree)
    }

    /// What keeps a child from what its parent has: its role, the tools that it is given, and its place in the family.
    pub(super) fn gates(
        &self,
        order: &Order,
        role: Option<&Role>,
        depth: usize,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Gate>, CallError> {
        let bad = |error: haft_core::pattern::BadPattern| CallError::invalid(error.to_string());
        let all = || vec!["*".to_owned()];
        let mut gates = Vec::new();
        if let Some(role) = role {
            gates.push(role_gate(order.role.as_deref().unwrap_or_default(), role)?);
        }
        if let Some(tools) = &order.tools {
            let there: BTreeSet<String> = self.registry.names().iter().map(ToString::to_string).collect();
            let missing = |name: &&String| {
                ToolPattern::new(name).is_ok() && !name.contains('*') && !name.contains(':') && !there.contains(*name)
            };
            warnings.extend(tools.iter().filter(missing).map(|name| format!("there is no tool `{}`", inert(name))));
            let rules = Rules::new(tools, &[] as &[String]).map_err(bad)?;
            gates.push(Gate { by: "the tools it was given".to_owned(), rules });
        }
        gates.extend(skill_gate(order)?);
        let mut denied: Vec<String> = LASTING.into_iter().chain([OTHERS]).map(str::to_owned).collect();
        if depth + 1 >= self.settings.agent.max_depth {
            denied.extend(FAMILY.map(str::to_owned));
        }
        gates.push(Gate { by: "being a sub-agent".to_owned(), rules: Rules::new(&all(), &denied).map_err(bad)? });
        Ok(gates)
    }

    /// The canonical name of a tool that somebody named in any vocabulary; patterns stay.
    fn canonical(&self, name: &str, call: &Call) -> String {
        let asked = Call { spoken: name.to_owned(), args: serde_json::json!({}), ..call.clone() };
        match self.registry.resolve(&asked) {
            Ok(meant) => meant.entry.spec().name.to_string(),
            Err(_) => name.to_owned(),
        }
    }

    /// Gives a child to whoever tends agents.
    pub(super) fn send_off(&self, ready: Ready) -> Report {
        let (id, name) = (ready.id.clone(), ready.name.clone());
        let report = Report {
            id: id.clone(),
            name: name.clone(),
            mode: "background",
            ended: None,
            error: None,
            worktree: None,
            labels: Vec::new(),
            warnings: ready.warnings.clone(),
        };
        match self.agents.hand_over(Box::new(ready), self.settings.agent.max_children) {
            Ok(()) => report,
            Err(error) => failed(id, name, "background", error),
        }
    }
}

impl Ready {
    /// The same, told something else.
    pub(super) fn told(self, words: String) -> Self {
        Self { words, ..self }
    }

    /// Whether its parent waits for it.
    pub(super) fn is_awaited(&self) -> bool {
        self.order.mode != Mode::Background
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn above(&self) -> &SessionId {
        &self.call.session
    }

    /// How it stands before it runs, for whoever asks.
    pub(crate) fn running(&self, halt: Halt, say: mpsc::UnboundedSender<Vec<Block>>) -> Running {
        Running {
            id: self.id.clone(),
            name: self.name.clone(),
            above: self.call.session.clone(),
            session: self.who.session.clone(),
            role: self.order.role.clone(),
            mode: self.order.mode.word(),
            task: self.order.task.clone(),
            standing: Standing::Runs { halt, say },
        }
    }

    /// Runs it to its end.
    pub(crate) async fn run(
        self,
        approver: &dyn Approver,
        halt: &Halt,
        meanwhile: Option<mpsc::UnboundedReceiver<Vec<Block>>>,
    ) -> Report {
        let Self { id, name, order, words, haft, who, tree, warnings, watch, call } = self;
        let tree = tree.map(Tree::handed_over);
        let mode = order.mode.word();
        watch(&Told::SubagentStart {
            subagent_id: id.clone(),
            name: name.clone(),
            task: order.task.clone(),
            role: order.role.clone(),
            mode: mode.to_owned(),
        });
        let heard: Arc<Mutex<BTreeSet<Label>>> = Arc::default();
        let inner = inward(id.clone(), Arc::clone(&watch), Arc::clone(&heard));
        let own = halt.narrowed();
        let registered = haft.agents.note(&id, &name, &order, (&call, &who), &own);
        let noted = Noted::new(&haft.agents, &id);
        let meanwhile = meanwhile.or(registered);
        let session = who.session.clone();
        let said =
            converse(&haft, who, words, Door { approver, halt: &own, origin: call.origin, watch: inner, meanwhile })
                .await;
        // Also what it heard before this time, and from its model's own search.
        let before: Vec<Label> = haft.heard_in(&session).await.into_iter().map(|source| source.label).collect();
        heard.lock().unwrap_or_else(PoisonError::into_inner).extend(before);
        haft.end_session(&session);
        let (ended, error) = match said {
            Ok(ended) => (Some(ended), None),
            Err(error) => (None, Some(error)),
        };
        let labels: Vec<Label> = heard.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        noted.end(ended.clone(), labels.clone());
        if let Some(ended) = &ended {
            watch(&Told::SubagentEnd { subagent_id: id.clone(), ended: Box::new(ended.clone()) });
        }
        let mut report = Report { id, name, mode, ended, error, worktree: None, labels, warnings };
        if let Some(tree) = tree {
            close_tree(tree, (&haft, &session), &mut report).await;
        }
        report
    }
}

/// What happens in a child, as its parent's watcher is told; and what it hears.
fn inward(id: String, watch: Watch, heard: Arc<Mutex<BTreeSet<Label>>>) -> Watch {
    Arc::new(move |told: &Told| {
        if let Told::ToolEnd { outcome, .. } = told {
            heard.lock().unwrap_or_else(PoisonError::into_inner).extend(outcome.labels.iter().copied());
        }
        watch(&Told::SubagentEvent { subagent_id: id.clone(), inner: Box::new(told.clone()) });
    })
}

/// What a child is told first.
fn words(order: &Order) -> String {
    match order.context.as_ref().filter(|context| !context.trim().is_empty()) {
        Some(context) => format!("{}\n\nWhat is known so far:\n{context}", order.task),
        None => order.task.clone(),
    }
}

async fn converse(haft: &Haft, who: Who, words: String, door: Door<'_>) -> Result<Ended, CallError> {
    let mut chat = Chat::open(haft, who).await?;
    // Boxed: a conversation may have conversations in it.
    let said: crate::tool::BoxFuture<'_, _> = Box::pin(chat.say(vec![Block::Text { text: words }], door));
    said.await
}

fn failed(id: String, name: String, mode: &'static str, error: CallError) -> Report {
    Report { id, name, mode, ended: None, error: Some(error), worktree: None, labels: Vec::new(), warnings: Vec::new() }
}

/// The model that is meant. One without a provider is the parent's provider's.
fn model(name: &str, parents: &[ModelRef]) -> Result<ModelRef, CallError> {
    let near = || parents.first().and_then(|parent| ModelRef::parse(&format!("{}/{name}", parent.provider)));
    ModelRef::parse(name).or_else(near).ok_or_else(|| {
        CallError::invalid(format!("`{}` is no model", cut(&inert(name), 80)))
            .hint("say provider/model, as `haft models` does")
    })
}

/// What a role lets through.
fn role_gate(name: &str, role: &Role) -> Result<Gate, CallError> {
    let allow = role.tools.clone().unwrap_or_else(|| vec!["*".to_owned()]);
    let rules = Rules::new(&allow, &role.deny).map_err(|error| CallError::invalid(error.to_string()))?;
    Ok(Gate { by: format!("role {name}"), rules })
}

/// What a child is called: letters, digits and dashes of the name it was given, or of its task.
pub(super) fn named(order: &Order) -> String {
    let words = order.name.as_deref().or(order.role.as_deref()).unwrap_or("agent");
    let plain: String = words
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let short: String = plain.trim_matches('-').chars().take(40).collect();
    if short.is_empty() { "agent".to_owned() } else { short }
}
