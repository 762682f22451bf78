//! Why the store could not do what it was asked.

use crate::db::DbError;
use haft_core::approval::DecisionRefused;
use std::path::PathBuf;

/// A failure of the store. Each says which file it is about, and has a hint.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The directory or file cannot be made.
    #[error("the store {path} cannot be opened: {why}")]
    Open {
        /// The database file.
        path: PathBuf,
        /// The system's complaint.
        why: String,
    },
    /// Another process holds it for too long.
    #[error("the store {path} is locked by another process")]
    Locked {
        /// The database file.
        path: PathBuf,
    },
    /// A newer haft wrote it.
    #[error("the store {path} was written by a newer haft (format {found}; this one knows up to {known})")]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// It is not a database, or a damaged one.
    #[error("the store {path} is damaged: {why}")]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// The database's complaint.
        why: String,
    },
    /// The disk is full.
    #[error("the store {path} cannot grow: the disk is full")]
    Full {
        /// The database file.
        path: PathBuf,
    },
    /// The connection to a server was lost, and nothing of this was done.
    #[error("the connection to the store {path} was lost")]
    Lost {
        /// The server.
        path: PathBuf,
    },
    /// The connection was lost while this was being committed, and the server did not come back to say.
    #[error("the connection to the store {path} was lost, and whether this was written is not known: {why}")]
    Uncertain {
        /// The server.
        path: PathBuf,
        /// Why it cannot be found out.
        why: String,
    },
    /// The identity that answers a question has no right to. The log keeps that it tried.
    #[error(transparent)]
    MayNotDecide(#[from] DecisionRefused),
    /// Anything else.
    #[error("the store {path} failed: {why}")]
    Failed {
        /// The database file.
        path: PathBuf,
        /// The database's complaint.
        why: String,
    },
}

/// What the address can say when no private way to a server can be made.
const SAY_HOW: &str = "; sslrootcert=FILE in its address names whom to trust, and sslmode= asks for less (sslmode=require: \
     encrypted, whoever answers; sslmode=disable: not encrypted)";

impl StoreError {
    /// What to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Open { .. } => {
                "check that the directory can be written, or that the server answers; --store or HAFT_STORE choose another"
            }
            Self::Locked { .. } => "wait for the other process to finish, and call again; nothing was run",
            Self::Newer { .. } => "upgrade haft, or choose another store with --store or HAFT_STORE",
            Self::Damaged { .. } => "move the file aside (keep it: it is your audit log) and let haft make a new one",
            Self::Full { .. } => "free some space; a call that cannot be recorded is not run",
            Self::Lost { .. } => "nothing was written; call again",
            Self::Uncertain { .. } => "look at `haft log` before calling again",
            Self::MayNotDecide(_) => "a person decides, on the page or with `haft approvals`",
            Self::Failed { .. } => "`haft doctor` checks the store",
        }
    }

    /// What a database said, about the store at `path`.
    pub(crate) fn told(path: &std::path::Path, error: &DbError) -> Self {
        match error {
            DbError::Lite(error) => Self::from_sqlite(path, error),
            DbError::Post(error) => Self::from_server(path, error),
            DbError::Odd(why) => Self::Failed { path: path.to_owned(), why: why.clone() },
            DbError::Panic(_) => Self::Failed { path: path.to_owned(), why: error.to_string() },
        }
    }

    fn from_server(path: &std::path::Path, error: &postgres::Error) -> Self {
        let (path, mut why) = (path.to_owned(), DbError::words(error));
        // Whoever gives an address without a word about this is asked for more than they know of.
        if why.contains("TLS handshake") {
            why.push_str(SAY_HOW);
        }
        match error.code().map(postgres::error::SqlState::code) {
            Some("53100") => Self::Full { path },
            Some("55P03" | "40P01" | "40001") => Self::Locked { path },
            Some(code) if !code.starts_with("28") && !code.starts_with("3D") => Self::Failed { path, why },
            _ => Self::Open { path, why },
        }
    }

    pub(crate) fn from_sqlite(path: &std::path::Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let (path, why) = (path.to_owned(), error.to_string());
        match error.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Self::Locked { path },
            Some(Code::NotADatabase | Code::DatabaseCorrupt) => Self::Damaged { path, why },
            Some(Code::DiskFull) => Self::Full { path },
            Some(Code::CannotOpen | Code::ReadOnly | Code::PermissionDenied) => Self::Open { path, why },
            _ => Self::Failed { path, why },
        }
    }
}
