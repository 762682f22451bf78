//! Looking at the log by calls: the latest ones with everything that is recorded about them, what fits a filter, and
//! what other processes have added.

use crate::journal::{head, read_record};
use crate::{ApprovalState, Head, Mode, Record, Store, StoreError, is_alive};
use haft_core::CallId;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashSet;

/// How far back a search goes that no index helps with. The store has one thread; nobody may keep it for long.
const SEARCHED: i64 = 200_000;
/// How many records of one call are looked at.
const PER_CALL: u32 = 64;

/// Everything that is on file about one call.
#[derive(Debug, Clone)]
pub struct Traced {
    /// Which.
    pub call_id: CallId,
    /// What the log says, oldest first.
    pub records: Vec<Record>,
    /// The question about it, if there was one: where it stands, and the line that was shown.
    pub question: Option<(ApprovalState, String)>,
    /// The call that took it back.
    pub undone_by: Option<String>,
    /// Whether it is open in a process that lives.
    pub open: bool,
}

/// Which records are wanted. Nothing said is everything.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Only those after this number, oldest first; otherwise the latest come first.
    pub after: Option<i64>,
    /// Only those before this number.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: u32,
    /// About this call.
    pub call: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// With these words in them.
    pub text: Option<String>,
}

/// What the log has got since somebody looked.
#[derive(Debug, Clone)]
pub struct News {
    /// Where the log ends now.
    pub head: i64,
    /// A mark that changes whenever another process has written.
    pub mark: i64,
    /// The records, if another process has written; else none, whatever this one did.
    pub records: Vec<Record>,
}

impl Store {
    /// The latest calls (of a session, if one is named), latest first.
    pub async fn latest_calls(&self, limit: u32, session: Option<String>) -> Result<Vec<Traced>, StoreError> {
        self.run(Mode::Read, move |connection| {
            let ids = latest_ids(connection, limit, session.as_deref())?;
            ids.into_iter().map(|id| trace(connection, id)).collect()
        })
        .await
    }

    /// One call. None if the log does not know it.
    pub async fn traced(&self, call: CallId) -> Result<Option<Traced>, StoreError> {
        let traced = self.run(Mode::Read, move |connection| trace(connection, call)).await?;
        Ok(Some(traced).filter(|found| !found.records.is_empty()))
    }

    /// The records that fit.
    pub async fn search(&self, wanted: Wanted) -> Result<(Vec<Record>, Head), StoreError> {
        self.run(Mode::Read, move |connection| {
            let end = head(connection)?;
            search(connection, &wanted, end.seq).map(|records| (records, end))
        })
        .await
    }

    /// What other processes have added after `after`: at most `limit` records, with this process's own among them.
    /// Costs next to nothing while none of them writes.
    pub async fn news(&self, after: i64, mark: i64, limit: u32) -> Result<News, StoreError> {
        self.run(Mode::Read, move |connection| {
            // SQLite changes this number for us when somebody else commits, and never for what we commit.
            let now = connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
            let head = head(connection)?.seq;
            if now == mark {
                return Ok(News { head, mark, records: Vec::new() });
            }
            let records: Vec<Record> = connection
                .prepare_cached("SELECT seq, hash, text FROM journal WHERE seq > ?1 ORDER BY seq LIMIT ?2")?
                .query_map(params![after, limit], read_record)?
                .collect::<rusqlite::Result<_>>()?;
            // Whoever has not got all of it comes again with the old mark.
            let all = records.last().is_none_or(|last| last.seq >= head);
            let (head, mark) = if all { (head, now) } else { (records.last().map_or(head, |last| last.seq), mark) };
            Ok(News { head, mark, records })
        })
        .await
    }

    /// How many questions nobody has decided.
    pub async fn pending_count(&self) -> Result<i64, StoreError> {
        self.run(Mode::Read, |connection| {
            let sql = "SELECT count(*) FROM approvals WHERE state = 'pending'";
            connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
        })
        .await
    }
}

fn search(connection: &Connection, wanted: &Wanted, end: i64) -> rusqlite::Result<Vec<Record>> {
    let Wanted { after, before, limit, call, kind, text } = wanted;
    let order = if after.is_some() { "ASC" } else { "DESC" };
    // One call's records are found by the index; anything else is looked for in what is recent.
    let floor = if call.is_some() { 0 } else { (end - SEARCHED).max(0) };
    let sql = format!(
        "SELECT seq, hash, text FROM journal
         WHERE seq > ?1 AND (?3 IS NULL OR call_id = ?3) AND (?4 IS NULL OR text ->> 'kind' = ?4)
         AND (?5 IS NULL OR instr(lower(text), lower(?5)) > 0) AND (?6 IS NULL OR seq < ?6) ORDER BY seq {order} LIMIT ?2"
    );
    connection
        .prepare_cached(&sql)?
        .query_map(params![after.unwrap_or(floor).max(floor), limit, call, kind, text, before], read_record)?
        .collect()
}

/// The calls that were last heard of, by walking back from the end of the log.
fn latest_ids(connection: &Connection, limit: u32, session: Option<&str>) -> rusqlite::Result<Vec<CallId>> {
    let floor = (head(connection)?.seq - SEARCHED).max(0);
    let mut statement = connection.prepare_cached(
        "SELECT call_id FROM journal WHERE seq > ?1 AND call_id IS NOT NULL
         AND text ->> 'kind' IN ('intent', 'refused', 'outcome', 'approval')
         AND (?2 IS NULL OR text ->> 'session' = ?2) ORDER BY seq DESC",
    )?;
    let mut rows = statement.query(params![floor, session])?;
    let (mut seen, mut ids) = (HashSet::new(), Vec::new());
    while let (true, Some(row)) = (ids.len() < usize::try_from(limit).unwrap_or(usize::MAX), rows.next()?) {
        let id: String = row.get(0)?;
        if let Some(call) = CallId::parse(&id).filter(|_| seen.insert(id)) {
            ids.push(call);
        }
    }
    Ok(ids)
}

fn trace(connection: &Connection, call_id: CallId) -> rusqlite::Result<Traced> {
    let id = call_id.as_str();
    let records = connection
        .prepare_cached("SELECT seq, hash, text FROM journal WHERE call_id = ?1 ORDER BY seq LIMIT ?2")?
        .query_map(params![id, PER_CALL], read_record)?
        .collect::<rusqlite::Result<_>>()?;
    let question: Option<(String, String)> = connection
        .prepare_cached("SELECT state, preview FROM approvals WHERE id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let undone_by = connection
        .prepare_cached("SELECT undone_by FROM undo_calls WHERE call_id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?
        .flatten();
    let open: Option<(i64, String)> = connection
        .prepare_cached("SELECT pid, born FROM open_calls WHERE call_id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let question = question.and_then(|(word, preview)| Some((ApprovalState::parse(&word)?, preview)));
    Ok(Traced { call_id, records, question, undone_by, open: open.is_some_and(|(pid, born)| is_alive(pid, &born)) })
}
