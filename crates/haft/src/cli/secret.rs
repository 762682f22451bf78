//! What can be typed about secrets: `haft secret`.

use clap::{Args, Subcommand};

/// Keep secrets, encrypted.
#[derive(Debug, Args)]
pub struct SecretArgs {
    /// What to do [default: list].
    #[command(subcommand)]
    pub action: Option<SecretAction>,
}

/// What to do with secrets.
#[derive(Debug, Subcommand)]
pub enum SecretAction {
    /// List the secrets that are kept or told, and the hosts they may go to.
    List,
    /// Keep one.
    Set {
        /// Its name, written like a variable's.
        name: String,
        /// A host that it may go to; a tool that reaches others does not get it. May be given several times.
        #[arg(long, value_name = "HOST")]
        host: Vec<String>,
        /// Read the value from stdin instead of asking for it at the terminal.
        #[arg(long)]
        stdin: bool,
    },
    /// Forget one.
    Remove {
        /// Which.
        name: String,
    },
    /// Say where one comes from and where it may go.
    Show {
        /// Which.
        name: String,
        /// Also show its value, on a terminal and after a question.
        #[arg(long)]
        reveal: bool,
    },
}
