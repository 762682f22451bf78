//! The clients of the terminal: Claude Code, Codex, Gemini CLI, opencode and goose.

use super::EditPurpose::{ContextCost, Entry, Hook, HooksOn, NativeOff, PreApproval};
use super::{FilePlan, HookEntry, InstallMode, InstallPlan, NAME, existing, hook_command, own_program};
use crate::cli::McpClient;
use crate::commands::mcp::install::edits::{self, ConfigEdit, FileFormat};
use serde_json::{Value, json};
use std::path::Path;

/// Claude Code's own tools that act on files, commands, worktrees and the web. A denied tool is not offered to the model.
const CLAUDE_NATIVE: [&str; 12] = [
    "Bash",
    "Read",
    "Edit",
    "Write",
    "Glob",
    "Grep",
    "NotebookEdit",
    "WebFetch",
    "WebSearch",
    "Monitor",
    "EnterWorktree",
    "ExitWorktree",
];
/// Gemini CLI's.
const GEMINI_NATIVE: [&str; 10] = [
    "run_shell_command",
    "read_file",
    "read_many_files",
    "write_file",
    "replace",
    "glob",
    "grep_search",
    "list_directory",
    "web_fetch",
    "google_web_search",
];
/// opencode's permissions; `edit` is also that of `write` and `apply_patch`.
pub(in crate::commands::mcp::install) const OPENCODE_NATIVE: [&str; 10] =
    ["bash", "read", "edit", "glob", "grep", "list", "webfetch", "websearch", "codesearch", "lsp"];
/// goose's extensions whose tools act on files and commands, or turn such extensions on again: key and name.
const GOOSE_NATIVE: [(&str, &str); 3] =
    [("developer", "developer"), ("analyze", "analyze"), ("extensionmanager", "Extension Manager")];

/// What haft's tools may cost in Codex, in tokens as haft estimates them: as much as leaves a request no dearer than one with
/// Codex's own tools. The tools that Codex has no counterpart for (`file_grep`, `file_glob`) are found with `tool_search`.
const CODEX_BUDGET_TOKENS: &str = "1000";
/// The switch of Codex's tool that asks its user in plan mode.
const CODEX_QUESTIONS: [&str; 3] = ["tools", "experimental_request_user_input", "enabled"];
/// The plugin by which goose runs haft's hooks, below the home directory.
pub(in crate::commands::mcp::install) const GOOSE_PLUGIN: &str = ".agents/plugins/haft";

/// Names as a list of JSON texts.
fn texts(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| Value::from(*name)).collect()
}

/// Claude Code reads the servers of `.mcp.json`, and what this user wants in this project of `settings.local.json`.
///
/// The hooks name `program` with its directory, although the file belongs to the project: it is this user's own, and a `PATH`
/// that begins in the project, as in a virtual environment, would let the project choose who answers.
pub(super) fn claude_code(mode: InstallMode, project: &Path, program: &str) -> InstallPlan {
    let mut entry = json!({"type": "stdio", "command": NAME, "args": ["mcp"]});
    let mut settings = FilePlan::new(project.join(".claude/settings.local.json"), FileFormat::Json);
    if mode == InstallMode::Replace {
        // Without it, Claude Code gives the model the names of haft's tools only.
        entry["alwaysLoad"] = true.into();
        settings = settings
            .with(NativeOff, ConfigEdit::include(&["permissions", "deny"], texts(&CLAUDE_NATIVE)))
            .with(PreApproval, ConfigEdit::include(&["permissions", "allow"], texts(&["mcp__haft"])))
            .with(PreApproval, ConfigEdit::include(&["enabledMcpjsonServers"], texts(&[NAME])));
    }
    if mode == InstallMode::Hooks {
        const EVENTS: [HookEntry; 6] = [
            HookEntry::new("UserPromptSubmit", false, 60),
            HookEntry::new("PreToolUse", true, 300),
            HookEntry::new("PostToolUse", true, 60),
            HookEntry::new("PostToolUseFailure", true, 60),
            HookEntry::new("PostToolBatch", false, 60),
            HookEntry::new("SessionEnd", false, 60),
        ];
        for event in &EVENTS {
            let command = hook_command(program, McpClient::Claude);
            let hook = json!({"type": "command", "command": command, "timeout": event.timeout_sec});
            settings = settings.with(Hook, event.edit(hook));
        }
        // These settings take precedence over those of the project, which could otherwise turn all hooks off.
        settings = settings.with(HooksOn, ConfigEdit::set(&["disableAllHooks"], false.into()));
    }
    let servers = FilePlan::new(project.join(".mcp.json"), FileFormat::Json)
        .with(Entry, ConfigEdit::set(&["mcpServers", NAME], entry));
    let plan = InstallPlan::new(mode, vec![servers, settings], &["mcpServers", NAME]);
    match mode {
        InstallMode::Beside => plan.note(
            "Claude Code gives the model the names of haft's tools only, and loads a tool when the model looks for it",
        ),
        InstallMode::Replace => plan.note(
            "`@file` no longer attaches a file: it needs Claude Code's Read, which is off. `!command` still runs: \
             you typed it",
        ),
        InstallMode::Hooks => plan,
    }
}

/// Codex reads everything from `config.toml`.
pub(super) fn codex(mode: InstallMode, home: &Path) -> InstallPlan {
    let program = own_program();
    let mut entry = json!({"command": program, "args": ["mcp"]});
    let mut config = FilePlan::new(home.join(".codex/config.toml"), FileFormat::Toml);
    if mode == InstallMode::Replace {
        entry["default_tools_approval_mode"] = "approve".into();
        // Otherwise newer models search for haft's tools first, or reach them through scripts only.
        entry["omit_tools_from"] = json!(["deferred", "code_mode"]);
        entry["args"] = json!(["mcp", "--budget-tokens", CODEX_BUDGET_TOKENS]);
        // Codex has no switch for `apply_patch`: it stays in the list, and the sandbox refuses what it writes. Only forms
        // of MCP servers, which are haft's questions, still reach the person.
        let granular = json!({
            "sandbox_approval": false, "rules": false, "mcp_elicitations": true, "request_permissions": false,
            "skill_approval": false,
        });
        config = config
            .with(NativeOff, ConfigEdit::set(&["web_search"], "disabled".into()))
            .with(NativeOff, ConfigEdit::set(&["sandbox_mode"], "read-only".into()))
            .with(NativeOff, ConfigEdit::set(&["approval_policy"], json!({ "granular": granular })))
            .with(NativeOff, ConfigEdit::set(&["features", "shell_tool"], false.into()))
            .with(NativeOff, ConfigEdit::set(&["features", "view_image"], false.into()))
            .with(ContextCost, ConfigEdit::set(&["features", "goals"], false.into()))
            .with(ContextCost, ConfigEdit::set(&CODEX_QUESTIONS, false.into()));
    }
    config = config.with(Entry, ConfigEdit::set(&["mcp_servers", NAME], entry));
    if mode == InstallMode::Hooks {
        const EVENTS: [HookEntry; 4] = [
            HookEntry::new("PreToolUse", true, 300),
            HookEntry::new("PostToolUse", true, 60),
            HookEntry::new("Stop", false, 60),
            HookEntry::new("SessionEnd", false, 3),
        ];
        for event in &EVENTS {
            let command = hook_command(&program, McpClient::Codex);
            let hook = json!({"type": "command", "command": command, "timeout": event.timeout_sec});
            config = config.with(Hook, event.edit(hook));
        }
    }
    let plan = InstallPlan::new(mode, vec![config], &["mcp_servers", NAME]);
    match mode {
        InstallMode::Beside => plan,
        InstallMode::Replace => plan
            .note(
                "Codex has no switch for apply_patch: models that know it still see it, and the read-only sandbox refuses \
                 what it writes",
            )
            .note(
                "Codex's goals (`/goal`) and the questions of its plan mode are off: with their tools and haft's, a request \
                 would cost more tokens than before. `features.goals` and `tools.experimental_request_user_input` turn \
                 them on",
            ),
        InstallMode::Hooks => plan.note(
            "Codex runs a hook only after you trusted it: open `/hooks` in Codex; until then it is not run",
        ),
    }
}

/// Gemini CLI reads its servers from `settings.json`, and which tools it offers from the policies.
pub(super) fn gemini_cli(mode: InstallMode, home: &Path) -> InstallPlan {
    let program = own_program();
    let mut entry = json!({"command": program, "args": ["mcp"]});
    let mut policy = FilePlan::new(home.join(".gemini/policies/haft.toml"), FileFormat::Toml);
    if mode == InstallMode::Replace {
        entry["trust"] = true.into();
        let off = json!({
            "toolName": GEMINI_NATIVE, "decision": "deny", "priority": 999,
            "denyMessage": "This tool is off. Use the tools of haft instead.",
        });
        policy = policy.with(NativeOff, ConfigEdit::include(&["rule"], vec![off]));
    }
    let mut settings = FilePlan::new(home.join(".gemini/settings.json"), FileFormat::Json)
        .with(Entry, ConfigEdit::set(&["mcpServers", NAME], entry));
    if mode == InstallMode::Replace {
        // A project can make Gemini CLI read other policies than the user's, but it can take nothing from this list.
        settings = settings.with(NativeOff, ConfigEdit::include(&["tools", "exclude"], texts(&GEMINI_NATIVE)));
    }
    if mode == InstallMode::Hooks {
        const EVENTS: [HookEntry; 4] = [
            HookEntry::new("BeforeTool", true, 300),
            HookEntry::new("AfterTool", true, 60),
            HookEntry::new("AfterAgent", true, 60),
            HookEntry::new("SessionEnd", true, 60),
        ];
        for event in &EVENTS {
            let command = hook_command(&program, McpClient::Gemini);
            // In milliseconds here.
            let timeout = event.timeout_sec * 1000;
            let hook = json!({"name": NAME, "type": "command", "command": command, "timeout": timeout});
            settings = settings.with(Hook, event.edit(hook));
        }
    }
    let plan = InstallPlan::new(mode, vec![settings, policy], &["mcpServers", NAME]);
    match mode {
        InstallMode::Replace => plan.note(
            "a project that Gemini CLI trusts can turn tools on again, with `policyPaths` in its .gemini/settings.json; \
             `haft doctor` in the project says whether it does",
        ),
        _ => plan,
    }
}

/// opencode reads everything from `opencode.json`, or `opencode.jsonc`.
pub(super) fn opencode(mode: InstallMode, home: &Path) -> InstallPlan {
    let entry = json!({"type": "local", "command": [own_program(), "mcp"], "enabled": true});
    let dir = home.join(".config/opencode");
    let file = existing(dir.join("opencode.json"), dir.join("opencode.jsonc"));
    let mut config = FilePlan::new(file, FileFormat::Json).with(Entry, ConfigEdit::set(&["mcp", NAME], entry));
    if mode == InstallMode::Replace {
        for permission in OPENCODE_NATIVE {
            config = config.with(NativeOff, ConfigEdit::set(&["permission", permission], "deny".into()));
        }
        config = config.with(PreApproval, ConfigEdit::set(&["permission", "haft_*"], "allow".into()));
    }
    let plan = InstallPlan::new(mode, vec![config], &["mcp", NAME]);
    match mode {
        InstallMode::Replace => plan.note(
            "a project's own opencode.json, or permissions of one agent in it, override these and can turn tools on again; \
             `haft doctor` in the project says whether one does",
        ),
        _ => plan,
    }
}

/// goose reads its extensions from `config.yaml`, and hooks from plugins.
pub(super) fn goose(mode: InstallMode, home: &Path) -> InstallPlan {
    let entry = json!({
        "name": NAME, "type": "stdio", "cmd": own_program(), "args": ["mcp"], "enabled": true, "timeout": 300,
    });
    let path = home.join(".config/goose/config.yaml");
    let known = std::fs::read_to_string(&path).ok().and_then(|text| edits::read(FileFormat::Yaml, &text).ok());
    let asks = known.is_some_and(|known| matches!(known["GOOSE_MODE"].as_str(), Some("approve" | "smart_approve")));
    let mut config = FilePlan::new(path, FileFormat::Yaml).with(Entry, ConfigEdit::set(&["extensions", NAME], entry));
    if mode == InstallMode::Replace {
        for (key, name) in GOOSE_NATIVE {
            // What goose has written of an extension stays.
            config = config
                .with(NativeOff, ConfigEdit::set(&["extensions", key, "enabled"], false.into()))
                .with(NativeOff, ConfigEdit::default(&["extensions", key, "type"], "platform".into()))
                .with(NativeOff, ConfigEdit::default(&["extensions", key, "name"], name.into()));
        }
    }
    let mut hooks = FilePlan::new(home.join(GOOSE_PLUGIN).join("hooks/hooks.json"), FileFormat::Json);
    if mode == InstallMode::Hooks {
        const EVENTS: [HookEntry; 5] = [
            HookEntry::new("PreToolUse", false, 300),
            HookEntry::new("PostToolUse", false, 60),
            HookEntry::new("PostToolUseFailure", false, 60),
            HookEntry::new("Stop", false, 60),
            HookEntry::new("SessionEnd", false, 60),
        ];
        for event in &EVENTS {
            let command = hook_command(&own_program(), McpClient::Goose);
            let mut hook = json!({"type": "command", "command": command, "timeout": event.timeout_sec});
            if event.event == "PreToolUse" {
                // Otherwise goose runs a call whose hook fails or is late.
                hook["on_failure"] = "block".into();
            }
            hooks = hooks.with(Hook, event.edit(hook));
        }
    }
    let plan = InstallPlan::new(mode, vec![config, hooks], &["extensions", NAME]);
    if mode == InstallMode::Replace && asks {
        return plan.note(
            "with this GOOSE_MODE, goose also asks about haft's calls: choose \"Always Allow\" there, or set GOOSE_MODE to \
             auto, which leaves the question to haft",
        );
    }
    plan
}
