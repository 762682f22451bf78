//! What can be typed about memory: `haft memory`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What agents know.
#[derive(Debug, Args)]
pub struct MemoryArgs {
    /// What to do [default: list].
    #[command(subcommand)]
    pub action: Option<MemoryAction>,
}

/// What to do with memory.
#[derive(Debug, Subcommand)]
pub enum MemoryAction {
    /// List the namespaces that have something in them.
    List,
    /// Print all that is kept in a namespace.
    Show {
        /// Which, such as `user` or `sessions/abc`.
        namespace: String,
    },
    /// Replace all that is kept in a namespace by a file, or by what comes on stdin.
    Write {
        /// Which.
        namespace: String,
        /// The file; without it, stdin.
        file: Option<PathBuf>,
    },
    /// Add one note.
    Store {
        /// To which namespace.
        namespace: String,
        /// What was learned.
        #[arg(required = true)]
        content: Vec<String>,
        /// What it is about. May be given several times.
        #[arg(long, value_name = "TAG")]
        tag: Vec<String>,
    },
    /// Find lines by words and by meaning.
    Search(MemorySearch),
    /// Print the parts of a namespace that answer a question, or all of it.
    Recall {
        /// Which.
        namespace: String,
        /// What it is about.
        query: Vec<String>,
        /// How many parts.
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Forget all that is kept in a namespace, for good.
    Forget {
        /// Which.
        namespace: String,
    },
    /// Make the index anew: words and vectors of every piece.
    Reindex,
    /// Fetch the table of word vectors, so that meaning counts without a network.
    Setup {
        /// The package, if it was fetched already: a wheel.
        #[arg(long, value_name = "WHEEL")]
        from: Option<PathBuf>,
    },
}

/// Find lines by words and by meaning.
#[derive(Debug, Args)]
pub struct MemorySearch {
    /// What to find, in plain words.
    #[arg(required = true)]
    pub query: Vec<String>,
    /// Only there; `sessions/*` is all below `sessions`.
    #[arg(long, short = 'n', value_name = "NAME")]
    pub namespace: Option<String>,
    /// Only what was kept since: `7d`, `2026-11-01`.
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only what was kept until.
    #[arg(long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Only what has this tag. May be given several times.
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// How many.
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// Words alone count.
    #[arg(long)]
    pub keyword_only: bool,
}
