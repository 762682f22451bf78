//! What `haft hook` adds to a call of an agent's own tool: the whole process, beside hooks that do nothing.

use super::haft::Haft;
use super::report::Row;
use super::samples::{Rounds, Samples, interleaved};
use super::tree;
use anyhow::Result;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

const ROUNDS: Rounds = Rounds { warm_up: 5, counted: 100 };
/// What a hook may cost.
const COST_MS: f64 = 15.0;

/// One event, and what it is called in the table.
struct HookEvent {
    what: &'static str,
    event: Value,
}

pub(super) fn rows(haft: &Haft) -> Result<Vec<Row>> {
    let dir = tree::project("bench-hooks")?;
    fs::write(dir.join("small.txt"), "a small file\n")?;
    let (_, home) = haft.program();
    let config = home.join("XDG_CONFIG_HOME/haft/config.yml");
    fs::create_dir_all(home.join("XDG_CONFIG_HOME/haft"))?;
    fs::write(&config, "approval: {auto_approve: [file.edit]}\n")?;
    let measured = events(&dir).iter().map(|event| row(haft, &dir, event)).collect();
    fs::remove_file(&config)?;
    measured
}

fn events(dir: &Path) -> [HookEvent; 3] {
    let event = |name: &str, tool: &str, input: Value| {
        json!({
            "session_id": "bench", "cwd": dir, "hook_event_name": name, "tool_name": tool, "tool_input": input,
            "tool_use_id": "bench", "tool_response": {"stdout": "small.txt"},
        })
    };
    let edit = json!({"file_path": dir.join("small.txt"), "old_string": "small", "new_string": "large"});
    [
        HookEvent {
            what: "`haft hook`: a command that only reads, before",
            event: event("PreToolUse", "Bash", json!({"command": "ls | head -3"})),
        },
        HookEvent {
            what: "`haft hook`: an edit with its before-image, before",
            event: event("PreToolUse", "Edit", edit),
        },
        HookEvent {
            what: "`haft hook`: a command, after",
            event: event("PostToolUse", "Bash", json!({"command": "ls | head -3"})),
        },
    ]
}

/// The hook, beside a shell that reads the event and does nothing with it.
fn row(haft: &Haft, dir: &Path, HookEvent { what, event }: &HookEvent) -> Result<Row> {
    let file = dir.join("event.json");
    fs::write(&file, event.to_string())?;
    let mut peer = by_shell(haft, dir, "sh -c 'cat > /dev/null'", &file);
    let (program, _) = haft.program();
    let mut ours = by_shell(haft, dir, &format!("'{}' hook claude", program.display()), &file);
    let (theirs, own): (Samples, Samples) = interleaved(ROUNDS, &mut peer, &mut ours)?;
    let ratio = own.ratio(&theirs);
    let (own_ms, peer_ms) = (own.p50().as_secs_f64() * 1e3, theirs.p50().as_secs_f64() * 1e3);
    Ok(Row::within(what, own_ms, "ms", COST_MS).peer(format!("sh that does nothing: {peer_ms:.2} ms"), ratio))
}

/// A hook as agents run one: by a shell, with the event on its standard input.
fn by_shell(haft: &Haft, dir: &Path, hook: &str, event: &Path) -> Command {
    let (_, home) = haft.program();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{hook} < '{}' > /dev/null", event.display())]).current_dir(dir);
    command.env_remove("HAFT_STORE").env("HOME", home);
    for variable in ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        command.env(variable, home.join(variable));
    }
    command
}
