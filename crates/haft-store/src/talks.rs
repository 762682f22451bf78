//! Conversations with models: what was said, message by message, and how each stands.
//!
//! What is sent may be made shorter; what is kept is not. A conversation that was made shorter goes on in another *epoch*, and
//! the earlier ones stay. Whoever opened a conversation last writes it: an earlier writer finds out at its next word.

use crate::cells;
use crate::db::{Db, DbResult};
use crate::migrate::Step;
use crate::notes::{self, Note};
use crate::{Mode, Store, StoreError, now_ms};
use haft_core::SessionId;
use haft_core::agent::{Message, Usage};
use serde::Serialize;
use std::collections::BTreeMap;

pub(crate) const TABLES: Step = Step::alike(
    "CREATE TABLE talks (
        session TEXT PRIMARY KEY, root TEXT NOT NULL, title TEXT NOT NULL, above TEXT, role TEXT, mode TEXT NOT NULL,
        model TEXT NOT NULL, state TEXT NOT NULL, usage TEXT NOT NULL, cost_micros INTEGER, turns INTEGER NOT NULL,
        calls INTEGER NOT NULL, epoch INTEGER NOT NULL, active TEXT NOT NULL, place TEXT, writer TEXT NOT NULL,
        begun_ms INTEGER NOT NULL, at_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX talks_by_root ON talks (root, at_ms);
    CREATE INDEX talks_by_above ON talks (above);
    CREATE TABLE messages (
        session TEXT NOT NULL, epoch INTEGER NOT NULL, seq INTEGER NOT NULL, at_ms INTEGER NOT NULL, message TEXT NOT NULL,
        PRIMARY KEY (session, epoch, seq)
    ) STRICT, WITHOUT ROWID;",
);

/// What a child was asked for, so that it can be spoken to again; and what children had to say when their parent had gone.
pub(crate) const FAMILY: Step = Step::alike(
    "ALTER TABLE talks ADD COLUMN asked TEXT;
    CREATE TABLE reports (
        session TEXT NOT NULL, child TEXT NOT NULL, at_ms INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (session, child)
    ) STRICT, WITHOUT ROWID;",
);

/// How a conversation stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Talk {
    /// Its session.
    pub session: String,
    /// The project it is about.
    pub root: String,
    /// What it is about: the first words that were said.
    pub title: String,
    /// The session of its parent, if it is a child's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<String>,
    /// As what it speaks, if it is a child's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// `main`, `sync`, `background` or `worktree`.
    pub mode: String,
    /// The model that was asked last.
    pub model: String,
    /// `running`, or how it ended last.
    pub state: String,
    /// What was used in all.
    pub usage: Usage,
    /// In millionths of a dollar; none if nobody knows.
    pub cost_micros: Option<i64>,
    /// How often a model was asked.
    pub turns: i64,
    /// How many calls were made.
    pub calls: i64,
    /// How often what is sent was made shorter.
    pub epoch: i64,
    /// The tools that were found and are told since, in order.
    pub active: Vec<String>,
    /// The directory that it works in, where that is not the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What it was asked for, if it is a child's: in the words of whoever asked.
    #[serde(skip)]
    pub asked: Option<String>,
    /// By what it goes.
    #[serde(skip)]
    pub terms: TalkTerms,
    /// What was spent of its budget, in millionths of a dollar.
    #[serde(skip)]
    pub spent_micros: Option<i64>,
    /// When it began.
    pub begun_ms: i64,
    /// When something was last said.
    pub at_ms: i64,
}

/// By what a conversation goes: what was chosen for it, so that it goes on as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TalkTerms {
    /// The models that are asked, the first choice first.
    pub models: Vec<String>,
    /// How hard they think.
    pub effort: Option<String>,
    /// Its budget in millionths of a dollar, if it was given one of its own.
    pub max_micros: Option<i64>,
    /// How often a model is asked for one thing that is said, if that was given.
    pub max_turns: Option<i64>,
    /// Tokens read and written for one thing that is said, if that was given.
    pub max_tokens: Option<i64>,
}

/// What changes of a conversation with a word.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The model that is asked.
    pub model: String,
    /// `running`, or how it ended.
    pub state: String,
    /// What was used in all.
    pub usage: Usage,
    /// In millionths of a dollar.
    pub cost_micros: Option<i64>,
    /// How often a model was asked.
    pub turns: i64,
    /// How many calls were made.
    pub calls: i64,
    /// The tools that were found.
    pub active: Vec<String>,
    /// What was spent of its budget, in millionths of a dollar.
    pub spent_micros: i64,
    /// The notes that are a part of the messages: they wait no longer.
    pub told: Vec<Note>,
}

/// A conversation that begins, as far as it is known then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTalk {
    /// Its session.
    pub session: SessionId,
    /// The project.
    pub root: String,
    /// What it is about.
    pub title: String,
    /// Its parent's session.
    pub above: Option<String>,
    /// As what it speaks.
    pub role: Option<String>,
    /// `main`, `sync`, `background` or `worktree`.
    pub mode: &'static str,
    /// The directory that it works in, where that is not the project.
    pub place: Option<String>,
    /// What it was asked for, if it is a child's.
    pub asked: Option<String>,
}

const COLUMNS: &str = "session, root, title, above, role, mode, model, state, usage, cost_micros, turns, calls, epoch, active, \
                       place, begun_ms, at_ms, asked, models, effort, max_micros, spent_micros, max_turns, max_tokens";

fn talk(row: &crate::db::Row<'_>) -> DbResult<Talk> {
    let (usage, active): (String, String) = (row.get(8)?, row.get(13)?);
    Ok(Talk {
        session: row.get(0)?,
        root: row.get(1)?,
        title: row.get(2)?,
        above: row.get(3)?,
        role: row.get(4)?,
        mode: row.get(5)?,
        model: row.get(6)?,
        state: row.get(7)?,
        usage: serde_json::from_str(&usage).unwrap_or_default(),
        cost_micros: row.get(9)?,
        turns: row.get(10)?,
        calls: row.get(11)?,
        epoch: row.get(12)?,
        active: serde_json::from_str(&active).unwrap_or_default(),
        place: row.get(14)?,
        begun_ms: row.get(15)?,
        at_ms: row.get(16)?,
        asked: row.get(17)?,
        terms: TalkTerms {
            models: row
                .get::<Option<String>>(18)?
                .and_then(|text| serde_json::from_str(&text).ok())
                .unwrap_or_default(),
            effort: row.get(19)?,
            max_micros: row.get(20)?,
            max_turns: row.get(22)?,
            max_tokens: row.get(23)?,
        },
        spent_micros: row.get(21)?,
    })
}

fn find(db: &Db<'_>, session: &str) -> DbResult<Option<Talk>> {
    db.first(&format!("SELECT {COLUMNS} FROM talks WHERE session = ?1"), cells![session], talk)
}

fn said(db: &Db<'_>, session: &str, epoch: i64) -> DbResult<Vec<String>> {
    let sql = "SELECT message FROM messages WHERE session = ?1 AND epoch = ?2 ORDER BY seq";
    db.all(sql, cells![session, epoch], |row| row.get(0))
}

impl Store {
    /// Opens a conversation for writing: a new one, or one that goes on. From now on nobody else writes it. Gives how it
    /// stands, and what is sent of it.
    pub async fn open_talk(&self, new: NewTalk, writer: String) -> Result<(Talk, Vec<Message>), StoreError> {
        let (talk, texts) = self
            .insist(Mode::Durable, move |db| {
                let (session, now) = (new.session.as_str(), now_ms());
                let usage = serde_json::to_string(&Usage::default()).unwrap_or_default();
                let sql = "INSERT INTO talks (session, root, title, above, role, mode, model, state, usage, cost_micros, turns,
                    calls, epoch, active, place, writer, begun_ms, at_ms, asked)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, '', 'new', ?7, NULL, 0, 0, 0, '[]', ?8, ?9, ?10, ?10, ?11)
                    ON CONFLICT (session) DO UPDATE SET writer = excluded.writer";
                db.execute(
                    sql,
                    cells![
                        session, new.root, new.title, new.above, new.role, new.mode, usage, new.place, writer, now, new.asked
                    ],
                )?;
                let sql = "INSERT INTO sessions (id, created_ms, used_ms, calls) VALUES (?1, ?2, ?2, 0)
                    ON CONFLICT (id) DO UPDATE SET used_ms = excluded.used_ms";
                db.execute(sql, cells![session, now])?;
                let talk = db.one(&format!("SELECT {COLUMNS} FROM talks WHERE session = ?1"), cells![session], talk)?;
                let texts = said(db, session, talk.epoch)?;
                Ok((talk, texts))
            })
            .await?;
        Ok((talk, texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()))
    }

    /// Keeps what was said, from the message with this number on, and how it stands. Messages after these are taken out: they
    /// were only begun. Returns whether it is still this writer's.
    ///
    /// While it goes on, this is as lasting as what is written next, which comes after it: before a call has an effect, its
    /// intent is made to last, and this with it. What ends a conversation lasts by itself.
    pub async fn keep_talk(
        &self,
        (session, writer): (SessionId, String),
        from: usize,
        title: String,
        messages: Vec<String>,
        standing: Standing,
    ) -> Result<bool, StoreError> {
        let mode = if standing.state == "running" { Mode::Write } else { Mode::Durable };
        self.insist(mode, move |db| {
            let now = now_ms();
            let (usage, active) = (json(&standing.usage), json(&standing.active));
            let sql = "UPDATE talks SET model = ?3, state = ?4, usage = ?5, cost_micros = ?6, turns = ?7, calls = ?8, active = ?9,
                at_ms = ?10, title = ?11, spent_micros = ?12 WHERE session = ?1 AND writer = ?2";
            let own = db.execute(
                sql,
                cells![
                    session.as_str(),
                    writer,
                    standing.model,
                    standing.state,
                    usage,
                    standing.cost_micros,
                    standing.turns,
                    standing.calls,
                    active,
                    now,
                    title,
                    standing.spent_micros
                ],
            )?;
            if own == 0 {
                return Ok(false);
            }
            write(db, session.as_str(), from, &messages, now)?;
            notes::remove(db, session.as_str(), &standing.told)?;
            Ok(true)
        })
        .await
    }

    /// Keeps by what a conversation goes, before a model is asked by it. Returns whether it is still this writer's.
    pub async fn keep_terms(
        &self,
        (session, writer): (SessionId, String),
        terms: TalkTerms,
    ) -> Result<bool, StoreError> {
        self.insist(Mode::Write, move |db| {
            let sql = "UPDATE talks SET models = ?3, effort = ?4, max_micros = ?5, max_turns = ?6, max_tokens = ?7
                WHERE session = ?1 AND writer = ?2";
            let models = json(&terms.models);
            let TalkTerms { effort, max_micros, max_turns, max_tokens, .. } = &terms;
            db.execute(sql, cells![session.as_str(), writer, models, effort, max_micros, max_turns, max_tokens])
                .map(|own| own > 0)
        })
        .await
    }

    /// What is sent is shorter from now on; what was said stays. Returns whether it is still this writer's.
    pub async fn shorten_talk(
        &self,
        (session, writer): (SessionId, String),
        messages: Vec<String>,
    ) -> Result<bool, StoreError> {
        self.insist(Mode::Durable, move |db| {
            let sql = "UPDATE talks SET epoch = epoch + 1 WHERE session = ?1 AND writer = ?2";
            if db.execute(sql, cells![session.as_str(), writer])? == 0 {
                return Ok(false);
            }
            write(db, session.as_str(), 0, &messages, now_ms())?;
            Ok(true)
        })
        .await
    }

    /// How a conversation stands.
    pub async fn talk(&self, session: &SessionId) -> Result<Option<Talk>, StoreError> {
        let session = session.clone();
        self.insist(Mode::Read, move |db| find(db, session.as_str())).await
    }

    /// What conversations are about, by session.
    pub async fn titles(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let sql = "SELECT session, title FROM talks";
        let all = |db: &Db<'_>| db.all(sql, &[], |row| Ok((row.get::<String>(0)?, row.get::<String>(1)?)));
        Ok(self.insist(Mode::Read, move |db| all(db)).await?.into_iter().collect())
    }

    /// All that was said in one, with what was left out of what is sent later. Each epoch begins with what was kept of the one
    /// before.
    pub async fn said(&self, session: &SessionId) -> Result<Vec<Vec<Message>>, StoreError> {
        let session = session.clone();
        let epochs: Vec<Vec<String>> = self
            .insist(Mode::Read, move |db| {
                let Some(talk) = find(db, session.as_str())? else { return Ok(Vec::new()) };
                (0..=talk.epoch).map(|epoch| said(db, session.as_str(), epoch)).collect()
            })
            .await?;
        let read = |texts: Vec<String>| texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
        Ok(epochs.into_iter().map(read).collect())
    }

    /// The conversations of a project, the latest first: those of people, or the children of one.
    pub async fn talks(&self, root: &str, above: Option<&str>, most: i64) -> Result<Vec<Talk>, StoreError> {
        let (root, above) = (root.to_owned(), above.map(str::to_owned));
        self.insist(Mode::Read, move |db| {
            if let Some(above) = &above {
                let sql = format!("SELECT {COLUMNS} FROM talks WHERE above = ?1 ORDER BY begun_ms, session LIMIT ?2");
                return db.all(&sql, cells![above, most], talk);
            }
            let sql = format!(
                "SELECT {COLUMNS} FROM talks WHERE root = ?1 AND above IS NULL AND state <> 'new' ORDER BY at_ms DESC, session LIMIT ?2"
            );
            db.all(&sql, cells![root, most], talk)
        })
        .await
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn write(db: &Db<'_>, session: &str, from: usize, messages: &[String], now: i64) -> DbResult<()> {
    let epoch: i64 = db.one("SELECT epoch FROM talks WHERE session = ?1", cells![session], |row| row.get(0))?;
    let number = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
    for (place, message) in messages.iter().enumerate() {
        let sql = "INSERT INTO messages (session, epoch, seq, at_ms, message) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (session, epoch, seq) DO UPDATE SET message = excluded.message, at_ms = excluded.at_ms";
        db.execute(sql, cells![session, epoch, number(from + place), now, message])?;
    }
    let sql = "DELETE FROM messages WHERE session = ?1 AND epoch = ?2 AND seq >= ?3";
    db.execute(sql, cells![session, epoch, number(from + messages.len())]).map(drop)
}
