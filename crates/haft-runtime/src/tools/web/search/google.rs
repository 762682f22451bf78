//! Google Programmable Search.

use super::adapter::{Ask, Hit, Wanted, hit, json, list};
use crate::web::Credential;
use haft_core::web::Target;

pub(super) const BASE: &str = "https://www.googleapis.com/customsearch/v1";
/// It gives no more at once.
const MOST: usize = 10;

pub(super) fn wanted(base: &Target, key: &str, engine: &str, ask: &Ask) -> Wanted {
    let count = ask.max_results.min(MOST).to_string();
    let mut query = vec![("cx", engine), ("q", ask.query.as_str()), ("num", &count)];
    let since = ask.time_range.map(|range| format!("{}1", range.letter()));
    query.extend(since.as_deref().map(|since| ("dateRestrict", since)));
    Wanted::get(base.with_query(&query)).signed(Credential::query(base, "key", key))
}

pub(super) fn parse(body: &[u8]) -> Result<Vec<Hit>, String> {
    let value = json(body)?;
    // Where nothing was found there is no list, but the rest of the answer.
    if value.get("items").is_none() && value.get("searchInformation").is_some() {
        return Ok(Vec::new());
    }
    let published = "/pagemap/metatags/0/article:published_time";
    Ok(list(&value, "/items")?
        .iter()
        .filter_map(|item| hit(item, ["/title", "/link", "/snippet", published]))
        .collect())
}
