//! The database that a store has: a file of its own, or a server that it shares with others.

use crate::db::{Db, Server};
use crate::{Mode, StoreError, lite, post};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

/// An open database.
pub(crate) enum Base {
    /// A file.
    Lite {
        connection: rusqlite::Connection,
        path: PathBuf,
        /// How carefully it writes just now.
        care: Cell<Mode>,
    },
    /// A server.
    Post { server: RefCell<Server>, address: post::Address },
}

impl Base {
    /// Opens what `place` names, brings it up to date, and says whether calls are open in it.
    pub(crate) fn open(place: &Path) -> Result<(Self, bool), StoreError> {
        if let Some(address) = post::Address::read(place)? {
            let (server, found_open) = post::connect(&address)?;
            return Ok((Self::Post { server: RefCell::new(server), address }, found_open));
        }
        let (connection, found_open) = lite::connect(place)?;
        Ok((Self::Lite { connection, path: place.to_owned(), care: Cell::new(Mode::Read) }, found_open))
    }

    /// Where it is, as people may see it.
    pub(crate) fn shown(&self) -> PathBuf {
        match self {
            Self::Lite { path, .. } => path.clone(),
            Self::Post { address, .. } => address.shown(),
        }
    }

    /// For jobs.
    pub(crate) fn db(&self) -> Db<'_> {
        match self {
            Self::Lite { connection, .. } => Db::lite(connection),
            Self::Post { server, .. } => Db::post(server),
        }
    }

    /// Begins a transaction. A server that went away is waited for.
    pub(crate) fn begin(&self, mode: Mode) -> Result<(), StoreError> {
        match self {
            Self::Lite { path, care, .. } => {
                lite::begin(&self.db(), care, mode).map_err(|error| StoreError::told(path, &error))
            }
            Self::Post { server, address } => post::begin(server, address, mode),
        }
    }

    /// Leaves a transaction that failed.
    pub(crate) fn give_up(&self) {
        match self {
            Self::Lite { connection, .. } if connection.is_autocommit() => {}
            _ => drop(self.db().batch("ROLLBACK")),
        }
    }

    /// Before it is closed.
    pub(crate) fn tidy(&self, erased: bool) {
        if let Self::Lite { connection, path, .. } = self {
            lite::shorten(connection, path, erased);
        }
    }
}
