//! Run a command, look at what it really does, keep it, take it back: `cargo run --example confined`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use haft::sandbox::Linux;
use haft::{Call, Haft, Halt, Settings, Store, Workspace, Yes, new_call_id};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Before anything else: programs are started by a small helper, which is forked from what this process
    // is now. Later it may be large and have many threads.
    Linux::prepare()?;
    let dir = std::env::temp_dir().join(format!("haft-example-confined-{}", std::process::id()));
    let (project, data) = (dir.join("project"), dir.join("data"));
    std::fs::create_dir_all(&project)?;
    std::fs::write(project.join("notes.txt"), "one\n")?;
    let store = Store::open(&data.join("haft.db"))?;
    let haft = Haft::new(Workspace::new(&project)?, store, Settings::new(&data));
    let command = json!({"command": "echo two >> notes.txt; mkdir made; cat /etc/shadow; curl -s example.com"});

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // On a copy-on-write view: nothing outside is touched.
        let tried = haft.dry_run(Call::new(new_call_id(), "shell.exec", command.clone()), &Halt::new()).await;
        println!("it would print and change:\n{}", tried.output);

        let done = haft.call(Call::new(new_call_id(), "shell.exec", command), &Yes, &Halt::new()).await;
        println!("notes.txt is now: {:?}", std::fs::read_to_string(project.join("notes.txt"))?);

        haft.undo(&done.call_id).await?;
        println!("and after undo:   {:?}", std::fs::read_to_string(project.join("notes.txt"))?);
        haft.flush().await?;
        std::fs::remove_dir_all(&dir)?;
        Ok(())
    })
}
