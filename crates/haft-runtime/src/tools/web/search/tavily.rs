//! Tavily.

use super::adapter::{Ask, Hit, Topic, Wanted, below, hit, json, list};
use crate::web::Credential;
use haft_core::CallError;
use haft_core::web::Target;
use serde_json::json as value;

pub(super) const BASE: &str = "https://api.tavily.com";

pub(super) fn wanted(base: &Target, key: &str, ask: &Ask) -> Result<Wanted, CallError> {
    let topic = match ask.topic {
        Topic::General => "general",
        Topic::News => "news",
        Topic::Finance => "finance",
    };
    let mut post = value!({"query": ask.query, "max_results": ask.max_results, "topic": topic});
    if let Some(range) = ask.time_range {
        post["time_range"] = range.word().into();
    }
    let credential = Credential::header(base, "authorization", &format!("Bearer {key}"), key)?;
    Ok(Wanted { post: Some(post), ..Wanted::get(below(base, "/search")?).signed(credential) })
}

pub(super) fn parse(body: &[u8]) -> Result<Vec<Hit>, String> {
    let value = json(body)?;
    let found = list(&value, "/results")?.iter();
    Ok(found.filter_map(|item| hit(item, ["/title", "/url", "/content", "/published_date"])).collect())
}
