//! What leaves this machine, as an agent and a person meet it: the whole tool layer, and a server that plays the world.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod consent;
mod memory;
mod profiles;
mod search;
mod secrets;
mod server;

use haft_core::host::HostRules;
use haft_core::{Call, Outcome, SessionId};
use haft_runtime::secrets::Secrets;
use haft_runtime::tools::web::search::SearchSettings;
use haft_runtime::{Approver, BoxFuture, Decider, Haft, Halt, Question, Said, Settings, Workspace, new_call_id};
use haft_store::Store;
use serde_json::Value;
use server::Server;
use std::sync::Mutex;

/// A project, and a tool layer that may reach some servers on this machine.
struct Stage {
    dir: tempfile::TempDir,
    haft: Haft,
    person: Person,
}

impl Stage {
    /// One that may reach these servers.
    fn reaching(servers: &[&Server]) -> Self {
        Self::with(servers, SearchSettings::default())
    }

    fn with(servers: &[&Server], search: SearchSettings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        let haft = Self::layer(dir.path(), servers, search);
        Self { dir, haft, person: Person::default() }
    }

    /// One that may reach these servers, with secrets.
    fn keeping(servers: &[&Server], secrets: impl FnOnce(&std::path::Path) -> std::sync::Arc<Secrets>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        let mut settings = Self::settings(dir.path(), servers, SearchSettings::default());
        settings.secrets = secrets(dir.path());
        let haft = Self::layer_with(dir.path(), settings);
        Self { dir, haft, person: Person::default() }
    }

    /// A tool layer over the same files, as another process would have it.
    fn layer(dir: &std::path::Path, servers: &[&Server], search: SearchSettings) -> Haft {
        Self::layer_with(dir, Self::settings(dir, servers, search))
    }

    fn layer_with(dir: &std::path::Path, settings: Settings) -> Haft {
        let workspace = Workspace::new(&dir.join("project")).unwrap();
        Haft::new(workspace, Store::open(&dir.join("haft.db")).unwrap(), settings)
    }

    fn settings(dir: &std::path::Path, servers: &[&Server], search: SearchSettings) -> Settings {
        let mut settings = Settings::new(dir.join("data"));
        let private: Vec<_> = servers.iter().map(|server| server.authority().parse().unwrap()).collect();
        settings.web.allow_private = HostRules::from(private);
        settings.web.search = search;
        settings
    }

    async fn call(&self, tool: &str, args: Value) -> Outcome {
        self.call_in("default", tool, args).await
    }

    async fn call_in(&self, session: &str, tool: &str, args: Value) -> Outcome {
        let mut call = Call::new(new_call_id(), tool, args);
        call.session = SessionId::new(session).unwrap();
        self.haft.call(call, &self.person, &Halt::new()).await
    }

    /// How often the person was asked since the last time.
    fn asked(&self) -> usize {
        self.person.asked.lock().unwrap().drain(..).count()
    }

    /// All that is on disk: the log, what is kept, the profiles.
    async fn on_disk(&self) -> String {
        self.haft.flush().await.unwrap();
        let records = self.haft.store().records(0, 1000, None).await.unwrap();
        serde_json::to_string(&records).unwrap()
    }
}

/// Somebody who says yes, and remembers what they were asked.
#[derive(Default)]
struct Person {
    asked: Mutex<Vec<String>>,
    reasons: Mutex<Vec<String>>,
}

impl Approver for Person {
    fn decider(&self) -> Decider {
        Decider::embedder("person")
    }
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        self.asked.lock().unwrap().push(question.preview.clone());
        self.reasons.lock().unwrap().push(question.verdict.reason.clone());
        Box::pin(std::future::ready(Said::Once))
    }
}

fn kind(outcome: &Outcome) -> &'static str {
    outcome.error.as_ref().map_or("", |error| error.kind.as_str())
}

/// Runs a test's work.
fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}
