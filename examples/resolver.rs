//! A custom resolver: a voice of your own in the approval chain. `cargo run --example resolver`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use haft::{
    Call, ChainQuestion, Decision, Haft, Nobody, Resolver, ResolverError, Settings, Store, Vote, Workspace, new_call_id,
};
use serde_json::json;
use std::sync::Arc;

/// Lets an agent write its notes unasked, and nobody touch the changelog.
struct HouseRules;

impl Resolver for HouseRules {
    fn name(&self) -> &'static str {
        "house rules"
    }

    fn resolve(&self, question: ChainQuestion<'_>) -> Result<Vote, ResolverError> {
        let places = &question.facts.places;
        if places.iter().any(|place| place.shown == "CHANGELOG.md") {
            return Ok(Some((Decision::Deny, "the changelog is written by people".to_owned())));
        }
        let notes = !places.is_empty() && places.iter().all(|place| place.shown.starts_with("notes/"));
        Ok(notes.then(|| (Decision::Allow, "agents keep notes".to_owned())))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("haft-example-resolver-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("project"))?;
    let mut settings = Settings::new(dir.join("data"));
    settings.chain.add(Arc::new(HouseRules));
    let store = Store::open(&dir.join("haft.db"))?;
    let haft = Haft::new(Workspace::new(&dir.join("project"))?, store, settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    for path in ["notes/today.md", "CHANGELOG.md", "src/main.rs"] {
        let call = Call::new(new_call_id(), "file.write", json!({"path": path, "content": "x"}));
        // Explaining shows every voice and runs nothing; `haft.call(call, &Nobody, …)` would decide the same.
        let explained = runtime.block_on(haft.explain(call))?;
        let verdict = explained.verdict;
        println!("{path}: {:?} by {}: {}", verdict.decision, verdict.by, verdict.reason);
    }
    let call = Call::new(new_call_id(), "file.write", json!({"path": "notes/today.md", "content": "x"}));
    let outcome = runtime.block_on(haft.call(call, &Nobody, &haft::Halt::new()));
    println!("{}", outcome.output);
    runtime.block_on(haft.flush())?;
    Ok(std::fs::remove_dir_all(&dir)?)
}
