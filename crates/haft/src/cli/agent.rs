//! `haft run`.

use super::{Asking, OneOff};
use clap::{Args, ValueEnum};

/// Have an agent do something.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// What to do; - reads it from stdin. What is piped in beside it is told as well.
    pub prompt: Vec<String>,
    /// Go on with a conversation: the latest of this project, or the one that is named.
    #[arg(long, short = 'r', value_name = "SESSION", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    pub resume: Option<String>,
    /// The model, as provider/model; the first choice if given several times, then those to fall back to.
    #[arg(long, short = 'm', value_name = "MODEL")]
    pub model: Vec<String>,
    /// How hard it thinks.
    #[arg(long, value_enum)]
    pub effort: Option<EffortWord>,
    /// As which role: researcher, creator, operator, collector, or one of the project's or your own; `haft agents` lists them.
    #[arg(long)]
    pub role: Option<String>,
    /// How often the model is asked at the most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: Option<u32>,
    /// How many tokens it may read and write.
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// How much it may cost, in dollars.
    #[arg(long, value_name = "USD")]
    pub max_usd: Option<f64>,
    /// What it is told besides.
    #[arg(long, value_name = "TEXT")]
    pub instructions: Vec<String>,
    /// How it is printed. --json is `events`.
    #[arg(long, value_enum, default_value_t = RunFormat::Text)]
    pub format: RunFormat,
    /// Show what it thinks.
    #[arg(long)]
    pub show_thinking: bool,
    /// Rules for this once.
    #[command(flatten)]
    pub rules: OneOff,
    /// How questions are answered.
    #[command(flatten)]
    pub asking: Asking,
}

/// How a run is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunFormat {
    /// For people. Into a pipe only the last words go.
    Text,
    /// A JSON line for everything that happens.
    Events,
    /// A JSON line for every message, as other agents' `stream-json`.
    StreamJson,
}

/// How hard a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EffortWord {
    /// Not at all, where that can be had.
    Off,
    /// A little.
    Low,
    /// As much as most tasks need.
    Medium,
    /// A lot.
    High,
    /// All it can.
    Max,
}
