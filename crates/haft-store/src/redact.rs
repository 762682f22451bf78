//! Removing what records of the audit log say, so that the hash chain still holds and says what was removed.
//!
//! The chain covers each record's envelope and a salted digest of its body. Removing a body leaves the chain as it was; that it
//! was removed is a record of its own, and a body that is missing without one is damage. A record that an earlier haft wrote has
//! all in its text: that is replaced by its envelope, and the redaction's record holds a seal over the hash before it, its own
//! hash and what is left, so that the chain holds across it.

use crate::cells;
use crate::db::{Db, DbError, DbResult};
use crate::journal::{BODY, ENVELOPE, REDACTED, append};
use crate::{Entry, Mode, Store, StoreError, idempotency};
use haft_core::CallId;
use haft_core::record::{Digest, Kind};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How many records go in one transaction, and so in one redaction.
const PORTION: i64 = 500;
/// What stands in the place of a text that was removed.
const REMOVED: &str = "[redacted]";
/// The calls that have not ended, and those that wait for an answer or for being run after one.
const OPEN: &str =
    "SELECT call_id FROM open_calls UNION SELECT id FROM approvals WHERE state IN ('pending', 'approved')";

/// What is to be removed from the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedactionScope {
    /// What the records of one call say.
    Call(CallId),
    /// What one record says.
    Record(i64),
    /// What records say that are older than this, in milliseconds of the Unix epoch.
    Before(i64),
}

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Redacted {
    /// How many records lost what they said.
    pub records: i64,
    /// The calls that they were about.
    pub calls: Vec<CallId>,
    /// Whether some are about a call that has not ended or waits for an answer: these were left alone.
    pub open: bool,
}

/// A record that says what was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redaction {
    /// Its number.
    pub seq: i64,
    /// When.
    pub at_ms: i64,
    /// By whom.
    pub by: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The call that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// How many records lost what they said.
    pub records: i64,
}

/// All that redactions say.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    pub(crate) redactions: Vec<Redaction>,
    /// The first and the last number of records without a body.
    bodies: Vec<(i64, i64)>,
    seals: BTreeMap<i64, Vec<String>>,
}

/// What holds the chain together where an earlier record has lost its text.
pub(crate) fn seal(before: &Digest, hash: &Digest, text: &str) -> String {
    Digest::of(&[before.as_bytes(), hash.as_bytes(), text.as_bytes()].concat()).to_string()
}

impl Removed {
    /// Reads every redaction. Whether they are true is for whoever goes along the chain, which they are a part of.
    pub(crate) fn read(db: &Db<'_>) -> DbResult<Self> {
        let mut all = Self::default();
        let sql = "SELECT seq, text FROM journal WHERE kind = 'redaction' ORDER BY seq";
        for (seq, text) in db.all(sql, &[], |row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?)))? {
            all.add(seq, &serde_json::from_str(&text).unwrap_or_default());
        }
        Ok(all)
    }

    fn add(&mut self, seq: i64, says: &Value) {
        let text = |name: &str| says[name].as_str().map(str::to_owned);
        self.redactions.push(Redaction {
            seq,
            at_ms: says["at"].as_i64().unwrap_or_default(),
            by: text("by").unwrap_or_default(),
            why: text("why"),
            call: text("call"),
            records: says["records"].as_i64().unwrap_or_default(),
        });
        // A redaction is about what came before it.
        for range in says["bodies"].as_array().into_iter().flatten() {
            if let (Some(first), Some(last)) = (range[0].as_i64(), range[1].as_i64()) {
                self.bodies.push((first, last.min(seq - 1)));
            }
        }
        for (number, seal) in says["seals"].as_object().into_iter().flatten() {
            if let (Ok(number), Some(seal)) = (number.parse::<i64>(), seal.as_str())
                && number < seq
            {
                self.seals.entry(number).or_default().push(seal.to_owned());
            }
        }
    }

    /// Whether a record's body was removed.
    pub(crate) fn holds(&self, seq: i64) -> bool {
        self.bodies.iter().any(|(first, last)| (*first..=*last).contains(&seq))
    }

    /// Whether this is what was left of an earlier record.
    pub(crate) fn seals(&self, seq: i64, seal: &str) -> bool {
        self.seals.get(&seq).is_some_and(|seals| seals.iter().any(|known| known == seal))
    }
}

impl Store {
    /// Removes what records say, and records that. Calls that have not ended are left alone.
    pub async fn redact(&self, scope: RedactionScope, by: &str, why: Option<&str>) -> Result<Redacted, StoreError> {
        self.note_erased();
        let mut all = Redacted::default();
        let mut after = 0;
        loop {
            let (scope, by, why) = (scope.clone(), by.to_owned(), why.map(str::to_owned));
            let job = move |db: &Db<'_>| portion(db, &scope, after, &by, why.as_deref());
            let (some, next) = self.run(Mode::Durable, job).await?;
            all.records += some.records;
            all.open |= some.open;
            all.calls.extend(some.calls);
            match next {
                Some(next) => after = next,
                None => break,
            }
        }
        all.calls.sort();
        all.calls.dedup();
        Ok(all)
    }
}

/// A record that still says something.
struct Spoken {
    seq: i64,
    text: String,
    call: Option<String>,
    has_body: bool,
}

/// The next records of a scope that say something.
fn spoken(db: &Db<'_>, scope: &RedactionScope, after: i64) -> DbResult<Vec<Spoken>> {
    let (call, first, last, before) = match scope {
        RedactionScope::Call(call) => (Some(call.as_str().to_owned()), after + 1, i64::MAX, None),
        RedactionScope::Record(seq) => (None, (*seq).max(after + 1), *seq, None),
        RedactionScope::Before(ms) => (None, after + 1, i64::MAX, Some(*ms)),
    };
    let (at, body, redacted) = (field(db, "at"), field(db, BODY), field(db, REDACTED));
    // What has a digest in its text and no body beside it, or says that it is redacted, has nothing left.
    let sql = format!(
        "SELECT seq, text, call_id, body IS NOT NULL FROM journal
         WHERE kind <> 'redaction' AND (CAST(?1 AS TEXT) IS NULL OR call_id = ?1) AND seq BETWEEN ?2 AND ?3
         AND (body IS NOT NULL OR ({body} IS NULL AND {redacted} IS NULL))
         AND (CAST(?4 AS BIGINT) IS NULL OR CAST({at} AS BIGINT) < ?4)
         AND (call_id IS NULL OR call_id NOT IN ({OPEN})) ORDER BY seq LIMIT ?5",
    );
    db.all(&sql, cells![call, first, last, before, PORTION], |row| {
        Ok(Spoken { seq: row.get(0)?, text: row.get(1)?, call: row.get(2)?, has_body: row.get(3)? })
    })
}

/// A field of a record's text, as the database finds it.
pub(crate) fn field(db: &Db<'_>, name: &str) -> String {
    match db.kind() {
        crate::Kind::Lite => format!("(text ->> '{name}')"),
        crate::Kind::Post => format!("(CAST(text AS json) ->> '{name}')"),
    }
}

/// Goes through one portion, and says where the next begins, if there may be one.
fn portion(
    db: &Db<'_>,
    scope: &RedactionScope,
    after: i64,
    by: &str,
    why: Option<&str>,
) -> DbResult<(Redacted, Option<i64>)> {
    let mut done = Redacted { open: is_open(db, scope)?, ..Redacted::default() };
    let (mut bodies, mut seals): (Vec<(i64, i64)>, Map<String, Value>) = (Vec::new(), Map::new());
    let records = spoken(db, scope, after)?;
    let next = records.last().map(|record| record.seq).filter(|_| i64::try_from(records.len()) == Ok(PORTION));
    for record in records {
        if record.has_body {
            db.execute("UPDATE journal SET body = NULL, salt = NULL WHERE seq = ?1", cells![record.seq])?;
            match bodies.last_mut().filter(|(_, last)| *last + 1 == record.seq) {
                Some((_, last)) => *last = record.seq,
                None => bodies.push((record.seq, record.seq)),
            }
        } else if let Some(seal) = replace_text(db, &record)? {
            seals.insert(record.seq.to_string(), seal.into());
        } else {
            continue;
        }
        done.records += 1;
        done.calls.extend(record.call.as_deref().and_then(CallId::parse));
    }
    for call in &done.calls {
        let sql = "UPDATE approvals SET preview = ?2, reason = ?2, sources = NULL, executed = NULL, trial = NULL,
                   outcome = CASE WHEN outcome IS NULL THEN NULL WHEN state = 'rejected' THEN ?3 ELSE ?4 END
                   WHERE id = ?1 AND (state IN ('done', 'rejected') OR (state = 'approved' AND decided_ms < ?5))";
        let (rejected, done) = (json!({"rejected": REMOVED}).to_string(), json!({"redacted": true}).to_string());
        // One that was approved and never ran to its end belongs to a process that died, unless it is about to begin.
        let abandoned = db.now_ms()? - idempotency::BEGINS_MS;
        db.execute(sql, cells![call.as_str(), REMOVED, rejected, done, abandoned])?;
        idempotency::redact(db, call)?;
    }
    if done.records > 0 {
        let mut entry = Entry::new(Kind::Redaction).with("by", by).with("records", done.records);
        entry = if bodies.is_empty() { entry } else { entry.with("bodies", json!(bodies)) };
        entry = if seals.is_empty() { entry } else { entry.with("seals", seals) };
        if let RedactionScope::Call(call) = scope {
            entry = entry.call(call);
        }
        append(db, &why.map_or(entry.clone(), |why| entry.with("why", why)))?;
    }
    Ok((done, next))
}

fn is_open(db: &Db<'_>, scope: &RedactionScope) -> DbResult<bool> {
    let RedactionScope::Call(call) = scope else { return Ok(false) };
    db.one(&format!("SELECT ?1 IN ({OPEN})"), cells![call.as_str()], |row| row.get(0))
}

/// Replaces the text of an earlier record by its envelope, and gives the seal. None: it says nothing else.
fn replace_text(db: &Db<'_>, record: &Spoken) -> DbResult<Option<String>> {
    let says: Map<String, Value> = serde_json::from_str(&record.text).unwrap_or_default();
    let all = says.len();
    let mut envelope: Map<String, Value> =
        says.into_iter().filter(|(name, _)| ENVELOPE.contains(&name.as_str())).collect();
    if envelope.len() == all && all > 0 {
        return Ok(None);
    }
    envelope.insert(REDACTED.to_owned(), json!(true));
    let text = Value::Object(envelope).to_string();
    let hash_of = |seq: i64| -> DbResult<Digest> {
        let found = db.first("SELECT hash FROM journal WHERE seq = ?1", cells![seq], |row| row.get::<Vec<u8>>(0))?;
        let odd = || DbError::Odd("a record without a hash".to_owned());
        found.map_or(Ok(Digest::ZERO), |hash| Digest::from_bytes(&hash).ok_or_else(odd))
    };
    let seal = seal(&hash_of(record.seq - 1)?, &hash_of(record.seq)?, &text);
    db.execute("UPDATE journal SET text = ?2 WHERE seq = ?1", cells![record.seq, text])?;
    Ok(Some(seal))
}
