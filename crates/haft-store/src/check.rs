//! Whether a store is whole: what the database says of itself, whether the log's chain holds, and whether rows belong to
//! something.

use crate::base::Base;
use crate::db::{Db, DbResult, Kind};
use crate::journal::verify;
use crate::migrate::{self, KNOWN};
use crate::schema::tables;
use crate::{Head, Mode, Store, StoreError};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Which rows need which others: a table and its column, and those that it speaks of. A table that is not there needs
/// nothing.
const BELONGS: &[(&str, &str, &str, &str)] = &[
    ("undo_steps", "call_id", "undo_calls", "call_id"),
    ("pin_texts", "tool", "pins", "tool"),
    ("steps", "run", "runs", "id"),
    ("task_runs", "task", "tasks", "id"),
    ("task_pages", "task", "tasks", "id"),
    ("memory_pieces", "namespace", "memory_documents", "namespace"),
];
/// How many complaints of a database are shown.
const COMPLAINTS: usize = 20;

/// What a store is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    /// The database's own name and version.
    pub database: String,
    /// Its format, and the newest that is known here.
    pub format: i64,
    /// The newest that is known here.
    pub known: i64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Each table, and how many rows it has.
    pub tables: Vec<(String, i64)>,
    /// The end of the log as far as it holds.
    pub head: Option<Head>,
    /// What is wrong.
    pub problems: Vec<String>,
}

impl Store {
    /// What it is, as it answers.
    pub async fn about(&self) -> Result<About, StoreError> {
        self.insist(Mode::Read, about).await
    }

    /// Looks at everything.
    pub async fn check(&self) -> Result<Checked, StoreError> {
        self.insist(Mode::Read, check).await
    }
}

fn about(db: &Db<'_>) -> DbResult<About> {
    let database = match db.kind() {
        Kind::Lite => format!("SQLite {}", rusqlite::version()),
        Kind::Post => db.one("SHOW server_version", &[], |row| {
            Ok(format!("PostgreSQL {}", row.get::<String>(0)?.split(' ').next().unwrap_or_default()))
        })?,
    };
    Ok(About { database, format: migrate::format(db)?, known: KNOWN })
}

/// The format that a store has, without changing it; none if there is no store.
pub fn format_of(place: &Path) -> Result<Option<i64>, StoreError> {
    if crate::post::Address::read(place)?.is_none() && !place.exists() {
        return Ok(None);
    }
    Base::as_it_is(place).map(|(_, format)| Some(format).filter(|format| *format > 0))
}

/// Brings a store up to date, and says from which format to which. For threads that may block.
pub fn bring_up_to_date(place: &Path) -> Result<(i64, i64), StoreError> {
    let found = format_of(place)?.unwrap_or(0);
    Base::open(place)?;
    Ok((found, KNOWN))
}

fn check(db: &Db<'_>) -> DbResult<Checked> {
    let mut problems = own_check(db)?;
    let all = tables(db)?;
    // Whoever counts reads every row, and so finds those that cannot be read.
    let counts = all.iter().map(|table| Ok((table.name.clone(), table.count(db)?))).collect::<DbResult<Vec<_>>>()?;
    let head = match verify(db, None)? {
        Ok(verified) => Some(verified.head),
        Err(broken) => {
            problems.push(format!("the log is broken at record {}: {}", broken.seq, broken.why));
            None
        }
    };
    let there =
        |table: &str, column: &str| all.iter().any(|known| known.name == table && known.column(column).is_some());
    for (child, of, parent, id) in BELONGS {
        if there(child, of) && there(parent, id) {
            let sql = format!(
                "SELECT count(*) FROM \"{child}\" c WHERE NOT EXISTS (SELECT 1 FROM \"{parent}\" p WHERE p.\"{id}\" = c.\"{of}\")"
            );
            let lost: i64 = db.one(&sql, &[], |row| row.get(0))?;
            if lost > 0 {
                problems.push(format!("{lost} rows of `{child}` belong to nothing in `{parent}`"));
            }
        }
    }
    Ok(Checked { tables: counts, head, problems })
}

/// What the database finds wrong with itself.
fn own_check(db: &Db<'_>) -> DbResult<Vec<String>> {
    if db.kind() == Kind::Lite {
        let said: Vec<String> = db.all("PRAGMA integrity_check", &[], |row| row.get(0))?;
        return Ok(said.into_iter().filter(|line| line != "ok").take(COMPLAINTS).collect());
    }
    // A server checks each page as it is read, if it was made to; an index that is not whole says so here.
    let sql = "SELECT CAST(c.relname AS TEXT) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
               JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = current_schema() AND NOT (i.indisvalid AND i.indisready)";
    let broken: Vec<String> = db.all(sql, &[], |row| row.get(0))?;
    Ok(broken.into_iter().map(|index| format!("the index `{index}` is not whole: REINDEX makes it anew")).collect())
}

impl Base {
    /// Opens what is there and leaves it as it is. Says which format it has.
    pub(crate) fn as_it_is(place: &Path) -> Result<(Self, i64), StoreError> {
        let base = Self::unchanged(place)?;
        let format = migrate::format(&base.db()).map_err(|error| StoreError::told(&base.shown(), &error))?;
        Ok((base, format))
    }

    /// Where it is, as people may see it.
    pub(crate) fn shown(&self) -> PathBuf {
        match self {
            Self::Lite { path, .. } => path.clone(),
            Self::Post(line) => line.address.shown(),
        }
    }
}
