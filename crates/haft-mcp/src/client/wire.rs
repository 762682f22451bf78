//! The wire to a program: one JSON message a line, over its pipes. Bounded, because whatever comes from there was
//! written by somebody else: a line that is too long ends the connection, and what is no message is left out.

use super::status::Garbage;
use super::tamed;
use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The longest line that is read.
const LINE_MAX: usize = 8 << 20;
/// How many requests of the program may be without an answer. Before it has taken some, it is not read any further.
const OPEN_MAX: usize = 32;
/// How much of a line that is no message is kept for people.
const SHOWN: usize = 200;
/// How much of what a program complains about is kept.
const TAIL: usize = 4096;

/// What was noticed on a wire.
#[derive(Debug, Default)]
pub(super) struct Noticed {
    garbage: Mutex<Garbage>,
    fatal: Mutex<Option<String>>,
    tail: Mutex<Vec<u8>>,
}

impl Noticed {
    /// What was printed that is no message, if anything.
    pub(super) fn garbage(&self) -> Option<Garbage> {
        let garbage = self.garbage.lock().unwrap_or_else(PoisonError::into_inner);
        (garbage.lines > 0).then(|| garbage.clone())
    }

    /// Why the connection was given up, if it was.
    pub(super) fn fatal(&self) -> Option<String> {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The end of what the program complained about.
    pub(super) fn complaint(&self) -> Option<String> {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        let last = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(tamed(last.trim(), SHOWN))
    }

    fn note_garbage(&self, line: &[u8]) {
        let mut garbage = self.garbage.lock().unwrap_or_else(PoisonError::into_inner);
        garbage.lines += 1;
        garbage.last = tamed(&String::from_utf8_lossy(&line[..line.len().min(SHOWN)]), SHOWN);
    }

    fn give_up(&self, why: String) {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    /// Reads what the program complains about until it ends, and keeps the end of it.
    pub(super) async fn listen(self: Arc<Self>, stderr: OwnedFd) {
        let Ok(mut stderr) = pipe::Receiver::from_owned_fd(stderr) else { return };
        let mut piece = vec![0; TAIL];
        while let Ok(count) = stderr.read(&mut piece).await {
            if count == 0 {
                return;
            }
            let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.extend_from_slice(&piece[..count]);
            let over = tail.len().saturating_sub(TAIL);
            tail.drain(..over);
        }
    }
}

/// What the program has asked and not been told yet: whoever asks and does not read would otherwise fill the memory.
#[derive(Default)]
struct Unanswered {
    state: Mutex<Waiting>,
    fewer: Notify,
}

#[derive(Default)]
struct Waiting {
    asked: HashSet<RequestId>,
    /// How many answers are on their way.
    writing: usize,
}

/// An answer on its way, as long as this lives.
struct Writing(Arc<Unanswered>);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.with(|waiting| waiting.writing -= 1);
        self.0.fewer.notify_one();
    }
}

impl Unanswered {
    fn with<T>(&self, look: impl FnOnce(&mut Waiting) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes what a message asks, or takes back. False for a request whose id is in use.
    fn hear(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        match message {
            JsonRpcMessage::Request(request) => self.with(|waiting| waiting.asked.insert(request.id.clone())),
            JsonRpcMessage::Notification(said) => {
                // What was taken back is not answered.
                if let ServerNotification::CancelledNotification(cancelled) = &said.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.with(|waiting| waiting.asked.remove(id));
                }
                true
            }
            _ => true,
        }
    }

    /// Notes that an answer is on its way.
    fn answer(self: &Arc<Self>, message: &TxJsonRpcMessage<RoleClient>) -> Option<Writing> {
        let id = match message {
            JsonRpcMessage::Response(response) => &response.id,
            JsonRpcMessage::Error(error) => error.id.as_ref()?,
            _ => return None,
        };
        self.with(|waiting| {
            waiting.asked.remove(id);
            waiting.writing += 1;
        });
        Some(Writing(Arc::clone(self)))
    }

    /// Waits until more may be asked.
    async fn room(&self) {
        while self.with(|waiting| waiting.asked.len() + waiting.writing >= OPEN_MAX) {
            self.fewer.notified().await;
        }
    }
}

/// The wire.
pub(super) struct Wire {
    stdout: pipe::Receiver,
    stdin: Arc<tokio::sync::Mutex<Option<pipe::Sender>>>,
    buffer: Vec<u8>,
    /// How much of the buffer has been taken.
    taken: usize,
    /// How much of it has been looked through.
    looked: usize,
    noticed: Arc<Noticed>,
    unanswered: Arc<Unanswered>,
    /// Ends writes that the program does not take.
    closed: CancellationToken,
}

impl Wire {
    /// Over these pipes. Has to be made where the async runtime is.
    pub(super) fn new(stdin: OwnedFd, stdout: OwnedFd, noticed: Arc<Noticed>) -> io::Result<Self> {
        Ok(Self {
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stdin: Arc::new(tokio::sync::Mutex::new(Some(pipe::Sender::from_owned_fd(stdin)?))),
            buffer: Vec::new(),
            taken: 0,
            looked: 0,
            noticed,
            unanswered: Arc::default(),
            closed: CancellationToken::new(),
        })
    }

    /// The next message in the buffer, if there is a whole line that is one.
    fn next(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        while let Some(length) = self.buffer[self.looked..].iter().position(|byte| *byte == b'\n') {
            let end = self.looked + length;
            let line = self.buffer[self.taken..end].trim_ascii();
            let message = read(line);
            if message.is_none() && !line.is_empty() {
                self.noticed.note_garbage(line);
            }
            self.taken = end + 1;
            self.looked = self.taken;
            if let Some(message) = message.filter(|message| self.unanswered.hear(message)) {
                return Some(message);
            }
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.looked = self.buffer.len();
        None
    }
}

fn read(line: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
    if line.first() != Some(&b'{') {
        return None;
    }
    serde_json::from_slice(line).ok()
}

impl Transport<RoleClient> for Wire {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (stdin, closed) = (Arc::clone(&self.stdin), self.closed.clone());
        let writing = self.unanswered.answer(&item);
        let line = serde_json::to_vec(&item).map(|mut line| {
            line.push(b'\n');
            line
        });
        async move {
            let _writing = writing;
            let line = line?;
            let write = async {
                let mut stdin = stdin.lock().await;
                let stdin = stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
                stdin.write_all(&line).await
            };
            tokio::select! {
                done = write => done,
                () = closed.cancelled() => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            self.unanswered.room().await;
            if let Some(message) = self.next() {
                return Some(message);
            }
            if self.buffer.len() > LINE_MAX {
                let most = haft_core::preview::size(LINE_MAX);
                self.noticed.give_up(format!("it sent a message of more than {most}, which is not read"));
                return None;
            }
            // A full buffer doubles: reading much in small pieces would copy it many times.
            let room = self.buffer.len().clamp(8 << 10, 1 << 20);
            self.buffer.reserve(room);
            match self.stdout.read_buf(&mut self.buffer).await {
                Ok(count) if count > 0 => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.closed.cancel();
        self.stdin.lock().await.take();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::io::Write as _;

    #[tokio::test]
    async fn a_program_that_asks_and_does_not_listen_is_not_read() {
        let ((kept, stdin), (stdout, mut program)) = (io::pipe().unwrap(), io::pipe().unwrap());
        let mut wire = Wire::new(stdin.into(), stdout.into(), Arc::default()).unwrap();
        for id in 0..100 {
            writeln!(program, r#"{{"jsonrpc": "2.0", "id": {}, "method": "ping"}}"#, id / 2).unwrap();
        }
        for id in 0..OPEN_MAX {
            let Some(JsonRpcMessage::Request(asked)) = wire.receive().await else { panic!("no request") };
            assert_eq!(asked.id, RequestId::Number(i64::try_from(id).unwrap()), "an id in use is left out");
        }
        assert!(wire.receive().now_or_never().is_none());
        let answer = serde_json::json!({"jsonrpc": "2.0", "id": 3, "result": {}});
        let sending = wire.send(serde_json::from_value(answer).unwrap());
        assert!(wire.receive().now_or_never().is_none(), "an answer that is not written yet frees nothing");
        sending.await.unwrap();
        assert!(wire.receive().await.is_some());
        drop(kept);
    }
}
