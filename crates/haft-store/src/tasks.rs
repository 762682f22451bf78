//! What was promised: tasks, when they are due, and what came of them.
//!
//! Where a task stands is decided by plain functions on it (`standing`); here it is read, changed and written back in one
//! transaction, so that of many who find a task due exactly one starts it.

mod find;
mod keep;
mod runs;
mod standing;

pub use find::{Asking, TaskFilter};
pub use runs::TaskRun;
pub use standing::{BACKOFF_MAX_MS, Claim, Ended, LEASE_MS, backoff_ms};

use crate::db::{Db, DbError, DbResult, Row};
use crate::migrate::Step;
use crate::{Topic, cells};
use haft_core::Caller;
use haft_core::outcome::Label;
use haft_core::policy::Autonomy;
use haft_core::schedule::Missed;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) const TABLES: Step = Step::alike(
    "CREATE TABLE tasks (
        id TEXT PRIMARY KEY, place TEXT NOT NULL, root TEXT NOT NULL, title TEXT NOT NULL, description TEXT, tags TEXT NOT NULL,
        kind TEXT NOT NULL, status TEXT NOT NULL, priority INTEGER NOT NULL, due_ms INTEGER, parent TEXT,
        promise TEXT NOT NULL, made_ms INTEGER NOT NULL, changed_ms INTEGER NOT NULL, closed_ms INTEGER, next_ms INTEGER,
        then_ms INTEGER, at_ms INTEGER, run TEXT, attempt INTEGER NOT NULL, missed INTEGER NOT NULL, waits_for TEXT,
        ran_ms INTEGER, ok INTEGER, result TEXT
    ) STRICT;
    CREATE INDEX tasks_due ON tasks (root, next_ms) WHERE next_ms IS NOT NULL;
    CREATE INDEX tasks_under_way ON tasks (root, run) WHERE run IS NOT NULL;
    CREATE INDEX tasks_by_place ON tasks (place, status);
    CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent IS NOT NULL;
    CREATE TABLE task_runs (
        task TEXT NOT NULL, at_ms INTEGER NOT NULL, begun_ms INTEGER NOT NULL, run TEXT, ended_ms INTEGER, ok INTEGER,
        result TEXT, PRIMARY KEY (task, at_ms)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE task_pages (task TEXT PRIMARY KEY, digest BLOB NOT NULL, text TEXT NOT NULL) STRICT;",
);

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal $(| $alias:literal)*),* $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$doc])* $variant),* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// From a word for it, in anybody's vocabulary.
            pub fn parse(word: &str) -> Option<Self> {
                match word.trim().to_lowercase().replace(['-', ' '], "_").as_str() {
                    $($word $(| $alias)* => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// Where a task stands.
    TaskStatus {
        /// To be done, or to be done again.
        Pending = "pending" | "open" | "todo" | "new" | "queued" | "scheduled",
        /// Somebody is at it.
        InProgress = "in_progress" | "active" | "running" | "started" | "doing",
        /// It goes on when a person has decided.
        Waiting = "waiting" | "blocked" | "on_hold" | "awaiting_approval",
        /// Done.
        Done = "done" | "completed" | "complete" | "finished" | "closed" | "success",
        /// It did not work.
        Failed = "failed" | "error" | "failure",
        /// Nobody wants it any more.
        Cancelled = "cancelled" | "canceled" | "aborted" | "dropped",
    }
}

words! {
    /// How much it matters.
    Priority {
        /// Little.
        Low = "low",
        /// As usual.
        Medium = "medium" | "normal",
        /// Much.
        High = "high",
        /// More than anything else.
        Urgent = "urgent" | "critical",
    }
}

words! {
    /// What makes a task happen.
    TaskKind {
        /// Somebody does it, or asks for it.
        Manual = "manual",
        /// A time comes.
        Scheduled = "scheduled",
        /// A page is looked at again and again.
        Watch = "watch",
        /// A stored pipeline is run.
        Pipeline = "pipeline",
    }
}

impl TaskStatus {
    /// Whether nothing more is going to happen.
    pub fn closed(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// What a task is about, for whoever looks for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About {
    /// In a few words.
    pub title: String,
    /// In more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How much it matters.
    pub priority: Priority,
    /// When it should be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<i64>,
    /// Words by which it is found.
    pub tags: Vec<String>,
    /// The task that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// What is done for a task, when, and as whom.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// `{"tool", "args"}`, `{"prompt"}` or `{"pipeline", "inputs"}`. Without one it is for somebody to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
    /// When, in the language of schedules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// In which time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// When the schedule was given: periods are counted from here.
    #[serde(default)]
    pub since_ms: i64,
    /// What is done about times that were missed.
    #[serde(default)]
    pub missed: Missed,
    /// How often something that is done once is tried again.
    #[serde(default)]
    pub retries: u32,
    /// Whose it is to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
    /// As whom.
    #[serde(default)]
    pub owner: Owner,
}

/// As whom a task's calls are made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    /// The project in which they are made.
    #[serde(default)]
    pub root: String,
    /// The agent that made the task: what that may not do, the task may not.
    #[serde(default)]
    pub caller: Caller,
    /// How much they may do by themselves, where that is less than the user's configuration lets them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autonomy: Option<Autonomy>,
    /// Where what that agent had heard came from when it made the task: its words may be a stranger's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
}

/// How far it has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Standing {
    /// When it was made.
    pub made_ms: i64,
    /// When it was last changed.
    pub changed_ms: i64,
    /// When it was done, or given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_ms: Option<i64>,
    /// When it is due. While something is being started: when somebody else takes that over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<i64>,
    /// When it is due after what is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then_ms: Option<i64>,
    /// The time for which something is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<i64>,
    /// The run that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// How often it was tried in vain.
    pub attempt: u32,
    /// How many times went by without a run of their own.
    #[serde(rename = "missed_runs")]
    pub missed: i64,
    /// The question that somebody has to answer first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// When the last run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<i64>,
    /// How.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// With what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Task {
    /// Its name. The beginning is enough where no other has the same.
    pub id: String,
    /// The project that it belongs to; empty if it is the user's own, wherever they are.
    pub place: String,
    /// What makes it happen.
    pub kind: TaskKind,
    /// Where it stands.
    pub status: TaskStatus,
    /// What it is about.
    #[serde(flatten)]
    pub about: About,
    /// What is done for it.
    #[serde(flatten)]
    pub promise: Promise,
    /// How far it has come.
    #[serde(flatten)]
    pub standing: Standing,
}

const COLUMNS: &str = "id, place, title, description, tags, kind, status, priority, due_ms, parent, promise, made_ms,
     changed_ms, closed_ms, next_ms, then_ms, at_ms, run, attempt, missed, waits_for, ran_ms, ok, result";

fn odd(what: &str) -> DbError {
    DbError::Odd(format!("a task's {what} is nothing that anybody here writes"))
}

fn read(row: &Row<'_>) -> DbResult<Task> {
    let word = |column: usize| row.get::<String>(column);
    let priority = usize::try_from(row.get::<i64>(7)?).ok().and_then(|at| Priority::ALL.get(at));
    Ok(Task {
        id: row.get(0)?,
        place: row.get(1)?,
        kind: TaskKind::parse(&word(5)?).ok_or_else(|| odd("kind"))?,
        status: TaskStatus::parse(&word(6)?).ok_or_else(|| odd("status"))?,
        about: About {
            title: row.get(2)?,
            description: row.get(3)?,
            tags: serde_json::from_str(&word(4)?).map_err(|_| odd("tags"))?,
            priority: *priority.ok_or_else(|| odd("priority"))?,
            due_ms: row.get(8)?,
            parent: row.get(9)?,
        },
        promise: serde_json::from_str(&word(10)?).map_err(|_| odd("promise"))?,
        standing: Standing {
            made_ms: row.get(11)?,
            changed_ms: row.get(12)?,
            closed_ms: row.get(13)?,
            next_ms: row.get(14)?,
            then_ms: row.get(15)?,
            at_ms: row.get(16)?,
            run: row.get(17)?,
            attempt: row.get(18)?,
            missed: row.get(19)?,
            waits_for: row.get(20)?,
            ran_ms: row.get(21)?,
            ok: row.get::<Option<i64>>(22)?.map(|ok| ok != 0),
            result: row.get(23)?,
        },
    })
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn write(db: &Db<'_>, task: &Task) -> DbResult<usize> {
    let Task { about, promise, standing: now, .. } = task;
    db.notify(Topic::Tasks);
    db.execute(
        "INSERT INTO tasks (id, place, root, title, description, tags, kind, status, priority, due_ms, parent, promise, made_ms,
         changed_ms, closed_ms, next_ms, then_ms, at_ms, run, attempt, missed, waits_for, ran_ms, ok, result)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
         ?24, ?25)
         ON CONFLICT (id) DO UPDATE SET title = excluded.title, description = excluded.description, tags = excluded.tags,
         kind = excluded.kind, status = excluded.status, priority = excluded.priority, due_ms = excluded.due_ms,
         promise = excluded.promise, changed_ms = excluded.changed_ms, closed_ms = excluded.closed_ms,
         next_ms = excluded.next_ms, then_ms = excluded.then_ms, at_ms = excluded.at_ms, run = excluded.run,
         attempt = excluded.attempt, missed = excluded.missed, waits_for = excluded.waits_for, ran_ms = excluded.ran_ms,
         ok = excluded.ok, result = excluded.result",
        cells![
            task.id,
            task.place,
            promise.owner.root,
            about.title,
            about.description,
            json(&about.tags),
            task.kind.as_str(),
            task.status.as_str(),
            i64::from(about.priority as u8),
            about.due_ms,
            about.parent,
            json(promise),
            now.made_ms,
            now.changed_ms,
            now.closed_ms,
            now.next_ms,
            now.then_ms,
            now.at_ms,
            now.run,
            now.attempt,
            now.missed,
            now.waits_for,
            now.ran_ms,
            now.ok,
            now.result,
        ],
    )
}
