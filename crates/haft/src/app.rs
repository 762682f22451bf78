//! A running haft as a command finds it: configuration read, store open, tools registered.

use crate::cli::{Common, OneOff};
use crate::config::{self, Choices, CommandRule, ConfigError, Doors, Layers, Loaded, Paths, Spot, Text};
use crate::style;
use haft_core::approval::{Decision, Verdict};
use haft_core::shell::rule::Stance;
use haft_core::{Call, CallError, CallId, Caller, Dialect, Origin, Outcome, SessionId};
use haft_mcp::client::{Bridge, Learn};
use haft_runtime::agent::{AgentSettings, roles};
use haft_runtime::secrets::{Secrets, Vault};
use haft_runtime::shelf::Shelf;
use haft_runtime::skills::SkillCatalog;
use haft_runtime::{Haft, Keeper, Settings, Workspace, new_call_id};
use haft_store::{Kind, Store, StoreError};
use serde_json::Value;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a command could not do what was asked, before or beside any call.
#[derive(Debug)]
pub struct Failure(CallError);

impl Failure {
    /// A failure of the store.
    #[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
    pub fn store(error: StoreError) -> Self {
        let hint = error.hint();
        Self(CallError::internal(error.to_string()).hint(hint))
    }

    /// What happened.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The exit code that the command line promises.
    pub fn exit_code(&self) -> u8 {
        self.0.kind.exit_code()
    }

    /// It as one line among those that say what happens.
    pub fn told(&self) -> Value {
        serde_json::json!({"event": "error", "success": false, "error": self.0})
    }

    /// Says it: as an outcome on stdout, or as text on stderr.
    pub fn print(&self, json: bool) {
        if json {
            style::json(&unrun(new_call_id(), "", self.0.clone()));
        } else {
            style::error(&self.0);
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let failure = CallError::invalid(error.to_string());
        Self(match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        })
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::store(error)
    }
}

/// The outcome of a call that was never understood.
pub fn unrun(id: CallId, tool: &str, error: CallError) -> Outcome {
    let verdict = Verdict::new(Decision::Deny, "validation", "nothing was run, so nothing was decided");
    Outcome::failure(id, tool, error, verdict)
}

/// Configuration and store, before anything is decided by them.
pub struct Ground {
    /// Where things are.
    pub paths: Paths,
    /// What was said, layer by layer.
    pub layers: Layers,
    /// The project.
    pub workspace: Workspace,
}

impl Ground {
    /// Finds the project and reads the configuration.
    pub fn find(common: &Common) -> Result<Self, Failure> {
        Self::find_with(common, &OneOff::default())
    }

    /// The same, with rules for this once.
    fn find_with(common: &Common, rules: &OneOff) -> Result<Self, Failure> {
        let here = match common.root_dir() {
            Some(dir) => dir,
            None => std::env::current_dir().map_err(|error| gone(&error))?,
        };
        let fail = |error: std::io::Error| CallError::invalid(format!("{}: {error}", here.display()));
        let workspace = if common.root.is_some() { Workspace::new(&here) } else { Workspace::discover(&here) };
        let workspace = workspace.map_err(fail)?;
        let paths = Paths::from_env(workspace.root())?;
        let layers = config::load(&paths, Choices::from_env()?, flags(common, rules))?;
        Ok(Self { paths, layers, workspace })
    }

    /// The same for looking back: a project's file that cannot be read is a warning and does not count.
    pub fn find_to_look_back(common: &Common) -> Result<Self, Failure> {
        let failure = match Self::find(common) {
            Ok(ground) => return Ok(ground),
            Err(failure) => failure,
        };
        let here = common.root_dir().map_or_else(std::env::current_dir, Ok).map_err(|error| gone(&error))?;
        let Ok(workspace) = Workspace::discover(&here) else { return Err(failure) };
        let paths = Paths::from_env(workspace.root())?;
        let Ok(layers) = config::load_without_project(&paths, Choices::from_env()?, flags(common, &OneOff::default()))
        else {
            return Err(failure);
        };
        style::warn(failure.message());
        Ok(Self { paths, layers, workspace })
    }

    /// Opens the store.
    pub fn store(&self) -> Result<Store, Failure> {
        self.opened(Store::open_for_one_call(&self.layers.store()?)?)
    }

    /// A file's directory is made along with it. What a server's store leaves on this machine needs one, too.
    fn opened(&self, store: Store) -> Result<Store, Failure> {
        if store.kind() == Kind::Post { self.with_data_dir(store) } else { Ok(store) }
    }

    /// The same for whoever stays: a gateway keeps its tokens there from the beginning.
    fn with_data_dir(&self, store: Store) -> Result<Store, Failure> {
        let dir = self.data_dir(&store);
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.map_err(|error| CallError::internal(format!("{}: {error}", dir.display())))?;
        Ok(store)
    }

    /// Joins the layers, looking up in the store whether the project's counts.
    pub fn resolve(&self, store: &Store) -> Result<Loaded, Failure> {
        let mut known: Vec<_> = haft_runtime::tools::all().iter().map(|tool| tool.spec().name.clone()).collect();
        let first = self.layers.resolve(&known, self.layers.trust_in(store)?);
        if first.as_ref().is_ok_and(|loaded| loaded.warnings.is_empty()) {
            return Ok(first?);
        }
        // A name that no shipped tool has may be a manifest's; only then is it worth looking.
        match haft_runtime::shelf::names(&self.paths.tool_folders()) {
            none if none.is_empty() => Ok(first?),
            more => {
                known.extend(more);
                Ok(self.layers.resolve(&known, self.layers.trust_in(store)?)?)
            }
        }
    }

    /// The tools that are files, by themselves: nothing is called by way of this.
    pub fn shelf(&self, store: &Store) -> Shelf {
        Shelf::new(self.paths.tool_folders(), self.workspace.root(), Arc::default(), store.clone())
    }

    /// The skills, by themselves.
    pub fn skills(&self, store: &Store) -> SkillCatalog {
        SkillCatalog::new(self.paths.skill_folders(), self.workspace.root(), store.clone())
    }

    /// Where secrets are kept: the same for all projects, and whatever store is used.
    pub fn vault(&self) -> Vault {
        let (data, config) = (self.paths.data_dir(), self.paths.config_dir());
        let passphrase = std::env::var("HAFT_SECRET_PASSPHRASE").ok();
        Vault::new(data.join("secrets.json"), config.join("secret.key"), passphrase)
    }

    /// Where undo and outputs are kept: beside the store they belong to. Those of a server's store are on this machine,
    /// as the files are that they are about.
    pub fn data_dir(&self, store: &Store) -> PathBuf {
        if store.kind() == Kind::Post || store.path() == self.paths.default_store() {
            return self.paths.data_dir().to_owned();
        }
        let mut dir = store.path().as_os_str().to_owned();
        dir.push(".d");
        PathBuf::from(dir)
    }
}

fn gone(error: &std::io::Error) -> CallError {
    CallError::invalid(format!("the working directory cannot be used: {error}"))
        .hint("name the project with --root DIR")
}

fn flags(common: &Common, rules: &OneOff) -> Choices {
    let text =
        |value: &Option<String>, flag: &'static str| value.clone().map(|value| Text::new(value, Spot::Flag(flag)));
    Choices {
        profile: text(&common.profile, "--profile"),
        store: text(&common.store, "--store"),
        agent: common.agent.clone(),
        rules: one_offs(rules),
        ..Choices::default()
    }
}

fn one_offs(rules: &OneOff) -> Vec<CommandRule> {
    let allow = rules.allow.iter().map(|text| CommandRule::one_off(Stance::Allow, text, "--allow"));
    let deny = rules.deny.iter().map(|text| CommandRule::one_off(Stance::Deny, text, "--deny"));
    allow.chain(deny).collect()
}

/// How long a process lives.
#[derive(Clone, Copy)]
enum Life {
    /// For one call.
    OneCall,
    /// For one event of a coding agent's hooks: no tool is called, so none but the shipped ones are looked for.
    OneEvent,
    /// It stays and serves.
    Stays(Threads),
}

/// How many threads serve. One is quicker for one client; many serve many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One, besides those that wait for files.
    One,
    /// One a processor.
    Many,
}

/// A running haft.
pub struct App {
    /// The tool layer.
    pub haft: Arc<Haft>,
    /// How the doors behave.
    pub doors: Doors,
    /// Whether stdout is for JSON alone.
    pub json: bool,
    /// On whose behalf calls are made.
    pub caller: Caller,
    /// The user's configuration file, as people write it.
    pub config: String,
    /// Where the user keeps agents that are files.
    pub agents_dir: PathBuf,
    session: SessionId,
    dialect: Dialect,
    bridge: Option<Arc<Bridge>>,
    /// Looks whether tools that are files change, as long as this process stays.
    following: tokio::task::JoinSet<()>,
    life: Life,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for App {
    fn drop(&mut self) {
        // A thread that waits for a key at the terminal must not hold up the end of the program.
        if let Some(runtime) = self.runtime.take() {
            if let Some(bridge) = self.bridge.take() {
                runtime.block_on(bridge.close());
            }
            runtime.shutdown_background();
        }
    }
}

impl App {
    /// Reads the configuration, opens the store and says what is worth knowing about both.
    pub fn open(common: &Common) -> Result<Self, Failure> {
        Self::on(common, &Ground::find(common)?, Life::OneCall)
    }

    /// The same for one event of a coding agent's hooks.
    pub fn open_for_event(common: &Common) -> Result<Self, Failure> {
        Self::on(common, &Ground::find(common)?, Life::OneEvent)
    }

    /// The same for a process that stays and serves many.
    pub fn open_to_serve(common: &Common, threads: Threads) -> Result<Self, Failure> {
        Self::on(common, &Ground::find(common)?, Life::Stays(threads))
    }

    /// The same for an agent's conversation, with rules for this once.
    pub fn open_to_run(common: &Common, rules: &OneOff, threads: Threads) -> Result<Self, Failure> {
        Self::on(common, &Ground::find_with(common, rules)?, Life::Stays(threads))
    }

    /// The same, with rules for this once.
    pub fn open_with(common: &Common, rules: &OneOff) -> Result<Self, Failure> {
        Self::on(common, &Ground::find_with(common, rules)?, Life::OneCall)
    }

    /// The same for commands that only look back and take back.
    pub fn open_to_look_back(common: &Common) -> Result<Self, Failure> {
        Self::on(common, &Ground::find_to_look_back(common)?, Life::OneCall)
    }

    fn on(common: &Common, ground: &Ground, life: Life) -> Result<Self, Failure> {
        let store = match life {
            Life::OneCall | Life::OneEvent => ground.store()?,
            Life::Stays(_) => ground.with_data_dir(Store::open(&ground.layers.store()?)?)?,
        };
        let loaded = ground.resolve(&store)?;
        loaded.warnings.iter().for_each(|warning| style::warn(warning));
        let session = common.named_session()?.unwrap_or_default();
        let runtime = match life {
            Life::Stays(Threads::Many) => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
            Life::OneCall | Life::OneEvent | Life::Stays(Threads::One) => {
                tokio::runtime::Builder::new_current_thread().enable_all().build()
            }
        };
        let runtime =
            runtime.map_err(|error| CallError::internal(format!("the async runtime cannot start: {error}")))?;
        let mut app = Self {
            json: common.json(),
            config: ground.paths.shown(&ground.paths.user_config()),
            agents_dir: ground.paths.agents_dir(),
            caller: loaded.settings.caller.clone(),
            dialect: loaded.settings.dialect,
            doors: loaded.settings.doors.clone(),
            haft: Arc::new(build(ground, store, loaded)),
            session,
            bridge: None,
            following: tokio::task::JoinSet::new(),
            life,
            runtime: Some(runtime),
        };
        app.open_bridge();
        app.follow_tools();
        app.report_interrupted()?;
        Ok(app)
    }

    /// The store.
    pub fn store(&self) -> &Store {
        self.haft.store()
    }

    /// The bridged MCP servers, if any are configured. Their tools are in the registry: those that were accepted
    /// earlier from the start, and in a process that serves the others as soon as their servers have been met.
    pub fn bridge(&self) -> Option<&Arc<Bridge>> {
        self.bridge.as_ref()
    }

    /// Opens the way to the configured MCP servers. A process that makes one call starts none of them yet.
    fn open_bridge(&mut self) {
        if !matches!(self.life, Life::OneEvent) {
            self.meet_servers();
        }
    }

    fn meet_servers(&mut self) {
        if self.doors.servers.is_empty() {
            return;
        }
        let learn = match self.life {
            Life::OneCall | Life::OneEvent => Learn::OnDemand,
            Life::Stays(_) => Learn::Background,
        };
        // A process that makes one call says nothing of it: `haft mcp test` and `haft doctor` do.
        let warn: fn(&str) = if learn == Learn::Background { style::warn } else { |_| {} };
        match self.block_on(Bridge::open(&self.haft, &self.doors.servers, learn, warn)) {
            Ok(bridge) => self.bridge = Some(Arc::new(bridge)),
            Err(error) => style::warn(&format!("the tools of MCP servers are missing: {}", error.message)),
        }
    }

    /// Loads all tools that are served to clients, without starting a server: manifests, and the tools of servers that were
    /// accepted earlier.
    pub fn load_served_tools(&mut self) {
        self.load_tools();
        self.meet_servers();
    }

    /// Knows the tools that are files from the start, and follows them. A process that makes one call reads only those
    /// that it needs.
    fn follow_tools(&mut self) {
        if matches!(self.life, Life::OneCall | Life::OneEvent) {
            return;
        }
        self.load_tools();
        let followed = Arc::clone(self.haft.shelf());
        if let Some(runtime) = &self.runtime {
            self.following.spawn_on(followed.follow(style::warn), runtime.handle());
        }
    }

    /// Reads all tools that are files.
    pub fn load_tools(&self) {
        if let Err(error) = self.block_on(self.haft.shelf().load_all()) {
            style::warn(&format!("the tools that are files are missing: {}", error.message));
        }
    }

    /// Meets all bridged servers of whose tools nothing is known yet, and reads all tools that are files. For commands
    /// that list tools.
    pub fn learn_tools(&self) {
        self.load_tools();
        if let Some(bridge) = &self.bridge {
            for (server, error) in self.block_on(bridge.learn_all()) {
                style::warn(&format!("the tools of the MCP server `{server}` are missing: {}", error.message));
            }
        }
    }

    /// Meets the server whose tool is named, if nothing is known of its tools yet.
    async fn learn_of(&self, name: &str, args: &Value) -> Result<(), CallError> {
        // A process that serves meets them by itself, and must not be held up here.
        let (Some(bridge), Life::OneCall) = (&self.bridge, self.life) else { return Ok(()) };
        let name = haft_runtime::registry::meant_by(name, args).unwrap_or(name);
        // A tool that is a file may call those of servers.
        let called = self.haft.shelf().calls_of(name).await;
        for name in called.iter().map(String::as_str).chain([name]) {
            let server = name.strip_prefix("mcp:").and_then(|rest| rest.split(':').next());
            let server = server.or_else(|| name.strip_prefix("mcp__").and_then(|rest| rest.split("__").next()));
            if let Some(server) = server.filter(|server| bridge.has(server)) {
                bridge.learn(server).await?;
            }
        }
        Ok(())
    }

    /// Runs async work to its end.
    ///
    /// # Panics
    ///
    /// Never: the runtime is there until the value is dropped.
    #[expect(clippy::expect_used, reason = "the runtime is only taken when the program ends")]
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("the runtime is there until the end").block_on(work)
    }

    /// The session that calls belong to unless they say otherwise.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The dialect that was named, or the configured one.
    pub fn dialect(&self, name: Option<&str>) -> Result<Dialect, CallError> {
        name.map_or(Ok(self.dialect), Dialect::named)
    }

    /// A call from this door.
    pub fn call(&self, name: &str, args: Value, dialect: Option<&str>) -> Result<Call, CallError> {
        self.block_on(self.call_soon(name, args, dialect))
    }

    /// The same where async work is being done.
    pub async fn call_soon(&self, name: &str, args: Value, dialect: Option<&str>) -> Result<Call, CallError> {
        self.learn_of(name, &args).await?;
        Ok(Call {
            id: new_call_id(),
            spoken: name.to_owned(),
            args,
            dialect: self.dialect(dialect)?,
            session: self.session.clone(),
            caller: self.caller.clone(),
            origin: Origin::Cli,
            parents: Vec::new(),
            turn: None,
            autonomy: None,
            independent: false,
        })
    }

    /// Says which calls died between intent and outcome. Each is reported once.
    fn report_interrupted(&self) -> Result<(), Failure> {
        if !self.store().found_open_calls() {
            return Ok(());
        }
        for call in self.block_on(self.store().take_interrupted())? {
            // Each call is reported once, so an error in one does not end the loop.
            if let Err(error) = self.block_on(self.haft.sweep(&call.call_id)) {
                style::warn(&format!("what call {} left is not repaired: {}", call.call_id, error.message));
            }
            if call.observed {
                if let Err(error) = self.block_on(self.haft.forget_unchanged(&call.call_id)) {
                    style::warn(&format!("call {} is not cleared away: {}", call.call_id, error.message));
                }
                style::warn(&format!(
                    "call {} ({}) of an agent's own tool, started at {}, has no reported outcome: the agent exited first. `haft log {}` shows the call",
                    call.call_id,
                    call.tool,
                    crate::time::shown(call.at_ms),
                    call.call_id,
                ));
                continue;
            }
            if let Some(host) = &call.host {
                style::warn(&format!(
                    "call {} ({}) was interrupted at {}: {host}, which made it, has not been heard of since. What it changed is on {host}, and can be taken back there",
                    call.call_id,
                    call.tool,
                    crate::time::shown(call.at_ms),
                ));
                continue;
            }
            // What cannot be looked up may have changed something.
            let changed_nothing = self.block_on(self.store().undo_of(&call.call_id)).is_ok_and(|found| found.is_none());
            let id = &call.call_id;
            let next = if changed_nothing {
                format!("No change of it is kept; `haft log {id}` shows the call")
            } else {
                format!("`haft changes {id}` shows what it changed, `haft undo {id}` takes it back")
            };
            style::warn(&format!(
                "call {id} ({}) was interrupted at {}: its process died before it could finish. {next}",
                call.tool,
                crate::time::shown(call.at_ms),
            ));
        }
        Ok(())
    }
}

/// The user's own agents are roles as they stand: nobody else has written them there.
fn with_own_roles(mut agent: AgentSettings, dir: &Path) -> AgentSettings {
    for file in roles::filed_in(dir) {
        if let Some(role) = file.role() {
            agent.roles.entry(file.name).or_insert(role);
        }
    }
    agent
}

fn build(ground: &Ground, store: Store, loaded: Loaded) -> Haft {
    let config::Settings {
        roots,
        undo,
        grant_uses,
        terms,
        table,
        rules,
        web,
        browser,
        media,
        memory,
        agent,
        making,
        secrets,
        hooks,
        ..
    } = loaded.settings;
    let vault = ground.vault();
    // The usual directory is haft's own also where this store is another: its tokens are the same user's.
    let mut workspace = ground.workspace.clone().own(ground.paths.config_dir());
    workspace = workspace.own(ground.paths.data_dir()).own(vault.file());
    let suffixes: &[&str] = if store.kind() == Kind::Lite { &["", "-wal", "-shm"] } else { &[] };
    for suffix in suffixes {
        let mut file = store.path().as_os_str().to_owned();
        file.push(suffix);
        workspace = workspace.own(Path::new(&file));
    }
    workspace = roots.read.iter().fold(workspace, |workspace, root| workspace.readable(root));
    workspace = roots.write.iter().fold(workspace, |workspace, root| workspace.writable(root));
    let mut settings = Settings::with_policy(ground.data_dir(&store), loaded.policy);
    settings.chain = loaded.chain;
    settings.undo = undo;
    settings.grant_uses = grant_uses;
    settings.terms = terms;
    settings.table = table;
    settings.rules = rules;
    settings.web = web;
    settings.browser = browser;
    settings.media = media;
    settings.memory = memory;
    settings.agent = Arc::new(with_own_roles(agent, &ground.paths.agents_dir()));
    settings.folders = ground.paths.tool_folders();
    settings.skill_folders = ground.paths.skill_folders();
    settings.making = Arc::new(making);
    settings.secrets = Arc::new(Secrets::new(Some(vault), secrets));
    settings.hooks = Arc::new(hooks);
    // What goes on after its call goes on after this process; and whoever keeps it is this very program, also if
    // another version has been installed in its place.
    settings.keeper = Keeper::Process(PathBuf::from("/proc/self/exe"));
    Haft::new(workspace, store, settings)
}
