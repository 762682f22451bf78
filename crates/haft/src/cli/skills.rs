//! Command-line arguments of `haft skills`.

use clap::Args;

/// List the skills that agents are offered: the project's and your own, where each is from, and what is wrong with it.
///
/// Looks in .haft/skills, .agents/skills and .claude/skills of the project, then in the skills directory of your
/// configuration, ~/.agents/skills and ~/.claude/skills. A project's skills become active once you accept them with `haft trust`.
#[derive(Debug, Args)]
pub struct SkillsArgs {
    /// Only the skills of this name, in full.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}
