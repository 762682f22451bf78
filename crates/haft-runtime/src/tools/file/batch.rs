//! file.batch: renames, moves or rewrites every file that a pattern matches, all of them or none.

mod captures;

use super::path_glob::CapturingGlob;
use super::walk::{self, Skip, Tree};
use crate::files;
use crate::scene::Scene;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use haft_core::CallError;
use haft_core::change::{Change, State};
use haft_core::place::Access;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Larger files are not rewritten.
const TRANSFORM_MAX: u64 = 10 << 20;
/// More files than this are not changed in one call.
const FILES_MAX: usize = 1000;

#[derive(Deserialize, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Operation {
    Rename,
    Move,
    Transform,
}

#[derive(Deserialize)]
struct Args {
    pattern: String,
    operation: Operation,
    rename_to: Option<String>,
    find: Option<String>,
    replace: Option<String>,
}

/// A file that the pattern matches.
struct Match {
    path: PathBuf,
    captures: Vec<String>,
}

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    let spec = declare("file.batch", "Rename, move, or find and replace text in every file that a glob matches, in one step. Either all files change or none. Returns the changed paths.")
        .hint("bulk mass rename move transform many files")
        .input(json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Glob relative to path, e.g. **/*.txt"},
                "path": {"type": "string", "description": "Directory that the pattern starts in", "default": "."},
                "operation": {"type": "string", "enum": ["rename", "move", "transform"]},
                "rename_to": {"type": "string", "description": "For rename: the new file name; $1, $2 … are what the pattern's wildcards matched"},
                "destination": {"type": "string", "description": "For move: the target directory"},
                "find": {"type": "string", "description": "For transform: the text to find"},
                "replace": {"type": "string", "description": "For transform: the replacement"}
            },
            "required": ["pattern", "operation"],
            "additionalProperties": false
        }))
        .changes_files()
        .touches("path", Access::Write, Some("."))
        .touches("destination", Access::Write, None)
        .body("find")
        .body("replace");
    Blocking::tool(spec, batch)
}

fn batch(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let (matches, mut warnings) = find(scene, &args.pattern)?;
    if matches.is_empty() {
        let mut reply =
            Reply::text(format!("No files match {}", args.pattern)).data(json!({"changed": 0, "files": []}));
        reply.warnings = warnings;
        return Ok(reply);
    }
    let changes = match args.operation {
        Operation::Rename => rename(scene, &args, &matches)?,
        Operation::Move => move_to(scene, &matches)?,
        Operation::Transform => transform(scene, &args, &matches, &mut warnings)?,
    };
    let lines: Vec<String> = changes.iter().map(|change| describe(scene, change)).collect();
    let text = format!("{} of {} matching files changed\n{}", changes.len(), matches.len(), lines.join("\n"));
    let data = json!({"changed": changes.len(), "files": lines});
    let mut reply = Reply::text(text).data(data).changes(changes);
    reply.warnings = warnings;
    Ok(reply)
}

fn describe(scene: &Scene, change: &Change) -> String {
    match change {
        Change::Move { from, to, .. } => format!("{} -> {}", scene.shown(from), scene.shown(to)),
        other => scene.shown(other.path()),
    }
}

/// The regular files that the pattern matches, in order, without ignored and sensitive ones.
fn find(scene: &Scene, pattern: &str) -> Result<(Vec<Match>, Vec<String>), CallError> {
    let place = scene.place("path")?;
    let meta = std::fs::metadata(&place.real).map_err(|error| files::explain(&place.shown, &error))?;
    if !meta.is_dir() {
        return Err(CallError::invalid(format!("{} is not a directory", place.shown)));
    }
    let glob =
        CapturingGlob::new(pattern).map_err(|why| CallError::invalid(format!("`{pattern}` is not a glob: {why}")))?;
    let (mut matches, mut warnings, mut sensitive) = (Vec::new(), Vec::new(), 0);
    walk::require_sound(&place.real, &place.shown)?;
    let (mut walker, unsound) = Tree::new(&place.real, Skip::Ignored).walker();
    let walk = walker.sort_by_file_name(Ord::cmp).build();
    for entry in walk {
        scene.halt().check()?;
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                warnings.push(error.to_string());
                continue;
            }
        };
        let relative = entry.path().strip_prefix(&place.real).unwrap_or(entry.path());
        let Some(captures) = relative.to_str().and_then(|text| glob.captures(text)) else { continue };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        if scene.workspace().judge_change(entry.path()).is_some() {
            sensitive += 1;
        } else {
            matches.push(Match { path: entry.into_path(), captures });
        }
    }
    for dir in unsound.take() {
        warnings.push(format!("{}: left out, because its ignore file cannot be read safely", scene.shown(&dir)));
    }
    if sensitive > 0 {
        warnings.push(format!("{sensitive} sensitive files were left alone"));
    }
    if matches.len() > FILES_MAX {
        let message = format!("{} files match, and at most {FILES_MAX} are changed in one call", matches.len());
        return Err(CallError::invalid(message).hint("narrow the pattern"));
    }
    Ok((matches, warnings))
}

fn rename(scene: &Scene, args: &Args, matches: &[Match]) -> Result<Vec<Change>, CallError> {
    let template = args.rename_to.as_deref().ok_or_else(|| CallError::invalid("operation rename needs `rename_to`"))?;
    let pairs = matches.iter().map(|found| {
        let name = captures::expand(template, &found.captures).map_err(|number| {
            CallError::invalid(format!("`rename_to` names ${number}, but the pattern has no such wildcard"))
        })?;
        let proper = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
        if !proper {
            return Err(CallError::invalid(format!(
                "`{name}` is not a file name; use operation move to change directories"
            )));
        }
        Ok((found.path.clone(), found.path.with_file_name(name)))
    });
    moves(scene, pairs.collect::<Result<_, _>>()?)
}

fn move_to(scene: &Scene, matches: &[Match]) -> Result<Vec<Change>, CallError> {
    let place = scene.place("destination").map_err(|_| CallError::invalid("operation move needs `destination`"))?;
    let target = |path: &Path| path.file_name().map(|name| place.real.join(name));
    moves(scene, matches.iter().filter_map(|found| Some((found.path.clone(), target(&found.path)?))).collect())
}

/// Moves, refusing whatever would land on something.
fn moves(scene: &Scene, pairs: Vec<(PathBuf, PathBuf)>) -> Result<Vec<Change>, CallError> {
    let mut taken = BTreeSet::new();
    let mut changes = Vec::new();
    for (from, to) in pairs {
        if from == to {
            continue;
        }
        if !taken.insert(to.clone()) {
            return Err(CallError::conflict(format!("two files would become {}", scene.shown(&to))));
        }
        if to.symlink_metadata().is_ok() {
            return Err(CallError::conflict(format!("{} already exists", scene.shown(&to))));
        }
        if scene.workspace().judge_change(&to).is_some() {
            return Err(CallError::conflict(format!("{} is a sensitive place", scene.shown(&to))));
        }
        let before = files::state(&from).map_err(|error| files::explain(&scene.shown(&from), &error))?;
        changes.push(Change::Move { from, to, before });
    }
    Ok(changes)
}

fn transform(
    scene: &Scene,
    args: &Args,
    matches: &[Match],
    warnings: &mut Vec<String>,
) -> Result<Vec<Change>, CallError> {
    let find = args
        .find
        .as_deref()
        .filter(|find| !find.is_empty())
        .ok_or_else(|| CallError::invalid("operation transform needs `find`"))?;
    let replace = args.replace.as_deref().unwrap_or_default();
    let mut changes = Vec::new();
    for found in matches {
        scene.halt().check()?;
        let shown = scene.shown(&found.path);
        let before = files::state(&found.path).map_err(|error| files::explain(&shown, &error))?;
        let loaded = files::load(&found.path, &shown, TRANSFORM_MAX);
        match loaded.map(|(content, _)| String::from_utf8(content)) {
            Err(error) => warnings.push(format!("skipped: {error}")),
            Ok(Err(_)) => warnings.push(format!("skipped: {shown} is not UTF-8 text")),
            Ok(Ok(text)) if text.contains(find) && before != State::Absent => {
                let content = text.replace(find, replace).into_bytes();
                changes.push(Change::Write { path: found.path.clone(), content, before, mode: None });
            }
            Ok(Ok(_)) => {}
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;

    fn stage() -> Stage {
        let stage = Stage::new();
        for (path, content) in [("a.txt", "one two"), ("b.txt", "two"), ("sub/c.txt", "none"), ("big.md", "two")] {
            stage.file(path, content);
        }
        stage
    }

    #[test]
    fn renames_with_what_the_wildcards_matched() {
        let reply =
            stage().act(&tool(), json!({"pattern": "*.txt", "operation": "rename", "rename_to": "$1.old"})).unwrap();
        assert_eq!(reply.text, "2 of 2 matching files changed\na.txt -> a.old\nb.txt -> b.old");
        assert_eq!(reply.changes.len(), 2);
    }

    #[test]
    fn moves_and_refuses_collisions() {
        let stage = stage();
        let args = json!({"pattern": "**/*.txt", "operation": "move", "destination": "all"});
        assert_eq!(stage.act(&tool(), args.clone()).unwrap().changes.len(), 3);
        stage.file("other/a.txt", "");
        assert_eq!(stage.act(&tool(), args).unwrap_err().message, "two files would become all/a.txt");
        let args = json!({"pattern": "a.txt", "operation": "rename", "rename_to": "b.txt"});
        assert_eq!(stage.act(&tool(), args).unwrap_err().message, "b.txt already exists");
    }

    #[test]
    fn client_control_files_are_neither_made_nor_changed() {
        let stage = stage();
        stage.file(".vscode/tasks.json", "two");
        stage.file(".vscode/notes.txt", "two");
        let args = json!({"pattern": "a.txt", "operation": "rename", "rename_to": ".mcp.json"});
        assert_eq!(stage.act(&tool(), args).unwrap_err().message, ".mcp.json is a sensitive place");
        let args = json!({"pattern": "*", "path": ".vscode", "operation": "transform", "find": "two", "replace": "2"});
        let reply = stage.act(&tool(), args).unwrap();
        assert_eq!(reply.text, "1 of 1 matching files changed\n.vscode/notes.txt");
        assert_eq!(reply.warnings, ["1 sensitive files were left alone"]);
    }

    #[test]
    fn transforms_only_what_holds_the_text() {
        let args = json!({"pattern": "**/*.txt", "operation": "transform", "find": "two", "replace": "2"});
        let reply = stage().act(&tool(), args).unwrap();
        assert_eq!(reply.text, "2 of 3 matching files changed\na.txt\nb.txt");
    }
}
