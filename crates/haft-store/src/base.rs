//! The database that a store has: a file of its own, or a server that it shares with others.

use crate::db::{Db, DbResult};
use crate::post::{Address, Fate, Line};
use crate::presence::Presence;
use crate::pulse::Pulse;
use crate::{Mode, StoreError, lite, post};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open database.
pub(crate) enum Base {
    /// A file.
    Lite {
        connection: rusqlite::Connection,
        path: PathBuf,
        /// How carefully it writes just now.
        care: Cell<Mode>,
        /// By which others see that this process lives.
        presence: Arc<Presence>,
    },
    /// A server.
    Post(Box<Line>),
}

impl Base {
    /// Opens a file, brings it up to date, and says whether calls are open in it.
    pub(crate) fn file(path: &Path, presence: Arc<Presence>) -> Result<(Self, bool), StoreError> {
        let (connection, found_open) = lite::connect(path)?;
        Ok((Self::Lite { connection, path: path.to_owned(), care: Cell::new(Mode::Read), presence }, found_open))
    }

    /// The same for a server.
    pub(crate) fn server(
        address: Address,
        pulse: Arc<Pulse>,
        presence: Arc<Presence>,
    ) -> Result<(Self, bool), StoreError> {
        let (server, found_open) = post::connect(&address)?;
        let line = Line { server: RefCell::new(server), address, pulse, mark: Cell::new(0), presence };
        Ok((Self::Post(Box::new(line)), found_open))
    }

    /// Either, as its name says.
    pub(crate) fn open(place: &Path) -> Result<Self, StoreError> {
        let base = match Address::read(place)? {
            Some(address) => Self::server(address, Arc::default(), Arc::default())?,
            None => Self::file(place, Arc::new(Presence::beside(place)))?,
        };
        Ok(base.0)
    }

    /// Either, if it is there, without bringing it up to date.
    pub(crate) fn unchanged(place: &Path) -> Result<Self, StoreError> {
        let Some(address) = Address::read(place)? else {
            let connection = lite::connect_as_it_is(place)?;
            let (care, presence) = (Cell::new(Mode::Read), Arc::default());
            return Ok(Self::Lite { connection, path: place.to_owned(), care, presence });
        };
        let server = RefCell::new(address.dial()?);
        let (pulse, presence) = (Arc::default(), Arc::default());
        Ok(Self::Post(Box::new(Line { server, address, pulse, mark: Cell::new(0), presence })))
    }

    /// For jobs.
    pub(crate) fn db(&self) -> Db<'_> {
        match self {
            Self::Lite { connection, presence, .. } => Db::lite(connection).of(presence),
            Self::Post(line) => Db::post(&line.server).of(&line.presence),
        }
    }

    /// Begins a transaction. A server that went away is waited for.
    pub(crate) fn begin(&self, mode: Mode) -> Result<Db<'_>, StoreError> {
        match self {
            Self::Lite { path, care, .. } => {
                lite::begin(&self.db(), care, mode).map_err(|error| StoreError::told(path, &error))?;
                Ok(self.db())
            }
            Self::Post(line) => line.begin(mode).map(|at_ms| self.db().begun(at_ms)),
        }
    }

    /// Ends one.
    pub(crate) fn commit(&self, db: &Db<'_>) -> DbResult<()> {
        db.write_out()?;
        match self {
            Self::Lite { .. } => db.execute("COMMIT", &[]).map(drop),
            Self::Post(line) => line.commit(db.told()),
        }
    }

    /// Leaves a transaction that failed.
    pub(crate) fn give_up(&self) {
        match self {
            Self::Lite { connection, .. } if connection.is_autocommit() => {}
            _ => drop(self.db().batch("ROLLBACK")),
        }
    }

    /// What became of a transaction that failed because the connection was lost. None if it failed otherwise: then
    /// nothing of it was done.
    pub(crate) fn fate(&self, mode: Mode) -> Option<Result<Fate, StoreError>> {
        match self {
            Self::Post(line) if line.is_lost() && mode == Mode::Read => Some(Ok(Fate::Undone)),
            Self::Post(line) if line.is_lost() => Some(line.fate()),
            _ => None,
        }
    }

    /// Before it is closed.
    pub(crate) fn tidy(&self, erased: bool) {
        match self {
            Self::Lite { connection, path, .. } => lite::shorten(connection, path, erased),
            Self::Post(line) => line.leave(),
        }
    }
}
