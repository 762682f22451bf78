//! The process's own stdin and stdout, without a thread where they are pipes, and with one where they are anything
//! else: a file, a socket, a terminal.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// How much may wait to be written before whoever writes more waits.
const WAITING_MAX: usize = 1 << 20;

/// What comes in.
pub(super) enum Source {
    Pipe(pipe::Receiver),
    Thread(mpsc::Receiver<Vec<u8>>),
}

impl Source {
    /// The process's stdin. A pipe is opened anew, so that whoever shares it keeps it as it is.
    pub(super) fn stdin() -> io::Result<Self> {
        if let Ok(pipe) = pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
            return Ok(Self::Pipe(pipe));
        }
        let (sender, chunks) = mpsc::channel(1);
        // It ends with the stream or with whoever listens; until then it waits in the kernel, and holds up nothing.
        std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            let (mut stdin, mut buffer) = (io::stdin().lock(), vec![0; CHUNK]);
            while let Ok(read @ 1..) = stdin.read(&mut buffer) {
                if sender.blocking_send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self::Thread(chunks))
    }

    /// Adds what comes next. False at the end. Nothing is lost if this is dropped while it waits.
    pub(super) async fn read(&mut self, into: &mut Vec<u8>) -> bool {
        match self {
            Self::Thread(chunks) => match chunks.recv().await {
                Some(chunk) => {
                    into.extend_from_slice(&chunk);
                    true
                }
                None => false,
            },
            Self::Pipe(pipe) => loop {
                if pipe.readable().await.is_err() {
                    return false;
                }
                into.reserve(CHUNK);
                match pipe.try_read_buf(into) {
                    Ok(read) => return read > 0,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return false,
                }
            },
        }
    }
}

/// What goes out: kept in order, written together.
pub(super) struct Sink {
    waiting: Mutex<Vec<u8>>,
    filled: Notify,
    written: Notify,
    broken: AtomicBool,
}

impl Sink {
    /// The process's stdout, written by a task of `owner`. `on_break` is called once if nobody reads any more.
    pub(super) fn stdout(owner: &mut JoinSet<()>, on_break: impl FnOnce() + Send + 'static) -> Arc<Self> {
        let sink = Arc::new(Self {
            waiting: Mutex::default(),
            filled: Notify::new(),
            written: Notify::new(),
            broken: AtomicBool::new(false),
        });
        let pipe = pipe::OpenOptions::new().open_sender("/proc/self/fd/1").ok();
        let task = Arc::clone(&sink);
        owner.spawn(async move {
            // An error means that nobody reads any more: what is said from now on is lost, and nobody waits for it.
            if task.drain(pipe).await.is_err() {
                task.broken.store(true, Ordering::Release);
                task.waiting().clear();
                task.written.notify_waiters();
                on_break();
            }
        });
        sink
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line. What cannot be written as JSON is not written at all.
    pub(super) fn push(&self, message: &impl serde::Serialize) {
        if self.broken.load(Ordering::Acquire) {
            return;
        }
        let mut waiting = self.waiting();
        let before = waiting.len();
        if serde_json::to_writer(&mut *waiting, message).is_ok() {
            waiting.push(b'\n');
        } else {
            waiting.truncate(before);
        }
        drop(waiting);
        self.filled.notify_one();
    }

    /// Waits until at most this much waits.
    async fn until(&self, left: usize) {
        loop {
            let written = self.written.notified();
            if self.waiting().len() <= left || self.broken.load(Ordering::Acquire) {
                return;
            }
            written.await;
        }
    }

    /// Waits while too much waits to be written.
    pub(super) async fn room(&self) {
        self.until(WAITING_MAX).await;
    }

    /// Waits until everything is written.
    pub(super) async fn flushed(&self) {
        self.until(0).await;
    }

    async fn drain(&self, pipe: Option<pipe::Sender>) -> io::Result<()> {
        let mut batch = Vec::new();
        loop {
            let filled = self.filled.notified();
            let length = {
                let waiting = self.waiting();
                batch.clear();
                batch.extend_from_slice(&waiting);
                batch.len()
            };
            if length == 0 {
                filled.await;
                continue;
            }
            match &pipe {
                Some(pipe) => write_all(pipe, &batch).await?,
                None => batch = blocking(batch).await?,
            }
            // Only now is it no longer waiting: whoever waits for an empty sink waits for the kernel to have it.
            let mut waiting = self.waiting();
            waiting.drain(..length);
            if waiting.is_empty() && waiting.capacity() > WAITING_MAX {
                *waiting = Vec::new();
            }
            drop(waiting);
            self.written.notify_waiters();
        }
    }
}

async fn write_all(pipe: &pipe::Sender, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        pipe.writable().await?;
        match pipe.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes where writing blocks, on a thread that may.
async fn blocking(batch: Vec<u8>) -> io::Result<Vec<u8>> {
    let write = move || {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&batch)?;
        stdout.flush()?;
        Ok(batch)
    };
    tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
}
