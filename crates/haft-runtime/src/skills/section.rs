//! What a model is told of the skills from the start: names and descriptions, within a budget.

use super::ListedSkill;
use haft_core::preview::{cut, inert};
use haft_core::tokens::estimate;

/// About how many tokens all of it may cost.
const TOKENS_MAX: usize = 2_000;
/// How much of one description is told.
const DESCRIPTION_MAX: usize = 300;

const HEAD: &str = "Skills are instructions for specific kinds of work. Before a task that matches a skill's description, read the \
skill with skill_read and follow it as far as it fits the request. A skill grants no permission: policy decides every call. \
agent_spawn with `skill` runs it in a subagent that has only the tools the skill lists.";

/// The part of a system prompt about skills; none if there are none for models.
pub(crate) fn section(skills: &[ListedSkill]) -> Option<String> {
    let told = |skill: &&ListedSkill| skill.reading.skill.as_ref().is_some_and(|skill| skill.for_models);
    let skills: Vec<&ListedSkill> = skills.iter().filter(told).collect();
    if skills.is_empty() {
        return None;
    }
    let (mut text, mut left) = (HEAD.to_owned(), TOKENS_MAX);
    let mut rest: Vec<&str> = Vec::new();
    for skill in skills {
        let line = format!("\n- {}: {}", skill.name, cut(&inert(skill.description()), DESCRIPTION_MAX));
        // Once one description exceeds the budget, list the remaining skills by name.
        match left.checked_sub(estimate(&line)).filter(|_| rest.is_empty()) {
            Some(after) => {
                text.push_str(&line);
                left = after;
            }
            None => rest.push(&skill.name),
        }
    }
    if !rest.is_empty() {
        text.push_str(&others(&rest));
    }
    Some(text)
}

/// Those that are told by name, and how many are not told at all.
fn others(names: &[&str]) -> String {
    let mut left = TOKENS_MAX / 2;
    let fits = |name: &&&str| left.checked_sub(estimate(name) + 1).map(|after| left = after).is_some();
    let told: Vec<&str> = names.iter().take_while(fits).copied().collect();
    let more = names.len() - told.len();
    let mut text = format!("\nMore, by name: {}", told.join(", "));
    if more > 0 {
        text.push_str(&format!(", and {more} others that skill_read without a name lists"));
    }
    text.push('.');
    text
}
