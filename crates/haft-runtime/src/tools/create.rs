//! tool.create, skill.create and reflection.create: what an agent proposes to keep.
//!
//! They name no place: each has one directory below `.haft` that it may write, and none of it by a path that the caller
//! says. That is the only way in which an agent's words come to stand there, and a person has read them before.

mod kept;
mod note;
mod target;
mod words;

use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use haft_core::manifest::ceiling::exceeds;
use haft_core::manifest::lint::{Found, lint};
use haft_core::manifest::{Exec, Manifest, Severity, Step, Written};
use haft_core::record::Digest;
use haft_core::secret::contains_secret;
use haft_core::{Call, CallError, ErrorKind, ToolName, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::making::{Proposed, TOOL};
use crate::registry::{Registry, unwrapped};
use crate::scene::Scene;
use target::{Target, files_fit};

const FILES_MAX: usize = 20;
const BYTES_MAX: usize = 256 << 10;

/// The tools.
pub(super) fn all() -> Vec<Arc<dyn Tool>> {
    let mut tools = vec![Blocking::tool(spec(), create)];
    tools.extend(note::all());
    tools
}

fn spec() -> ToolSpec {
    declare(
        "tool.create",
        "Propose a new tool for this project: a tool.yml with its files. A person reviews it before it can be used. \
         Set approval.required to true with a reason, and keep permissions as narrow as possible. To change a tool \
         that you made, send it with a higher version.",
    )
    .hint("make define new manifest capability glee_tool_create")
    .input(json!({
        "type": "object", "additionalProperties": false, "required": ["name", "definition"], "properties": {
            "name": {"type": "string", "description": "Letters, digits, _ and -", "minLength": 1, "maxLength": 64},
            "definition": {"type": "object", "description": "The content of tool.yml: description, kind, version, inputs, outputs, exec, permissions, approval, examples"},
            "files": {"type": "object", "description": "All files beside tool.yml, by relative path; files not named here are deleted",
                "maxProperties": FILES_MAX, "additionalProperties": {"type": "string", "maxLength": BYTES_MAX}}
        }
    }))
    .output(json!({
        "type": "object", "required": ["name", "version", "files"], "properties": {
            "name": {"type": "string"}, "version": {"type": "integer"},
            "files": {"type": "array", "items": {"type": "string"}}, "changed": {"type": "boolean"}
        }
    }))
    .changes_files()
    .proposes()
    .body("definition")
    .body("files")
}

#[derive(Deserialize)]
struct Args {
    name: String,
    definition: Map<String, Value>,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

fn create(scene: &Scene) -> Result<Reply, CallError> {
    let Args { name, definition, files } = scene.parse()?;
    named(&name)?;
    let (manifest, text) = fit(scene, &name, definition, &files)?;
    let target = Target::directory(scene, "tool", &format!(".haft/tools/{name}"), "tool.yml");
    let before = target.before(scene)?;
    let old = before.as_deref().and_then(|old| std::str::from_utf8(old).ok()).and_then(|old| Manifest::read(old).ok());
    if let Some(old) = &old {
        newer(&manifest, old)?;
    }
    let mut content: BTreeMap<String, Vec<u8>> =
        files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
    content.insert("tool.yml".to_owned(), text.clone().into_bytes());
    let digests = content.iter().map(|(path, content)| (path.clone(), Digest::of(content))).collect();
    let changes = target.changes(scene, content)?;
    let paths: Vec<String> = changes.iter().map(|change| scene.shown(change.path())).collect();
    let verb = if before.is_some() { "Changed" } else { "Created" };
    let said = format!(
        "{verb} the tool {name} (version {}): {}. A person is asked before each call of it.",
        manifest.version,
        paths.join(", ")
    );
    let proposal = Proposed {
        what: TOOL,
        name: name.clone(),
        digest: Digest::of(text.as_bytes()),
        files: digests,
        permissions: Some(manifest.permissions.clone()),
        foreword: words::foreword(&manifest, old.as_ref()),
    };
    let data = json!({"name": name, "version": manifest.version, "files": paths, "changed": before.is_some()});
    let mut reply = Reply::text(said).data(data).changes(changes);
    reply.proposal = Some(Box::new(proposal));
    Ok(reply)
}

/// The manifest and its text, if nothing is wrong with it. Otherwise all that can be told, at once.
fn fit(
    scene: &Scene,
    name: &str,
    definition: Map<String, Value>,
    files: &BTreeMap<String, String>,
) -> Result<(Manifest, String), CallError> {
    let mut wrong: Vec<CallError> = Vec::new();
    wrong.extend(asks(&definition).err());
    wrong.extend(files_fit(files, FILES_MAX, BYTES_MAX).err());
    wrong.extend(is_free(name, scene).err());
    let said = Value::Object(definition.clone()).to_string();
    let read = read(name, definition).and_then(|manifest| Ok((written(&manifest)?, manifest)));
    let read = match read {
        Ok((text, manifest)) => {
            wrong.extend(clean(&text, files).err());
            wrong.extend(check(scene, &manifest, (&text, files)).err());
            wrong.extend(within(&manifest, scene).err());
            Some((manifest, text))
        }
        Err(error) => {
            wrong.push(error);
            wrong.extend(clean(&said, files).err());
            None
        }
    };
    match (read, all_of(wrong)) {
        (_, Some(error)) => Err(error),
        (Some(read), None) => Ok(read),
        (None, None) => Err(CallError::internal("the definition cannot be read")),
    }
}

/// Several errors as one: whoever mends it mends all of it.
fn all_of(mut wrong: Vec<CallError>) -> Option<CallError> {
    if wrong.len() < 2 {
        return wrong.pop();
    }
    let kind =
        if wrong.iter().any(|error| error.kind == ErrorKind::Denied) { ErrorKind::Denied } else { wrong[0].kind };
    let mut details = Map::new();
    let (mut messages, mut hints) = (Vec::new(), Vec::new());
    for error in wrong {
        messages.push(error.message);
        hints.extend(error.hint.filter(|hint| !hints.contains(hint)));
        details.extend(error.details.and_then(|details| details.as_object().cloned()).unwrap_or_default());
    }
    let error = CallError::new(kind, messages.join("\n")).hint(hints.join("; "));
    Some(error.details(Value::Object(details)))
}

/// Refuses a tool that nobody would be asked about.
fn asks(definition: &Map<String, Value>) -> Result<(), CallError> {
    match definition.get("approval").and_then(|approval| approval.get("required")) {
        Some(Value::Bool(false)) => {
            Err(CallError::new(ErrorKind::Denied, "a tool that an agent makes is asked about before each call")
                .hint("set approval.required to true, and say why in approval.reason"))
        }
        _ => Ok(()),
    }
}

fn named(name: &str) -> Result<(), CallError> {
    if ToolName::new(name).is_ok() && !name.contains(['.', ':']) {
        return Ok(());
    }
    let shown = haft_core::preview::cut(&haft_core::preview::inert(name), 80);
    Err(CallError::invalid(format!("`{shown}` is no name for a tool"))
        .hint("a name is letters, digits, `_` and `-`, beginning with a letter"))
}

/// What the definition says, as a manifest. A person is always asked before it runs.
fn read(name: &str, mut definition: Map<String, Value>) -> Result<Manifest, CallError> {
    match definition.get("name").and_then(Value::as_str) {
        Some(other) if other != name => {
            return Err(CallError::invalid("the definition has another `name` than the tool"));
        }
        _ => drop(definition.insert("name".to_owned(), name.into())),
    }
    let approval = definition.entry("approval").or_insert_with(|| json!({}));
    if let Some(approval) = approval.as_object_mut() {
        approval.entry("required").or_insert(Value::Bool(true));
    }
    Manifest::of(Value::Object(definition)).map_err(|flaws| {
        let lines: Vec<String> = flaws.iter().map(ToString::to_string).collect();
        flawed(&lines)
    })
}

fn flawed(lines: &[String]) -> CallError {
    CallError::invalid(format!("the definition cannot be used:\n{}", lines.join("\n")))
        .hint("mend all of it and propose it again; nobody was asked")
        .details(json!({ "flaws": lines }))
}

/// The manifest as a file: what decides first, so that whoever reads it meets that first.
fn written(manifest: &Manifest) -> Result<String, CallError> {
    const ORDER: &[&str] =
        &["name", "description", "kind", "version", "permissions", "approval", "inputs", "outputs", "exec", "examples"];
    let fail = |why: String| CallError::internal(format!("the manifest cannot be written: {why}"));
    let value = serde_json::to_value(manifest).map_err(|error| fail(error.to_string()))?;
    let ordered: Map<String, Value> =
        ORDER.iter().filter_map(|key| Some(((*key).to_owned(), value.get(*key)?.clone()))).collect();
    let text = serde_saphyr::to_string(&Value::Object(ordered)).map_err(|error| fail(error.to_string()))?;
    // What a person approves is what will be read.
    match Manifest::read(&text) {
        Ok(again) if again == *manifest => Ok(text),
        _ => Err(CallError::invalid("the definition holds a text that YAML would read differently")
            .hint("leave out control characters and odd line ends")),
    }
}

/// Everything that is wrong with it although it has the right shape.
fn check(
    scene: &Scene,
    manifest: &Manifest,
    (text, files): (&str, &BTreeMap<String, String>),
) -> Result<(), CallError> {
    let flaws = lint(manifest, &Written::new(text), &manifest.name, &Found::default());
    let mut lines: Vec<String> = flaws
        .into_iter()
        .filter(|flaw| flaw.severity == Severity::Error)
        .map(|flaw| flaw.at((0, 0)).to_string())
        .collect();
    if manifest.approval.reason.as_deref().is_none_or(|reason| reason.trim().is_empty())
        && !lines.iter().any(|line| line.starts_with("approval.reason"))
    {
        lines.push("approval.reason: is missing: whoever is asked for approval has to be told why".to_owned());
    }
    lines.extend(kept::missing(scene.workspace().root(), manifest, files));
    if lines.is_empty() { Ok(()) } else { Err(flawed(&lines)) }
}

/// Refuses what asks for more than agents may give their tools. Nothing is ever clipped to fit.
fn within(manifest: &Manifest, scene: &Scene) -> Result<(), CallError> {
    let mut excess: Vec<String> = Vec::new();
    for ceiling in &scene.making().ceilings {
        for line in exceeds(&manifest.permissions, ceiling) {
            if !excess.contains(&line) {
                excess.push(line);
            }
        }
    }
    // A call of another tool is decided by itself; but a tool that makes tools would get round the limits above.
    if let Exec::Pipeline(pipeline) = &manifest.exec {
        excess.extend(pipeline.steps.iter().filter_map(|step| makes(step, &scene.catalogue().registry)));
    }
    if excess.is_empty() {
        return Ok(());
    }
    let message = format!("it asks for more than a tool of an agent may have: {}", excess.join("; "));
    Err(CallError::new(ErrorKind::Denied, message)
        .hint("ask for less; only the user can raise security.max_permissions")
        .details(json!({ "excess": excess })))
}

/// Why a step must not be: it makes what is kept, under whatever name, or may do so.
fn makes(step: &Step, registry: &Registry) -> Option<String> {
    let args = Value::Object(step.args.clone());
    let call = unwrapped(Call::new(crate::new_call_id(), step.tool.as_str(), args));
    let id = haft_core::preview::inert(&step.id);
    let entry = match registry.resolve(&call) {
        Ok(meant) => meant.entry,
        // A step of the shape that a call by way of another tool has may name anything.
        Err(_) if call.spoken.contains("${") => {
            return Some(format!("the step `{id}` would call a tool that only its inputs name"));
        }
        Err(_) => return None,
    };
    let spec = entry.spec();
    spec.reach
        .proposes
        .then(|| format!("it would make what is kept and used later: the step `{id}` calls {}", spec.name))
}

/// Refuses keys, characters that nobody sees, and orders to whoever reads the definition.
fn clean(text: &str, files: &BTreeMap<String, String>) -> Result<(), CallError> {
    note::fit_to_keep("the definition", text)?;
    for (path, content) in files {
        let shown = haft_core::preview::inert(path);
        if contains_secret(content) {
            return Err(note::key_in(&format!("`{shown}`")));
        }
        if haft_core::scan::scan(content).findings.iter().any(|found| found.kind == haft_core::scan::Kind::Hidden) {
            return Err(CallError::invalid(format!("there are characters in `{shown}` that nobody sees")));
        }
    }
    Ok(())
}

/// Refuses names that mean something already.
fn is_free(name: &str, scene: &Scene) -> Result<(), CallError> {
    let registry = &scene.catalogue().registry;
    let spoken = ToolName::new(name).map(|name| name.api_name()).unwrap_or_default();
    let known = registry.get(name).or_else(|| registry.get_by_api_name(&spoken));
    if let Some(said) = haft_core::dialect::elsewhere(name).first() {
        return Err(taken(&format!("`{name}` is what others call {}", said.canonical())));
    }
    if let Some(other) = known.filter(|entry| entry.spec().reach.declared.is_none()) {
        return Err(taken(&format!("`{name}` is how models call {}", other.spec().name)));
    }
    let own = scene.workspace().root().join(".haft/tools");
    let mut folders: Vec<_> = scene.shelf().folders().iter().map(|folder| folder.path.clone()).collect();
    folders.push(scene.workspace().root().join(".glee/tools"));
    let elsewhere = folders.iter().filter(|folder| **folder != own).map(|folder| folder.join(name));
    match elsewhere.into_iter().find(|dir| std::fs::symlink_metadata(dir).is_ok()) {
        Some(dir) => Err(taken(&format!("there is a tool `{name}` in {}", scene.shown(&dir)))),
        None => Ok(()),
    }
}

fn taken(why: &str) -> CallError {
    CallError::conflict(format!("the name is taken: {why}")).hint("take another name")
}

/// Refuses a change that does not count up.
fn newer(manifest: &Manifest, old: &Manifest) -> Result<(), CallError> {
    let version = old.version;
    if manifest.version > version {
        return Ok(());
    }
    Err(CallError::conflict(format!("the tool is at version {version}, and this one is {}", manifest.version))
        .hint(format!("set version to {} to change it", version.saturating_add(1))))
}

#[cfg(test)]
mod tests;
