//! browser.*: a real browser, one for each session.

mod navigate;
mod page;

use crate::browser::page::{Aside, Place};
use crate::tool::{Reply, Tool};
use haft_core::outcome::Label;
use serde_json::{Value, json};
use std::sync::Arc;

/// The tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        navigate::tool(),
        page::content(),
        page::click(),
        page::type_into(),
        page::evaluate(),
        page::screenshot(),
        page::close(),
    ]
}

/// What is said about a page, marked as the word of strangers.
fn reply(place: &Place, aside: Aside, text: &str, mut data: Value) -> Reply {
    let title = if place.title.is_empty() { "(no title)" } else { &place.title };
    let head = format!("{}{title}\n{}", aside.lines(), place.url);
    let text = if text.is_empty() { head } else { format!("{head}\n\n{text}") };
    data["title"] = place.title.as_str().into();
    data["url"] = place.url.as_str().into();
    if !aside.downloads.is_empty() {
        let one = |(path, bytes): &(String, u64)| json!({ "path": path, "bytes": bytes });
        data["downloads"] = aside.downloads.iter().map(one).collect();
    }
    Reply { warnings: aside.warnings, labels: vec![Label::Untrusted], ..Reply::text(text).data(data) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_done_with_one_browser_is_done_in_order() {
        for tool in super::all() {
            assert!(!tool.spec().effects.concurrency_safe, "{}", tool.spec().name);
        }
    }
}
