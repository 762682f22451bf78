//! What can be typed. One type a command; what it means is decided in `commands`.

mod agent;
mod agents;
mod api;
mod author;
mod doors;
mod hook;
mod import;
mod memory;
mod models;
mod secret;
mod shelf;
mod skills;
mod store;
mod task;
mod tui;
mod work;

pub use agent::{EffortWord, RunArgs, RunFormat};
pub use agents::{AgentsAction, AgentsArgs, WorktreesAction, WorktreesArgs, WorktreesRemove};
pub use api::{ApiAction, ApiArgs, ApiImport};
pub use author::{LintArgs, LintFormat, NewArgs, NewKind};
pub use doors::{McpAction, McpAdd, McpArgs, McpClient, ServeArgs};
pub use hook::{AskTarget, HookArgs, HookClientArg};
pub use import::{ImportArgs, ImportFrom, Writing};
pub use memory::{MemoryAction, MemoryArgs, MemorySearch};
pub use models::{ModelsAction, ModelsArgs};
pub use secret::{SecretAction, SecretArgs};
pub use shelf::{TestArgs, TrustArgs};
pub use skills::SkillsArgs;
pub use store::{StoreAction, StoreArgs};
pub use task::{TaskAction, TaskAdd, TaskArgs, TaskList, TaskMissed, TaskPriority, TaskUpdate};
pub use tui::TuiArgs;
pub use work::{Became, PipelineAction, PipelineArgs, SessionAction, SessionArgs, WorkerAction, WorkerArgs};

use clap::{Args, Parser, Subcommand, ValueEnum};
use haft_core::{CallError, SessionId, path_text};
use std::path::PathBuf;

/// The handle that AI agents hold the world by: every call validated, decided, recorded and undoable.
#[derive(Debug, Parser)]
#[command(name = "haft", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 success, 1 the tool failed, 2 bad usage or input, 3 denied, 4 needs approval,\n5 rejected by a person, 6 timed out, 7 internal."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options that every command knows.
    #[command(flatten)]
    pub common: Common,
}

/// Options that every command knows.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Print JSON on stdout and nothing else there.
    // A switch that holds a path, because `confine` has an option of the same name that takes one.
    #[arg(long, global = true, num_args = 0, default_missing_value = "-", help_heading = "Common")]
    pub json: Option<PathBuf>,
    /// Project directory [default: found from the working directory].
    #[arg(long, global = true, value_name = "DIR", help_heading = "Common")]
    pub root: Option<PathBuf>,
    /// Where the log and everything else is kept: a file, or a server that many share, postgres://… [default: haft.db in
    /// the data directory].
    #[arg(long, global = true, value_name = "PATH|URL", help_heading = "Common")]
    pub store: Option<String>,
    /// Session for new calls [default: default]. `undo` and `changes` show only this session if it is set.
    // With `undo` and `changes` a session selects, so one that nobody named must not look like one that somebody did.
    #[arg(long, global = true, env = "HAFT_SESSION", help_heading = "Common")]
    pub session: Option<String>,
    /// Policy profile: minimal, messaging, coding, full or your own.
    #[arg(long, global = true, help_heading = "Common")]
    pub profile: Option<String>,
    /// Agent on whose behalf calls are made.
    #[arg(long, global = true, env = "HAFT_AGENT", help_heading = "Common")]
    pub agent: Option<String>,
    /// Log what haft does and waits for, on stderr (`haft tui`: to the log file). `HAFT_LOG` sets the filter, in `RUST_LOG`
    /// syntax.
    #[arg(long, global = true, help_heading = "Common")]
    pub verbose: bool,
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, help_heading = "Common")]
    pub color: Color,
}

impl Common {
    /// The session, if somebody named one.
    pub fn named_session(&self) -> Result<Option<SessionId>, CallError> {
        let bad = || CallError::invalid("a session's name is 1 to 128 printable characters");
        self.session.as_ref().map(|name| SessionId::new(name).ok_or_else(bad)).transpose()
    }

    /// The project directory, if somebody named one: also in the form in which haft shows a path that is not UTF-8, or keeps it.
    pub fn root_dir(&self) -> Option<PathBuf> {
        let given = self.root.as_ref()?;
        match given.to_str().filter(|_| !given.exists()) {
            Some(text) if path_text::load(text).exists() => Some(path_text::load(text)),
            Some(text) => Some(PathBuf::from(path_text::read(text))),
            None => Some(given.clone()),
        }
    }

    /// Whether stdout is for JSON alone.
    pub fn json(&self) -> bool {
        self.json.is_some()
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Have an agent do something: a model with all of haft's tools, each call decided as always.
    Run(Box<RunArgs>),
    /// List the tools, or show one.
    Tools(ToolsArgs),
    /// Call a tool.
    Call(CallArgs),
    /// Call many tools: JSON lines in, JSON lines of outcomes out, in call order, each as soon as it is there.
    Batch(BatchArgs),
    /// Say what would happen to a call, and why. Nothing is changed.
    Explain(ExplainArgs),
    /// List, decide and remember approvals.
    Approvals(ApprovalsArgs),
    /// Show or verify the audit log.
    Log(LogArgs),
    /// Try rules about shell commands on what happened.
    Policy(PolicyArgs),
    /// Take back what a call changed.
    #[command(
        long_about = "Undo calls: one by ID, the latest (`--last`), or all of a turn (`--turn`) or since a time (`--since`). \
                      Calls that cannot be undone are skipped and listed with the reason."
    )]
    Undo(UndoArgs),
    /// Show what a call changed, or which calls changed something.
    Changes(ChangesArgs),
    /// Run any program under explicit permissions, no agent involved.
    Confine(Box<ConfineArgs>),
    /// Serve the tools to an MCP client over stdio; manage clients and bridged servers.
    Mcp(McpArgs),
    /// Hook program for coding agents: allow, deny or ask about each call of the agent's own tools, and record it.
    Hook(HookArgs),
    /// Serve HTTP: the page where a person decides, JSON-RPC, REST, events, MCP.
    Serve(ServeArgs),
    /// Converse with a model on a whole screen: what it says and does, what it asks, what it costs.
    Tui(TuiArgs),
    /// Run, watch and mend pipelines.
    Pipeline(PipelineArgs),
    /// List the roles that agents can have, and the worktrees that they left behind.
    Agents(AgentsArgs),
    /// List the skills that agents are offered, or show one.
    Skills(SkillsArgs),
    /// Look at the sessions that haft remembers, or forget one.
    Session(SessionArgs),
    /// Do the steps of pipelines and tasks, until told to stop.
    Worker(WorkerArgs),
    /// Keep what is known of APIs, or take it from an OpenAPI document.
    Api(ApiArgs),
    /// Check tool, workflow, agent and skill files; fix what can be fixed automatically.
    Lint(LintArgs),
    /// Make a tool that is a file, ready to run.
    New(NewArgs),
    /// Make tools that are files from an OpenAPI document, an MCP server or Claude skills.
    Import(ImportArgs),
    /// Keep what agents know, and find it again.
    Memory(MemoryArgs),
    /// List the models that agents can ask, or try one.
    Models(ModelsArgs),
    /// Keep secrets, encrypted, and say where they may go.
    Secret(SecretArgs),
    /// Keep what is to be done: by somebody, at a time, again and again, or when a page changes.
    Task(TaskArgs),
    /// Show the configuration, its schema or its files.
    Config(ConfigArgs),
    /// Make a .haft directory with a commented configuration.
    Init,
    /// Accept this project's configuration, tools, workflows, agents and skills after looking at them.
    Trust(TrustArgs),
    /// Run the examples of tools that are files, and compare what comes out.
    Test(TestArgs),
    /// Say where the store is, check it, bring it up to date, or copy it to another one.
    Store(StoreArgs),
    /// Check the machine, the store and the configuration.
    Doctor,
    /// Print a completion script.
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or that of one command.
    Man {
        /// Which command.
        command: Option<String>,
    },
    /// Keep a task: haft starts itself with this to run what goes on after its call.
    #[command(hide = true)]
    Keep,
    /// Run a script: haft starts itself with this, confined, for tool.script.
    #[command(hide = true)]
    Script,
    /// Print reference documentation as Markdown.
    #[command(hide = true)]
    Docs {
        /// Which.
        #[arg(value_enum)]
        kind: Reference,
    },
}

/// Reference documentation that is made from the program itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Reference {
    /// The tools and their parameters.
    Tools,
    /// The configuration.
    Config,
    /// The command line.
    Cli,
}

/// List the tools, show one, or find some: `haft tools search WORDS`.
#[derive(Debug, Args)]
pub struct ToolsArgs {
    /// Only this one, in full; or `search`, to find tools by what they do.
    pub name: Option<String>,
    /// With search: what they should do.
    #[arg(value_name = "WORDS")]
    pub words: Vec<String>,
    /// With search: how many at the most.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=50))]
    pub limit: u8,
    /// Vocabulary: haft, flynn, flyto, flemma, nodyn or glee.
    #[arg(long, value_name = "D")]
    pub dialect: Option<String>,
    /// Print the declarations as sent to this provider: anthropic, openai, openai-chat or gemini.
    #[arg(long, value_name = "P")]
    pub provider: Option<String>,
    /// About how many tokens each tool costs a model, and all of them.
    #[arg(long)]
    pub cost: bool,
}

/// How questions are answered.
#[derive(Debug, Clone, Args)]
pub struct Asking {
    /// Say yes to every question. What is denied stays denied.
    #[arg(long, short = 'y', conflicts_with = "no_input")]
    pub yes: bool,
    /// Never ask: a call that needs a person is stored and exits with 4.
    #[arg(long)]
    pub no_input: bool,
}

/// Rules about shell commands, for this once.
#[derive(Debug, Clone, Default, Args)]
pub struct OneOff {
    /// Allow shell commands for this once, as words: 'git log', 'npm run build', '*' for all.
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,
    /// Deny shell commands for this once, whatever they are wrapped in.
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,
}

/// Call a tool.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// The tool, in any vocabulary.
    pub name: String,
    /// Arguments: a JSON object, @FILE, - for stdin, or words like path=a.txt limit:=5.
    #[arg(value_name = "JSON|@FILE|-|KEY=VALUE")]
    pub args: Vec<String>,
    /// Vocabulary of the name and the arguments.
    #[arg(long, value_name = "D")]
    pub dialect: Option<String>,
    /// Only show what would change.
    #[arg(long)]
    pub dry_run: bool,
    /// With --dry-run: only what would change at or below this path; an ignored directory that it names is opened.
    #[arg(long, value_name = "PATH", requires = "dry_run")]
    pub path: Option<String>,
    /// Give up after so many milliseconds.
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
    /// Rules for this once.
    #[command(flatten)]
    pub rules: OneOff,
    /// How questions are answered.
    #[command(flatten)]
    pub asking: Asking,
}

/// Call many tools.
#[derive(Debug, Args)]
pub struct BatchArgs {
    /// A file of JSON lines {"tool", "args"}, or - for stdin.
    ///
    /// What comes on stdin runs as it comes: consecutive calls that only read run together, others wait for those before
    /// them. A line that makes no sense has an outcome of its own. A file is read whole, and nothing of it runs if a line
    /// makes no sense. The exit code is that of the first call that failed.
    ///
    /// A line with a "`call_id`" of its sender's own can be sent again: its call is made once, and gives the first outcome.
    #[arg(default_value = "-")]
    pub file: String,
    /// Vocabulary of the names and arguments.
    #[arg(long, value_name = "D")]
    pub dialect: Option<String>,
    /// Rules for this once.
    #[command(flatten)]
    pub rules: OneOff,
    /// How questions are answered.
    #[command(flatten)]
    pub asking: Asking,
}

/// Say what would happen to a call.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The tool, in any vocabulary.
    #[arg(required_unless_present = "batch")]
    pub name: Option<String>,
    /// Arguments, as for `haft call`.
    #[arg(value_name = "JSON|@FILE|-|KEY=VALUE")]
    pub args: Vec<String>,
    /// Vocabulary of the name and the arguments.
    #[arg(long, value_name = "D")]
    pub dialect: Option<String>,
    /// Run it on a copy-on-write view, and show what it would change.
    #[arg(long)]
    pub run: bool,
    /// Explain many: JSON lines {"tool", "args"} from a file, or - for stdin; a JSON line each, in order.
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["name", "args", "run"])]
    pub batch: Option<String>,
    /// Rules for this once.
    #[command(flatten)]
    pub rules: OneOff,
}

/// List, decide and remember approvals.
#[derive(Debug, Args)]
pub struct ApprovalsArgs {
    /// What to do [default: list].
    #[command(subcommand)]
    pub action: Option<ApprovalsAction>,
}

/// What to do with approvals.
#[derive(Debug, Subcommand)]
pub enum ApprovalsAction {
    /// List the calls that wait.
    List {
        /// Decided ones, too.
        #[arg(long)]
        all: bool,
    },
    /// Show one, and what came of it.
    Show {
        /// Which.
        id: String,
    },
    /// Approve one and run it.
    Approve {
        /// Which.
        id: String,
        /// Somebody looked at what an agent proposes to keep. Needed for that where there is no terminal.
        #[arg(long)]
        yes: bool,
    },
    /// Reject one.
    Reject {
        /// Which.
        id: String,
        /// What to tell the model.
        #[arg(long, short = 'm', default_value = "")]
        message: String,
    },
    /// Answer a question that an agent or a tool asks.
    Answer {
        /// Which.
        id: String,
        /// The answer as `FIELD=VALUE`, or as JSON. Without any it is asked for at the terminal.
        #[arg(value_name = "FIELD=VALUE|JSON")]
        answer: Vec<String>,
    },
    /// Allow a pattern beforehand.
    Grant {
        /// For this tool.
        tool: String,
        /// Over its path, command or arguments: * stays within a path segment, ** does not.
        pattern: String,
        /// How often.
        #[arg(long)]
        uses: Option<u32>,
        /// For how long: 30s, 5m, 1h, 1d.
        #[arg(long = "for", value_name = "TIME")]
        duration: Option<String>,
    },
    /// List what was allowed beforehand.
    Grants,
    /// Withdraw what was allowed beforehand.
    Revoke {
        /// Which grant.
        id: String,
    },
}

/// Show or verify the audit log.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// `verify` checks the chain, `head` prints its end, `redact` removes what records say, a call id shows that call.
    #[arg(value_name = "verify|head|redact|CALL-ID")]
    pub what: Option<String>,
    /// With redact: a call id, or the number of a record.
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// With redact: all records that are older, such as 90d.
    #[arg(long, value_name = "AGE", conflicts_with = "id")]
    pub older_than: Option<String>,
    /// With redact: why, for the log.
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
    /// With redact: leave the calls' full outputs and attachments where they are.
    #[arg(long)]
    pub keep_outputs: bool,
    /// With redact: remove the before-images too; the calls can then not be undone.
    #[arg(long)]
    pub before_images: bool,
    /// Go on as records come.
    #[arg(long, short = 'f')]
    pub follow: bool,
    /// How many of the latest.
    #[arg(long, short = 'n', default_value_t = 40)]
    pub last: u32,
    /// With verify: a head that was written down earlier, as SEQ:HASH.
    #[arg(long, value_name = "SEQ:HASH")]
    pub expect: Option<String>,
}

/// Try rules about shell commands on what happened.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: PolicyAction,
}

/// What to do with rules.
#[derive(Debug, Subcommand)]
pub enum PolicyAction {
    /// Say what would have been decided about the shell commands in the log, had these rules held.
    Replay {
        /// A rule as in a configuration: 'allow: git log' or 'deny: rm'.
        #[arg(long = "rule", value_name = "RULE", required = true)]
        rules: Vec<String>,
        /// Only of the last 30s, 5m, 1h, 1d.
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
    },
}

/// Undo calls. `--session` narrows `--last`, `--turn` and `--since`; alone it selects nothing.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Which call, or which task in the background.
    #[arg(conflicts_with_all = ["last", "turn", "since"])]
    pub call_id: Option<String>,
    /// The latest of the selected calls that can be taken back.
    #[arg(long)]
    pub last: bool,
    /// Only calls that a model asked for in this turn of the session, as `haft changes` shows it. Needs --session.
    #[arg(long, value_name = "N")]
    pub turn: Option<u32>,
    /// Only calls since `30m`, `12h` or `7d` ago, a day (`2026-11-01`, UTC) or a time (`2026-11-01T09:00:00Z`).
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Restore the files that can be restored, and leave the others as they are.
    #[arg(long)]
    pub partial: bool,
}

/// Show what a call changed.
#[derive(Debug, Args)]
pub struct ChangesArgs {
    /// Which call, or which task [default: list the calls that changed something].
    pub call_id: Option<String>,
    /// Only what the call changed at or below this path; an ignored directory that it names is opened.
    #[arg(long, value_name = "PATH", requires = "call_id")]
    pub path: Option<String>,
    /// List only calls that a model asked for in this turn of the session. Needs --session.
    #[arg(long, value_name = "N", conflicts_with = "call_id")]
    pub turn: Option<u32>,
    /// List only calls since `30m`, `12h` or `7d` ago, a day or a time.
    #[arg(long, value_name = "TIME", conflicts_with = "call_id")]
    pub since: Option<String>,
}

/// Run any program under explicit permissions.
///
/// It may read the system's programs and libraries and what --read names, write what --write names and its own
/// /tmp and home, and reach what --net names. What it writes goes to a copy-on-write view first, and is kept when
/// it has ended. Its exit status is passed on; 124 means its time was up, 125 that haft could not confine it or
/// keep what it wrote, 126 that it could not be started, 127 that it was not found.
#[derive(Debug, Args)]
pub struct ConfineArgs {
    /// A file with the same permissions, in YAML or JSON: read, write, protect, net, secrets, mem, pids, cpu, wall, fsize, disk.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// A file or directory that it may read.
    #[arg(long, value_name = "P")]
    pub read: Vec<PathBuf>,
    /// A directory that it may read and write.
    #[arg(long, value_name = "P")]
    pub write: Vec<PathBuf>,
    /// A place inside a writable directory that stays as it is.
    #[arg(long, value_name = "P")]
    pub protect: Vec<PathBuf>,
    /// What it may reach: none, all, or hosts like example.com:443,*.example.org [default: none].
    #[arg(long, value_name = "none|all|HOST:PORT,…")]
    pub net: Option<String>,
    /// A variable of this environment that it gets.
    #[arg(long, value_name = "NAME")]
    pub secret: Vec<String>,
    /// Memory of all its processes together: 512m, 2g.
    #[arg(long, value_name = "B")]
    pub mem: Option<String>,
    /// Processes and threads at once.
    #[arg(long, value_name = "N")]
    pub pids: Option<u64>,
    /// Seconds of processor time.
    #[arg(long, value_name = "S")]
    pub cpu: Option<f64>,
    /// Seconds from start to end.
    #[arg(long, value_name = "S")]
    pub wall: Option<f64>,
    /// The largest file it may write.
    #[arg(long, value_name = "B")]
    pub fsize: Option<String>,
    /// All that it may write to disk.
    #[arg(long, value_name = "B")]
    pub disk: Option<String>,
    /// Show what it would change, and keep nothing.
    #[arg(long, conflicts_with = "direct")]
    pub dry_run: bool,
    /// Write straight into the directories: seen by others at once, and not undone if it is cut off.
    #[arg(long)]
    pub direct: bool,
    /// Write a report to this file: files changed, hosts contacted, limits hit, level in force.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// Show the configuration.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// What to show [default: show].
    #[arg(value_enum, default_value_t = ConfigView::Show)]
    pub view: ConfigView,
    /// With schema: that of a tool's file, .haft/tools/NAME/tool.yml.
    #[arg(long)]
    pub tool: bool,
}

/// What to show of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConfigView {
    /// What is in force, and where it comes from.
    Show,
    /// The JSON Schema of the file.
    Schema,
    /// Where the files are.
    Path,
}
