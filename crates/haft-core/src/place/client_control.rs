//! Client control files: they decide which tools, hooks, MCP servers and permissions an agent's client has. A client
//! reads them again by itself, so an agent that writes one gives itself native tools that haft does not decide about.

use std::path::{Path, PathBuf};

/// Consecutive names that make a path a client control file, or a directory of them.
struct ClientControl {
    names: &'static [&'static str],
    /// What lies right below the directory and is an ordinary file: words for the model, working copies.
    ordinary: &'static [&'static str],
}

const fn control(names: &'static [&'static str]) -> ClientControl {
    ClientControl { names, ordinary: &[] }
}

/// The table, in lower case. A path is compared from each of its directories on, so that the files of a nested project
/// and of the home directory count as well.
const CLIENT_CONTROLS: &[ClientControl] = &[
    // Claude Code: settings, hooks, and commands, agents and skills, whose front matter permits tools.
    ClientControl {
        names: &[".claude"],
        ordinary: &["claude.md", "claude.local.md", "rules", "plans", "projects", "worktrees"],
    },
    control(&[".claude.json"]),
    control(&[".mcp.json"]),
    // Codex.
    ClientControl { names: &[".codex"], ordinary: &["agents.md", "worktrees"] },
    // Gemini CLI, and Qwen Code, which came of it.
    ClientControl { names: &[".gemini"], ordinary: &["gemini.md", "styleguide.md"] },
    ClientControl { names: &[".qwen"], ordinary: &["qwen.md"] },
    // Cursor: hooks.json, mcp.json, cli.json, environment.json.
    ClientControl { names: &[".cursor"], ordinary: &["rules", "plans", "worktrees"] },
    // VS Code and its kin: settings approve terminal commands, tasks and launches run programs.
    control(&[".vscode", "settings.json"]),
    control(&[".vscode", "tasks.json"]),
    control(&[".vscode", "launch.json"]),
    control(&[".vscode", "mcp.json"]),
    control(&[".config", "code", "user"]),
    control(&[".config", "cursor", "user"]),
    control(&[".zed", "settings.json"]),
    control(&[".zed", "tasks.json"]),
    control(&[".zed", "debug.json"]),
    control(&[".config", "zed"]),
    // opencode.
    control(&["opencode.json"]),
    control(&["opencode.jsonc"]),
    ClientControl { names: &[".opencode"], ordinary: &["agents.md", "plans"] },
    control(&[".config", "opencode"]),
    // goose: settings, and plugins, whose hooks run commands.
    control(&[".config", "goose"]),
    control(&[".agents", "plugins"]),
    // GitHub Copilot.
    control(&[".copilot"]),
    control(&[".config", "github-copilot"]),
    control(&[".github", "hooks"]),
    // Windsurf, Roo Code, Kilo Code, Kiro, Amazon Q, Crush.
    control(&[".windsurf", "hooks.json"]),
    control(&[".codeium"]),
    control(&[".roo", "mcp.json"]),
    control(&[".kilocode", "mcp.json"]),
    control(&[".kiro", "settings"]),
    control(&[".kiro", "hooks"]),
    control(&[".kiro", "agents"]),
    control(&[".amazonq"]),
    control(&["crush.json"]),
    control(&[".crush.json"]),
    control(&[".config", "crush"]),
];
/// Endings of file names with the settings and tasks of an editor.
const CONTROL_ENDINGS: &[&str] = &[".code-workspace"];

/// Whether a change of this path can change what an agent's client runs or permits, by the names of the path alone. Call
/// it on the path as spoken and again on the path as resolved. A path that stops at a directory above a control file
/// counts as well: whoever renames another directory to `.vscode` brings its `settings.json` along.
pub fn is_client_control(path: &Path) -> bool {
    let names: Vec<String> = path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
    let ends = names.last().is_some_and(|last| CONTROL_ENDINGS.iter().any(|ending| last.ends_with(ending)));
    ends || (0..names.len()).any(|from| {
        let tail = names.get(from..).unwrap_or_default();
        CLIENT_CONTROLS.iter().any(|entry| entry.covers(tail))
    })
}

impl ClientControl {
    /// Whether these names begin with the entry's, or end within them.
    fn covers(&self, names: &[String]) -> bool {
        let is_same = self.names.iter().zip(names).all(|(wanted, name)| wanted == name);
        let below = names.get(self.names.len()).map(String::as_str);
        is_same && below.is_none_or(|below| !self.ordinary.contains(&below))
    }
}

/// Where client control files are right below a directory, whether they exist or not.
pub fn client_control_places(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let dir = dir.to_owned();
    CLIENT_CONTROLS.iter().map(move |entry| entry.names.iter().fold(dir.clone(), |path, name| path.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_configure_a_client_are_known() {
        for path in [
            ".claude/settings.local.json",
            ".claude/settings.json",
            ".claude/hooks/x.sh",
            ".claude/commands/a/b.md",
            ".claude/agents/x.md",
            ".claude/skills/x/SKILL.md",
            ".claude",
            ".CLAUDE/Settings.json",
            ".mcp.json",
            ".gemini/settings.json",
            ".codex/config.toml",
            ".cursor/hooks.json",
            ".vscode/tasks.json",
            ".vscode/settings.json",
            ".vscode",
            "opencode.json",
            "opencode.jsonc",
            ".opencode/plugin/x.js",
            "packages/a/.mcp.json",
            "team.code-workspace",
            "/home/u/.claude.json",
            "/home/u/.claude/settings.json",
            "/home/u/.config/opencode/opencode.json",
            "/home/u/.config/goose/config.yaml",
            ".agents/plugins/haft/hooks/hooks.json",
            ".agents",
            "/home/u/.config/Code/User/settings.json",
            ".claude/worktrees/w/.claude/settings.json",
        ] {
            assert!(is_client_control(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn words_for_the_model_and_ordinary_editor_files_are_no_control_files() {
        for path in [
            "",
            "CLAUDE.md",
            "AGENTS.md",
            ".goosehints",
            ".claude/CLAUDE.md",
            ".claude/rules/style.md",
            ".claude/worktrees/w/src/main.rs",
            ".cursor/rules/style.mdc",
            ".vscode/extensions.json",
            ".vscode/rust.code-snippets",
            ".github/workflows/ci.yml",
            ".config/nextest.toml",
            ".agents/skills/review/SKILL.md",
            "docs/opencode.json.md",
            "src/claude/settings.json",
        ] {
            assert!(!is_client_control(Path::new(path)), "{path}");
        }
    }
}
