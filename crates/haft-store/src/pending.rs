//! What a transaction has still to write.
//!
//! A statement costs a journey to a server and back. What is written for every call (its records, that it is open, that it is
//! over) and for every step that is done is kept here, and written many rows at a time: before anything else is said to the
//! database, and before the commit. So whoever asks finds it, and nobody has to think of it.

use crate::db::{Cell, Db, DbError, DbResult, Kind, Param};
use crate::journal::{Body, Head};
use crate::work;
use haft_core::CallId;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How many rows a statement takes. Few sizes are few texts, and a server prepares each once.
const SIZES: [usize; 4] = [64, 16, 4, 1];

/// What is to be written.
#[derive(Default)]
pub(crate) struct Pending {
    /// The end of the log, once somebody has looked. It stays: whoever writes is alone.
    pub(crate) end: Option<Head>,
    opened: Vec<Opened>,
    records: Vec<Linked>,
    closed: Vec<CallId>,
    done: Vec<work::Done>,
    /// Sessions that made calls: when the last one was, and how many.
    used: BTreeMap<String, (i64, i64)>,
}

/// A call that is open from now on.
pub(crate) struct Opened {
    pub(crate) call: CallId,
    pub(crate) tool: String,
    pub(crate) at_ms: i64,
    pub(crate) pid: i64,
    pub(crate) born: String,
    /// Who has it open, if that is not the process that says so. Such a process holds no lock.
    pub(crate) process: Option<String>,
}

/// A record with its place in the chain.
pub(crate) struct Linked {
    pub(crate) head: Head,
    pub(crate) text: String,
    pub(crate) body: Option<Body>,
    pub(crate) call: Option<String>,
    pub(crate) kind: &'static str,
    pub(crate) session: Option<String>,
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { end: _, opened, records, closed, done, used } = self;
        opened.is_empty() && records.is_empty() && closed.is_empty() && done.is_empty() && used.is_empty()
    }

    pub(crate) fn open(&mut self, call: Opened) {
        self.opened.push(call);
    }

    pub(crate) fn record(&mut self, record: Linked) {
        self.end = Some(record.head);
        self.records.push(record);
    }

    pub(crate) fn close(&mut self, call: CallId) {
        self.closed.push(call);
    }

    pub(crate) fn finish(&mut self, step: work::Done) {
        self.done.push(step);
    }

    pub(crate) fn use_session(&mut self, session: &str, at_ms: i64) {
        let (last, calls) = self.used.entry(session.to_owned()).or_default();
        (*last, *calls) = (at_ms, *calls + 1);
    }

    /// All of it; what is known of the log's end stays.
    pub(crate) fn take(&mut self) -> Self {
        let end = self.end;
        std::mem::replace(self, Self { end, ..Self::default() })
    }

    /// Writes it. Calls are opened before they are closed, and steps end after what they did.
    pub(crate) fn write(&self, db: &Db<'_>) -> DbResult<()> {
        open(db, &self.opened)?;
        record(db, &self.records)?;
        close(db, &self.closed)?;
        use_sessions(db, &self.used)?;
        work::finish_all(db, &self.done)
    }
}

fn open(db: &Db<'_>, opened: &[Opened]) -> DbResult<()> {
    if opened.is_empty() {
        return Ok(());
    }
    let (process, until) = (db.process(), work::lease_needed(db)?);
    let is_own = |call: &Opened| call.process.is_none();
    let lock = if opened.iter().any(is_own) { db.lock_name()? } else { String::new() };
    let rows: Vec<Vec<Cell<'_>>> = opened
        .iter()
        .map(|opened| {
            let Opened { call, tool, at_ms, pid, born, process: of } = opened;
            let until = work::is_a_steps(call).then_some(until);
            vec![
                Cell::Text(call.as_str().into()),
                tool.cell(),
                at_ms.cell(),
                pid.cell(),
                born.cell(),
                Cell::Text(of.as_ref().unwrap_or(&process).as_str().into()),
                Cell::Text(if is_own(opened) { lock.as_str() } else { "" }.into()),
                until.map_or(Cell::Null, Cell::Int),
            ]
        })
        .collect();
    let touched = in_rows(
        db,
        &rows,
        &["TEXT", "TEXT", "BIGINT", "BIGINT", "TEXT", "TEXT", "TEXT", "BIGINT"],
        |values| {
            format!(
            "WITH v (call_id, tool, at_ms, pid, born, process, lock, until_ms) AS (VALUES {values})
             INSERT INTO open_calls (call_id, tool, at_ms, pid, born, process, lock)
             SELECT call_id, tool, at_ms, pid, born, process, lock FROM v
             WHERE until_ms IS NULL OR EXISTS (SELECT 1 FROM steps JOIN runs ON runs.id = steps.run
                 WHERE steps.call_id = v.call_id AND runs.state = 'running' AND (steps.state = 'asking' OR (steps.state = 'running' AND steps.lease_ms > v.until_ms)))"
        )
        },
    )?;
    if touched == opened.len() {
        return Ok(());
    }
    let calls: Vec<&str> = opened.iter().map(|open| open.call.as_str()).collect();
    Err(work::given_away(&calls.join(", ")))
}

fn record(db: &Db<'_>, records: &[Linked]) -> DbResult<()> {
    // A server has no computed columns that can be trusted with any text; `verify` compares them.
    let (columns, count, writer) = match db.kind() {
        Kind::Lite => ("seq, text, hash, body, salt", 5, 0),
        Kind::Post => ("seq, text, hash, body, salt, call_id, kind, session, writer", 9, db.writer()),
    };
    let rows: Vec<Vec<Cell<'_>>> = records
        .iter()
        .map(|Linked { head, text, body, call, kind, session }| {
            let all = [
                head.seq.cell(),
                text.cell(),
                Cell::Bytes(head.hash.as_bytes().as_slice().into()),
                body.as_ref().map_or(Cell::Null, |body| body.text.cell()),
                body.as_ref().map_or(Cell::Null, |body| Cell::Bytes(body.salt.as_slice().into())),
                call.cell(),
                kind.cell(),
                session.cell(),
                Cell::Int(writer),
            ];
            all.into_iter().take(count).collect()
        })
        .collect();
    in_rows(db, &rows, &[], |values| format!("INSERT INTO journal ({columns}) VALUES {values}")).map(drop)
}

fn close(db: &Db<'_>, closed: &[CallId]) -> DbResult<()> {
    let rows: Vec<Vec<Cell<'_>>> = closed.iter().map(|call| vec![Cell::Text(call.as_str().into())]).collect();
    in_rows(db, &rows, &["TEXT"], |values| format!("DELETE FROM open_calls WHERE call_id IN (VALUES {values})"))
        .map(drop)
}

fn use_sessions(db: &Db<'_>, used: &BTreeMap<String, (i64, i64)>) -> DbResult<()> {
    let rows: Vec<Vec<Cell<'_>>> =
        used.iter().map(|(id, (at_ms, calls))| vec![id.cell(), at_ms.cell(), at_ms.cell(), calls.cell()]).collect();
    in_rows(db, &rows, &[], |values| {
        format!(
            "INSERT INTO sessions (id, created_ms, used_ms, calls) VALUES {values} ON CONFLICT (id) DO UPDATE
             SET used_ms = excluded.used_ms, calls = sessions.calls + excluded.calls"
        )
    })
    .map(drop)
}

/// Does a statement with rows of values, as many at a time as it takes. Says how many rows of the table it touched.
///
/// `kinds` are those of the columns, where the statement does not tell the server.
pub(crate) fn in_rows(
    db: &Db<'_>,
    rows: &[Vec<Cell<'_>>],
    kinds: &[&str],
    statement: impl Fn(&str) -> String,
) -> DbResult<usize> {
    let (mut rest, mut touched) = (rows, 0);
    while let Some(size) = SIZES.iter().copied().find(|size| *size <= rest.len()) {
        let (now, later) = rest.split_at(size);
        let columns = now.first().map_or(0, Vec::len);
        let cells: Vec<Cell<'_>> = now.iter().flatten().cloned().collect();
        if columns == 0 || cells.len() != columns * size {
            return Err(DbError::Odd("rows of different lengths".to_owned()));
        }
        touched += db.execute(&statement(&placeholders(size, columns, kinds)), &cells)?;
        rest = later;
    }
    Ok(touched)
}

/// `(?1, ?2), (?3, ?4)`
fn placeholders(rows: usize, columns: usize, kinds: &[&str]) -> String {
    let mut text = String::with_capacity(rows * columns * 8);
    for at in 0..rows * columns {
        let column = at % columns;
        text.push_str(match (at, column) {
            (0, _) => "(",
            (_, 0) => "), (",
            _ => ", ",
        });
        let _ = match kinds.get(column) {
            Some(kind) => write!(text, "CAST(?{} AS {kind})", at + 1),
            None => write!(text, "?{}", at + 1),
        };
    }
    text.push(')');
    text
}

#[cfg(test)]
mod tests {
    use super::placeholders;

    #[test]
    fn every_value_has_a_place() {
        assert_eq!(placeholders(1, 1, &[]), "(?1)");
        assert_eq!(placeholders(2, 2, &[]), "(?1, ?2), (?3, ?4)");
        assert_eq!(placeholders(1, 2, &["TEXT"]), "(CAST(?1 AS TEXT), ?2)");
    }
}
