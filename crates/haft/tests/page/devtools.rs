//! A browser, and as much of the `DevTools` protocol as drives it: commands with their answers, and what is said
//! between them.

use crate::needs::need;
use crate::until;
use futures_util::{SinkExt, StreamExt};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// How long a command may take.
const PATIENCE: Duration = Duration::from_mins(1);

const FLAGS: [&str; 13] = [
    "--headless=new",
    // It may run as root in a container, where Chromium cannot sandbox itself; it opens nothing but our own page.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--lang=en-US",
    "--remote-debugging-port=0",
    "about:blank",
];

/// A browser of this test's own. It ends with it.
pub(crate) struct Browser {
    child: Child,
    link: RefCell<Link>,
    _profile: tempfile::TempDir,
}

struct Link {
    runtime: Runtime,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    sent: u64,
    heard: Vec<Value>,
}

impl Browser {
    /// Starts one; none where somebody said that tests are to do without.
    pub(crate) fn start() -> Option<Self> {
        let program = need("HAFT_TEST_CHROMIUM")?;
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new(program);
        command.arg(format!("--user-data-dir={}", profile.path().display())).args(FLAGS);
        // A group of its own, because it is many processes.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let child = command.spawn().unwrap();
        let note = profile.path().join("DevToolsActivePort");
        let address = until("the browser says where it listens", || {
            let text = std::fs::read_to_string(&note).ok()?;
            let (port, path) = text.split_once('\n')?;
            Some(format!("ws://127.0.0.1:{port}{}", path.trim())).filter(|_| path.contains("browser"))
        });
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (socket, _) = runtime.block_on(connect_async(address)).unwrap();
        let link = RefCell::new(Link { runtime, socket, sent: 0, heard: Vec::new() });
        Some(Self { child, link, _profile: profile })
    }

    /// Sends a command, and waits for its answer.
    pub(crate) fn send(&self, session: Option<&str>, method: &str, params: Value) -> Result<Value, String> {
        let link = &mut *self.link.borrow_mut();
        link.sent += 1;
        let id = link.sent;
        let mut command = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        let Link { runtime, socket, heard, .. } = link;
        let exchange = async {
            socket.send(Message::text(command.to_string())).await.unwrap();
            loop {
                let message =
                    socket.next().await.unwrap_or_else(|| panic!("the browser went away in {method}")).unwrap();
                let Message::Text(text) = message else { continue };
                let mut said: Value = serde_json::from_str(&text).unwrap();
                if said["id"] != id {
                    heard.push(said);
                    continue;
                }
                return said
                    .get("error")
                    .map_or(Ok(()), |error| Err(error.to_string()))
                    .map(|()| said["result"].take());
            }
        };
        let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, exchange).await });
        answer.unwrap_or_else(|_| panic!("{method} got no answer"))
    }

    /// What it has said to a session by itself so far, of these kinds.
    pub(crate) fn heard(&self, session: &str, methods: &[&str]) -> Vec<Value> {
        let link = self.link.borrow();
        let fits = |said: &&Value| said["sessionId"] == session && methods.iter().any(|one| said["method"] == *one);
        link.heard.iter().filter(fits).cloned().collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
