//! Which models are asked, where, and how far they may go, as the configuration says it.
//!
//! Where a provider is and which key it gets is the user's own to say: whoever could name another place for a provider's
//! requests would get its key and every conversation. What a model costs is, too: by another price, a limit would be none.

use super::error::ConfigError;
use super::merge::nearer;
use super::placed::{Placed, Spot, Text};
use haft_core::agent::wire;
use haft_core::web::Target;
use haft_runtime::agent::model::Price;
use haft_runtime::agent::settings::Provider;
use haft_runtime::agent::{AgentSettings, Facts, ModelRef, facts, providers};
use haft_runtime::secrets::is_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Which models are asked, and where.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Models {
    /// The models to ask, as `provider/model`: the first choice, then those to fall back to. Absent: the first provider
    /// with a key, else a server on this machine.
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Placed<Words>>,
    /// How hard they think: off, low, medium, high or max. Absent: as each model does by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// How many tokens a model writes at once, at the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_output: Option<Placed<u32>>,
    /// Whether providers' own search of the web is offered to their models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_search: Option<bool>,
    /// Providers besides those that haft knows, or what is different about one of these, by name. Not for projects.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<Text, ProviderSaid>,
    /// What models take and cost, by `provider/model`, where haft does not know or is wrong. Not for projects.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub known: BTreeMap<Text, Known>,
}

/// One word, or a list of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Words {
    /// One.
    One(String),
    /// Several, in order.
    Many(Vec<String>),
}

/// The words, each where all of them were written.
fn texts(words: &Placed<Words>) -> Vec<Text> {
    let text = |word: &String| Text::new(word.as_str(), words.spot.clone());
    match &words.value {
        Words::One(word) => vec![text(word)],
        Words::Many(list) => list.iter().map(text).collect(),
    }
}

/// How hard models think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Not at all, where that can be had.
    Off,
    /// A little.
    Low,
    /// As much as most tasks need.
    Medium,
    /// A lot.
    High,
    /// All they can.
    Max,
}

impl From<Effort> for wire::Effort {
    fn from(effort: Effort) -> Self {
        match effort {
            Effort::Off => Self::Off,
            Effort::Low => Self::Low,
            Effort::Medium => Self::Medium,
            Effort::High => Self::High,
            Effort::Max => Self::Max,
        }
    }
}

/// In which form a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Responses.
    Responses,
    /// `OpenAI` Chat Completions, and every server that speaks it.
    Chat,
    /// Google Gemini, and the same on Vertex.
    Gemini,
}

impl From<Wire> for wire::Wire {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::Anthropic => Self::Anthropic,
            Wire::Responses => Self::Responses,
            Wire::Chat => Self::Chat,
            Wire::Gemini => Self::Gemini,
        }
    }
}

/// Where models are asked. Of a provider that haft knows, only what is different.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderSaid {
    /// In which form it is spoken to: chat, responses, anthropic or gemini. Absent: chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// Where: what comes before `/chat/completions`, `/responses`, `/v1/messages` or `/models/…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    /// The name of the variable or secret that holds its key, or several of which the first that is set counts. Absent: as
    /// haft knows, else none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Placed<Words>>,
    /// Headers that go with each request. A key does not belong here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Text>,
}

/// What a model takes, and what it costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Known {
    /// How many tokens it takes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub window: Option<u64>,
    /// How many it writes at the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_output: Option<u32>,
    /// Dollars for a million tokens that it reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<f64>,
    /// Dollars for a million that it writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<f64>,
    /// Dollars for a million that its provider remembered. Absent: as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Dollars for a million that its provider will remember. Absent: as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// How far an agent may go with one thing that it is told, and what it is told besides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// How often a model is asked (default 100).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<Placed<u32>>,
    /// Tokens read and written. Absent: as many as it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Dollars. Absent: as many as it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub max_usd: Option<Placed<f64>>,
    /// Minutes. Absent: as long as it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_minutes: Option<u32>,
    /// Above so many tools, models are told only of some, and find the others with tool.search (default 15).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defer_tools: Option<u32>,
    /// The same by tokens of their descriptions (default 2000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defer_tokens: Option<u32>,
    /// How deep children may have children (default 1: children only; 0: none).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// How many children may run at once (default 8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_children: Option<u32>,
    /// What agents are told of their work besides. Those of all files add up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<Text>,
}

impl Models {
    /// Models that somebody named for one run.
    pub(super) fn named(text: &Text) -> Self {
        let each = text.value.split(',').map(|word| word.trim().to_owned());
        let chosen = Placed::new(Words::Many(each.collect()), text.spot.clone());
        Self { chosen: Some(chosen), ..Self::default() }
    }

    pub(super) fn add(&mut self, layer: Self) {
        let Self { chosen, effort, max_output, native_search, providers, known } = layer;
        nearer(&mut self.chosen, chosen);
        nearer(&mut self.effort, effort);
        nearer(&mut self.max_output, max_output);
        nearer(&mut self.native_search, native_search);
        // The farther entry stays, as with profiles.
        for (name, provider) in providers {
            self.providers.entry(name).or_insert(provider);
        }
        for (name, facts) in known {
            self.known.entry(name).or_insert(facts);
        }
    }

    /// Takes out what no project may say, trusted or not. Gives the keys of what was there.
    pub(super) fn take_users_own(&mut self) -> Vec<&'static str> {
        let (providers, known) = (std::mem::take(&mut self.providers), std::mem::take(&mut self.known));
        let mut taken = Vec::new();
        taken.extend((!providers.is_empty()).then_some("models.providers"));
        taken.extend((!known.is_empty()).then_some("models.known"));
        taken
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        self.chosen.iter_mut().for_each(|words| visit(&mut words.spot));
        self.max_output.iter_mut().for_each(|number| visit(&mut number.spot));
        let providers = std::mem::take(&mut self.providers).into_iter().map(|(mut name, mut said)| {
            visit(&mut name.spot);
            said.url.iter_mut().chain(said.headers.values_mut()).for_each(|text| visit(&mut text.spot));
            said.key.iter_mut().for_each(|words| visit(&mut words.spot));
            (name, said)
        });
        self.providers = providers.collect();
        let known = std::mem::take(&mut self.known).into_iter().map(|(mut name, said)| {
            visit(&mut name.spot);
            (name, said)
        });
        self.known = known.collect();
    }
}

impl Agent {
    pub(super) fn add(&mut self, layer: Self) {
        let Self {
            max_turns,
            max_tokens,
            max_usd,
            max_minutes,
            defer_tools,
            defer_tokens,
            max_depth,
            max_children,
            instructions,
        } = layer;
        nearer(&mut self.max_turns, max_turns);
        nearer(&mut self.max_tokens, max_tokens);
        nearer(&mut self.max_usd, max_usd);
        nearer(&mut self.max_minutes, max_minutes);
        nearer(&mut self.defer_tools, defer_tools);
        nearer(&mut self.defer_tokens, defer_tokens);
        nearer(&mut self.max_depth, max_depth);
        nearer(&mut self.max_children, max_children);
        self.instructions.extend(instructions);
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        self.max_turns.iter_mut().for_each(|number| visit(&mut number.spot));
        self.max_usd.iter_mut().for_each(|number| visit(&mut number.spot));
        self.instructions.iter_mut().for_each(|text| visit(&mut text.spot));
    }

    /// What of it can only take away: limits that are lower than those that hold without it.
    pub(super) fn tightened(self, base: &Self) -> Self {
        fn lower<T: PartialOrd>(said: Option<T>, held: Option<T>) -> Option<T> {
            said.filter(|said| held.is_none_or(|held| *said < held))
        }
        let usual = AgentSettings::default();
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let turns = base.max_turns.clone().unwrap_or(Placed::new(usual.max_turns, Spot::BuiltIn));
        Self {
            max_turns: lower(self.max_turns, Some(turns)),
            max_tokens: lower(self.max_tokens, base.max_tokens),
            max_usd: lower(self.max_usd, base.max_usd.clone()),
            max_minutes: lower(self.max_minutes, base.max_minutes),
            max_depth: lower(self.max_depth, Some(base.max_depth.unwrap_or(small(usual.max_depth)))),
            max_children: lower(self.max_children, Some(base.max_children.unwrap_or(small(usual.max_children)))),
            ..Self::default()
        }
    }
}

/// What the runtime is told.
pub(super) fn wanted(models: &Models, agent: &Agent) -> Result<AgentSettings, ConfigError> {
    let usual = AgentSettings::default();
    let (tools, tokens) = usual.defer_above;
    let many = |said: Option<u32>, usual: usize| said.map_or(usual, |said| usize::try_from(said).unwrap_or(usize::MAX));
    Ok(AgentSettings {
        models: models.chosen.iter().flat_map(texts).map(|text| reference(&text)).collect::<Result<_, _>>()?,
        providers: models.providers.iter().map(|(name, said)| provider(name, said)).collect::<Result<_, _>>()?,
        facts: models.known.iter().map(|(name, said)| known(name, said)).collect::<Result<_, _>>()?,
        effort: models.effort.map(wire::Effort::from),
        max_output: positive(models.max_output.as_ref())?,
        native_search: models.native_search.unwrap_or(usual.native_search),
        max_turns: positive(agent.max_turns.as_ref())?.unwrap_or(usual.max_turns),
        max_tokens: agent.max_tokens,
        max_micros: agent.max_usd.as_ref().map(|usd| dollars(usd.value, &usd.spot)).transpose()?,
        max_time: agent.max_minutes.map(|minutes| Duration::from_secs(u64::from(minutes) * 60)),
        defer_above: (many(agent.defer_tools, tools), many(agent.defer_tokens, tokens)),
        max_depth: many(agent.max_depth, usual.max_depth),
        max_children: many(agent.max_children, usual.max_children),
        instructions: agent.instructions.iter().map(|text| text.value.clone()).collect(),
        ..usual
    })
}

fn positive(said: Option<&Placed<u32>>) -> Result<Option<u32>, ConfigError> {
    match said {
        Some(number) if number.value == 0 => Err(ConfigError::malformed(&number.spot, "has to be at least 1")),
        number => Ok(number.map(|number| number.value)),
    }
}

fn dollars(said: f64, spot: &Spot) -> Result<u64, ConfigError> {
    if said.is_finite() && (0.0..=1e9).contains(&said) {
        return Ok(facts::micros(said));
    }
    Err(ConfigError::malformed(spot, "expected dollars, zero or more"))
}

fn reference(text: &Text) -> Result<ModelRef, ConfigError> {
    ModelRef::try_from(text.value.clone()).map_err(|why| ConfigError::malformed(&text.spot, why))
}

fn provider(name: &Text, said: &ProviderSaid) -> Result<(String, Provider), ConfigError> {
    let bad = |spot: &Spot, why: &str| ConfigError::malformed(spot, why);
    if name.value.is_empty() || name.value.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control()) {
        return Err(bad(&name.spot, "a provider's name is one word without `/`"));
    }
    let base = providers::known(|name| std::env::var(name).ok()).remove(&name.value);
    let url = match (&said.url, &base) {
        (Some(url), _) => {
            Target::read(&url.value).map_err(|error| ConfigError::malformed(&url.spot, error.to_string()))?;
            url.value.clone()
        }
        (None, Some(base)) => base.url.clone(),
        (None, None) => return Err(bad(&name.spot, "haft does not know this provider, so its `url` has to be said")),
    };
    let keys = match &said.key {
        Some(words) => texts(words).iter().map(key).collect::<Result<_, _>>()?,
        None => base.as_ref().map(|base| base.keys.clone()).unwrap_or_default(),
    };
    let wire = said.wire.map(wire::Wire::from).or(base.map(|base| base.wire)).unwrap_or(wire::Wire::Chat);
    let headers = said.headers.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect();
    Ok((name.value.clone(), Provider { wire, url, keys, headers }))
}

fn key(text: &Text) -> Result<String, ConfigError> {
    if is_name(&text.value) {
        return Ok(text.value.clone());
    }
    // It may be the key itself, so it is not repeated.
    let why = "expected the name of a variable or secret that holds the key (A-Z, digits and _; not HAFT_*), and never \
               the key itself";
    Err(ConfigError::malformed(&text.spot, why))
}

fn known(name: &Text, said: &Known) -> Result<(ModelRef, Facts), ConfigError> {
    let model = reference(name)?;
    let base = facts::of(&model);
    let each = |said: Option<f64>| said.map(|said| dollars(said, &name.spot)).transpose();
    let (input, output) = (each(said.input)?, each(said.output)?);
    let price = match (input, output) {
        (Some(input), Some(output)) => Some(Price {
            input,
            output,
            cache_read: each(said.cache_read)?.unwrap_or(input),
            cache_write: each(said.cache_write)?.unwrap_or(input),
        }),
        (None, None) if said.cache_read.is_none() && said.cache_write.is_none() => base.price,
        _ => return Err(ConfigError::malformed(&name.spot, "a price is `input` and `output`, both")),
    };
    let window = said.window.unwrap_or(base.window);
    let max_output = said.max_output.unwrap_or(base.max_output);
    if window == 0 || max_output == 0 {
        return Err(ConfigError::malformed(&name.spot, "`window` and `max_output` have to be at least 1"));
    }
    Ok((model, Facts { window, max_output, price }))
}

#[cfg(test)]
mod tests;
