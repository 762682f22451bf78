//! Brave Search.

use super::adapter::{Ask, Hit, Topic, Wanted, below, hit, json, list};
use super::html;
use crate::web::Credential;
use haft_core::CallError;
use haft_core::web::Target;

pub(super) const BASE: &str = "https://api.search.brave.com/res/v1";

pub(super) fn wanted(base: &Target, key: &str, ask: &Ask) -> Result<Wanted, CallError> {
    let path = if ask.topic == Topic::News { "/news/search" } else { "/web/search" };
    let count = ask.max_results.to_string();
    let mut query = vec![("q", ask.query.as_str()), ("count", &count)];
    let freshness = ask.time_range.map(|range| format!("p{}", range.letter()));
    query.extend(freshness.as_deref().map(|freshness| ("freshness", freshness)));
    let target = below(base, path)?.with_query(&query);
    let credential = Credential::header(base, "x-subscription-token", key, key)?;
    Ok(Wanted::get(target).signed(credential))
}

pub(super) fn parse(body: &[u8]) -> Result<Vec<Hit>, String> {
    let value = json(body)?;
    // News come by themselves; the web comes beside other kinds, and not at all where nothing was found.
    let found = match (value.get("results"), value.get("web")) {
        (None, None) if value.get("query").is_some() => return Ok(Vec::new()),
        (Some(_), _) => list(&value, "/results")?,
        _ => list(&value, "/web/results")?,
    };
    let found = found.iter().filter_map(|item| hit(item, ["/title", "/url", "/description", "/page_age"]));
    // What was searched for is marked up.
    Ok(found.map(|hit| Hit { title: html::text(&hit.title), snippet: html::text(&hit.snippet), ..hit }).collect())
}
