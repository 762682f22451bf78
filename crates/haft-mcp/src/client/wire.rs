//! The wire to a program: one JSON message a line, over its pipes. Bounded, because whatever comes from there was
//! written by somebody else: a line that is too long ends the connection, and what is no message is left out.

use super::status::Garbage;
use super::tamed;
use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

/// The longest line that is read.
const LINE_MAX: usize = 32 << 20;
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
            if let Some(message) = message.filter(is_wanted) {
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

/// Each notification costs a task: those that nobody here listens to are left out before that.
fn is_wanted(message: &RxJsonRpcMessage<RoleClient>) -> bool {
    let JsonRpcMessage::Notification(message) = message else { return true };
    matches!(
        message.notification,
        ServerNotification::CancelledNotification(_)
            | ServerNotification::ProgressNotification(_)
            | ServerNotification::ToolListChangedNotification(_)
            | ServerNotification::SubscriptionsAcknowledgedNotification(_)
    )
}

impl Transport<RoleClient> for Wire {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (stdin, closed) = (Arc::clone(&self.stdin), self.closed.clone());
        let line = serde_json::to_vec(&item).map(|mut line| {
            line.push(b'\n');
            line
        });
        async move {
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
