//! The keeper on a shared root: no pid namespace takes everything with it there, so somebody has to stay,
//! collect what the program leaves behind, and end it.

use super::inside::{Ends, become_program, ended};
use super::layout::Order;
use super::talk::{Word, say};
use super::{sys, usage};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, WaitOptions};

/// How often it looks whether the program has ended.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Starts the program and stays until all of it is gone.
pub(super) fn keep(order: &Order, ends: Ends) -> ! {
    sys::default_signals();
    sys::unblock_signals();
    // What the program disowns comes to this process, instead of getting away.
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_err() {
        sys::exit(125);
    }
    let program = match sys::fork_into(0) {
        Ok(sys::Forked::Child) => {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            become_program(order, &ends)
        }
        Ok(sys::Forked::Parent { pid, .. }) => pid,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(0);
            let _ = say(&ends.talk, &Word::Failed { step: "fork".to_owned(), errno }, &[]);
            sys::exit(125)
        }
    };
    let Ends { stdio, talk } = ends;
    drop(stdio);
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == program => {
                end_all();
                let _ = say(&talk, &ended(status), &[]);
                sys::exit(0)
            }
            Ok(Some(_)) => continue,
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => sys::exit(0),
        }
        let mut line = [PollFd::new(&talk, PollFlags::HUP)];
        if rustix::event::poll(&mut line, Some(&LOOK)).is_ok_and(|rung| rung > 0) {
            end_all();
            sys::exit(0)
        }
    }
}

/// Kills whatever descends from this process, until nothing is left.
fn end_all() {
    loop {
        let left = usage::descendants(rustix::process::getpid().as_raw_nonzero().get());
        if left.is_empty() {
            return;
        }
        for pid in left.into_iter().filter_map(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
    }
}
