//! What a search is, whoever is asked: a question, what is sent, and hits.

use super::{brave, duckduckgo, generic, google, searxng, tavily};
use crate::web::Credential;
use haft_core::CallError;
use haft_core::preview::cut;
use haft_core::web::Target;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const TITLE_MAX: usize = 300;
const SNIPPET_MAX: usize = 600;

/// A question.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Ask {
    pub(super) query: String,
    pub(super) max_results: usize,
    pub(super) topic: Topic,
    pub(super) time_range: Option<Range>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Topic {
    General,
    News,
    Finance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Range {
    Day,
    Week,
    Month,
    Year,
}

impl Range {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    /// The first letter of the word, which is what most take.
    pub(super) fn letter(self) -> &'static str {
        &self.word()[..1]
    }
}

/// What is sent.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) target: Target,
    pub(super) accept: &'static str,
    pub(super) post: Option<Value>,
    pub(super) credential: Option<Credential>,
}

impl Wanted {
    pub(super) fn get(target: Target) -> Self {
        Self { target, accept: "application/json", post: None, credential: None }
    }

    pub(super) fn signed(mut self, credential: Credential) -> Self {
        self.credential = Some(credential);
        self
    }
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Hit {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) published: Option<String>,
}

/// Who is asked, with all that it takes.
pub(super) enum Adapter {
    Brave { base: Target, key: String },
    Tavily { base: Target, key: String },
    Searxng { base: Target },
    Google { base: Target, key: String, engine: String },
    Generic(generic::Generic),
    DuckDuckGo { base: Target },
}

impl Adapter {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Brave { .. } => "brave",
            Self::Tavily { .. } => "tavily",
            Self::Searxng { .. } => "searxng",
            Self::Google { .. } => "google",
            Self::Generic(generic) => generic.name,
            Self::DuckDuckGo { .. } => "duckduckgo",
        }
    }

    /// What is sent for a question.
    pub(super) fn wanted(&self, ask: &Ask) -> Result<Wanted, CallError> {
        match self {
            Self::Brave { base, key } => brave::wanted(base, key, ask),
            Self::Tavily { base, key } => tavily::wanted(base, key, ask),
            Self::Searxng { base } => searxng::wanted(base, ask),
            Self::Google { base, key, engine } => Ok(google::wanted(base, key, engine, ask)),
            Self::Generic(generic) => generic.wanted(ask),
            Self::DuckDuckGo { base } => Ok(duckduckgo::wanted(base, ask)),
        }
    }

    /// What an answer says.
    pub(super) fn parse(&self, body: &[u8]) -> Result<Vec<Hit>, String> {
        match self {
            Self::Brave { .. } => brave::parse(body),
            Self::Tavily { .. } => tavily::parse(body),
            Self::Searxng { .. } => searxng::parse(body),
            Self::Google { .. } => google::parse(body),
            Self::Generic(generic) => generic.parse(body),
            Self::DuckDuckGo { .. } => duckduckgo::parse(body),
        }
    }

    /// What to do when it says no to a request without a key.
    pub(super) const fn when_forbidden(&self) -> &'static str {
        match self {
            Self::Searxng { .. } => "add `json` to `search.formats` in the settings of SearXNG",
            _ => "wait a while, or configure a provider with a key",
        }
    }
}

/// An answer as JSON.
pub(super) fn json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|_| "it is not JSON".to_owned())
}

/// The list at a place of an answer.
pub(super) fn list<'v>(value: &'v Value, pointer: &str) -> Result<&'v [Value], String> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.map(Vec::as_slice).ok_or_else(|| format!("there is no list at `{pointer}`"))
}

/// A hit from an object, by where its parts are. One without a URL is none.
pub(super) fn hit(item: &Value, [title, url, snippet, published]: [&str; 4]) -> Option<Hit> {
    let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str);
    Some(Hit {
        title: text(title).unwrap_or_default().to_owned(),
        url: text(url)?.to_owned(),
        snippet: text(snippet).unwrap_or_default().to_owned(),
        published: text(published).map(str::to_owned),
    })
}

/// Hits as they are shown: on one line each, none twice, none that leads nowhere.
pub(super) fn tidied(hits: Vec<Hit>, most: usize) -> Vec<Hit> {
    let line = |text: &str, columns: usize| cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), columns);
    let mut tidy: Vec<Hit> = Vec::new();
    for hit in hits {
        let Ok(url) = Target::read(&hit.url).map(|target| target.to_string()) else { continue };
        if tidy.len() == most || tidy.iter().any(|known| known.url == url) {
            continue;
        }
        let title = line(&hit.title, TITLE_MAX);
        let title = if title.is_empty() { url.clone() } else { title };
        let published = hit.published.map(|at| line(&at, 40)).filter(|at| !at.is_empty());
        tidy.push(Hit { title, url, snippet: line(&hit.snippet, SNIPPET_MAX), published });
    }
    tidy
}

/// The URL below another one.
pub(super) fn below(base: &Target, path: &str) -> Result<Target, CallError> {
    let text = format!("{}{path}", base.to_string().trim_end_matches('/'));
    Target::read(&text).map_err(|error| CallError::invalid(format!("`web.search.url`: {error}")))
}
