//! The port: accepting, keeping connections within bounds, and closing in good order.

use crate::gateway::{Gateway, Shared};
use crate::guard::Ends;
use crate::meters::Counted;
use crate::options::Options;
use crate::patient::Patient;
use crate::{hub, routes, tail, tls};
use axum::Router;
use axum::body::Body;
use haft_runtime::Haft;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// How long a client may take to send the head of a request, and may stay without sending one.
const HEAD: Duration = Duration::from_secs(10);
/// How large a head may be.
const HEAD_MAX: usize = 32 << 10;
/// How much of a connection is held in memory at once.
const BUFFER: usize = 64 << 10;
/// How long calls that run may go on when the gateway closes, and how long they may take to be cancelled then.
const GRACE: Duration = Duration::from_secs(10);
const LAST_GRACE: Duration = Duration::from_secs(3);
/// How long to wait when the machine can accept no more.
const EXHAUSTED: Duration = Duration::from_millis(50);

const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n";

/// Why the gateway cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {why}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        why: std::io::Error,
    },
    /// The certificate or its key is no good.
    #[error("{0}")]
    Tls(String),
}

impl ServeError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Listen { why, .. } if why.kind() == std::io::ErrorKind::AddrInUse => {
                "something listens there already, perhaps another `haft serve`; end it, or choose another port: --listen 127.0.0.1:0 finds a free one"
            }
            Self::Listen { .. } => "choose an address of this machine and a port above 1023: --listen 127.0.0.1:4747",
            Self::Tls(_) => "--tls-cert and --tls-key take PEM files that belong together",
        }
    }
}

/// Listens.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|why| ServeError::Listen { address, why })
}

/// Serves on a port until `end`, then closes: nothing new is accepted, listeners are told, calls that run get some
/// seconds to finish, and what is left is cancelled.
pub async fn serve(
    haft: Arc<Haft>,
    mut options: Options,
    listener: TcpListener,
    end: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = options.listen;
    options.listen = listener.local_addr().map_err(|why| ServeError::Listen { address, why })?;
    let secure = options.tls.as_ref().map(tls::acceptor).transpose()?;
    let room = Arc::new(Semaphore::new(options.connections));
    let gateway = Gateway::new(haft, options);
    let tasks = &gateway.work.tasks;
    tasks.spawn(hub::pump(Shared::clone(&gateway), gateway.haft.events().listen()));
    tasks.spawn(Shared::clone(&gateway).tend_agents());
    tasks.spawn(tail::follow(Shared::clone(&gateway)));
    let router = routes::router(&gateway);
    tokio::pin!(end);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut end => break,
        };
        match accepted {
            Ok((stream, remote)) => admit(&gateway, &room, stream, remote, (&router, secure.as_ref())),
            // A client that is gone again, or no more descriptors: the next one may fare better.
            Err(_) => tokio::time::sleep(EXHAUSTED).await,
        }
    }
    drop(listener);
    close(&gateway).await;
    Ok(())
}

async fn close(gateway: &Shared) {
    gateway.work.closing.cancel();
    gateway.work.tasks.close();
    if tokio::time::timeout(GRACE, gateway.work.tasks.wait()).await.is_err() {
        gateway.work.halt.cancel();
        // What does not end even then ends with the process; its record says so at the next start.
        let _ = tokio::time::timeout(LAST_GRACE, gateway.work.tasks.wait()).await;
    }
}

fn admit(
    gateway: &Shared,
    room: &Arc<Semaphore>,
    stream: TcpStream,
    remote: SocketAddr,
    (router, secure): (&Router, Option<&TlsAcceptor>),
) {
    let (Ok(permit), Ok(local)) = (Arc::clone(room).try_acquire_owned(), stream.local_addr()) else {
        gateway.meters.turned_away.inc();
        // As much as fits at once: whoever is too many must not cost a task.
        let _ = stream.try_write(FULL);
        return;
    };
    let _ = stream.set_nodelay(true);
    let counted = (Counted::new(&gateway.meters.connections), permit);
    let (shared, router, secure) = (Shared::clone(gateway), router.clone(), secure.cloned());
    gateway.work.tasks.spawn(talk(shared, stream, Ends { remote, local }, router, secure, counted));
}

async fn talk(
    gateway: Shared,
    stream: TcpStream,
    ends: Ends,
    router: Router,
    secure: Option<TlsAcceptor>,
    _counted: (Counted, OwnedSemaphorePermit),
) {
    match secure {
        None => speak(&gateway, stream, ends, router).await,
        Some(acceptor) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD, acceptor.accept(stream)).await {
                speak(&gateway, stream, ends, router).await;
            }
        }
    }
}

async fn speak<S>(gateway: &Shared, stream: S, ends: Ends, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ends);
        router.clone().oneshot(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_header_size(HEAD_MAX)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(Patient::new(stream)), service)
        .with_upgrades();
    tokio::pin!(connection);
    // What went wrong with a connection, its client knows best; there is nobody else to tell.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = gateway.work.closing.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
