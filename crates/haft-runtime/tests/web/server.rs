//! A server that answers as it is told to, however wrong that is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What is sent back.
pub(crate) enum Answer {
    /// These bytes, and then the next request.
    Bytes(Vec<u8>),
    /// These bytes, and then the end.
    Last(Vec<u8>),
    /// The first, and then the second again and again, with a pause.
    Endless(Vec<u8>, Vec<u8>, Duration),
    /// Nothing, ever.
    Nothing,
}

/// A whole answer with a body.
pub(crate) fn ok(head: &str, body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{head}\r\n", body.len());
    Answer::Bytes([head.as_bytes(), body].concat())
}

/// Sends on to somewhere else, with a body that nobody should read.
pub(crate) fn sends_on(status: u16, location: &str) -> Answer {
    Answer::Bytes(format!("HTTP/1.1 {status} On\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n").into_bytes())
}

/// One that runs as long as this lives.
pub(crate) struct Server {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

type Script = Arc<dyn Fn(&str) -> Answer + Send + Sync>;

impl Server {
    /// Answers each request, of which the script sees head and body as they came.
    pub(crate) async fn start(script: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        Self::serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), None, script)
    }

    /// The same by TLS.
    pub(crate) async fn secure(tls: TlsAcceptor, script: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        Self::serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), Some(tls), script)
    }

    /// The same at a place of one's own.
    pub(crate) fn serve(
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        script: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let port = listener.local_addr().unwrap().port();
        let (heard, connections) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicUsize>::default());
        let (script, mut tasks): (Script, _) = (Arc::new(script), JoinSet::new());
        let (ears, count) = (Arc::clone(&heard), Arc::clone(&connections));
        tasks.spawn(async move {
            let mut all = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (script, ears, tls) = (Arc::clone(&script), Arc::clone(&ears), tls.clone());
                all.spawn(async move {
                    match tls {
                        None => converse(stream, &script, &ears).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => converse(stream, &script, &ears).await,
                            Err(_) => None,
                        },
                    }
                });
                while all.try_join_next().is_some() {}
            }
        });
        Self { port, heard, connections, _tasks: tasks }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What came, in order.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Answers what comes over one connection, until either side has had enough.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    script: &Script,
    ears: &Mutex<Vec<String>>,
) -> Option<()> {
    let mut waiting = Vec::new();
    loop {
        let request = request(&mut stream, &mut waiting).await?;
        ears.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        match script(&request) {
            Answer::Bytes(bytes) => stream.write_all(&bytes).await.ok()?,
            Answer::Last(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                return stream.shutdown().await.ok();
            }
            Answer::Endless(head, piece, pause) => {
                stream.write_all(&head).await.ok()?;
                loop {
                    stream.write_all(&piece).await.ok()?;
                    stream.flush().await.ok()?;
                    if !pause.is_zero() {
                        tokio::time::sleep(pause).await;
                    }
                }
            }
            Answer::Nothing => std::future::pending().await,
        }
    }
}

/// One request with its body.
async fn request<S: AsyncRead + Unpin>(stream: &mut S, waiting: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = waiting.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&waiting[..end + 4]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            let whole = end + 4 + length.unwrap_or(0);
            if waiting.len() >= whole {
                let request = String::from_utf8_lossy(&waiting[..whole]).into_owned();
                waiting.drain(..whole);
                return Some(request);
            }
        }
        let read = stream.read_buf(waiting).await.ok()?;
        if read == 0 {
            return None;
        }
    }
}
