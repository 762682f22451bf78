//! The store's contract, on a real PostgreSQL server: the same stories as on a file.
//!
//! The server is the one that `HAFT_TEST_POSTGRES` names (`cargo xtask test` starts one); each test has a database of its
//! own there.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

#[path = "../store/calls.rs"]
mod calls;
#[path = "../store/decisions.rs"]
mod decisions;
#[path = "../store/journal.rs"]
mod journal;
#[path = "../store/tasks.rs"]
mod tasks;
#[path = "../store/work.rs"]
mod work;

use haft_store::Store;
use postgres::{Client, NoTls};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A store in a database of its own.
struct Scene {
    store: Store,
    name: String,
}

/// The address of a database on the server.
fn address(database: &str) -> String {
    let server = std::env::var("HAFT_TEST_POSTGRES").expect("`cargo xtask test` starts a server and says where it is");
    format!("{server}&dbname={database}")
}

fn admin() -> Client {
    Client::connect(&address("postgres"), NoTls).unwrap()
}

impl Scene {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("haft_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        admin().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        let store = Store::open(&PathBuf::from(address(&name))).unwrap();
        Self { store, name }
    }

    fn path(&self) -> PathBuf {
        address(&self.name).into()
    }

    /// The same after its process has ended and another has begun.
    fn restarted(mut self) -> Self {
        self.store = Store::open(&self.path()).unwrap();
        self
    }

    /// What somebody does to it behind everybody's back. Says how many rows that touched.
    fn tamper(&self, sql: &str) -> usize {
        let touched = Client::connect(&address(&self.name), NoTls).unwrap().execute(sql, &[]).unwrap();
        usize::try_from(touched).unwrap()
    }
}

impl Scene {
    /// How the database goes about a question.
    fn plan(&self, sql: &str) -> String {
        let mut client = Client::connect(&address(&self.name), NoTls).unwrap();
        client.batch_execute("ANALYZE tasks").unwrap();
        let rows = client.query(&format!("EXPLAIN {sql}"), &[]).unwrap();
        rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = admin().batch_execute(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}
