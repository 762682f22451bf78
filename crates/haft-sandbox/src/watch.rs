//! Watching a run to its end: its output is taken, its bounds are kept, and whoever wants it stopped is
//! heard.

use crate::backend::{End, Run, SandboxError, Usage};
use crate::confinement::Bounds;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

/// How often bounds are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// The same when there is reason to hurry, or nothing that rings.
const HASTE: Duration = Duration::from_millis(5);
/// How long what is left in the pipes is waited for when the program has ended.
const DRAIN: Duration = Duration::from_secs(2);
/// How much is taken from a pipe at once.
const PIECE: usize = 64 << 10;
/// How often each pipe is turned to before bounds and wishes are looked at again: a program that prints
/// without end must not keep anybody from stopping it.
const TURNS: usize = 16;

/// Takes what a program prints as it comes: from which pipe, and what.
pub type Sink<'s> = dyn FnMut(usize, &[u8]) + 's;

/// A bound that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hit {
    /// Memory of all processes together.
    Memory,
    /// Processes at once.
    Processes,
    /// Processor time.
    Cpu,
    /// Time from start to end.
    Wall,
    /// The size of one file.
    FileSize,
    /// What is written to disk.
    Disk,
    /// What is printed.
    Output,
}

impl Hit {
    /// What it is, to finish the sentence "it reached its limit of …".
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::Cpu => "processor time",
            Self::Wall => "time",
            Self::FileSize => "file size",
            Self::Disk => "disk space",
            Self::Output => "output",
        }
    }
}

/// What came of a run.
#[derive(Debug)]
pub struct Watched {
    /// How the program ended.
    pub end: End,
    /// The bound that ended it.
    pub hit: Option<Hit>,
    /// Whether it ended because somebody wanted it stopped.
    pub stopped: bool,
    /// What was read from each pipe, unless somebody took it as it came.
    pub output: Vec<Vec<u8>>,
    /// The most that it was seen to use.
    pub peak: Usage,
}

/// How a run is watched.
pub struct Watch<'w> {
    /// What it may use up.
    pub bounds: &'w Bounds,
    /// Pipes to read to their end.
    pub pipes: Vec<OwnedFd>,
    /// Whether somebody wants it stopped.
    pub stop: &'w dyn Fn() -> bool,
    /// A signal that came for the program.
    pub signal: &'w dyn Fn() -> Option<i32>,
    /// A descriptor that becomes readable when `signal` or `stop` has something new.
    pub wake: Option<&'w OwnedFd>,
    /// How long it has from being asked to end to being made to.
    pub grace: Duration,
    /// Who takes what is printed as it comes. Nothing of it is kept here then.
    pub sink: Option<&'w mut Sink<'w>>,
    /// Told what it uses, whenever that is looked at.
    pub seen: Option<&'w dyn Fn(&Usage)>,
}

impl<'w> Watch<'w> {
    /// Nobody reads what it prints, or wants it stopped.
    pub fn unattended(bounds: &'w Bounds) -> Self {
        let (stop, signal) = (&|| false, &|| None);
        let grace = Duration::from_secs(1);
        Self { bounds, pipes: Vec::new(), stop, signal, wake: None, grace, sink: None, seen: None }
    }
}

/// A pipe and what came out of it.
struct Tap {
    pipe: Option<File>,
    text: Vec<u8>,
}

/// What came of turning to a pipe.
#[derive(PartialEq, Eq)]
enum Sip {
    Some,
    None,
    TooMuch,
}

/// Where the end of a run stands.
enum Course {
    Free,
    Asked(Instant),
    Killed(Instant),
}

struct State<'s, 'w> {
    watch: &'s Watch<'w>,
    taps: Vec<Tap>,
    /// What was taken from all of them.
    taken: u64,
    sink: Option<&'w mut Sink<'w>>,
    begun: Instant,
    looked: Instant,
    course: Course,
    hit: Option<Hit>,
    stopped: bool,
    peak: Usage,
}

/// Watches a run to its end.
pub fn watch(run: &mut dyn Run, mut watch: Watch<'_>) -> Result<Watched, SandboxError> {
    let (pipes, sink) = (std::mem::take(&mut watch.pipes), watch.sink.take());
    for pipe in &pipes {
        let nonblocking = rustix::io::ioctl_fionbio(pipe, true);
        nonblocking.map_err(|error| SandboxError::Step { step: "read the output".to_owned(), error: error.into() })?;
    }
    let taps = pipes.into_iter().map(|pipe| Tap { pipe: Some(pipe.into()), text: Vec::new() }).collect();
    let now = Instant::now();
    let mut state = State {
        watch: &watch,
        taps,
        taken: 0,
        sink,
        begun: now,
        looked: now,
        course: Course::Free,
        hit: None,
        stopped: false,
        peak: Usage::default(),
    };
    let end = loop {
        state.sleep(run);
        state.drink(run);
        if let Some(end) = run.wait(Duration::ZERO)? {
            break end;
        }
        state.look(run);
    };
    state.drain();
    let hit = state.hit.or(match end {
        End::Signalled(libc::SIGXCPU) => Some(Hit::Cpu),
        // A shell says of a child that a signal ended it by its own status.
        End::Signalled(libc::SIGXFSZ) | End::Exited(153) => Some(Hit::FileSize),
        End::Exited(_) | End::Signalled(_) => None,
    });
    let output = state.taps.into_iter().map(|tap| tap.text).collect();
    Ok(Watched { end, hit, stopped: state.stopped, output, peak: state.peak })
}

impl State<'_, '_> {
    /// Waits until something happens, but not longer than bounds can wait.
    fn sleep(&self, run: &dyn Run) {
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        fds.extend(self.taps.iter().filter_map(|tap| tap.pipe.as_ref()).map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let bell = run.bell();
        fds.extend(bell.as_ref().map(|bell| PollFd::new(bell, PollFlags::IN)));
        fds.extend(self.watch.wake.map(|wake| PollFd::new(wake, PollFlags::IN)));
        let patience = if bell.is_some() { self.interval() } else { HASTE };
        let patience = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
        // An interrupted sleep is a short one.
        let _ = rustix::event::poll(&mut fds, Some(&patience));
    }

    /// How long bounds may go unwatched: a program that has started many processes may start a great many more
    /// before the next look.
    fn interval(&self) -> Duration {
        let many = self.watch.bounds.processes.is_some_and(|bound| self.peak.processes > bound / 8);
        if many { HASTE } else { LOOK }
    }

    /// Takes what is in the pipes, up to the bound. They take turns, so that what came first is mostly heard
    /// first.
    fn drink(&mut self, run: &mut dyn Run) {
        let mut piece = vec![0; PIECE];
        for _ in 0..TURNS {
            let mut dry = true;
            for number in 0..self.taps.len() {
                match self.sip(number, &mut piece) {
                    Sip::Some => dry = false,
                    Sip::None => {}
                    Sip::TooMuch => return self.exceed(run, Hit::Output),
                }
            }
            if dry {
                return;
            }
        }
    }

    /// Takes one piece from one pipe.
    fn sip(&mut self, number: usize, piece: &mut [u8]) -> Sip {
        let Some(tap) = self.taps.get_mut(number) else { return Sip::None };
        let Some(pipe) = &mut tap.pipe else { return Sip::None };
        match pipe.read(piece) {
            Ok(count) if count > 0 => {
                let room = self.watch.bounds.output.unwrap_or(u64::MAX).saturating_sub(self.taken);
                let fits = count.min(usize::try_from(room).unwrap_or(usize::MAX));
                let taken = piece.get(..fits).unwrap_or_default();
                self.taken += fits as u64;
                match &mut self.sink {
                    Some(sink) => sink(number, taken),
                    None => tap.text.extend_from_slice(taken),
                }
                if fits < count { Sip::TooMuch } else { Sip::Some }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Sip::Some,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Sip::None,
            Ok(_) | Err(_) => {
                tap.pipe = None;
                Sip::None
            }
        }
    }

    /// Passes signals on, and ends the run if it has to end.
    fn look(&mut self, run: &mut dyn Run) {
        while let Some(signal) = (self.watch.signal)() {
            run.signal(signal);
        }
        match self.course {
            Course::Free if (self.watch.stop)() => {
                self.stopped = true;
                self.ask(run);
            }
            Course::Asked(since) if since.elapsed() >= self.watch.grace => self.kill(run),
            // Also while it is given time to end.
            Course::Free | Course::Asked(_) => {
                if self.looked.elapsed() >= self.interval() {
                    self.looked = Instant::now();
                    self.weigh(run);
                }
            }
            // On a shared root a process may slip through while it is being killed.
            Course::Killed(since) if since.elapsed() >= LOOK => self.kill(run),
            Course::Killed(_) => {}
        }
    }

    fn weigh(&mut self, run: &mut dyn Run) {
        let bounds = self.watch.bounds;
        let free = matches!(self.course, Course::Free);
        if free && bounds.wall.is_some_and(|wall| self.begun.elapsed() >= wall) {
            self.hit = Some(Hit::Wall);
            self.ask(run);
            return;
        }
        let now = run.usage(bounds.processes.unwrap_or(u64::MAX));
        if let Some(seen) = self.watch.seen {
            seen(&now);
        }
        self.peak.memory = self.peak.memory.max(now.memory);
        self.peak.processes = self.peak.processes.max(now.processes);
        self.peak.cpu = self.peak.cpu.max(now.cpu);
        self.peak.written = self.peak.written.max(now.written);
        let over = [
            (bounds.memory.is_some_and(|bound| now.memory > bound), Hit::Memory),
            (bounds.processes.is_some_and(|bound| now.processes > bound), Hit::Processes),
            (bounds.cpu.is_some_and(|bound| now.cpu > bound), Hit::Cpu),
            (bounds.disk.is_some_and(|bound| now.written > bound), Hit::Disk),
        ];
        if let Some((_, hit)) = over.into_iter().find(|(over, _)| *over) {
            self.exceed(run, hit);
        }
    }

    fn exceed(&mut self, run: &mut dyn Run, hit: Hit) {
        self.hit.get_or_insert(hit);
        self.kill(run);
    }

    fn ask(&mut self, run: &mut dyn Run) {
        run.signal(libc::SIGTERM);
        self.course = Course::Asked(Instant::now());
    }

    fn kill(&mut self, run: &mut dyn Run) {
        run.kill();
        self.course = Course::Killed(Instant::now());
    }

    /// Takes what the program left in the pipes. Nobody holds their other ends any more; still, this does
    /// not rely on it.
    fn drain(&mut self) {
        let until = Instant::now() + DRAIN;
        let mut piece = vec![0; PIECE];
        loop {
            let sips: Vec<Sip> = (0..self.taps.len()).map(|number| self.sip(number, &mut piece)).collect();
            if sips.contains(&Sip::TooMuch) {
                self.hit.get_or_insert(Hit::Output);
                return;
            }
            let pipes: Vec<&File> = self.taps.iter().filter_map(|tap| tap.pipe.as_ref()).collect();
            if pipes.is_empty() || Instant::now() >= until {
                return;
            }
            if !sips.contains(&Sip::Some) {
                let mut fds: Vec<PollFd<'_>> = pipes.into_iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
                let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
                let _ = rustix::event::poll(&mut fds, Some(&moment));
            }
        }
    }
}

/// A pipe for a program's output: our end, and the program's.
pub fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// A descriptor of an empty input.
pub fn nothing() -> std::io::Result<OwnedFd> {
    Ok(File::open("/dev/null")?.into())
}

/// One of this process's own descriptors, to be passed on.
pub fn own(fd: impl AsFd) -> std::io::Result<OwnedFd> {
    fd.as_fd().try_clone_to_owned()
}
