//! Pipelines as a caller meets them: the whole tool layer, a real store, real effects.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, reason = "how much was survived, and what was left out, is worth knowing")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod chaos;
mod lasting;
mod learned;
#[path = "../../../../tests/real/postgres.rs"]
#[expect(dead_code, reason = "others need more of it")]
mod real;
mod running;

use haft_core::{Call, Outcome};
use haft_runtime::approver::{Approver, Nobody};
use haft_runtime::work::workflow;
use haft_runtime::{Haft, Halt, Settings, Workspace, Yes, new_call_id};
use haft_store::Store;
use serde_json::{Value, json};
use std::path::Path;

/// A project, and tool layers around it.
struct Stage {
    dir: tempfile::TempDir,
    haft: Haft,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        Self { haft: layer(dir.path()), dir }
    }

    /// Another process around the same project and store.
    fn another(&self) -> Haft {
        layer(self.dir.path())
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.haft.workspace().root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }

    /// Writes a workflow, and accepts it.
    async fn workflow(&self, name: &str, text: &str) {
        self.file(&format!(".haft/workflows/{name}.yml"), text);
        self.trust().await;
    }

    /// Accepts the workflows there are.
    async fn trust(&self) {
        let (store, workspace) = (self.haft.store(), self.haft.workspace());
        let offers = workflow::offers(store, workspace).await.unwrap();
        workflow::accept(store, workspace, &offers.open).await.unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.haft.workspace().root().join(path)).ok()
    }

    async fn call(&self, tool: &str, args: Value, approver: &dyn Approver) -> Outcome {
        self.haft.call(Call::new(new_call_id(), tool, args), approver, &Halt::new()).await
    }

    /// Runs steps, with somebody who says yes to everything.
    async fn run(&self, steps: Value) -> Outcome {
        self.call("pipeline.run", json!({ "steps": steps }), &Yes).await
    }

    /// The same, with nobody there.
    async fn run_alone(&self, steps: Value) -> Outcome {
        self.call("pipeline.run", json!({ "steps": steps }), &Nobody).await
    }
}

fn layer(dir: &Path) -> Haft {
    let workspace = Workspace::new(&dir.join("project")).unwrap();
    let store = Store::open(&dir.join("haft.db")).unwrap();
    Haft::new(workspace, store, Settings::new(dir.join("data")))
}

/// Where the steps of a run stand, as a call tells it.
fn states(outcome: &Outcome) -> Vec<(String, String)> {
    let steps = outcome.data.as_ref().unwrap()["steps"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    steps.iter().map(|step| (text(&step["id"]), text(&step["state"]))).collect()
}

fn data(outcome: &Outcome) -> &Value {
    assert!(outcome.data.is_some(), "{outcome:?}");
    outcome.data.as_ref().unwrap()
}

fn block<T>(work: impl Future<Output = T>) -> T {
    haft_sandbox::Linux::prepare().unwrap();
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}
