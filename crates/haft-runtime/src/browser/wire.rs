//! The line to a browser: the `DevTools` protocol over two pipes, as texts that end in NUL. Commands have numbers and
//! answers bear them; what the browser says by itself goes to [`Tabs`].
//!
//! Two threads keep it, because a browser outlives the call, and the runtime, that started it. Both end when the
//! browser does.

use super::tabs::{Command, Tabs};
use haft_core::{CallError, ErrorKind};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// The longest thing that a browser may say: a picture of a long page is a few megabytes.
const MESSAGE_MAX: usize = 48 << 20;
/// How much of a longer one is kept to find out whose answer it is.
const START: usize = 256;
/// How many commands may wait to be taken.
const COMMANDS_MAX: usize = 256;

type Answer = Result<Value, String>;

#[derive(Debug)]
struct State {
    sent: u64,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    tabs: Tabs,
    gone: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

/// The line to one browser.
#[derive(Debug)]
pub(super) struct Wire {
    out: SyncSender<Vec<u8>>,
    shared: Arc<Shared>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wire {
    /// Over these ends of its pipes.
    pub(super) fn open(to: OwnedFd, from: OwnedFd, tabs: Tabs) -> std::io::Result<Self> {
        let (out, commands) = sync_channel(COMMANDS_MAX);
        let state = State { sent: 0, waiting: HashMap::new(), tabs, gone: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() });
        let reader = Reader { shared: Arc::clone(&shared), out: out.clone() };
        thread::Builder::new().name("haft-browser-out".to_owned()).spawn(move || write(&commands, to.into()))?;
        thread::Builder::new().name("haft-browser-in".to_owned()).spawn(move || reader.read(from.into()))?;
        Ok(Self { out, shared })
    }

    /// Whether the browser is still there.
    pub(super) fn is_open(&self) -> bool {
        !self.shared.state().gone
    }

    /// Looks at the tabs.
    pub(super) fn tabs<T>(&self, look: impl FnOnce(&mut Tabs) -> T) -> T {
        look(&mut self.shared.state().tabs)
    }

    /// Sends a command and waits for its answer; an error is the browser's own word.
    pub(super) async fn ask(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> Result<Answer, CallError> {
        let (answer, heard) = oneshot::channel();
        let id = {
            let mut state = self.shared.state();
            if state.gone {
                return Err(ended());
            }
            state.sent += 1;
            let id = state.sent;
            state.waiting.insert(id, answer);
            id
        };
        if self.out.try_send(written(id, session, method, &params)).is_err() {
            self.shared.state().waiting.remove(&id);
            return Err(CallError::failed("the browser takes no more commands").hint("browser.close ends it"));
        }
        match tokio::time::timeout(patience, heard).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(ended()),
            Err(_) => {
                self.shared.state().waiting.remove(&id);
                let message = format!("the page gave no answer within {} ms", patience.as_millis());
                Err(CallError::new(ErrorKind::Timeout, message)
                    .hint("something in it may be running without end; browser.close ends it"))
            }
        }
    }

    /// Waits until something can be seen in the tabs, and says what; none if it does not come in time.
    pub(super) async fn until<T>(&self, patience: Duration, mut look: impl FnMut(&mut Tabs) -> Option<T>) -> Option<T> {
        let wait = async {
            loop {
                let changed = self.shared.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                {
                    let mut state = self.shared.state();
                    if let Some(seen) = look(&mut state.tabs) {
                        return Some(seen);
                    }
                    if state.gone {
                        return None;
                    }
                }
                changed.await;
            }
        };
        tokio::time::timeout(patience, wait).await.unwrap_or(None)
    }
}

fn ended() -> CallError {
    CallError::failed("the browser has ended").hint("browser.navigate starts another")
}

fn written(id: u64, session: Option<&str>, method: &str, params: &Value) -> Vec<u8> {
    let mut command = json!({ "id": id, "method": method, "params": params });
    if let Some(session) = session {
        command["sessionId"] = session.into();
    }
    let mut text = command.to_string().into_bytes();
    text.push(0);
    text
}

/// Passes commands on until nobody can send any, or nobody takes them.
fn write(commands: &Receiver<Vec<u8>>, mut to: File) {
    while let Ok(command) = commands.recv() {
        // Nothing ends the line but an empty word: whoever hears also holds the sending end.
        if command.is_empty() || to.write_all(&command).is_err() {
            return;
        }
    }
}

struct Reader {
    shared: Arc<Shared>,
    out: SyncSender<Vec<u8>>,
}

impl Reader {
    /// Until the browser has ended.
    fn read(self, mut from: File) {
        let (mut buffer, mut message, mut over) = (vec![0; 64 << 10], Vec::new(), false);
        while let Ok(count) = from.read(&mut buffer) {
            if count == 0 {
                break;
            }
            for piece in buffer[..count].split_inclusive(|byte| *byte == 0) {
                let (text, whole) =
                    piece.split_last().filter(|(last, _)| **last == 0).map_or((piece, false), |(_, text)| (text, true));
                if over || message.len() + text.len() > MESSAGE_MAX {
                    over = true;
                    message.truncate(START);
                } else {
                    message.extend_from_slice(text);
                }
                if whole {
                    self.heard(&message, over);
                    (message, over) = (Vec::new(), false);
                }
            }
        }
        let mut state = self.shared.state();
        state.gone = true;
        state.waiting.clear();
        drop(state);
        self.shared.changed.notify_waiters();
        let _ = self.out.try_send(Vec::new());
    }

    fn heard(&self, message: &[u8], over: bool) {
        if over {
            if let Some(id) = number(message) {
                self.answer(id, Err(format!("it would be more than {} MB", MESSAGE_MAX >> 20)));
            }
            return;
        }
        let Ok(mut said) = serde_json::from_slice::<Value>(message) else { return };
        if let Some(id) = said["id"].as_u64() {
            let answer = match said["error"]["message"].as_str() {
                Some(error) => Err(error.to_owned()),
                None => Ok(said["result"].take()),
            };
            return self.answer(id, answer);
        }
        let commands = {
            let mut state = self.shared.state();
            let commands = state.tabs.hear(&said);
            commands.into_iter().map(|command| state.numbered(&command)).collect::<Vec<_>>()
        };
        for command in commands {
            // Whoever takes nothing any more will be missed by the next one who asks.
            let _ = self.out.try_send(command);
        }
        self.shared.changed.notify_waiters();
    }

    fn answer(&self, id: u64, answer: Answer) {
        if let Some(waiting) = self.shared.state().waiting.remove(&id) {
            // Whoever asked may have gone.
            let _ = waiting.send(answer);
        }
    }
}

impl State {
    /// A command whose answer nobody waits for.
    fn numbered(&mut self, (session, method, params): &Command) -> Vec<u8> {
        self.sent += 1;
        written(self.sent, session.as_deref(), method, params)
    }
}

/// The number that an answer begins with.
fn number(start: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(start);
    let digits = text.strip_prefix("{\"id\":")?;
    digits[..digits.find(|c: char| !c.is_ascii_digit())?].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_too_long_is_still_whose_it_is() {
        assert_eq!(number(b"{\"id\":17,\"result\":{\"data\":\"xxx"), Some(17));
        assert_eq!(number(b"{\"method\":\"Page.x\""), None);
        assert_eq!(number(b"{\"id\":"), None);
    }

    #[tokio::test]
    async fn answers_find_who_asked_whatever_comes_between() {
        let (theirs_in, ours_out) = haft_sandbox::watch::pipe().unwrap();
        let (ours_in, theirs_out) = haft_sandbox::watch::pipe().unwrap();
        let wire = Wire::open(ours_out, ours_in, Tabs::new((800, 600), 1000, Arc::default())).unwrap();
        let browser = thread::spawn(move || {
            let (mut from, mut to) = (File::from(theirs_in), File::from(theirs_out));
            let mut byte = [0];
            while from.read(&mut byte).unwrap() == 1 && byte[0] != 0 {}
            let long = "x".repeat(MESSAGE_MAX + 1);
            to.write_all(b"{\"method\":\"Nobody.knows\"}\0not json\0").unwrap();
            to.write_all(format!("{{\"id\":9,\"result\":\"{long}\"}}\0").as_bytes()).unwrap();
            to.write_all(b"{\"id\":1,\"result\":{\"ok\":true}}\0").unwrap();
        });
        let answer = wire.ask(None, "Browser.getVersion", json!({}), Duration::from_secs(30)).await.unwrap();
        assert_eq!(answer, Ok(json!({ "ok": true })));
        browser.join().unwrap();
        assert_eq!(wire.until(Duration::from_secs(30), |_| None::<()>).await, None, "it has ended");
        assert!(!wire.is_open());
        let gone = wire.ask(None, "Browser.getVersion", json!({}), Duration::from_secs(30)).await.unwrap_err();
        assert_eq!(gone.message, "the browser has ended");
    }
}
