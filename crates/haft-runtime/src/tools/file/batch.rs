//! file.batch: renames, moves or rewrites every file that a pattern matches, all of them or none.

mod captures;

use super::edit::{EditError, Occurrences, Quotes, Replacement};
use super::walk::{self, Skip, Tree, Troubles};
use crate::files;
use crate::scene::Scene;
use crate::text_encoding::TextEncoding;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use crate::workspace::display;
use captures::CapturingGlob;
use haft_core::change::Change;
use haft_core::place::Access;
use haft_core::preview::size;
use haft_core::{CallError, path_text};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Larger files are not rewritten.
const TRANSFORM_MAX: u64 = 10 << 20;
/// More files than this are not changed in one call.
const FILES_MAX: usize = 1000;
/// The new content of all files together is not larger.
const TOTAL_MAX: usize = 256 << 20;

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
    captures: Vec<Vec<u8>>,
}

/// What is done with the files that match.
#[derive(Default)]
struct Plan {
    changes: Vec<Change>,
    /// Files that are left as they are, each with the reason.
    skipped: Vec<String>,
}

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    let spec = declare("file.batch", "Rename, move, or find and replace text in every file that a glob matches, in one step. Either all files change or none. Finds and replaces like file.edit, in each file's encoding and line ends; skips binary files. Returns the changed and the skipped paths.")
        .hint("bulk mass rename move transform many files")
        .input(json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Glob relative to path, e.g. **/*.txt; knows *, ? and **"},
                "path": {"type": "string", "description": "Directory that the pattern starts in", "default": "."},
                "operation": {"type": "string", "enum": ["rename", "move", "transform"]},
                "rename_to": {"type": "string", "description": "For rename: the new file name; $1, $2 … are what the pattern's wildcards matched"},
                "destination": {"type": "string", "description": "For move: the target directory"},
                "find": {"type": "string", "description": "For transform: the text to find"},
                "replace": {"type": "string", "description": "For transform: the replacement; an empty string deletes the text"}
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
    args.require()?;
    let (matches, warnings) = find(scene, &args.pattern)?;
    if matches.is_empty() {
        let text = format!("No files match {}", args.pattern);
        return Ok(Reply { warnings, ..Reply::text(text).data(json!({"changed": 0, "files": [], "skipped": []})) });
    }
    let plan = match args.operation {
        Operation::Rename => rename(scene, &args, &matches)?,
        Operation::Move => move_to(scene, &matches)?,
        Operation::Transform => transform(scene, &args, &matches)?,
    };
    let lines: Vec<String> = plan.changes.iter().map(|change| describe(scene, change)).collect();
    let mut text = format!("{} of {} matching files changed", lines.len(), matches.len());
    if !lines.is_empty() {
        text.push_str(&format!("\n{}", lines.join("\n")));
    }
    if !plan.skipped.is_empty() {
        text.push_str(&format!("\n{} skipped:\n{}", plan.skipped.len(), plan.skipped.join("\n")));
    }
    let data = json!({"changed": lines.len(), "files": lines, "skipped": plan.skipped});
    Ok(Reply { warnings, ..Reply::text(text).data(data).changes(plan.changes) })
}

impl Args {
    /// Refuses a call that does not say what its operation needs, before anything is looked at.
    fn require(&self) -> Result<(), CallError> {
        let missing = match self.operation {
            Operation::Rename if self.rename_to.is_none() => "operation rename needs `rename_to`",
            Operation::Transform if self.find.as_ref().is_none_or(String::is_empty) => {
                "operation transform needs `find`"
            }
            Operation::Transform if self.replace.is_none() => {
                "operation transform needs `replace`; an empty string deletes what is found"
            }
            Operation::Transform if self.find == self.replace => "`find` and `replace` are the same",
            _ => return Ok(()),
        };
        Err(CallError::invalid(missing))
    }
}

fn describe(scene: &Scene, change: &Change) -> String {
    match change {
        Change::Move { from, to, .. } => format!("{} -> {}", scene.shown(from), scene.shown(to)),
        other => scene.shown(other.path()),
    }
}

/// The regular files that the pattern matches, in order, without ignored and sensitive ones.
fn find(scene: &Scene, pattern: &str) -> Result<(Vec<Match>, Vec<String>), CallError> {
    let invalid = |why: String| CallError::invalid(format!("`{pattern}` is not a glob: {why}"));
    let found = find_matching(scene, &CapturingGlob::new(pattern).map_err(invalid)?)?;
    // What looks like an escape may be the name itself.
    if found.0.is_empty() && path_text::has_escape(pattern) {
        return find_matching(scene, &CapturingGlob::as_written(pattern).map_err(invalid)?);
    }
    Ok(found)
}

fn find_matching(scene: &Scene, glob: &CapturingGlob) -> Result<(Vec<Match>, Vec<String>), CallError> {
    let place = scene.place("path")?;
    let meta = std::fs::metadata(&place.real).map_err(|error| files::explain(&place.shown, &error))?;
    if !meta.is_dir() {
        return Err(CallError::invalid(format!("{} is not a directory", place.shown)));
    }
    let (mut matches, mut matching, mut sensitive) = (Vec::new(), 0, 0);
    let mut troubles = Troubles::default();
    walk::require_sound(&place.real, &place.shown)?;
    let (mut walker, unsound) = Tree::new(&place.real, Skip::Ignored).walker();
    let walk = walker.sort_by_file_name(Ord::cmp).build();
    for entry in walk {
        scene.halt().check()?;
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                troubles.walk(scene, &error);
                continue;
            }
        };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let Some(captures) = glob.captures(walk::below(&place.real, entry.path())) else { continue };
        if scene.workspace().judge_change(entry.path()).is_some() {
            sensitive += 1;
            continue;
        }
        matching += 1;
        if matching <= FILES_MAX {
            matches.push(Match { path: entry.into_path(), captures });
        }
    }
    troubles.unsound(scene, &unsound);
    if matching > FILES_MAX {
        let message = format!("{matching} files match, and at most {FILES_MAX} are changed in one call");
        return Err(CallError::invalid(message).hint("narrow the pattern"));
    }
    let mut warnings = troubles.warnings();
    if sensitive > 0 {
        warnings.push(format!("{sensitive} sensitive files were left alone"));
    }
    Ok((matches, warnings))
}

fn rename(scene: &Scene, args: &Args, matches: &[Match]) -> Result<Plan, CallError> {
    let template = args.rename_to.as_deref().unwrap_or_default();
    let pairs = matches.iter().map(|found| {
        let name = captures::expand(template, &found.captures).map_err(|number| {
            CallError::invalid(format!("`rename_to` names ${number}, but the pattern has no such wildcard"))
        })?;
        let proper = !matches!(name.as_slice(), b"" | b"." | b"..") && !name.iter().any(|byte| b"/\0".contains(byte));
        let name = OsStr::from_bytes(&name);
        if !proper {
            return Err(CallError::invalid(format!(
                "`{}` is not a file name; use operation move to change directories",
                display(name)
            )));
        }
        Ok((found.path.clone(), found.path.with_file_name(name)))
    });
    moves(scene, pairs.collect::<Result<_, _>>()?)
}

fn move_to(scene: &Scene, matches: &[Match]) -> Result<Plan, CallError> {
    let place = scene.place("destination").map_err(|_| CallError::invalid("operation move needs `destination`"))?;
    let target = |path: &Path| path.file_name().map(|name| place.real.join(name));
    moves(scene, matches.iter().filter_map(|found| Some((found.path.clone(), target(&found.path)?))).collect())
}

/// Moves, refusing whatever would land on something.
fn moves(scene: &Scene, pairs: Vec<(PathBuf, PathBuf)>) -> Result<Plan, CallError> {
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
        let before = files::state_until(&from, &scene.shown(&from), scene.halt())?;
        changes.push(Change::Move { from, to, before });
    }
    Ok(Plan { changes, skipped: Vec::new() })
}

fn transform(scene: &Scene, args: &Args, matches: &[Match]) -> Result<Plan, CallError> {
    let (Some(old), Some(new)) = (&args.find, &args.replace) else { return Ok(Plan::default()) };
    let replacement = Replacement { old, new, occurrences: Occurrences::All, quotes: Quotes::AsWritten };
    let (mut plan, mut total) = (Plan::default(), 0);
    for found in matches {
        scene.halt().check()?;
        let shown = scene.shown(&found.path);
        let (content, _, before) = match files::load_with_state(&found.path, &shown, TRANSFORM_MAX) {
            Ok(loaded) => loaded,
            Err(error) => {
                plan.skipped.push(error.message);
                continue;
            }
        };
        let Some(encoding) = text_encoding(&content) else {
            plan.skipped.push(format!("{shown} is a binary file"));
            continue;
        };
        match replacement.apply(&content, encoding) {
            Ok(edited) => {
                total += edited.content.len();
                if total > TOTAL_MAX {
                    return Err(too_much(total));
                }
                let (path, content) = (found.path.clone(), edited.content);
                plan.changes.push(Change::Write { path, content, before, mode: None });
            }
            Err(EditError::Missing | EditError::Identical) => {}
            Err(EditError::Undecodable(encoding)) => {
                plan.skipped
                    .push(format!("{shown} looks like {encoding}, but some of its bytes are not valid {encoding}"));
            }
            Err(other) => return Err(other.explain(&shown)),
        }
    }
    Ok(plan)
}

/// The encoding of a file that is changed without having been read by anybody: a NUL anywhere in it makes it binary.
fn text_encoding(content: &[u8]) -> Option<TextEncoding> {
    let encoding = TextEncoding::detect(content)?;
    let has_nul = if encoding.is_utf16() { false } else { memchr::memchr(0, content).is_some() };
    (!has_nul).then_some(encoding)
}

fn too_much(bytes: usize) -> CallError {
    let message = format!("the changed files come to more than {}, the limit for one call", size(TOTAL_MAX));
    CallError::failed(format!("{message}; nothing was changed"))
        .hint("narrow the pattern")
        .details(json!({ "bytes": bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;
    use serde_json::Value;

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

    #[test]
    fn a_forgotten_argument_is_an_error() {
        let stage = stage();
        let say = |args: Value| stage.act(&tool(), args).unwrap_err();
        let error = say(json!({"pattern": "*.txt", "operation": "transform", "find": "two"}));
        assert_eq!(error.message, "operation transform needs `replace`; an empty string deletes what is found");
        assert_eq!(error.kind, haft_core::ErrorKind::InvalidInput);
        let error = say(json!({"pattern": "*.txt", "operation": "transform", "replace": "two"}));
        assert_eq!(error.message, "operation transform needs `find`");
        // Also where nothing matches.
        let error = say(json!({"pattern": "*.none", "operation": "rename"}));
        assert_eq!(error.message, "operation rename needs `rename_to`");
        let args = json!({"pattern": "a.txt", "operation": "transform", "find": " two", "replace": ""});
        assert_eq!(contents(&stage.act(&tool(), args).unwrap()), [b"one".to_vec()]);
    }

    fn contents(reply: &Reply) -> Vec<Vec<u8>> {
        let content = |change: &Change| match change {
            Change::Write { content, .. } => content.clone(),
            _ => panic!("{change:?}"),
        };
        reply.changes.iter().map(content).collect()
    }

    #[test]
    fn every_file_is_changed_in_its_line_ends_and_its_encoding() {
        let stage = Stage::new();
        stage.file("crlf", "a\r\nb\r\n");
        stage.file("latin", b"\xe9\r\na\nb");
        stage.file("mixed", "a\nb\r\na\r\nb");
        let args = json!({"pattern": "*", "operation": "transform", "find": "a\nb", "replace": "x\ny"});
        let reply = stage.act(&tool(), args).unwrap();
        assert_eq!(contents(&reply), [&b"x\r\ny\r\n"[..], b"\xe9\r\nx\ny", b"x\ny\r\nx\r\ny"]);
        let args = json!({"pattern": "*", "operation": "transform", "find": "a", "replace": "→"});
        let error = stage.act(&tool(), args).unwrap_err();
        assert!(error.message.starts_with("latin is in windows-1252, which does not have"), "{}", error.message);
    }

    #[test]
    fn binary_files_are_skipped_and_named() {
        let stage = stage();
        stage.file("c.txt", b"two\0");
        stage.file("d.txt", [b"two\n".repeat(200).as_slice(), b"\0"].concat());
        std::fs::File::create(stage.root().join("e.txt")).unwrap().set_len(1 << 40).unwrap();
        let args = json!({"pattern": "*.txt", "operation": "transform", "find": "two", "replace": "2"});
        let reply = stage.act(&tool(), args).unwrap();
        insta::assert_snapshot!(reply.text, @r"
        2 of 5 matching files changed
        a.txt
        b.txt
        3 skipped:
        c.txt is a binary file
        d.txt is a binary file
        e.txt is larger than 10.0MB, the limit here
        ");
        assert_eq!(reply.data.unwrap()["skipped"][0], "c.txt is a binary file");
    }

    #[test]
    fn names_are_accepted_as_they_are_shown() {
        let stage = Stage::new();
        let named = |name: &[u8]| stage.root().join(OsStr::from_bytes(name));
        for name in [&b"caf\xe9.txt"[..], b"a\nb.txt", b"lit\\xe9ral.txt"] {
            std::fs::write(named(name), "x").unwrap();
        }
        let renamed = |pattern: &str, to: &str| {
            let args = json!({"pattern": pattern, "operation": "rename", "rename_to": to});
            stage.act(&tool(), args).unwrap().text.lines().skip(1).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(renamed("caf\\xe9.*", "caf\\xe8.$1"), "caf\\xe9.txt -> caf\\xe8.txt");
        assert_eq!(renamed("a\\x0ab.txt", "ab.txt"), "a\\x0ab.txt -> ab.txt");
        assert_eq!(renamed("lit\\x5cxe9ral.txt", "x"), "lit\\x5cxe9ral.txt -> x");
        assert_eq!(renamed("lit\\xe9ral.txt", "x"), "lit\\x5cxe9ral.txt -> x", "what a program printed names it, too");
        let all = stage.act(&tool(), json!({"pattern": "*.txt", "operation": "move", "destination": "to"})).unwrap();
        assert_eq!(all.changes.len(), 3);
    }

    #[test]
    fn transforming_takes_time_in_proportion_to_files_and_sizes() {
        let stage = Stage::new();
        for (count, length) in [(20, 5000), (160, 40_000)] {
            for n in 0..count {
                stage.file(&format!("files{count}/{n}"), "a\r\n".repeat(20));
            }
            stage.file(&format!("size{count}/one"), "a\r\n".repeat(length));
        }
        crate::testing::assert_linear(20, |count| {
            for (dir, changed) in [("files", count), ("size", 1)] {
                let args = json!({
                    "path": format!("{dir}{count}"), "pattern": "*", "operation": "transform", "find": "a\n", "replace": "bb\n"
                });
                assert_eq!(stage.act(&tool(), args).unwrap().changes.len(), changed);
            }
        });
    }
}
