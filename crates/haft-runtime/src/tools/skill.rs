//! skill.read: a skill in full, or a file beside it.

use crate::scene::Scene;
use crate::skills::{FILE_DIGEST, ListedSkill, OpenSkill};
use crate::tool::{BoxFuture, Reply, Tool};
use crate::tools::declare;
use haft_core::outcome::Label;
use haft_core::preview::{cut, inert, size};
use haft_core::record::Digest;
use haft_core::shape::{Keep, Limits};
use haft_core::skill::is_flagged;
use haft_core::{CallError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// A skill is of use only as a whole, so more of it is given than of other outputs.
const OUTPUT_MAX: usize = 128 << 10;
/// How much of a description stands in the list.
const DESCRIPTION_MAX: usize = 300;

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(SkillRead { spec: Arc::new(spec()) })
}

struct SkillRead {
    spec: Arc<ToolSpec>,
}

impl Tool for SkillRead {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let Args { name, file } = scene.parse()?;
            match (name, file) {
                (None, None) => Ok(list(&scene.skills().offered().await?)),
                (None, Some(_)) => Err(CallError::invalid("`file` needs `name`")),
                (Some(name), None) => Ok(whole(scene, &scene.skills().open(&name).await?)),
                (Some(name), Some(file)) => Ok(beside(&file, scene.skills().file(&name, &file).await?)),
            }
        })
    }
}

#[derive(Deserialize)]
struct Args {
    name: Option<String>,
    file: Option<String>,
}

fn spec() -> ToolSpec {
    declare(
        "skill.read",
        "Read a skill's instructions (SKILL.md) before you do that kind of work, or one of its files. Without `name`, \
         lists the skills.",
    )
    .input(json!({"type": "object", "additionalProperties": false, "properties": {
        "name": {"type": "string", "description": "Skill name."},
        "file": {"type": "string", "description": "Skill file to return instead of SKILL.md."}}}))
    .hint("skills SKILL.md instructions how to guide load activate use procedure knowledge")
    .limits(Limits { lines: usize::MAX, bytes: OUTPUT_MAX, keep: Keep::Head })
}

fn list(skills: &[ListedSkill]) -> Reply {
    let line = |skill: &ListedSkill| format!("{}: {}", skill.name, cut(&inert(skill.description()), DESCRIPTION_MAX));
    let told = |skill: &&ListedSkill| skill.reading.skill.as_ref().is_some_and(|skill| skill.for_models);
    let told: Vec<&ListedSkill> = skills.iter().filter(told).collect();
    let text = match told.as_slice() {
        [] => "There are no skills here.".to_owned(),
        told => told.iter().map(|skill| line(skill)).collect::<Vec<_>>().join("\n"),
    };
    let data: Vec<Value> =
        told.iter().map(|skill| json!({"name": skill.name, "description": skill.description()})).collect();
    Reply::text(text).data(json!({ "skills": data }))
}

fn whole(scene: &Scene, skill: &OpenSkill) -> Reply {
    let place = scene.shown(&skill.listed.place);
    let data = json!({"name": skill.listed.name, "source": place, "files": skill.files, "allowed_tools": skill.allowed_tools()});
    handed_out(Reply::text(skill.instructions(&place)).data(data))
}

fn beside(file: &str, bytes: Vec<u8>) -> Reply {
    let bytes_long = bytes.len();
    let digest = Digest::of(&bytes);
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => handed_out(Reply::text(text).data(json!({"bytes": bytes_long}))),
        _ => {
            let shown = cut(&inert(file), 120);
            let text =
                format!("{shown} is not text ({}). Use it by its path, from the skill's directory.", size(bytes_long));
            // Who hands out the file itself hands out what this call was about, and nothing that came later.
            Reply::text(text).data(json!({"bytes": bytes_long, FILE_DIGEST: digest.to_string()}))
        }
    }
}

/// A skill is written by people and accepted by one; what looks like prompt injection all the same is handed out as text
/// from outside.
fn handed_out(mut reply: Reply) -> Reply {
    if is_flagged(&reply.text) {
        reply.labels.push(Label::Untrusted);
    }
    reply
}
