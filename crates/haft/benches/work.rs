//! What work that lasts costs: steps of pipelines on both databases, by one process and by several, and finding what is to be
//! done among a million. Prints one JSON object. `cargo bench -p haft --bench work -- --json`
//!
//! A step is a whole call of a tool that does nothing and says that it does something: it is validated, decided, its intent
//! is on disk before it runs, and its outcome is recorded. `HAFT_TEST_POSTGRES` names a server.

#![expect(clippy::print_stdout, reason = "the numbers are its output")]

use futures_util::StreamExt;
use haft::{Call, Haft, Halt, Settings, Store, Workspace, Yes, new_call_id};
use haft_core::{CallError, ToolSpec};
use haft_runtime::scene::Scene;
use haft_runtime::tool::{BoxFuture, Reply, Tool};
use haft_runtime::work::{Until, Wanted};
use haft_store::cells;
use haft_store::work::Claim;
use haft_store::{Kind, Mode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

const STEPS: usize = 10_000;
const CALLS: usize = 4000;
const SLOTS: u32 = 64;
/// How many processes work at once.
const WORKERS: [usize; 5] = [1, 2, 3, 4, 6];
const MANY: i64 = 1_000_000;
const CLAIMS: usize = 200;

/// Any failure ends the whole benchmark: a number that is missing must not look like one that is small.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Does nothing, and says that it does something.
struct Nothing(Arc<ToolSpec>);

impl Tool for Nothing {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn act<'a>(&'a self, _: &'a Scene) -> BoxFuture<'a, std::result::Result<Reply, CallError>> {
        Box::pin(async { Ok(Reply::text("done")) })
    }
}

fn layer(dir: &Path, store: &Path) -> Result<Haft> {
    std::fs::create_dir_all(dir.join("project/.git"))?;
    let haft = Haft::new(Workspace::new(&dir.join("project"))?, Store::open(store)?, Settings::new(dir.join("data")));
    let spec = ToolSpec::new("bench.nothing", "Does nothing")?.acts();
    let spec = spec.input(json!({"type": "object", "properties": {}}));
    haft.registry().register(Arc::new(Nothing(Arc::new(spec))))?;
    Ok(haft)
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let args: Vec<String> = std::env::args().collect();
    if let [_, word, dir, store] = args.as_slice()
        && word == "--work"
    {
        let haft = layer(Path::new(dir), Path::new(store))?;
        runtime.block_on(haft.work(&haft.worker(SLOTS), &Until::Told, &Yes, &Halt::new()))?;
        return Ok(());
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let file = runtime.block_on(alone(&dir.path().join("file"), &dir.path().join("haft.db")))?;
    let many = runtime.block_on(among_many(&dir.path().join("many.db")))?;
    let mut numbers = json!({"steps": STEPS, "slots": SLOTS, "file": file, "file_many": many});
    if let Ok(server) = std::env::var("HAFT_TEST_POSTGRES") {
        let database = |name: &str| -> Result<PathBuf> {
            let mut admin = postgres::Client::connect(&format!("{server}&dbname=postgres"), postgres::NoTls)?;
            admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name}; "))?;
            admin.batch_execute(&format!("CREATE DATABASE {name}"))?;
            Ok(PathBuf::from(format!("{server}&dbname={name}")))
        };
        let mut by_workers = Vec::new();
        for workers in WORKERS {
            let store = database("haft_bench_work")?;
            by_workers.push(json!({"workers": workers, "per_s": together(&runtime, dir.path(), &store, workers)?}));
        }
        numbers["server"] = runtime.block_on(alone(&dir.path().join("server"), &database("haft_bench_alone")?))?;
        numbers["server_by_workers"] = by_workers.into();
        numbers["server_many"] = runtime.block_on(among_many(&database("haft_bench_many")?))?;
    }
    println!("{numbers}");
    Ok(())
}

/// Steps that wait for nothing, in a run of their own.
fn wanted(count: usize) -> Result<Wanted> {
    let steps: Vec<Value> = (0..count).map(|at| json!({"id": format!("s{at}"), "tool": "bench.nothing"})).collect();
    Ok(Wanted { plan: serde_json::from_value(json!({ "steps": steps }))?, ..Wanted::default() })
}

/// One process: calls by themselves, and as steps.
async fn alone(dir: &Path, store: &Path) -> Result<Value> {
    let haft = layer(dir, store)?;
    let call = || async {
        let call = Call::new(new_call_id(), "bench.nothing", json!({}));
        let outcome = haft.call(call, &Yes, &Halt::new()).await;
        outcome.error.map_or(Ok(()), |error| Err(error.message))
    };
    let begun = Instant::now();
    let slots = usize::try_from(SLOTS)?;
    let calls: Vec<_> = futures_util::stream::iter((0..CALLS).map(|_| call())).buffer_unordered(slots).collect().await;
    calls.into_iter().collect::<std::result::Result<(), String>>()?;
    haft.store().flush().await?;
    let bare = micros_each(begun.elapsed(), CALLS);
    let begun = Instant::now();
    let run = haft.begin(wanted(STEPS)?).await?.id;
    let started = begun.elapsed();
    haft.work(&haft.worker(SLOTS), &Until::Over(run.clone()), &Yes, &Halt::new()).await?;
    haft.store().flush().await?;
    let took = begun.elapsed();
    let seen = haft.store().run_seen(&run).await?.ok_or("the run is gone")?;
    if seen.state != "done" {
        return Err(format!("the run is {}", seen.state).into());
    }
    let each = micros_each(took, STEPS);
    Ok(json!({
        "call_us": bare, "step_us": each, "begin_s": started.as_secs_f64(),
        "all_s": took.as_secs_f64(),
    }))
}

/// Several processes: how many steps a second, from when all are there to when the run is over.
fn together(runtime: &tokio::runtime::Runtime, dir: &Path, store: &Path, count: usize) -> Result<f64> {
    let dir = dir.join(format!("by{count}"));
    let haft = layer(&dir, store)?;
    let workers: Vec<Working> = (0..count).map(|_| Working::start(&dir, store)).collect::<Result<_>>()?;
    while runtime.block_on(haft.store().workers())?.len() < count {
        std::thread::sleep(Duration::from_millis(20));
    }
    // What is done once is not what is measured.
    runtime.block_on(over(&haft, 500))?;
    let took = runtime.block_on(over(&haft, STEPS))?;
    drop(workers);
    Ok(per_second(STEPS, took))
}

/// How long others take for a run.
async fn over(haft: &Haft, count: usize) -> Result<Duration> {
    let run = haft.begin(wanted(count)?).await?.id;
    let begun = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        // The state alone: whoever reads the plan each time is what is measured then.
        let id = run.clone();
        let sql = "SELECT state FROM runs WHERE id = ?1";
        let state: String =
            haft.store().insist(Mode::Read, move |db| db.one(sql, cells![id], |row| row.get(0))).await?;
        match state.as_str() {
            "running" => {}
            "done" => return Ok(begun.elapsed()),
            state => return Err(format!("the run is {state}").into()),
        }
    }
}

/// A worker in a process of its own.
struct Working(Child);

impl Working {
    fn start(dir: &Path, store: &Path) -> Result<Self> {
        Ok(Self(Command::new(std::env::current_exe()?).arg("--work").arg(dir).arg(store).spawn()?))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Finding what is to be done among very many that are stored.
async fn among_many(store: &Path) -> Result<Value> {
    let store = Store::open(store)?;
    store.run(Mode::Durable, fill).await?;
    if store.kind() == Kind::Post {
        store.run(Mode::Write, |db| db.batch("ANALYZE")).await?;
    }
    let mut steps = Vec::with_capacity(CLAIMS);
    for _ in 0..CLAIMS {
        let (worker, root) = ("w".to_owned(), "/p".to_owned());
        let claim = Claim { worker, root, labels: vec!["gpu".to_owned()], most: 16, lease_ms: 60_000, only: None };
        let begun = Instant::now();
        let claimed = store.claim(claim).await?;
        steps.push(begun.elapsed());
        if claimed.len() != 16 {
            return Err("there was less to claim than was stored".into());
        }
    }
    let mut tasks = Vec::with_capacity(CLAIMS);
    for _ in 0..CLAIMS {
        let begun = Instant::now();
        let due = store.due_tasks("/p", MANY, 16).await?;
        tasks.push(begun.elapsed());
        if due.len() != 16 {
            return Err("there was less due than was stored".into());
        }
    }
    Ok(
        json!({"claim_p50_ms": at(&mut steps, 50), "claim_p99_ms": at(&mut steps, 99), "due_p50_ms": at(&mut tasks, 50)}),
    )
}

/// A hundred runs of ten thousand steps each, half of them over, and a million tasks.
fn fill(db: &haft_store::Db<'_>) -> haft_store::DbResult<()> {
    let numbers = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)";
    db.execute(
        &format!(
            "{numbers} INSERT INTO runs (id, root, name, state, plan, inputs, terms, outermost, deep, count, unsettled, busy,
             begun_ms) SELECT 'run-' || i, '/p', 'many', 'running', '{{}}', '{{}}', '{{}}', 'run-' || i, 0, 10000, 10000, 0, 0
             FROM n"
        ),
        cells![100_i64],
    )?;
    db.execute(
        &format!(
            "{numbers} INSERT INTO steps (run, nr, id, state, missing, root, label, on_failure, retries, repeatable, narrow,
             wait_ms, from_ms, attempt) SELECT 'run-' || (i % 100), i / 100, 's' || i,
             CASE WHEN i % 2 = 0 THEN 'done' ELSE 'ready' END, 0, '/p', CASE WHEN i % 3 = 0 THEN 'gpu' END, 'stop', 0, 0, 0, 0,
             i, 0 FROM n"
        ),
        cells![MANY],
    )?;
    db.execute(
        &format!(
            "{numbers} INSERT INTO tasks (id, place, root, title, tags, kind, status, priority, promise, made_ms, changed_ms,
             next_ms, attempt, missed) SELECT 'task-' || i, '/p', '/p', 'one of many', '[]', 'scheduled', 'pending', 1,
             '{{}}', 0, 0, i, 0, 0 FROM n"
        ),
        cells![MANY],
    )
    .map(drop)
}

#[expect(clippy::cast_precision_loss, reason = "a count of steps")]
fn micros_each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

#[expect(clippy::cast_precision_loss, reason = "a count of steps")]
fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn at(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    times.get(times.len() * percent / 100).copied().unwrap_or_default().as_secs_f64() * 1e3
}
