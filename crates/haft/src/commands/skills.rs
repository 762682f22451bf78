//! `haft skills`: the skills that there are, where from, whether they count, and what is wrong with them.

use crate::app::{Failure, Ground};
use crate::cli::{Common, SkillsArgs};
use crate::commands::lint::skill_flaws_alone;
use crate::style::{self, BOLD, CARE, FAINT, NAME, paint};
use haft_core::CallError;
use haft_core::manifest::Flaw;
use haft_core::preview::{cut, inert};
use haft_core::skill::ToolAllowlist;
use haft_core::suggest::did_you_mean;
use haft_runtime::shelf::{Standing, Whose};
use haft_runtime::skills::{ListedSkill, SkillSurvey};
use serde_json::{Value, json};

/// How much of a description stands in the list.
const DESCRIPTION_MAX: usize = 100;

/// Lists the skills, or shows those of one name.
pub(super) fn run(common: &Common, args: &SkillsArgs) -> Result<u8, Failure> {
    let ground = Ground::find(common)?;
    let store = ground.store()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| CallError::internal(format!("the async runtime cannot start: {error}")))?;
    let survey = runtime.block_on(ground.skills(&store).survey())?;
    for note in &survey.notes {
        style::warn(&inert(note));
    }
    let Some(name) = &args.name else {
        list(&ground, &survey, common.json());
        return Ok(0);
    };
    let named: Vec<&ListedSkill> = survey.skills.iter().filter(|skill| skill.name == *name).collect();
    if named.is_empty() {
        return Err(unknown(name, &survey).into());
    }
    if common.json() {
        let shown: Vec<Value> = named.iter().map(|skill| in_full(&ground, skill)).collect();
        style::json(&json!({ "skills": shown }));
        return Ok(0);
    }
    for skill in named {
        show(&ground, skill);
    }
    Ok(0)
}

fn unknown(name: &str, survey: &SkillSurvey) -> CallError {
    let near = did_you_mean(name, survey.skills.iter().map(|skill| skill.name.as_str()));
    CallError::not_found(format!("there is no skill `{}`", inert(name)))
        .hint(near.unwrap_or_else(|| "`haft skills` lists them".to_owned()))
}

fn list(ground: &Ground, survey: &SkillSurvey, as_json: bool) {
    if as_json {
        let skills: Vec<Value> = survey.skills.iter().map(|skill| brief(ground, skill)).collect();
        style::json(&json!({ "skills": skills, "notes": survey.notes }));
        return;
    }
    if survey.skills.is_empty() {
        style::note(
            "there are no skills in .haft/skills, .agents/skills or .claude/skills, in the project or your home directory",
        );
        return;
    }
    let wide = survey.skills.iter().map(|skill| skill.name.chars().count()).max().unwrap_or_default().min(40);
    for skill in &survey.skills {
        let name = paint(NAME, format!("{:<wide$}", inert(&skill.name)));
        let of = paint(FAINT, format!("{:<7}", whose(skill)));
        let about = inert(&cut(skill.description(), DESCRIPTION_MAX));
        let why = state(ground, skill).map(|why| format!("  {}", paint(CARE, why))).unwrap_or_default();
        style::out(&format!("{name}  {of}  {about}{why}"));
    }
}

fn whose(skill: &ListedSkill) -> &'static str {
    match skill.whose {
        Whose::Own => "user",
        Whose::Project => "project",
    }
}

/// Why a skill is not offered, or what is wrong with it all the same.
fn state(ground: &Ground, skill: &ListedSkill) -> Option<String> {
    let first = || skill.reading.flaws.first().map(|flaw| inert(&format!("{}: {flaw}", source(ground, skill))));
    match skill.standing {
        _ if skill.reading.skill.is_none() => first(),
        Standing::Untrusted => Some("not accepted; review it with `haft trust`".to_owned()),
        Standing::Changed => Some("changed since it was accepted; review it with `haft trust`".to_owned()),
        Standing::Own | Standing::Accepted => match &skill.shadowed_by {
            Some(stronger) => Some(format!("shadowed by {}", inert(&ground.workspace.shown(stronger)))),
            None => first(),
        },
    }
}

fn source(ground: &Ground, skill: &ListedSkill) -> String {
    ground.workspace.shown(&skill.file())
}

fn brief(ground: &Ground, skill: &ListedSkill) -> Value {
    json!({
        "name": skill.name, "description": skill.description(), "scope": whose(skill), "source": skill.file(),
        "trust": skill.standing, "offered": skill.is_offered(), "shadowed_by": skill.shadowed_by,
        "reason": state(ground, skill), "flaws": told(&skill.reading.flaws),
    })
}

fn told(flaws: &[Flaw]) -> Vec<Value> {
    let one = |flaw: &Flaw| json!({"line": flaw.line, "column": flaw.column, "rule": flaw.rule, "severity": flaw.severity, "message": flaw.message});
    flaws.iter().map(one).collect()
}

fn in_full(ground: &Ground, skill: &ListedSkill) -> Value {
    let mut value = brief(ground, skill);
    let said = skill.reading.skill.as_ref();
    let listed = said.and_then(|said| said.allowed_tools.as_deref());
    value["license"] = json!(said.and_then(|said| said.license.as_deref()));
    value["compatibility"] = json!(said.and_then(|said| said.compatibility.as_deref()));
    value["allowed_tools"] = json!(listed.map(ToolAllowlist::of));
    value["files"] = json!(skill.files());
    value["flaws"] = json!(told(&skill_flaws_alone(&ground.paths, skill)));
    value["text"] = json!(skill.text());
    value
}

fn show(ground: &Ground, skill: &ListedSkill) {
    let field = |name: &str, text: &str| style::out(&format!("  {:<14}{}", name, inert(text)));
    style::out(&paint(BOLD, inert(&skill.name)));
    field("source", &source(ground, skill));
    field("trust", skill.standing.word());
    if let Some(why) = state(ground, skill) {
        style::out(&format!("  {:<14}{}", if skill.is_offered() { "flaw" } else { "not offered" }, paint(CARE, why)));
    }
    field("description", skill.description());
    let said = skill.reading.skill.as_ref();
    for (name, text) in [
        ("license", said.and_then(|said| said.license.as_deref())),
        ("compatibility", said.and_then(|said| said.compatibility.as_deref())),
    ] {
        if let Some(text) = text {
            field(name, text);
        }
    }
    if let Some(narrowing) = said.and_then(|said| said.allowed_tools.as_deref()).map(ToolAllowlist::of) {
        let commands = narrowing.commands.iter().map(|command| format!("`{command}`"));
        let all: Vec<String> = narrowing.tools.iter().cloned().chain(commands).collect();
        field("allowed tools", &all.join(", "));
    }
    field("files", &skill.files().join(", "));
    for flaw in skill_flaws_alone(&ground.paths, skill) {
        style::out(&paint(CARE, format!("  {}:{}", inert(&source(ground, skill)), inert(&flaw.to_string()))));
    }
    style::out(&format!("\n{}", style::inert(skill.text().trim_end())));
}
