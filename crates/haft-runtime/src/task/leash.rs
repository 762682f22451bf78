//! Between a keeper and whoever started it: as long as somebody waits for a task, the task ends with them.
//! Once it is released it goes on by itself.

use haft_core::CallError;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// What a keeper says to whoever waits. Its silence for good is the end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// The program runs.
    Started,
    /// It does not, and this is why.
    Refused(CallError),
    /// It printed this line.
    Line(String),
}

const HELD: u8 = 0;
const RELEASED: u8 = 1;
const CUT: u8 = 2;

/// Whether anybody still waits, as the keeper sees it.
#[derive(Debug, Clone, Default)]
pub(super) struct Collar(Arc<AtomicU8>);

impl Collar {
    /// Whether whoever waited went away without a word.
    pub(super) fn is_cut(&self) -> bool {
        self.0.load(Ordering::Acquire) == CUT
    }

    /// Whether nobody waits any more.
    pub(super) fn is_free(&self) -> bool {
        self.0.load(Ordering::Acquire) == RELEASED
    }

    fn turn(&self, from: u8, to: u8) {
        let _ = self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Follows the pipe from whoever waits, on a thread that ends with it.
    pub(super) fn follow(&self, pipe: impl Read + Send + 'static) {
        let collar = self.clone();
        let listen = move || {
            let mut word = [0];
            match BufReader::new(pipe).read(&mut word) {
                Ok(1) => collar.turn(HELD, RELEASED),
                _ => collar.turn(HELD, CUT),
            }
        };
        // Without a thread nobody hears the release, and the task ends with its caller: the strict side.
        if std::thread::Builder::new().name("haft-leash".to_owned()).spawn(listen).is_err() {
            self.turn(HELD, CUT);
        }
    }
}

/// The other end. Dropping it ends the task; releasing lets it go on.
pub(super) enum Leash {
    /// To a thread.
    Thread(Collar),
    /// To a process.
    Process(Option<ChildStdin>),
}

impl Leash {
    pub(super) fn release(mut self) {
        match &mut self {
            Self::Thread(collar) => collar.turn(HELD, RELEASED),
            Self::Process(pipe) => {
                if let Some(mut pipe) = pipe.take() {
                    // A keeper that is gone needs no release.
                    let _ = pipe.write_all(b"r");
                }
            }
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        match self {
            Self::Thread(collar) => collar.turn(HELD, CUT),
            Self::Process(pipe) => drop(pipe.take()),
        }
    }
}

/// Listens to a keeper that is a process, and collects it when it has ended.
pub(super) fn listen(mut child: Child) -> Receiver<Word> {
    let (tell, words) = channel();
    let hear = move || {
        if let Some(pipe) = child.stdout.take() {
            pass_on(BufReader::new(pipe), &tell);
        }
        drop(tell);
        let _ = child.wait();
    };
    // Without a thread nothing is heard, which means that it ended at once.
    let _ = std::thread::Builder::new().name("haft-keeper".to_owned()).spawn(hear);
    words
}

fn pass_on(lines: impl BufRead, tell: &Sender<Word>) {
    for line in lines.lines() {
        let Ok(line) = line else { return };
        if let Ok(word) = serde_json::from_str(&line) {
            // If nobody listens any more, the pipe is still emptied, so that the keeper never waits.
            let _ = tell.send(word);
        }
    }
}
