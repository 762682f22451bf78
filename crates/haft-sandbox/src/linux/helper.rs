//! The helper: a small process of one thread that starts confined programs on behalf of a large one of
//! many. Forking a process copies its page tables, which at a gigabyte takes longer than everything else
//! together; and what a fork of many threads may do before it becomes another program is next to nothing.
//! The helper is forked once, early if its owner says so, and ends with its owner.

use super::inside::{Ends, Identity, first};
use super::layout::{Order, Task, Walls, Ways};
use super::talk::{self, Word, say};
use super::{keeper, probe, sys};
use crate::backend::{SandboxError, Stdio};
use crate::standing::Machine;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::{Mutex, PoisonError};

/// The line to the helper of this process.
pub(super) struct Helper(Mutex<OwnedFd>);

impl Helper {
    /// Forks it. In a process of many threads this relies on the C library to keep its own locks usable.
    pub(super) fn start() -> io::Result<Self> {
        let (ours, theirs) = talk::orders()?;
        match sys::fork()? {
            sys::Side::Child => {
                drop(ours);
                serve(theirs)
            }
            sys::Side::Parent => Ok(Self(Mutex::new(ours))),
        }
    }

    /// Has a program started. What becomes of it is said on the line that comes back.
    pub(super) fn give(&self, order: Order, stdio: &Stdio) -> Result<OwnedFd, SandboxError> {
        let fds = [stdio.stdin.as_fd(), stdio.stdout.as_fd(), stdio.stderr.as_fd()];
        self.ask(&Task::Start(Box::new(order)), &fds).map_err(SandboxError::step("tell the helper"))
    }

    /// Has the machine looked at.
    pub(super) fn look(&self) -> Result<Machine, SandboxError> {
        let fail = SandboxError::step("ask the helper");
        let heard = self.ask(&Task::Look, &[]).and_then(talk::hear);
        match heard.map_err(fail)? {
            Some((Word::Machine(machine), _)) => Ok(machine),
            _ => {
                Err(SandboxError::Step { step: "ask the helper".to_owned(), error: io::ErrorKind::InvalidData.into() })
            }
        }
    }

    /// Gives a task, with descriptors, and returns the line on which it is answered.
    fn ask(&self, task: &Task, fds: &[BorrowedFd<'_>]) -> io::Result<OwnedFd> {
        let (ours, theirs) = talk::words()?;
        let fds: Vec<BorrowedFd<'_>> = fds.iter().copied().chain([theirs.as_fd()]).collect();
        talk::order(&*self.0.lock().unwrap_or_else(PoisonError::into_inner), task, &fds)?;
        Ok(ours)
    }
}

/// Takes orders until its owner is gone.
fn serve(orders: OwnedFd) -> ! {
    sys::unblock_signals();
    sys::forget_children();
    // What is typed at the terminal is for the owner, and for programs that share its job.
    sys::ignore_keyboard();
    let _ = rustix::thread::set_name(c"haft-helper");
    // The owner's descriptors are not for keeping: an open pipe end would never be seen as closed.
    if rustix::stdio::dup2_stdin(&orders).is_err() {
        sys::exit(125);
    }
    std::mem::forget(orders);
    sys::close_from(1);
    let orders = rustix::stdio::stdin();
    let identity = Identity::here();
    while let Ok(Some((task, mut fds))) = talk::take_order::<Task>(orders) {
        let Some(line) = fds.pop() else { continue };
        match task {
            Task::Look => drop(say(line, &Word::Machine(probe::machine()), &[])),
            Task::Start(order) => {
                let Ok(stdio) = <[OwnedFd; 3]>::try_from(fds) else { continue };
                start(&order, Ends { stdio, talk: line }, identity);
            }
        }
    }
    sys::exit(0)
}

const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Forks the keeper of a program and says that it was born.
fn start(order: &Order, ends: Ends, identity: Identity) {
    let namespaces = match (order.layout.walls, &order.layout.ways) {
        (Walls::Flat, _) => 0,
        (Walls::Root { .. }, Ways::All) => NAMESPACES,
        (Walls::Root { .. }, Ways::None | Ways::Gate(_)) => NAMESPACES | libc::CLONE_NEWNET,
    };
    match sys::fork_into(namespaces) {
        Ok(sys::Forked::Child) if namespaces == 0 => keeper::keep(order, ends),
        Ok(sys::Forked::Child) => first(order, ends, identity),
        Ok(sys::Forked::Parent { pid, pidfd }) => {
            let _ = say(&ends.talk, &Word::Born { pid }, &[pidfd.as_fd()]);
        }
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(0);
            let _ = say(&ends.talk, &Word::Failed { step: "make namespaces".to_owned(), errno }, &[]);
        }
    }
}
