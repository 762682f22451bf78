//! Names that other agents have for their tools, where no dialect knows them.

use super::elsewhere;

/// The names, and the canonical tools that they mean.
const NAMES: &[(&str, &str)] = &[
    ("MultiEdit", "file.edit"),
    ("LS", "file.list"),
    ("AskUserQuestion", "user.ask"),
    ("Task", "agent.spawn"),
    ("Skill", "skill.read"),
    ("BashOutput", "process.output"),
    ("KillBash", "process.kill"),
    ("KillShell", "process.kill"),
    ("list_directory", "file.list"),
    ("read_many_files", "file.read"),
    ("replace", "file.edit"),
    ("search_file_content", "file.grep"),
    ("grep_search", "file.grep"),
    ("glob", "file.glob"),
    ("run_shell_command", "shell.exec"),
    ("web_fetch", "web.fetch"),
    ("google_web_search", "web.search"),
    ("save_memory", "memory.store"),
    ("activate_skill", "skill.read"),
];

/// The canonical tool that another agent's name means: Claude Code's, Gemini CLI's, or that of any dialect.
pub fn client_tool(name: &str) -> Option<&'static str> {
    let listed = NAMES.iter().find(|(known, _)| *known == name).map(|(_, tool)| *tool);
    listed.or_else(|| elsewhere(name).first().map(|entry| entry.canonical()))
}
