//! One interpreter that stays: it is spoken to in frames over its first two descriptors, and what its function prints is
//! heard on the third. It serves one tool, one call at a time.

use super::program::Tail;
use crate::confined::Resident;
use crate::confined::terms::Settled;
use haft_core::CallError;
use haft_sandbox::net::{Contact, Told};
use haft_sandbox::{Program, Usage};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

/// What runs in it.
pub(super) const DRIVER: &str = include_str!("driver.py");
/// The largest frame that is heard.
pub(super) const FRAME_MAX: usize = (8 << 20) + 1;
/// How much of what is printed is kept: its end.
pub(super) const PRINTED_MAX: usize = 4 << 10;
/// The oldest Python that runs the driver.
const OLDEST: [u32; 2] = [3, 8];
/// How long one that nobody uses stays.
const IDLE: Duration = Duration::from_mins(5);
/// From when on what is left of a call cannot be a look that was taken while it ran.
const SETTLED: Duration = Duration::from_millis(60);
/// How long one that has closed its line may take to be gone.
const LAST_MOMENT: Duration = Duration::from_millis(500);
/// How many calls one serves.
const CALLS_MAX: u32 = 200;
/// How many files are remembered to find out whether one was edited.
const FILES_MAX: usize = 2000;
/// How many contacts are remembered for one call.
const CONTACTS_MAX: usize = 64;

/// Why an interpreter cannot go on.
pub(super) enum Broken {
    /// It is gone, or has closed its line.
    Ended,
    /// What it says is not what was agreed.
    Garbage(String),
    /// It cannot run the driver.
    Unfit(CallError),
}

/// What the driver says of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Head {
    id: u64,
    version: Vec<u32>,
    /// What the manifest names wrongly.
    pub(super) wrong: Option<String>,
    /// What was raised.
    pub(super) error: Option<Raised>,
    /// Where, if not in the function itself: `import`, `call` or `result`.
    #[serde(rename = "while")]
    pub(super) during: Option<String>,
    /// The type of what cannot be passed on.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    /// The size of what is too large.
    pub(super) large: Option<u64>,
    /// What would outlive the call.
    pub(super) left: String,
    files: Vec<(PathBuf, i64, u64)>,
}

/// An exception.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Raised {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) message: String,
    pub(super) trace: String,
    /// Which of them are longer than what is told: of the trace there is the end, of the others the beginning.
    pub(super) cut: Vec<String>,
    /// The file and line of what cannot even be read.
    #[serde(rename = "where")]
    pub(super) place: Option<String>,
}

/// What came of a call.
pub(super) struct Answer {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
}

/// A frame of what is to be done.
pub(super) fn framed(order: &Value) -> Vec<u8> {
    let text = order.to_string().into_bytes();
    let mut frame = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    frame.extend(text);
    frame
}

/// Reads what came in one frame.
pub(super) fn heard(frame: &[u8]) -> Result<Answer, Broken> {
    let at = memchr::memchr(b'\n', frame).ok_or_else(|| Broken::Garbage("it has no head".to_owned()))?;
    let head = serde_json::from_slice(&frame[..at]).map_err(|error| Broken::Garbage(error.to_string()))?;
    Ok(Answer { head, body: frame[at + 1..].to_vec() })
}

/// Whether the driver runs on the version that it says it is.
pub(super) fn greeted(answer: &Answer) -> Result<(), Broken> {
    let version = &answer.head.version;
    if version.get(..2).is_some_and(|version| *version >= OLDEST[..]) {
        return Ok(());
    }
    let shown: Vec<String> = version.iter().map(ToString::to_string).collect();
    let shown = if shown.is_empty() { "something else".to_owned() } else { shown.join(".") };
    let error = CallError::failed(format!("python tools need Python 3.8 or later, and this is {shown}"));
    Err(Broken::Unfit(error.hint("name a venv of a newer one in exec.python.venv")))
}

/// Whether an answer is to this call.
pub(super) fn answers(answer: &Answer, id: u64) -> Result<(), Broken> {
    if answer.head.id == id { Ok(()) } else { Err(Broken::Garbage("it answers another call".to_owned())) }
}

/// How an interpreter stands, for whoever watches it.
#[derive(Debug)]
enum Stand {
    Busy,
    Idle(Instant),
    Gone,
}

#[derive(Debug)]
struct Life(Mutex<Stand>);

impl Life {
    fn stand(&self) -> MutexGuard<'_, Stand> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has to go: nobody has used it for long, or something of a call lives on in it.
    fn over(&self, usage: &Usage) -> bool {
        let mut stand = self.stand();
        let Stand::Idle(since) = *stand else { return false };
        let idle = since.elapsed();
        let over = idle >= IDLE || (idle >= SETTLED && usage.processes > 1);
        if over {
            *stand = Stand::Gone;
        }
        over
    }
}

/// An interpreter.
#[derive(Debug)]
pub(super) struct Interpreter {
    resident: Resident,
    to: OwnedFd,
    from: OwnedFd,
    said: OwnedFd,
    life: Arc<Life>,
    contacts: Arc<Mutex<Vec<Contact>>>,
    greeted: bool,
    calls: u32,
    files: Vec<(PathBuf, i64, u64)>,
    /// What it can read. It may name files elsewhere, and is told nothing about them.
    roots: Vec<PathBuf>,
    /// Files of which it sees copies: whether those are still what was accepted is looked at before each call.
    copied: BTreeSet<PathBuf>,
}

impl Interpreter {
    /// Starts one.
    pub(super) async fn start(mut settled: Settled, program: Program) -> Result<Self, CallError> {
        let life = Arc::new(Life(Mutex::new(Stand::Busy)));
        let contacts: Arc<Mutex<Vec<Contact>>> = Arc::default();
        let (teller, watched) = (Arc::clone(&contacts), Arc::clone(&life));
        settled.plan.told = Some(Told::new(move |contact| {
            let mut known = teller.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() < CONTACTS_MAX {
                known.push(contact.clone());
            }
        }));
        let roots = settled.plan.confinement.read.clone();
        let copied = settled.plan.confinement.stand_in.iter().map(|(place, _)| place.clone()).collect();
        let tend = move |usage: &Usage| watched.over(usage);
        let (resident, pipes) = Resident::tended((settled.backend, settled.plan, program), tend).await?;
        for pipe in [&pipes.stdin, &pipes.stdout, &pipes.stderr] {
            let open = rustix::io::ioctl_fionbio(pipe, true);
            open.map_err(|error| CallError::internal(format!("no line to the interpreter: {error}")))?;
        }
        let (to, from, said) = (pipes.stdin, pipes.stdout, pipes.stderr);
        Ok(Self {
            resident,
            to,
            from,
            said,
            life,
            contacts,
            greeted: false,
            calls: 0,
            files: Vec::new(),
            roots,
            copied,
        })
    }

    /// Has it do something, and waits for what comes of it. What is printed meanwhile is added, by its end.
    pub(super) async fn call(&mut self, order: &[u8], id: u64, printed: &mut Tail) -> Result<Answer, Broken> {
        self.calls += 1;
        let answer = {
            let mut lines = Lines::of(self).map_err(|_| Broken::Ended)?;
            let (to, from, said, first) = (&mut lines.to, &mut lines.from, &mut lines.said, !self.greeted);
            let talk = async {
                to.write_all(order).await.map_err(|_| Broken::Ended)?;
                if first {
                    greeted(&heard(&read_frame(from).await?)?)?;
                }
                heard(&read_frame(from).await?)
            };
            tokio::select! {
                biased;
                answer = talk => answer,
                never = listen(said, printed) => match never {},
            }
        };
        // Also when there is no answer: what an interpreter printed before it ended may still be in the pipe.
        drain(self.said.as_fd(), printed);
        let answer = answer?;
        self.greeted = true;
        answers(&answer, id)?;
        let room = FILES_MAX.saturating_sub(self.files.len());
        let inside = |path: &Path| is_inside(path, &self.roots) && !self.copied.contains(path);
        self.files.extend(answer.head.files.iter().filter(|(path, ..)| inside(path)).take(room).cloned());
        Ok(answer)
    }

    /// Whom it contacted since this was asked last.
    pub(super) fn contacts(&self) -> Vec<Contact> {
        std::mem::take(&mut *self.contacts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it may serve another call.
    pub(super) fn is_spent(&self) -> bool {
        self.calls >= CALLS_MAX
    }

    /// Nobody uses it from now on.
    pub(super) fn rest(&self) {
        *self.life.stand() = Stand::Idle(Instant::now());
    }

    /// Takes it into use, unless it has gone, said something unasked, or was made of files that were edited since: then it
    /// has to go.
    pub(super) fn wake(&self) -> bool {
        let mut stand = self.life.stand();
        if !matches!(*stand, Stand::Idle(_)) {
            return false;
        }
        *stand = Stand::Busy;
        drop(stand);
        self.is_silent() && !self.files.iter().any(is_edited)
    }

    /// Whether whoever watches it has ended it.
    pub(super) fn is_gone(&self) -> bool {
        matches!(*self.life.stand(), Stand::Gone)
    }

    fn is_silent(&self) -> bool {
        let mut one = [0; 1];
        matches!(rustix::io::read(&self.from, &mut one), Err(Errno::AGAIN))
    }

    /// Ends it, and waits until all of it is gone.
    pub(super) async fn end(self) {
        self.resident.end(Duration::ZERO).await;
    }

    /// The same for one that seems to be ending by itself: says how that came.
    pub(super) async fn ended(self) -> String {
        self.resident.end(LAST_MOMENT).await
    }
}

/// Whether a path leads straight to what is in one of these places.
fn is_inside(path: &Path, roots: &[PathBuf]) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    path.components().all(plain) && roots.iter().any(|root| path.starts_with(root))
}

/// Whether a file is not what it was when it was loaded. Of a directory only the time counts. What it says of a link is
/// where that leads, so none is followed here.
fn is_edited((path, modified, size): &(PathBuf, i64, u64)) -> bool {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return true };
    let now = meta.mtime().wrapping_mul(1_000_000_000).wrapping_add(meta.mtime_nsec());
    now != *modified || (meta.is_file() && meta.len() != *size)
}

/// The three lines for the time of one call: an interpreter outlives the runtime that a call is in.
struct Lines {
    to: pipe::Sender,
    from: pipe::Receiver,
    said: pipe::Receiver,
}

impl Lines {
    fn of(interpreter: &Interpreter) -> io::Result<Self> {
        Ok(Self {
            to: pipe::Sender::from_owned_fd(interpreter.to.try_clone()?)?,
            from: pipe::Receiver::from_owned_fd(interpreter.from.try_clone()?)?,
            said: pipe::Receiver::from_owned_fd(interpreter.said.try_clone()?)?,
        })
    }
}

async fn read_frame(from: &mut pipe::Receiver) -> Result<Vec<u8>, Broken> {
    let mut size = [0; 4];
    from.read_exact(&mut size).await.map_err(|_| Broken::Ended)?;
    let mut frame = vec![0; sized(size)?];
    from.read_exact(&mut frame).await.map_err(|_| Broken::Ended)?;
    Ok(frame)
}

fn sized(size: [u8; 4]) -> Result<usize, Broken> {
    let size = u32::from_le_bytes(size) as usize;
    if size > FRAME_MAX { Err(Broken::Garbage(format!("it announces {size} bytes"))) } else { Ok(size) }
}

/// The frames of what a program said that has ended.
pub(super) fn frames(mut said: &[u8]) -> Result<Vec<&[u8]>, Broken> {
    let mut found = Vec::new();
    while let Some((size, rest)) = said.split_first_chunk::<4>() {
        let size = sized(*size)?;
        let frame = rest.get(..size).ok_or(Broken::Ended)?;
        found.push(frame);
        said = &rest[size..];
    }
    Ok(found)
}

/// Takes what is printed, for as long as somebody listens.
async fn listen(said: &mut pipe::Receiver, printed: &mut Tail) -> std::convert::Infallible {
    let mut piece = [0; 4096];
    while let Ok(count) = said.read(&mut piece).await {
        if count == 0 {
            break;
        }
        printed.push(&piece[..count], PRINTED_MAX);
    }
    std::future::pending().await
}

/// Takes what was printed before the answer came.
fn drain(said: BorrowedFd<'_>, printed: &mut Tail) {
    let mut piece = [0; 4096];
    // Whoever prints without end must not keep anybody here: what a pipe holds is 16 such pieces.
    for _ in 0..64 {
        match rustix::io::read(said, &mut piece) {
            Ok(count) if count > 0 => printed.push(&piece[..count], PRINTED_MAX),
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_when_it_is_idle_for_long_or_something_lives_on_in_it() {
        let life = |stand| Life(Mutex::new(stand));
        let ago = |time: Duration| Stand::Idle(Instant::now().checked_sub(time).unwrap());
        let (alone, crowded) = (Usage { processes: 1, ..Usage::default() }, Usage { processes: 2, ..Usage::default() });
        assert!(life(ago(IDLE)).over(&alone));
        assert!(!life(ago(IDLE / 2)).over(&alone));
        assert!(life(ago(SETTLED)).over(&crowded));
        assert!(!life(Stand::Idle(Instant::now())).over(&crowded), "that may have been seen while it was in use");
        assert!(!life(Stand::Busy).over(&crowded), "a call may use as many as it likes");
        let over = life(ago(IDLE));
        assert!(over.over(&alone) && matches!(*over.stand(), Stand::Gone), "nobody takes it any more");
    }

    #[test]
    fn only_what_it_can_read_is_looked_at_for_it() {
        let roots = [PathBuf::from("/p/tool"), PathBuf::from("/p/mod.py")];
        for inside in ["/p/tool/a.py", "/p/tool", "/p/mod.py"] {
            assert!(is_inside(Path::new(inside), &roots), "{inside}");
        }
        for outside in ["/etc/shadow", "/p/tool/../secret", "/p/toolx", "p/tool/a", ""] {
            assert!(!is_inside(Path::new(outside), &roots), "{outside}");
        }
    }

    #[test]
    fn frames_are_read_as_far_as_they_are_whole() {
        let order = framed(&serde_json::json!({"id": 1}));
        assert_eq!(order, b"\x08\0\0\0{\"id\":1}");
        let two = [order.clone(), order.clone()].concat();
        assert_eq!(frames(&two).ok().unwrap(), [b"{\"id\":1}", b"{\"id\":1}"]);
        assert!(matches!(frames(&two[..two.len() - 1]), Err(Broken::Ended)));
        assert!(matches!(frames(b"\xff\xff\xff\xffxxxx"), Err(Broken::Garbage(_))));
        assert!(matches!(heard(b"no head"), Err(Broken::Garbage(_))));
        assert!(matches!(heard(b"5\n body"), Err(Broken::Garbage(_))));
        let answer = heard(b"{\"id\": 7, \"version\": [3, 7, 9]}\nbody").ok().unwrap();
        assert_eq!(answer.body, b"body");
        assert!(answers(&answer, 7).is_ok() && answers(&answer, 8).is_err());
        let Err(Broken::Unfit(error)) = greeted(&answer) else { panic!("3.7 is too old") };
        assert_eq!(error.message, "python tools need Python 3.8 or later, and this is 3.7.9");
        assert!(greeted(&heard(b"{\"version\": [3, 13, 0]}\n").ok().unwrap()).is_ok());
    }
}
