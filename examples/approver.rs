//! A custom approver: who is asked, and how, is yours to say. `cargo run --example approver`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use haft::{Approver, BoxFuture, Call, Decider, Haft, Halt, Question, Said, Settings, Store, Workspace, new_call_id};
use serde_json::json;

/// Approves additions, and asks for smaller changes when a call removes lines.
struct OnlyAdditions;

impl Approver for OnlyAdditions {
    fn decider(&self) -> Decider {
        Decider::embedder("only-additions")
    }

    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Said> {
        // The diff is the real effect of this call, computed before anything is changed.
        let diff = question.diff.clone().unwrap_or_default();
        println!("asked about {}\n{diff}", question.preview);
        let removes = diff.lines().any(|line| line.starts_with('-') && !line.starts_with("---"));
        let said = if removes { Said::Reject("do not remove lines".to_owned()) } else { Said::Once };
        Box::pin(std::future::ready(said))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("haft-example-approver-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("project"))?;
    let store = Store::open(&dir.join("haft.db"))?;
    let haft = Haft::new(Workspace::new(&dir.join("project"))?, store, Settings::new(dir.join("data")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let calls = [
        ("file.write", json!({"path": "list.txt", "content": "one\n"})),
        ("file.edit", json!({"path": "list.txt", "old_string": "one\n", "new_string": "one\ntwo\n"})),
        ("file.edit", json!({"path": "list.txt", "old_string": "one\n", "new_string": ""})),
    ];
    for (tool, args) in calls {
        let call = Call::new(new_call_id(), tool, args);
        let outcome = runtime.block_on(haft.call(call, &OnlyAdditions, &Halt::new()));
        println!("=> {}{}\n", outcome.output, outcome.error.map(|error| error.message).unwrap_or_default());
    }
    runtime.block_on(haft.flush())?;
    Ok(std::fs::remove_dir_all(&dir)?)
}
