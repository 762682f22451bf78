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
/// How long what is left in the pipes is waited for when the program has ended.
const DRAIN: Duration = Duration::from_secs(2);

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
    /// What was read from each pipe.
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
}

impl<'w> Watch<'w> {
    /// Nobody reads what it prints, or wants it stopped.
    pub fn unattended(bounds: &'w Bounds) -> Self {
        let (stop, signal) = (&|| false, &|| None);
        Self { bounds, pipes: Vec::new(), stop, signal, wake: None, grace: Duration::from_secs(1) }
    }
}

/// A pipe and what came out of it.
struct Tap {
    pipe: Option<File>,
    text: Vec<u8>,
}

/// Where the end of a run stands.
enum Course {
    Free,
    Asked(Instant),
    Killed(Instant),
}

struct State<'w> {
    watch: &'w Watch<'w>,
    taps: Vec<Tap>,
    begun: Instant,
    looked: Instant,
    course: Course,
    hit: Option<Hit>,
    stopped: bool,
    peak: Usage,
}

/// Watches a run to its end.
pub fn watch(run: &mut dyn Run, mut watch: Watch<'_>) -> Result<Watched, SandboxError> {
    let pipes = std::mem::take(&mut watch.pipes);
    for pipe in &pipes {
        let nonblocking = rustix::io::ioctl_fionbio(pipe, true);
        nonblocking.map_err(|error| SandboxError::Step { step: "read the output".to_owned(), error: error.into() })?;
    }
    let taps = pipes.into_iter().map(|pipe| Tap { pipe: Some(pipe.into()), text: Vec::new() }).collect();
    let now = Instant::now();
    let mut state = State {
        watch: &watch,
        taps,
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

impl State<'_> {
    /// Waits until something happens, but not longer than bounds can wait.
    fn sleep(&self, run: &dyn Run) {
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        fds.extend(self.taps.iter().filter_map(|tap| tap.pipe.as_ref()).map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let bell = run.bell();
        fds.extend(bell.as_ref().map(|bell| PollFd::new(bell, PollFlags::IN)));
        fds.extend(self.watch.wake.map(|wake| PollFd::new(wake, PollFlags::IN)));
        let patience = if bell.is_some() { LOOK } else { Duration::from_millis(5) };
        let patience = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
        // An interrupted sleep is a short one.
        let _ = rustix::event::poll(&mut fds, Some(&patience));
    }

    /// Takes what is in the pipes, up to the bound.
    fn drink(&mut self, run: &mut dyn Run) {
        let room = self.watch.bounds.output.unwrap_or(u64::MAX);
        let taken = |taps: &[Tap]| taps.iter().map(|tap| tap.text.len() as u64).sum::<u64>();
        let mut piece = vec![0; 64 << 10];
        for number in 0..self.taps.len() {
            loop {
                let left = usize::try_from(room.saturating_sub(taken(&self.taps))).unwrap_or(usize::MAX);
                let Some(tap) = self.taps.get_mut(number) else { break };
                let Some(pipe) = &mut tap.pipe else { break };
                match pipe.read(&mut piece) {
                    Ok(0) => tap.pipe = None,
                    Ok(count) => {
                        tap.text.extend_from_slice(piece.get(..count.min(left)).unwrap_or_default());
                        if count > left {
                            self.exceed(run, Hit::Output);
                            return;
                        }
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(_) => tap.pipe = None,
                }
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
                if self.looked.elapsed() >= LOOK {
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
        let now = run.usage();
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
        let room = usize::try_from(self.watch.bounds.output.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let until = Instant::now() + DRAIN;
        for tap in &mut self.taps {
            while let Some(pipe) = &mut tap.pipe {
                let mut piece = [0; 16 << 10];
                match pipe.read(&mut piece) {
                    Ok(0) => tap.pipe = None,
                    Ok(count) => {
                        let left = room.saturating_sub(tap.text.len());
                        tap.text.extend_from_slice(piece.get(..count.min(left)).unwrap_or_default());
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && Instant::now() < until => {
                        let mut fds = [PollFd::new(pipe, PollFlags::IN)];
                        let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
                        let _ = rustix::event::poll(&mut fds, Some(&moment));
                    }
                    Err(_) => tap.pipe = None,
                }
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
