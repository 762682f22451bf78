//! Two connections made one: what comes in here goes out there, until both ends are done.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const BUFFER: usize = 64 * 1024;
/// When one direction has ended, how long the other may stay silent before it ends too: an end that only
/// half closes must not hold its place for ever.
const SILENCE: Duration = Duration::from_mins(2);

/// How much went which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// One direction.
#[derive(Debug, Default)]
struct Lane {
    bytes: AtomicU64,
    ended: AtomicBool,
}

/// Reads from one end for as long as the opposite lane lives, however silent it is.
#[derive(Debug)]
pub(super) struct Inlet<'a> {
    stream: &'a TcpStream,
    opposite: &'a Lane,
}

impl Read for Inlet<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) && !self.opposite.ended.load(Ordering::Relaxed) => {}
                done => return done,
            }
        }
    }
}

/// Writes to one end, and counts.
#[derive(Debug)]
pub(super) struct Outlet<'a> {
    stream: &'a TcpStream,
    own: &'a Lane,
}

impl Write for Outlet<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(buffer)?;
        self.own.bytes.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Carries everything from `far` to `near`, and what `upload` makes of `near` to `far`. Returns when both
/// directions have ended; shutting both streams down from elsewhere ends them.
pub(super) fn exchange(
    near: &TcpStream,
    far: &TcpStream,
    upload: impl FnOnce(&mut Inlet<'_>, &mut Outlet<'_>) -> io::Result<()>,
) -> Traffic {
    let (up, down) = (Lane::default(), Lane::default());
    for stream in [near, far] {
        // A stream that cannot be set so still works, only less well.
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(Some(SILENCE));
    }
    thread::scope(|scope| {
        let download = || {
            let done = copy(&mut Inlet { stream: far, opposite: &up }, &mut Outlet { stream: near, own: &down });
            down.end(&done, far, near);
        };
        if thread::Builder::new().name("haft-net-down".to_owned()).spawn_scoped(scope, download).is_err() {
            return hang_up(near, far);
        }
        let done = upload(&mut Inlet { stream: near, opposite: &down }, &mut Outlet { stream: far, own: &up });
        up.end(&done, near, far);
    });
    Traffic { sent: up.bytes.into_inner(), received: down.bytes.into_inner() }
}

/// Until the end of what comes in.
pub(super) fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => to.write_all(&buffer[..count])?,
        }
    }
}

impl Lane {
    /// Passes the end on. Where one side has gone away, the opposite lane may still have something to
    /// deliver; any other failure leaves nothing worth carrying.
    fn end(&self, done: &io::Result<()>, from: &TcpStream, to: &TcpStream) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = to.shutdown(Shutdown::Write);
        let gone = |error: &io::Error| matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
        if done.as_ref().is_err_and(|error| !gone(error)) {
            hang_up(from, to);
        }
    }
}

fn hang_up(one: &TcpStream, other: &TcpStream) {
    // An error says that it is down already.
    let _ = one.shutdown(Shutdown::Both);
    let _ = other.shutdown(Shutdown::Both);
}

pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
