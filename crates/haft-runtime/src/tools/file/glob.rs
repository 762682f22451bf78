//! file.glob: finds files by the shape of their paths, newest first.

mod newest;
mod pattern;

use super::fitted::LineList;
use super::path_glob::PathGlob;
use super::walk::{self, Share, Skip, Tree, Troubles};
use crate::scene::Scene;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use crate::workspace::display;
use haft_core::CallError;
use haft_core::place::Access;
use haft_core::preview::size;
use haft_core::shape::Limits;
use ignore::DirEntry;
use newest::{Found, Newest};
use pattern::Pattern;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// More files than this are counted, not named.
const MAX_FILES: usize = 10_000;

#[derive(Deserialize)]
struct Args {
    pattern: String,
    include_ignored: bool,
}

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    let spec = declare("file.glob", "Find files by name with a glob pattern. Returns paths with sizes, newest first. `*.rs` matches files directly in `path`, `**/*.rs` at any depth. Includes hidden files. Skips files that git ignores and .git, node_modules, __pycache__, vendor, dist, build, .DS_Store and *.pyc unless include_ignored is set.")
        .hint("find files by name pattern wildcard search path")
        .input(json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1, "description": "Glob pattern relative to `path`, e.g. `src/**/*.{ts,tsx}`"},
                "path": {"type": "string", "default": ".", "description": "Directory to search, absolute or relative to the project root"},
                "include_ignored": {"type": "boolean", "default": false, "description": "Include ignored files and build output"}
            },
            "required": ["pattern"],
            "additionalProperties": false
        }))
        .output(output())
        .touches("path", Access::Read, Some("."))
        .limits(Limits { lines: MAX_FILES + 1, bytes: 102_400, ..Limits::default() });
    Blocking::tool(spec, glob)
}

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "files": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "size": {"type": "integer"},
                    "mtime_ms": {"type": "integer"},
                    "target": {"type": "string", "description": "For a symbolic link: what it holds"}
                },
                "required": ["path", "size", "mtime_ms"]
            }},
            "total": {"type": "integer", "description": "How many files match, named or not"},
            "truncated": {"type": "boolean"}
        },
        "required": ["files", "total", "truncated"]
    })
}

fn glob(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let place = scene.place("path")?;
    walk::require_dir(place, "give its directory as `path` and its name as `pattern`")?;
    let pattern = Pattern::parse(&args.pattern, &place.real)?;
    let skip = if args.include_ignored { Skip::Nothing } else { Skip::IgnoredAndMade };
    let tree = Tree { start: &place.real, skip, within: pattern.within, depth: pattern.depth };
    // A clone for each thread, because threads that share one wait for its scratch space.
    let share = || Matching { scene, start: &place.real, glob: pattern.glob.clone(), newest: Newest::new(MAX_FILES) };
    let (shares, troubles) = walk::share_out(scene, place, &tree, share)?;
    let mut newest = Newest::new(MAX_FILES);
    for share in shares {
        newest.merge(share.newest);
    }
    let (found, total) = newest.finish();
    let mut reply = tell(scene, &found, total);
    if found.is_empty() {
        reply.text = nothing(&args, &place.shown);
    }
    reply.warnings = troubles.warnings();
    Ok(reply)
}

/// One thread's matches.
struct Matching<'a> {
    scene: &'a Scene,
    start: &'a Path,
    glob: PathGlob,
    newest: Newest,
}

impl Share for Matching<'_> {
    const LINKS: bool = true;

    fn wants(&self, path: &Path) -> bool {
        self.glob.is_match(walk::below(self.start, path))
    }

    fn take(&mut self, entry: DirEntry, troubles: &mut Troubles) {
        match std::fs::symlink_metadata(entry.path()) {
            Ok(meta) => self.newest.push(Found::new(entry.into_path(), &meta)),
            Err(error) => troubles.file(self.scene, entry.path(), &error),
        }
    }
}

fn tell(scene: &Scene, found: &[Found], total: usize) -> Reply {
    let mut list = LineList::default();
    let mut files = Vec::with_capacity(found.len());
    for file in found {
        let path = scene.shown(&file.path);
        let mut data = json!({"path": path, "size": file.size, "mtime_ms": file.mtime_ns.div_euclid(1_000_000)});
        if file.is_link {
            let target = std::fs::read_link(&file.path).unwrap_or_default();
            let target = display(target.as_os_str());
            list.push(&format!("{path} -> {target}"));
            data["target"] = target.into();
        } else {
            list.push(&format!("{path}  {}", size(usize::try_from(file.size).unwrap_or(usize::MAX))));
        }
        files.push(data);
    }
    let note = |shown: usize| {
        let newest = "narrow the pattern to see the others";
        (shown < total).then(|| format!("[the newest {shown} of {total} files; {newest}]"))
    };
    let truncated = total > found.len();
    list.reply(scene.limits(), note).data(json!({"files": files, "total": total, "truncated": truncated}))
}

fn nothing(args: &Args, shown: &str) -> String {
    let mut text = format!("No files match {} in {shown}", args.pattern);
    if !args.pattern.contains(['/', '*']) || (args.pattern.starts_with('*') && !args.pattern.contains('/')) {
        let _ = write!(text, " itself; **/{} searches its subdirectories too", args.pattern);
    }
    if !args.include_ignored {
        text.push_str(" (ignored files were not searched; include_ignored adds them)");
    }
    text
}

#[cfg(test)]
mod tests;
