//! A program that runs confined, seen from outside.

use super::layout::{Layout, Walls, Ways};
use super::reporter::Reporter;
use super::talk::{Word, hear};
use super::temp::Temp;
use super::usage;
use crate::backend::{End, Program, Run, SandboxError, Usage};
use crate::net::{Allowed, Contact, Gate, Told};
use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Pid, Signal};
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

/// How long the last processes of a killed run may take to go.
const LAST: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// A program that runs confined.
pub(super) struct Running {
    talk: OwnedFd,
    /// Rings for the line and for the reporter.
    bell: OwnedFd,
    keeper: OwnedFd,
    pid: i32,
    /// Whether the keeper is process 1 of its own namespace, so that its end is the end of all.
    rooted: bool,
    program: String,
    gate: Option<Gate>,
    reporter: Option<Reporter>,
    ways: Ways,
    end: Option<End>,
    _temp: Option<Temp>,
}

/// What is heard before a run can be handed over. The helper and the keeper speak on the same line, and
/// either may be the quicker.
#[derive(Default)]
struct Heard {
    keeper: Option<(i32, OwnedFd)>,
    sockets: Option<Vec<OwnedFd>>,
    listener: Option<OwnedFd>,
    end: Option<End>,
}

impl Heard {
    /// Listens until all is known that has to be.
    fn all(talk: &OwnedFd, needs_sockets: bool, program: &str) -> Result<Self, SandboxError> {
        let lost = || SandboxError::Step { step: "start".to_owned(), error: io::ErrorKind::UnexpectedEof.into() };
        let mut heard = Self::default();
        while heard.keeper.is_none() || (needs_sockets && heard.sockets.is_none()) {
            let word = hear(talk).map_err(SandboxError::step("listen to the helper"))?;
            let (word, mut fds) = word.ok_or_else(lost)?;
            match word {
                Word::Born { pid } => heard.keeper = Some((pid, fds.pop().ok_or_else(lost)?)),
                Word::Ways => heard.sockets = Some(fds),
                Word::Watch => heard.listener = fds.pop(),
                Word::Exited { code } => heard.end = Some(End::Exited(code)),
                Word::Signalled { signal } => heard.end = Some(End::Signalled(signal)),
                Word::Failed { .. } | Word::NoProgram { .. } | Word::Machine(_) => return Err(refusal(word, program)),
            }
        }
        Ok(heard)
    }
}

/// Waits until the program runs, or says why it does not.
pub(super) fn attend(
    talk: OwnedFd,
    (layout, program): (&Layout, &Program),
    (allowed, told): (Allowed, Option<Told>),
    temp: Option<Temp>,
) -> Result<Running, SandboxError> {
    let lost = || SandboxError::Step { step: "start".to_owned(), error: io::ErrorKind::UnexpectedEof.into() };
    let name = program.argv.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let heard = Heard::all(&talk, matches!(layout.ways, Ways::Gate(_)), &name)?;
    let (pid, keeper) = heard.keeper.ok_or_else(lost)?;
    let fail = SandboxError::step("watch the helper");
    let bell = epoll::create(epoll::CreateFlags::CLOEXEC).and_then(|bell| ring(&bell, &talk).map(|()| bell));
    let mut running = Running {
        bell: bell.map_err(|error| fail(error.into()))?,
        talk,
        keeper,
        pid,
        rooted: layout.walls != Walls::Flat,
        program: name,
        gate: None,
        reporter: None,
        ways: layout.ways.clone(),
        end: heard.end,
        _temp: temp,
    };
    running.report(heard.listener);
    if let (Ways::Gate(known), Some(sockets)) = (&layout.ways, heard.sockets) {
        let gate = Gate::open_told(allowed, ways(known, sockets).ok_or_else(lost)?, told);
        running.gate = Some(gate.map_err(SandboxError::step("open the gate"))?);
    }
    Ok(running)
}

/// The sockets in the order in which they were made: the proxy, one for each host and port, the names.
fn ways(known: &[super::layout::Known], fds: Vec<OwnedFd>) -> Option<crate::net::Ways> {
    let mut fds = fds.into_iter();
    let proxy = TcpListener::from(fds.next()?);
    let mut direct = Vec::new();
    for host in known {
        for port in &host.ports {
            direct.push((host.host.clone(), *port, TcpListener::from(fds.next()?)));
        }
    }
    let is_name = |host: &&super::layout::Known| host.host.parse::<std::net::IpAddr>().is_err();
    let names = known.iter().filter(is_name).map(|host| (host.host.clone(), host.address)).collect();
    Some(crate::net::Ways { proxy: Some(proxy), direct, names: Some((UdpSocket::from(fds.next()?), names)) })
}

fn refusal(word: Word, program: &str) -> SandboxError {
    match word {
        Word::Failed { step, errno } => SandboxError::Step { step, error: io::Error::from_raw_os_error(errno) },
        Word::NoProgram { errno } => {
            SandboxError::Program { program: program.to_owned(), error: io::Error::from_raw_os_error(errno) }
        }
        _ => SandboxError::Step { step: "understand the helper".to_owned(), error: io::ErrorKind::InvalidData.into() },
    }
}

/// Has the bell ring when a descriptor becomes readable.
fn ring(bell: &OwnedFd, fd: &OwnedFd) -> rustix::io::Result<()> {
    epoll::add(bell, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
}

impl Running {
    /// From now on, what the program connects to is noted.
    fn report(&mut self, listener: Option<OwnedFd>) {
        let Some(listener) = listener else { return };
        let reporter = Reporter::new(listener, &self.ways);
        // Without the bell it is heard at the next look.
        let _ = ring(&self.bell, reporter.listener());
        self.reporter = Some(reporter);
    }

    /// Answers the reporter's callers, and says whether there is a word on the line.
    fn is_called(&mut self, at_most: Duration) -> Result<bool, SandboxError> {
        let at_most = Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        let rung = |fd: &OwnedFd, at_most: Timespec| match rustix::event::poll(
            &mut [PollFd::new(fd, PollFlags::IN)],
            Some(&at_most),
        ) {
            Err(rustix::io::Errno::INTR) => Ok(false),
            rung => rung.map(|count| count > 0),
        };
        let fail = |error: rustix::io::Errno| SandboxError::Step { step: "wait".to_owned(), error: error.into() };
        if !rung(&self.bell, at_most).map_err(fail)? {
            return Ok(false);
        }
        if let Some(reporter) = &mut self.reporter
            && !reporter.listen()
        {
            // Nobody is left who could call, and the bell would ring for ever.
            let _ = epoll::delete(&self.bell, reporter.listener());
        }
        rung(&self.talk, Timespec { tv_sec: 0, tv_nsec: 0 }).map_err(fail)
    }

    /// The processes that the keeper started itself.
    fn children(&self) -> Vec<i32> {
        let path = format!("/proc/{0}/task/{0}/children", self.pid);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }
}

impl Run for Running {
    fn wait(&mut self, at_most: Duration) -> Result<Option<End>, SandboxError> {
        if self.end.is_some() {
            return Ok(self.end);
        }
        if !self.is_called(at_most)? {
            return Ok(None);
        }
        self.end = match hear(&self.talk).map_err(SandboxError::step("wait"))? {
            Some((Word::Exited { code }, _)) => Some(End::Exited(code)),
            Some((Word::Signalled { signal }, _)) => Some(End::Signalled(signal)),
            // The keeper itself was killed, and all with it; it is gone when they are.
            None => {
                let mut keeper = [PollFd::new(&self.keeper, PollFlags::IN)];
                let _ = rustix::event::poll(&mut keeper, Some(&LAST));
                Some(End::Signalled(libc::SIGKILL))
            }
            Some((Word::Watch, mut fds)) => {
                self.report(fds.pop());
                None
            }
            Some((Word::Born { .. } | Word::Ways | Word::Machine(_), _)) => None,
            Some((word @ (Word::Failed { .. } | Word::NoProgram { .. }), _)) => {
                return Err(refusal(word, &self.program));
            }
        };
        Ok(self.end)
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
    }

    fn signal(&self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        for pid in self.children().into_iter().filter_map(Pid::from_raw) {
            // The program leads a group of its own, unless it shares a job. Gone already is as good as told.
            if rustix::process::kill_process_group(pid, signal).is_err() {
                let _ = rustix::process::kill_process(pid, signal);
            }
        }
    }

    fn kill(&mut self) {
        if self.rooted {
            let _ = rustix::process::pidfd_send_signal(&self.keeper, Signal::KILL);
            return;
        }
        for pid in usage::descendants(self.pid).into_iter().filter_map(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }

    fn usage(&self, enough: u64) -> Usage {
        usage::of_tree(self.pid, enough)
    }

    fn contacts(&mut self) -> Vec<Contact> {
        let mut contacts = self.gate.take().map(Gate::close).unwrap_or_default();
        contacts.extend(self.reporter.take().map(Reporter::finish).unwrap_or_default());
        contacts
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.kill();
        }
    }
}
