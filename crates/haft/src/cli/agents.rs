//! What can be typed about agents: `haft agents`.

use clap::{Args, Subcommand};

/// Look at the roles that agents can have, and at what they left behind.
#[derive(Debug, Args)]
pub struct AgentsArgs {
    /// What to do [default: list].
    #[command(subcommand)]
    pub action: Option<AgentsAction>,
}

/// What to do about agents.
#[derive(Debug, Subcommand)]
pub enum AgentsAction {
    /// List the roles: haft's, the project's and your own.
    List,
    /// List or remove the worktrees of agents that worked on a copy of a project.
    Worktrees(WorktreesArgs),
}

/// The worktrees of agents.
#[derive(Debug, Args)]
pub struct WorktreesArgs {
    /// What to do [default: list].
    #[command(subcommand)]
    pub action: Option<WorktreesAction>,
}

/// What to do with worktrees.
#[derive(Debug, Subcommand)]
pub enum WorktreesAction {
    /// List them, of all projects, with what in them is in no project yet.
    List,
    /// Remove those that are named, or those that nobody needs.
    ///
    /// What is named goes, whatever is in it. Of the others, those go only with --force that have changes which are not in
    /// their project.
    Remove(WorktreesRemove),
}

/// Which worktrees to remove.
#[derive(Debug, Args)]
pub struct WorktreesRemove {
    /// Which, by id or by the beginning of it.
    #[arg(value_name = "ID", conflicts_with_all = ["merged", "older_than"])]
    pub ids: Vec<String>,
    /// All in which nothing is that is not in its project.
    #[arg(long)]
    pub merged: bool,
    /// All that were made so long ago: 12h, 7d.
    #[arg(long, value_name = "TIME")]
    pub older_than: Option<String>,
    /// Also those with changes that are in no project, and those whose agent seems to work still.
    #[arg(long)]
    pub force: bool,
}
