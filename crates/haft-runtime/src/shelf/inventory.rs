//! What belongs to a tool of a project: everything beside its manifest, what it starts of the project, and the virtual
//! environment that it runs in.
//!
//! What a script or program loads by itself from elsewhere is not known here. For functions the driver refuses to import
//! what is not among these; for programs it is their authors' business to keep it beside the manifest.

use super::digests::Look;
use super::standing::Files;
pub(super) use super::tree::tree;
use haft_core::manifest::{Command, Exec, Manifest, Python};
use haft_core::record::Digest;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// How many files may belong to one tool.
const FILES_MAX: usize = 200;
/// Where Python keeps what it has compiled. Functions are run so that it is not read there.
const COMPILED: &str = "__pycache__";

/// A tool, and the project that it is of.
#[derive(Clone, Copy)]
pub(super) struct Subject<'s> {
    pub(super) root: &'s Path,
    pub(super) dir: &'s Path,
    pub(super) manifest: &'s Manifest,
}

/// How the digest of a virtual environment is come by.
pub(super) type OfTree<'t> = &'t mut dyn FnMut(&Path) -> Result<Digest, String>;

/// Everything that belongs to it, each with its digest. An environment is one entry, whose name ends with a slash.
pub(super) fn inventory(subject: Subject<'_>, look: &mut Look<'_>, tree: OfTree<'_>) -> Result<Files, String> {
    let shown = |path: &Path| path.strip_prefix(subject.root).unwrap_or(path).to_string_lossy().into_owned();
    let mut files = Files::new();
    let mut take = |path: &Path, files: &mut Files| -> Result<(), String> {
        let name = shown(path);
        if files.contains_key(&name) {
            return Ok(());
        }
        if files.len() >= FILES_MAX {
            return Err(too_many("files"));
        }
        let digest = look.take(path, &name).map_err(|why| format!("`{name}` {why}"))?;
        files.insert(name, digest);
        Ok(())
    };
    let venv = environment(subject);
    for path in beside(subject, venv.as_deref())?.iter().chain(&started(subject)?) {
        take(path, &mut files)?;
    }
    if let Some(venv) = venv {
        files.insert(format!("{}/", shown(&venv)), tree(&venv).map_err(|why| format!("`{}` {why}", shown(&venv)))?);
    }
    Ok(files)
}

fn too_many(what: &str) -> String {
    format!("more than {FILES_MAX} {what} belong to it, which nobody can look through")
}

/// The virtual environment in the project that a function runs in.
fn environment(subject: Subject<'_>) -> Option<PathBuf> {
    let Exec::Python(Python { venv: Some(venv), .. }) = &subject.manifest.exec else { return None };
    let real = subject.root.join(venv).canonicalize().ok()?;
    (real.starts_with(subject.root) && real != subject.root && real.is_dir()).then_some(real)
}

/// What lies beside the manifest.
fn beside(subject: Subject<'_>, venv: Option<&Path>) -> Result<Vec<PathBuf>, String> {
    let compiled = matches!(subject.manifest.exec, Exec::Python(_));
    let skipped = |path: &Path| {
        (compiled && path.file_name().is_some_and(|name| name == COMPILED))
            || venv.is_some_and(|venv| path.canonicalize().is_ok_and(|real| real == venv))
    };
    let mut found = Vec::new();
    walk(subject.dir, &skipped, &mut found)?;
    let own = subject.dir.join(super::find::FILE);
    found.retain(|path| *path != own);
    Ok(found)
}

/// The files of the project that a tool starts. Each by the name that it really has: what a link leads to is what runs.
fn started(subject: Subject<'_>) -> Result<Vec<PathBuf>, String> {
    let candidates = match &subject.manifest.exec {
        Exec::Command(command) => by_command(subject.root, command)?,
        Exec::Python(python) => by_function(subject.root, python),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for path in candidates {
        // What is not there cannot be started, and what is the system's is nobody's to change here.
        let Ok(real) = path.canonicalize() else { continue };
        match real.metadata() {
            _ if !real.starts_with(subject.root) => {}
            Ok(meta) if meta.is_dir() => {
                let skipped = |path: &Path| path.file_name().is_some_and(|name| name == COMPILED);
                walk(&real, &skipped, &mut found)?;
            }
            Ok(meta) if meta.is_file() => found.push(real),
            _ => {}
        }
    }
    Ok(found)
}

/// A program of the project, and what its manifest gives it by name: the script that an interpreter is to read is an
/// argument.
fn by_command(root: &Path, command: &Command) -> Result<Vec<PathBuf>, String> {
    if command.entrypoint.contains("${") {
        return Err("its entrypoint is filled in by whoever calls it, so nobody can accept it".to_owned());
    }
    let from = root.join(command.cwd.as_deref().unwrap_or("."));
    let mut all = Vec::new();
    if command.entrypoint.contains('/') {
        all.push(root.join(&command.entrypoint));
    }
    let args: Vec<&str> = command.args.iter().flat_map(literals).collect();
    // A directory among the arguments is what a program works on, unless it is one that Python starts.
    let named = args.iter().flat_map(|arg| [Some(*arg), arg.split_once('=').map(|(_, value)| value)]).flatten();
    let named = named.filter(|path| !path.is_empty()).map(|path| from.join(path));
    all.extend(named.filter(|path| path.is_file() || path.join("__main__.py").is_file()));
    let program = command.entrypoint.rsplit('/').next().unwrap_or_default();
    if program.starts_with("python") {
        let joined = args.iter().filter_map(|arg| arg.strip_prefix("-m")).filter(|name| !name.is_empty());
        let apart = args.iter().zip(args.iter().skip(1)).filter(|(arg, _)| **arg == "-m").map(|(_, name)| *name);
        all.extend(joined.chain(apart).flat_map(|module| of_module(&from, module)));
    }
    Ok(all)
}

/// The texts among arguments that no caller has a part in.
fn literals(arg: &Value) -> Vec<&str> {
    match arg {
        Value::String(text) if !text.contains("${") => vec![text],
        Value::Array(items) => items.iter().flat_map(literals).collect(),
        _ => Vec::new(),
    }
}

fn by_function(root: &Path, python: &Python) -> Vec<PathBuf> {
    let mut all = of_module(&root.join(python.cwd.as_deref().unwrap_or(".")), &python.module).to_vec();
    if let Some(venv) = &python.venv {
        all.extend(["bin/python3", "bin/python", "pyvenv.cfg"].map(|part| root.join(venv).join(part)));
    }
    all
}

/// Where a module may be: its outermost package, whose parts may import one another, or its file.
pub(super) fn of_module(from: &Path, module: &str) -> [PathBuf; 2] {
    let first = module.split('.').next().unwrap_or_default();
    // No name would be the whole directory.
    let first = if first.is_empty() || first.contains('/') { "__main__" } else { first };
    [from.join(first), from.join(format!("{first}.py"))]
}

/// All that is in a directory and is none itself.
fn walk(dir: &Path, skipped: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let (mut left, mut dirs) = (vec![dir.to_owned()], 0);
    while let Some(next) = left.pop() {
        dirs += 1;
        if dirs > FILES_MAX {
            return Err(too_many("directories"));
        }
        let failed = |error: std::io::Error| format!("`{}`: {error}", next.display());
        for entry in std::fs::read_dir(&next).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            match entry.file_type().map_err(failed)?.is_dir() {
                true if skipped(&entry.path()) => {}
                true => left.push(entry.path()),
                false => found.push(entry.path()),
            }
            // The manifest is counted here, and is not among them.
            if found.len() > FILES_MAX + 1 {
                return Err(too_many("files"));
            }
        }
    }
    Ok(())
}
