//! Telling what a program tried to reach. The kernel stops it anyway (there is no route out of its network
//! namespace); this only makes the refusal known. Each `connect` is passed to this process, which notes the
//! address and lets the call go on to fail by itself: so nothing depends on what is read here, and a program
//! that changes the address meanwhile gains nothing.

use super::layout::{GATE, Ways};
use super::sys::{self, Notice};
use crate::net::{Contact, Via};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How many different addresses are kept.
const KEPT: usize = 200;
/// The longest socket address that is read.
const ADDRESS_MAX: usize = 128;
/// How often it is looked whether anybody is still interested.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A thread that notes what is connected to.
pub(super) struct Reporter {
    thread: Option<JoinHandle<()>>,
    noted: Arc<Mutex<Vec<Contact>>>,
    over: Arc<AtomicBool>,
}

impl Reporter {
    /// Listens until every process under the filter is gone.
    pub(super) fn start(listener: OwnedFd, ways: &Ways) -> Self {
        let (noted, over) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let own = open_addresses(ways);
        let (to, done) = (Arc::clone(&noted), Arc::clone(&over));
        let thread = std::thread::Builder::new()
            .name("haft-reporter".to_owned())
            .spawn(move || while !done.load(Ordering::Relaxed) && listen(&listener, &own, &to) {});
        Self { thread: thread.ok(), noted, over }
    }

    /// What was tried. The programs are gone by now.
    pub(super) fn finish(mut self) -> Vec<Contact> {
        self.stop();
        std::mem::take(&mut self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn stop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Addresses at which somebody may listen.
fn open_addresses(ways: &Ways) -> Vec<Ipv4Addr> {
    match ways {
        Ways::None | Ways::All => Vec::new(),
        Ways::Gate(known) => known.iter().map(|host| host.address).chain([GATE]).collect(),
    }
}

/// Takes one notice. False when nobody is left who could cause one.
fn listen(listener: &OwnedFd, own: &[Ipv4Addr], noted: &Mutex<Vec<Contact>>) -> bool {
    let mut line = [PollFd::new(listener, PollFlags::IN)];
    match rustix::event::poll(&mut line, Some(&LOOK)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return true,
        Ok(_) if line[0].revents().contains(PollFlags::IN) => {}
        _ => return false,
    }
    // A process that was killed while it waited takes its notice back.
    let Ok(notice) = sys::notice(listener) else { return true };
    if let Some((address, port)) = destination(&notice).filter(|(address, _)| is_elsewhere(*address, own)) {
        note(noted, address, port);
    }
    let _ = sys::go_on(listener, &notice);
    true
}

/// The internet address that a `connect` is about.
fn destination(notice: &Notice) -> Option<(IpAddr, u16)> {
    let length = usize::try_from(notice.args[2]).ok()?.min(ADDRESS_MAX);
    let memory = std::fs::File::open(format!("/proc/{}/mem", notice.pid)).ok()?;
    let mut bytes = [0; ADDRESS_MAX];
    let read = memory.read_at(bytes.get_mut(..length)?, notice.args[1]).ok()?;
    parse(bytes.get(..read)?)
}

fn parse(bytes: &[u8]) -> Option<(IpAddr, u16)> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let address = match family {
        libc::AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?).into(),
        libc::AF_INET6 => {
            let v6 = Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?);
            v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
        }
        _ => return None,
    };
    Some((address, port))
}

/// Whether an address is neither the program's own nor one of the ways out.
fn is_elsewhere(address: IpAddr, own: &[Ipv4Addr]) -> bool {
    let known = matches!(address, IpAddr::V4(v4) if own.contains(&v4));
    !known && !address.is_loopback() && !address.is_unspecified()
}

fn note(noted: &Mutex<Vec<Contact>>, address: IpAddr, port: u16) {
    let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
    let host = address.to_string();
    if let Some(known) = noted.iter_mut().find(|known| known.host == host && known.port == port) {
        known.times += 1;
    } else if noted.len() < KEPT {
        let reason = Some("there is no way to it".to_owned());
        noted.push(Contact { host, port, allowed: false, reason, sent: 0, received: 0, how: Via::Direct, times: 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_nonsense_is_not() {
        let v4 =
            |port: u16| [&libc::AF_INET.to_ne_bytes()[..2], &port.to_be_bytes(), &[192, 0, 2, 7], &[0; 8]].concat();
        assert_eq!(parse(&v4(443)), Some(("192.0.2.7".parse().unwrap(), 443)));
        assert_eq!(parse(&v4(443)[..6]), None);
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(b"\x01\x00/run/socket"), None);
        assert!(!is_elsewhere("127.0.0.1".parse().unwrap(), &[]));
        assert!(!is_elsewhere(GATE.into(), &[GATE]));
        assert!(is_elsewhere("192.0.2.7".parse().unwrap(), &[GATE]));
    }
}
