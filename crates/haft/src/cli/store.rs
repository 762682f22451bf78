//! What can be typed about the store: `haft store`.

use clap::{Args, Subcommand};

/// Look after the store.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// What to do [default: path].
    #[command(subcommand)]
    pub action: Option<StoreAction>,
}

/// What to do with the store.
#[derive(Debug, Subcommand)]
pub enum StoreAction {
    /// Say where it is, and what it is.
    Path,
    /// Bring it up to date. Every command does that, too; this one says what was done.
    Migrate,
    /// Look whether it is whole: the database, the log's chain, and that rows belong to something.
    Check,
    /// Copy everything to another store, which has to be empty: from a file to a server, back, or to another of its kind.
    Copy {
        /// The store to copy: a file, or postgres://… (a password can be given by PGPASSWORD).
        from: String,
        /// Where to.
        to: String,
    },
    /// Forget what is over for long: runs with their steps, what came of tasks, workers that are gone, and what memory said
    /// before. Never the log, and nothing that is open or uncertain.
    Prune {
        /// What was over before that: 30d, 12h.
        #[arg(long, value_name = "TIME", default_value = "90d")]
        older_than: String,
        /// Only say how much it would be.
        #[arg(long)]
        dry_run: bool,
    },
}
