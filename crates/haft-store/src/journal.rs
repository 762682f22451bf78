//! The audit log: numbered records, each hashed over the one before, and the calls that are still open.

use crate::cells;
use crate::db::{Db, DbError, DbResult, Row};
use crate::host::CallOwner;
use crate::pending::{Linked, Opened};
use crate::redact::{Redaction, Removed, seal};
use crate::{Mode, Store, StoreError, Topic, host, now_ms, observed};
use haft_core::CallId;
use haft_core::record::{self, Digest, link};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::Read as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is to be recorded.
#[derive(Debug, Clone)]
pub struct Entry {
    kind: record::Kind,
    call: Option<CallId>,
    fields: Map<String, Value>,
}

impl Entry {
    /// A record of this kind.
    pub fn new(kind: record::Kind) -> Self {
        Self { kind, call: None, fields: Map::new() }
    }

    /// About this call.
    #[must_use]
    pub fn call(mut self, id: &CallId) -> Self {
        self.call = Some(id.clone());
        self
    }

    /// With this particular.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// With this particular, if it is known.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The call that it is about.
    fn subject(&self) -> Option<&str> {
        self.call.as_ref().map(CallId::as_str).or_else(|| self.fields.get("call").and_then(Value::as_str))
    }

    /// What is hashed into the chain, and what stands beside it.
    fn written(&self) -> DbResult<(String, Option<Body>)> {
        let mut object = Map::new();
        object.insert("at".to_owned(), json!(now_ms()));
        object.insert("kind".to_owned(), json!(self.kind.as_str()));
        if let Some(call) = &self.call {
            object.insert("call".to_owned(), json!(call.as_str()));
        }
        // What a redaction says is needed for as long as the log is.
        let stays = |name: &str| self.kind == record::Kind::Redaction || ENVELOPE.contains(&name);
        let (envelope, rest): (Map<_, _>, Map<_, _>) =
            self.fields.clone().into_iter().partition(|(name, _)| stays(name));
        object.extend(envelope);
        if rest.is_empty() {
            return Ok((Value::Object(object).to_string(), None));
        }
        let body = Body::new(Value::Object(rest).to_string())?;
        object.insert(BODY.to_owned(), json!(body.digest()));
        Ok((Value::Object(object).to_string(), Some(body)))
    }
}

/// What stands in the chain itself: who, when, which tool, and how it ended. It is never removed.
pub(crate) const ENVELOPE: &[&str] =
    &["at", "kind", "call", "session", "tool", "turn", "said", "success", "by", "duration_ms"];
/// Where the chain names the digest of what stands beside it.
pub(crate) const BODY: &str = "body";
/// What an earlier record, which had all in its text, says instead of it.
pub(crate) const REDACTED: &str = "redacted";

/// What a record says, beside the chain, which holds a salted digest of it: removed, it cannot be guessed from that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) text: String,
    pub(crate) salt: Vec<u8>,
}

impl Body {
    fn new(text: String) -> DbResult<Self> {
        Ok(Self { text, salt: salt()? })
    }

    fn digest(&self) -> Digest {
        // Its length goes before the salt, so that no byte of one can be passed off as the other's.
        let length = u64::try_from(self.salt.len()).unwrap_or(u64::MAX).to_be_bytes();
        Digest::of(&[length.as_slice(), self.salt.as_slice(), self.text.as_bytes()].concat())
    }
}

/// Bytes that nobody can guess: of a seed of this process's own, and a number that is never used again.
fn salt() -> DbResult<Vec<u8>> {
    static SEED: OnceLock<[u8; 32]> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let seed = if let Some(seed) = SEED.get() {
        *seed
    } else {
        let mut seed = [0; 32];
        let read = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut seed));
        read.map_err(|error| DbError::Odd(format!("/dev/urandom cannot be read: {error}")))?;
        *SEED.get_or_init(|| seed)
    };
    // A process that was forked has the same seed.
    let number = [NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes(), u64::from(std::process::id()).to_be_bytes()];
    Ok(Digest::of(&[seed.as_slice(), number.as_flattened()].concat()).as_bytes()[..16].to_vec())
}

/// A record as it stands in the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// Its number; the first is 1 and none is left out.
    pub seq: i64,
    /// Its hash.
    pub hash: Digest,
    /// What it says.
    pub body: Value,
}

/// The end of the chain. Written down elsewhere, it also betrays a log that was cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Head {
    /// The last record's number; 0 when there is none.
    pub seq: i64,
    /// The last record's hash.
    pub hash: Digest,
}

/// The chain holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// How far it goes.
    pub head: Head,
    /// What was removed from it, when and by whom, oldest first.
    pub redactions: Vec<Redaction>,
}

/// The chain does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The first record that is wrong.
    pub seq: i64,
    /// In what way.
    pub why: String,
}

/// A call whose process died between intent and outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unclosed {
    /// Which.
    pub call_id: CallId,
    /// Its tool.
    pub tool: String,
    /// When it began.
    pub at_ms: i64,
    /// The machine that it ran on, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether an agent made it by a tool of its own, and ended before it said what came of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub observed: bool,
    /// Who had it open.
    #[serde(skip)]
    owner: CallOwner,
}

/// Adds a record inside a transaction.
pub(crate) fn append(db: &Db<'_>, entry: &Entry) -> DbResult<Head> {
    let last = match db.keep(|pending| pending.end) {
        Some(known) => known,
        None => head(db)?,
    };
    let seq = last.seq + 1;
    let (text, body) = entry.written()?;
    let head = Head { seq, hash: link(&last.hash, seq, &text) };
    let session = entry.fields.get("session").and_then(Value::as_str).map(str::to_owned);
    let call = entry.subject().map(str::to_owned);
    db.keep(|pending| pending.record(Linked { head, text, body, call, kind: entry.kind.as_str(), session }));
    db.notify(Topic::Records);
    Ok(head)
}

/// A row of number, hash, text and body.
pub(crate) fn read_record(row: &Row<'_>) -> DbResult<Record> {
    let (seq, hash, text): (i64, Vec<u8>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let mut body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    if let Some(envelope) = body.as_object_mut()
        && envelope.remove(BODY).is_some()
    {
        let beside: Option<String> = row.get(3)?;
        match beside.and_then(|text| serde_json::from_str(&text).ok()) {
            Some(Value::Object(rest)) => envelope.extend(rest),
            _ => drop(envelope.insert(REDACTED.to_owned(), json!(true))),
        }
    }
    Ok(Record { seq, hash: Digest::from_bytes(&hash).unwrap_or(Digest::ZERO), body })
}

pub(crate) fn head(db: &Db<'_>) -> DbResult<Head> {
    let row = db.first("SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1", &[], |row| {
        Ok((row.get(0)?, row.get::<Vec<u8>>(1)?))
    })?;
    let (seq, hash) = row.unwrap_or((0, Vec::new()));
    Ok(Head { seq, hash: Digest::from_bytes(&hash).unwrap_or(Digest::ZERO) })
}

impl Store {
    /// Adds a record and waits for its commit.
    pub async fn record(&self, entry: Entry, mode: Mode) -> Result<Head, StoreError> {
        self.insist(mode, move |db| append(db, &entry)).await
    }

    /// Adds a record without waiting.
    pub fn record_later(&self, entry: Entry) {
        self.later(move |db| append(db, &entry).map(drop));
    }

    /// Records an intent durably and marks its call as open, for this process.
    pub async fn open_call(&self, id: &CallId, tool: &str, entry: Entry) -> Result<(), StoreError> {
        let (id, tool) = (id.clone(), tool.to_owned());
        self.insist(Mode::Durable, move |db| {
            append(db, &entry)?;
            let (pid, born) = myself();
            let opened = Opened { call: id.clone(), tool: tool.clone(), at_ms: now_ms(), pid, born, process: None };
            db.keep(|pending| pending.open(opened));
            Ok(())
        })
        .await
    }

    /// Takes an open call over from the process that opened it: it is open now as long as this one lives.
    pub fn adopt_call_blocking(&self, id: &CallId) -> Result<(), StoreError> {
        let id = id.clone();
        self.run_blocking(Mode::Write, move |db| {
            let (pid, born) = myself();
            let sql = "UPDATE open_calls SET pid = ?2, born = ?3, process = ?4, lock = ?5 WHERE call_id = ?1";
            db.execute(sql, cells![id.as_str(), pid, born, db.process(), db.lock_name()?]).map(drop)
        })
    }

    /// Records an outcome and marks its call as closed.
    pub fn close_call(&self, id: &CallId, entry: Entry) {
        let id = id.clone();
        self.later(move |db| {
            append(db, &entry)?;
            db.keep(|pending| pending.close(id.clone()));
            Ok(())
        });
    }

    /// Finds calls whose process is gone, records each as interrupted (once), and returns them.
    pub async fn take_interrupted(&self) -> Result<Vec<Unclosed>, StoreError> {
        let dead = self.insist(Mode::Read, dead_calls).await?;
        if dead.is_empty() {
            return Ok(dead);
        }
        self.insist(Mode::Durable, move |db| {
            let mut taken = Vec::new();
            for mut call in dead.iter().cloned() {
                // Whoever took it over meanwhile, or came back, goes on with it.
                let sql = "DELETE FROM open_calls WHERE call_id = ?1 AND process = ?2 AND lock = ?3 AND born = ?4";
                let CallOwner { process, lock, born, .. } = &call.owner;
                let gone = db.execute(sql, cells![call.call_id.as_str(), process, lock, born])?;
                if gone == 1 {
                    let mut entry = Entry::new(record::Kind::Interrupted).call(&call.call_id);
                    entry = entry.with("tool", call.tool.as_str());
                    call.observed = observed::forget(db, &call.call_id)?;
                    if call.observed {
                        entry = entry.with("observed", true);
                    }
                    if let Some(host) = &call.host {
                        entry = entry.with("host", host.as_str());
                    }
                    append(db, &entry)?;
                    taken.push(call);
                }
            }
            Ok(taken)
        })
        .await
    }

    /// Records after `after`, oldest first, at most `limit`; of one call only, if named.
    pub async fn records(&self, after: i64, limit: u32, call: Option<CallId>) -> Result<Vec<Record>, StoreError> {
        self.insist(Mode::Read, move |db| {
            let call = call.as_ref().map(CallId::as_str);
            db.all("SELECT seq, hash, text, body FROM journal WHERE seq > ?1 AND (CAST(?3 AS TEXT) IS NULL OR call_id = ?3) ORDER BY seq LIMIT ?2", cells![after, limit, call], read_record)
        })
        .await
    }

    /// The end of the chain.
    pub async fn head(&self) -> Result<Head, StoreError> {
        self.insist(Mode::Read, head).await
    }

    /// Recomputes the whole chain. `expected` is a head that was written down earlier.
    pub async fn verify(&self, expected: Option<Head>) -> Result<Result<Verified, Broken>, StoreError> {
        self.insist(Mode::Read, move |db| verify(db, expected)).await
    }
}

pub(crate) fn verify(db: &Db<'_>, expected: Option<Head>) -> DbResult<Result<Verified, Broken>> {
    let (mut last, mut broken) = (Head { seq: 0, hash: Digest::ZERO }, None);
    let removed = Removed::read(db)?;
    let sql = "SELECT seq, text, hash, call_id, kind, session, body, salt FROM journal ORDER BY seq";
    db.each(sql, &[], |row| {
        match follows(last, row, &removed)? {
            Ok(head) => last = head,
            Err(found) => broken = Some(found),
        }
        if let Some(known) = expected.filter(|known| known.seq == last.seq && known.hash != last.hash) {
            let why = format!("its hash was {} when it was written down", known.hash);
            broken = broken.take().or(Some(Broken { seq: last.seq, why }));
        }
        Ok(broken.is_none())
    })?;
    match expected {
        _ if broken.is_some() => {}
        Some(known) if known.seq > last.seq => {
            let why = format!("it is missing: the log ends at {}, but went on to {}", last.seq, known.seq);
            broken = Some(Broken { seq: last.seq + 1, why });
        }
        _ => {}
    }
    Ok(broken.map_or(Ok(Verified { head: last, redactions: removed.redactions }), Err))
}

/// Whether a row is the next link of the chain, and is found by what it says.
fn follows(last: Head, row: &Row<'_>, removed: &Removed) -> DbResult<Result<Head, Broken>> {
    let (seq, text, hash): (i64, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let broken = |why: &str| Ok(Err(Broken { seq, why: why.to_owned() }));
    if seq != last.seq + 1 {
        return Ok(Err(Broken { seq: last.seq + 1, why: format!("it is missing; the next one is {seq}") }));
    }
    let mut head = Head { seq, hash: link(&last.hash, seq, &text) };
    if hash != head.hash.as_bytes() {
        // One that had all in its text has lost it if a later record of the chain says so.
        let is_sealed =
            |hash: &Digest| is_redacted_envelope(&text) && removed.seals(seq, &seal(&last.hash, hash, &text));
        match Digest::from_bytes(&hash).filter(is_sealed) {
            Some(hash) => head.hash = hash,
            None => return broken("its text does not give its hash: it, or the one before, was changed"),
        }
    }
    let says: Value = serde_json::from_str(&text).unwrap_or_default();
    for (column, name) in [(3, "call"), (4, "kind"), (5, "session")] {
        if row.get::<Option<String>>(column)?.as_deref() != says[name].as_str() {
            return broken(&format!("it is filed under another {name} than it says"));
        }
    }
    let (body, salt): (Option<String>, Option<Vec<u8>>) = (row.get(6)?, row.get(7)?);
    let body = body.map(|text| Body { text, salt: salt.unwrap_or_default() });
    match (says[BODY].as_str(), body) {
        (None, None) => Ok(Ok(head)),
        (Some(digest), Some(body)) if digest == body.digest().to_string() => Ok(Ok(head)),
        (Some(_), None) if removed.holds(seq) => Ok(Ok(head)),
        (Some(_), None) => broken("what it said is missing, and no later record says that it was redacted"),
        _ => broken("what stands beside it is not what was recorded"),
    }
}

/// Whether a text is what a redaction leaves of a record that had all in its text: nothing else may be sealed.
fn is_redacted_envelope(text: &str) -> bool {
    let says: Value = serde_json::from_str(text).unwrap_or_default();
    let is_left = |name: &String| ENVELOPE.contains(&name.as_str()) || name == REDACTED;
    says[REDACTED] == true
        && says["kind"].as_str() != Some(record::Kind::Redaction.as_str())
        && says.as_object().is_some_and(|says| says.keys().all(is_left))
}

fn dead_calls(db: &Db<'_>) -> DbResult<Vec<Unclosed>> {
    let sql = format!("SELECT call_id, tool, at_ms, {} FROM open_calls ORDER BY at_ms", CallOwner::COLUMNS);
    let open: Vec<Unclosed> = db.all(&sql, &[], |row| {
        let id: String = row.get(0)?;
        let call_id = CallId::parse(&id).ok_or(DbError::Odd("a word that nobody here writes".to_owned()))?;
        let (tool, at_ms, owner) = (row.get(1)?, row.get(2)?, CallOwner::read(row, 3)?);
        Ok(Unclosed { call_id, tool, at_ms, host: owner.host_name(), observed: false, owner })
    })?;
    let mut dead = Vec::new();
    for call in open {
        if !call.owner.lives(db)? {
            dead.push(call);
        }
    }
    Ok(dead)
}

/// This process, told apart from any later one that gets the same number.
pub fn myself() -> (i64, String) {
    static KNOWN: OnceLock<(i64, String)> = OnceLock::new();
    let pid = i64::from(std::process::id());
    let look = || (pid, birth(pid).unwrap_or_default());
    let known = KNOWN.get_or_init(look);
    if known.0 == pid { known.clone() } else { look() }
}

/// When a process began, to tell it apart from any later one that gets the same number; none if it does not live.
pub fn process_birth(pid: i64) -> Option<String> {
    birth(pid)
}

/// When a process began, in the kernel's own units since this boot, with the boot's id.
pub(crate) fn birth(pid: i64) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name stands in parentheses and may contain anything; the fields count from there.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    // What has ended and was not collected yet is not alive.
    fields.next().filter(|state| !matches!(*state, "Z" | "X"))?;
    let began = fields.nth(18)?.to_owned();
    Some(format!("{began}@{}", host::boot_id()))
}
