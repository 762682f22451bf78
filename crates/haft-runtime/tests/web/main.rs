//! The guarded way out, as a tool has it: a real store, real sockets, and servers that mean no good.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::panic, reason = "a test that fails says why")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod answers;
mod asked;
mod heard;
mod limits;
mod manifests;
mod memory;
mod names;
mod network;
mod proxy;
mod redirects;
mod server;
mod ssrf;
mod tls;

use haft_core::host::HostRules;
use haft_core::tool::Outward;
use haft_core::web::Target;
use haft_core::{Call, CallError, Outcome, ToolSpec};
use haft_runtime::web::{Request, WebSettings};
use haft_runtime::{BoxFuture, Haft, Halt, Reply, Scene, Settings, Tool, Workspace, Yes, new_call_id};
use haft_store::Store;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// A tool that asks the web for what it is told to, and says what came.
struct Probe(Arc<ToolSpec>);

impl Probe {
    fn tool() -> Self {
        let spec = ToolSpec::new("probe.ask", "Ask the web.")
            .unwrap()
            .input(json!({"type": "object", "properties": {
                "url": {"type": "string"}, "method": {"type": "string"}, "headers": {"type": "object"},
                "body": {"type": "string"}, "bytes": {"type": "integer"}, "timeout_ms": {"type": "integer"}}}))
            .web(Outward::Url("url", Some("method")));
        Self(Arc::new(spec))
    }
}

impl Tool for Probe {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let args = scene.args();
            let text = |name: &str| args[name].as_str();
            let way = scene.way();
            let target = Target::read(text("url").unwrap()).map_err(|error| CallError::invalid(error.to_string()))?;
            let mut request = Request::new(&way, text("method").unwrap_or("GET"), target)?;
            for (name, value) in args["headers"].as_object().into_iter().flatten() {
                request = request.header(name, value.as_str().unwrap())?;
            }
            if let Some(body) = text("body") {
                request = request.body(body);
            }
            if let Some(bytes) = args["bytes"].as_u64() {
                request = request.at_most(usize::try_from(bytes).unwrap());
            }
            if let Some(ms) = args["timeout_ms"].as_u64() {
                request = request.within(Duration::from_millis(ms));
            }
            let response = way.send(request).await?;
            let body = String::from_utf8_lossy(&response.body[..response.body.len().min(2000)]).into_owned();
            Ok(Reply::text(body.clone()).data(json!({
                "status": response.status, "url": response.target.to_string(), "body": body,
                "size": response.body.len(), "cut": response.cut, "hops": response.hops, "headers": response.headers})))
        })
    }
}

/// A project whose agent has the probe.
struct Stage {
    dir: tempfile::TempDir,
    haft: Haft,
}

impl Stage {
    fn new(web: WebSettings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let haft = process(dir.path(), web);
        Self { dir, haft }
    }

    /// One that may reach these ports of this machine.
    fn reaching(ports: &[u16]) -> Self {
        Self::new(WebSettings { allow_private: loopback(ports), ..roomy() })
    }

    async fn ask(&self, args: Value) -> Outcome {
        self.haft.call(Call::new(new_call_id(), "probe.ask", args), &Yes, &Halt::new()).await
    }

    async fn get(&self, url: &str) -> Outcome {
        self.ask(json!({ "url": url })).await
    }

    /// What the log says of requests.
    async fn requests(&self) -> Vec<Value> {
        self.haft.flush().await.unwrap();
        let records = self.haft.store().records(0, 10_000, None).await.unwrap();
        records.into_iter().map(|record| record.body).filter(|body| body["kind"] == "request").collect()
    }
}

/// A tool layer over the store in `dir`, as another process would have it.
fn process(dir: &Path, web: WebSettings) -> Haft {
    std::fs::create_dir_all(dir.join("project/.git")).unwrap();
    let workspace = Workspace::new(&dir.join("project")).unwrap();
    let store = Store::open(&dir.join("haft.db")).unwrap();
    let mut settings = Settings::new(dir.join("data"));
    settings.web = web;
    let haft = Haft::new(workspace, store, settings);
    haft.registry().register(Arc::new(Probe::tool())).unwrap();
    haft
}

/// Limits that no test reaches by accident.
fn roomy() -> WebSettings {
    let quota = haft_runtime::web::Quota { session: 100_000, hour: 100_000, day: 100_000 };
    WebSettings { quota, ..WebSettings::default() }
}

fn loopback(ports: &[u16]) -> HostRules {
    ports.iter().map(|port| format!("127.0.0.1:{port}").parse().unwrap()).collect::<Vec<_>>().into()
}

/// What went wrong: the kind, and the words for it.
fn fault(outcome: &Outcome) -> (&'static str, &str) {
    let error = outcome.error.as_ref().unwrap_or_else(|| panic!("it went well: {outcome:?}"));
    (error.kind.as_str(), &error.message)
}

fn data(outcome: &Outcome) -> &Value {
    outcome.data.as_ref().unwrap_or_else(|| panic!("nothing came: {outcome:?}"))
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// Which part of a test this process is, if another one started it for that.
const PART: &str = "HAFT_TEST_PART";

fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// The same test in a process of its own, where variables, memory or the network are its own.
fn alone(before: &[&str], test: &str) -> Command {
    let own = std::env::current_exe().unwrap();
    let mut words = before.iter().map(Into::into).collect::<Vec<std::ffi::OsString>>();
    words.extend([own.into_os_string(), test.into(), "--exact".into(), "--nocapture".into()]);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env(PART, "alone");
    command
}

/// Runs it, and fails if it does, or if there is no such test.
fn passes(mut command: Command) {
    let ran = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}
