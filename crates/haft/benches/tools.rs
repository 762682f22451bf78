//! What a tool as a file costs: a function in a warm interpreter beside starting one, and a command beside the bare
//! confined start of the same program. Everything that is compared takes turns within one run. Prints one JSON object.
//! `cargo bench -p haft --bench tools -- --json`

#![expect(clippy::print_stdout, reason = "the numbers are its output")]

use haft::{Call, Haft, Halt, Settings, Store, Workspace, Yes, new_call_id};
use haft_core::manifest::{Manifest, Permissions};
use haft_runtime::confined::terms::Settled;
use haft_runtime::confined::{self, Job, Terms};
use haft_runtime::shelf;
use haft_sandbox::watch::{self, Watch};
use haft_sandbox::{Program, Stdio};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often an interpreter is started, and how many warm calls are made for each of those.
const STARTS: usize = 40;
const WARM: usize = 25;
/// How often each program is started.
const ROUNDS: usize = 300;

/// Any failure ends the whole benchmark: a number that is missing must not look like one that is small.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The function that is called: it does what a small tool does, and not more.
const MODULE: &str = "import json, re\n\ndef run(text):\n    return {'words': len(re.findall(r'\\w+', text))}\n";
const ALONE: &str = "import sys; sys.path.insert(0, '.'); import words; print(words.run('one two three'))";
const PYTHON: &str = "/usr/bin/python3";

fn main() -> Result<()> {
    haft_sandbox::Linux::prepare()?;
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let ground = Ground::new(dir.path())?;
    let (mut warm, mut bare, mut cold) = (Vec::new(), Vec::new(), Vec::new());
    ground.call("words", json!({"text": "to begin with"}))?;
    for _ in 0..STARTS {
        bare.push(timed(|| ground.unconfined())?);
        cold.push(timed(|| ground.confined(&[PYTHON, "-IBc", ALONE]))?);
        for _ in 0..WARM {
            warm.push(timed(|| ground.call("words", json!({"text": "one two three"})))?);
        }
    }
    let (mut tool, mut spawn) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + ROUNDS / 10 {
        let one = timed(|| ground.confined(&["/bin/true"]))?;
        let other = timed(|| ground.call("nothing", json!({})))?;
        if round >= ROUNDS / 10 {
            spawn.push(one);
            tool.push(other);
        }
    }
    println!(
        "{}",
        json!({
            "python_warm_p50_us": at(&mut warm, 50), "python_warm_p99_us": at(&mut warm, 99),
            "python_bare_p50_us": at(&mut bare, 50), "python_cold_p50_us": at(&mut cold, 50),
            "command_p50_us": at(&mut tool, 50), "spawn_p50_us": at(&mut spawn, 50),
        })
    );
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}

fn at(times: &mut [Duration], percent: usize) -> f64 {
    times.sort();
    times.get(times.len() * percent / 100).copied().unwrap_or_default().as_secs_f64() * 1e6
}

/// A project with two tools, and a way to start a program that is held like theirs.
struct Ground {
    project: PathBuf,
    haft: Haft,
    runtime: tokio::runtime::Runtime,
    settled: Settled,
}

impl Ground {
    fn new(dir: &Path) -> Result<Self> {
        let project = dir.join("project");
        std::fs::create_dir_all(project.join(".git"))?;
        std::fs::write(project.join("words.py"), MODULE)?;
        let store = Store::open(&dir.join("haft.db"))?;
        let haft = Haft::new(Workspace::new(&project)?, store, Settings::new(dir.join("data")));
        let python = json!({"python": {"module": "words", "function": "run", "args": ["${text}"]}});
        let command = json!({"command": {"entrypoint": "/bin/true", "stdout": {"format": "text"}}});
        for (name, exec) in [("words", python), ("nothing", command)] {
            let manifest = manifest(name, &exec)?;
            let own = project.join(".haft/tools").join(name);
            std::fs::create_dir_all(&own)?;
            haft.registry().register(shelf::tool(manifest, own)?)?;
        }
        let terms = Terms { data_dir: dir.join("data"), ..Terms::default() };
        let rules = haft_core::web::Rules::default();
        let permissions: Permissions = serde_json::from_value(permissions())?;
        let settled = terms.settle_declared(haft.workspace(), &permissions, (&[], &rules), Path::new(""))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        Ok(Self { project: haft.workspace().root().to_owned(), haft, runtime, settled })
    }

    /// Calls a tool, with everything that belongs to a call.
    fn call(&self, tool: &str, args: Value) -> Result<()> {
        let call = Call::new(new_call_id(), tool, args);
        let outcome = self.runtime.block_on(self.haft.call(call, &Yes, &Halt::new()));
        if outcome.success { Ok(()) } else { Err(format!("{outcome:?}").into()) }
    }

    /// Starts a program under the same plan as the tools, and waits for its end.
    fn confined(&self, argv: &[&str]) -> Result<()> {
        let env = confined::environment::make(&[], &[])?;
        let argv = argv.iter().map(Into::into).collect();
        let program = Program { argv, env, shares_job: false, cwd: self.project.clone() };
        let ((out, stdout), (err, stderr)) = (watch::pipe()?, watch::pipe()?);
        let bounds = self.settled.plan.confinement.bounds;
        let how = Watch { pipes: vec![out, err], ..Watch::unattended(&bounds) };
        let plan = &self.settled.plan;
        let job = Job { backend: self.settled.backend, plan, program: &program, staging: None, begun: &|| {} };
        let ran = confined::run(job, Stdio { stdin: watch::nothing()?, stdout, stderr }, how)?;
        if ran.watched.end.code() == 0 { Ok(()) } else { Err(format!("{:?}", ran.watched).into()) }
    }

    /// Starts an interpreter without anything around it.
    fn unconfined(&self) -> Result<()> {
        let output = std::process::Command::new(PYTHON).args(["-IBc", ALONE]).current_dir(&self.project).output()?;
        if output.status.success() { Ok(()) } else { Err(format!("{output:?}").into()) }
    }
}

fn permissions() -> Value {
    json!({"network": false, "fs": {"read": ["."], "write": []}})
}

fn manifest(name: &str, exec: &Value) -> Result<Manifest> {
    let kind = exec.as_object().and_then(|exec| exec.keys().next().cloned());
    Ok(serde_json::from_value(json!({
        "name": name, "description": "A tool to be measured", "kind": kind, "version": 1,
        "inputs": {"schema": {"type": "object"}}, "outputs": {"format": "json"}, "exec": exec,
        "permissions": permissions(), "approval": {"required": false},
    }))?)
}
