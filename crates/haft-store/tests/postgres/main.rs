//! The store's contract, on a real PostgreSQL server: the same stories as on a file.
//!
//! The server is the one that `HAFT_TEST_POSTGRES` names (`cargo xtask test` starts one); each test has a database of its
//! own there.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, reason = "a test that cannot prove anything here says so")]

#[path = "../store/calls.rs"]
mod calls;
#[path = "../store/decisions.rs"]
mod decisions;
#[path = "../store/idempotency.rs"]
mod idempotency;
#[path = "../store/journal.rs"]
mod journal;
#[path = "../store/prune.rs"]
mod prune;
#[path = "../store/queue.rs"]
mod queue;
#[path = "../store/redact.rs"]
mod redact;
#[path = "../store/talks.rs"]
mod talks;
#[path = "../store/tasks.rs"]
mod tasks;
#[path = "../store/work.rs"]
mod work;

mod copying;
mod losing;
#[path = "../store/memory.rs"]
mod memory;
#[path = "../../../../tests/real/postgres.rs"]
mod real;
mod sharing;
mod tls;

use haft_store::Store;
use real::Database;
use std::path::PathBuf;

/// A store in a database of its own.
struct Scene {
    store: Store,
    database: Database,
}

impl Scene {
    #[expect(clippy::disallowed_methods, reason = "stories that are told of files, too, cannot be left out one by one")]
    fn new() -> Self {
        // All tests of this program are of a server: who does without runs none of them.
        let Some(database) = Database::new() else { std::process::exit(0) };
        let store = Store::open(&PathBuf::from(database.address())).unwrap();
        Self { store, database }
    }

    fn path(&self) -> PathBuf {
        self.database.address().into()
    }

    /// The same after its process has ended and another has begun.
    fn restarted(mut self) -> Self {
        self.store = Store::open(&self.path()).unwrap();
        self
    }

    /// What somebody does to it behind everybody's back. Says how many rows that touched.
    fn tamper(&self, sql: &str) -> usize {
        let client = postgres::Client::connect(&self.database.address(), postgres::NoTls);
        usize::try_from(client.unwrap().execute(sql, &[]).unwrap()).unwrap()
    }

    /// How the database goes about a question.
    fn plan(&self, sql: &str) -> String {
        let mut client = postgres::Client::connect(&self.database.address(), postgres::NoTls).unwrap();
        client.batch_execute("ANALYZE tasks").unwrap();
        let rows = client.query(&format!("EXPLAIN {sql}"), &[]).unwrap();
        rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}
