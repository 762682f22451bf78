//! Taking a store elsewhere: from a file to a server, back, or to another of its kind, without loss.
//!
//! What is copied is what the source held at one moment, whatever goes on there meanwhile. The target gets all of it in
//! one transaction, which is compared with the source before it is committed: whoever is cut off in the middle leaves a
//! target that is as empty as before.

use crate::base::Base;
use crate::db::{Cell, Db, DbError, DbResult, Kind};
use crate::journal::{head, verify};
use crate::migrate::KNOWN;
use crate::schema::{Column, Holds, Table, tables};
use crate::{Head, StoreError, migrate};
use serde::Serialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How many rows go into one statement.
const TOGETHER: usize = 64;
/// After how many rows whoever watches is told.
const TELL: i64 = 1024;
/// What is not taken along: who lives just now, and with which database.
const STAYS: &str = "processes";

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Each table, and how many rows it has.
    pub tables: Vec<(String, i64)>,
    /// The end of the log, the same in both.
    pub head: Head,
}

/// Why nothing was copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// One of the stores.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The source's format is an older one.
    #[error("the store {path} has format {found}, and this haft copies format {known}")]
    Older {
        /// The source.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The one that is known here.
        known: i64,
    },
    /// The target is in use.
    #[error("the store {path} is not empty: its table `{table}` has {rows} rows")]
    Full {
        /// The target.
        path: PathBuf,
        /// A table of it.
        table: String,
        /// What is in it.
        rows: i64,
    },
    /// The source's log is not what it was.
    #[error("the log of {path} does not hold: record {seq}: {why}")]
    Broken {
        /// Whose.
        path: PathBuf,
        /// The first record that is wrong.
        seq: i64,
        /// In what way.
        why: String,
    },
    /// What came out is not what went in.
    #[error("the copy differs in {what}; nothing was kept of it")]
    Differs {
        /// In what.
        what: String,
    },
}

impl CopyError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Store(error) => error.hint(),
            Self::Older { .. } => "bring it up to date first: `haft store migrate --store FROM`",
            Self::Full { .. } => "name a database or a file that nothing is in yet; nothing was changed",
            Self::Broken { .. } => "`haft store check` says more; a log that was changed is not carried on elsewhere",
            Self::Differs { .. } => "try again; if it happens again, it is a bug of haft's",
        }
    }
}

/// How far it is: the table, how many of its rows have been copied, and how many there are.
pub type Progress<'p> = dyn FnMut(&str, i64, i64) + 'p;

/// Copies all that is in one store to another one, which has to be empty. For threads that may block.
pub fn copy(from: &Path, to: &Path, progress: &mut Progress<'_>) -> Result<Copied, CopyError> {
    let (source, format) = Base::as_it_is(from)?;
    if format > KNOWN {
        return Err(StoreError::Newer { path: source.shown(), found: format, known: KNOWN }.into());
    }
    if format < KNOWN {
        return Err(CopyError::Older { path: source.shown(), found: format, known: KNOWN });
    }
    let target = Base::open(to)?;
    let work = Work { from: source.db(), to: target.db(), source: source.shown(), target: target.shown() };
    let done = work.begin().and_then(|()| work.copy(progress));
    if done.is_err() {
        target.give_up();
    }
    source.give_up();
    done
}

struct Work<'w> {
    from: Db<'w>,
    to: Db<'w>,
    source: PathBuf,
    target: PathBuf,
}

impl Work<'_> {
    /// What went wrong with reading.
    fn read<T>(&self, done: DbResult<T>) -> Result<T, CopyError> {
        done.map_err(|error| StoreError::told(&self.source, &error).into())
    }

    /// What went wrong with writing.
    fn written<T>(&self, done: DbResult<T>) -> Result<T, CopyError> {
        done.map_err(|error| StoreError::told(&self.target, &error).into())
    }

    /// One moment of the source, and the target for oneself.
    fn begin(&self) -> Result<(), CopyError> {
        // Each waits for the other for as long as that takes.
        let patient = "SET idle_in_transaction_session_timeout = 0";
        let moment = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        self.read(match self.from.kind() {
            Kind::Lite => self.from.batch("BEGIN"),
            Kind::Post => self.from.batch(&format!("{patient}; {moment}")),
        })?;
        // The moment is that of the first look.
        self.read(head(&self.from))?;
        self.written(match self.to.kind() {
            Kind::Lite => self.to.batch("BEGIN IMMEDIATE"),
            Kind::Post => {
                self.to.batch(&format!("{patient}; BEGIN; SELECT pg_advisory_xact_lock({})", crate::post::WRITING))
            }
        })
    }

    fn copy(&self, progress: &mut Progress<'_>) -> Result<Copied, CopyError> {
        let made = seeded().map_err(|error| StoreError::told(Path::new(":memory:"), &error))?;
        let (ours, mut theirs) = (self.read(tables(&self.from))?, self.written(tables(&self.to))?);
        theirs.retain(|table| table.name != STAYS);
        for table in &theirs {
            let rows = self.written(table.count(&self.to))?;
            if rows > 0 && !made.contains(&table.name) {
                return Err(CopyError::Full { path: self.target.clone(), table: table.name.clone(), rows });
            }
        }
        // What a new store has from the start comes last: filling the others may change it.
        theirs.sort_by_key(|table| made.contains(&table.name));
        let mut copied = Vec::new();
        for table in &theirs {
            let same = ours.iter().find(|ours| ours.name == table.name);
            let same = same.ok_or_else(|| CopyError::Differs { what: format!("the table `{}`", table.name) })?;
            copied.push((table.name.clone(), self.table(same, table, progress)?));
        }
        self.written(rebuild(&self.to))?;
        let head = self.compare(&ours, &copied)?;
        self.written(self.to.batch("COMMIT"))?;
        Ok(Copied { tables: copied, head })
    }

    /// Copies one table. Returns how many rows it has.
    fn table(&self, ours: &Table, theirs: &Table, progress: &mut Progress<'_>) -> Result<i64, CopyError> {
        let all = self.read(ours.count(&self.from))?;
        self.written(self.to.execute(&format!("DELETE FROM \"{}\"", theirs.name), &[]))?;
        let plan = Plan::new(ours, theirs);
        let (mut rows, mut done, mut failed) = (Vec::new(), 0, None);
        self.read(self.from.each(&plan.select, &[], |row| {
            for column in 0..plan.taken {
                rows.push(row.cell(column)?);
            }
            rows.extend(plan.given.iter().cloned());
            done += 1;
            if rows.len() == plan.width() * TOGETHER {
                failed = self.to.execute(&plan.insert_many, &rows).err();
                rows.clear();
            }
            if done % TELL == 0 {
                progress(&theirs.name, done, all);
            }
            Ok(failed.is_none())
        }))?;
        if let Some(error) = failed {
            return self.written(Err(error));
        }
        for row in rows.chunks(plan.width().max(1)) {
            self.written(self.to.execute(&plan.insert_one, row))?;
        }
        progress(&theirs.name, done, all);
        Ok(done)
    }

    /// Whether everything has arrived.
    fn compare(&self, ours: &[Table], copied: &[(String, i64)]) -> Result<Head, CopyError> {
        for table in ours.iter().filter(|table| table.name != STAYS) {
            let (from, to) = (self.read(table.count(&self.from))?, self.written(table.count(&self.to))?);
            let told = copied.iter().find(|(name, _)| *name == table.name).map(|(_, rows)| *rows);
            if from != to || told != Some(from) {
                let what = format!("the table `{}`: {from} rows, and {to} in the copy", table.name);
                return Err(CopyError::Differs { what });
            }
        }
        let end = self.read(head(&self.from))?;
        match self.written(verify(&self.to, Some(end)))? {
            Ok(verified) if verified.head == end => Ok(end),
            Ok(_) => Err(CopyError::Differs { what: "the end of the log".to_owned() }),
            // Whether the source is to blame or the copy, it must not be carried on.
            Err(broken) => Err(CopyError::Broken { path: self.source.clone(), seq: broken.seq, why: broken.why }),
        }
    }
}

/// How the rows of one table become those of another.
struct Plan {
    select: String,
    insert_one: String,
    insert_many: String,
    /// How many columns are taken from the source.
    taken: usize,
    /// What those get that it does not have.
    given: Vec<Cell<'static>>,
}

impl Plan {
    fn new(ours: &Table, theirs: &Table) -> Self {
        let written = theirs.columns.iter().filter(|column| !column.computed && column.holds != Holds::Other);
        let (taken, missing): (Vec<&Column>, Vec<&Column>) =
            written.partition(|column| ours.column(&column.name).is_some());
        let given: Vec<&Column> = missing.into_iter().filter(|column| column.required).collect();
        let list = |columns: &[&Column]| {
            columns.iter().map(|column| format!("\"{}\"", column.name)).collect::<Vec<_>>().join(", ")
        };
        let names = list(&taken.iter().chain(&given).copied().collect::<Vec<_>>());
        let width = taken.len() + given.len();
        let values = |rows: usize| {
            let row = |row: usize| {
                let marks: Vec<String> = (1..=width).map(|column| format!("?{}", row * width + column)).collect();
                format!("({})", marks.join(", "))
            };
            (0..rows).map(row).collect::<Vec<_>>().join(", ")
        };
        let insert = |rows: usize| format!("INSERT INTO \"{}\" ({names}) VALUES {}", theirs.name, values(rows));
        Self {
            select: format!("SELECT {} FROM \"{}\"", list(&taken), ours.name),
            insert_one: insert(1),
            insert_many: insert(TOGETHER),
            taken: taken.len(),
            given: given.iter().map(|column| nothing(column.holds)).collect(),
        }
    }

    fn width(&self) -> usize {
        self.taken + self.given.len()
    }
}

/// What stands for nothing where something has to be.
fn nothing(holds: Holds) -> Cell<'static> {
    match holds {
        Holds::Int => Cell::Int(0),
        Holds::Real => Cell::Real(0.0),
        Holds::Text => Cell::Text("".into()),
        Holds::Bytes | Holds::Other => Cell::Bytes(Vec::new().into()),
    }
}

/// The tables that a new store has something in.
fn seeded() -> DbResult<HashSet<String>> {
    let mut fresh = rusqlite::Connection::open_in_memory()?;
    migrate::migrate(&mut fresh, Path::new(":memory:")).map_err(|error| DbError::Odd(error.to_string()))?;
    let db = Db::lite(&fresh);
    let mut made = HashSet::new();
    for table in tables(&db)? {
        if table.count(&db)? > 0 {
            made.insert(table.name);
        }
    }
    Ok(made)
}

/// Makes anew what a file finds words by.
fn rebuild(db: &Db<'_>) -> DbResult<()> {
    if db.kind() == Kind::Post {
        return Ok(());
    }
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%fts5%content%'";
    let indexes: Vec<String> = db.all(sql, &[], |row| row.get(0))?;
    indexes.iter().try_for_each(|name| db.batch(&format!("INSERT INTO \"{name}\" (\"{name}\") VALUES ('rebuild')")))
}
