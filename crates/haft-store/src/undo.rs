//! What it takes to undo a call: written before the call changes anything.

mod links;

pub use links::{StandingCalls, UndoLinks};

use crate::cells;
use crate::db::{Db, DbError, DbResult, Kind, Row};
use crate::journal::read_record;
use crate::redact::field;
use crate::{Mode, Store, StoreError, host_name, now_ms};
use haft_core::change::State;
use haft_core::{CallId, SessionId, path_text};
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A call that changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoCall {
    /// Which.
    pub call_id: CallId,
    /// When.
    pub at_ms: i64,
    /// In which project, in the form of [`path_text::store`].
    pub root: String,
    /// How much its before-images take.
    pub bytes: i64,
    /// Directories that it made, outermost first.
    pub dirs: Vec<PathBuf>,
    /// What could not be captured, and why: then it cannot be undone.
    pub gap: Option<String>,
    /// The call that this one took back, if it was an undo.
    pub undoes: Option<String>,
    /// The call that took it back.
    pub undone_by: Option<String>,
    /// The machine that has its before-images, of a store that many share.
    pub host: Option<String>,
}

/// One step of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoStep {
    /// `write`, `move`, `remove`, `place`, `copy` or `mode`.
    pub action: String,
    /// Where.
    pub path: PathBuf,
    /// Where to, for a move.
    pub target: Option<PathBuf>,
    /// What was there.
    pub before: State,
    /// What is there afterwards.
    pub after: State,
    /// The file that keeps what was there: a name in the call's directory, or elsewhere a path in the form of
    /// [`path_text::store`].
    pub image: Option<String>,
}

/// Which of the calls that changed files are meant. What is not said does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoSelection {
    /// Those of this session.
    pub session: Option<SessionId>,
    /// Those that a model asked for in this turn of its session.
    pub turn: Option<u32>,
    /// Those since this time, in milliseconds of the Unix epoch.
    pub since_ms: Option<i64>,
}

/// A call that changed files, and what the log says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangingCall {
    /// The call.
    pub call: UndoCall,
    /// Its tool. None: the call took another one back.
    pub tool: Option<String>,
    /// Its session.
    pub session: Option<String>,
    /// The turn of the session in which a model asked for it.
    pub turn: Option<u32>,
    /// Its arguments as they are recorded, without bodies and secrets.
    pub args: Value,
    /// What it changed, at the most so many paths as were asked for.
    pub paths: Vec<PathBuf>,
    /// How many paths it changed.
    pub path_count: u32,
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// Directories as a list of texts.
fn write_dirs(dirs: &[PathBuf]) -> String {
    let texts: Vec<String> = dirs.iter().map(|dir| path_text::store(dir)).collect();
    serde_json::to_string(&texts).unwrap_or_default()
}

fn read_dirs(text: &str) -> Vec<PathBuf> {
    let texts: Vec<String> = serde_json::from_str(text).unwrap_or_default();
    texts.iter().map(|text| path_text::load(text)).collect()
}

fn read_call(row: &Row<'_>) -> DbResult<UndoCall> {
    let (id, dirs): (String, String) = (row.get(0)?, row.get(4)?);
    Ok(UndoCall {
        call_id: CallId::parse(&id).ok_or(DbError::Odd("a word that nobody here writes".to_owned()))?,
        at_ms: row.get(1)?,
        root: row.get(2)?,
        bytes: row.get(3)?,
        dirs: read_dirs(&dirs),
        gap: row.get(5)?,
        undoes: row.get(6)?,
        undone_by: row.get(7)?,
        host: row.get(8)?,
    })
}

fn read_step(row: &Row<'_>) -> DbResult<UndoStep> {
    let state = |text: String| {
        serde_json::from_str(&text).map_err(|_| DbError::Odd("a word that nobody here writes".to_owned()))
    };
    let target: Option<Vec<u8>> = row.get(2)?;
    Ok(UndoStep {
        action: row.get(0)?,
        path: path(row.get(1)?),
        target: target.map(path),
        before: state(row.get(3)?)?,
        after: state(row.get(4)?)?,
        image: row.get(5)?,
    })
}

/// A state as it is stored.
pub(crate) fn write_state(state: &State) -> String {
    serde_json::to_string(state).unwrap_or_default()
}

fn insert_step(db: &Db<'_>, call: &CallId, number: usize, step: &UndoStep) -> DbResult<()> {
    db.execute(
        "INSERT INTO undo_steps (call_id, step, action, path, target, before, after, image)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        cells![
            call.as_str(),
            i64::try_from(number).unwrap_or(i64::MAX),
            step.action,
            step.path.as_os_str().as_bytes(),
            step.target.as_ref().map(|path| path.as_os_str().as_bytes()),
            write_state(&step.before),
            write_state(&step.after),
            step.image,
        ],
    )
    .map(drop)
}

/// How often an undo of an undo is followed.
const REDONE_MAX: usize = 1000;

fn select(db: &Db<'_>, root: &str, selection: &UndoSelection, limit: u32) -> DbResult<Vec<UndoCall>> {
    let UndoSelection { session, turn, since_ms } = selection;
    let sql = format!(
        "SELECT {COLUMNS} FROM undo_calls
         WHERE root = ?1 AND (CAST(?2 AS BIGINT) IS NULL OR at_ms >= ?2)
         AND ((CAST(?3 AS TEXT) IS NULL AND CAST(?4 AS BIGINT) IS NULL) OR EXISTS (
             SELECT 1 FROM journal WHERE journal.call_id = undo_calls.call_id AND kind = 'intent'
             AND (CAST(?3 AS TEXT) IS NULL OR session = ?3)
             AND (CAST(?4 AS BIGINT) IS NULL OR CAST({} AS BIGINT) = ?4)))
         ORDER BY at_ms DESC, call_id DESC LIMIT ?5",
        field(db, "turn")
    );
    let session = session.as_ref().map(|session| session.as_str().to_owned());
    db.all(&sql, cells![root, since_ms, session, turn.map(i64::from), limit], read_call)
}

fn describe(db: &Db<'_>, call: UndoCall, limit: u32) -> DbResult<ChangingCall> {
    let id = call.call_id.as_str();
    let sql = "SELECT seq, hash, text, body FROM journal WHERE call_id = ?1 AND kind = 'intent' ORDER BY seq LIMIT 1";
    let said = db.first(sql, cells![id], read_record)?.map(|record| record.body).unwrap_or_default();
    let sql = "SELECT path FROM undo_steps WHERE call_id = ?1 ORDER BY step LIMIT ?2";
    let paths = db.all(sql, cells![id, limit], |row| Ok(path(row.get(0)?)))?;
    let count: i64 = db.one("SELECT count(*) FROM undo_steps WHERE call_id = ?1", cells![id], |row| row.get(0))?;
    let text = |name: &str| said[name].as_str().map(str::to_owned);
    Ok(ChangingCall {
        tool: text("tool"),
        session: text("session"),
        turn: said["turn"].as_u64().and_then(|turn| u32::try_from(turn).ok()),
        args: said["args"].clone(),
        paths,
        path_count: u32::try_from(count).unwrap_or(u32::MAX),
        call,
    })
}

const COLUMNS: &str = "call_id, at_ms, root, bytes, dirs, gap, undoes, undone_by, host";

impl Store {
    /// Keeps what it takes to undo a call, durably, before the call acts. For threads that may block.
    pub fn keep_undo_blocking(&self, call: UndoCall, steps: Vec<UndoStep>) -> Result<(), StoreError> {
        self.run_blocking(Mode::Durable, move |db| {
            let known = "SELECT EXISTS (SELECT 1 FROM undo_calls WHERE call_id = ?1)";
            if db.one(known, cells![call.call_id.as_str()], |row| row.get::<bool>(0))? {
                let why = "has changed files before: its id was used twice, and nothing was changed this time";
                return Err(DbError::Odd(format!("call {} {why}", call.call_id)));
            }
            let host = (db.kind() == Kind::Post).then(host_name);
            db.execute("INSERT INTO undo_calls (call_id, at_ms, root, bytes, dirs, gap, undoes, host) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)", cells![
                    call.call_id.as_str(),
                    now_ms(),
                    call.root,
                    call.bytes,
                    write_dirs(&call.dirs),
                    call.gap,
                    call.undoes,
                    host,
                ])?;
            steps.iter().enumerate().try_for_each(|(number, step)| insert_step(db, &call.call_id, number, step))
        })
    }

    /// A call and its steps, in the order in which they were done.
    pub async fn undo_of(&self, call: &CallId) -> Result<Option<(UndoCall, Vec<UndoStep>)>, StoreError> {
        let call = call.clone();
        self.run(Mode::Read, move |db| {
            let sql = format!("SELECT {COLUMNS} FROM undo_calls WHERE call_id = ?1");
            let Some(found) = db.first(&sql, cells![call.as_str()], read_call)? else { return Ok(None) };
            let steps: DbResult<Vec<UndoStep>> = db.all(
                "SELECT action, path, target, before, after, image FROM undo_steps WHERE call_id = ?1 ORDER BY step",
                cells![call.as_str()],
                read_step,
            );
            Ok(Some((found, steps?)))
        })
        .await
    }

    /// The selected calls that changed files in a project, latest first.
    pub async fn undoable(
        &self,
        root: &Path,
        selection: UndoSelection,
        limit: u32,
    ) -> Result<Vec<UndoCall>, StoreError> {
        let root = path_text::store(root);
        self.run(Mode::Read, move |db| select(db, &root, &selection, limit)).await
    }

    /// The same with what the log says of each, and at the most `paths` of what it changed.
    pub async fn changing_calls(
        &self,
        root: &Path,
        selection: UndoSelection,
        (limit, paths): (u32, u32),
    ) -> Result<Vec<ChangingCall>, StoreError> {
        let root = path_text::store(root);
        self.run(Mode::Read, move |db| {
            select(db, &root, &selection, limit)?.into_iter().map(|call| describe(db, call, paths)).collect()
        })
        .await
    }

    /// The undos of a project, in the form in which a call names it.
    pub async fn undo_links(&self, root: &str) -> Result<UndoLinks, StoreError> {
        let root = root.to_owned();
        self.run(Mode::Read, move |db| UndoLinks::read(db, &root)).await
    }

    /// Notes that a call was taken back by another.
    pub async fn mark_undone(&self, call: &CallId, by: &CallId) -> Result<(), StoreError> {
        let (call, by) = (call.clone(), by.clone());
        self.run(Mode::Durable, move |db| {
            let sql = "UPDATE undo_calls SET undone_by = ?2 WHERE call_id = ?1";
            db.execute(sql, cells![call.as_str(), by.as_str()]).map(drop)
        })
        .await
    }

    /// Notes that a call's before-images now take only so much. For threads that may block.
    pub fn shrink_undo_blocking(&self, call: &CallId, bytes: i64) -> Result<(), StoreError> {
        let call = call.clone();
        self.run_blocking(Mode::Write, move |db| {
            let sql = "UPDATE undo_calls SET bytes = ?2 WHERE call_id = ?1";
            db.execute(sql, cells![call.as_str(), bytes]).map(drop)
        })
    }

    /// Drops what was kept for a call that changed nothing after all. For threads that may block.
    pub fn drop_undo_blocking(&self, call: &CallId) -> Result<(), StoreError> {
        let call = call.clone();
        self.run_blocking(Mode::Write, move |db| {
            db.execute("DELETE FROM undo_steps WHERE call_id = ?1", cells![call.as_str()])?;
            db.execute("DELETE FROM undo_calls WHERE call_id = ?1", cells![call.as_str()]).map(drop)
        })
    }

    /// Forgets the oldest undo data until all of it is younger than `since_ms` and together not larger
    /// than `max_bytes`. Returns the calls that can no longer be undone. For threads that may block.
    pub fn forget_undo_blocking(&self, since_ms: i64, max_bytes: i64) -> Result<Vec<CallId>, StoreError> {
        self.run_blocking(Mode::Write, move |db| {
            // Of a store that many share, each machine forgets what it keeps itself.
            let mine = (db.kind() == Kind::Post).then(host_name);
            let sql = "SELECT call_id, at_ms, bytes FROM undo_calls WHERE CAST(?1 AS TEXT) IS NULL OR host = ?1
                       ORDER BY at_ms DESC, call_id DESC";
            let all: Vec<(String, i64, i64)> =
                db.all(sql, cells![mine], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            let mut total = 0_i64;
            let mut gone = Vec::new();
            for (id, at_ms, bytes) in all {
                total = total.saturating_add(bytes);
                if at_ms < since_ms || (total > max_bytes && bytes > 0) {
                    db.execute("DELETE FROM undo_steps WHERE call_id = ?1", cells![&id])?;
                    db.execute("DELETE FROM undo_calls WHERE call_id = ?1", cells![&id])?;
                    gone.extend(CallId::parse(&id));
                }
            }
            Ok(gone)
        })
    }
}
