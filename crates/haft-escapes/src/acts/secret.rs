//! Secrets of whoever calls haft, and of haft itself.

use super::process::{every, memory};
use super::{Act, Sight};
use crate::attack::{Brief, Tried, secrets, stopped};
use crate::sys::call;

pub(crate) const ACTS: &[Act] = &[
    leak("secret.environment", |_| environment()),
    leak("secret.proc_self_environ", |_| secrets(&std::fs::read("/proc/self/environ")?)),
    leak("secret.parent_environ", |_| secrets(&std::fs::read(format!("/proc/{}/environ", parent()))?)),
    leak("secret.any_environ", |_| every("environ")),
    leak("secret.parent_memory", |_| memory(&parent())),
    leak("secret.any_memory", |_| any_memory()),
    leak("secret.own_memory", |_| memory("self")),
    leak("secret.thread_environ", |_| secrets(&std::fs::read(format!("/proc/{0}/task/{0}/environ", parent()))?)),
];

const fn leak(name: &'static str, attempt: fn(&Brief) -> Tried) -> Act {
    Act::new(name, attempt).seen(Sight::Secret)
}

fn parent() -> String {
    call(libc::SYS_getppid, &[]).unwrap_or(1).to_string()
}

fn environment() -> Tried {
    let all: String =
        std::env::vars_os().map(|(name, value)| format!("{}={}\n", name.display(), value.display())).collect();
    secrets(all.as_bytes())
}

fn any_memory() -> Tried {
    let me = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut others = entries.filter(|name| name.parse::<u32>().is_ok() && *name != me);
    others.find_map(|name| memory(&name).ok()).map_or_else(|| stopped("no process is open"), Ok)
}
