//! What can be typed about the doors: `haft mcp` and `haft serve`.

use clap::{Args, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Serve the tools to an MCP client, or manage clients and bridged servers.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// Vocabulary: haft, flynn, flyto, flemma, nodyn or glee.
    #[arg(long, value_name = "D")]
    pub dialect: Option<String>,
    /// Proxy a single bridged server: serve only its tools, resources and prompts, under its own names.
    #[arg(long, value_name = "SERVER")]
    pub front: Option<String>,
    /// About how many tokens the listed tools may cost, unless the configuration says so (`tools.budget_tokens`).
    #[arg(long, value_name = "N")]
    pub budget_tokens: Option<usize>,
    /// What to do [default: serve over stdio].
    #[command(subcommand)]
    pub action: Option<McpAction>,
}

/// What to do about MCP.
#[derive(Debug, Subcommand)]
pub enum McpAction {
    /// Add haft to a client's MCP configuration.
    Install {
        /// Which client.
        #[arg(value_enum)]
        client: McpClient,
        /// Turn off the client's own file, shell and web tools, so that its agent acts only through haft.
        #[arg(long, conflicts_with = "hooks")]
        replace: bool,
        /// Keep the client's own tools, and run `haft hook` before each use of them.
        #[arg(long)]
        hooks: bool,
        /// Only show what would be written.
        #[arg(long)]
        print: bool,
        /// Write without asking for confirmation.
        #[arg(long, short = 'y')]
        yes: bool,
    },
    /// Remove haft from a client's configuration and restore the files.
    Uninstall {
        /// Which client.
        #[arg(value_enum)]
        client: McpClient,
        /// Only show what would be written.
        #[arg(long)]
        print: bool,
        /// Write without asking for confirmation.
        #[arg(long, short = 'y')]
        yes: bool,
    },
    /// Bridge a server: its tools are offered as mcp:NAME:TOOL.
    Add(Box<McpAdd>),
    /// List the bridged servers and their tools.
    List,
    /// Bridge a server no longer.
    Remove {
        /// Which.
        name: String,
    },
    /// Start a bridged server, and say what it offers and whether that has changed.
    Test {
        /// Which.
        name: String,
        /// Accept what it declares now.
        #[arg(long)]
        accept: bool,
    },
    /// Take over the servers of a .mcp.json or another client's configuration.
    Import {
        /// The file.
        file: PathBuf,
        /// Only show what would be added.
        #[arg(long)]
        print: bool,
    },
}

/// Bridge a server.
#[derive(Debug, Args)]
pub struct McpAdd {
    /// Its name here.
    pub name: String,
    /// The address of a server that speaks HTTP.
    #[arg(long, conflicts_with = "command")]
    pub url: Option<String>,
    /// A header for every request, as NAME: VALUE.
    #[arg(long, value_name = "H", requires = "url")]
    pub header: Vec<String>,
    /// A variable that the program gets, as NAME=VALUE; ${NAME} stands for haft's own.
    #[arg(long, value_name = "E")]
    pub env: Vec<String>,
    /// What the program may reach: none, all, or hosts like example.com:443,*.example.org [default: none].
    #[arg(long, value_name = "none|all|HOST:PORT,…")]
    pub net: Option<String>,
    /// A directory that the program may read besides the project.
    #[arg(long, value_name = "P")]
    pub read: Vec<PathBuf>,
    /// A directory that the program may write.
    #[arg(long, value_name = "P")]
    pub write: Vec<PathBuf>,
    /// Start it when haft starts, not at the first call.
    #[arg(long)]
    pub eager: bool,
    /// Enter it in the project's configuration instead of the user's.
    #[arg(long)]
    pub project: bool,
    /// The program and its arguments.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// A client that haft knows how to enter itself into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum McpClient {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
    /// goose.
    Goose,
    /// opencode.
    Opencode,
    /// Visual Studio Code.
    Vscode,
}

/// Serve HTTP.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address and port [default: 127.0.0.1:4747].
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// A certificate chain, as PEM; then HTTPS is spoken.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Give out links that open one approval on another device, once.
    #[arg(long)]
    pub links: bool,
    /// Vocabulary of the tools at /mcp.
    #[arg(long, value_name = "D")]
    pub dialect: Option<String>,
    /// Print the address with the token and nothing else on stdout, so that a program can read it.
    #[arg(long)]
    pub print_url: bool,
}
