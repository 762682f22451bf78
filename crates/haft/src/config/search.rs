//! Who searches the web, as the configuration says it.

use super::error::ConfigError;
use super::merge::nearer;
use super::placed::{Spot, Text};
use haft_core::web::Target;
use haft_runtime::tools::web::search::{Pointers, Provider, SearchSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who searches the web. Without `provider` it is the first of brave (`BRAVE_API_KEY`), tavily (`TAVILY_API_KEY`), google
/// (`GOOGLE_API_KEY` and `GOOGLE_CSE_ID`), searxng (`SEARXNG_URL`) and bing (`BING_API_KEY`) whose variables are set, else
/// duckduckgo, which needs none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Search {
    /// Whom to ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<SearchProvider>,
    /// Where it is, if not at its usual place. For `generic` and `bing` a URL with `{query}`, and maybe `{count}`,
    /// `{range}` and `{topic}`. A place on this machine or its network may be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    /// The variable of the environment that holds the key, if not the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<Text>,
    /// The variable that holds the id of Google's search engine, if not `GOOGLE_CSE_ID`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_env: Option<Text>,
    /// The header in which `generic` and `bing` take the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Text>,
    /// Where the parts of the answer of `generic` and `bing` are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

/// Where the parts of an answer are, as JSON pointers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The list of results.
    pub results: Text,
    /// In a result: its title.
    pub title: Text,
    /// In a result: its URL.
    pub url: Text,
    /// In a result: its snippet.
    pub snippet: Text,
    /// In a result: when it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Text>,
}

/// Somebody who searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchProvider {
    /// Brave Search.
    Brave,
    /// Tavily.
    Tavily,
    /// Google Programmable Search.
    Google,
    /// A `SearXNG`: `url` or `SEARXNG_URL` says where.
    Searxng,
    /// Bing, or whoever answers like it.
    Bing,
    /// Whoever answers with JSON.
    Generic,
    /// `DuckDuckGo`, which needs no key.
    Duckduckgo,
}

impl From<SearchProvider> for Provider {
    fn from(provider: SearchProvider) -> Self {
        match provider {
            SearchProvider::Brave => Self::Brave,
            SearchProvider::Tavily => Self::Tavily,
            SearchProvider::Google => Self::Google,
            SearchProvider::Searxng => Self::Searxng,
            SearchProvider::Bing => Self::Bing,
            SearchProvider::Generic => Self::Generic,
            SearchProvider::Duckduckgo => Self::Duckduckgo,
        }
    }
}

impl Search {
    pub(super) fn add(&mut self, layer: Self) {
        let Self { provider, url, key_env, engine_env, header, answer } = layer;
        nearer(&mut self.provider, provider);
        nearer(&mut self.url, url);
        nearer(&mut self.key_env, key_env);
        nearer(&mut self.engine_env, engine_env);
        nearer(&mut self.header, header);
        nearer(&mut self.answer, answer);
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        let Self { provider: _, url, key_env, engine_env, header, answer } = self;
        for text in [url, key_env, engine_env, header].into_iter().flatten() {
            visit(&mut text.spot);
        }
        if let Some(Answer { results, title, url, snippet, published }) = answer {
            for text in [results, title, url, snippet].into_iter().chain(published) {
                visit(&mut text.spot);
            }
        }
    }

    /// What the runtime is told.
    pub(super) fn wanted(&self) -> Result<SearchSettings, ConfigError> {
        let provider = self.provider.map(Provider::from);
        if let Some(url) = &self.url {
            check_url(url, provider)?;
        }
        for name in [&self.key_env, &self.engine_env].into_iter().flatten() {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.value.is_empty() || !name.value.chars().all(plain) {
                return Err(ConfigError::malformed(
                    &name.spot,
                    "a variable of the environment is named here, not its value",
                ));
            }
        }
        let text = |text: &Option<Text>| text.as_ref().map(|text| text.value.clone());
        Ok(SearchSettings {
            provider,
            url: text(&self.url),
            key_env: text(&self.key_env),
            engine_env: text(&self.engine_env),
            header: text(&self.header),
            pointers: self.answer.as_ref().map(pointers).transpose()?,
        })
    }
}

fn check_url(url: &Text, provider: Option<Provider>) -> Result<(), ConfigError> {
    let bad = |why: String| Err(ConfigError::malformed(&url.spot, why));
    let template = match provider {
        None => return bad("`provider` has to say who answers at this URL".to_owned()),
        Some(Provider::Generic | Provider::Bing) => true,
        Some(_) => false,
    };
    if template != url.value.contains("{query}") {
        let what = if template { "it needs {query} where the words go" } else { "{query} is for `generic` and `bing`" };
        return bad(what.to_owned());
    }
    let filled = ["{query}", "{count}", "{range}", "{topic}"]
        .iter()
        .fold(url.value.clone(), |text, part| text.replace(part, "x"));
    Target::read(&filled).map(|_| ()).or_else(|error| bad(error.to_string()))
}

fn pointers(answer: &Answer) -> Result<Pointers, ConfigError> {
    let pointer = |text: &Text| {
        let bad = || ConfigError::malformed(&text.spot, "a JSON pointer begins with `/`");
        text.value.starts_with('/').then(|| text.value.clone()).ok_or_else(bad)
    };
    Ok(Pointers {
        results: pointer(&answer.results)?,
        title: pointer(&answer.title)?,
        url: pointer(&answer.url)?,
        snippet: pointer(&answer.snippet)?,
        published: answer.published.as_ref().map(pointer).transpose()?.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(yaml: &str) -> Result<SearchSettings, String> {
        let search: Search = serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
        search.wanted().map_err(|error| error.to_string())
    }

    #[test]
    fn a_provider_is_told_as_it_is_written() {
        let settings = wanted("{provider: searxng, url: 'http://127.0.0.1:8888'}").unwrap();
        assert_eq!(settings.provider, Some(Provider::Searxng));
        let yaml = "{provider: generic, url: 'https://f.test/?q={query}', key_env: K, header: X-K,
            answer: {results: /r, title: /t, url: /u, snippet: /s}}";
        let settings = wanted(yaml).unwrap();
        assert_eq!((settings.key_env.as_deref(), settings.pointers.unwrap().published.as_str()), (Some("K"), ""));
    }

    #[test]
    fn what_cannot_work_is_said_where_it_is_written() {
        for (yaml, expected) in [
            ("{url: 'https://a.test'}", "`provider` has to say who"),
            ("{provider: generic, url: 'https://a.test'}", "it needs {query}"),
            ("{provider: brave, url: 'https://a.test/?q={query}'}", "is for `generic`"),
            ("{provider: searxng, url: 'ftp://a.test'}", "only http and https"),
            ("{provider: brave, key_env: 'BSA-abc.def'}", "not its value"),
            ("{provider: bing, answer: {results: r, title: /t, url: /u, snippet: /s}}", "begins with `/`"),
        ] {
            let error = wanted(yaml).unwrap_err();
            assert!(error.contains(expected), "{yaml}: {error}");
        }
        assert!(wanted("{provider: altavista}").is_err() && wanted("{key: abc}").is_err());
    }
}
