//! What is known of models: how much they take, how much they write, what they cost. It is data with a date, because it grows
//! old; what a user says of a model goes before it.

use super::model::{Facts, ModelRef, Price};
use super::providers;
use serde::Deserialize;
use std::sync::OnceLock;

/// Of a model that nobody knows: careful, so that nothing is lost by sending too much.
const UNKNOWN: Facts = Facts { window: 64_000, max_output: 8_192, price: None };
/// Of one on this machine, which costs nothing. Such servers mostly begin with a small window.
const LOCAL: Facts = Facts { window: 16_384, max_output: 4_096, price: Some(FREE) };
const FREE: Price = Price { input: 0, output: 0, cache_read: 0, cache_write: 0 };

/// The list.
#[derive(Debug, Deserialize)]
struct Table {
    dated: String,
    models: Vec<Row>,
}

/// A model of it. Dollars for a million tokens.
#[derive(Debug, Deserialize)]
struct Row {
    name: String,
    of: String,
    window: u64,
    max_output: u32,
    input: f64,
    output: f64,
    #[serde(default)]
    cache_read: Option<f64>,
    #[serde(default)]
    cache_write: Option<f64>,
}

impl Row {
    fn facts(&self) -> Facts {
        let input = micros(self.input);
        let price = Price {
            input,
            output: micros(self.output),
            // Where nothing is said of it, remembering costs what reading does.
            cache_read: self.cache_read.map_or(input, micros),
            cache_write: self.cache_write.map_or(input, micros),
        };
        Facts { window: self.window, max_output: self.max_output, price: Some(price) }
    }
}

/// Dollars in millionths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is out of range is cut to it")]
pub fn micros(dollars: f64) -> u64 {
    (dollars * 1_000_000.0).round().clamp(0.0, 1e15) as u64
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        // It is compiled in, and a test reads it.
        serde_json::from_str(include_str!("prices.json"))
            .unwrap_or_else(|_| Table { dated: String::new(), models: Vec::new() })
    })
}

/// When the prices were read.
pub fn dated() -> &'static str {
    &table().dated
}

/// What haft knows of a model.
pub fn known(model: &ModelRef) -> Option<Facts> {
    if providers::is_local(&model.provider) {
        return None;
    }
    // Whoever sells others' models names them after those; and writes `4.5` where others write `4-5`.
    let name = model.model.rsplit('/').next().unwrap_or_default();
    let name = if name.starts_with("claude-") { name.replace('.', "-") } else { name.to_owned() };
    let fits = |row: &&Row| name.strip_prefix(row.name.as_str()).is_some_and(is_edition);
    table().models.iter().filter(fits).max_by_key(|row| row.name.len()).map(Row::facts)
}

/// Whether what follows a model's name only says which edition it is: a date, a number of three digits, or a word for it.
fn is_edition(rest: &str) -> bool {
    let dated = |rest: &str| rest.len() >= 3 && rest.chars().all(|c| c.is_ascii_digit() || c == '-');
    match rest.strip_prefix(['-', '@']) {
        None => rest.is_empty(),
        Some("latest" | "preview") => true,
        Some(more) => dated(more) || more.strip_prefix("preview-").is_some_and(dated),
    }
}

/// What is known of a model, or is best believed.
pub fn of(model: &ModelRef) -> Facts {
    known(model).unwrap_or(if providers::is_local(&model.provider) { LOCAL } else { UNKNOWN })
}

/// The models of a provider that haft knows, by name.
pub fn models_of(provider: &str) -> Vec<ModelRef> {
    let of = if provider == "vertex" { "gemini" } else { provider };
    let rows = table().models.iter().filter(|row| row.of == of);
    rows.map(|row| ModelRef { provider: provider.to_owned(), model: row.name.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(name: &str) -> Option<(u64, u64)> {
        known(&ModelRef::parse(name).unwrap()).and_then(|facts| facts.price).map(|price| (price.input, price.output))
    }

    #[test]
    fn prices_are_found_by_the_longest_name() {
        assert!(!dated().is_empty() && table().models.len() > 20);
        for (name, expected) in [
            ("anthropic/claude-sonnet-4-5", Some((3_000_000, 15_000_000))),
            ("anthropic/claude-sonnet-4-5-20250929", Some((3_000_000, 15_000_000))),
            ("anthropic/claude-sonnet-4-20250514", Some((3_000_000, 15_000_000))),
            ("anthropic/claude-opus-4-5", Some((5_000_000, 25_000_000))),
            ("anthropic/claude-opus-4-1-20250805", Some((15_000_000, 75_000_000))),
            ("anthropic/claude-opus-4-9", None),
            ("anthropic/claude-opus-5", Some((5_000_000, 25_000_000))),
            ("anthropic/claude-opus-5-5", Some((4_000_000, 20_000_000))),
            ("openrouter/anthropic/claude-sonnet-5.5", Some((2_000_000, 10_000_000))),
            ("gemini/gemini-3.1-pro-preview", Some((2_000_000, 12_000_000))),
            ("openrouter/anthropic/claude-haiku-4.5", Some((1_000_000, 5_000_000))),
            ("openai/gpt-5-2025-08-07", Some((1_250_000, 10_000_000))),
            ("openai/gpt-5-mini", Some((250_000, 2_000_000))),
            ("openai/gpt-5.9", None),
            ("openai/gpt-5-new", None),
            ("vertex/gemini-2.5-flash-lite", Some((100_000, 400_000))),
            ("gemini/gemini-2.5-flash-preview-09-2025", Some((300_000, 2_500_000))),
            ("ollama/gpt-5", None),
            ("acme/own-model", None),
        ] {
            assert_eq!(price(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_not_known_is_careful_and_what_is_here_is_free() {
        assert_eq!(of(&ModelRef::parse("acme/own").unwrap()).price, None);
        let here = of(&ModelRef::parse("ollama/qwen3:8b").unwrap());
        assert_eq!(here.price.map(|price| price.input), Some(0));
    }
}
