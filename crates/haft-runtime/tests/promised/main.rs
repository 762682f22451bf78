//! What was promised is kept: simulated weeks of schedules, on a file and on a server.
//!
//! The server is the one that `HAFT_TEST_POSTGRES` names (`cargo xtask test` starts one).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, reason = "a test that cannot prove anything here says so")]

mod making;
mod many;
#[path = "../../../../tests/real/postgres.rs"]
#[expect(dead_code, reason = "a database is enough here, and nobody stops its server")]
mod real;
mod running;
mod times;

use haft_core::{CallError, Caller};
use haft_runtime::BoxFuture;
use haft_runtime::promised::{Scheduler, Starter, Wanted, Who, make, run_id};
use haft_store::Store;
use haft_store::tasks::{Ended, Task};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use real::Database;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// When stories begin.
const BEGIN: &str = "2026-10-12T00:00";

/// Writes down what it is asked to start.
#[derive(Default)]
struct Ledger {
    started: Mutex<Vec<(String, i64)>>,
    /// What it says instead, if something is in the way.
    trouble: Mutex<Option<CallError>>,
    /// Told when something is started.
    news: tokio::sync::Notify,
}

impl Starter for Ledger {
    fn start<'a>(&'a self, task: &'a Task, at_ms: i64) -> BoxFuture<'a, Result<String, CallError>> {
        Box::pin(async move {
            if let Some(trouble) = self.trouble.lock().unwrap().clone() {
                return Err(trouble);
            }
            self.started.lock().unwrap().push((task.about.title.clone(), at_ms));
            self.news.notify_one();
            Ok(run_id(&task.id, at_ms).to_string())
        })
    }

    fn told<'a>(&'a self, _: &'a Task, run: &'a str) -> BoxFuture<'a, Result<(Ended, String), CallError>> {
        Box::pin(async move { Ok((Ended::Well, run.to_owned())) })
    }
}

/// Where a story takes place.
enum Ground {
    File(tempfile::TempDir),
    Server(Database),
}

impl Ground {
    fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    /// None where there is no server, and that is no failure.
    fn server() -> Option<Self> {
        Database::new().map(Self::Server)
    }

    fn path(&self) -> PathBuf {
        match self {
            Self::File(dir) => dir.path().join("haft.db"),
            Self::Server(database) => database.address().into(),
        }
    }
}

/// A store, somebody who looks after its tasks, and what they started.
struct Scene {
    store: Store,
    scheduler: Scheduler,
    ledger: Arc<Ledger>,
    ground: Ground,
}

impl Scene {
    fn new(ground: Ground) -> Self {
        let store = Store::open(&ground.path()).unwrap();
        let ledger = Arc::new(Ledger::default());
        let starter: Arc<dyn Starter> = ledger.clone();
        Self { scheduler: Scheduler::new(store.clone(), "/p", starter), store, ledger, ground }
    }

    /// A task that calls a tool by this schedule.
    async fn add(&self, title: &str, schedule: &str, made: &str, edit: impl FnOnce(&mut Wanted)) -> Task {
        let mut wanted = Wanted {
            title: title.to_owned(),
            schedule: Some(schedule.to_owned()),
            tool: Some("calc.eval".to_owned()),
            ..Wanted::default()
        };
        edit(&mut wanted);
        make(&self.store, wanted, &who(), at(made)).await.unwrap().0
    }

    /// Ends everything that is under way.
    async fn end_all(&self, ended: Ended, now_ms: i64) {
        for task in self.store.tasks(haft_store::tasks::TaskFilter::default()).await.unwrap() {
            if let Some(run) = &task.standing.run {
                self.store.task_ran_at(&task.id, run, ended, "", now_ms).await.unwrap();
            }
        }
    }

    /// Lives from one moment to another as a machine does that never sleeps: wakes when something is due, and what is
    /// started ends at once.
    async fn live(&self, from: &str, to: &str) {
        let mut now = at(from);
        while let Some(next) = self.store.next_task_ms("/p").await.unwrap().filter(|next| *next <= at(to)) {
            now = now.max(next);
            self.scheduler.tick(now).await.unwrap();
            self.end_all(Ended::Well, now).await;
        }
    }

    /// What was started since this was asked last, as `title time`.
    fn started(&self) -> Vec<String> {
        let started = std::mem::take(&mut *self.ledger.started.lock().unwrap());
        started.iter().map(|(title, at_ms)| format!("{title} {}", shown(*at_ms))).collect()
    }

    async fn task(&self, id: &str) -> Task {
        self.store.task(id).await.unwrap().unwrap()
    }
}

fn who() -> Who {
    Who { root: "/p".to_owned(), caller: Caller::default(), zone: TimeZone::UTC, person: false, labels: Vec::new() }
}

fn at(text: &str) -> i64 {
    let text = if text.len() == 16 { format!("{text}:00Z") } else { text.to_owned() };
    text.parse::<Timestamp>().unwrap().as_millisecond()
}

fn shown(ms: i64) -> String {
    Timestamp::from_millisecond(ms).unwrap().strftime("%m-%dT%H:%M:%S").to_string()
}
