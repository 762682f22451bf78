//! The embedded database: a file of this user's.

use crate::db::{Db, DbResult};
use crate::network_files::{self, network_file_system};
use crate::{Mode, StoreError, migrate};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::cell::Cell;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a write waits for other processes.
const BUSY: Duration = Duration::from_secs(5);
/// How long a wait for a lock may take before the operational log names it.
const WORTH_SAYING: Duration = Duration::from_secs(1);
/// How long to wait before coming again to a store that is just being made.
const AGAIN: Duration = Duration::from_millis(10);
/// How long the write-ahead log may be when a process ends.
const LOG_MAX: u64 = 256 << 10;

/// Opens the file, and says whether calls are open in it. While a new store is being made, the database
/// turns others away at once instead of letting them wait; so they come again.
pub(crate) fn connect(path: &Path) -> Result<(Connection, bool), StoreError> {
    let patience = Instant::now() + BUSY;
    loop {
        match try_connect(path) {
            Err(StoreError::Locked { .. }) if Instant::now() < patience => std::thread::sleep(AGAIN),
            done => return done,
        }
    }
}

fn try_connect(path: &Path) -> Result<(Connection, bool), StoreError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    if let Some(name) = network_file_system(dir) {
        let why = network_files::refusal(name, dir);
        return Err(StoreError::Open { path: path.to_owned(), why });
    }
    prepare_file(path).map_err(|error| StoreError::Open { path: path.to_owned(), why: error.to_string() })?;
    let fail = |error: rusqlite::Error| StoreError::from_sqlite(path, &error);
    let mut connection = Connection::open(path).map_err(fail)?;
    connection.busy_handler(Some(wait_for_lock)).map_err(fail)?;
    migrate::migrate(&mut connection, path)?;
    connection.set_prepared_statement_cache_capacity(64);
    // What is deleted is overwritten: arguments that waited for an answer, outcomes that were fetched.
    connection.pragma_update(None, "secure_delete", true).map_err(fail)?;
    // A checkpoint flushes the disk; a process that made one call must not pay for it when it ends.
    // The write-ahead log is carried over by whoever finds it too long.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(fail)?;
    let open = "SELECT EXISTS (SELECT 1 FROM open_calls)";
    let found_open = connection.query_row(open, [], |row| row.get(0)).map_err(fail)?;
    Ok((connection, found_open))
}

/// Waits a little for another process that holds the file, and says whether it is worth trying again: for [`BUSY`] at the
/// most. A wait that takes long is named in the operational log. The database counts the attempts for one lock.
fn wait_for_lock(attempt: i32) -> bool {
    thread_local! {
        static BEGUN: Cell<(Instant, bool)> = Cell::new((Instant::now(), false));
    }
    let (since, said) = if attempt == 0 { (Instant::now(), false) } else { BEGUN.get() };
    let waited = since.elapsed();
    let say = !said && waited >= WORTH_SAYING;
    BEGUN.set((since, said || say));
    if say {
        tracing::warn!(waited_ms = waited.as_millis(), "the store is locked by another process; waiting for it");
    }
    if waited >= BUSY {
        return false;
    }
    std::thread::sleep(Duration::from_millis(u64::try_from(attempt).unwrap_or_default().clamp(1, 25)));
    true
}

/// Opens a file that is there, and leaves it as it is.
pub(crate) fn connect_as_it_is(path: &Path) -> Result<Connection, StoreError> {
    let fail = |error: rusqlite::Error| StoreError::from_sqlite(path, &error);
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(BUSY).map_err(fail)?;
    Ok(connection)
}

/// Makes the file before the database does, so that it is never readable by others.
fn prepare_file(path: &Path) -> std::io::Result<()> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.exists()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Carries the write-ahead log over when it has grown. The next process to open the store reads all that
/// is left of it, so a short one keeps start-up short; most processes find nothing to do here.
pub(crate) fn shorten(connection: &Connection, path: &Path, erased: bool) {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if erased || std::fs::metadata(log).is_ok_and(|meta| meta.len() > LOG_MAX) {
        let _ = connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_checkpoint(TRUNCATE);");
    }
}

/// Begins a transaction. `care` is how carefully the file is written just now: saying it again costs as much as a write.
pub(crate) fn begin(db: &Db<'_>, care: &Cell<Mode>, mode: Mode) -> DbResult<()> {
    let mode = if mode == Mode::Claim { Mode::Write } else { mode };
    if mode == Mode::Read {
        return db.execute("BEGIN", &[]).map(drop);
    }
    if care.get() != mode {
        db.batch(if mode == Mode::Durable { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" })?;
        care.set(mode);
    }
    db.execute("BEGIN IMMEDIATE", &[]).map(drop)
}
