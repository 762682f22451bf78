//! What can be typed about tools that are files.

use super::Asking;
use clap::Args;

/// Accept this project's configuration, tools, workflows, agents and skills.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Only these tools of the project [default: its configuration, and all of its tools, workflows, agents and skills].
    #[arg(value_name = "TOOL")]
    pub tools: Vec<String>,
    /// Do not ask.
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Withdraw trust.
    #[arg(long, conflicts_with = "yes")]
    pub revoke: bool,
}

/// Run the examples of tools that are files.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Only these [default: all].
    #[arg(value_name = "TOOL")]
    pub tools: Vec<String>,
    /// How questions are answered.
    #[command(flatten)]
    pub asking: Asking,
}
