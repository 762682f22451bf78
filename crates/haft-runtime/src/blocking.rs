//! Blocking work on worker threads, bounded. A hung mount, or a pipe that nobody writes into, does not let go of a thread;
//! without a bound, callers that give up and come again would fill the pool, and nothing would run any more.
//!
//! Work is *abandoned* when its caller goes away before it has ended. It keeps its thread until the system lets go of it.
//! While [`ABANDONED_MAX`] threads are kept like that, no more work is begun.

use crate::halt::Halt;
use haft_core::CallError;
use haft_store::waits::{Wait, WaitKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::AbortHandle;

/// How much abandoned work there may be before calls are refused.
const ABANDONED_MAX: usize = 64;
/// How many threads [`off_thread`] keeps busy at once, so that it never takes the whole pool, however much of that is
/// abandoned at one moment.
const THREADS_MAX: usize = 128;

static ABANDONED: AtomicUsize = AtomicUsize::new(0);
static THREADS: Semaphore = Semaphore::const_new(THREADS_MAX);

const RUNNING: u8 = 0;
const LEFT: u8 = 1;
const OVER: u8 = 2;

/// The caller's half of blocking work. If it is dropped before the work has ended, the work is abandoned.
pub(crate) struct WorkOwner {
    state: Arc<AtomicU8>,
    task: Option<AbortHandle>,
}

/// The work's half, which the thread holds until the work has ended, also by a panic.
pub(crate) struct WorkToken {
    state: Arc<AtomicU8>,
    _thread: Option<SemaphorePermit<'static>>,
}

impl WorkOwner {
    /// Takes note of the task, so that work that was not begun yet is not begun any more once its caller has gone away.
    pub(crate) fn owns<T>(&mut self, task: &tokio::task::JoinHandle<T>) {
        self.task = Some(task.abort_handle());
    }
}

impl Drop for WorkOwner {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        if self.state.compare_exchange(RUNNING, LEFT, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let abandoned = ABANDONED.fetch_add(1, Ordering::AcqRel) + 1;
            tracing::debug!(target: "haft::wait", abandoned, "work goes on whose caller went away");
        }
    }
}

impl Drop for WorkToken {
    fn drop(&mut self) {
        if self.state.swap(OVER, Ordering::AcqRel) == LEFT {
            let abandoned = ABANDONED.fetch_sub(1, Ordering::AcqRel) - 1;
            tracing::debug!(target: "haft::wait", abandoned, "abandoned work ended");
        }
    }
}

/// Refuses more work while too much of it was abandoned and has not ended.
fn check_abandoned() -> Result<(), CallError> {
    let abandoned = ABANDONED.load(Ordering::Acquire);
    if abandoned < ABANDONED_MAX {
        return Ok(());
    }
    tracing::warn!(target: "haft::wait", abandoned, "work is refused until abandoned work ends");
    Err(CallError::internal(format!(
        "{abandoned} cancelled file operations are stuck in the kernel, so haft starts no more; nothing was run"
    ))
    .hint("free the hung mount, or the pipe that nobody writes into, and call again; or restart haft"))
}

/// Lets blocking work begin, unless too much of it was abandoned. `thread` is held until the work has ended.
pub(crate) fn begin_work(thread: Option<SemaphorePermit<'static>>) -> Result<(WorkOwner, WorkToken), CallError> {
    check_abandoned()?;
    let state = Arc::new(AtomicU8::new(RUNNING));
    Ok((WorkOwner { state: Arc::clone(&state), task: None }, WorkToken { state, _thread: thread }))
}

/// Runs blocking work on a worker thread, and stops waiting for it when the call is halted. The work itself notices at its
/// next `halt.check()`. Refused while too much work that was halted earlier has not ended.
pub async fn off_thread<T: Send + 'static>(
    halt: Halt,
    work: impl FnOnce() -> Result<T, CallError> + Send + 'static,
) -> Result<T, CallError> {
    check_abandoned()?;
    let (mut owner, token) = begin_work(Some(free_thread(&halt).await?))?;
    let task = tokio::task::spawn_blocking(move || {
        let _token = token;
        work()
    });
    owner.owns(&task);
    tokio::select! {
        done = task => done.unwrap_or_else(|crash| Err(CallError::internal(format!("the tool crashed: {crash}")))),
        stop = halt.stopped() => Err(stop),
    }
}

async fn free_thread(halt: &Halt) -> Result<SemaphorePermit<'static>, CallError> {
    if let Ok(thread) = THREADS.try_acquire() {
        return Ok(thread);
    }
    let _wait = Wait::begin(WaitKind::Blocking, || format!("one of {THREADS_MAX} threads"));
    tokio::select! {
        // It is never closed.
        thread = THREADS.acquire() => thread.map_err(|_| CallError::internal("no thread can be had")),
        stop = halt.stopped() => Err(stop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::ErrorKind;
    use rustix::fs::{Mode, OFlags};
    use std::path::Path;
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_mins(1);

    fn fifo(dir: &Path) -> std::path::PathBuf {
        let path = dir.join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::from_raw_mode(0o600)).unwrap();
        path
    }

    /// Waits on the pipe until its caller has gone away; nobody writes into it.
    async fn abandon(path: &Path) {
        let (begun, begins) = tokio::sync::oneshot::channel();
        let (halt, path) = (Halt::new(), path.to_owned());
        let work = move || {
            let _ = begun.send(());
            std::fs::read(path).map_err(|error| CallError::failed(error.to_string()))
        };
        let cancel = async {
            begins.await.unwrap();
            halt.cancel();
        };
        let (done, ()) = tokio::join!(off_thread(halt.clone(), work), cancel);
        assert_eq!(done.unwrap_err().kind, ErrorKind::Cancelled);
    }

    /// Lets all who wait on the pipe come to its end: it has a writer for a moment, and again for those who had not opened it yet.
    async fn end_abandoned(path: &Path) {
        let begun = Instant::now();
        while ABANDONED.load(Ordering::Acquire) != 0 {
            assert!(begun.elapsed() < PATIENCE, "{} are abandoned", ABANDONED.load(Ordering::Acquire));
            // Without waiting: it is an error if nobody reads.
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            drop(rustix::fs::open(path, flags, Mode::empty()));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// All of it in one test: what is abandoned is counted for the whole process.
    #[tokio::test]
    async fn work_that_does_not_end_when_it_is_cancelled_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = fifo(dir.path());
        for number in 0..ABANDONED_MAX {
            assert_eq!(ABANDONED.load(Ordering::Acquire), number);
            abandon(&path).await;
        }
        let refused = off_thread(Halt::new(), || Ok(())).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Internal);
        assert!(refused.message.contains("64 cancelled file operations are stuck"), "{}", refused.message);
        assert!(refused.hint.unwrap().contains("hung mount"));
        end_abandoned(&path).await;
        off_thread(Halt::new(), || Ok(())).await.unwrap();
        work_of_a_caller_that_is_dropped_counts_until_it_ends(&path).await;
        more_work_than_threads_waits().await;
    }

    async fn work_of_a_caller_that_is_dropped_counts_until_it_ends(path: &Path) {
        let (begun, begins) = tokio::sync::oneshot::channel();
        let path = path.to_owned();
        let file = path.clone();
        let work = off_thread(Halt::new(), move || {
            let _ = begun.send(());
            std::fs::read(file).map_err(|error| CallError::failed(error.to_string()))
        });
        tokio::select! {
            _ = work => panic!("the pipe has no writer"),
            begun = begins => begun.unwrap(),
        }
        assert_eq!(ABANDONED.load(Ordering::Acquire), 1);
        end_abandoned(&path).await;
    }

    async fn more_work_than_threads_waits() {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = Arc::new(std::sync::Mutex::new(released));
        let held = |_| {
            let released = Arc::clone(&released);
            off_thread(Halt::new(), move || {
                drop(released.lock().map(|released| released.recv()));
                Ok(())
            })
        };
        let all = futures_util::future::join_all((0..THREADS_MAX).map(held));
        let late = async {
            let halt = Halt::new().within(Duration::from_millis(20));
            let late = off_thread(halt, || Ok(())).await.unwrap_err();
            drop(release);
            late.kind
        };
        let (all, late) = tokio::join!(all, late);
        assert_eq!(late, ErrorKind::Timeout);
        assert!(all.into_iter().all(|done| done.is_ok()));
        off_thread(Halt::new(), || Ok(())).await.unwrap();
    }
}
