//! Workers that are killed, and a database that goes away, while steps with effects run: none is lost, none is done twice,
//! and none before what it waits for.
//!
//! `HAFT_CHAOS_STEPS` and `HAFT_CHAOS_SEED` make it longer and other; the effects are lines in a file, written by a tool that
//! does nothing else.

use crate::real::Server;
use haft_core::{CallError, ToolSpec};
use haft_runtime::scene::Scene;
use haft_runtime::tool::{BoxFuture, Reply, Tool};
use haft_runtime::work::{Until, Wanted};
use haft_runtime::{Haft, Halt, Settings, Workspace, Yes};
use haft_store::Store;
use haft_store::work::Settle;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WORKERS: usize = 4;
const LEASE: Duration = Duration::from_secs(2);
/// How long a run may take before something is wrong: so much, and so much for each step.
const PATIENCE: (Duration, Duration) = (Duration::from_mins(2), Duration::from_millis(100));

/// Writes a line into the ledger.
struct Ledger {
    spec: Arc<ToolSpec>,
    file: PathBuf,
}

impl Ledger {
    fn tool(file: PathBuf) -> Arc<dyn Tool> {
        let spec = ToolSpec::new("ledger.enter", "Enter a line").unwrap().acts().input(json!({
            "type": "object", "properties": {"line": {"type": "string", "description": "The line"}}, "required": ["line"],
        }));
        Arc::new(Self { spec: Arc::new(spec), file })
    }
}

impl Tool for Ledger {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let line = scene.args()["line"].as_str().unwrap_or_default().to_owned();
            tokio::time::sleep(Duration::from_micros(500)).await;
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&self.file).unwrap();
            file.write_all(format!("{line}\n").as_bytes()).unwrap();
            tokio::time::sleep(Duration::from_micros(500)).await;
            Ok(Reply::text(line))
        })
    }
}

fn layer(dir: &Path, store: &str) -> Haft {
    let workspace = Workspace::new(&dir.join("project")).unwrap();
    let store = Store::open(Path::new(store)).unwrap();
    let haft = Haft::new(workspace, store, Settings::new(dir.join("data")));
    haft.registry().register(Ledger::tool(dir.join("ledger"))).unwrap();
    haft
}

/// Not a test of its own: what the others start as a worker, in a process that can be killed.
#[test]
fn worker_process() {
    let Ok(dir) = std::env::var("HAFT_CHAOS_WORKER") else { return };
    let store = std::env::var("HAFT_CHAOS_STORE").unwrap();
    crate::block(async {
        let haft = layer(Path::new(&dir), &store);
        let mut worker = haft.worker(16);
        worker.lease = LEASE;
        haft.work(&worker, &Until::Told, &Yes, &Halt::new()).await.unwrap();
    });
}

fn start(dir: &Path, store: &str) -> Child {
    let log = std::fs::OpenOptions::new().append(true).create(true).open(dir.join("workers.log")).unwrap();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "chaos::worker_process", "--nocapture"])
        .env("HAFT_CHAOS_WORKER", dir)
        .env("HAFT_CHAOS_STORE", store)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }
}

fn asked(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Lets a run come to its end while `disturb` does what it can against that.
fn survive(store: &str, dir: &Path, mut disturb: impl FnMut(usize)) {
    let (count, mut chance) = (asked("HAFT_CHAOS_STEPS", 300), Chance(asked("HAFT_CHAOS_SEED", 7) as u64));
    let steps: Vec<Value> = (0..count)
        .map(|at| {
            let needs: Vec<String> =
                (0..chance.below(3)).filter(|_| at > 0).map(|_| format!("s{}", chance.below(at.max(1)))).collect();
            json!({"id": format!("s{at}"), "tool": "ledger.enter", "args": {"line": format!("s{at}")}, "needs": needs})
        })
        .collect();
    let needs: HashMap<String, Vec<String>> = steps
        .iter()
        .map(|step| (step["id"].as_str().unwrap().to_owned(), serde_json::from_value(step["needs"].clone()).unwrap()))
        .collect();
    let plan = serde_json::from_value(json!({ "steps": steps })).unwrap();
    let haft = layer(dir, store);
    let ledger = || std::fs::read_to_string(dir.join("ledger")).unwrap_or_default();
    let run = crate::block(async { haft.begin(Wanted { plan, ..Wanted::default() }).await.unwrap().id });
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| start(dir, store)).collect();
    let patience = PATIENCE.0 + PATIENCE.1 * u32::try_from(count).unwrap();
    let (begun, mut round, mut killed, mut settled) = (Instant::now(), 0, 0, 0);
    loop {
        std::thread::sleep(Duration::from_millis(100 + u64::try_from(chance.below(300)).unwrap()));
        let seen = crate::block(async { haft.store().run_seen(&run).await.unwrap().unwrap() });
        if seen.state != "running" {
            assert_eq!(seen.state, "done", "{:?}", seen.why);
            break;
        }
        assert!(begun.elapsed() < patience, "{} steps are left after {:?}", seen.unsettled, begun.elapsed());
        let victim = chance.below(WORKERS);
        workers[victim].kill().unwrap();
        workers[victim].wait().unwrap();
        killed += 1;
        workers[victim] = start(dir, store);
        disturb(round);
        round += 1;
        // What nobody knows is asked: whoever is asked looks into the ledger.
        let steps = crate::block(async { haft.store().steps(&run).await.unwrap() });
        let entered = ledger();
        for step in steps.iter().filter(|step| step.state == "uncertain") {
            let there = entered.lines().any(|line| line == step.id);
            let settle = if there { Settle::Done } else { Settle::Again };
            if crate::block(async { haft.store().settle_step(&run, &step.id, settle, "me").await.unwrap() }) {
                settled += 1;
            }
        }
    }
    for mut worker in workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    let entered = ledger();
    let order: HashMap<&str, usize> = entered.lines().enumerate().map(|(at, line)| (line, at)).collect();
    let twice: Vec<&str> =
        entered.lines().enumerate().filter(|(at, line)| order[line] != *at).map(|(_, line)| line).collect();
    for line in &twice {
        let all = crate::block(async { haft.store().records(0, 1_000_000, None).await.unwrap() });
        let nr: usize = line[1..].parse().unwrap();
        let of = format!("{run}-{nr}-");
        for record in all.iter().filter(|record| {
            record.body["call"].as_str().is_some_and(|call| call.starts_with(&of)) || record.body["step"] == **line
        }) {
            eprintln!("{line}: {} {}", record.seq, record.body);
        }
    }
    assert_eq!(entered.lines().count(), count, "none twice, after {killed} kills and {settled} questions");
    assert_eq!(order.len(), count, "none lost, after {killed} kills and {settled} questions");
    for (step, needs) in &needs {
        for need in needs {
            assert!(order[need.as_str()] < order[step.as_str()], "{step} before {need}");
        }
    }
    assert!(killed > 0);
    assert!(crate::block(async { haft.store().verify(None).await.unwrap().is_ok() }), "the log holds");
    eprintln!("{count} steps in {:?}: {killed} workers killed, {settled} questions answered", begun.elapsed());
}

fn ground() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
    dir
}

#[test]
fn killed_workers_lose_nothing_and_double_nothing_on_a_file() {
    let dir = ground();
    survive(dir.path().join("haft.db").to_str().unwrap(), dir.path(), |_| {});
}

#[test]
fn killed_workers_and_a_killed_server_lose_nothing_and_double_nothing() {
    let Some(server) = Server::start("-c max_connections=100", &[]) else { return };
    let dir = ground();
    survive(&server.address(), dir.path(), |round| {
        if round % 8 == 3 {
            server.crash();
            server.up();
        }
    });
}
