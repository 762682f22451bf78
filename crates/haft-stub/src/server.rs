//! The server: connections, requests, and how bytes are sent, held back and cut.

use crate::reply::{Instead, Reply};
use crate::script::{Answers, Script};
use crate::{Wire, judge, speak};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often somebody who waits looks whether it is over.
const LOOK: Duration = Duration::from_millis(20);

/// What it was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The how manieth request to speak this is, from nought.
    pub number: usize,
    /// In which form; none if it is about something else, such as a list of models.
    pub wire: Option<Wire>,
    /// `GET`, `POST`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// By name, in small letters.
    pub headers: BTreeMap<String, String>,
    /// What was sent; null if that was no JSON.
    pub body: Value,
}

impl Asked {
    /// Whether the body says this anywhere.
    pub fn says(&self, text: &str) -> bool {
        // As it stands in JSON, where quotes and line ends are escaped.
        let quoted = Value::from(text).to_string();
        self.body.to_string().contains(quoted.trim_matches('"'))
    }

    /// The names of the tools that were offered. A tool of a namespace (Responses) is `namespace::tool`.
    pub fn tools(&self) -> Vec<String> {
        let items = self.body["input"].as_array().into_iter().flatten();
        // Codex offers the tools of its newer models as an item of the conversation.
        let added = items.filter(|item| item["type"] == "additional_tools").map(|item| &item["tools"]);
        let lists = added.chain([&self.body["tools"]]).filter_map(Value::as_array);
        lists.flatten().flat_map(tool_names).collect()
    }

    /// The model that was asked for.
    pub fn model(&self) -> String {
        let in_path = || self.path.split("/models/").nth(1)?.split(':').next();
        self.body["model"].as_str().or_else(in_path).unwrap_or_default().to_owned()
    }
}

/// The names that one entry of a list of tools declares.
fn tool_names(tool: &Value) -> Vec<String> {
    let name = |tool: &Value| tool["name"].as_str().or(tool["type"].as_str()).map(str::to_owned);
    if let Some(declared) = tool["functionDeclarations"].as_array() {
        return declared.iter().filter_map(name).collect();
    }
    if let (Some(namespace), Some(members)) = (tool["name"].as_str(), tool["tools"].as_array()) {
        return members.iter().filter_map(name).map(|member| format!("{namespace}::{member}")).collect();
    }
    name(if tool["function"].is_object() { &tool["function"] } else { tool }).into_iter().collect()
}

/// What all connections know.
struct Shared {
    answers: Answers,
    asked: Mutex<Vec<Asked>>,
    faults: Mutex<Vec<String>>,
    models: Mutex<Vec<String>>,
    over: AtomicBool,
}

/// A model on this machine, as long as this lives.
pub struct Stub {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Stub {
    /// One that gives these answers, in this order. After the last one it says that the script is over.
    pub fn start(script: Vec<Reply>) -> Self {
        Self::by(Script::new(script).answers())
    }

    /// One that answers by a function of what it is asked.
    pub fn with(answers: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::by(Box::new(answers))
    }

    /// One that answers by a script that was read.
    ///
    /// # Panics
    /// Without a free port on this machine.
    #[expect(clippy::expect_used, reason = "a test without a port cannot be run")]
    pub fn by(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
        let address = listener.local_addr().expect("the port has a number");
        let shared = Arc::new(Shared {
            answers,
            asked: Mutex::default(),
            faults: Mutex::default(),
            models: Mutex::new(vec!["stub-1".to_owned()]),
            over: AtomicBool::new(false),
        });
        let known = Arc::clone(&shared);
        let serve = move || {
            for stream in listener.incoming() {
                if known.over.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(stream), known) = (stream, Arc::clone(&known)) else { continue };
                std::thread::spawn(move || converse(&stream, &known));
            }
        };
        Self { address, shared, thread: Some(std::thread::spawn(serve)) }
    }

    /// Where it is, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What a provider's `url` has to be for it to be asked in this form.
    pub fn base(&self, wire: Wire) -> String {
        match wire {
            Wire::Anthropic => self.url(),
            Wire::Responses | Wire::Chat => format!("{}/v1", self.url()),
            Wire::Gemini => format!("{}/v1beta", self.url()),
        }
    }

    /// The same as a project on Vertex.
    pub fn vertex(&self) -> String {
        format!("{}/v1/projects/p/locations/us-central1/publishers/google", self.url())
    }

    /// The models that it lists.
    #[must_use]
    pub fn listing(self, models: &[&str]) -> Self {
        *lock(&self.shared.models) = models.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// What it was asked to say so far.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.shared.asked).iter().filter(|asked| asked.wire.is_some()).cloned().collect()
    }

    /// All that it was asked, lists and counts among it.
    pub fn heard(&self) -> Vec<Asked> {
        lock(&self.shared.asked).clone()
    }

    /// What a provider would have refused: calls without results, and the like. Such requests get its answer to that.
    pub fn faults(&self) -> Vec<String> {
        lock(&self.shared.faults).clone()
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Whoever waits for a connection gets one, and looks.
        drop(TcpStream::connect(self.address));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers whatever comes by one connection, until it is closed.
fn converse(stream: &TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    while let Ok(Some(mut asked)) = read(&mut reader) {
        let reply = {
            let mut all = lock(&shared.asked);
            asked.number = all.iter().filter(|earlier| earlier.wire.is_some()).count();
            all.push(asked.clone());
            drop(all);
            answer(&asked, shared)
        };
        if !matches!(send(stream, &asked, &reply, shared), Ok(true)) {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> io::Result<Option<Asked>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let wire = Wire::of(&path).filter(|_| method == "POST");
    Ok(Some(Asked { number: 0, wire, method, path, headers, body }))
}

/// What it answers: by the script, if a provider would take the request.
fn answer(asked: &Asked, shared: &Shared) -> Reply {
    let Some(wire) = asked.wire else { return beside(asked, shared) };
    match judge::fault(wire, &asked.body) {
        Some(fault) => {
            let body = speak::wrong(wire, &fault);
            lock(&shared.faults).push(fault);
            Reply::status(400, body).header("content-type", "application/json")
        }
        None => (shared.answers)(asked),
    }
}

/// What is asked besides: which models there are, and how much something counts.
fn beside(asked: &Asked, shared: &Shared) -> Reply {
    let count = asked.body.to_string().len() / 4;
    let path = asked.path.split('?').next().unwrap_or_default();
    let said = if path.ends_with("/count_tokens") {
        json!({ "input_tokens": count })
    } else if path.ends_with("/responses/input_tokens") {
        json!({"object": "response.input_tokens", "input_tokens": count})
    } else if path.ends_with(":countTokens") {
        json!({ "totalTokens": count })
    } else if path.ends_with("/v1/models") {
        let models = lock(&shared.models);
        let each =
            models.iter().map(|id| json!({"id": id, "object": "model", "created": 1_762_000_000, "owned_by": "stub"}));
        json!({"object": "list", "data": each.collect::<Vec<_>>()})
    } else {
        return Reply::status(404, "404 page not found").header("content-type", "text/plain");
    };
    Reply::status(200, said.to_string()).header("content-type", "application/json")
}

/// Sends it. Says whether more may be asked by this connection.
fn send(mut stream: &TcpStream, asked: &Asked, reply: &Reply, shared: &Shared) -> io::Result<bool> {
    let wire = asked.wire.unwrap_or(Wire::Chat);
    let (status, headers, events) = match &reply.instead {
        Some(Instead::Nothing) => {
            hold(shared);
            return Ok(false);
        }
        Some(Instead::Raw(status, headers, body)) => (*status, headers.clone(), vec![body.clone()]),
        Some(Instead::Trouble(trouble, headers)) => {
            let (status, body) = speak::trouble(wire, *trouble);
            let mut headers = headers.clone();
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
            (status, headers, vec![body])
        }
        None => match speak::whole(wire, asked, reply) {
            Some(body) => (200, vec![("content-type".to_owned(), "application/json".to_owned())], vec![body]),
            None => (200, speak::headers(wire), speak::events(wire, asked, reply)),
        },
    };
    let mut head = format!("HTTP/1.1 {status} Said\r\ntransfer-encoding: chunked\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    let mut left = reply.cut.or(reply.stall).unwrap_or(usize::MAX);
    for event in &events {
        std::thread::sleep(reply.pace);
        for piece in event.as_bytes().chunks(reply.piece.unwrap_or(usize::MAX)) {
            let piece = &piece[..piece.len().min(left)];
            left -= piece.len();
            if !piece.is_empty() {
                // In one write, so that what one asks for is one piece.
                let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
                chunk.extend_from_slice(piece);
                chunk.extend_from_slice(b"\r\n");
                stream.write_all(&chunk)?;
            }
        }
    }
    if reply.cut.is_some() {
        return Ok(false);
    }
    if reply.stall.is_some() {
        hold(shared);
        return Ok(false);
    }
    stream.write_all(b"0\r\n\r\n")?;
    Ok(true)
}

/// Waits until nobody can be there any more.
fn hold(shared: &Shared) {
    while !shared.over.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
}
