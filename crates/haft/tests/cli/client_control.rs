//! Client control files decide which native tools an agent has: a change of one is asked about, whatever allows it, and no
//! command makes one.

use crate::shell::{exec, scene};
use crate::{Env, snapshot};
use serde_json::json;

/// The lists under which edits and confined commands run unasked.
const EDITS_ALLOWED: &str = "approval: {auto_approve: [file.write, file.edit, file.batch]}\n";
const CONTROL_FILES: [&str; 10] = [
    ".claude/settings.local.json",
    ".claude/settings.json",
    ".mcp.json",
    ".gemini/settings.json",
    ".codex/config.toml",
    ".cursor/hooks.json",
    ".vscode/tasks.json",
    ".vscode/settings.json",
    "opencode.json",
    "packages/app/.mcp.json",
];
const ORDINARY_FILES: [&str; 5] =
    ["AGENTS.md", ".claude/CLAUDE.md", ".vscode/extensions.json", ".cursor/rules/a.mdc", ".goosehints"];

#[test]
fn write_of_a_client_control_file_is_asked_whatever_allows_it() {
    let env = Env::new();
    let yolo = "approval: {level: yolo}\n";
    for config in [EDITS_ALLOWED, yolo] {
        env.config(config);
        for path in CONTROL_FILES {
            let (kind, message, code) = env.err("file.write", json!({"path": path, "content": "{}"}), &["--no-input"]);
            assert_eq!((kind.as_str(), code), ("approval_required", 4), "{path}: {message}");
            assert!(!env.root().join(path).exists(), "{path}");
        }
        for path in ORDINARY_FILES {
            let (outcome, code) = env.call("file.write", json!({"path": path, "content": "x"}), &["--no-input"]);
            assert_eq!(code, 0, "{path}: {outcome:#}");
        }
    }
    env.ok("file.write", json!({"path": ".mcp.json", "content": "{}"}));
    assert_eq!(env.read(".mcp.json"), "{}", "a person's yes counts");
    let (outcome, code) = env.call("file.read", json!({"path": ".mcp.json"}), &["--no-input"]);
    assert_eq!(code, 0, "reading is unasked: {outcome:#}");
}

#[test]
fn client_control_file_behind_a_link_is_asked() {
    let env = Env::new();
    env.config(EDITS_ALLOWED);
    env.file("dotfiles/settings.json", "{}");
    std::os::unix::fs::symlink("dotfiles", env.root().join(".claude")).unwrap();
    std::fs::create_dir_all(env.dir.path().join("home")).unwrap();
    std::os::unix::fs::symlink(env.root().join("claude.json"), env.dir.path().join("home/.claude.json")).unwrap();
    for path in ["dotfiles/settings.json", "dotfiles/settings.local.json", "claude.json"] {
        let (_, message, code) = env.err("file.write", json!({"path": path, "content": "x"}), &["--no-input"]);
        assert_eq!(code, 4, "{path}: {message}");
    }
}

#[test]
fn batch_rename_makes_no_client_control_file() {
    let env = Env::new();
    env.config(EDITS_ALLOWED);
    env.file("a.json", "{}");
    let args = json!({"pattern": "a.json", "operation": "rename", "rename_to": ".mcp.json"});
    let (_, message, _) = env.err("file.batch", args, &["--no-input"]);
    assert!(message.contains(".mcp.json is a sensitive place"), "{message}");
}

#[test]
fn command_that_names_a_client_control_file_is_asked() {
    let Some(env) = scene() else { return };
    env.config(EDITS_ALLOWED);
    for path in CONTROL_FILES {
        let command = format!("echo '{{}}' > {path}");
        let (_, message, code) = env.err("shell.exec", json!({"command": command}), &["--no-input"]);
        assert_eq!(code, 4, "{command}: {message}");
    }
    let (outcome, code) = env.call("shell.exec", json!({"command": "echo x > notes.txt"}), &["--no-input"]);
    assert_eq!(code, 0, "an ordinary file is written unasked: {outcome:#}");
}

#[test]
fn change_of_a_client_control_file_by_a_command_is_not_kept() {
    let Some(env) = scene() else { return };
    env.file(".claude/settings.json", r#"{"permissions": {"deny": ["Bash"]}}"#);
    env.file(".vscode/settings.json", "{}");
    env.file("cfg/settings.json", r#"{"permissions": {"allow": ["Bash"]}}"#);
    let before = snapshot(&env.root());
    for command in [
        "d=.cl; echo '{}' > ${d}aude/settings.local.json",
        "echo '{}' > $(printf '.mcp%s' .json)",
        "rm -rf .claude",
        "rm -rf .claude; mkdir .claude",
        "mv cfg .gemini",
        "ln -s cfg .codex",
        "rm -r .vscode; ln -s cfg .vscode",
        "cp -r cfg sub; mkdir new; mv sub new/.claude",
        "ln cfg/settings.json opencode.json",
        "chmod 000 .claude/settings.json",
        "chmod 000 .claude",
    ] {
        // The person says yes to the command, so only what it did counts.
        let (outcome, code) = exec(&env, command);
        assert_eq!(code, 3, "{command}: {outcome:#}");
        assert_eq!(outcome["error"]["kind"], "denied", "{command}: {outcome:#}");
        assert_eq!(snapshot(&env.root()), before, "{command}: {outcome:#}");
    }
    let (outcome, code) = exec(&env, "mkdir -p .vscode && echo '{}' > .vscode/extensions.json && echo x > AGENTS.md");
    assert_eq!(code, 0, "{outcome:#}");
}

#[test]
fn command_that_writes_straight_into_the_project_cannot_change_a_client_control_file() {
    let Some(env) = scene() else { return };
    env.config("confinement: {writes: direct}\n");
    env.file(".claude/settings.json", "{}");
    env.file(".mcp.json", "{}");
    for path in [".claude/settings.json", ".claude/settings.local.json", ".mcp.json"] {
        let (outcome, _) = exec(&env, &format!("echo x > {path}"));
        assert_eq!(outcome["success"], false, "{path}: {outcome:#}");
    }
    assert_eq!((env.read(".claude/settings.json").as_str(), env.read(".mcp.json").as_str()), ("{}", "{}"));
    assert!(!env.root().join(".claude/settings.local.json").exists());
}
