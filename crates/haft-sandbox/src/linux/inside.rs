//! The life inside: from the moment a process finds itself in fresh namespaces to the moment it becomes the
//! program, and the keeper that stays behind as process 1.

use super::filter::{self, Shape};
use super::layout::{GATE, NAMES_PORT, Order, PROXY_PORT, Walls, Ways};
use super::step::{Failed, Step};
use super::talk::{Word, say};
use super::{root, sys, wall};
use crate::confinement::Bounds;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Resource, Rlimit, WaitOptions};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// The program's three descriptors and the line to whoever wanted it started.
pub(super) struct Ends {
    pub(super) stdio: [OwnedFd; 3],
    pub(super) talk: OwnedFd,
}

/// The identity that is kept: the user outside and inside are the same.
#[derive(Clone, Copy)]
pub(super) struct Identity {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Identity {
    pub(super) fn here() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }
}

/// Reports a failure and ends.
fn give_up(ends: &Ends, failed: Failed) -> ! {
    let _ = say(&ends.talk, &Word::Failed { step: failed.step, errno: failed.errno }, &[]);
    sys::exit(125)
}

/// Process 1 of a fresh set of namespaces: builds the root, starts the program, and reaps until it ends.
/// Its own end takes everything with it.
pub(super) fn first(order: &Order, ends: Ends, identity: Identity) -> ! {
    sys::default_signals();
    sys::unblock_signals();
    let umask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    if let Err(failed) = prepare(order, &ends, identity) {
        give_up(&ends, failed);
    }
    rustix::process::umask(umask);
    match sys::borrow_memory(&mut || become_program(order, &ends)) {
        Ok(program) => keep(program, ends),
        Err(error) => give_up(&ends, Failed { step: "fork".to_owned(), errno: error.raw_os_error().unwrap_or(0) }),
    }
}

fn prepare(order: &Order, ends: &Ends, identity: Identity) -> Result<(), Failed> {
    // Whoever started this may be killed at any moment; then nobody is left to end it.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .step(|| "bind to the parent's life".to_owned())?;
    // It may have ended before that; then nobody is at the other end of the line any more.
    let mut line = [PollFd::new(&ends.talk, PollFlags::HUP)];
    if rustix::event::poll(&mut line, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|gone| gone > 0) {
        sys::exit(125);
    }
    map(identity).step(|| "map the user".to_owned())?;
    if order.layout.ways != Ways::All {
        network(&order.layout.ways, ends)?;
    }
    root::enter(&order.layout)
}

pub(super) fn map(identity: Identity) -> io::Result<()> {
    let write = |file: &str, text: String| {
        let mut file = std::fs::OpenOptions::new().write(true).open(file)?;
        file.write_all(text.as_bytes())
    };
    let Identity { uid, gid } = identity;
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Loopback, and on it the sockets that lead to the gate outside.
fn network(ways: &Ways, ends: &Ends) -> Result<(), Failed> {
    let control = UdpSocket::bind("0.0.0.0:0").step(|| "make a socket".to_owned())?;
    sys::loopback_up(&control).step(|| "switch loopback on".to_owned())?;
    let Ways::Gate(known) = ways else { return Ok(()) };
    let mut sockets: Vec<OwnedFd> = Vec::new();
    let mut listen = |address: Ipv4Addr, port: u16| -> io::Result<()> {
        sockets.push(TcpListener::bind(SocketAddr::from((address, port)))?.into());
        Ok(())
    };
    sys::add_address(&control, 1, GATE).step(|| "add the gate's address".to_owned())?;
    listen(GATE, PROXY_PORT).step(|| "listen for the gate".to_owned())?;
    for (number, host) in known.iter().enumerate() {
        let shown = || format!("listen for {}", host.host);
        if !host.address.is_loopback() {
            sys::add_address(&control, number + 2, host.address).step(shown)?;
        }
        for port in &host.ports {
            listen(host.address, *port).step(shown)?;
        }
    }
    let names = UdpSocket::bind(SocketAddr::from((GATE, NAMES_PORT))).step(|| "listen for names".to_owned())?;
    sockets.push(names.into());
    let fds: Vec<BorrowedFd<'_>> = sockets.iter().map(AsFd::as_fd).collect();
    say(&ends.talk, &Word::Ways, &fds).step(|| "hand the sockets over".to_owned())
}

/// Becomes the program: all that could be used against somebody is given up first, in the order in which
/// each step is still possible.
pub(super) fn become_program(order: &Order, ends: &Ends) -> ! {
    let error = match lock_down(order, ends) {
        Ok(()) => sys::exec(&order.program.argv, &order.program.env),
        Err(failed) => give_up(ends, failed),
    };
    let _ = say(&ends.talk, &Word::NoProgram { errno: error.raw_os_error().unwrap_or(libc::EINVAL) }, &[]);
    sys::exit(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

fn lock_down(order: &Order, ends: &Ends) -> Result<(), Failed> {
    let layout = &order.layout;
    sys::default_signals();
    sys::unblock_signals();
    if !order.program.shares_job {
        rustix::process::setsid().step(|| "start a session".to_owned())?;
    }
    let [stdin, stdout, stderr] = &ends.stdio;
    rustix::stdio::dup2_stdin(stdin).step(|| "set stdin".to_owned())?;
    rustix::stdio::dup2_stdout(stdout).step(|| "set stdout".to_owned())?;
    rustix::stdio::dup2_stderr(stderr).step(|| "set stderr".to_owned())?;
    std::env::set_current_dir(&order.program.cwd).step(|| format!("change to {}", order.program.cwd.display()))?;
    limits(&layout.bounds, layout.walls).step(|| "set limits".to_owned())?;
    drop_capabilities().step(|| "drop capabilities".to_owned())?;
    rustix::thread::set_no_new_privs(true).step(|| "forbid new privileges".to_owned())?;
    if layout.walls != (Walls::Root { landlock: false }) {
        wall::raise(layout)?;
    }
    sys::close_on_exec_from(3).step(|| "close descriptors".to_owned())?;
    let rooted = layout.walls != Walls::Flat;
    let shape = Shape {
        internet: layout.ways != Ways::None || rooted,
        unix: layout.unix,
        rooted,
        watched: layout.watched,
        counts_shared_memory: rooted,
    };
    let has_listener = shape.watched || shape.counts_shared_memory;
    let listener = sys::seccomp(&filter::assemble(shape), has_listener).step(|| "filter system calls".to_owned())?;
    if let Some(listener) = listener {
        say(&ends.talk, &Word::Watch, &[listener.as_fd()]).step(|| "hand the listener over".to_owned())?;
    }
    Ok(())
}

fn limits(bounds: &Bounds, walls: Walls) -> io::Result<()> {
    let set = |resource: Resource, value: u64| {
        let limit = Rlimit { current: Some(value), maximum: Some(value) };
        match rustix::process::setrlimit(resource, limit) {
            // A limit that is lower already is not raised.
            Err(rustix::io::Errno::PERM) => Ok(()),
            set => set,
        }
    };
    set(Resource::Core, 0)?;
    // Each descriptor may hold kernel memory that nobody counts.
    set(Resource::Nofile, 4096)?;
    set(Resource::Memlock, 64 << 10)?;
    set(Resource::Msgqueue, 64 << 10)?;
    if let Some(cpu) = bounds.cpu {
        // Behind the watch, which counts all processes together and says what happened.
        set(Resource::Cpu, cpu.as_secs().saturating_add(2))?;
    }
    if let Some(memory) = bounds.memory {
        // Not the address space: runtimes reserve far more than they use.
        set(Resource::Data, memory)?;
    }
    if let Some(size) = bounds.file_size {
        set(Resource::Fsize, size)?;
    }
    // In a user namespace of its own only its own processes are counted. On a shared one all of this
    // user's are; there the watch counts instead.
    if let (Some(processes), Walls::Root { .. }) = (bounds.processes, walls) {
        set(Resource::Nproc, processes)?;
    }
    Ok(())
}

/// Gives up every capability, now and for all that is started later.
fn drop_capabilities() -> io::Result<()> {
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        // The kernel refuses bits that it does not know; and who may not drop any has none to lose.
        if rustix::thread::remove_capability_from_bounding_set(capability).is_err() {
            break;
        }
    }
    let _ = rustix::thread::clear_ambient_capability_set();
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED;
    // Only who has the capability may; on a shared root an ordinary user has none, and needs none dropped.
    let _ = rustix::thread::set_capabilities_secure_bits(bits);
    let none = CapabilitySet::empty();
    Ok(rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// Process 1 from now on: it has nothing that could be taken from it, and waits.
fn keep(program: i32, ends: Ends) -> ! {
    sys::scrub();
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let _ = drop_capabilities();
    // The line moves to the first descriptor, and everything else is closed.
    if rustix::stdio::dup2_stdin(&ends.talk).is_err() {
        sys::exit(125);
    }
    std::mem::forget(ends);
    sys::close_from(1);
    let talk = rustix::stdio::stdin();
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == program => {
                // Whoever hears of the end may look at what was written: nobody may be left who writes.
                end_all();
                let _ = say(talk, &ended(status), &[]);
                sys::exit(0)
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => sys::exit(0),
        }
    }
}

/// Ends every other process of this namespace, and waits until they are gone.
fn end_all() {
    loop {
        sys::kill_all();
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

pub(super) fn ended(status: rustix::process::WaitStatus) -> Word {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Word::Exited { code },
        (None, signal) => Word::Signalled { signal: signal.unwrap_or(libc::SIGKILL) },
    }
}
