//! The resolver that holds an agent to the `allowed-tools` of the skill that it runs. It can deny, and nothing else.

use super::{Decision, Question, Resolver, ResolverError, Vote};
use crate::preview::inert;
use crate::shell::rule::{BadRule, Rulebook, Stance, Stated};

/// 1000: an agent that runs a skill runs no shell command that the skill does not name.
pub struct SkillCommands {
    skill: String,
    named: Rulebook,
}

impl SkillCommands {
    /// Holds an agent to the commands that a skill names, as rules.
    pub fn new(skill: &str, commands: &[String]) -> Result<Self, BadRule> {
        let stated = commands.iter().map(|text| Stated::new(Stance::Allow, text)).collect::<Result<_, _>>()?;
        Ok(Self { skill: inert(skill), named: Rulebook::new(stated) })
    }
}

impl Resolver for SkillCommands {
    fn name(&self) -> &'static str {
        "skill commands"
    }

    fn priority(&self) -> i32 {
        1000
    }

    fn resolve(&self, question: Question<'_>) -> Result<Vote, ResolverError> {
        if question.checked.spec().reach.command.is_none() {
            return Ok(None);
        }
        let named = match &question.facts.shell {
            Some(shell) => self.named.covers_every_command(&shell.judged),
            None => Err("its command is unknown".to_owned()),
        };
        let list = || self.named.iter().map(|stated| format!("`{}`", stated.rule)).collect::<Vec<_>>().join(", ");
        let refused = |why: String| {
            let skill = &self.skill;
            (Decision::Deny, format!("skill {skill} allows only {}; {why}", list()))
        };
        Ok(named.err().map(refused))
    }
}
