//! A reverse proxy that shows a gateway its token: for clients that can neither send a header nor keep a query with every
//! request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The longest head of a request.
const HEAD_MAX: u64 = 64 << 10;

/// A proxy that listens until it is dropped.
pub(crate) struct AuthorizingProxy {
    /// Where it listens. A gateway has to know this as a name of its own (`gateway.hosts`).
    pub(crate) address: SocketAddr,
    listener: Arc<TcpListener>,
    ends: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl AuthorizingProxy {
    /// A proxy that has an address and forwards nothing yet.
    pub(crate) fn bind() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        Self { address, listener: Arc::new(listener), ends: Arc::default(), accepting: None }
    }

    /// Forwards requests to a gateway from now on. Gives the address at the proxy that stands for this one.
    pub(crate) fn forward(&mut self, url: &str, token: &str) -> String {
        let (authority, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let gateway = Gateway { address: authority.parse().unwrap(), token: token.to_owned() };
        let (listener, ends) = (Arc::clone(&self.listener), Arc::clone(&self.ends));
        self.accepting = Some(std::thread::spawn(move || {
            for client in listener.incoming() {
                if ends.load(Ordering::Acquire) {
                    return;
                }
                let gateway = gateway.clone();
                // Ends with either end of the connection.
                std::thread::spawn(move || gateway.forward(&client.unwrap()));
            }
        }));
        format!("http://{}/{path}", self.address)
    }
}

impl Drop for AuthorizingProxy {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        // Wakes the thread that accepts.
        let woken = TcpStream::connect(self.address);
        if let (Ok(_), Some(accepting)) = (woken, self.accepting.take()) {
            let _ = accepting.join();
        }
    }
}

/// What is behind the proxy.
#[derive(Clone)]
struct Gateway {
    address: SocketAddr,
    token: String,
}

impl Gateway {
    /// Forwards one request, and everything that comes back. A connection carries one request, so that no later one goes
    /// without the token.
    fn forward(&self, client: &TcpStream) {
        let mut requests = BufReader::new(client);
        let Some(head) = self.authorized_head(&mut requests) else { return };
        let mut gateway = TcpStream::connect(self.address).unwrap();
        // Either end may go at any time; then so does the other.
        std::thread::scope(|scope| {
            let mut to_gateway = gateway.try_clone().unwrap();
            scope.spawn(move || {
                let _ = to_gateway.write_all(&head).and_then(|()| std::io::copy(&mut requests, &mut to_gateway));
                let _ = to_gateway.shutdown(Shutdown::Both);
            });
            let _ = std::io::copy(&mut gateway, &mut &*client);
            let _ = client.shutdown(Shutdown::Both);
        });
    }

    /// The head of a request, with the token; none if the client went before it said anything.
    fn authorized_head(&self, requests: &mut impl BufRead) -> Option<Vec<u8>> {
        let mut head = Vec::new();
        let mut lines = requests.take(HEAD_MAX);
        loop {
            let mut line = Vec::new();
            lines.read_until(b'\n', &mut line).ok().filter(|length| *length > 0)?;
            if line == b"\r\n" {
                break;
            }
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            if !name.eq_ignore_ascii_case(b"connection") {
                head.append(&mut line);
            }
        }
        write!(head, "Connection: close\r\nAuthorization: Bearer {}\r\n\r\n", self.token).unwrap();
        Some(head)
    }
}
