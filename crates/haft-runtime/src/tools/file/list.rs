//! file.list: what is in a directory.

use super::walk::{self, Skip, Tree};
use crate::scene::Scene;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use crate::workspace::{display, display_relative};
use haft_core::CallError;
use haft_core::place::{Access, Place};
use haft_core::preview::size;
use haft_core::shape::Limits;
use ignore::DirEntry;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// More entries than this are not shown; the file with the whole list names them all.
const MAX_ENTRIES: usize = 2000;
/// Room for the line that says how many entries are shown.
const NOTE_MAX: usize = 200;
/// How many entries are taken between two looks at the halt.
const ENTRIES_PER_LOOK: usize = 128;

#[derive(Deserialize)]
struct Args {
    recursive: bool,
}

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    let spec = declare("file.list", "List the files and subdirectories of a directory, with sizes. Directories end in `/`, links show their target. With recursive, lists the whole tree except ignored files and version control directories.")
        .hint("ls directory contents tree dir folder")
        .input(json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "default": ".", "description": "Directory to list, absolute or relative to the project root"},
                "recursive": {"type": "boolean", "default": false, "description": "List subdirectories too, without ignored files"}
            },
            "additionalProperties": false
        }))
        .output(json!({
            "type": "object",
            "properties": {
                "entries": {"type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "description": "Relative to the directory listed"},
                        "kind": {"type": "string", "enum": ["file", "directory", "symlink", "other"]},
                        "size": {"type": "integer", "description": "In bytes, for files"}
                    },
                    "required": ["name", "kind"]
                }},
                "total": {"type": "integer", "description": "How many entries there are, also those that are not among `entries`"}
            },
            "required": ["entries", "total"]
        }))
        .touches("path", Access::Read, Some("."));
    Blocking::tool(spec, list)
}

fn list(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let place = scene.place("path")?;
    walk::require_dir(place, "read it with file.read")?;
    let mut listing = Listing::within(scene.limits());
    let mut troubles = walk::Troubles::default();
    let (entries, unsound) = entries(place, args.recursive)?;
    for (index, entry) in entries.enumerate() {
        if index % ENTRIES_PER_LOOK == 0 {
            scene.halt().check()?;
        }
        match entry {
            Ok(entry) if entry.depth() == 0 => {}
            Ok(entry) => listing.add(&place.real, &entry),
            Err(error) => troubles.walk(scene, &error),
        }
    }
    troubles.unsound(scene, &unsound);
    let mut reply = listing.tell(&place.shown, args.recursive);
    reply.warnings = troubles.warnings();
    Ok(reply)
}

/// The entries in order: a directory before what is in it. One level is listed as it is; only a whole
/// tree needs something left out to be readable.
fn entries(place: &Place, recursive: bool) -> Result<(ignore::Walk, walk::Unsound), CallError> {
    let (mut walker, unsound) = if recursive {
        walk::require_sound(&place.real, &place.shown)?;
        Tree::new(&place.real, Skip::Ignored).walker()
    } else {
        let mut plain = ignore::WalkBuilder::new(&place.real);
        plain.standard_filters(false).max_depth(Some(1));
        (plain, walk::Unsound::default())
    };
    Ok((walker.sort_by_file_name(std::ffi::OsStr::cmp).build(), unsound))
}

/// What an entry is. A link is a link, wherever it leads.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    File,
    Directory,
    Symlink,
    Other,
}

impl Kind {
    fn of(entry: &DirEntry) -> Self {
        match entry.file_type() {
            Some(kind) if kind.is_file() => Self::File,
            Some(kind) if kind.is_dir() => Self::Directory,
            Some(kind) if kind.is_symlink() => Self::Symlink,
            _ => Self::Other,
        }
    }
}

/// What was found so far.
struct Listing {
    limits: Limits,
    /// Every entry, a line each.
    text: String,
    /// How many of them are shown, and how much of the text that is.
    shown: (usize, usize),
    entries: Vec<Value>,
    total: usize,
}

impl Listing {
    fn within(limits: Limits) -> Self {
        let limits = Limits { lines: limits.lines.min(MAX_ENTRIES), ..limits };
        Self { limits, text: String::new(), shown: (0, 0), entries: Vec::new(), total: 0 }
    }

    fn add(&mut self, start: &Path, entry: &DirEntry) {
        let name = display_relative(walk::below(start, entry.path()).as_os_str());
        let kind = Kind::of(entry);
        let mut bytes = None;
        self.text.push_str(&name);
        match kind {
            Kind::Directory => self.text.push('/'),
            Kind::Symlink => {
                let target = std::fs::read_link(entry.path()).unwrap_or_default();
                let _ = write!(self.text, " -> {}", display(target.as_os_str()));
            }
            Kind::File => {
                // A file that has just vanished is listed without a size.
                bytes = entry.metadata().ok().map(|meta| meta.len());
                if let Some(bytes) = bytes {
                    let _ = write!(self.text, "  {}", size(usize::try_from(bytes).unwrap_or(usize::MAX)));
                }
            }
            Kind::Other => {}
        }
        self.text.push('\n');
        let fits = self.total < self.limits.lines && self.text.len() + NOTE_MAX <= self.limits.bytes;
        if fits && self.shown.0 == self.total {
            self.shown = (self.total + 1, self.text.len());
        }
        self.total += 1;
        if self.entries.len() < MAX_ENTRIES {
            let mut data = json!({"name": name, "kind": kind});
            if let Some(bytes) = bytes {
                data["size"] = bytes.into();
            }
            self.entries.push(data);
        }
    }

    fn tell(mut self, shown: &str, recursive: bool) -> Reply {
        let data = json!({"entries": self.entries, "total": self.total});
        if self.total == 0 {
            let but = if recursive { ", except for ignored files" } else { "" };
            return Reply::text(format!("{shown} is empty{but}")).data(data);
        }
        if self.total <= self.limits.lines && self.text.len() <= self.limits.bytes {
            self.text.truncate(self.text.trim_end_matches('\n').len());
            return Reply::text(self.text).data(data);
        }
        let (named, length) = self.shown;
        let note = format!("[{named} of {} entries; list a subdirectory, or use file.glob, to see fewer]", self.total);
        let text = format!("{}{note}", &self.text[..length]);
        Reply { whole_text: Some(self.text), ..Reply::text(text).data(data) }
    }
}

#[cfg(test)]
mod tests;
