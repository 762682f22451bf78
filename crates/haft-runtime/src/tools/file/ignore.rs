//! file.ignore: adds patterns to a `.gitignore`, and explains why a path is ignored.

pub(crate) mod rules;

use crate::files;
use crate::scene::Scene;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use haft_core::change::{Change, State};
use haft_core::place::{Access, Place};
use haft_core::{CallError, record::Digest};
use rules::{Rule, Rules};
use serde::Deserialize;
use serde_json::json;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Add,
    Check,
}

#[derive(Deserialize)]
struct Args {
    action: Action,
    #[serde(default)]
    patterns: Vec<String>,
    path: Option<String>,
}

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    let spec = declare("file.ignore", "Manage .gitignore: `add` appends missing patterns to a directory's .gitignore and creates it if needed; `check` tells whether git ignores a path, and by which pattern.")
        .hint("gitignore exclude untracked git check-ignore")
        .input(json!({
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["add", "check"], "description": "What to do"},
                "dir": {"type": "string", "default": ".", "description": "Directory of the .gitignore, absolute or relative to the project root"},
                "patterns": {"type": "array", "items": {"type": "string"}, "description": "For add: patterns such as `*.log` or `dist/`"},
                "path": {"type": "string", "description": "For check: the path to check, relative to `dir`; end a directory that does not exist yet with `/`"}
            },
            "required": ["action"],
            "additionalProperties": false
        }))
        .output(json!({
            "type": "object",
            "properties": {
                "ignored": {"type": "boolean", "description": "For check"},
                "pattern": {"type": "string", "description": "For check: the pattern that decides"},
                "source": {"type": "string", "description": "For check: where it stands, as file:line"},
                "path": {"type": "string", "description": "For add: the .gitignore"},
                "added": {"type": "array", "items": {"type": "string"}, "description": "For add: patterns that were missing"}
            }
        }))
        .changes_files()
        .only_reads_when("action", &["check"])
        .touches("dir", Access::Write, Some("."));
    Blocking::tool(spec, act)
}

fn act(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let place = scene.place("dir")?;
    super::walk::require_dir(place, "give the directory that holds it as `dir`")?;
    match args.action {
        Action::Add => add(scene, place, &args.patterns),
        Action::Check => check(scene, place, args.path.as_deref()),
    }
}

fn add(scene: &Scene, place: &Place, patterns: &[String]) -> Result<Reply, CallError> {
    validate(patterns)?;
    let path = place.real.join(".gitignore");
    let shown = scene.shown(&path);
    let (before, content) = present(&path, &shown)?;
    let mut known: HashSet<&str> = content.lines().map(str::trim_end).collect();
    let missing: Vec<&str> = patterns.iter().map(|it| it.trim_end()).filter(|it| known.insert(it)).collect();
    let data = json!({"path": shown, "added": missing});
    if missing.is_empty() {
        return Ok(Reply::text(format!("{shown} already has {}", patterns.join(", "))).data(data));
    }
    let content = appended(&content, &missing).into_bytes();
    let text = format!("Added {} to {shown}", missing.join(", "));
    Ok(Reply::text(text).data(data).changes(vec![Change::Write { path, content, before, mode: None }]))
}

fn validate(patterns: &[String]) -> Result<(), CallError> {
    if patterns.is_empty() {
        return Err(CallError::invalid("`patterns` is missing: add needs at least one"));
    }
    for pattern in patterns {
        if pattern.trim().is_empty() {
            return Err(CallError::invalid("`patterns` has an empty pattern"));
        }
        if pattern.contains(['\n', '\r', '\0']) {
            return Err(CallError::invalid(format!("a pattern is one line: {pattern:?}")));
        }
    }
    Ok(())
}

/// The file as it stands, and its content.
fn present(path: &Path, shown: &str) -> Result<(State, String), CallError> {
    if path.is_symlink() {
        return Err(CallError::failed(format!("{shown} is a symbolic link, which git does not follow")));
    }
    let before = files::state(path).map_err(|error| files::explain(shown, &error))?;
    let State::File { digest, .. } = &before else { return Ok((before, String::new())) };
    let (content, _) = files::load(path, shown, files::LOAD_MAX)?;
    if Digest::of(&content) != *digest {
        return Err(CallError::conflict(format!("{shown} changed while it was read")).hint("call again"));
    }
    let content = String::from_utf8(content)
        .map_err(|_| CallError::failed(format!("{shown} is not UTF-8 text; nothing was changed")))?;
    Ok((before, content))
}

/// The content with more lines, in the line ends it already has.
fn appended(content: &str, lines: &[&str]) -> String {
    let end = if content.contains("\r\n") { "\r\n" } else { "\n" };
    let mut content = content.to_owned();
    if !content.is_empty() && !content.ends_with('\n') {
        content.push_str(end);
    }
    for line in lines {
        content.push_str(line);
        content.push_str(end);
    }
    content
}

fn check(scene: &Scene, place: &Place, spoken: Option<&str>) -> Result<Reply, CallError> {
    let spoken = spoken.ok_or_else(|| CallError::invalid("`path` is missing: check needs one"))?;
    let path = inside(place, spoken)?;
    let is_dir = spoken.ends_with('/') || std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
    let mut rules = Rules::new(scene, &place.real);
    let rule = rules.decide(&path, is_dir);
    let ignored = rule.as_ref().is_some_and(|rule| !rule.keeps);
    let mut data = json!({"ignored": ignored});
    let text = match rule {
        None => format!("{spoken} is not ignored"),
        Some(Rule { pattern, source, keeps }) => {
            data["pattern"] = pattern.as_str().into();
            data["source"] = source.as_str().into();
            let verb = if keeps { "not ignored: kept" } else { "ignored" };
            format!("{spoken} is {verb} by `{pattern}` ({source})")
        }
    };
    let mut reply = Reply::text(text).data(data);
    reply.warnings = rules.into_warnings();
    Ok(reply)
}

/// The path in question. It stays below the directory: only that was decided upon.
fn inside(place: &Place, spoken: &str) -> Result<PathBuf, CallError> {
    let climbs = Path::new(spoken).components().any(|part| part == std::path::Component::ParentDir);
    // Collected anew, because a slash at the end would keep patterns from matching.
    let path: PathBuf = place.real.join(spoken).components().collect();
    let below = path.strip_prefix(&place.real).is_ok_and(|rest| !rest.as_os_str().is_empty());
    if climbs || !below || spoken.contains('\0') {
        return Err(CallError::invalid(format!("`path` does not lie below {}: {spoken}", place.shown))
            .hint("give a directory above it as `dir`"));
    }
    Ok(path)
}

#[cfg(test)]
mod tests;
