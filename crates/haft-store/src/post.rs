//! A PostgreSQL server, shared by as many processes and machines as know its address.

use crate::db::{Db, DbError, DbResult, Server};
use crate::host::Me;
use crate::listen::CHANNEL;
use crate::pulse::Pulse;
use crate::tls::Tls;
use crate::topic::Topics;
use crate::{Mode, StoreError, cells, migrate};
use postgres::Config;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server that went away is waited for before what needs it fails.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long between two attempts: from the first to the longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// How long a server may be silent before the connection counts as cut.
const SILENT: Duration = Duration::from_secs(15);

/// The lock of whoever writes. A file has one writer at a time, and every job is written for that: what it has looked up
/// stays so until it commits. The same holds here; and the log has one end, so they would wait for one another anyway.
pub(crate) const WRITING: i64 = 0x6861_6674;

/// What holds for every connection. Whoever is cut off in the middle of a transaction must not keep the others from
/// writing for longer than it takes to notice.
const TERMS: &str = "SET idle_in_transaction_session_timeout = '30s'; SET lock_timeout = '60s';
    SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = '15s'";

/// Where a server is.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    config: Config,
    tls: Tls,
    shown: PathBuf,
    writer: i64,
}

/// Whether a store is named by an address, and not by a path.
pub(crate) fn is_address(place: &Path) -> bool {
    place.to_str().is_some_and(|text| ["postgres://", "postgresql://"].iter().any(|s| text.starts_with(s)))
}

impl Address {
    /// The server that a store is named by, if it is none of a file.
    pub(crate) fn read(place: &Path) -> Result<Option<Self>, StoreError> {
        let Some(text) = place.to_str().filter(|_| is_address(place)) else { return Ok(None) };
        let shown = PathBuf::from(without_password(text));
        let fail = |why: String| StoreError::Open { path: shown.clone(), why };
        let (text, tls) = Tls::read(text).map_err(fail)?;
        let mut config: Config = text.parse().map_err(|error: postgres::Error| fail(DbError::words(&error)))?;
        if config.get_application_name().is_none() {
            config.application_name("haft");
        }
        if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
            config.password(password);
        }
        config.ssl_mode(tls.asked());
        config.connect_timeout(CONNECT).tcp_user_timeout(SILENT);
        config.keepalives_idle(SILENT / 3).keepalives_interval(SILENT / 5).keepalives_retries(3);
        Ok(Some(Self { config, tls, shown, writer: chance() }))
    }

    /// Without its password.
    pub(crate) fn shown(&self) -> PathBuf {
        self.shown.clone()
    }

    pub(crate) fn writer(&self) -> i64 {
        self.writer
    }

    /// How the way there is kept private, for people to read.
    pub(crate) fn privacy(&self) -> &'static str {
        self.tls.privacy(self.config.get_hosts())
    }

    /// Connects.
    pub(crate) fn dial(&self) -> Result<Server, StoreError> {
        let fail = |error: postgres::Error| StoreError::told(&self.shown, &error.into());
        let connector = self.tls.connector().map_err(|why| StoreError::Open { path: self.shown(), why })?;
        let mut client = self.config.connect(connector).map_err(fail)?;
        client.batch_execute(TERMS).map_err(fail)?;
        Ok(Server::new(client, self.writer, Me::new(self.writer)))
    }

    /// Connects to a server that may be away for a while.
    fn dial_patiently(&self, until: Instant, pulse: &Pulse) -> Result<Server, StoreError> {
        let mut pause = AGAIN.0;
        loop {
            match self.dial() {
                Ok(server) => {
                    pulse.back();
                    return Ok(server);
                }
                Err(error) if Instant::now() > until => return Err(error),
                Err(error) => pulse.away(&error),
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(AGAIN.1);
        }
    }
}

/// A number that nobody else has.
pub(crate) fn chance() -> i64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish().cast_signed()
}

/// `postgres://user:secret@host/db` with nothing between the colon and the at sign.
pub(crate) fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    // A password may have any character in it, so all before the last at sign is kept back, but for a plain name.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (format!("{}@", user.split([':', '/', '?']).next().unwrap_or_default()), rest),
        None => (String::new(), rest),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let host = format!("{user}{}", &rest[..end]);
    let (path, query) = rest[end..].split_once('?').unwrap_or((&rest[end..], ""));
    // Of all that can be said there, this is where it is, and nothing to keep to oneself.
    let where_it_is = |pair: &&str| ["host=", "port=", "dbname="].iter().any(|name| pair.starts_with(name));
    let kept: Vec<&str> = query.split('&').filter(where_it_is).collect();
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    format!("{scheme}://{host}{path}{query}")
}

/// Connects, brings the schema up to date, and says whether calls are open.
pub(crate) fn connect(address: &Address) -> Result<(Server, bool), StoreError> {
    let server = RefCell::new(address.dial()?);
    let fail = |error| StoreError::told(&address.shown, &error);
    migrate::server(&Db::post(&server), &address.shown)?;
    let open =
        Db::post(&server).one("SELECT EXISTS (SELECT 1 FROM open_calls)", &[], |row| row.get(0)).map_err(fail)?;
    Ok((server.into_inner(), open))
}

/// A store's connection to its server, and what it says of itself there.
pub(crate) struct Line {
    pub(crate) server: RefCell<Server>,
    pub(crate) address: Address,
    pub(crate) pulse: std::sync::Arc<Pulse>,
    /// How often it has begun to write. The number is written along, and so tells which of its writings came through.
    pub(crate) mark: std::cell::Cell<i64>,
    /// By which others with the same data directory see that this process lives.
    pub(crate) presence: std::sync::Arc<crate::presence::Presence>,
}

/// What became of a transaction whose commit nobody confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Committed,
    Undone,
}

impl Line {
    /// Begins a transaction, on a new connection if the old one is gone. Says when that was, by the server's clock, if it
    /// was asked.
    pub(crate) fn begin(&self, mode: Mode) -> Result<Option<i64>, StoreError> {
        let begin = self.opening(mode);
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.server.borrow_mut().ask(&begin);
            let error = match said {
                Ok(at_ms) => return Ok(at_ms.and_then(|text| text.parse().ok())),
                Err(error) => error,
            };
            if !self.is_lost() {
                // Whatever was begun must not be gone on with.
                let _ = self.server.borrow_mut().batch("ROLLBACK");
            }
            if !self.is_lost() || Instant::now() > until {
                return Err(StoreError::told(&self.address.shown, &error));
            }
            let new = self.address.dial_patiently(until, &self.pulse)?;
            self.server.replace(new);
        }
    }

    fn opening(&self, mode: Mode) -> String {
        if mode == Mode::Read {
            return "BEGIN READ ONLY".to_owned();
        }
        self.mark.set(self.mark.get() + 1);
        let alive = self.server.borrow().me.alive(self.mark.get());
        // A commit waits for the server's disk: what it has not written it forgets when it crashes, and others would have
        // seen it. A claim need not: what is done because of it is written after it, and so never without it.
        let care = if mode == Mode::Claim { "SET LOCAL synchronous_commit = off; " } else { "" };
        format!("BEGIN; {care}SELECT pg_advisory_xact_lock({WRITING}); {alive} RETURNING seen_ms")
    }

    /// Ends a transaction, and tells others what it changed.
    pub(crate) fn commit(&self, told: Topics) -> DbResult<()> {
        let writer = self.address.writer;
        // A transaction that failed half-way would end without a word.
        let mut sql = "SELECT 1; ".to_owned();
        for topic in told.iter() {
            let _ = write!(sql, "NOTIFY {CHANNEL}, '{} {writer}'; ", topic.as_str());
        }
        sql.push_str("COMMIT");
        self.server.borrow_mut().batch(&sql)
    }

    pub(crate) fn is_lost(&self) -> bool {
        let server = self.server.borrow();
        server.lost || server.client.is_closed()
    }

    /// What became of the last transaction, on a new connection. Whoever has the lock knows that it has ended; and it
    /// was committed if its mark is there.
    pub(crate) fn fate(&self) -> Result<Fate, StoreError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let new = self.address.dial_patiently(until, &self.pulse)?;
            self.server.replace(new);
            let found = self.last_mark();
            match found {
                Ok(mark) if mark == Some(self.mark.get()) => return Ok(Fate::Committed),
                Ok(_) => return Ok(Fate::Undone),
                Err(_) if self.is_lost() && Instant::now() < until => {}
                Err(error) => return Err(StoreError::told(&self.address.shown, &error)),
            }
        }
    }

    fn last_mark(&self) -> DbResult<Option<i64>> {
        let db = Db::post(&self.server);
        db.batch(&format!("BEGIN; SELECT pg_advisory_xact_lock({WRITING})"))?;
        let id = self.server.borrow().me.id.clone();
        let mark = db.first("SELECT mark FROM processes WHERE id = ?1", cells![id], |row| row.get(0));
        db.batch("COMMIT")?;
        mark
    }

    /// Says that this process lives, while it has nothing else to say. A connection that is gone is made again at the next
    /// opportunity, so that whoever looks can be told how the server is.
    pub(crate) fn renew(&self) {
        if self.mark.get() == 0 {
            return;
        }
        let alive = self.server.borrow().me.alive(self.mark.get());
        if self.server.borrow_mut().batch(&alive).is_ok() || !self.is_lost() {
            return;
        }
        match self.address.dial() {
            Ok(new) => {
                self.server.replace(new);
                self.pulse.back();
                let _ = self.server.borrow_mut().batch(&alive);
            }
            Err(error) => self.pulse.away(&error),
        }
    }

    /// Says goodbye.
    pub(crate) fn leave(&self) {
        if self.mark.get() > 0 {
            let gone = self.server.borrow().me.gone();
            let _ = self.server.borrow_mut().batch(&gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (text, shown) in [
            ("postgres://me:sec/ret@db.example/haft", "postgres://me@db.example/haft"),
            ("postgres://me:sec?ret@db.example/haft", "postgres://me@db.example/haft"),
            ("postgres://me:p@ss:word@db.example:5432/haft?sslmode=require", "postgres://me@db.example:5432/haft"),
            ("postgres:///haft?host=/run/postgresql&password=x", "postgres:///haft?host=/run/postgresql"),
            ("postgresql://db/haft", "postgresql://db/haft"),
        ] {
            assert_eq!(without_password(text), shown);
        }
        assert!(Address::read(Path::new("/home/me/haft.db")).unwrap().is_none());
        let error = Address::read(Path::new("postgres://me:secret@host:port/x")).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
