//! Telling what a program tried to reach. The kernel stops it anyway (there is no route out of its network
//! namespace); this only makes the refusal known. Each `connect` is passed to this process, which notes the
//! address and lets the call go on to fail by itself: so nothing depends on what is read here, and a program
//! that changes the address meanwhile gains nothing.
//!
//! A `shmget` is answered here, too. Its size is in a register, which nobody changes while the call waits: what is counted is what
//! the kernel makes.

use super::layout::{GATE, Ways};
use super::sys::{self, Notice};
use crate::net::{Contact, Via};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::FileExt;

/// How many different addresses are kept.
const KEPT: usize = 200;
/// How many are answered before somebody looks at the limits again.
const AT_A_TIME: usize = 32;
/// The longest socket address that is read.
const ADDRESS_MAX: usize = 128;
/// How much System V shared memory a run may ask for in all. No limit of the kernel's sees a segment that is not attached.
const SHARED_MEMORY_MAX: u64 = 256 << 20;
/// The flag for pages of which one is larger than what was asked for.
const HUGE_PAGES: u64 = 0o4000;
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Notes what is connected to.
pub(super) struct Reporter {
    listener: OwnedFd,
    own: Vec<Ipv4Addr>,
    noted: Vec<Contact>,
    /// How much System V shared memory was asked for and let pass. Segments that were removed count on.
    shared_memory: u64,
}

impl Reporter {
    pub(super) fn new(listener: OwnedFd, ways: &Ways) -> Self {
        Self { listener, own: open_addresses(ways), noted: Vec::new(), shared_memory: 0 }
    }

    /// What becomes readable when somebody waits for an answer.
    pub(super) fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Answers those who wait. False when nobody is left who could.
    pub(super) fn listen(&mut self) -> bool {
        for _ in 0..AT_A_TIME {
            let mut line = [PollFd::new(&self.listener, PollFlags::IN)];
            match rustix::event::poll(&mut line, Some(&AT_ONCE)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => return true,
                Ok(_) if line[0].revents().contains(PollFlags::IN) => {}
                _ => return false,
            }
            // A process that was killed while it waited takes its notice back.
            let Ok(notice) = sys::notice(&self.listener) else { continue };
            if i64::from(notice.call) == libc::SYS_shmget {
                let is_plain = notice.args[2] & HUGE_PAGES == 0;
                let _ = if is_plain && self.count_shared_memory(notice.args[1]) {
                    sys::go_on(&self.listener, &notice)
                } else {
                    sys::refuse(&self.listener, &notice, libc::ENOSPC)
                };
                continue;
            }
            let destination = destination(&notice).filter(|(address, _)| is_elsewhere(*address, &self.own));
            if let Some((address, port)) = destination {
                self.note(address, port);
            }
            let _ = sys::go_on(&self.listener, &notice);
        }
        true
    }

    /// What was tried.
    pub(super) fn finish(self) -> Vec<Contact> {
        self.noted
    }

    /// Whether so much more may be asked for.
    fn count_shared_memory(&mut self, size: u64) -> bool {
        let all = self.shared_memory.saturating_add(size);
        let fits = all <= SHARED_MEMORY_MAX;
        self.shared_memory = if fits { all } else { self.shared_memory };
        fits
    }

    fn note(&mut self, address: IpAddr, port: u16) {
        let host = address.to_string();
        if let Some(known) = self.noted.iter_mut().find(|known| known.host == host && known.port == port) {
            known.times += 1;
        } else if self.noted.len() < KEPT {
            let reason = Some("there is no way to it".to_owned());
            let how = Via::Direct;
            self.noted.push(Contact { host, port, allowed: false, reason, sent: 0, received: 0, how, times: 1 });
        }
    }
}

/// Addresses at which somebody may listen.
fn open_addresses(ways: &Ways) -> Vec<Ipv4Addr> {
    match ways {
        Ways::None | Ways::All => Vec::new(),
        Ways::Gate(known) => known.iter().map(|host| host.address).chain([GATE]).collect(),
    }
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
