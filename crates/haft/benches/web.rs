//! What the guarded way out costs beside the same client without it: the same GET of a server on this machine, in turns.
//! Prints one JSON object. `cargo bench -p haft --bench web -- --json`

#![expect(clippy::print_stdout, reason = "the numbers are its output")]

use haft::core::tool::Outward;
use haft::core::web::Target;
use haft::{
    BoxFuture, Call, CallError, Haft, Halt, Reply, Scene, Settings, Store, Tool, ToolSpec, Workspace, Yes, new_call_id,
};
use haft_runtime::http::{Carrier, Client, Leads, client};
use haft_runtime::web::{Quota, Request};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 2_000;
const BODY: usize = 4096;

/// Asks for the same page by both ways, in turns, and says how long each took.
struct Probe(Arc<ToolSpec>);

impl Tool for Probe {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }
    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let url = scene.args()["url"].as_str().unwrap_or_default();
            let target = Target::read(url).map_err(|error| CallError::invalid(error.to_string()))?;
            let bare = client(Leads::Anywhere, Carrier::Own)?;
            let (mut without, mut with) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS + ROUNDS / 10 {
                let one = timed(unguarded(&bare, &target)).await?;
                let other = timed(guarded(scene, &target)).await?;
                // The first connect, and warm everything up.
                if round >= ROUNDS / 10 {
                    without.push(one);
                    with.push(other);
                }
            }
            Ok(Reply::text("").data(summary(without, with)))
        })
    }
}

async fn unguarded(client: &Client, target: &Target) -> Result<usize, CallError> {
    let fail = |error: &dyn std::error::Error| CallError::failed(error.to_string());
    let mut answer = client.get(target.url().clone()).send().await.map_err(|error| fail(&error))?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| fail(&error))? {
        body.extend_from_slice(&piece);
    }
    Ok(body.len())
}

async fn guarded(scene: &Scene, target: &Target) -> Result<usize, CallError> {
    let way = scene.way();
    let response = way.send(Request::new(&way, "GET", target.clone())?).await?;
    Ok(response.body.len())
}

async fn timed(work: impl Future<Output = Result<usize, CallError>>) -> Result<Duration, CallError> {
    let begun = Instant::now();
    let size = work.await?;
    if size == BODY { Ok(begun.elapsed()) } else { Err(CallError::failed(format!("{size} bytes came"))) }
}

fn summary(mut without: Vec<Duration>, mut with: Vec<Duration>) -> Value {
    without.sort();
    with.sort();
    let at = |sorted: &[Duration], percent: usize| {
        sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default().as_secs_f64() * 1e6
    };
    json!({
        "bare_p50_us": at(&without, 50), "bare_p99_us": at(&without, 99),
        "guarded_p50_us": at(&with, 50), "guarded_p99_us": at(&with, 99),
    })
}

/// Answers every request of every connection with the same page.
fn serve(listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || converse(stream));
    }
}

fn converse(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {BODY}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + BODY, b'x');
    let mut lines = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            stream.write_all(&answer).ok()?;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || serve(&listener));
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let store = Store::open(&dir.path().join("haft.db"))?;
    let mut settings = Settings::new(dir.path().join("data"));
    settings.web.allow_private = vec![address.to_string().parse()?].into();
    settings.web.quota = Quota { session: 1_000_000, hour: 1_000_000, day: 1_000_000 };
    let haft = Haft::new(Workspace::new(dir.path())?, store, settings);
    let input = json!({"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]});
    let mut spec = ToolSpec::new("probe.ask", "Asks")?.input(input).web(Outward::Url("url", None));
    spec.timeout = Duration::from_mins(10);
    haft.registry().register(Arc::new(Probe(Arc::new(spec))))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let call = Call::new(new_call_id(), "probe.ask", json!({"url": format!("http://{address}/")}));
    let outcome = runtime.block_on(haft.call(call, &Yes, &Halt::new()));
    let numbers = outcome.data.clone().ok_or_else(|| format!("nothing was measured: {outcome:?}"))?;
    println!("{numbers}");
    Ok(())
}
