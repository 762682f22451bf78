//! The agent whose hook this is, as a process.

use haft_store::{AgentProcess, process_birth};

/// The shells that agents start hooks by.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "fish", "ksh", "busybox"];
/// No more shells lie between an agent and its hook.
const SHELL_DEPTH_MAX: usize = 4;

/// The nearest process above this one that is no shell.
pub(super) fn agent() -> Option<AgentProcess> {
    let mut pid = i64::from(std::os::unix::process::parent_id());
    for _ in 0..SHELL_DEPTH_MAX {
        let (name, parent) = name_and_parent(pid)?;
        if !SHELLS.contains(&name.as_str()) || parent <= 1 {
            break;
        }
        pid = parent;
    }
    Some(AgentProcess { pid, born: process_birth(pid)? })
}

fn name_and_parent(pid: i64) -> Option<(String, i64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, rest) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    Some((name, rest.split_whitespace().nth(1)?.parse().ok()?))
}
