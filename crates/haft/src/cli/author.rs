//! What can be typed by whoever writes tools as files: `haft lint`, `haft new`.

use clap::{Args, ValueEnum};

/// Check tools, workflows, agents and skills that are files.
///
/// Looks at .haft/tools/*/tool.yml, .glee/tools/*/tool.yml, the *.yml in .haft/workflows, .glee/workflows and .haft/agents, and
/// */SKILL.md in .haft/skills, .agents/skills and .claude/skills. Reports each problem with file, line, column and path. Exits with 0 if there are no errors, with 1 if there are.
#[derive(Debug, Args)]
pub struct LintArgs {
    /// Only these tools.
    #[arg(value_name = "TOOL")]
    pub tools: Vec<String>,
    /// Mend what is mechanical, in place; comments stay.
    #[arg(long)]
    pub fix: bool,
    /// Also those in the directory of your configuration.
    #[arg(long)]
    pub global: bool,
    /// Take warnings for errors.
    #[arg(long)]
    pub strict: bool,
    /// How it is told [default: text].
    #[arg(long, value_enum)]
    pub format: Option<LintFormat>,
}

/// How flaws are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// A line each.
    Text,
    /// One object.
    Json,
    /// For code scanning: SARIF 2.1.0.
    Sarif,
}

/// Make a tool that is a file, ready to run.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Its name, which is also its directory's.
    #[arg(value_name = "TOOL")]
    pub name: String,
    /// What it is: a request, a program, a function, a tool of a bridged server, or several calls.
    #[arg(long, value_enum)]
    pub kind: NewKind,
}

/// Of what kind a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NewKind {
    /// A request.
    Http,
    /// A program.
    Command,
    /// A function.
    Python,
    /// A tool of a bridged server.
    Mcp,
    /// Several calls.
    Pipeline,
}
