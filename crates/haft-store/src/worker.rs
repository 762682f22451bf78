//! The thread that owns the connection: jobs queue up and are committed together.

use crate::base::Base;
use crate::job::{Deed, Job};
use crate::listen::Listener;
use crate::post::{self, Address, Fate};
use crate::presence::Presence;
use crate::pulse::Pulse;
use crate::topic::{Bell, Topic};
use crate::waits::{Wait, WaitKind};
use crate::{Db, DbError, DbResult, Kind, StoreError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

/// How many jobs of async callers may be queued; then callers wait for room, and their threads go on with other tasks.
const QUEUE: usize = 512;
/// How many writes that nobody waits for may be queued. Whoever queues one cannot wait for room, so the next is refused.
const UNAWAITED: usize = 16_384;
/// How many jobs share one commit at the most.
const TOGETHER: usize = 256;
/// How often a process that has nothing to write says that it lives.
const RENEW: Duration = Duration::from_secs(5);
/// How often what a lost connection undid is tried once more.
const TRIES: usize = 8;

/// What a job needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// It only looks.
    Read,
    /// It writes who works on what. A server's crash may lose it, too: whatever is done because of it is written after it.
    Claim,
    /// It writes; a power cut may lose it, a crash of the process may not.
    Write,
    /// It writes, and is on disk when it is acknowledged.
    Durable,
}

/// A failure of a write that nobody waited for.
type Unheard = Arc<Mutex<Option<StoreError>>>;

/// The store. Cheap to clone; the last clone to go waits until everything is written.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    place: Place,
    hands: Hands,
    unheard: Unheard,
    found_open: bool,
    /// Something was erased that the write-ahead log still holds.
    erased: Arc<AtomicBool>,
    bell: Arc<Bell>,
    pulse: Arc<Pulse>,
    presence: Arc<Presence>,
    listener: OnceLock<Option<Listener>>,
}

/// Where it is.
struct Place {
    /// As whoever opened it said.
    said: PathBuf,
    /// As people may see it.
    shown: PathBuf,
    address: Option<Address>,
}

/// Who does the work.
enum Hands {
    /// A thread of its own: a caller that need not wait goes on at once. The channel itself has no bound, because sending
    /// into a full one would block an async worker thread; `room` bounds what is in it (backpressure).
    Thread { queue: Option<Sender<Queued>>, room: QueueRoom, thread: Option<JoinHandle<()>> },
    /// Whoever comes: for a process that makes one call and ends, handing over costs more than the work.
    /// Writes that nobody waits for are kept until somebody does, and share that commit.
    Caller(Box<Mutex<(Desk, Vec<Job>)>>),
}

/// A job in the queue, and the room that it takes there until the thread takes it out.
struct Queued {
    job: Job,
    _place: Option<OwnedSemaphorePermit>,
}

/// How much room the queue has.
struct QueueRoom {
    awaited: Arc<Semaphore>,
    unawaited: Arc<Semaphore>,
    /// The operational log was told that the queue is full, and it has been since.
    reported: AtomicBool,
}

/// A database, and who hears of what is done with it.
struct Desk {
    base: Base,
    path: PathBuf,
    bell: Arc<Bell>,
    pulse: Arc<Pulse>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        match &mut self.hands {
            Hands::Thread { queue, thread, .. } => {
                drop(queue.take());
                if let Some(thread) = thread.take() {
                    let _ = thread.join();
                }
            }
            Hands::Caller(held) => {
                let (desk, waiting) = held.get_mut().unwrap_or_else(PoisonError::into_inner);
                desk.commit(std::mem::take(waiting));
                desk.base.tidy(self.erased.load(Ordering::Relaxed));
            }
        }
    }
}

impl Store {
    /// Opens the store at `path`, making it (private to the user) and bringing it up to date if needed. An address
    /// (`postgres://…`) names a server.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_by(path, false)
    }

    /// The same for a process that makes one call and ends: without a thread, in as few commits as
    /// durability allows. A server always has one: whoever waits elsewhere has to hear that this process lives.
    pub fn open_for_one_call(path: &Path) -> Result<Self, StoreError> {
        Self::open_by(path, true)
    }

    fn open_by(path: &Path, one_call: bool) -> Result<Self, StoreError> {
        let address = Address::read(path)?;
        let shown = address.as_ref().map_or_else(|| path.to_owned(), Address::shown);
        let (bell, pulse, erased) = (Bell::new(), Arc::<Pulse>::default(), Arc::<AtomicBool>::default());
        let (seen, heart, rung) = (shown.clone(), Arc::clone(&pulse), Arc::clone(&bell));
        let at = address.clone();
        let presence = Arc::new(if at.is_some() { Presence::default() } else { Presence::beside(path) });
        let lock = Arc::clone(&presence);
        let open = move || {
            let (base, found_open) = match at {
                Some(address) => Base::server(address, Arc::clone(&heart), lock)?,
                None => Base::file(&seen, lock)?,
            };
            Ok((Desk { base, path: seen, bell: rung, pulse: heart }, found_open))
        };
        let (hands, found_open) = if one_call && address.is_none() {
            let (desk, found_open) = open()?;
            (Hands::Caller(Box::new(Mutex::new((desk, Vec::new())))), found_open)
        } else {
            in_a_thread(open, &shown, Arc::clone(&erased))?
        };
        let (unheard, listener) = (Unheard::default(), OnceLock::new());
        let place = Place { said: path.to_owned(), shown, address };
        let inner = Inner { place, hands, unheard, found_open, erased, bell, pulse, presence, listener };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The database file, or the server's address without a password.
    pub fn path(&self) -> &Path {
        &self.inner.place.shown
    }

    /// What it takes to open the same store in another process. It may hold a password: it is never shown, and never
    /// given as an argument.
    pub fn address(&self) -> &Path {
        &self.inner.place.said
    }

    /// Which database it is.
    pub fn kind(&self) -> Kind {
        if self.inner.place.address.is_some() { Kind::Post } else { Kind::Lite }
    }

    /// Keeps the lock by which others see that this process lives in a data directory, for a store on a server: who has the
    /// same directory then sees at once whether it lives. A file's lock is beside the file. On a network file system there is
    /// none, and what counts is when this process was last heard of.
    pub fn keep_lock_in(&self, data_dir: &Path) {
        if self.kind() == Kind::Post && crate::network_file_system(data_dir).is_none() {
            self.inner.presence.settle_in(data_dir);
        }
    }

    /// How the way to it is kept private.
    pub fn privacy(&self) -> &'static str {
        self.inner.place.address.as_ref().map_or("a file of this user's", Address::privacy)
    }

    /// What is wrong with it just now, if something is: a server that is away. Asks nobody, so it answers at once.
    pub fn ails(&self) -> Option<String> {
        self.inner.pulse.ails()
    }

    /// Wakes when something of this topic changes: here at once, elsewhere as soon as a server says so. A file does not
    /// tell what other processes do with it.
    pub fn changed(&self, topic: Topic) -> watch::Receiver<u64> {
        self.listen();
        self.inner.bell.anyone(topic)
    }

    /// The same for changes that others make, alone.
    pub fn changed_elsewhere(&self, topic: Topic) -> watch::Receiver<u64> {
        self.listen();
        self.inner.bell.others(topic)
    }

    fn listen(&self) {
        let Inner { place, listener, bell, .. } = &*self.inner;
        if let Some(address) = &place.address {
            listener.get_or_init(|| Listener::start(address.clone(), Arc::clone(bell)));
        }
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
        self.submit(mode, Deed::once(job)).await
    }

    /// The same for a job that can be done anew: what a lost connection undid is done again once there is another.
    pub async fn insist<T: Send + 'static>(
        &self,
        mode: Mode,
        job: impl FnMut(&Db<'_>) -> DbResult<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(mode, Deed::again(job)).await
    }

    /// The same as [`Self::run`] for threads that may block. Panics inside an async context. It takes no room in the queue:
    /// there are no more such jobs than threads that wait for them.
    pub fn run_blocking<T: Send + 'static>(
        &self,
        mode: Mode,
        job: impl FnOnce(&Db<'_>) -> DbResult<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, answer) = awaited(mode, Deed::once(job));
        self.send(job, None);
        answer.blocking_recv().unwrap_or_else(|_| Err(self.gone()))
    }

    /// Queues a write and goes on; what a lost connection undid is done again. A failure shows at the next
    /// [`Self::flush`]; so does a write that was refused because too many of its kind were queued.
    pub fn later(&self, job: impl FnMut(&Db<'_>) -> DbResult<()> + Send + 'static) {
        let unheard = Arc::clone(&self.inner.unheard);
        let tell = move |done: Result<(), StoreError>| {
            if let (Err(error), Ok(mut slot)) = (done, unheard.lock()) {
                slot.get_or_insert(error);
            }
        };
        let job = Job::new(Mode::Write, false, Deed::again(job), tell);
        match &self.inner.hands {
            Hands::Thread { room, .. } => match Arc::clone(&room.unawaited).try_acquire_owned() {
                Ok(place) => self.send(job, Some(place)),
                Err(_) => job.tell(Err(self.overfull())),
            },
            Hands::Caller(_) => self.send(job, None),
        }
    }

    /// Waits until everything queued before is committed, and reports what failed unheard.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.insist(Mode::Read, |_| Ok(())).await?;
        self.inner.unheard.lock().ok().and_then(|mut slot| slot.take()).map_or(Ok(()), Err)
    }

    /// Queues a job as soon as there is room, and waits for its answer. A caller that is dropped while it waits for room
    /// has asked for nothing.
    async fn submit<T: Send + 'static>(&self, mode: Mode, deed: Deed<T>) -> Result<T, StoreError> {
        let _wait = Wait::begin(WaitKind::Store, || format!("{mode:?} of {}", self.path().display()));
        let (job, answer) = awaited(mode, deed);
        let place = self.place().await;
        self.send(job, place);
        answer.await.unwrap_or_else(|_| Err(self.gone()))
    }

    /// Room for a job in the queue, which is waited for without blocking the thread.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        let Hands::Thread { room, .. } = &self.inner.hands else { return None };
        if let Ok(place) = Arc::clone(&room.awaited).try_acquire_owned() {
            room.reported.store(false, Ordering::Relaxed);
            return Some(place);
        }
        if !room.reported.swap(true, Ordering::Relaxed) {
            tracing::warn!(store = %self.path().display(), queued = QUEUE, "the store's queue is full; callers wait");
        }
        // It is never closed.
        Arc::clone(&room.awaited).acquire_owned().await.ok()
    }

    fn send(&self, job: Job, place: Option<OwnedSemaphorePermit>) {
        match &self.inner.hands {
            // A dead worker drops the job, and with it the caller's channel: the caller hears of it there.
            Hands::Thread { queue, .. } => {
                drop(queue.as_ref().map(|queue| queue.send(Queued { job, _place: place })));
            }
            Hands::Caller(held) => {
                let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
                let now = job.awaited || held.1.len() >= TOGETHER;
                held.1.push(job);
                if now {
                    let batch = std::mem::take(&mut held.1);
                    held.0.commit(batch);
                }
            }
        }
    }

    fn overfull(&self) -> StoreError {
        let why = format!("{UNAWAITED} writes wait for it already, and one more was not taken");
        tracing::error!(store = %self.path().display(), why, "a write was refused");
        StoreError::Failed { path: self.path().to_owned(), why }
    }

    fn gone(&self) -> StoreError {
        StoreError::Failed { path: self.path().to_owned(), why: "its thread has ended".to_owned() }
    }
}

/// A job whose caller waits for the answer.
fn awaited<T: Send + 'static>(mode: Mode, deed: Deed<T>) -> (Job, oneshot::Receiver<Result<T, StoreError>>) {
    let (sender, receiver) = oneshot::channel();
    (Job::new(mode, true, deed, move |done| drop(sender.send(done))), receiver)
}

/// An address as people may see it: without its password. A path is itself.
pub fn shown(place: &Path) -> PathBuf {
    let text = place.to_str().filter(|_| post::is_address(place));
    text.map_or_else(|| place.to_owned(), |text| post::without_password(text).into())
}

/// Opens a database in a thread of its own, which does the work from then on.
fn in_a_thread(
    open: impl FnOnce() -> Result<(Desk, bool), StoreError> + Send + 'static,
    path: &Path,
    erased: Arc<AtomicBool>,
) -> Result<(Hands, bool), StoreError> {
    let (queue, jobs) = channel();
    let (awaited, unawaited) = (Arc::new(Semaphore::new(QUEUE)), Arc::new(Semaphore::new(UNAWAITED)));
    let room = QueueRoom { awaited, unawaited, reported: AtomicBool::new(false) };
    let (tell, opened) = sync_channel(1);
    let life = move || match open() {
        Ok((desk, found_open)) => {
            let _ = tell.send(Ok(found_open));
            desk.serve(&jobs);
            desk.base.tidy(erased.load(Ordering::Relaxed));
        }
        Err(error) => drop(tell.send(Err(error))),
    };
    let fail = |why: String| StoreError::Open { path: path.to_owned(), why };
    let thread = std::thread::Builder::new().name("haft-store".to_owned()).spawn(life);
    let thread = thread.map_err(|error| fail(error.to_string()))?;
    let found_open = opened.recv().map_err(|_| fail("its thread has ended".to_owned()))??;
    Ok((Hands::Thread { queue: Some(queue), room, thread: Some(thread) }, found_open))
}

impl Desk {
    fn serve(&self, jobs: &Receiver<Queued>) {
        loop {
            let heard = match &self.base {
                Base::Lite { .. } => jobs.recv().map_err(RecvTimeoutError::from),
                Base::Post(_) => jobs.recv_timeout(RENEW),
            };
            let first = match (heard, &self.base) {
                (Ok(queued), _) => queued.job,
                (Err(RecvTimeoutError::Timeout), Base::Post(line)) => {
                    line.renew();
                    continue;
                }
                (Err(_), _) => return,
            };
            let mut batch = vec![first];
            // Looked at first: what is taken from the queue is done.
            while batch.len() < TOGETHER {
                let Ok(queued) = jobs.try_recv() else { break };
                batch.push(queued.job);
            }
            self.commit(batch);
        }
    }

    /// Does a batch, and tells everyone what became of it.
    fn commit(&self, mut batch: Vec<Job>) {
        self.pulse.begins();
        for _ in 0..TRIES {
            batch = self.attempt(batch);
            if batch.is_empty() {
                break;
            }
        }
        self.pulse.ends();
        tell(batch, &Err(StoreError::Lost { path: self.path.clone() }));
    }

    /// Runs a batch in one transaction. Returns what has to be done again.
    fn attempt(&self, mut batch: Vec<Job>) -> Vec<Job> {
        if batch.is_empty() {
            return batch;
        }
        // Whoever only looks waits for an answer, and so has not sent anything after it: it may as well look last, when what
        // the others write is written.
        batch.sort_by_key(|job| job.mode == Mode::Read);
        // Most go well: then nothing is said between them. Should one fail, all of them are done anew, each by itself.
        let can_be_undone = batch.iter().all(Job::is_for_again);
        let way = if batch.len() == 1 || can_be_undone { Way::Together } else { Way::Apart };
        match self.attempt_so(batch, way) {
            Attempt::Over(again) => again,
            Attempt::Failed(batch, _) if can_be_undone && way == Way::Together => {
                match self.attempt_so(batch, Way::Apart) {
                    Attempt::Over(again) => again,
                    Attempt::Failed(batch, error) => {
                        tell(batch, &Err(error));
                        Vec::new()
                    }
                }
            }
            Attempt::Failed(batch, error) => {
                tell(batch, &Err(error));
                Vec::new()
            }
        }
    }

    fn attempt_so(&self, mut batch: Vec<Job>, way: Way) -> Attempt {
        let fail = |error: DbError| StoreError::told(&self.path, &error);
        let mode = batch.iter().map(|job| job.mode).max().unwrap_or(Mode::Read);
        let db = match self.base.begin(mode) {
            Ok(db) => db,
            Err(error) => {
                tell(batch, &Err(error));
                return Attempt::Over(Vec::new());
            }
        };
        let done = match way {
            Way::Together => self.together(&db, &mut batch),
            Way::Apart => batch.iter_mut().try_for_each(|job| self.in_savepoint(&db, job)),
        };
        let done = done.and_then(|()| self.base.commit(&db)).map_err(fail);
        let Err(error) = done else {
            self.bell.ring(db.told());
            tell(batch, &Ok(()));
            return Attempt::Over(Vec::new());
        };
        match self.base.fate(mode) {
            None => {
                db.forget();
                self.base.give_up();
                return Attempt::Failed(batch, error);
            }
            Some(Ok(Fate::Committed)) => {
                self.bell.ring(db.told());
                tell(batch, &Ok(()));
            }
            Some(Ok(Fate::Undone)) => {
                let (again, once): (Vec<Job>, Vec<Job>) = batch.into_iter().partition(Job::can_be_done_again);
                tell(once, &Err(StoreError::Lost { path: self.path.clone() }));
                return Attempt::Over(again);
            }
            Some(Err(why)) => {
                tell(batch, &Err(StoreError::Uncertain { path: self.path.clone(), why: why.to_string() }));
            }
        }
        Attempt::Over(Vec::new())
    }

    /// Runs jobs one after the other. The failure of one is that of all.
    fn together(&self, db: &Db<'_>, batch: &mut [Job]) -> DbResult<()> {
        db.hurry();
        for job in batch {
            if !job.attempt(db, &self.path) {
                return Err(DbError::Odd("a job failed".to_owned()));
            }
        }
        Ok(())
    }

    /// Runs one job so that its failure undoes only itself. An error here means the transaction is unusable.
    fn in_savepoint(&self, db: &Db<'_>, job: &mut Job) -> DbResult<()> {
        db.execute("SAVEPOINT job", &[])?;
        if !job.attempt(db, &self.path) {
            db.forget();
            db.execute("ROLLBACK TO job", &[])?;
        }
        db.execute("RELEASE job", &[]).map(drop)
    }
}

/// How jobs share a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Nothing is between them, and what they write is written together.
    Together,
    /// Each can be undone by itself.
    Apart,
}

/// What came of a batch.
enum Attempt {
    /// Everybody was told, but those that have to be done again.
    Over(Vec<Job>),
    /// Nothing of it was done.
    Failed(Vec<Job>, StoreError),
}

fn tell(batch: Vec<Job>, done: &Result<(), StoreError>) {
    for job in batch {
        job.tell(done.clone());
    }
}
