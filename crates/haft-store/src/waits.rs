//! What this process waits for, so that the operational log can say what a stuck process waits for: a store, a lock, a
//! provider, a bridged server, a person.
//!
//! A [`Wait`] lives as long as something is waited for. Its begin and end are events of the target `haft::wait`; and a
//! process with an operational log asks [`report_long_waits`] from time to time, which names the waits that go on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The target of all events about waits.
const TARGET: &str = "haft::wait";

static WATCHED: AtomicBool = AtomicBool::new(false);
static NEXT: AtomicU64 = AtomicU64::new(0);
static OPEN: Mutex<BTreeMap<u64, OpenWait>> = Mutex::new(BTreeMap::new());

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    /// The end of a call.
    Call,
    /// The answer to a question.
    Approval,
    /// The store's queue, or its answer.
    Store,
    /// A lock that another process or another call holds.
    Lock,
    /// A model provider's answer.
    Provider,
    /// A bridged MCP server's answer.
    Server,
    /// Work on a thread of its own.
    Blocking,
}

impl WaitKind {
    /// The word for it in the operational log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Approval => "approval",
            Self::Store => "store",
            Self::Lock => "lock",
            Self::Provider => "provider",
            Self::Server => "server",
            Self::Blocking => "blocking",
        }
    }

    /// Whether there are too many of it to name each: a store answers many times a call, and a call has events of its own.
    const fn is_common(self) -> bool {
        matches!(self, Self::Call | Self::Store)
    }
}

struct OpenWait {
    kind: WaitKind,
    about: String,
    since: Instant,
    /// When it is named next.
    due: Duration,
}

fn open() -> MutexGuard<'static, BTreeMap<u64, OpenWait>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps account of waits from now on. Without this, a wait costs nothing.
pub fn watch() {
    WATCHED.store(true, Ordering::Relaxed);
}

/// Something that is waited for until this is dropped.
#[derive(Debug)]
pub struct Wait(Option<u64>);

impl Wait {
    /// Begins to wait. `about` says for what, without arguments or bodies; it is called only where waits are watched.
    pub fn begin(kind: WaitKind, about: impl FnOnce() -> String) -> Self {
        if !WATCHED.load(Ordering::Relaxed) {
            return Self(None);
        }
        let (number, about) = (NEXT.fetch_add(1, Ordering::Relaxed), about());
        let name = kind.as_str();
        if kind.is_common() {
            tracing::trace!(target: TARGET, kind = name, about, "a wait begins");
        } else {
            tracing::debug!(target: TARGET, kind = name, about, "a wait begins");
        }
        open().insert(number, OpenWait { kind, about, since: Instant::now(), due: Duration::ZERO });
        Self(Some(number))
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let ended = self.0.and_then(|number| open().remove(&number));
        let Some(OpenWait { kind, about, since, due }) = ended else { return };
        let (name, ms) = (kind.as_str(), millis(since.elapsed()));
        if due > Duration::ZERO {
            tracing::info!(target: TARGET, kind = name, about, ms, "a long wait ended");
        } else if kind.is_common() {
            tracing::trace!(target: TARGET, kind = name, about, ms, "a wait ended");
        } else {
            tracing::debug!(target: TARGET, kind = name, about, ms, "a wait ended");
        }
    }
}

/// Names each wait that has taken longer than `long`, and again each time that it has taken twice as long as when it was
/// named last.
pub fn report_long_waits(long: Duration) {
    let mut found = Vec::new();
    for wait in open().values_mut() {
        let waited = wait.since.elapsed();
        if waited >= wait.due.max(long) {
            wait.due = waited * 2;
            found.push((wait.kind.as_str(), wait.about.clone(), millis(waited)));
        }
    }
    for (kind, about, ms) in found {
        tracing::info!(target: TARGET, kind, about, ms, "still waits");
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
