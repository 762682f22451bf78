//! Whoever answers with JSON: a URL to fill in, a header for the key, and where the parts of the answer are. Bing and its
//! like are of this kind.

use super::adapter::{Ask, Hit, Wanted, hit, json, list};
use super::choice::Pointers;
use crate::web::Credential;
use haft_core::CallError;
use haft_core::web::Target;

pub(super) const BING: &str = "https://api.bing.microsoft.com/v7.0/search?q={query}&count={count}&freshness={range}";
pub(super) const BING_HEADER: &str = "Ocp-Apim-Subscription-Key";

/// How one of them is asked.
pub(super) struct Generic {
    pub(super) name: &'static str,
    /// A URL with `{query}`, and maybe `{count}`, `{range}` and `{topic}`.
    pub(super) url: String,
    /// The header and the key that it takes.
    pub(super) key: Option<(String, String)>,
    pub(super) pointers: Pointers,
}

impl Generic {
    pub(super) fn wanted(&self, ask: &Ask) -> Result<Wanted, CallError> {
        let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let range = ask.time_range.map_or_else(String::new, |range| {
            let word = range.word();
            format!("{}{}", word[..1].to_uppercase(), &word[1..])
        });
        let filled = self
            .url
            .replace("{query}", &encoded(&ask.query))
            .replace("{count}", &ask.max_results.to_string())
            .replace("{range}", &range)
            .replace("{topic}", &format!("{:?}", ask.topic).to_lowercase());
        // What was not asked for is not sent empty.
        let filled = filled.replace("&freshness=&", "&").trim_end_matches("&freshness=").to_owned();
        let bad = |error: haft_core::web::BadUrl| CallError::invalid(format!("`web.search.url`: {error}"));
        let target = Target::read(&filled).map_err(bad)?;
        let wanted = Wanted::get(target.clone());
        Ok(match &self.key {
            Some((header, key)) => wanted.signed(Credential::header(&target, header, key, key)?),
            None => wanted,
        })
    }

    pub(super) fn parse(&self, body: &[u8]) -> Result<Vec<Hit>, String> {
        let value = json(body)?;
        let Pointers { results, title, url, snippet, published } = &self.pointers;
        // An answer of the kind that Bing gives says nothing of the web where nothing was found.
        if self.name == "bing" && value.get("webPages").is_none() && value.get("_type").is_some() {
            return Ok(Vec::new());
        }
        Ok(list(&value, results)?.iter().filter_map(|item| hit(item, [title, url, snippet, published])).collect())
    }
}
