//! What can be typed about models: `haft models`.

use clap::{Args, Subcommand};

/// The models that agents can ask.
#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// What to do [default: list].
    #[command(subcommand)]
    pub action: Option<ModelsAction>,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub enum ModelsAction {
    /// List providers and models: which key is set, what they take and cost, and which is used.
    List,
    /// Ask models for a word and for a call, and say how it went. Exits with 1 if one of them failed.
    Test {
        /// Which, as `provider/model`; without any, all that the configuration names, or the one that agents ask.
        #[arg(value_name = "MODEL")]
        models: Vec<String>,
    },
}
