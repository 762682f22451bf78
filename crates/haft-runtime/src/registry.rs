//! The tools there are, by their canonical names.

use crate::tool::{BoxFuture, Tool};
use haft_core::approval::Decision;
use haft_core::dialect::{Translated, elsewhere, understood};
use haft_core::pattern::{ToolPattern, first_match};
use haft_core::schema::BadSchema;
use haft_core::suggest::did_you_mean;
use haft_core::{Call, CallError, Dialect, ErrorKind, Schema, ToolName, ToolSpec};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;

/// How long a source of tools may take unless it says otherwise.
pub const SOURCE_TIMEOUT: Duration = Duration::from_secs(30);

/// A registered tool with its compiled schemas.
pub struct Entry {
    tool: Arc<dyn Tool>,
    input: OnceLock<Result<Schema, BadSchema>>,
    output: OnceLock<Option<Schema>>,
}

impl Entry {
    fn new(tool: Arc<dyn Tool>) -> Self {
        Self { tool, input: OnceLock::new(), output: OnceLock::new() }
    }

    /// The tool.
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// Its declaration.
    pub fn spec(&self) -> &Arc<ToolSpec> {
        self.tool.spec()
    }

    /// Whether a manifest made it.
    pub(crate) fn is_manifests(&self) -> bool {
        self.spec().reach.declared.is_some()
    }

    /// Its input schema, compiled at the first call: a process that makes one call pays for one.
    pub fn input(&self) -> Result<&Schema, CallError> {
        let compiled = self.input.get_or_init(|| Schema::compile(&self.spec().shapes.input));
        compiled.as_ref().map_err(|error| CallError::internal(format!("{}: {error}", self.spec().name)))
    }

    /// Its output schema, where it has one.
    pub fn output(&self) -> Option<&Schema> {
        let declared = self.spec().shapes.output.as_ref();
        self.output.get_or_init(|| declared.and_then(|schema| Schema::compile(schema).ok())).as_ref()
    }
}

/// Why a tool cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Its name is taken. Replacing is a separate, explicit act.
    #[error("a tool named `{0}` is registered already; use `replace` if that is meant")]
    Taken(ToolName),
    /// Its name towards providers is taken by another tool.
    #[error("`{name}` would be called `{spoken}` by models, which is what `{other}` is called")]
    Clash {
        /// The new tool.
        name: ToolName,
        /// What models would say.
        spoken: String,
        /// The tool that is called so already.
        other: ToolName,
    },
    /// Its input schema does not compile.
    #[error("{0}: {1}")]
    Schema(ToolName, BadSchema),
}

/// Which tools somebody sees: roles and children get less than their parent, never more.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Only these; none means all.
    pub allow: Option<Vec<ToolPattern>>,
    /// Not these.
    pub deny: Vec<ToolPattern>,
}

impl Scope {
    /// Whether the tool is in it.
    pub fn holds(&self, tool: &ToolName) -> bool {
        let allowed = self.allow.as_ref().is_none_or(|list| first_match(list, tool).is_some());
        allowed && first_match(&self.deny, tool).is_none()
    }
}

/// Where tools come from that are not known at the start: a folder of manifests, an MCP server.
pub trait Source: Send + Sync {
    /// For messages.
    fn name(&self) -> &str;
    /// How long it may take.
    fn timeout(&self) -> Duration {
        SOURCE_TIMEOUT
    }
    /// Finds its tools.
    fn load(&self) -> BoxFuture<'_, Result<Vec<Arc<dyn Tool>>, CallError>>;
}

/// What a spoken name and spoken arguments mean.
pub struct Meant {
    /// The tool.
    pub entry: Arc<Entry>,
    /// Its canonical arguments, not yet validated.
    pub args: Translated,
}

type Tools = BTreeMap<ToolName, Arc<Entry>>;

/// Tools by what models call them.
pub(crate) type Spoken = BTreeMap<String, ToolName>;

/// Whether models call a tool otherwise than it is named. Most of many tools are manifests, which they do not, and a
/// name that is the same need not be made anew to be compared.
fn is_spoken_otherwise(name: &ToolName) -> bool {
    name.as_str().contains(['.', ':']) || name.as_str().len() > 64
}

/// The tools there are. Shared by reference; changes are seen by the next call.
#[derive(Default)]
pub struct Registry {
    tools: RwLock<Tools>,
    changes: watch::Sender<u64>,
}

impl Registry {
    /// Adds a tool. A name that is taken is an error, and so is a schema that does not compile.
    pub fn register(&self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        let entry = Entry::new(tool);
        if let Err(error) = entry.input.get_or_init(|| Schema::compile(&entry.spec().shapes.input)) {
            return Err(RegisterError::Schema(entry.spec().name.clone(), error.clone()));
        }
        self.add(entry)
    }

    /// Adds a shipped tool. Its schema is known to compile, and compiling is left to its first call.
    pub(crate) fn register_shipped(&self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        self.add(Entry::new(tool))
    }

    fn add(&self, entry: Entry) -> Result<(), RegisterError> {
        let name = entry.spec().name.clone();
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        if tools.contains_key(&name) {
            return Err(RegisterError::Taken(name));
        }
        let spoken = name.api_name();
        if let Some(other) = tools.keys().find(|other| other.api_name() == spoken) {
            return Err(RegisterError::Clash { name, spoken, other: other.clone() });
        }
        tools.insert(name, Arc::new(entry));
        drop(tools);
        self.note_change();
        Ok(())
    }

    /// Puts a manifest's tool in, or in the place of the manifest's tool of that name. Nobody else's name can be taken;
    /// what models call a shipped tool can, and then that tool is given back: models are not told about it any more.
    pub(crate) fn shelve(&self, tool: Arc<dyn Tool>, others: &Spoken) -> Result<Option<ToolName>, RegisterError> {
        let entry = Entry::new(tool);
        let name = entry.spec().name.clone();
        if let Err(error) = entry.input.get_or_init(|| Schema::compile(&entry.spec().shapes.input)) {
            return Err(RegisterError::Schema(name, error.clone()));
        }
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        if tools.get(&name).is_some_and(|other| !other.is_manifests()) {
            return Err(RegisterError::Taken(name));
        }
        let spoken = name.api_name();
        let other = others.get(&spoken).cloned();
        // A bridged tool has no other name that models could call it by.
        if let Some(other) = other.clone().filter(|other| other.as_str().contains(':')) {
            return Err(RegisterError::Clash { name, spoken, other });
        }
        tools.insert(name, Arc::new(entry));
        drop(tools);
        self.note_change();
        Ok(other)
    }

    /// The tools that models call otherwise than they are named.
    pub(crate) fn spoken_otherwise(&self) -> Spoken {
        self.read(|tools| {
            tools.keys().filter(|name| is_spoken_otherwise(name)).map(|name| (name.api_name(), name.clone())).collect()
        })
    }

    /// Changes whenever the set of tools or one of them does.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Puts a tool in the place of the one of that name, and returns the old one.
    pub fn replace(&self, tool: Arc<dyn Tool>) -> Option<Arc<dyn Tool>> {
        let name = tool.spec().name.clone();
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let old = tools.insert(name, Arc::new(Entry::new(tool))).map(|old| Arc::clone(&old.tool));
        drop(tools);
        self.note_change();
        old
    }

    /// Takes a tool out. Returns whether it was there.
    pub fn unregister(&self, name: &ToolName) -> bool {
        let was = self.tools.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some();
        if was {
            self.note_change();
        }
        was
    }

    /// The tool of this canonical name.
    pub fn get(&self, name: &str) -> Option<Arc<Entry>> {
        let name = ToolName::new(name).ok()?;
        self.read(|tools| tools.get(&name).cloned())
    }

    /// The tool that providers call so.
    pub fn get_by_api_name(&self, spoken: &str) -> Option<Arc<Entry>> {
        let said = |name: &ToolName| {
            if is_spoken_otherwise(name) { name.api_name() == spoken } else { name.as_str() == spoken }
        };
        let shipped = |entry: &Entry| !entry.is_manifests();
        self.read(|tools| {
            let named = |(name, entry): &(&ToolName, &Arc<Entry>)| shipped(entry) && said(name);
            tools.iter().find(named).map(|(_, entry)| Arc::clone(entry))
        })
    }

    /// Whether there is such a tool.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// All tools, sorted by name.
    pub fn list(&self) -> Vec<Arc<Entry>> {
        self.scoped(&Scope::default())
    }

    /// The tools that a scope shows, sorted by name.
    pub fn scoped(&self, scope: &Scope) -> Vec<Arc<Entry>> {
        self.read(|tools| {
            tools.iter().filter(|(name, _)| scope.holds(name)).map(|(_, entry)| Arc::clone(entry)).collect()
        })
    }

    /// The names of all tools.
    pub fn names(&self) -> Vec<ToolName> {
        self.read(|tools| tools.keys().cloned().collect())
    }

    fn read<T>(&self, look: impl FnOnce(&Tools) -> T) -> T {
        look(&self.tools.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads tools from all sources at once. A source that is late, fails or brings a name that is taken
    /// is a warning; it never keeps the others waiting for ever.
    pub async fn load(&self, sources: &[Arc<dyn Source>]) -> Vec<String> {
        let loads = sources.iter().map(|source| async move {
            let found = tokio::time::timeout(source.timeout(), source.load()).await;
            (source.name(), source.timeout(), found)
        });
        let mut warnings = Vec::new();
        for (name, limit, found) in futures_util::future::join_all(loads).await {
            match found {
                Err(_) => warnings.push(format!(
                    "tool source `{name}` did not answer within {} s; its tools are missing",
                    limit.as_secs()
                )),
                Ok(Err(error)) => warnings.push(format!("tool source `{name}` failed: {error}")),
                Ok(Ok(tools)) => {
                    let failed = tools.into_iter().filter_map(|tool| self.register(tool).err());
                    warnings.extend(failed.map(|error| format!("tool source `{name}`: {error}")));
                }
            }
        }
        warnings
    }

    /// What a call means: its own dialect first, then canonical names, then what providers say, then any
    /// dialect's name that is unambiguous.
    pub fn resolve(&self, call: &Call) -> Result<Meant, CallError> {
        // A manifest's exact name is stronger than a spelling; one that nobody has accepted takes nobody's word.
        let made = self.get(&call.spoken).filter(|entry| entry.is_manifests());
        if let Some(entry) = made.clone().filter(|entry| entry.tool().barred().is_none()) {
            return Ok(Meant { entry, args: call.args.clone().into() });
        }
        if let Some(said) = call.dialect.entry(&call.spoken)
            && let Some(entry) = self.get(said.canonical())
        {
            return Ok(Meant { entry, args: said.to_canonical(call.args.clone())? });
        }
        let plain = self.get(&call.spoken).filter(|entry| !entry.is_manifests());
        if let Some(entry) = plain.or_else(|| self.get_by_api_name(&call.spoken)) {
            let args = mixed(&entry, call);
            return Ok(Meant { entry, args });
        }
        let foreign = elsewhere(&call.spoken);
        if let Some(entry) = foreign.first().and_then(|said| self.get(said.canonical())) {
            // A model may say a foreign name with canonical parameters: then they need no translation.
            let args = match foreign.iter().find(|said| said.fits(&call.args)) {
                Some(said) => said.to_canonical(call.args.clone())?,
                None => mixed(&entry, call),
            };
            return Ok(Meant { entry, args });
        }
        match made {
            // It is said why it may not be called.
            Some(entry) => Ok(Meant { entry, args: call.args.clone().into() }),
            None => Err(self.unknown(call)),
        }
    }

    fn unknown(&self, call: &Call) -> CallError {
        let names = self.names();
        let mut known: Vec<&str> = names.iter().map(ToolName::as_str).collect();
        for said in call.dialect.entries() {
            known.push(said.spoken());
        }
        let shown = haft_core::preview::cut(&haft_core::preview::inert(&call.spoken), 80);
        let error = CallError::new(ErrorKind::UnknownTool, format!("there is no tool `{shown}`"));
        let hint = did_you_mean(&call.spoken, known)
            .unwrap_or_else(|| "tool.search finds tools by what they do; `haft tools` lists them".to_owned());
        error.hint(hint)
    }
}

/// The tool by which others are called that a model was not told about.
pub(crate) const CALLER: &str = "tool.call";

/// Whether this is the name of that tool, as haft, a provider or Glee says it.
pub fn is_caller(name: &str) -> bool {
    matches!(name, CALLER | "tool_call" | "glee_tool")
}

/// The tool that is meant by a call of another by way of that tool. None for every other call.
pub fn meant_by<'a>(name: &str, args: &'a Value) -> Option<&'a str> {
    let inner = is_caller(name).then(|| args.get("name").and_then(Value::as_str)).flatten();
    inner.filter(|inner| !is_caller(inner))
}

/// The call that is meant: what is called by way of another tool is decided, recorded and run as itself. One that
/// does not name a tool stays what it is, and is refused for its arguments.
pub(crate) fn unwrapped(mut call: Call) -> Call {
    // A dialect's own word for it says the arguments otherwise, and names a tool as it is called here.
    let said = call.dialect.entry(&call.spoken);
    if let Some(said) = said.filter(|said| said.canonical() == CALLER && !is_caller(&call.spoken))
        && let Ok(translated) = said.to_canonical(call.args.clone())
    {
        (call.spoken, call.args, call.dialect) = (CALLER.to_owned(), translated.args, Dialect::Haft);
    }
    if let Some(name) = meant_by(&call.spoken, &call.args).map(str::to_owned) {
        let own = if call.spoken == "glee_tool" { "params" } else { "args" };
        call.args = match call.args.get_mut(own).map(Value::take) {
            Some(args) if !args.is_null() => args,
            _ => Value::Object(serde_json::Map::new()),
        };
        call.spoken = name;
    }
    call
}

/// Whether a call is about all tools, and so needs to know them.
pub(crate) fn is_about_all(call: &Call) -> bool {
    let meant = call.dialect.entry(&call.spoken).map_or(call.spoken.as_str(), |said| said.canonical());
    matches!(meant, "tool.list" | "tool_list" | "glee_tools_list" | "tool.search" | "tool_search")
}

/// The tools that there are for a caller, for tools that are about tools.
#[derive(Clone)]
pub(crate) struct Catalogue {
    pub(crate) registry: Arc<Registry>,
    pub(crate) policy: Arc<haft_core::Policy>,
}

impl Catalogue {
    /// What this caller may use.
    pub(crate) fn visible(&self, caller: &haft_core::Caller) -> Vec<Arc<Entry>> {
        visible(&self.registry, &self.policy, caller)
    }

    /// Looks whether this caller is told about a tool, for those who ask about a few of many. It is what [`visible`] says.
    pub(crate) fn sees(&self, caller: haft_core::Caller) -> impl Fn(&str) -> bool + Send + use<> {
        let (registry, policy) = (Arc::clone(&self.registry), Arc::clone(&self.policy));
        let counts = |entry: &Entry| !entry.is_manifests() || entry.tool().barred().is_none();
        // What models would call by a manifest's name, they would not reach.
        let taken: BTreeSet<String> = registry.read(|tools| {
            let made = tools.values().filter(|entry| entry.is_manifests() && counts(entry));
            made.map(|entry| entry.spec().name.api_name()).collect()
        });
        move |name| {
            registry.get(name).is_some_and(|entry| {
                let spec = entry.spec();
                let hidden = !entry.is_manifests() && !taken.is_empty() && taken.contains(&spec.name.api_name());
                counts(&entry) && !hidden && policy.admits(spec, &caller).is_ok()
            })
        }
    }
}

/// Canonical arguments, in which a model may have mixed another dialect's parameters.
fn mixed(entry: &Entry, call: &Call) -> Translated {
    let spec = entry.spec();
    understood(spec.name.as_str(), &spec.shapes.input, call.args.clone()).into()
}

/// The tools that a caller is told about: those the policy has for them, and nobody's that was not accepted. What such a
/// one says of itself is not told to anybody, and it takes nobody's name.
pub fn visible(registry: &Registry, policy: &haft_core::Policy, caller: &haft_core::Caller) -> Vec<Arc<Entry>> {
    let counts =
        |entry: &Arc<Entry>| entry.tool().is_listed() && (!entry.is_manifests() || entry.tool().barred().is_none());
    told(registry.list().into_iter().filter(counts).collect(), policy, caller)
}

/// The same for people, who are also shown what was not accepted.
pub fn listed(registry: &Registry, policy: &haft_core::Policy, caller: &haft_core::Caller) -> Vec<Arc<Entry>> {
    let barred = |entry: &Arc<Entry>| entry.is_manifests() && entry.tool().barred().is_some();
    let admitted = |entry: &Arc<Entry>| policy.admits(entry.spec(), caller).is_ok();
    let mut all = visible(registry, policy, caller);
    all.extend(registry.list().into_iter().filter(|entry| barred(entry) && admitted(entry)));
    all.sort_by(|a, b| a.spec().name.cmp(&b.spec().name));
    all
}

fn told(all: Vec<Arc<Entry>>, policy: &haft_core::Policy, caller: &haft_core::Caller) -> Vec<Arc<Entry>> {
    // What models would call by a manifest's name, they would not reach.
    let taken: BTreeSet<String> =
        all.iter().filter(|entry| entry.is_manifests()).map(|entry| entry.spec().name.api_name()).collect();
    let hidden = |entry: &Entry| !entry.is_manifests() && taken.contains(&entry.spec().name.api_name());
    let admitted = |entry: &Entry| policy.admits(entry.spec(), caller).is_ok();
    all.into_iter().filter(|entry| admitted(entry) && (taken.is_empty() || !hidden(entry))).collect()
}

/// A tool's declaration as JSON, in the words of a dialect. `None` if the dialect has no word for it.
pub fn declaration(entry: &Entry, dialect: Dialect) -> Vec<serde_json::Value> {
    if dialect == Dialect::Haft {
        return vec![canonical(entry.spec())];
    }
    let said = dialect.entries().filter(|said| said.canonical() == entry.spec().name.as_str());
    said.map(|said| said.declaration.clone()).collect()
}

fn canonical(spec: &ToolSpec) -> serde_json::Value {
    let mut value = serde_json::json!({
        "name": spec.name, "description": spec.description, "input_schema": spec.shapes.input,
        "read_only": spec.read_only(), "destructive": spec.effects.destructive, "idempotent": spec.effects.idempotent,
        "open_world": spec.effects.open_world, "concurrency_safe": spec.effects.concurrency_safe,
        "strict": is_strict(spec), "search_hint": spec.search_hint, "timeout_ms": u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX),
    });
    if let Some(output) = &spec.shapes.output {
        value["output_schema"] = output.clone();
    }
    value
}

/// Whether a model can be held to the tool's schema exactly.
fn is_strict(spec: &ToolSpec) -> bool {
    spec.shapes.strict && haft_core::provider::strict_form(&spec.shapes.input).is_ok()
}

/// The verdict of a call that never came to a decision.
pub(crate) fn undecided(reason: &str) -> haft_core::approval::Verdict {
    haft_core::approval::Verdict::new(Decision::Deny, "validation", reason)
}
