//! `haft tools search`: tools by what they do, for people. It is what models find with tool.search.

use crate::app::App;
use crate::style::{self, FAINT, NAME, paint};
use serde_json::{Value, json};

/// Shows the tools that fit best.
pub(super) fn run(app: &App, query: &str, limit: usize) {
    app.learn_tools();
    let found = app.block_on(app.haft.find_tools(query, limit, &app.caller));
    if app.json {
        let tools: Vec<Value> = found
            .iter()
            .map(|(entry, score)| {
                let spec = entry.spec();
                let score = (f64::from(*score) * 1000.0).round() / 1000.0;
                json!({"name": spec.name, "description": spec.description, "score": score})
            })
            .collect();
        style::pretty(&json!({ "query": query, "tools": tools }));
        return;
    }
    let width = found.iter().map(|(entry, _)| entry.spec().name.as_str().len()).max().unwrap_or(0);
    for (entry, _) in &found {
        let (name, description) = (entry.spec().name.as_str(), &entry.spec().description);
        let first = description.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let shown = haft_core::preview::cut(&haft_core::preview::inert(first), 90);
        style::out(&format!("{}{}  {shown}", paint(NAME, name), " ".repeat(width - name.len())));
    }
    if found.is_empty() {
        style::note(&paint(FAINT, "no tool fits; `haft tools` lists them all"));
    }
}
