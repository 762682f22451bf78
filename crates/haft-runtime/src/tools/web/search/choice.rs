//! Who searches: whom the configuration names, or else whoever there is a key for, or else somebody who needs none.

use super::adapter::Adapter;
use super::generic::{self, Generic};
use super::{brave, duckduckgo, google, tavily};
use haft_core::CallError;
use haft_core::web::Target;

/// Who searches, as the configuration says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchSettings {
    /// Whom to ask. Without one it is the first that there is a key for.
    pub provider: Option<Provider>,
    /// Where it is, if not at its usual place. For a generic one a template with `{query}`.
    pub url: Option<String>,
    /// The variable that holds the key, if not the usual one.
    pub key_env: Option<String>,
    /// The variable that holds the id of Google's search engine, if not the usual one.
    pub engine_env: Option<String>,
    /// The header in which a generic one takes the key.
    pub header: Option<String>,
    /// Where the parts of a generic one's answer are.
    pub pointers: Option<Pointers>,
}

/// Where the parts of an answer are, as JSON pointers. Those after the first begin at one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointers {
    /// The list.
    pub results: String,
    /// The title of a result.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// Its snippet.
    pub snippet: String,
    /// When it was published.
    pub published: String,
}

impl Default for Pointers {
    fn default() -> Self {
        let [results, title, url, snippet, published] =
            ["/webPages/value", "/name", "/url", "/snippet", "/datePublished"].map(str::to_owned);
        Self { results, title, url, snippet, published }
    }
}

/// Somebody who searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Brave Search.
    Brave,
    /// Tavily.
    Tavily,
    /// Google Programmable Search.
    Google,
    /// A `SearXNG` of the user's own, or one that they trust.
    Searxng,
    /// Bing, or whoever answers like it.
    Bing,
    /// Whoever answers with JSON.
    Generic,
    /// `DuckDuckGo`'s page without scripts.
    Duckduckgo,
}

impl Provider {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 7] =
        [Self::Brave, Self::Tavily, Self::Google, Self::Searxng, Self::Bing, Self::Generic, Self::Duckduckgo];

    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brave => "brave",
            Self::Tavily => "tavily",
            Self::Google => "google",
            Self::Searxng => "searxng",
            Self::Bing => "bing",
            Self::Generic => "generic",
            Self::Duckduckgo => "duckduckgo",
        }
    }

    /// The variable that usually holds its key.
    const fn variable(self) -> Option<&'static str> {
        match self {
            Self::Brave => Some("BRAVE_API_KEY"),
            Self::Tavily => Some("TAVILY_API_KEY"),
            Self::Google => Some("GOOGLE_API_KEY"),
            Self::Bing => Some("BING_API_KEY"),
            Self::Searxng | Self::Generic | Self::Duckduckgo => None,
        }
    }
}

const ENGINE: &str = "GOOGLE_CSE_ID";
const SEARXNG: &str = "SEARXNG_URL";

/// Who is asked.
pub(super) struct Chosen {
    pub(super) adapter: Adapter,
    /// Whether the user named where it is.
    pub(super) named: bool,
    /// The variable that holds its key.
    pub(super) key: Option<String>,
}

type Env<'e> = &'e dyn Fn(&str) -> Option<String>;

/// Chooses whom to ask. Values that are empty count as not set.
pub(super) fn choose(settings: &SearchSettings, env: Env<'_>) -> Result<Chosen, CallError> {
    let env = |name: &str| env(name).filter(|value| !value.is_empty());
    let provider = settings.provider.unwrap_or_else(|| available(&env));
    let base = |usual: &str| {
        let text = settings.url.as_deref().unwrap_or(usual);
        Target::read(text).map_err(|error| CallError::invalid(format!("`web.search.url`: {error}")))
    };
    let variable = settings.key_env.as_deref().or(provider.variable());
    let need = |name: &str| env(name).ok_or_else(|| missing(provider, name));
    let key = || need(variable.unwrap_or_default());
    let adapter = match provider {
        Provider::Brave => Adapter::Brave { base: base(brave::BASE)?, key: key()? },
        Provider::Tavily => Adapter::Tavily { base: base(tavily::BASE)?, key: key()? },
        Provider::Google => {
            let engine = need(settings.engine_env.as_deref().unwrap_or(ENGINE))?;
            Adapter::Google { base: base(google::BASE)?, key: key()?, engine }
        }
        Provider::Searxng => {
            let nowhere = || {
                CallError::failed(
                    "`web.search.url` or the variable SEARXNG_URL has to say where SearXNG is, and neither does",
                )
                .hint("duckduckgo needs no key and no address: choose with `web.search.provider`")
            };
            let url = settings.url.clone().or_else(|| env(SEARXNG)).ok_or_else(nowhere)?;
            let bad = |error: haft_core::web::BadUrl| CallError::invalid(format!("where SearXNG is: {error}"));
            Adapter::Searxng { base: Target::read(&url).map_err(bad)? }
        }
        Provider::Bing | Provider::Generic => Adapter::Generic(like_bing(settings, provider, variable, &env)?),
        Provider::Duckduckgo => Adapter::DuckDuckGo { base: base(duckduckgo::BASE)? },
    };
    let named = settings.url.is_some() || provider == Provider::Searxng;
    Ok(Chosen { adapter, named, key: variable.map(str::to_owned) })
}

fn like_bing(
    settings: &SearchSettings,
    provider: Provider,
    variable: Option<&str>,
    env: Env<'_>,
) -> Result<Generic, CallError> {
    let url = match (&settings.url, provider) {
        (Some(url), _) => url.clone(),
        (None, Provider::Bing) => generic::BING.to_owned(),
        (None, _) => {
            return Err(CallError::invalid("a generic search has no usual place")
                .hint("set `web.search.url` to a URL with {query} in it"));
        }
    };
    let header = settings.header.clone().unwrap_or_else(|| generic::BING_HEADER.to_owned());
    let key = match variable {
        Some(name) => Some((header, env(name).ok_or_else(|| missing(provider, name))?)),
        None => None,
    };
    Ok(Generic { name: provider.name(), url, key, pointers: settings.pointers.clone().unwrap_or_default() })
}

/// The first that everything is there for.
fn available(env: Env<'_>) -> Provider {
    let there = |provider: &Provider| match provider {
        Provider::Searxng => env(SEARXNG).is_some(),
        Provider::Google => env("GOOGLE_API_KEY").is_some() && env(ENGINE).is_some(),
        other => other.variable().is_some_and(|name| env(name).is_some()),
    };
    Provider::ALL.into_iter().find(there).unwrap_or(Provider::Duckduckgo)
}

fn missing(provider: Provider, variable: &str) -> CallError {
    CallError::failed(format!(
        "to search with {} the variable {variable} has to be set, and it is not",
        provider.name()
    ))
    .hint(
        "duckduckgo needs no key, and searxng only `web.search.url` or SEARXNG_URL: choose with `web.search.provider`",
    )
}
