//! The store's format, step by step. A step, once released, never changes.

use crate::db::{Db, DbError, DbResult};
use crate::{StoreError, cells, host, idempotency, memory, notes, observed, talks, tasks, work};
use rusqlite::Connection;
use std::path::Path;

/// A step of the format: what a file is told, and what a server is told where that is more than a matter of words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) file: &'static str,
    pub(crate) server: Option<&'static str>,
}

impl Step {
    /// One that both take, in the words of a file.
    pub(crate) const fn alike(file: &'static str) -> Self {
        Self { file, server: None }
    }
}

const STEPS: &[Step] = &[
    // 1: everything that the first version remembers. `journal.text` is what is hashed; `call_id` is
    // computed from it, so that it cannot say anything else.
    Step::alike("CREATE TABLE journal (
        seq INTEGER PRIMARY KEY,
        text TEXT NOT NULL,
        hash BLOB NOT NULL,
        call_id TEXT GENERATED ALWAYS AS (text ->> 'call') VIRTUAL
    ) STRICT;
    CREATE INDEX journal_by_call ON journal (call_id);
    CREATE TABLE open_calls (
        call_id TEXT PRIMARY KEY, tool TEXT NOT NULL, at_ms INTEGER NOT NULL, pid INTEGER NOT NULL, born TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL, calls INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE sightings (
        session TEXT NOT NULL, path BLOB NOT NULL, digest BLOB, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
        whole INTEGER NOT NULL, PRIMARY KEY (session, path)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE approvals (
        id TEXT PRIMARY KEY, state TEXT NOT NULL, call TEXT, tool TEXT NOT NULL, preview TEXT NOT NULL,
        reason TEXT NOT NULL, root TEXT NOT NULL, basis TEXT NOT NULL, asked_ms INTEGER NOT NULL, decided_ms INTEGER, decided_by TEXT,
        outcome TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE grants (
        id TEXT PRIMARY KEY, root TEXT NOT NULL, tool TEXT NOT NULL, pattern TEXT NOT NULL, session TEXT,
        uses_left INTEGER, expires_ms INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE trust (root TEXT PRIMARY KEY, digest BLOB NOT NULL, at_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE undo_calls (
        call_id TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, root TEXT NOT NULL, bytes INTEGER NOT NULL,
        dirs TEXT NOT NULL, gap TEXT, undoes TEXT, undone_by TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE undo_steps (
        call_id TEXT NOT NULL, step INTEGER NOT NULL, action TEXT NOT NULL, path BLOB NOT NULL, target BLOB,
        before TEXT NOT NULL, after TEXT NOT NULL, image TEXT, PRIMARY KEY (call_id, step)
    ) STRICT, WITHOUT ROWID;"),
    // 2: who asks and what they have heard, for whoever decides; and what bridged tools said they are.
    Step::alike("ALTER TABLE approvals ADD COLUMN session TEXT;
    ALTER TABLE approvals ADD COLUMN origin TEXT;
    ALTER TABLE approvals ADD COLUMN caller TEXT;
    ALTER TABLE approvals ADD COLUMN sources TEXT;
    CREATE TABLE pins (
        server TEXT NOT NULL, tool TEXT NOT NULL, digest BLOB NOT NULL, declaration TEXT NOT NULL, at_ms INTEGER NOT NULL,
        PRIMARY KEY (server, tool)
    ) STRICT, WITHOUT ROWID;"),
    // 3: how much was asked of the web, by the minute; and what conversations have heard, so that the next process
    // knows it, too.
    Step::alike("CREATE TABLE requests (
        session TEXT NOT NULL, minute INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (session, minute)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE heard (
        session TEXT NOT NULL, label TEXT NOT NULL, tool TEXT NOT NULL, at_ms INTEGER NOT NULL,
        PRIMARY KEY (session, label, tool)
    ) STRICT, WITHOUT ROWID;"),
    // 4: what agents proposed to keep: tools, skills, reflections; and which of it a person approved.
    Step::alike("CREATE TABLE proposals (
        call_id TEXT PRIMARY KEY, root TEXT NOT NULL, what TEXT NOT NULL, name TEXT NOT NULL, digest BLOB NOT NULL,
        session TEXT NOT NULL, creator TEXT NOT NULL, at_ms INTEGER NOT NULL, approved_by TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX proposals_by_session ON proposals (session);
    CREATE INDEX proposals_by_name ON proposals (root, what, name);"),
    // 5: whether something was accepted since is asked every second, and must not read what was accepted.
    // No clock is asked: it may be set back.
    Step::alike("CREATE TABLE pin_changes (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL) STRICT;
    INSERT INTO pin_changes (one, count) VALUES (1, 0);
    CREATE TRIGGER pin_made AFTER INSERT ON pins BEGIN UPDATE pin_changes SET count = count + 1; END;
    CREATE TRIGGER pin_altered AFTER UPDATE ON pins BEGIN UPDATE pin_changes SET count = count + 1; END;
    CREATE TRIGGER pin_gone AFTER DELETE ON pins BEGIN UPDATE pin_changes SET count = count + 1; END;"),
    // 6: what accepted tools' files said, apart from what is read before each call; and which files a proposal had, and who
    // did not want it.
    Step::alike("CREATE TABLE pin_texts (
        server TEXT NOT NULL, tool TEXT NOT NULL, texts TEXT NOT NULL, PRIMARY KEY (server, tool)
    ) STRICT, WITHOUT ROWID;
    ALTER TABLE proposals ADD COLUMN files TEXT;
    ALTER TABLE proposals ADD COLUMN rejected_by TEXT;"),
    // 7: what the log is searched by has columns of its own.
    Step::alike("ALTER TABLE journal ADD COLUMN kind TEXT GENERATED ALWAYS AS (text ->> 'kind') VIRTUAL;
    ALTER TABLE journal ADD COLUMN session TEXT GENERATED ALWAYS AS (text ->> 'session') VIRTUAL;"),
    // 8: what agents know.
    memory::TABLES,
    // 9: what was promised.
    tasks::TABLES,
    // 10: pipelines under way, and who works on them.
    work::TABLES,
    // 11: who lives where, so that a process on another machine can be missed.
    host::TABLES,
    // 12: what is in a run is found by the run that nothing is around.
    Step::alike("CREATE INDEX runs_by_outermost ON runs (outermost);"),
    // 13: conversations with models.
    talks::TABLES,
    // 14: children that can be spoken to again, and what they had to say.
    talks::FAMILY,
    // 15: calls of agents' own tools, until the agents say what came of them.
    observed::TABLES,
    // 16: whether a grant was given for calls that haft guards. Nobody was told that one might cover others.
    Step::alike("ALTER TABLE grants ADD COLUMN scope TEXT NOT NULL DEFAULT 'guarded';"),
    // 17: what a record says stands beside the chain, so that it can be removed and the chain still holds. Earlier records have
    // it in their text and stay as they are.
    Step::alike(
        "ALTER TABLE journal ADD COLUMN body TEXT;
    ALTER TABLE journal ADD COLUMN salt BLOB;",
    ),
    // 18: calls that their callers named, and what came of them.
    idempotency::TABLES,
    // 19: what a conversation has not been told, and by what it goes.
    notes::STEP,
    // 20: the lock by which the process of an open call is known to live.
    Step::alike("ALTER TABLE open_calls ADD COLUMN lock TEXT NOT NULL DEFAULT '';"),
    // 21: the files that an approved command runs, their digests, and what came of trying it.
    Step::alike(
        "ALTER TABLE approvals ADD COLUMN executed TEXT;
    ALTER TABLE approvals ADD COLUMN trial TEXT;
    ALTER TABLE grants ADD COLUMN executed TEXT;",
    ),
];

/// The newest format known here: the number of steps.
pub(crate) const KNOWN: i64 = 21;

/// Brings the store to the newest format, one committed step at a time.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let fail = |error: rusqlite::Error| StoreError::from_sqlite(path, &error);
    let version = |connection: &Connection| connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
    let found = version(connection).map_err(fail)?;
    if found == KNOWN {
        return Ok(());
    }
    if found > KNOWN {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: KNOWN });
    }
    connection.pragma_update(None, "journal_mode", "WAL").map_err(fail)?;
    for (step, Step { file, .. }) in STEPS.iter().enumerate() {
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(fail)?;
        // Another process may have taken this step while we waited for the lock.
        if version(&transaction).map_err(fail)? <= i64::try_from(step).unwrap_or(i64::MAX) {
            transaction.execute_batch(file).map_err(fail)?;
            transaction
                .pragma_update(None, "user_version", i64::try_from(step + 1).unwrap_or(i64::MAX))
                .map_err(fail)?;
        }
        transaction.commit().map_err(fail)?;
    }
    Ok(())
}

/// A step as a server takes it. Columns that are computed here are filled in there.
fn for_server(step: Step) -> String {
    if let Some(sql) = step.server {
        return sql.to_owned();
    }
    let mut sql = step.file.to_owned();
    for name in ["call", "kind", "session"] {
        sql = sql.replace(&format!(" GENERATED ALWAYS AS (text ->> '{name}') VIRTUAL"), "");
    }
    // What happens along with something else is a function there.
    let counts = " BEGIN UPDATE pin_changes SET count = count + 1; END;";
    if sql.contains(counts) {
        let function = "CREATE FUNCTION haft_pins_changed() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN UPDATE pin_changes SET count = count + 1; RETURN NULL; END $$;";
        sql = format!("{function}{}", sql.replace(counts, " EXECUTE FUNCTION haft_pins_changed();"));
    }
    // Who wrote a record is known there by a number; of a file it can be asked.
    sql = sql.replace("call_id TEXT\n    ) STRICT", "call_id TEXT,\n        writer BIGINT NOT NULL\n    ) STRICT");
    let words = [("STRICT, WITHOUT ROWID", ""), ("STRICT", ""), ("INTEGER", "BIGINT"), ("BLOB", "BYTEA")];
    words.iter().fold(sql, |sql, (ours, theirs)| sql.replace(ours, theirs))
}

/// The format that a database has; 0 where there is none.
pub(crate) fn format(db: &Db<'_>) -> DbResult<i64> {
    if db.kind() == crate::Kind::Lite {
        return db.one("PRAGMA user_version", &[], |row| row.get(0));
    }
    let there = db.one("SELECT to_regclass('haft_format') IS NOT NULL", &[], |row| row.get::<bool>(0))?;
    if !there {
        return Ok(0);
    }
    db.one("SELECT coalesce(max(version), 0) FROM haft_format", &[], |row| row.get(0))
}

/// The lock of whoever changes a server's format.
const FORMAT: i64 = 0x6861_6675;

/// The same for a server: all that is missing, in one transaction, by whoever comes first.
pub(crate) fn server(db: &Db<'_>, place: &Path) -> Result<(), StoreError> {
    let fail = |error: DbError| StoreError::told(place, &error);
    // Most find nothing to do, and need not wait for one another to find that out.
    if format(db).map_err(fail)? == KNOWN {
        return Ok(());
    }
    let steps = || -> DbResult<Option<i64>> {
        db.batch("BEGIN")?;
        db.one("SELECT pg_advisory_xact_lock(?1)", cells![FORMAT], |_| Ok(()))?;
        db.batch("CREATE TABLE IF NOT EXISTS haft_format (version BIGINT NOT NULL)")?;
        let found: i64 = db.one("SELECT coalesce(max(version), 0) FROM haft_format", &[], |row| row.get(0))?;
        if found > KNOWN {
            return Ok(Some(found));
        }
        for step in STEPS.iter().skip(usize::try_from(found).unwrap_or_default()) {
            db.batch(&for_server(*step))?;
        }
        if found < KNOWN {
            db.batch("DELETE FROM haft_format")?;
            db.execute("INSERT INTO haft_format (version) VALUES (?1)", cells![KNOWN])?;
        }
        db.batch("COMMIT").map(|()| None)
    };
    let done = steps().map_err(fail);
    if !matches!(done, Ok(None)) {
        let _ = db.batch("ROLLBACK");
    }
    match done? {
        Some(found) => Err(StoreError::Newer { path: place.to_owned(), found, known: KNOWN }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::CallId;
    use haft_core::record::{Digest, link};

    /// A store as the version before the bodies wrote it, with a record for each text.
    fn store_of_format_15(path: &Path, texts: &[&str]) {
        let connection = Connection::open(path).unwrap();
        for step in &STEPS[..15] {
            connection.execute_batch(step.file).unwrap();
        }
        connection.pragma_update(None, "user_version", 15).unwrap();
        let mut last = Digest::ZERO;
        for (number, text) in (1_i64..).zip(texts) {
            last = link(&last, number, text);
            let sql = "INSERT INTO journal (seq, text, hash) VALUES (?1, ?2, ?3)";
            connection.execute(sql, (number, text, last.as_bytes())).unwrap();
        }
    }

    #[test]
    fn chain_of_an_earlier_format_holds_before_and_after_a_redaction() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("haft.db");
        let call = CallId::new(1, 0);
        let first =
            format!(r#"{{"at":5,"kind":"intent","call":"{call}","tool":"shell.exec","args":{{"command":"hunter2"}}}}"#);
        let second = format!(r#"{{"at":6,"kind":"outcome","call":"{call}","success":true}}"#);
        let third = r#"{"at":7,"kind":"refused","args":{"body":"hunter2"}}"#;
        store_of_format_15(&path, &[&first, &second, third]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = crate::Store::open(&path).unwrap();
        let verify = || runtime.block_on(store.verify(None)).unwrap();
        let before = verify().unwrap().head;
        assert_eq!(before.seq, 3);
        let record = |seq: i64| runtime.block_on(store.records(seq - 1, 1, None)).unwrap().remove(0).body;
        assert_eq!(record(1)["args"]["command"], "hunter2");
        let redact = |scope| runtime.block_on(store.redact(scope, "ada", None)).unwrap().records;
        assert_eq!(redact(crate::RedactionScope::Call(call)), 1, "what says nothing else has nothing to lose");
        assert_eq!(redact(crate::RedactionScope::Before(i64::MAX)), 1);
        assert_eq!((&record(1)["redacted"], &record(1)["tool"]), (&true.into(), &"shell.exec".into()));
        let verified = runtime.block_on(store.verify(Some(before))).unwrap().unwrap();
        assert_eq!((verified.head.seq, verified.redactions.len()), (5, 2));
        let raw = Connection::open(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        drop(raw.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)"));
        let text = |seq: i64| {
            raw.query_row("SELECT text FROM journal WHERE seq = ?1", [seq], |row| row.get::<_, String>(0)).unwrap()
        };
        assert!(!text(1).contains("hunter2") && !text(3).contains("hunter2") && !bytes.is_empty());
        // Another text is not what the seal is over, nor is what was there before altered.
        for altered in [text(1).replace("shell.exec", "file.read"), first.replace("hunter2", "hunter3")] {
            let kept = text(1);
            raw.execute("UPDATE journal SET text = ?1 WHERE seq = 1", [&altered]).unwrap();
            assert_eq!(verify().unwrap_err().seq, 1, "{altered}");
            raw.execute("UPDATE journal SET text = ?1 WHERE seq = 1", [&kept]).unwrap();
        }
        raw.execute("UPDATE journal SET text = ?1 WHERE seq = 1", [&first]).unwrap();
        assert!(verify().is_ok());
    }

    #[test]
    fn calls_of_a_format_before_the_locks_are_judged_by_what_can_be_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("haft.db");
        let connection = Connection::open(&path).unwrap();
        for step in &STEPS[..17] {
            connection.execute_batch(step.file).unwrap();
        }
        connection.pragma_update(None, "user_version", 17).unwrap();
        let ((pid, born), now, day) = (crate::myself(), crate::now_ms(), 86_400_000);
        let hidden = format!("1{born}");
        // Who is seen, who was there before the machine was started, and who is not seen: in another PID namespace, or dead.
        let rows = [
            (1, pid, born.as_str(), 0),
            (2, pid, "1@another-boot", now),
            (3, 99_999_999, born.as_str(), now),
            (4, pid, hidden.as_str(), now - day - 1),
        ];
        for (number, pid, born, at_ms) in rows {
            let sql = "INSERT INTO open_calls (call_id, tool, at_ms, pid, born) VALUES (?1, 'file.write', ?2, ?3, ?4)";
            connection.execute(sql, (CallId::new(number, 0).as_str(), at_ms, pid, born)).unwrap();
        }
        drop(connection);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let store = crate::Store::open(&path).unwrap();
        assert!(store.found_open_calls());
        let mut taken: Vec<CallId> =
            runtime.block_on(store.take_interrupted()).unwrap().into_iter().map(|call| call.call_id).collect();
        taken.sort();
        assert_eq!(taken, [CallId::new(2, 0), CallId::new(4, 0)]);
    }

    #[test]
    fn the_known_format_is_the_last_step() {
        assert_eq!(usize::try_from(KNOWN), Ok(STEPS.len()));
    }
}
