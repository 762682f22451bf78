//! Embed haft and make a call: `cargo run --example embed`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use haft::{Call, Haft, Halt, Nobody, Settings, Store, Workspace, new_call_id};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A project, a place to remember things, and the careful defaults: reading inside the project is
    // free, everything else is asked.
    let project = std::env::current_dir()?;
    let data = std::env::temp_dir().join(format!("haft-example-embed-{}", std::process::id()));
    let store = Store::open(&data.join("haft.db"))?;
    let haft = Haft::new(Workspace::discover(&project)?, store, Settings::new(&data));

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let read = Call::new(new_call_id(), "file.glob", json!({"pattern": "*.md"}));
        let outcome = haft.call(read, &Nobody, &Halt::new()).await;
        println!("{}\n  decided by {}: {}", outcome.output, outcome.verdict.by, outcome.verdict.reason);

        // Nobody is there to approve a write: the call is stored under an approval id and does not run.
        let write = Call::new(new_call_id(), "file.write", json!({"path": "hello.txt", "content": "hi"}));
        let outcome = haft.call(write, &Nobody, &Halt::new()).await;
        println!("{}", serde_json::to_string_pretty(&outcome.error)?);
        haft.flush().await?;
        std::fs::remove_dir_all(&data)?;
        Ok(())
    })
}
