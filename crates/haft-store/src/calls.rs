//! Looking at the log by calls: the latest ones with everything that is recorded about them, what fits a filter, and
//! what other processes have added.

use crate::cells;
use crate::db::{Db, DbResult, Kind};
use crate::host::CallOwner;
use crate::journal::{head, read_record};
use crate::{ApprovalState, Head, Mode, Record, Store, StoreError};
use haft_core::CallId;
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
    /// The records, if another process has written; else none, whatever this one did. A file's own are among them.
    pub records: Vec<Record>,
}

impl Store {
    /// The latest calls (of a session, if one is named), latest first.
    pub async fn latest_calls(&self, limit: u32, session: Option<String>) -> Result<Vec<Traced>, StoreError> {
        self.insist(Mode::Read, move |db| {
            let ids = latest_ids(db, limit, session.as_deref())?;
            ids.into_iter().map(|id| trace(db, id)).collect()
        })
        .await
    }

    /// One call. None if the log does not know it.
    pub async fn traced(&self, call: CallId) -> Result<Option<Traced>, StoreError> {
        let traced = self.insist(Mode::Read, move |db| trace(db, call.clone())).await?;
        Ok(Some(traced).filter(|found| !found.records.is_empty()))
    }

    /// The records that fit.
    pub async fn search(&self, wanted: Wanted) -> Result<(Vec<Record>, Head), StoreError> {
        self.insist(Mode::Read, move |db| {
            let end = head(db)?;
            search(db, &wanted, end.seq).map(|records| (records, end))
        })
        .await
    }

    /// What other processes have added after `after`: at most `limit` records. A file does not know whose they are, so
    /// this process's own are among them; a server does.
    /// Costs next to nothing while none of them writes.
    pub async fn news(&self, after: i64, mark: i64, limit: u32) -> Result<News, StoreError> {
        self.insist(Mode::Read, move |db| {
            let head = head(db)?.seq;
            let now = match db.kind() {
                // SQLite changes this number for us when somebody else commits, and never for what we commit.
                Kind::Lite => db.one("PRAGMA data_version", &[], |row| row.get(0))?,
                Kind::Post => {
                    let sql = "SELECT coalesce(max(seq), 0) FROM journal WHERE seq > ?1 AND writer <> ?2";
                    db.one(sql, cells![after, db.writer()], |row| row.get::<i64>(0))?.max(mark)
                }
            };
            if now == mark {
                return Ok(News { head, mark, records: Vec::new() });
            }
            let records: Vec<Record> = match db.kind() {
                Kind::Lite => {
                    let sql = "SELECT seq, hash, text, body FROM journal WHERE seq > ?1 ORDER BY seq LIMIT ?2";
                    db.all(sql, cells![after, limit], read_record)?
                }
                Kind::Post => {
                    let sql =
                        "SELECT seq, hash, text, body FROM journal WHERE seq > ?1 AND writer <> ?3 ORDER BY seq LIMIT ?2";
                    db.all(sql, cells![after, limit, db.writer()], read_record)?
                }
            };
            // Whoever has not got all of it comes again with the old mark.
            let all = records.len() < usize::try_from(limit).unwrap_or(usize::MAX)
                || records.last().is_none_or(|last| last.seq >= head);
            let (head, mark) = if all { (head, now) } else { (records.last().map_or(head, |last| last.seq), mark) };
            Ok(News { head, mark, records })
        })
        .await
    }

    /// How many questions nobody has decided.
    pub async fn pending_count(&self) -> Result<i64, StoreError> {
        self.insist(Mode::Read, |db| {
            let sql = "SELECT count(*) FROM approvals WHERE state = 'pending'";
            db.one(sql, &[], |row| row.get(0))
        })
        .await
    }
}

fn search(db: &Db<'_>, wanted: &Wanted, end: i64) -> DbResult<Vec<Record>> {
    let Wanted { after, before, limit, call, kind, text } = wanted;
    let order = if after.is_some() { "ASC" } else { "DESC" };
    // One call's records are found by the index; anything else is looked for in what is recent.
    let floor = if call.is_some() { 0 } else { (end - SEARCHED).max(0) };
    let sql = format!(
        "SELECT seq, hash, text, body FROM journal
         WHERE seq > ?1 AND (CAST(?3 AS TEXT) IS NULL OR call_id = ?3) AND (CAST(?4 AS TEXT) IS NULL OR kind = ?4)
         AND (CAST(?5 AS TEXT) IS NULL OR lower(text) LIKE ?5 ESCAPE '~' OR lower(body) LIKE ?5 ESCAPE '~') AND (CAST(?6 AS BIGINT) IS NULL OR seq < ?6) ORDER BY seq {order} LIMIT ?2"
    );
    let like = text.as_ref().map(|text| format!("%{}%", literally(&text.to_lowercase())));
    db.all(&sql, cells![after.unwrap_or(floor).max(floor), limit, call, kind, like, before], read_record)
}

/// A text as a pattern that only it fits.
fn literally(text: &str) -> String {
    text.chars().flat_map(|c| ['~'].into_iter().filter(move |_| matches!(c, '~' | '%' | '_')).chain([c])).collect()
}

/// The calls that were last heard of, by walking back from the end of the log.
fn latest_ids(db: &Db<'_>, limit: u32, session: Option<&str>) -> DbResult<Vec<CallId>> {
    let floor = (head(db)?.seq - SEARCHED).max(0);
    let sql = "SELECT call_id FROM journal WHERE seq > ?1 AND call_id IS NOT NULL
               AND kind IN ('intent', 'refused', 'outcome', 'approval')
               AND (CAST(?2 AS TEXT) IS NULL OR session = ?2) ORDER BY seq DESC";
    let (mut seen, mut ids) = (HashSet::new(), Vec::new());
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    db.each(sql, cells![floor, session], |row| {
        let id: String = row.get(0)?;
        if ids.len() < most {
            ids.extend(CallId::parse(&id).filter(|_| seen.insert(id)));
        }
        Ok(ids.len() < most)
    })?;
    Ok(ids)
}

fn trace(db: &Db<'_>, call_id: CallId) -> DbResult<Traced> {
    let id = call_id.as_str();
    let records = db.all(
        "SELECT seq, hash, text, body FROM journal WHERE call_id = ?1 ORDER BY seq LIMIT ?2",
        cells![id, PER_CALL],
        read_record,
    )?;
    let question: Option<(String, String)> =
        db.first("SELECT state, preview FROM approvals WHERE id = ?1", cells![id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let undone_by =
        db.first("SELECT undone_by FROM undo_calls WHERE call_id = ?1", cells![id], |row| row.get(0))?.flatten();
    let sql = format!("SELECT {} FROM open_calls WHERE call_id = ?1", CallOwner::COLUMNS);
    let owner = db.first(&sql, cells![id], |row| CallOwner::read(row, 0))?;
    let open = owner.map(|owner| owner.lives(db)).transpose()?;
    let question = question.and_then(|(word, preview)| Some((ApprovalState::parse(&word)?, preview)));
    Ok(Traced { call_id, records, question, undone_by, open: open.unwrap_or(false) })
}
