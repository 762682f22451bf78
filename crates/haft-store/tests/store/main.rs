//! The store's contract, on a real database file; `tests/postgres` tells the same stories of a server.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod calls;
mod decisions;
mod idempotency;
mod journal;
mod memory;
mod one_call;
mod opening;
mod prune;
mod queue;
mod redact;
mod talks;
mod tasks;
mod work;

use haft_store::Store;
use std::path::PathBuf;

/// A store in a directory of its own.
struct Scene {
    dir: tempfile::TempDir,
    store: Store,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("data/haft.db")).unwrap();
        Self { dir, store }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("data/haft.db")
    }

    /// The same after its process has ended and another has begun.
    fn restarted(self) -> Self {
        let Self { dir, store } = self;
        drop(store);
        let store = Store::open(&dir.path().join("data/haft.db")).unwrap();
        Self { dir, store }
    }

    /// What somebody does to it behind everybody's back. Says how many rows that touched.
    fn tamper(&self, sql: &str) -> usize {
        self.raw().execute(sql, []).unwrap()
    }

    /// How the database goes about a question.
    fn plan(&self, sql: &str) -> String {
        let raw = self.raw();
        let mut statement = raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        lines.map(Result::unwrap).collect::<Vec<_>>().join("\n")
    }

    /// The file as somebody else would open it.
    fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}
