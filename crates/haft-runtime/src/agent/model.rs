//! A model, as the loop knows it: it is asked, and speaks.

use crate::tool::BoxFuture;
use haft_core::agent::turns::Failure;
use haft_core::agent::wire::{Request, Wire};
use haft_core::agent::{Block, Delta};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Which model: a provider's name and the model's own, `anthropic/claude-sonnet-4-5`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelRef {
    /// Whose: a name from the list of providers.
    pub provider: String,
    /// The model, as its provider calls it.
    pub model: String,
}

impl ModelRef {
    /// Reads `provider/model`. A model's own name may have slashes.
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, model) = text.trim().split_once('/')?;
        let fine = |part: &str| !part.is_empty() && part.chars().all(|c| !c.is_control() && !c.is_whitespace());
        (fine(provider) && fine(model)).then(|| Self { provider: provider.to_owned(), model: model.to_owned() })
    }
}

impl TryFrom<String> for ModelRef {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| {
            format!("`{}` is no model: say `provider/model`, as `haft models` does", haft_core::preview::inert(&text))
        })
    }
}

impl From<ModelRef> for String {
    fn from(model: ModelRef) -> Self {
        model.to_string()
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// What is known of a model. Prices are in millionths of a dollar for a million tokens, so that sums are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// How many tokens it takes at once.
    pub window: u64,
    /// How many it writes at the most.
    pub max_output: u32,
    /// What it costs; none if nobody knows.
    pub price: Option<Price>,
}

/// What a million tokens cost, in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Price {
    /// Read.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from the provider's memory.
    pub cache_read: u64,
    /// Put there.
    pub cache_write: u64,
}

/// How much of a model's window something takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// How many tokens.
    pub tokens: u64,
    /// Whether the provider has counted them; else it is about that many.
    pub exact: bool,
}

/// What a model is asked. The wire format makes a body of it.
pub type Prompt<'p> = Request<'p>;

/// Somebody who speaks.
pub trait Model: Send + Sync {
    /// Which.
    fn name(&self) -> &ModelRef;

    /// What is known of it.
    fn facts(&self) -> Facts;

    /// In which form it is spoken to.
    fn wire(&self) -> Wire;

    /// Asks, and gives what is said as it comes. Returns when all is said. `seed` tells this answer from all others of the
    /// conversation. What is asked is taken in at once, so that nobody has to keep it meanwhile. Nobody asks twice by itself
    /// here: whether to ask again is for the loop to say.
    fn ask(
        self: Arc<Self>,
        prompt: &Prompt<'_>,
        seed: &str,
        said: mpsc::Sender<Delta>,
    ) -> BoxFuture<'static, Result<(), Failure>>;

    /// How many tokens a prompt is: as the provider counts where it does, else about.
    fn count<'a>(&'a self, prompt: &'a Prompt<'a>) -> BoxFuture<'a, Counted> {
        Box::pin(std::future::ready(about(prompt)))
    }
}

/// What a picture takes, about.
const PICTURE: usize = 1600;

/// About how many tokens a prompt is.
pub fn about(prompt: &Prompt<'_>) -> Counted {
    let estimate = haft_core::tokens::estimate;
    let system: usize = prompt.system.iter().map(|text| estimate(text)).sum();
    let each = |tool: &haft_core::agent::wire::Offered<'_>| {
        estimate(tool.name) + estimate(&tool.spec.description) + estimate(&tool.input.to_string())
    };
    let tools: usize = prompt.tools.iter().map(each).sum();
    let block = |block: &Block| match block {
        Block::Text { text } | Block::Thinking { text, .. } => estimate(text),
        Block::Use { name, input, .. } => estimate(name) + estimate(&input.to_string()),
        Block::Result { text, images, .. } => estimate(text) + images.len() * PICTURE,
        Block::Image(_) => PICTURE,
        Block::Foreign { value, .. } => estimate(&value.to_string()),
    };
    let said: usize = prompt.history.iter().flat_map(|message| &message.blocks).map(block).sum();
    Counted { tokens: u64::try_from(system + tools + said).unwrap_or(u64::MAX), exact: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_by_its_provider_and_its_own_name() {
        let read = ModelRef::parse("openrouter/anthropic/claude-sonnet-4.5").unwrap();
        assert_eq!((read.provider.as_str(), read.model.as_str()), ("openrouter", "anthropic/claude-sonnet-4.5"));
        assert_eq!(read.to_string(), "openrouter/anthropic/claude-sonnet-4.5");
        for bad in ["", "gpt", "/gpt", "openai/", "a b/c", "a/b\nc"] {
            assert_eq!(ModelRef::parse(bad), None, "{bad:?}");
        }
    }
}
