//! `DuckDuckGo`'s page for browsers without scripts: the one that needs no key. It is read as it is, and where it asks
//! whether a person is there, that is the end of it.

use super::adapter::{Ask, Hit, Wanted};
use super::html::{attribute, has_class, tags, text};
use haft_core::web::Target;
use reqwest::Url;

pub(super) const BASE: &str = "https://html.duckduckgo.com/html/";
/// What the page has where it doubts that a person asks.
const DOUBTS: &[&str] = &["anomaly-modal", "challenge-form", "g-recaptcha", "captcha"];
/// What it has where nothing was found.
const NOTHING: &[&str] = &["no-results", "No results", "No more results"];

pub(super) fn wanted(base: &Target, ask: &Ask) -> Wanted {
    let mut query = vec![("q", ask.query.as_str())];
    query.extend(ask.time_range.map(|range| ("df", range.letter())));
    Wanted { accept: "text/html", ..Wanted::get(base.with_query(&query)) }
}

pub(super) fn parse(body: &[u8]) -> Result<Vec<Hit>, String> {
    let page = String::from_utf8_lossy(body);
    let hits = hits(&page);
    let has = |signs: &[&str]| signs.iter().any(|sign| page.contains(sign));
    match hits.is_empty() {
        false => Ok(hits),
        true if has(DOUBTS) => Err("it wants to know whether a person asks, and shows a CAPTCHA".to_owned()),
        true if has(NOTHING) => Ok(Vec::new()),
        true => Err("it is empty, or not the page that was expected".to_owned()),
    }
}

fn hits(page: &str) -> Vec<Hit> {
    let mut hits: Vec<Hit> = Vec::new();
    // A snippet belongs to the link before it, unless that was no hit.
    let mut current = None;
    for tag in tags(page) {
        if has_class(&tag, &["result__a", "result-link"]) {
            current = attribute(&tag, "href").and_then(|href| destination(&href)).map(|url| {
                hits.push(Hit { title: text(tag.content(page)), url, snippet: String::new(), published: None });
                hits.len() - 1
            });
        } else if has_class(&tag, &["result__snippet", "result-snippet"])
            && let Some(hit) = current.take().and_then(|index: usize| hits.get_mut(index))
        {
            hit.snippet = text(tag.content(page));
        }
    }
    hits
}

/// Where a link of the page leads in the end. Advertisements lead nowhere.
fn destination(href: &str) -> Option<String> {
    let url = Url::parse("https://duckduckgo.com/").ok()?.join(href).ok()?;
    let own = url.host_str().is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"));
    if !own {
        return Some(url.into());
    }
    let led = url.query_pairs().find(|(name, _)| name == "uddg").map(|(_, value)| value.into_owned())?;
    let ad = led.contains("duckduckgo.com/y.js") || url.path() == "/y.js";
    (!ad).then_some(led)
}
