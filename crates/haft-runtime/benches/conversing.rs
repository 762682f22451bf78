//! What a conversation costs beyond the model's time: with 200 tools and 200 000 tokens of history, from the arguments of a call
//! to its start, and a hundred conversations at once. Prints one JSON object. `cargo bench -p haft-runtime --bench conversing`
//!
//! The model answers at once. Once it is a value in this process, which makes the body of each request and reads the bytes of
//! each answer as one behind HTTP does; once it is a server on this machine.

#![expect(clippy::print_stdout, reason = "the numbers are its output")]

use haft_core::agent::turns::Failure;
use haft_core::agent::wire::Wire;
use haft_core::agent::{Block, Delta, Message, Role};
use haft_core::{CallError, Caller, Origin, SessionId, ToolSpec};
use haft_runtime::agent::settings::Provider;
use haft_runtime::agent::{AgentSettings, Chat, Door, Facts, Model, ModelRef, Prompt, Told, Watch, Who};
use haft_runtime::{BoxFuture, Haft, Halt, Reply, Scene, Settings, Tool, Workspace, Yes};
use haft_store::Store;
use haft_store::talks::{NewTalk, Standing};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How many tools a model is told of.
const TOOLS: usize = 200;
/// How long the history is, in pairs of a call and a result of about a thousand tokens.
const PAIRS: usize = 200;
/// How often a model is asked.
const TURNS: u32 = 60;
/// How many conversations there are at once, and how long the history of each is.
const SESSIONS: usize = 100;
const SHORT: usize = 20;

/// Any failure ends the whole benchmark: a number that is missing must not look like one that is small.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

type Times = Arc<Mutex<Vec<Instant>>>;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    // First, because what a process has ever needed is what is read.
    let memory = runtime.block_on(at_once(&dir.path().join("many")))?;
    let (turn, start) = runtime.block_on(in_process(&dir.path().join("one")))?;
    let http = runtime.block_on(over_http(&dir.path().join("two")))?;
    let peer = std::env::var_os("HAFT_BENCH_AGENTS").map(|python| peer(&python)).transpose()?;
    let numbers = json!({
        "turn_p50_ms": at(&turn, 50), "turn_p99_ms": at(&turn, 99), "start_p50_ms": at(&start, 50), "start_p99_ms": at(&start, 99),
        "http_turn_p50_ms": at(&http, 50), "http_turn_p99_ms": at(&http, 99), "sessions": SESSIONS, "sessions_mb": memory,
        "peer_turn_p50_ms": peer.as_deref().map(|peer| at(peer, 50)),
    });
    println!("{numbers}");
    Ok(())
}

/// A model that answers at once: a call of `probe` as often as it is asked, and then a word.
struct Quick {
    name: ModelRef,
    asked: Times,
    whole: Times,
    /// How often it calls.
    calls: u32,
    /// How long it takes.
    pause: Duration,
}

impl Quick {
    fn new(calls: u32, pause: Duration) -> Arc<Self> {
        let name = ModelRef { provider: "quick".to_owned(), model: "quick-1".to_owned() };
        Arc::new(Self { name, asked: Times::default(), whole: Times::default(), calls, pause })
    }
}

impl Model for Quick {
    fn name(&self) -> &ModelRef {
        &self.name
    }

    fn facts(&self) -> Facts {
        Facts { window: 1_000_000, max_output: 4_000, price: None }
    }

    fn wire(&self) -> Wire {
        Wire::Anthropic
    }

    fn ask(
        self: Arc<Self>,
        prompt: &Prompt<'_>,
        seed: &str,
        said: mpsc::Sender<Delta>,
    ) -> BoxFuture<'static, std::result::Result<(), Failure>> {
        note(&self.asked);
        std::hint::black_box(Wire::Anthropic.body(prompt));
        let own = prompt.history.iter().flat_map(Message::uses).filter(|(_, name, _)| *name == "probe").count();
        let text = if own < usize::try_from(self.calls).unwrap_or(usize::MAX) { call(seed, own) } else { word() };
        let mut decoder = Wire::Anthropic.decoder(seed);
        Box::pin(async move {
            if !self.pause.is_zero() {
                tokio::time::sleep(self.pause).await;
            }
            for delta in decoder.feed(text.as_bytes()).unwrap_or_default() {
                if matches!(delta, Delta::Whole(_)) {
                    note(&self.whole);
                }
                let _ = said.send(delta).await;
            }
            Ok(())
        })
    }
}

fn note(times: &Times) {
    times.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
}

fn events(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()))
        .collect()
}

fn call(seed: &str, number: usize) -> String {
    let input = json!({"number": number}).to_string();
    events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": format!("toolu_{seed}"), "name": "probe", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": input}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ])
}

fn word() -> String {
    events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ])
}

/// A tool that notes when it is started.
struct Probe {
    spec: Arc<ToolSpec>,
    begun: Times,
}

impl Tool for Probe {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, _: &'a Scene) -> BoxFuture<'a, std::result::Result<Reply, CallError>> {
        note(&self.begun);
        Box::pin(std::future::ready(Ok(Reply::text("noted"))))
    }
}

fn declared(name: &str) -> Result<ToolSpec> {
    let description =
        format!("{name} looks up a record by its number and gives what is known of it, with its neighbours.");
    Ok(ToolSpec::new(name, description)?.input(json!({"type": "object", "additionalProperties": false, "properties": {
        "number": {"type": "integer", "description": "Which record"},
        "fields": {"type": "array", "items": {"type": "string"}, "description": "Only these fields of it"},
        "limit": {"type": "integer", "description": "How many neighbours at the most"}}})))
}

/// A tool layer with as many tools as a model is to be told of, all of which it is told.
fn layer(dir: &Path, agent: AgentSettings, begun: &Times) -> Result<Haft> {
    std::fs::create_dir_all(dir.join("project"))?;
    let mut settings = Settings::new(dir.join("data"));
    settings.agent = Arc::new(AgentSettings { defer_above: (usize::MAX, usize::MAX), max_turns: 1000, ..agent });
    let haft = Haft::new(Workspace::new(&dir.join("project"))?, Store::open(&dir.join("haft.db"))?, settings);
    let probe = |name: &str| -> Result<Arc<dyn Tool>> {
        Ok(Arc::new(Probe { spec: Arc::new(declared(name)?), begun: Arc::clone(begun) }))
    };
    haft.registry().register(probe("probe")?)?;
    let mut number = 0;
    while haft.registry().names().len() < TOOLS {
        haft.registry().register(probe(&format!("lookup_{number}"))?)?;
        number += 1;
    }
    Ok(haft)
}

/// Calls and results of about a thousand tokens each.
fn history(pairs: usize) -> Vec<Message> {
    let pair = |number: usize| {
        let id = format!("old-{number}");
        let used = Block::Use {
            id: id.clone(),
            name: "file_read".to_owned(),
            input: json!({"path": format!("src/{number}.rs")}),
            mark: None,
        };
        let text = "let value = compute(number, &mut state)?; // as before\n".repeat(75);
        let told = Block::result(id, text, false);
        [Message { role: Role::Assistant, blocks: vec![used] }, Message { role: Role::User, blocks: vec![told] }]
    };
    let mut history: Vec<Message> =
        [Message::user("Look at all of it.")].into_iter().chain((0..pairs).flat_map(pair)).collect();
    history.push(Message { role: Role::Assistant, blocks: vec![Block::Text { text: "I have.".to_owned() }] });
    history
}

/// Keeps a history as if it had been said.
async fn kept(haft: &Haft, session: &str, pairs: usize) -> Result<Who> {
    let session = SessionId::new(session).ok_or("a session's name")?;
    let root = haft.workspace().root().display().to_string();
    let new = NewTalk {
        session: session.clone(),
        root,
        title: String::new(),
        above: None,
        role: None,
        mode: "main",
        place: None,
        asked: None,
    };
    haft.store().open_talk(new, "bench".to_owned()).await?;
    let texts = history(pairs).iter().map(serde_json::to_string).collect::<std::result::Result<Vec<_>, _>>()?;
    let standing = Standing {
        model: String::new(),
        state: "done".to_owned(),
        usage: haft_core::agent::Usage::default(),
        cost_micros: None,
        turns: 0,
        calls: 0,
        active: Vec::new(),
        spent_micros: 0,
        told: Vec::new(),
    };
    haft.store().keep_talk((session.clone(), "bench".to_owned()), 0, "bench".to_owned(), texts, standing).await?;
    let caller = Caller { agent: Some("main".to_owned()), ..Caller::default() };
    Ok(Who { session, caller, ..Who::default() })
}

async fn said(layer: &Haft, who: Who, watch: Watch) -> Result<()> {
    let halt = Halt::new();
    let mut chat = Chat::open(layer, who).await?;
    let door = Door { approver: &Yes, halt: &halt, origin: Origin::Library, watch, meanwhile: None };
    let ended = chat.say(vec![Block::Text { text: "Go.".to_owned() }], door).await?;
    if ended.is_done() { Ok(()) } else { Err(format!("{:?}", ended.end).into()) }
}

fn settings(model: &ModelRef) -> AgentSettings {
    AgentSettings { models: vec![model.clone()], ..AgentSettings::default() }
}

/// From one request to the next, and from the arguments of a call to its start.
async fn in_process(dir: &Path) -> Result<(Vec<f64>, Vec<f64>)> {
    let (quick, begun) = (Quick::new(TURNS, Duration::ZERO), Times::default());
    let haft = layer(dir, settings(quick.name()), &begun)?;
    haft.models().register(Arc::clone(&quick) as Arc<dyn Model>);
    let who = kept(&haft, "one", PAIRS).await?;
    said(&haft, who, Arc::new(|_: &Told| {})).await?;
    let (whole, begun) = (taken(&quick.whole), taken(&begun));
    let turn = between(&quick.asked);
    let start = whole.iter().zip(&begun).map(|(whole, begun)| ms(begun.saturating_duration_since(*whole))).collect();
    Ok((turn, start))
}

/// A model behind HTTP on this machine, which notes when it is asked.
fn server() -> (haft_stub::Stub, Times) {
    let times = Times::default();
    let asked = Arc::clone(&times);
    let stub = haft_stub::Stub::with(move |request| {
        note(&asked);
        match request.number {
            number if number < usize::try_from(TURNS).unwrap_or(usize::MAX) => {
                haft_stub::Reply::call("probe", json!({"number": number}))
            }
            _ => haft_stub::Reply::say("Done."),
        }
    });
    (stub, times)
}

/// From one request to the next, as it heard them.
fn between(times: &Times) -> Vec<f64> {
    taken(times).windows(2).map(|pair| ms(pair[1] - pair[0])).collect()
}

/// The same conversation by somebody else, with the same server.
fn peer(python: &std::ffi::OsStr) -> Result<Vec<f64>> {
    let (stub, times) = server();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/openai_agents_peer.py");
    let sizes = [TOOLS.to_string(), PAIRS.to_string()];
    let status = std::process::Command::new(python)
        .arg(script)
        .arg(stub.base(haft_stub::Wire::Chat))
        .args(sizes)
        .stdout(std::process::Stdio::null())
        .status()?;
    let turns = between(&times);
    match (status.success(), u32::try_from(turns.len())) {
        (true, Ok(TURNS)) => Ok(turns),
        _ => Err(format!("the peer did not come to its end: {status}, {} turns", turns.len()).into()),
    }
}

/// The same with a model behind HTTP on this machine: what it takes to hear a request of this size is part of it.
async fn over_http(dir: &Path) -> Result<Vec<f64>> {
    let (stub, times) = server();
    let model = ModelRef { provider: "stub".to_owned(), model: "stub-1".to_owned() };
    let url = stub.base(haft_stub::Wire::Chat);
    let provider = Provider { wire: Wire::Chat, url, keys: Vec::new(), headers: BTreeMap::new() };
    let facts = Facts { window: 1_000_000, max_output: 4_000, price: None };
    let agent = AgentSettings {
        providers: BTreeMap::from([("stub".to_owned(), provider)]),
        facts: BTreeMap::from([(model.clone(), facts)]),
        ..settings(&model)
    };
    let haft = layer(dir, agent, &Times::default())?;
    let who = kept(&haft, "one", PAIRS).await?;
    said(&haft, who, Arc::new(|_: &Told| {})).await?;
    Ok(between(&times))
}

/// What a process needs at the most while a hundred conversations are under way, in megabytes.
async fn at_once(dir: &Path) -> Result<f64> {
    let quick = Quick::new(5, Duration::from_millis(200));
    let haft = layer(dir, settings(quick.name()), &Times::default())?;
    haft.models().register(Arc::clone(&quick) as Arc<dyn Model>);
    let mut all = Vec::new();
    for number in 0..SESSIONS {
        all.push(kept(&haft, &format!("s{number}"), SHORT).await?);
    }
    let talks = all.into_iter().map(|who| said(&haft, who, Arc::new(|_: &Told| {})));
    for done in futures_util::future::join_all(talks).await {
        done?;
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kib / 1024.0)
}

fn taken(times: &Times) -> Vec<Instant> {
    times.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// A percentile.
fn at(times: &[f64], percent: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
