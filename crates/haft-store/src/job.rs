//! A job on its way through the store: tried, perhaps more than once, and told what became of it.

use crate::{Db, DbError, DbResult, Mode, StoreError};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// What is to be done.
pub(crate) enum Deed<T> {
    /// Once: it gives away what it brought.
    Once(Option<Once<T>>),
    /// As often as it takes.
    Again(Again<T>),
}

type Once<T> = Box<dyn FnOnce(&Db<'_>) -> DbResult<T> + Send>;
type Again<T> = Box<dyn FnMut(&Db<'_>) -> DbResult<T> + Send>;

impl<T> Deed<T> {
    pub(crate) fn once(job: impl FnOnce(&Db<'_>) -> DbResult<T> + Send + 'static) -> Self {
        Self::Once(Some(Box::new(job)))
    }

    pub(crate) fn again(job: impl FnMut(&Db<'_>) -> DbResult<T> + Send + 'static) -> Self {
        Self::Again(Box::new(job))
    }
}

/// What is to be done, for somebody who hears what came of it once its commit is known.
pub(crate) struct Job {
    pub(crate) mode: Mode,
    /// Whether somebody waits for it.
    pub(crate) awaited: bool,
    work: Box<dyn Work>,
}

impl Job {
    pub(crate) fn new<T: Send + 'static>(
        mode: Mode,
        awaited: bool,
        deed: Deed<T>,
        tell: impl FnOnce(Result<T, StoreError>) + Send + 'static,
    ) -> Self {
        Self { mode, awaited, work: Box::new(Errand { deed, came: None, panicked: false, tell }) }
    }

    /// Does it inside a transaction, and writes what it kept. False if it failed, and is to be undone.
    pub(crate) fn attempt(&mut self, db: &Db<'_>, path: &Path) -> bool {
        self.work.attempt(db, path)
    }

    /// Whether it can be done as often as it takes.
    pub(crate) fn is_for_again(&self) -> bool {
        self.work.is_for_again()
    }

    pub(crate) fn can_be_done_again(&self) -> bool {
        self.work.can_be_done_again()
    }

    /// Says what became of it.
    pub(crate) fn tell(self, done: Result<(), StoreError>) {
        self.work.tell(done);
    }
}

trait Work: Send {
    fn attempt(&mut self, db: &Db<'_>, path: &Path) -> bool;
    fn can_be_done_again(&self) -> bool;
    fn is_for_again(&self) -> bool;
    fn tell(self: Box<Self>, done: Result<(), StoreError>);
}

struct Errand<T, F> {
    deed: Deed<T>,
    came: Option<Result<T, StoreError>>,
    /// A job that panicked once is not run again: what it holds may be half changed.
    panicked: bool,
    tell: F,
}

/// Runs part of a job, and turns its panic into an error. The error makes the store roll back the transaction, or the part of
/// it that belongs to this job, so a half-done job never reaches the database.
pub(crate) fn without_panic<T>(part: impl FnOnce() -> DbResult<T>) -> DbResult<T> {
    catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|panic| Err(DbError::Panic(panic_message(&*panic))))
}

/// What a panic says.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

impl<T: Send, F: FnOnce(Result<T, StoreError>) + Send> Work for Errand<T, F> {
    fn attempt(&mut self, db: &Db<'_>, path: &Path) -> bool {
        if self.panicked {
            return false;
        }
        let came = match &mut self.deed {
            Deed::Once(job) => job.take().map(|job| without_panic(|| job(db))),
            Deed::Again(job) => Some(without_panic(|| job(db))),
        };
        // Where each stands for itself, so does what it kept to write.
        let came =
            if db.is_hurried() { came } else { came.map(|came| came.and_then(|value| db.write_out().map(|()| value))) };
        self.panicked = matches!(came, Some(Err(DbError::Panic(_))));
        self.came = came.map(|came| came.map_err(|error| StoreError::told(path, &error)));
        matches!(self.came, Some(Ok(_)))
    }

    fn can_be_done_again(&self) -> bool {
        !self.panicked && matches!(self.deed, Deed::Again(_) | Deed::Once(Some(_)))
    }

    fn is_for_again(&self) -> bool {
        matches!(self.deed, Deed::Again(_))
    }

    fn tell(self: Box<Self>, done: Result<(), StoreError>) {
        let Self { came, tell, .. } = *self;
        // A connection that was lost is why a job failed, whatever it says itself.
        let lost = matches!(done, Err(StoreError::Lost { .. } | StoreError::Uncertain { .. }));
        let said = match (came.filter(|_| !lost), done) {
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (Some(Ok(value)), Ok(())) => Ok(value),
            // Nobody tried it, and yet it was committed: never.
            (None, Ok(())) => return,
        };
        // What the caller does with the answer is the caller's: the others still hear theirs.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| tell(said))) {
            tracing::error!(panic = panic_message(&*panic), "a caller of the store panicked when it heard the answer");
        }
    }
}
