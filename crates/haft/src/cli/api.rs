//! What can be typed about APIs: `haft api`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Keep what is known of APIs: how to sign in, how often to ask, what there is.
#[derive(Debug, Args)]
pub struct ApiArgs {
    /// What to do [default: list].
    #[command(subcommand)]
    pub action: Option<ApiAction>,
}

/// What to do about APIs.
#[derive(Debug, Subcommand)]
pub enum ApiAction {
    /// List the APIs that are known.
    List,
    /// Show one, without what proves who asks.
    View {
        /// Which.
        id: String,
    },
    /// Add a profile from a file, in JSON or YAML.
    Add {
        /// The file, or - for stdin.
        file: PathBuf,
    },
    /// Forget one.
    Remove {
        /// Which.
        id: String,
    },
    /// Make a profile from an OpenAPI 3 document and, if wanted, a tool of each operation.
    Import(ApiImport),
}

/// Make a profile from an OpenAPI 3 document.
#[derive(Debug, Args)]
pub struct ApiImport {
    /// The document, in JSON or YAML, or - for stdin.
    pub file: PathBuf,
    /// Its id here [default: from its title].
    #[arg(long)]
    pub id: Option<String>,
    /// Where the API is [default: the document's first server].
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Also write a manifest of each operation to .haft/tools/NAME/tool.yml.
    #[arg(long)]
    pub tools: bool,
    /// Only of operations whose tool's name or operationId fits: list*.
    #[arg(long, value_name = "GLOB", requires = "tools")]
    pub only: Option<String>,
}
