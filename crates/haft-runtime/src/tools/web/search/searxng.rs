//! `SearXNG`, wherever the user runs it.

use super::adapter::{Ask, Hit, Topic, Wanted, below, hit, json, list};
use haft_core::CallError;
use haft_core::web::Target;

pub(super) fn wanted(base: &Target, ask: &Ask) -> Result<Wanted, CallError> {
    let categories = if ask.topic == Topic::News { "news" } else { "general" };
    let mut query = vec![("q", ask.query.as_str()), ("format", "json"), ("categories", categories)];
    query.extend(ask.time_range.map(|range| ("time_range", range.word())));
    Ok(Wanted::get(below(base, "/search")?.with_query(&query)))
}

pub(super) fn parse(body: &[u8]) -> Result<Vec<Hit>, String> {
    let value = json(body)?;
    let found = list(&value, "/results")?.iter();
    Ok(found.filter_map(|item| hit(item, ["/title", "/url", "/content", "/publishedDate"])).collect())
}
