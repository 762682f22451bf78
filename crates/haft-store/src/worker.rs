//! The thread that owns the connection: jobs queue up and are committed together.

use crate::StoreError;
use crate::base::Base;
use crate::db::{Db, DbError, DbResult};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// How many jobs may wait; then callers do.
const QUEUE: usize = 512;
/// How many jobs share one commit at the most.
const TOGETHER: usize = 256;

/// What a job needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// It only looks.
    Read,
    /// It writes; a power cut may lose it, a crash of the process may not.
    Write,
    /// It writes, and is on disk when it is acknowledged.
    Durable,
}

/// Does the work inside the transaction (or hears why there is none), and returns how to tell the caller
/// once the commit is known. An error rolls this job back and leaves the others alone.
type Work = Box<dyn FnOnce(Result<&Db<'_>, StoreError>) -> Result<Tell, StoreError> + Send>;
type Tell = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
/// A failure of a write that nobody waited for.
type Unheard = Arc<Mutex<Option<StoreError>>>;

struct Job {
    mode: Mode,
    /// Whether somebody waits for it.
    awaited: bool,
    work: Work,
}

/// The store. Cheap to clone; the last clone to go waits until everything is written.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    hands: Hands,
    unheard: Unheard,
    found_open: bool,
    /// Something was erased that the write-ahead log still holds.
    erased: Arc<AtomicBool>,
}

/// Who does the work.
enum Hands {
    /// A thread of its own: a caller that need not wait goes on at once.
    Thread { queue: Option<SyncSender<Job>>, thread: Option<JoinHandle<()>> },
    /// Whoever comes: for a process that makes one call and ends, handing over costs more than the work.
    /// Writes that nobody waits for are kept until somebody does, and share that commit.
    Caller(Box<Mutex<(Base, Vec<Job>)>>),
}

impl Drop for Inner {
    fn drop(&mut self) {
        match &mut self.hands {
            Hands::Thread { queue, thread } => {
                drop(queue.take());
                if let Some(thread) = thread.take() {
                    let _ = thread.join();
                }
            }
            Hands::Caller(held) => {
                let (base, waiting) = held.get_mut().unwrap_or_else(PoisonError::into_inner);
                commit(base, &self.path, std::mem::take(waiting));
                base.tidy(self.erased.load(Ordering::Relaxed));
            }
        }
    }
}

impl Store {
    /// Opens the store at `path`, making it (private to the user) and bringing it up to date if needed.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let (base, found_open) = Base::open(path)?;
        let path = base.shown();
        let (queue, jobs) = sync_channel(QUEUE);
        let (file, erased) = (path.clone(), Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&erased);
        let thread = std::thread::Builder::new()
            .name("haft-store".to_owned())
            .spawn(move || {
                serve(&base, &file, &jobs);
                base.tidy(flag.load(Ordering::Relaxed));
            })
            .map_err(|error| StoreError::Open { path: path.clone(), why: error.to_string() })?;
        Ok(Self::new(path, Hands::Thread { queue: Some(queue), thread: Some(thread) }, found_open, erased))
    }

    /// The same for a process that makes one call and ends: without a thread, in as few commits as
    /// durability allows.
    pub fn open_for_one_call(path: &Path) -> Result<Self, StoreError> {
        let (base, found_open) = Base::open(path)?;
        let path = base.shown();
        let hands = Hands::Caller(Box::new(Mutex::new((base, Vec::new()))));
        Ok(Self::new(path, hands, found_open, Arc::default()))
    }

    fn new(path: PathBuf, hands: Hands, found_open: bool, erased: Arc<AtomicBool>) -> Self {
        let inner = Inner { path, hands, unheard: Unheard::default(), found_open, erased };
        Self { inner: Arc::new(inner) }
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Notes that something was erased: at the end, the write-ahead log must not hold it any longer.
    pub(crate) fn note_erased(&self) {
        self.inner.erased.store(true, Ordering::Relaxed);
    }

    /// Whether calls were open when the store was opened: under way elsewhere, or interrupted.
    pub fn found_open_calls(&self) -> bool {
        self.inner.found_open
    }

    /// Runs a job and waits for its commit.
    pub async fn run<T: Send + 'static>(
        &self,
        mode: Mode,
        job: impl FnOnce(&Db<'_>) -> DbResult<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(mode, job).await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// The same for threads that may block. Panics inside an async context.
    pub fn run_blocking<T: Send + 'static>(
        &self,
        mode: Mode,
        job: impl FnOnce(&Db<'_>) -> DbResult<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(mode, job).blocking_recv().unwrap_or_else(|_| Err(self.gone()))
    }

    /// Queues a write and goes on. A failure shows at the next [`Self::flush`].
    pub fn later(&self, job: impl FnOnce(&Db<'_>) -> DbResult<()> + Send + 'static) {
        let (path, unheard) = (self.inner.path.clone(), Arc::clone(&self.inner.unheard));
        let note = move |error: &StoreError| {
            if let Ok(mut slot) = unheard.lock() {
                slot.get_or_insert_with(|| error.clone());
            }
        };
        let work: Work = Box::new(move |db| {
            let done = db.and_then(|open| job(open).map_err(|error| StoreError::told(&path, &error)));
            match done {
                Ok(()) => Ok(Box::new(move |commit| commit.as_ref().err().into_iter().for_each(note))),
                Err(error) => {
                    note(&error);
                    Err(error)
                }
            }
        });
        self.send(Job { mode: Mode::Write, awaited: false, work });
    }

    /// Waits until everything queued before is committed, and reports what failed unheard.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.run(Mode::Read, |_| Ok(())).await?;
        self.inner.unheard.lock().ok().and_then(|mut slot| slot.take()).map_or(Ok(()), Err)
    }

    fn submit<T: Send + 'static>(
        &self,
        mode: Mode,
        job: impl FnOnce(&Db<'_>) -> DbResult<T> + Send + 'static,
    ) -> oneshot::Receiver<Result<T, StoreError>> {
        let (sender, receiver) = oneshot::channel();
        let path = self.inner.path.clone();
        let work: Work = Box::new(move |db| {
            let done = db.and_then(|open| job(open).map_err(|error| StoreError::told(&path, &error)));
            match done {
                Ok(value) => Ok(Box::new(move |commit| drop(sender.send(commit.map(|()| value))))),
                Err(error) => {
                    let _ = sender.send(Err(error.clone()));
                    Err(error)
                }
            }
        });
        self.send(Job { mode, awaited: true, work });
        receiver
    }

    fn send(&self, job: Job) {
        match &self.inner.hands {
            // A dead worker drops the job, and with it the caller's channel: the caller hears of it there.
            Hands::Thread { queue, .. } => drop(queue.as_ref().map(|queue| queue.send(job))),
            Hands::Caller(held) => {
                let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
                let now = job.awaited || held.1.len() >= TOGETHER;
                held.1.push(job);
                if now {
                    let batch = std::mem::take(&mut held.1);
                    commit(&held.0, &self.inner.path, batch);
                }
            }
        }
    }

    fn gone(&self) -> StoreError {
        StoreError::Failed { path: self.inner.path.clone(), why: "its thread has ended".to_owned() }
    }
}

fn serve(base: &Base, path: &Path, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        let mut batch = vec![first];
        while let (true, Ok(job)) = (batch.len() < TOGETHER, jobs.try_recv()) {
            batch.push(job);
        }
        commit(base, path, batch);
    }
}

/// Runs a batch in one transaction, each job in its own savepoint, and tells everyone what became of it.
fn commit(base: &Base, path: &Path, batch: Vec<Job>) {
    if batch.is_empty() {
        return;
    }
    let fail = |error: DbError| StoreError::told(path, &error);
    let mode = batch.iter().map(|job| job.mode).max().unwrap_or(Mode::Read);
    let db = base.db();
    let mut broken = base.begin(mode).err();
    let mut tells: Vec<Tell> = Vec::with_capacity(batch.len());
    for job in batch {
        let open = broken.clone().map_or(Ok(&db), Err);
        match in_savepoint(open, job.work) {
            Ok(tell) => tells.extend(tell),
            Err(error) => broken = Some(broken.unwrap_or_else(|| fail(error))),
        }
    }
    let done = match broken {
        None => db.execute("COMMIT", &[]).map(drop).map_err(fail),
        Some(error) => Err(error),
    };
    if done.is_err() {
        base.give_up();
    }
    for tell in tells {
        tell(done.clone());
    }
}

/// Runs one job so that its failure undoes only itself. An error here means the transaction is unusable.
fn in_savepoint(db: Result<&Db<'_>, StoreError>, work: Work) -> DbResult<Option<Tell>> {
    let Ok(open) = db else {
        return Ok(work(db).ok());
    };
    open.execute("SAVEPOINT job", &[])?;
    let tell = work(Ok(open)).ok();
    if tell.is_none() {
        open.execute("ROLLBACK TO job", &[])?;
    }
    open.execute("RELEASE job", &[])?;
    Ok(tell)
}
