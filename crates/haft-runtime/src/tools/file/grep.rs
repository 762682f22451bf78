//! file.grep: finds text in files by a regular expression.
//!
//! Made of the parts that ripgrep is made of, minus its memory maps: a file that shrinks while it is
//! mapped would kill the whole process, and a tool that runs beside editors cannot rule that out.

mod across;
mod kept;
mod line;
mod line_ends;
mod query;
mod search;
mod sink;

use super::walk::{self, Skip, Tree, Troubles};
use crate::files;
use crate::scene::Scene;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use haft_core::CallError;
use haft_core::place::Access;
use haft_core::shape::Limits;
use kept::{Kept, Totals};
use query::{Args, MAX_LINES, Query};
use search::Searching;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    let spec = declare("file.grep", "Search file contents for a regular expression (ripgrep syntax). Returns `path:line:text` with each line exactly as in the file, or only paths, or counts of matching lines. Searches hidden files; skips binary files and files that git ignores. A pattern with \\n matches across lines.")
        .hint("search text content regex find in files rg ripgrep")
        .input(input())
        .output(output())
        .touches("path", Access::Read, Some("."))
        .limits(Limits { lines: MAX_LINES * 2, ..Limits::default() });
    Blocking::tool(spec, grep)
}

fn input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "Regular expression to search for"},
            "path": {"type": "string", "default": ".", "description": "File or directory to search, absolute or relative to the project root"},
            "glob": {"type": "string", "minLength": 1, "description": "Search only matching files, e.g. `*.{ts,tsx}`; `!*.min.js` excludes; with a slash relative to `path`"},
            "output_mode": {
                "type": "string",
                "enum": ["content", "files_with_matches", "count"],
                "default": "content",
                "description": "content: lines; files_with_matches: paths only; count: matches per file"
            },
            "context": {"type": "integer", "minimum": 0, "maximum": 50, "default": 0, "description": "Lines of context around each match"},
            "case_insensitive": {"type": "boolean", "default": false, "description": "Ignore case"},
            "head_limit": {"type": "integer", "minimum": 1, "default": 250, "description": "Maximum lines of output, up to 10000"}
        },
        "required": ["pattern"],
        "additionalProperties": false
    })
}

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "matches": {"type": "integer", "description": "Matching lines, shown or not; in files_with_matches mode each file counts once"},
            "files": {"type": "integer", "description": "Files with a match, shown or not"},
            "truncated": {"type": "boolean", "description": "Whether there are more than head_limit shows"},
            "lines": {"type": "array", "description": "In content mode: the matching lines up to head_limit, at most 1 MiB of them, as they stand in the file", "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "line": {"type": "integer"},
                    "text": {"type": "string"}
                },
                "required": ["path", "line", "text"]
            }}
        },
        "required": ["matches", "files", "truncated"]
    })
}

fn grep(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let place = scene.place("path")?;
    let meta = std::fs::symlink_metadata(&place.real).map_err(|error| files::explain(&place.shown, &error))?;
    let query = Query::new(&args)?;
    let kept = Mutex::new(Kept::new(query.limit));
    let (totals, troubles) = if meta.is_dir() { tree(scene, &query, &kept)? } else { single(scene, &query, &kept)? };
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut reply = kept.tell(scene, query.mode, query.context > 0, totals);
    if totals.files == 0 {
        reply.text = format!("No matches for {} in {}", args.pattern, place.shown);
    }
    reply.warnings = troubles.warnings();
    Ok(reply)
}

fn tree(scene: &Scene, query: &Query, kept: &Mutex<Kept>) -> Result<(Totals, Troubles), CallError> {
    let place = scene.place("path")?;
    walk::require_dir(place, "name a file or a directory")?;
    let tree = Tree::new(&place.real, Skip::Ignored);
    let (shares, troubles) = walk::share_out(scene, place, &tree, || Searching::new(scene, query, &place.real, kept))?;
    let totals = shares.iter().fold(Totals::default(), |sum, share| sum + share.totals());
    Ok((totals, troubles))
}

/// A file that the caller names is searched whatever the ignore files and `glob` say.
fn single(scene: &Scene, query: &Query, kept: &Mutex<Kept>) -> Result<(Totals, Troubles), CallError> {
    let place = scene.place("path")?;
    let file = files::open(&place.real).map_err(|error| files::explain(&place.shown, &error))?;
    let mut searching = Searching::new(scene, query, &place.real, kept);
    let mut troubles = Troubles::default();
    searching.search(&place.real, &file, &mut troubles);
    scene.halt().check()?;
    if searching.binaries() > 0 {
        troubles.tell(format!("{} is a binary file and was not searched", place.shown));
    }
    Ok((searching.totals(), troubles))
}

#[cfg(test)]
mod tests;
