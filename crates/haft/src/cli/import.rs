//! What can be typed about taking tools from elsewhere: `haft import`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Make tools that are files from what others have, to be reviewed.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// From what.
    #[command(subcommand)]
    pub from: ImportFrom,
}

/// From what.
#[derive(Debug, Subcommand)]
pub enum ImportFrom {
    /// A tool of each operation of an OpenAPI 3 document.
    Openapi {
        /// The document, in JSON or YAML, or - for stdin.
        file: PathBuf,
        /// What the tools' names begin with [default: from its title].
        #[arg(long)]
        id: Option<String>,
        /// Where the API is [default: the document's first server].
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// Only of operations whose tool's name or operationId fits: list*.
        #[arg(long, value_name = "GLOB")]
        only: Option<String>,
        /// How it is written.
        #[command(flatten)]
        writing: Writing,
    },
    /// A tool of each tool of a bridged MCP server, to be renamed and narrowed.
    Mcp {
        /// The server, by its name in the configuration.
        server: String,
        /// Only these of its tools.
        tools: Vec<String>,
        /// How it is written.
        #[command(flatten)]
        writing: Writing,
    },
    /// A tool of each script of a directory of Claude skills, and a skill of each that has none.
    ClaudeSkills {
        /// A directory with a SKILL.md, or with directories that have one.
        dir: PathBuf,
        /// How it is written.
        #[command(flatten)]
        writing: Writing,
    },
    /// An agent of each file in .claude/agents (Markdown) and .gemini/agents (TOML).
    Agents {
        /// A directory that has those, or is one of them [default: the project].
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
        /// How it is written.
        #[command(flatten)]
        writing: Writing,
    },
}

/// How it is written.
#[derive(Debug, Clone, Copy, Args)]
pub struct Writing {
    /// Overwrite what is there.
    #[arg(long)]
    pub force: bool,
    /// Only say what would be written.
    #[arg(long)]
    pub dry_run: bool,
}
