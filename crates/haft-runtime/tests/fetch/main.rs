//! web.fetch as it is used: a real server on this machine, the whole path of a call, and what comes of a page that
//! attacks.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]

mod hostile;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod pages;
mod provenance;

use haft_core::approval::{List, Listed};
use haft_core::host::HostRules;
use haft_core::{Call, Outcome, ToolName};
use haft_runtime::{Haft, Halt, Nobody, Settings, Workspace, new_call_id};
use haft_store::Store;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a path is answered with: status, content type, more headers, body.
#[derive(Clone, Default)]
struct Answer {
    status: u16,
    content_type: &'static str,
    headers: String,
    body: Vec<u8>,
}

fn answer(content_type: &'static str, body: impl Into<Vec<u8>>) -> Answer {
    Answer { status: 200, content_type, headers: String::new(), body: body.into() }
}

/// A server that gives fixed answers, and a tool layer that may reach it.
struct Stage {
    dir: tempfile::TempDir,
    haft: Haft,
    port: u16,
    served: Arc<AtomicUsize>,
}

impl Stage {
    fn new(answers: Vec<(&'static str, Answer)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&served);
        // It ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                serve(&stream, &answers);
            }
        });
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        let workspace = Workspace::new(&dir.path().join("project")).unwrap();
        let store = Store::open(&dir.path().join("haft.db")).unwrap();
        let mut settings = Settings::new(dir.path().join("data"));
        settings.web.allow_private = HostRules::from(vec![format!("127.0.0.1:{port}").parse().unwrap()]);
        let write = ToolName::new("file.write").unwrap();
        let list = List::open(&["file.write".to_owned()], &[], &BTreeMap::new(), &[write]).unwrap();
        settings.chain.add(Arc::new(Listed { list, document: false }));
        Self { haft: Haft::new(workspace, store, settings), dir, port, served }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }

    async fn call(&self, tool: &str, args: Value) -> Outcome {
        let call = Call::new(new_call_id(), tool, args);
        self.haft.call(call, &Nobody, &Halt::new()).await
    }

    async fn fetch(&self, path: &str, more: Value) -> Outcome {
        let mut args = serde_json::json!({ "url": self.url(path) });
        for (name, value) in more.as_object().unwrap() {
            args[name] = value.clone();
        }
        self.call("web.fetch", args).await
    }
}

fn serve(stream: &TcpStream, answers: &[(&'static str, Answer)]) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let path = lines.next().and_then(|line| line.split(' ').nth(1).map(str::to_owned)).unwrap_or_default();
    let _ = lines.find(String::is_empty);
    let missing = Answer { status: 404, ..answer("text/plain", "nothing here") };
    let found = answers.iter().find(|(known, _)| *known == path).map_or(missing, |(_, answer)| answer.clone());
    let head = format!(
        "HTTP/1.1 {} X\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n{}\r\n",
        found.status,
        found.content_type,
        found.body.len(),
        found.headers
    );
    let mut stream = stream;
    // Whoever asked may have gone away.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&found.body));
}

/// The text between the lines of the wrapper.
fn inner(outcome: &Outcome) -> &str {
    let (head, rest) = outcome.output.split_once('\n').unwrap_or_default();
    assert!(head.starts_with("<untrusted mark=\""), "{}", outcome.output);
    let mark = head.split('"').nth(1).unwrap();
    rest.strip_suffix(&format!("</untrusted mark=\"{mark}\">")).unwrap()
}

fn kind(outcome: &Outcome) -> &'static str {
    outcome.error.as_ref().map_or("", |error| error.kind.as_str())
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}
