//! system.info: what kind of machine this is.
//!
//! The host's name is left out on purpose: it says who somebody is and helps no task.

use crate::scene::Scene;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use haft_core::preview::size;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    let spec = declare(
        "system.info",
        "Get facts about this machine: operating system, kernel, CPUs, memory, project root, local time and time zone.",
    )
    .hint("os platform kernel cpu memory time date timezone version");
    Blocking::tool(spec, |scene| Ok(info(scene)))
}

/// One thing known about the machine. What cannot be found out is not there.
struct Fact {
    key: &'static str,
    shown: String,
    data: Value,
}

impl Fact {
    fn text(key: &'static str, text: impl Into<String>) -> Self {
        let shown = text.into();
        Self { key, data: shown.clone().into(), shown }
    }

    fn bytes(key: &'static str, bytes: u64) -> Self {
        Self { key, shown: size(usize::try_from(bytes).unwrap_or(usize::MAX)), data: bytes.into() }
    }
}

fn info(scene: &Scene) -> Reply {
    let facts = facts(scene);
    let width = facts.iter().map(|fact| fact.key.len()).max().unwrap_or(0) + 1;
    let lines: Vec<String> =
        facts.iter().map(|fact| format!("{:width$} {}", format!("{}:", fact.key), fact.shown)).collect();
    let data: Map<String, Value> = facts.into_iter().map(|fact| (fact.key.to_owned(), fact.data)).collect();
    Reply::text(lines.join("\n")).data(data.into())
}

fn facts(scene: &Scene) -> Vec<Fact> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let memory = read("/proc/meminfo");
    let cpus = std::thread::available_parallelism().ok().map(usize::from);
    let now = jiff::Zoned::now();
    [
        Some(Fact::text("os", os_name(&read("/etc/os-release")).unwrap_or(std::env::consts::OS))),
        rustix::system::uname().release().to_str().ok().map(|release| Fact::text("kernel", release)),
        Some(Fact::text("arch", std::env::consts::ARCH)),
        cpus.map(|count| Fact { key: "cpus", shown: count.to_string(), data: json!(count) }),
        meminfo(&memory, "MemTotal").map(|bytes| Fact::bytes("memory_total", bytes)),
        meminfo(&memory, "MemAvailable").map(|bytes| Fact::bytes("memory_available", bytes)),
        Some(Fact::text("root", crate::workspace::display(scene.workspace().root().as_os_str()))),
        Some(Fact::text("haft", env!("CARGO_PKG_VERSION"))),
        Some(Fact::text("time", now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())),
        now.time_zone().iana_name().map(|zone| Fact::text("zone", zone)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The distribution's name in `/etc/os-release`.
fn os_name(release: &str) -> Option<&str> {
    release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).map(|name| name.trim_matches(['"', '\'']))
}

/// A line of `/proc/meminfo`, in bytes.
fn meminfo(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;

    #[test]
    fn the_machine_is_described_as_text_and_data() {
        let stage = Stage::new();
        let reply = stage.act(&tool(), json!({})).unwrap();
        let data = reply.data.unwrap();
        assert_eq!(data["haft"], env!("CARGO_PKG_VERSION"));
        assert_eq!(data["root"], stage.root().to_str().unwrap());
        assert!(data["memory_total"].as_u64() > Some(1 << 20));
        assert!(data["time"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
        let root = format!("root:             {}", stage.root().display());
        assert!(reply.text.lines().any(|line| line == root), "{}", reply.text);
    }

    #[test]
    fn the_host_is_not_named() {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let reply = Stage::new().act(&tool(), json!({})).unwrap();
        assert!(!reply.text.split_whitespace().any(|word| word == host));
    }

    #[test]
    fn what_is_missing_is_absent() {
        assert_eq!(os_name("NAME=x\n"), None);
        assert_eq!(os_name("PRETTY_NAME=\"Some Linux 1\"\n"), Some("Some Linux 1"));
        assert_eq!(meminfo("", "MemTotal"), None);
        assert_eq!(meminfo("MemTotal:  2 kB\nMemTotalX: 3 kB\n", "MemTotal"), Some(2048));
    }
}
