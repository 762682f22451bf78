//! The outside half of a list of hosts. The confined program lives in a network of its own, where nothing
//! is but loopback; the sockets that it can reach there were made inside and handed out to us. Whatever
//! connects to them is judged here, by the rules, and dialled from here.
//!
//! The program has no other way out, so a fault in this module costs it the network, not us the list.
//! What the list cannot stop: an allowed host that passes things on to others.

mod allowed;
mod body;
mod dial;
mod door;
mod hall;
mod names;
mod proxy;
mod report;
mod request;
mod splice;

pub use allowed::{Allowed, Inside};
pub use dial::is_own;
pub use report::{Contact, Told, Via};

use door::{Door, Entrance};
use haft_core::host::Host;
use hall::Hall;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long closing waits for connections that were hung up on to notice.
const FAREWELL: Duration = Duration::from_millis(500);

/// The sockets inside the program's network, by what they are for. They are set non-blocking.
#[derive(Debug, Default)]
pub struct Ways {
    /// Speaks HTTP/1.1 as a proxy: `CONNECT`, and whole `http` URLs.
    pub proxy: Option<TcpListener>,
    /// Stand in for one listed host and port each, for programs that know no proxy.
    pub direct: Vec<(String, u16, TcpListener)>,
    /// Answers DNS questions from a table of listed names. Names outside of it do not exist.
    pub names: Option<(UdpSocket, Vec<(String, Ipv4Addr)>)>,
}

/// How much a gate puts up with.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Connections at once; further ones wait to be accepted.
    connections: usize,
    /// Time for the head of a request to arrive.
    head: Duration,
    /// Time for one address to answer.
    dial: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 64, head: Duration::from_secs(10), dial: Duration::from_secs(10) }
    }
}

/// An open gate. Its threads end with it, except one that is resolving a name or connecting at that moment:
/// it ends by itself when that is over, without having carried anything.
#[derive(Debug)]
pub struct Gate {
    hall: Arc<Hall>,
    door: Option<JoinHandle<()>>,
}

impl Gate {
    /// Opens the ways for what the rules cover. A way for something else is an error: a list that cannot be
    /// kept is not kept halfway.
    pub fn open(allowed: impl Into<Allowed>, ways: Ways) -> io::Result<Self> {
        Self::open_told(allowed, ways, None)
    }

    /// The same, and somebody is told of each contact when it ends.
    pub fn open_told(allowed: impl Into<Allowed>, ways: Ways, told: Option<Told>) -> io::Result<Self> {
        Self::open_within(allowed.into(), ways, Limits::default(), told)
    }

    fn open_within(rules: Allowed, ways: Ways, limits: Limits, told: Option<Told>) -> io::Result<Self> {
        let names = ways.names.map(|names| known_names(&rules, names)).transpose()?;
        let mut entrances = Vec::new();
        for (host, port, listener) in ways.direct {
            entrances.push(direct(&rules, &host, port, listener)?);
        }
        if let Some(listener) = ways.proxy {
            listener.set_nonblocking(true)?;
            entrances.push(Entrance::Proxy(listener));
        }
        let (bell, rope) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rope.set_nonblocking(true)?;
        let hall = Arc::new(Hall::new(rules, limits, rope, told));
        let door = Door { hall: Arc::clone(&hall), bell, entrances, names };
        let door = thread::Builder::new().name("haft-net-door".to_owned()).spawn(|| door.keep())?;
        Ok(Self { hall, door: Some(door) })
    }

    /// What has been asked for so far. A connection is counted when it ends.
    pub fn contacts(&self) -> Vec<Contact> {
        self.hall.contacts()
    }

    /// Hangs up on everything, and says what was asked for.
    pub fn close(mut self) -> Vec<Contact> {
        self.stop();
        self.hall.contacts()
    }

    fn stop(&mut self) {
        let Some(door) = self.door.take() else { return };
        self.hall.close();
        // It can only have panicked; the connections are ended here in any case.
        let _ = door.join();
        self.hall.wait(FAREWELL);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.stop();
    }
}

fn direct(rules: &Allowed, host: &str, port: u16, listener: TcpListener) -> io::Result<Entrance> {
    let read = Host::read(host).filter(|host| rules.admits(host, port).is_ok());
    let host = read.ok_or_else(|| unlisted(&format!("{host}:{port}")))?;
    listener.set_nonblocking(true)?;
    Ok(Entrance::Direct(host, port, listener))
}

fn known_names(rules: &Allowed, (socket, table): door::Names) -> io::Result<door::Names> {
    let mut known = Vec::with_capacity(table.len());
    for (name, address) in table {
        match Host::read(&name) {
            Some(host @ Host::Name(_)) if rules.know(&host) => known.push((host.to_string(), address)),
            _ => return Err(unlisted(&name)),
        }
    }
    socket.set_nonblocking(true)?;
    Ok((socket, known))
}

fn unlisted(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("`{what}` has a way, but no rule covers it"))
}

#[cfg(test)]
mod tests;
