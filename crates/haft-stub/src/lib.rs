//! A model that says what it is told to: test only.
//!
//! ```text
//! script ──► Reply ──► speak::{anthropic, chat, responses, gemini} ──► bytes over real HTTP
//!                ▲
//! request ──► Asked ──► judge: would the provider take it?
//! ```
//!
//! It is a server on this machine that writes what the providers write: event names, pings, ids, counts, marks on thoughts.
//! It knows nothing of haft, so that what haft makes of it is proven by something else than itself. It refuses what the
//! providers refuse: a tool whose schema breaks their rules, a call without its result, or a result without its call.

mod judge;
mod reply;
mod script;
mod server;
mod speak;

pub use judge::fault;
pub use reply::{Counted, Part, Reply, Trouble};
pub use script::{Answers, Script};
pub use server::{Asked, Stub};

use serde::{Deserialize, Serialize};

/// A way of speaking to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Responses.
    Responses,
    /// `OpenAI` Chat Completions.
    Chat,
    /// Google Gemini, and the same on Vertex.
    Gemini,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Responses, Self::Chat, Self::Gemini];

    /// As configurations call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Gemini => "gemini",
        }
    }

    /// By the path of a request.
    fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        [
            ("/v1/messages", Self::Anthropic),
            ("/responses", Self::Responses),
            ("/chat/completions", Self::Chat),
            (":streamGenerateContent", Self::Gemini),
        ]
        .into_iter()
        .find(|(end, _)| path.ends_with(end))
        .map(|(_, wire)| wire)
    }
}
