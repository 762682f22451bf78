//! `cargo xtask soak`: many calls through every door, and memory must stay flat. What leaks a little a call shows
//! as a slope long before it hurts.

use crate::doors::{Address, Http, Lines, Pin, Scene, Socket, resident_mb, trivial};
use crate::{real, sh};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

/// What a soak is where nobody says otherwise.
const CALLS: u64 = 100_000;

/// So many of them, and the rest of the tests too, are over soon.
pub(crate) const BRIEF: u64 = 5_000;

const BRIDGED: &str = "a bridged server";

/// How often memory is looked at.
const LOOKS: u64 = 40;

/// How much more may be held at the end than after warming up: what allocators and caches do in good health.
const GROWTH: f64 = 1.15;
const SLACK_MB: f64 = 4.0;

/// `cargo xtask soak [--calls N] [--with PROGRAM]`, usually with the binary that people run.
pub(crate) fn command(args: &[&str]) -> Result<()> {
    let (mut calls, mut program) = (CALLS, None);
    for option in args.chunks(2) {
        match option {
            ["--calls", number] => calls = number.parse().context("--calls takes a number")?,
            ["--with", path] => program = Some(std::path::absolute(path)?),
            other => bail!("soak takes --calls N and --with PROGRAM, not {}", other.join(" ")),
        }
    }
    if let Some(program) = program {
        return run(&program, calls);
    }
    sh::run(&mut sh::cargo(&["build", "--release", "--package", "haft"]))?;
    run(&sh::root().join("target/release/haft"), calls)
}

/// So many calls of this binary through one door.
type Soak = fn(&Path, u64) -> Result<Memory>;

/// Every door in turn. Each is tried even if one before it failed.
pub(crate) fn run(haft: &Path, calls: u64) -> Result<()> {
    let doors: [(&str, Soak); 5] =
        [("MCP over stdio", stdio), ("REST", rest), ("WebSocket", socket), ("MCP over HTTP", mcp), (BRIDGED, bridge)];
    let mut failed = Vec::new();
    for (door, soak) in doors {
        if door == BRIDGED && real::without_mcp() {
            println!("soak: {door}: left out, as was said");
            continue;
        }
        let begun = Instant::now();
        match soak(haft, calls).and_then(|memory| memory.judge()) {
            Ok(said) => println!("soak: {door}: {calls} calls in {:.1} s, {said}", begun.elapsed().as_secs_f64()),
            Err(error) => {
                println!("soak: {door}: {error:#}");
                failed.push(door);
            }
        }
    }
    if !failed.is_empty() {
        bail!("soak: {} failed", failed.join(", "));
    }
    Ok(())
}

fn stdio(haft: &Path, calls: u64) -> Result<Memory> {
    let scene = Scene::new("soak-stdio", haft, "")?;
    let (mut lines, _) = Lines::start(&mut scene.haft(&["mcp"], Pin::Anywhere))?;
    let (tool, args) = trivial();
    let pid = lines.pid();
    Memory::watched(pid, calls, || lines.call(tool, &args).map(drop))
}

fn rest(haft: &Path, calls: u64) -> Result<Memory> {
    let (tool, args) = trivial();
    gateway(haft, calls, "soak-rest", |address| {
        let mut http = Http::connect(address)?;
        Ok(move || http.call(tool, &args))
    })
}

fn mcp(haft: &Path, calls: u64) -> Result<Memory> {
    let (tool, args) = trivial();
    gateway(haft, calls, "soak-mcp", |address| {
        let mut http = Http::connect(address)?;
        http.initialize()?;
        Ok(move || http.call_mcp(tool, &args))
    })
}

fn socket(haft: &Path, calls: u64) -> Result<Memory> {
    let (tool, args) = trivial();
    gateway(haft, calls, "soak-socket", |address| {
        let mut socket = Socket::connect(address)?;
        Ok(move || socket.call(tool, &args).map(drop))
    })
}

fn gateway<C: FnMut() -> Result<()>>(
    haft: &Path,
    calls: u64,
    name: &str,
    open: impl FnOnce(&Address) -> Result<C>,
) -> Result<Memory> {
    let scene = Scene::new(name, haft, "")?;
    let gateway = scene.gateway()?;
    let call = open(&gateway.address)?;
    Memory::watched(gateway.pid(), calls, call)
}

fn bridge(haft: &Path, calls: u64) -> Result<Memory> {
    let scene = bridged(haft, "soak-bridge")?;
    let (mut lines, _) = Lines::start(&mut scene.haft(&["mcp"], Pin::Anywhere))?;
    let args = json!({ "message": "hi" });
    let pid = lines.pid();
    Memory::watched(pid, calls, || lines.call(ECHO, &args).map(drop))
}

/// The tool of the reference server that does least.
pub(crate) const ECHO: &str = "mcp__everything__echo";

/// A scene in which the reference server is bridged, and allowed to be called unasked.
pub(crate) fn bridged(haft: &Path, name: &str) -> Result<Scene> {
    let scene = Scene::new(name, haft, &bridge_config(&everything()?).to_string())?;
    // A server that starts with its first call has to be met once before its tools are known.
    sh::capture(scene.haft(&["mcp", "test", "everything"], Pin::Anywhere).stdin(Stdio::null()))?;
    Ok(scene)
}

/// The command that starts the reference server.
pub(crate) fn everything() -> Result<[PathBuf; 2]> {
    let node = real::found("HAFT_TEST_NODE")?;
    let modules = real::found("HAFT_TEST_NODE_MODULES")?;
    Ok([node, modules.join("@modelcontextprotocol/server-everything/dist/index.js")])
}

/// JSON is YAML, too.
fn bridge_config([node, script]: &[PathBuf; 2]) -> Value {
    let packages = sh::root().join("target/needs");
    let server = json!({ "command": node, "args": [script, "stdio"], "read": [packages] });
    json!({ "mcp": { "servers": { "everything": server } }, "approval": { "auto_approve": ["mcp:everything:echo"] } })
}

/// What a process held in the course of many calls.
#[derive(Debug)]
struct Memory(Vec<f64>);

impl Memory {
    fn watched(pid: u32, calls: u64, mut call: impl FnMut() -> Result<()>) -> Result<Self> {
        let mut held = Vec::new();
        let step = (calls / LOOKS).max(1);
        for number in 1..=calls {
            call().with_context(|| format!("call {number}"))?;
            if number % step == 0 {
                held.push(resident_mb(pid)?);
            }
        }
        Ok(Self(held))
    }

    /// The second quarter beside the last: by then everything is warm, and nothing has a reason to grow.
    fn judge(&self) -> Result<String> {
        let quarter = self.0.len() / 4;
        let early = median(self.0.get(quarter..2 * quarter).unwrap_or_default())?;
        let late = median(self.0.get(self.0.len() - quarter..).unwrap_or_default())?;
        if late > early * GROWTH + SLACK_MB {
            bail!("memory grows: {early:.1} MB in the second quarter, {late:.1} MB in the last");
        }
        Ok(format!("{early:.1} MB in the second quarter, {late:.1} MB in the last"))
    }
}

fn median(values: &[f64]) -> Result<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("too few calls to judge by")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_found_and_what_warms_up_is_not() {
        let slope = Memory((0..40).map(|look| 20.0 + f64::from(look)).collect());
        assert!(slope.judge().unwrap_err().to_string().contains("memory grows"));
        let warm = Memory((0..40).map(|look| if look < 8 { 10.0 } else { 24.0 + f64::from(look % 3) }).collect());
        assert!(warm.judge().is_ok());
        assert!(Memory(vec![1.0]).judge().is_err());
    }

    #[test]
    fn a_call_that_fails_ends_it_with_its_number() {
        let mut left = 3;
        let watched = Memory::watched(std::process::id(), 10, || {
            left -= 1;
            anyhow::ensure!(left > 0, "no more");
            Ok(())
        });
        assert_eq!(watched.unwrap_err().to_string(), "call 3");
    }
}
