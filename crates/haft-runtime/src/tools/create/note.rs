//! skill.create and reflection.create: learned notes, by the same path as tools.

use super::target::Target;
use crate::making::Proposed;
use crate::scene::Scene;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use haft_core::record::Digest;
use haft_core::scan::{Kind, scan};
use haft_core::secret::tells_secret;
use haft_core::{CallError, ErrorKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const CONTENT_MAX: usize = 64 << 10;

/// The tools.
pub(super) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Blocking::tool(
            spec(
                "skill.create",
                "Propose a skill for this project: instructions for later agents on how to do something here. A person reviews it first.",
            ),
            |scene: &Scene| create(scene, "skill"),
        ),
        Blocking::tool(
            spec(
                "reflection.create",
                "Propose a reflection: a lesson learned from how some work went. A person reviews it first.",
            ),
            |scene: &Scene| create(scene, "reflection"),
        ),
    ]
}

fn spec(name: &'static str, description: &'static str) -> ToolSpec {
    declare(name, description)
        .hint("learn remember note lesson instructions SKILL.md")
        .input(json!({
            "type": "object", "additionalProperties": false, "required": ["name", "description", "content"], "properties": {
                "name": {"type": "string", "description": "Lowercase letters, digits and -", "minLength": 1, "maxLength": 64, "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
                "description": {"type": "string", "description": "When to use it, in one line", "minLength": 1, "maxLength": 1024},
                "content": {"type": "string", "description": "Markdown text", "minLength": 1, "maxLength": CONTENT_MAX}
            }
        }))
        .changes_files()
        .proposes()
        .body("content")
}

#[derive(Deserialize)]
struct Args {
    name: String,
    description: String,
    content: String,
}

fn create(scene: &Scene, what: &'static str) -> Result<Reply, CallError> {
    let Args { name, description, content } = scene.parse()?;
    if description.contains(['\n', '\r']) {
        return Err(CallError::invalid("`description` has to be one line"));
    }
    let front = serde_saphyr::to_string(&json!({"name": name, "description": description.trim()}));
    let front = front.map_err(|error| CallError::internal(error.to_string()))?;
    let text = format!("---\n{}\n---\n\n{}\n", front.trim_end(), content.trim_end());
    fit_to_keep(&format!("the {what}"), &text)?;
    let target = match what {
        "skill" => Target::directory(scene, what, &format!(".haft/skills/{name}"), "SKILL.md"),
        _ => Target::file(scene, what, &name, ".haft/reflections", format!("{name}.md")),
    };
    let known = target.before(scene)?.is_some();
    let main = if what == "skill" { "SKILL.md".to_owned() } else { format!("{name}.md") };
    let (digest, content) = (Digest::of(text.as_bytes()), BTreeMap::from([(main.clone(), text.into_bytes())]));
    let changes = target.changes(scene, content)?;
    let paths: Vec<String> = changes.iter().map(|change| scene.shown(change.path())).collect();
    let said = format!("{} the {what} {name}: {}", if known { "Changed" } else { "Created" }, paths.join(", "));
    let shown = haft_core::preview::cut(&haft_core::preview::inert(description.trim()), 200);
    let foreword = format!("{what} {name}: {shown}\nEvery agent that works here may read it and act on it.");
    let files = BTreeMap::from([(main, digest)]);
    let proposal = Proposed { what, name: name.clone(), digest, files, permissions: None, foreword };
    let mut reply = Reply::text(said).data(json!({"name": name, "files": paths, "changed": known})).changes(changes);
    reply.proposal = Some(Box::new(proposal));
    Ok(reply)
}

pub(super) fn key_in(what: &str) -> CallError {
    CallError::new(ErrorKind::Denied, format!("{what} holds what looks like a key; nothing was proposed"))
        .hint("name a secret under permissions.secrets, and use it as ${NAME}")
}

/// Refuses what must not be kept: keys, characters that nobody sees, and orders to whoever reads it.
pub(super) fn fit_to_keep(what: &str, text: &str) -> Result<(), CallError> {
    if tells_secret(text) {
        return Err(key_in(what));
    }
    let found = scan(text);
    if found.findings.iter().any(|finding| finding.kind == Kind::Hidden) {
        return Err(CallError::invalid(format!("there are characters in {what} that nobody sees")));
    }
    if found.is_flagged() {
        return Err(CallError::new(
            ErrorKind::Denied,
            format!("{what} reads like orders to whoever reads it: {}", found.reasons()),
        )
        .hint("say what is the case, not what somebody must do or ignore"));
    }
    Ok(())
}
