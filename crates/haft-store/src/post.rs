//! A PostgreSQL server, shared by as many processes and machines as know its address.

use crate::db::{Db, Server};
use crate::{Mode, StoreError, migrate};
use postgres::{Config, NoTls};
use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a server that went away is waited for before what needs it fails.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long between two attempts: from the first to the longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The lock of whoever writes. A file has one writer at a time, and every job is written for that: what it has looked up
/// stays so until it commits. The same holds here; and the log has one end, so they would wait for one another anyway.
const WRITING: i64 = 0x6861_6674;

/// Where a server is.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    config: Config,
    shown: PathBuf,
    writer: i64,
}

impl Address {
    /// The server that a store is named by, if it is none of a file.
    pub(crate) fn read(place: &Path) -> Result<Option<Self>, StoreError> {
        let Some(text) =
            place.to_str().filter(|text| ["postgres://", "postgresql://"].iter().any(|s| text.starts_with(s)))
        else {
            return Ok(None);
        };
        let shown = PathBuf::from(without_password(text));
        let mut config: Config = text
            .parse()
            .map_err(|error: postgres::Error| StoreError::Open { path: shown.clone(), why: error.to_string() })?;
        if config.get_application_name().is_none() {
            config.application_name("haft");
        }
        config.connect_timeout(CONNECT);
        Ok(Some(Self { config, shown, writer: chance() }))
    }

    /// Without its password.
    pub(crate) fn shown(&self) -> PathBuf {
        self.shown.clone()
    }

    fn dial(&self) -> Result<Server, StoreError> {
        let client = self.config.connect(NoTls).map_err(|error| StoreError::told(&self.shown, &error.into()))?;
        Ok(Server::new(client, self.writer))
    }
}

/// A number that nobody else has.
fn chance() -> i64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish().cast_signed()
}

/// `postgres://user:secret@host/db` with nothing between the colon and the at sign.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let host = match rest[..end].rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => rest[..end].to_owned(),
    };
    let path = rest[end..].split('?').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
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

/// Begins a transaction, on a new connection if the old one is gone.
pub(crate) fn begin(server: &RefCell<Server>, address: &Address, mode: Mode) -> Result<(), StoreError> {
    let alone = format!("BEGIN; SELECT pg_advisory_xact_lock({WRITING})");
    let begin = match mode {
        Mode::Read => "BEGIN READ ONLY".to_owned(),
        Mode::Write => format!("{alone}; SET LOCAL synchronous_commit = off"),
        Mode::Durable => alone,
    };
    let (until, mut pause) = (Instant::now() + PATIENCE, AGAIN.0);
    loop {
        let begun = Db::post(server).batch(&begin);
        let Err(error) = begun else { return Ok(()) };
        if !server.borrow().client.is_closed() || Instant::now() > until {
            return Err(StoreError::told(&address.shown, &error));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(AGAIN.1);
        if let Ok(new) = address.dial() {
            server.replace(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (text, shown) in [
            ("postgres://me:p@ss:word@db.example:5432/haft?sslmode=require", "postgres://me@db.example:5432/haft"),
            ("postgres:///haft?host=/run/postgresql&password=x", "postgres:///haft"),
            ("postgresql://db/haft", "postgresql://db/haft"),
        ] {
            assert_eq!(without_password(text), shown);
        }
        assert!(Address::read(Path::new("/home/me/haft.db")).unwrap().is_none());
        let error = Address::read(Path::new("postgres://me:secret@host:port/x")).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
