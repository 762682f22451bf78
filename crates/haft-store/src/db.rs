//! One way to speak to both databases. Jobs are written once, in the SQL that both understand, with parameters `?1`, `?2`, …
//!
//! What is not the same in both is asked for by [`Db::kind`], and that in a handful of places: how the log's columns are
//! filled, how a transaction begins, and how somebody learns what others have written.

use crate::host::Me;
use crate::pending::Pending;
use crate::presence::{LockState, Presence};
use crate::topic::{Topic, Topics};
use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use std::borrow::Cow;
use std::cell::{self, RefCell};
use std::collections::HashMap;

/// Why the database did not do what a job asked.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// Of the embedded one.
    #[error(transparent)]
    Lite(#[from] rusqlite::Error),
    /// Of the server.
    #[error("{}", Self::words(.0))]
    Post(#[from] postgres::Error),
    /// What it holds is not what anybody here wrote.
    #[error("{0}")]
    Odd(String),
    /// The job panicked. Nothing of it is kept.
    #[error("the job panicked, and nothing of it was written: {0}")]
    Panic(String),
}

/// Whether an error means that the connection is no more: what was not committed is undone, and what was being committed
/// may or may not be.
pub(crate) fn is_loss(error: &postgres::Error) -> bool {
    let code = error.code().map(postgres::error::SqlState::code);
    let broken = || {
        error.is_closed() || std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
    };
    code.map_or_else(broken, |code| code.starts_with("57P") || code.starts_with("08") || code == "25P03")
}

impl DbError {
    /// The server's own words if it said something, and why it could not otherwise.
    pub(crate) fn words(error: &postgres::Error) -> String {
        let cause = || std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
        error.as_db_error().map_or_else(|| format!("{error}{}", cause()), |said| said.message().to_owned())
    }
}

/// What a job gives back.
pub type DbResult<T> = Result<T, DbError>;

/// Which database it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `SQLite`, in this process.
    Lite,
    /// PostgreSQL.
    Post,
}

/// A transaction on one of them.
pub struct Db<'d> {
    side: Side<'d>,
    /// The lock by which others see that this process lives.
    presence: Option<&'d Presence>,
    /// What those who wait are to hear of once it is committed.
    told: cell::Cell<Topics>,
    /// When it began, by a server's clock.
    began_ms: cell::Cell<Option<i64>>,
    /// What it has still to write.
    pending: RefCell<Pending>,
    /// Whether it may be undone and done again more carefully, should something not be as it was thought.
    hurried: cell::Cell<bool>,
    /// Something that was kept could not be written: nothing of it may be committed.
    spoilt: cell::Cell<bool>,
}

enum Side<'d> {
    Lite(&'d rusqlite::Connection),
    Post(&'d RefCell<Server>),
}

/// A connection to a server, with the statements that it knows.
pub(crate) struct Server {
    pub(crate) client: postgres::Client,
    /// Whose connection it is: told from everybody else's by this number.
    writer: i64,
    /// The same, as others know it.
    pub(crate) me: Me,
    /// The connection is no more.
    pub(crate) lost: bool,
    prepared: HashMap<String, postgres::Statement>,
}

impl Server {
    pub(crate) fn new(client: postgres::Client, writer: i64, me: Me) -> Self {
        Self { client, writer, me, lost: false, prepared: HashMap::new() }
    }

    /// Notes whether an error is the end of the connection.
    fn noting<T>(&mut self, done: Result<T, postgres::Error>) -> DbResult<T> {
        done.map_err(|error| {
            self.lost |= is_loss(&error);
            DbError::Post(error)
        })
    }

    /// Several statements without parameters.
    pub(crate) fn batch(&mut self, sql: &str) -> DbResult<()> {
        let done = self.client.batch_execute(sql);
        self.noting(done)
    }

    /// The same; gives what the last of them says first.
    pub(crate) fn ask(&mut self, sql: &str) -> DbResult<Option<String>> {
        use postgres::SimpleQueryMessage::Row;
        let said = self.client.simple_query(sql);
        let said = self.noting(said)?;
        let last = said.iter().rev().find_map(|one| if let Row(row) = one { row.get(0) } else { None });
        Ok(last.map(str::to_owned))
    }

    /// A statement, prepared once for each text. Texts are written here, so there are not many.
    fn prepared(&mut self, sql: &str) -> Result<postgres::Statement, postgres::Error> {
        if let Some(known) = self.prepared.get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client.prepare(&sql.replace('?', "$"))?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl<'d> Db<'d> {
    pub(crate) fn lite(connection: &'d rusqlite::Connection) -> Self {
        Self::new(Side::Lite(connection))
    }

    pub(crate) fn post(server: &'d RefCell<Server>) -> Self {
        Self::new(Side::Post(server))
    }

    fn new(side: Side<'d>) -> Self {
        let (told, began_ms, hurried) = (cell::Cell::default(), cell::Cell::default(), cell::Cell::default());
        let (pending, spoilt) = (RefCell::default(), cell::Cell::default());
        Self { side, presence: None, told, began_ms, pending, hurried, spoilt }
    }

    /// The same, for a process that has this lock.
    pub(crate) fn of(self, presence: &'d Presence) -> Self {
        Self { presence: Some(presence), ..self }
    }

    /// The same, begun then.
    pub(crate) fn begun(self, at_ms: Option<i64>) -> Self {
        self.began_ms.set(at_ms);
        self
    }

    /// From now on, whatever is not as it was thought may undo all of it.
    pub(crate) fn hurry(&self) {
        self.hurried.set(true);
    }

    pub(crate) fn is_hurried(&self) -> bool {
        self.hurried.get()
    }

    /// Keeps something to be written with more of its kind.
    pub(crate) fn keep<T>(&self, put: impl FnOnce(&mut Pending) -> T) -> T {
        put(&mut self.pending.borrow_mut())
    }

    /// Writes what was kept. What follows from it may be kept in its turn.
    pub(crate) fn write_out(&self) -> DbResult<()> {
        if self.spoilt.get() {
            return Err(DbError::Odd("something of it could not be written before".to_owned()));
        }
        while !self.pending.borrow().is_empty() {
            let pending = self.pending.borrow_mut().take();
            crate::job::without_panic(|| pending.write(self)).inspect_err(|_| self.spoilt.set(true))?;
        }
        Ok(())
    }

    /// Forgets what was kept: it is undone.
    pub(crate) fn forget(&self) {
        self.pending.replace(Pending::default());
        self.spoilt.set(false);
    }

    /// Says that something changes: whoever waits for it is woken when this is committed, in this process and, on a
    /// server, in all others.
    pub fn notify(&self, topic: Topic) {
        self.told.set(self.told.get().with(topic));
    }

    pub(crate) fn told(&self) -> Topics {
        self.told.get()
    }

    /// What this store is known by on a server; of a file nothing, because there a process is known by its lock.
    pub(crate) fn process(&self) -> String {
        match self.side {
            Side::Lite(_) => String::new(),
            Side::Post(server) => server.borrow().me.id.clone(),
        }
    }

    /// The name of the lock that this process holds. Empty if it can have none.
    pub(crate) fn lock_name(&self) -> DbResult<String> {
        self.presence.map_or_else(|| Ok(String::new()), Presence::name)
    }

    /// What can be seen of another process's lock.
    pub(crate) fn lock_state(&self, name: &str) -> LockState {
        self.presence.map_or(LockState::Missing, |presence| presence.look(name))
    }

    /// Which it is.
    pub fn kind(&self) -> Kind {
        match self.side {
            Side::Lite(_) => Kind::Lite,
            Side::Post(_) => Kind::Post,
        }
    }

    /// What tells this store's records from those of others on the same server. A file needs none: it tells by itself.
    pub(crate) fn writer(&self) -> i64 {
        match self.side {
            Side::Lite(_) => 0,
            Side::Post(server) => server.borrow().writer,
        }
    }

    /// The time by which everybody goes who uses this database: a server's own clock, whatever those of its users say.
    pub fn now_ms(&self) -> DbResult<i64> {
        match self.side {
            Side::Lite(_) => Ok(crate::now_ms()),
            Side::Post(_) => {
                let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT";
                let now = self.began_ms.get().map_or_else(|| self.one(sql, &[], |row| row.get(0)), Ok)?;
                self.began_ms.set(Some(now));
                Ok(now)
            }
        }
    }

    /// Runs a statement, and says how many rows it touched.
    pub fn execute(&self, sql: &str, cells: &[Cell<'_>]) -> DbResult<usize> {
        self.write_out()?;
        match self.side {
            Side::Lite(connection) => Ok(connection.prepare_cached(sql)?.execute(rusqlite::params_from_iter(cells))?),
            Side::Post(server) => {
                let mut server = server.borrow_mut();
                let statement = server.prepared(sql);
                let statement = server.noting(statement)?;
                let touched = server.client.execute(&statement, &refs(cells));
                let touched = server.noting(touched)?;
                Ok(usize::try_from(touched).unwrap_or(usize::MAX))
            }
        }
    }

    /// Looks at each row until `look` has seen enough and says so by `false`.
    pub fn each(
        &self,
        sql: &str,
        cells: &[Cell<'_>],
        mut look: impl FnMut(&Row<'_>) -> DbResult<bool>,
    ) -> DbResult<()> {
        self.write_out()?;
        match self.side {
            Side::Lite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(rusqlite::params_from_iter(cells))?;
                while let Some(row) = rows.next()? {
                    if !look(&Row(Line::Lite(row)))? {
                        break;
                    }
                }
                Ok(())
            }
            Side::Post(server) => {
                let mut server = server.borrow_mut();
                let statement = server.prepared(sql);
                let statement = server.noting(statement)?;
                let done = walk(&mut server.client, &statement, cells, &mut look);
                server.lost |= matches!(&done, Err(DbError::Post(error)) if is_loss(error));
                done
            }
        }
    }

    /// Every row.
    pub fn all<T>(
        &self,
        sql: &str,
        cells: &[Cell<'_>],
        mut read: impl FnMut(&Row<'_>) -> DbResult<T>,
    ) -> DbResult<Vec<T>> {
        let mut all = Vec::new();
        self.each(sql, cells, |row| {
            all.push(read(row)?);
            Ok(true)
        })?;
        Ok(all)
    }

    /// The first row, if there is one.
    pub fn first<T>(
        &self,
        sql: &str,
        cells: &[Cell<'_>],
        mut read: impl FnMut(&Row<'_>) -> DbResult<T>,
    ) -> DbResult<Option<T>> {
        let mut first = None;
        self.each(sql, cells, |row| {
            first = Some(read(row)?);
            Ok(false)
        })?;
        Ok(first)
    }

    /// The row of a question that always has one.
    pub fn one<T>(&self, sql: &str, cells: &[Cell<'_>], read: impl FnMut(&Row<'_>) -> DbResult<T>) -> DbResult<T> {
        self.first(sql, cells, read)?.ok_or_else(|| DbError::Odd(format!("no answer to: {sql}")))
    }

    /// Several statements without parameters.
    pub fn batch(&self, sql: &str) -> DbResult<()> {
        self.write_out()?;
        match self.side {
            Side::Lite(connection) => Ok(connection.execute_batch(sql)?),
            Side::Post(server) => server.borrow_mut().batch(sql),
        }
    }
}

/// Goes through the rows of an answer as they come.
fn walk(
    client: &mut postgres::Client,
    statement: &postgres::Statement,
    cells: &[Cell<'_>],
    look: &mut dyn FnMut(&Row<'_>) -> DbResult<bool>,
) -> DbResult<()> {
    use postgres::fallible_iterator::FallibleIterator;
    let mut rows = client.query_raw(statement, refs(cells))?;
    while let Some(row) = rows.next()? {
        if !look(&Row(Line::Post(&row)))? {
            break;
        }
    }
    Ok(())
}

fn refs<'c>(cells: &'c [Cell<'_>]) -> Vec<&'c (dyn postgres::types::ToSql + Sync)> {
    cells.iter().map(|cell| cell as &(dyn postgres::types::ToSql + Sync)).collect()
}

/// A parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'c> {
    /// Nothing.
    Null,
    /// A number; truth is 1 and 0.
    Int(i64),
    /// A number with a fraction.
    Real(f64),
    /// Words.
    Text(Cow<'c, str>),
    /// Anything.
    Bytes(Cow<'c, [u8]>),
}

/// The parameters of a statement, by reference.
#[macro_export]
macro_rules! cells {
    ($($value:expr),* $(,)?) => { &[$($crate::Param::cell(&$value)),*] };
}

/// What can be a parameter.
pub trait Param {
    /// As one.
    fn cell(&self) -> Cell<'_>;
}

macro_rules! param {
    ($($kind:ty, |$value:ident| $make:expr);* $(;)?) => {
        $(impl Param for $kind {
            fn cell(&self) -> Cell<'_> {
                let $value = self;
                $make
            }
        })*
    };
}

param! {
    i64, |value| Cell::Int(*value);
    i32, |value| Cell::Int((*value).into());
    u32, |value| Cell::Int((*value).into());
    bool, |value| Cell::Int((*value).into());
    f64, |value| Cell::Real(*value);
    str, |value| Cell::Text(value.into());
    String, |value| Cell::Text(value.as_str().into());
    [u8], |value| Cell::Bytes(value.into());
    [u8; 32], |value| Cell::Bytes(value.as_slice().into());
    Vec<u8>, |value| Cell::Bytes(value.as_slice().into());
}

impl<T: Param + ?Sized> Param for &T {
    fn cell(&self) -> Cell<'_> {
        (**self).cell()
    }
}

impl<T: Param> Param for Option<T> {
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, T::cell)
    }
}

impl rusqlite::ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl postgres::types::ToSql for Cell<'_> {
    fn to_sql(
        &self,
        kind: &postgres::types::Type,
        out: &mut postgres::types::private::BytesMut,
    ) -> Result<postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        use postgres::types::Type;
        match self {
            Self::Null => Ok(postgres::types::IsNull::Yes),
            Self::Int(value) if *kind == Type::INT4 => i32::try_from(*value)?.to_sql(kind, out),
            Self::Int(value) if *kind == Type::BOOL => (*value != 0).to_sql(kind, out),
            Self::Int(value) if *kind == Type::INT8 => value.to_sql(kind, out),
            Self::Real(value) if *kind == Type::FLOAT8 => value.to_sql(kind, out),
            // A server's texts cannot hold what no text should.
            Self::Text(text) if text.contains('\0') => text.replace('\0', "\u{fffd}").to_sql(kind, out),
            Self::Text(text) if *kind == Type::TEXT => text.as_ref().to_sql(kind, out),
            Self::Bytes(bytes) if *kind == Type::BYTEA => bytes.as_ref().to_sql(kind, out),
            other => Err(format!("{other:?} is no {kind}").into()),
        }
    }

    fn accepts(_: &postgres::types::Type) -> bool {
        true
    }

    postgres::types::to_sql_checked!();
}

/// A row of an answer.
pub struct Row<'r>(Line<'r>);

enum Line<'r> {
    Lite(&'r rusqlite::Row<'r>),
    Post(&'r postgres::Row),
}

impl Row<'_> {
    /// What is in a column.
    pub fn get<T: Held>(&self, column: usize) -> DbResult<T> {
        match self.0 {
            Line::Lite(row) => Ok(row.get::<_, T::Lite>(column).map(T::from_lite)?),
            Line::Post(row) => T::from_post(row, column),
        }
    }
}

impl Row<'_> {
    /// Whatever is in a column, to be a parameter elsewhere.
    pub(crate) fn cell(&self, column: usize) -> DbResult<Cell<'static>> {
        use postgres::types::Type;
        let row = match self.0 {
            Line::Lite(row) => {
                return Ok(match row.get_ref(column)? {
                    ValueRef::Null => Cell::Null,
                    ValueRef::Integer(value) => Cell::Int(value),
                    ValueRef::Real(value) => Cell::Real(value),
                    ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned().into()),
                    ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec().into()),
                });
            }
            Line::Post(row) => row,
        };
        let kind = row.columns().get(column).map_or(&Type::UNKNOWN, postgres::Column::type_);
        let cell = if *kind == Type::INT8 {
            row.try_get::<_, Option<i64>>(column)?.map(Cell::Int)
        } else if *kind == Type::INT4 {
            row.try_get::<_, Option<i32>>(column)?.map(|value| Cell::Int(value.into()))
        } else if *kind == Type::BOOL {
            row.try_get::<_, Option<bool>>(column)?.map(|value| Cell::Int(value.into()))
        } else if *kind == Type::FLOAT8 {
            row.try_get::<_, Option<f64>>(column)?.map(Cell::Real)
        } else if *kind == Type::BYTEA {
            row.try_get::<_, Option<Vec<u8>>>(column)?.map(|bytes| Cell::Bytes(bytes.into()))
        } else {
            row.try_get::<_, Option<String>>(column)?.map(|text| Cell::Text(text.into()))
        };
        Ok(cell.unwrap_or(Cell::Null))
    }
}

/// What columns hold.
pub trait Held: Sized {
    /// As the embedded database reads it.
    type Lite: FromSql;

    /// From that.
    fn from_lite(value: Self::Lite) -> Self;

    /// From a server's row.
    fn from_post(row: &postgres::Row, column: usize) -> DbResult<Self>;
}

macro_rules! held {
    ($($kind:ty, $server:ty, |$value:ident| $make:expr);* $(;)?) => {
        $(impl Held for $kind {
            type Lite = $kind;

            fn from_lite(value: $kind) -> Self {
                value
            }

            fn from_post(row: &postgres::Row, column: usize) -> DbResult<Self> {
                let $value: $server = row.try_get(column)?;
                $make
            }
        }

        impl Held for Option<$kind> {
            type Lite = Option<$kind>;

            fn from_lite(value: Option<$kind>) -> Self {
                value
            }

            fn from_post(row: &postgres::Row, column: usize) -> DbResult<Self> {
                let value: Option<$server> = row.try_get(column)?;
                value.map(|$value| $make).transpose()
            }
        })*
    };
}

held! {
    i64, i64, |value| Ok(value);
    u32, i64, |value| u32::try_from(value).map_err(|error| DbError::Odd(error.to_string()));
    f64, f64, |value| Ok(value);
    String, String, |value| Ok(value);
    Vec<u8>, Vec<u8>, |value| Ok(value);
}

impl Held for bool {
    type Lite = Self;

    fn from_lite(value: Self) -> Self {
        value
    }

    /// What is compared is true or false there, what is kept is a number.
    fn from_post(row: &postgres::Row, column: usize) -> DbResult<Self> {
        row.try_get(column).or_else(|_| row.try_get::<_, i64>(column).map(|value| value != 0)).map_err(DbError::from)
    }
}
