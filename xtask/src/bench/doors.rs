//! What the doors cost: `haft mcp` beside servers made with the other SDKs that do the same read, the gateway by
//! itself, and a bridged server beside being asked directly.

use super::haft::Haft;
use super::report::{Row, table};
use super::samples::Samples;
use crate::doors::{Address, Http, Lines, Pin, Scene, resident_mb, trivial};
use crate::{needs, real, sh, soak};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::BufRead;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const STARTS: usize = 30;
const CALLS: usize = 3_000;
const PIPELINED: u64 = 30_000;
const CONNECTIONS: usize = 8;
const GATEWAY_CALLS: usize = 5_000;
const LISTENERS: usize = 1_000;
const EVENTS: usize = 5;

const PROSE: &str = "\
`haft mcp` and its peers are pinned to one core where `taskset` is there; the client that measures runs beside them.
The read is of the same small file by each: file.read of haft, read_text_file of server-filesystem (Node), and a tool
that returns the file's text made with the Python SDK. haft's includes decision, record and line numbers. The
gateway is asked by eight connections that are kept, from the same machine and its same cores. A bridged server is
asked directly and through haft in turns.

";

pub(super) fn body(haft: &Haft) -> Result<String> {
    let (program, _) = haft.program();
    let mut rows = Vec::new();
    let mut missing = Vec::new();
    rows.extend(stdio(program, &mut missing)?);
    rows.extend(gateway(program)?);
    match bridged(program) {
        Ok(row) => rows.push(row),
        Err(error) => rows.push(Row::missing("a call of a bridged server's tool", &format!("{error:#}"))),
    }
    needs::confess(&missing);
    Ok(format!("{PROSE}{}", table(&rows)))
}

/// A server that reads a file, and how it is asked to.
struct Reader {
    name: &'static str,
    command: Command,
    tool: &'static str,
    args: Value,
}

fn stdio(haft: &Path, missing: &mut Vec<String>) -> Result<Vec<Row>> {
    let scene = Scene::new("bench-doors", haft, "")?;
    let mut own = Reader {
        name: "haft",
        command: scene.haft(&["mcp"], Pin::OneCore),
        tool: "file_read",
        args: json!({ "path": "small.txt" }),
    };
    let starts = starts(&mut own.command)?;
    let (mut lines, _) = Lines::start(&mut own.command)?;
    let idle = resident_mb(lines.pid())?;
    let (tool, args) = trivial();
    let called = timed(CALLS, || lines.call(tool, &args).map(drop))?;
    let rate = rate(PIPELINED, lines.pipelined((tool, &args), PIPELINED)?);
    let mut rows = vec![
        Row::within("`haft mcp`: spawn to the answer to initialize, p50", millis(starts.p50()), "ms", 15.0),
        Row::within("`haft mcp`: calc.eval, p50", micros(called.p50()), "µs", 150.0),
        Row::only("`haft mcp`: calc.eval, p99", micros(called.percentile(99)), "µs"),
        Row::at_least("`haft mcp`: calc.eval, pipelined", rate, "calls/s", 15_000.0),
        Row::within("`haft mcp`: memory, idle", idle, "MB", 25.0),
    ];
    for mut peer in peers(&scene, missing) {
        rows.extend(beside(&mut own, &mut peer)?);
    }
    Ok(rows)
}

/// The same read by both, in turns of many.
fn beside(own: &mut Reader, peer: &mut Reader) -> Result<Vec<Row>> {
    let their_starts = starts(&mut peer.command)?;
    let our_starts = starts(&mut own.command)?;
    let (mut theirs, _) = Lines::start(&mut peer.command)?;
    let (mut ours, _) = Lines::start(&mut own.command)?;
    let idle = (resident_mb(theirs.pid())?, resident_mb(ours.pid())?);
    let (mut peer_times, mut our_times) = (Vec::new(), Vec::new());
    for _ in 0..CALLS / 2 {
        peer_times.push(time(|| theirs.call(peer.tool, &peer.args).map(drop))?);
        our_times.push(time(|| ours.call(own.tool, &own.args).map(drop))?);
    }
    let name = peer.name;
    let rates = (
        rate(PIPELINED / 10, theirs.pipelined((peer.tool, &peer.args), PIPELINED / 10)?),
        rate(PIPELINED / 10, ours.pipelined((own.tool, &own.args), PIPELINED / 10)?),
    );
    Ok(vec![
        Row::compared("start to the answer to initialize", (name, &their_starts), &our_starts),
        Row::compared("a small file read", (name, &Samples::new(peer_times)), &Samples::new(our_times)),
        Row::only("the same, pipelined", rates.1, "calls/s")
            .peer(format!("{name}: {:.0} calls/s", rates.0), rates.1 / rates.0),
        Row::only("memory, idle", idle.1, "MB").peer(format!("{name}: {:.1} MB", idle.0), idle.1 / idle.0),
    ])
}

fn peers(scene: &Scene, missing: &mut Vec<String>) -> Vec<Reader> {
    let mut there = Vec::new();
    let project = scene.project().to_string_lossy().into_owned();
    let path = scene.project().join("small.txt");
    let mut add = |reader: Result<Reader>| match reader {
        Ok(reader) => there.push(reader),
        Err(error) => missing.push(format!("could not: {error:#}; a peer is not measured")),
    };
    add(real::found("HAFT_TEST_NODE").and_then(|node| {
        let modules = real::found("HAFT_TEST_NODE_MODULES")?;
        let script = modules.join("@modelcontextprotocol/server-filesystem/dist/index.js");
        let command = scene.command(&node, &[&script.to_string_lossy(), &project], Pin::OneCore);
        Ok(Reader { name: "server-filesystem", command, tool: "read_text_file", args: json!({ "path": path }) })
    }));
    add(real::found("HAFT_TEST_PYTHON").map(|python| {
        let script = sh::root().join("tests/real/python/reader.py");
        let command = scene.command(&python, &[&script.to_string_lossy()], Pin::OneCore);
        Reader { name: "Python SDK", command, tool: "read", args: json!({ "path": path }) }
    }));
    there
}

fn starts(command: &mut Command) -> Result<Samples> {
    let started = (0..STARTS).map(|_| Lines::start(command).map(|(_, took)| took));
    Ok(Samples::new(started.collect::<Result<_>>()?))
}

fn gateway(haft: &Path) -> Result<Vec<Row>> {
    let scene = Scene::new("bench-gateway", haft, "")?;
    let gateway = scene.gateway()?;
    let address = &gateway.address;
    let begun = Instant::now();
    pool(address, Duration::ZERO)?;
    let calls = CONNECTIONS * GATEWAY_CALLS;
    let whole = rate(calls as u64, begun.elapsed());
    let held = resident_mb(gateway.pid())?;
    #[expect(clippy::cast_precision_loss, reason = "a handful of connections")]
    let turn = Duration::from_secs_f64(CONNECTIONS as f64 * 2.0 / whole);
    let half = pool(address, turn)?;
    let told = events(address)?;
    Ok(vec![
        Row::at_least("gateway: calc.eval over REST", whole, "calls/s", 10_000.0),
        Row::within("gateway: the same at half that rate, p99", millis(half.percentile(99)), "ms", 5.0),
        Row::only("gateway: memory after that", held, "MB"),
        Row::within("gateway: 1 000 listeners have one event, p50", millis(told.p50()), "ms", 50.0),
    ])
}

/// Many connections that call at once. With a turn, each calls once a turn, so that calls come evenly; one that is
/// late counts from when it was due.
fn pool(address: &Address, turn: Duration) -> Result<Samples> {
    let one = || -> Result<Vec<Duration>> {
        let mut http = Http::connect(address)?;
        let (tool, args) = trivial();
        let (mut times, mut due) = (Vec::with_capacity(GATEWAY_CALLS), Instant::now());
        for _ in 0..GATEWAY_CALLS {
            if turn.is_zero() {
                due = Instant::now();
            } else {
                due += turn;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            http.call(tool, &args)?;
            times.push(due.elapsed());
        }
        Ok(times)
    };
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(one)).collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| bail!("a connection broke")));
        ended.collect::<Result<Vec<_>>>()
    })?;
    Ok(Samples::new(all.concat()))
}

/// From a call to when the last of many listeners has heard of it. What one has not read yet waits in its socket,
/// so that they can be looked at one after the other.
fn events(address: &Address) -> Result<Samples> {
    let mut listeners = (0..LISTENERS).map(|_| address.listen()).collect::<Result<Vec<_>>>()?;
    let mut http = Http::connect(address)?;
    let mut heard = Vec::new();
    for round in 0..EVENTS {
        let mark = format!("{round}+1000000");
        let begun = Instant::now();
        http.call("calc_eval", &json!({ "expression": mark }))?;
        for listener in &mut listeners {
            hear(listener, "tool_end")?;
        }
        heard.push(begun.elapsed());
    }
    Ok(Samples::new(heard))
}

/// Reads up to the event of a name.
fn hear(from: &mut impl BufRead, name: &str) -> Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        if from.read_line(&mut line).context("a listener cannot hear")? == 0 {
            bail!("a listener was turned away");
        }
        if line.starts_with("event:") && line.contains(name) {
            return Ok(());
        }
    }
}

/// The same call of the same server directly and through haft, in turns.
fn bridged(haft: &Path) -> Result<Row> {
    let scene = soak::bridged(haft, "bench-bridge")?;
    let [node, script] = soak::everything()?;
    let mut direct = scene.command(&node, &[&script.to_string_lossy(), "stdio"], Pin::Anywhere);
    let (mut direct, _) = Lines::start(&mut direct)?;
    let (mut through, _) = Lines::start(&mut scene.haft(&["mcp"], Pin::Anywhere))?;
    let args = json!({ "message": "hi" });
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for round in 0..CALLS {
        let one = time(|| direct.call("echo", &args).map(drop))?;
        let other = time(|| through.call(soak::ECHO, &args).map(drop))?;
        // The first through haft starts the server.
        if round >= CALLS / 10 {
            theirs.push(one);
            ours.push(other);
        }
    }
    let (theirs, ours) = (Samples::new(theirs), Samples::new(ours));
    let added = micros(ours.p50().saturating_sub(theirs.p50()));
    let peer = format!("directly: {:.0} µs", micros(theirs.p50()));
    Ok(Row::within("a call of a bridged server's tool, added by haft", added, "µs", 200.0)
        .peer(peer, ours.ratio(&theirs)))
}

fn timed(rounds: usize, mut round: impl FnMut() -> Result<()>) -> Result<Samples> {
    Ok(Samples::new((0..rounds).map(|_| time(&mut round)).collect::<Result<_>>()?))
}

fn time(round: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let begun = Instant::now();
    round()?;
    Ok(begun.elapsed())
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand calls")]
fn rate(calls: u64, took: Duration) -> f64 {
    calls as f64 / took.as_secs_f64()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_hears_the_event_it_waits_for() {
        let mut stream = "id: 1\nevent: tool_start\ndata: {}\n\nid: 2\nevent: tool_end\n".as_bytes();
        hear(&mut stream, "tool_end").unwrap();
        assert!(hear(&mut stream, "tool_end").is_err());
    }
}
