//! What every door relies on: the inbox, asking back, tools about tools, cancelling by id.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod asking;
mod deciders;
mod executed;
mod forms;
mod hooks;
mod inbox;
mod panics;
mod repeats;
mod tools;

use haft_core::{Call, Outcome};
use haft_runtime::{
    Approver, BoxFuture, Decider, Form, Haft, Halt, Question, Said, Settings, Workspace, Written, new_call_id,
};
use haft_store::{Approval, Store};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A project, and two tool layers over its store as two processes would have them.
struct Stage {
    dir: tempfile::TempDir,
    here: Arc<Haft>,
    there: Arc<Haft>,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        let haft = || {
            let workspace = Workspace::new(&dir.path().join("project")).unwrap();
            let store = Store::open(&dir.path().join("haft.db")).unwrap();
            Arc::new(Haft::new(workspace, store, Settings::new(dir.path().join("data"))))
        };
        let (here, there) = (haft(), haft());
        Self { dir, here, there }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("project").join(name)
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    /// Waits until a question is stored.
    async fn waiting(&self) -> Approval {
        loop {
            if let Some(found) = self.there.store().approvals(true).await.unwrap().pop() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn call(tool: &str, args: Value) -> Call {
    Call::new(new_call_id(), tool, args)
}

fn kind(outcome: &Outcome) -> &'static str {
    outcome.error.as_ref().map_or("", |error| error.kind.as_str())
}

/// Somebody at a door, with some patience, and what they say to a question, a form and a model's request.
struct Person {
    patience: Duration,
    says: Said,
    writes: Written,
    asked: AtomicUsize,
    /// Whether they look after calls that go on as tasks.
    has_tasks: bool,
}

impl Person {
    /// Nobody is at the door, but the call waits so long for the inbox.
    fn absent(patience: Duration) -> Self {
        Self { patience, says: Said::Nobody, writes: Written::Nobody, asked: AtomicUsize::new(0), has_tasks: false }
    }

    fn saying(says: Said) -> Self {
        Self { says, ..Self::absent(Duration::ZERO) }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Approver for Person {
    fn decider(&self) -> Decider {
        Decider::embedder("person")
    }
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(self.says.clone()))
    }
    fn patience(&self) -> Duration {
        self.patience
    }
    fn elicit<'a>(&'a self, _: &'a Form) -> BoxFuture<'a, Written> {
        Box::pin(std::future::ready(self.writes.clone()))
    }
    fn has_tasks(&self) -> bool {
        self.has_tasks
    }
    fn sample<'a>(&'a self, request: &'a Value) -> BoxFuture<'a, Result<Value, haft_core::CallError>> {
        Box::pin(std::future::ready(Ok(request.clone())))
    }
}

const LONG: Duration = Duration::from_mins(1);

/// Runs a test's work.
fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// Never cancelled.
fn free() -> Halt {
    Halt::new()
}
