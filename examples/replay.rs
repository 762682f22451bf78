//! Replay the audit log: `cargo run --example replay [PATH-TO-haft.db]`. Without a path it makes a log first.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use haft::{Call, Haft, Halt, Nobody, Settings, Store, Workspace, Yes, new_call_id};
use serde_json::json;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let named = std::env::args_os().nth(1).map(PathBuf::from);
    let dir = std::env::temp_dir().join(format!("haft-example-replay-{}", std::process::id()));
    let store = Store::open(named.as_deref().unwrap_or(&dir.join("haft.db")))?;
    if named.is_none() {
        std::fs::create_dir_all(dir.join("project"))?;
        let haft = Haft::new(Workspace::new(&dir.join("project"))?, store.clone(), Settings::new(dir.join("data")));
        let write = Call::new(new_call_id(), "file.write", json!({"path": "a.txt", "content": "secret plans"}));
        let read = Call::new(new_call_id(), "file.read", json!({"path": "/etc/hostname"}));
        runtime.block_on(haft.call(write, &Yes, &Halt::new()));
        runtime.block_on(haft.call(read, &Nobody, &Halt::new()));
    }
    // First make sure that nobody has touched it, then read it from the beginning.
    match runtime.block_on(store.verify(None))? {
        Ok(verified) => println!("the chain holds up to record {}\n", verified.head.seq),
        Err(broken) => println!("the chain is broken at record {}: {}\n", broken.seq, broken.why),
    }
    let mut after = 0;
    loop {
        let records = runtime.block_on(store.records(after, 100, None))?;
        let Some(last) = records.last() else { break };
        after = last.seq;
        for record in &records {
            println!("{:>4} {}", record.seq, record.body);
        }
    }
    if named.is_none() {
        std::fs::remove_dir_all(dir)?;
    }
    Ok(())
}
