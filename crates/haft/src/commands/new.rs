//! `haft new`: a tool as a file that works, to be changed from there.

use crate::app::Failure;
use crate::cli::{Common, NewArgs, NewKind};
use crate::style::{self, GOOD, paint};
use haft_core::{CallError, ToolName, preview};
use serde_json::json;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that is made.
struct Piece {
    name: &'static str,
    text: &'static str,
    mode: u32,
}

const fn piece(name: &'static str, text: &'static str) -> Piece {
    Piece { name, text, mode: 0o644 }
}

/// What each kind begins with.
fn pieces(kind: NewKind) -> Vec<Piece> {
    match kind {
        NewKind::Http => vec![piece("tool.yml", include_str!("new/http.yml"))],
        NewKind::Command => vec![
            piece("tool.yml", include_str!("new/command.yml")),
            Piece { name: "run.sh", text: include_str!("new/run.sh"), mode: 0o755 },
        ],
        NewKind::Python => {
            vec![piece("tool.yml", include_str!("new/python.yml")), piece("tool.py", include_str!("new/tool.py"))]
        }
        NewKind::Mcp => vec![piece("tool.yml", include_str!("new/mcp.yml"))],
        NewKind::Pipeline => vec![piece("tool.yml", include_str!("new/pipeline.yml"))],
    }
}

/// Makes one. What is there already is left alone.
pub(super) fn run(common: &Common, args: &NewArgs) -> Result<u8, Failure> {
    let name = &args.name;
    if name.contains(['.', ':']) || name.len() > 64 || ToolName::new(name).is_err() {
        let shown = preview::cut(&preview::inert(name), 80);
        return Err(CallError::invalid(format!("`{shown}` cannot be a tool's name"))
            .hint("letters, digits, `_` and `-`, beginning with a letter, at most 64")
            .into());
    }
    let workspace = super::lint::workspace(common)?;
    let dir = place(workspace.root(), name)?;
    let mut made = Vec::new();
    for piece in pieces(args.kind) {
        let path = dir.join(piece.name);
        write(&path, &piece.text.replace("NAME", name), piece.mode)?;
        made.push(path);
    }
    told(common, workspace.root(), args, &made);
    Ok(0)
}

/// A directory that was not there, inside the project.
fn place(root: &Path, name: &str) -> Result<PathBuf, CallError> {
    let tools = root.join(".haft/tools");
    let fail = |path: &Path, error: &std::io::Error| CallError::failed(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(&tools).map_err(|error| fail(&tools, &error))?;
    // A link in a project must not lead what is written out of it.
    let tools = tools.canonicalize().map_err(|error| fail(&tools, &error))?;
    if !root.canonicalize().is_ok_and(|root| tools.starts_with(root)) {
        return Err(CallError::failed(format!("{} leads out of the project", root.join(".haft/tools").display())));
    }
    let dir = tools.join(name);
    std::fs::create_dir(&dir).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CallError::conflict(format!("{} is there already", dir.display()))
            .hint("take another name, or remove what is there"),
        _ => fail(&dir, &error),
    })?;
    Ok(dir)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), CallError> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| CallError::failed(format!("{}: {error}", path.display())))
}

fn told(common: &Common, root: &Path, args: &NewArgs, made: &[PathBuf]) {
    let name = &args.name;
    if common.json() {
        style::json(&json!({ "name": name, "made": made }));
        return;
    }
    for path in made {
        let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
        style::out(&format!("{} {}", paint(GOOD, "made"), style::inert(&shown)));
    }
    if args.kind == NewKind::Mcp {
        style::note("name one of the servers of `haft mcp list` in it; `haft mcp add` bridges one");
    }
    style::note(&format!("change it, `haft lint {name}`, look at it and `haft trust {name}`, then `haft test {name}`"));
}
