//! The one thread that waits at all ways in: it answers names itself, and gives each connection a thread.

use super::hall::{Hall, Visit};
use super::report::{Contact, Via};
use super::{names, proxy, splice};
use haft_core::host::Host;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How many questions are answered before connections have their turn again.
const QUESTIONS: usize = 64;
/// The longest question that is read; what is cut off is not needed, or malformed.
const QUESTION_MAX: usize = 1500;
/// How long to hold off when a connection cannot be taken in, for want of descriptors say.
const BREATH: Duration = Duration::from_millis(50);

/// A listening socket and what connecting to it means.
#[derive(Debug)]
pub(super) enum Entrance {
    Proxy(TcpListener),
    Direct(Host, u16, TcpListener),
}

impl Entrance {
    fn listener(&self) -> &TcpListener {
        match self {
            Self::Proxy(listener) | Self::Direct(_, _, listener) => listener,
        }
    }
}

/// Names, and the addresses that stand in for them.
pub(super) type Names = (UdpSocket, Vec<(String, Ipv4Addr)>);

#[derive(Debug)]
pub(super) struct Door {
    pub(super) hall: Arc<Hall>,
    /// Readable when there is something new to know about the hall.
    pub(super) bell: UnixStream,
    pub(super) entrances: Vec<Entrance>,
    pub(super) names: Option<Names>,
}

/// What has come.
struct Ready {
    bell: bool,
    names: bool,
    entrances: Vec<usize>,
}

impl Door {
    /// Until the hall closes.
    pub(super) fn keep(mut self) {
        while !self.hall.is_closing() {
            let Ok(ready) = self.wait() else {
                thread::sleep(BREATH);
                continue;
            };
            if ready.bell {
                let _ = self.bell.read(&mut [0; 256]);
            }
            if let Some(names) = self.names.as_ref().filter(|_| ready.names) {
                answer(&self.hall, names);
            }
            for at in ready.entrances {
                self.admit(&self.entrances[at]);
            }
            // With one place free at a time, the first entrance would always have it.
            if !self.entrances.is_empty() {
                self.entrances.rotate_left(1);
            }
        }
    }

    /// Waits for any of it; for connections only while there is room, the rest wait in the kernel.
    fn wait(&self) -> io::Result<Ready> {
        let entrances = if self.hall.has_room() { &self.entrances[..] } else { &[] };
        let mut fds = vec![PollFd::new(&self.bell, PollFlags::IN)];
        fds.extend(entrances.iter().map(|entrance| PollFd::new(entrance.listener(), PollFlags::IN)));
        fds.extend(self.names.iter().map(|(socket, _)| PollFd::new(socket, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let came: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        Ok(Ready {
            bell: came[0],
            names: self.names.is_some() && came[entrances.len() + 1],
            entrances: (0..entrances.len()).filter(|at| came[at + 1]).collect(),
        })
    }

    fn admit(&self, entrance: &Entrance) {
        if !self.hall.has_room() {
            return;
        }
        let (via, direct) = match entrance {
            Entrance::Proxy(_) => (Via::Proxy, None),
            Entrance::Direct(host, port, _) => (Via::Direct, Some((host.clone(), *port))),
        };
        match entrance.listener().accept().map(|(stream, _)| self.hall.enter(stream, via)) {
            Ok(Some(visit)) => receive(visit, direct),
            Ok(None) => {}
            // It went away while it waited.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {}
            Err(_) => thread::sleep(BREATH),
        }
    }
}

/// Gives a visit its thread, which ends with it. Without one it is over at once.
fn receive(visit: Visit, direct: Option<(Host, u16)>) {
    let serve = move || match direct {
        None => proxy::serve(&visit),
        Some((host, port)) => {
            if let Ok(reached) = visit.reach(&host, port) {
                reached.exchange(|near, far| splice::copy(near, far));
            }
        }
    };
    if thread::Builder::new().name("haft-net".to_owned()).spawn(serve).is_err() {
        thread::sleep(BREATH);
    }
}

fn answer(hall: &Hall, (socket, table): &Names) {
    let mut buffer = [0; QUESTION_MAX];
    for _ in 0..QUESTIONS {
        let Ok((length, asker)) = socket.recv_from(&mut buffer) else { return };
        let Some(reply) = names::answer(&buffer[..length], table) else { continue };
        if !reply.known {
            hall.note(unknown(hall, reply.name));
        }
        // Lost answers are asked for again.
        let _ = socket.send_to(&reply.packet, asker);
    }
}

fn unknown(hall: &Hall, name: String) -> Contact {
    let listed = Host::read(&name).is_some_and(|host| hall.rules.know(&host));
    let reason = if listed {
        "a rule covers the name, but it has no address here; the proxy can reach it"
    } else {
        "the name is not on the list of hosts that this program may reach"
    };
    let reason = Some(reason.to_owned());
    Contact { host: name, port: 0, allowed: false, reason, sent: 0, received: 0, how: Via::Name, times: 1 }
}
