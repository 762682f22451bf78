//! What the whole path costs around a tool that does nothing: resolve, validate, decide, record, run,
//! shape, record. Prints one JSON object. `cargo bench -p haft --bench overhead -- --json`

#![expect(clippy::print_stdout, reason = "the numbers are its output")]

use haft::{
    BoxFuture, Call, CallError, Haft, Halt, Nobody, Reply, Scene, Settings, Store, Tool, ToolSpec, Workspace, Yes,
    new_call_id,
};
use serde_json::json;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Does nothing.
struct Idle(Arc<ToolSpec>);

impl Tool for Idle {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }
    fn act<'a>(&'a self, _: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(std::future::ready(Ok(Reply::text("done"))))
    }
}

fn idle(name: &str) -> Result<ToolSpec, Box<dyn std::error::Error>> {
    let input = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "default": 10}},
        "required": ["path"],
        "additionalProperties": false
    });
    Ok(ToolSpec::new(name, "Does nothing")?.input(input))
}

fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default().as_secs_f64() * 1e6
}

/// Times of `rounds` calls, sorted; a tenth more are made first and not counted.
fn measure(rounds: usize, mut once: impl FnMut()) -> Vec<Duration> {
    (0..rounds / 10).for_each(|_| once());
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            once();
            begun.elapsed()
        })
        .collect();
    times.sort();
    times
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let store = Store::open(&dir.path().join("haft.db"))?;
    let haft = Haft::new(Workspace::new(dir.path())?, store, Settings::new(dir.path().join("data")));
    haft.registry().register(Arc::new(Idle(Arc::new(idle("idle.read")?))))?;
    haft.registry().register(Arc::new(Idle(Arc::new(idle("idle.act")?.acts()))))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let never = Halt::new();
    let call = |tool: &str| Call::new(new_call_id(), tool, json!({"path": "a"}));

    let reads = measure(20_000, || {
        let outcome = runtime.block_on(haft.call(call("idle.read"), &Nobody, &never));
        assert!(outcome.success, "{outcome:?}");
    });
    runtime.block_on(haft.flush())?;
    let acts = measure(2_000, || {
        let outcome = runtime.block_on(haft.call(call("idle.act"), &Yes, &never));
        assert!(outcome.success, "{outcome:?}");
    });
    runtime.block_on(haft.flush())?;
    let mut file = std::fs::File::create(dir.path().join("fsync"))?;
    let syncs = measure(500, || {
        let _ = file.write_all(&[0; 4096]).and_then(|()| file.sync_data());
    });

    let report = json!({
        "read_only_p50_us": percentile(&reads, 50), "read_only_p99_us": percentile(&reads, 99),
        "effectful_p50_us": percentile(&acts, 50), "effectful_p99_us": percentile(&acts, 99),
        "fsync_p50_us": percentile(&syncs, 50),
    });
    println!("{report}");
    Ok(())
}
