//! What belongs to a tool of a project: everything beside its manifest, what a start of it opens and is not the machine's,
//! and the virtual environment that it runs in.
//!
//! What a script or program loads by itself from elsewhere is not known here. For functions the driver refuses to import
//! what is not among these; for programs it is their authors' business to keep it beside the manifest.

use super::digests::Look;
use super::standing::Files;
use super::started::started;
pub(super) use super::tree::tree;
use haft_core::manifest::{Exec, Manifest, Python};
use haft_core::record::Digest;
use haft_sandbox::roots::followed;
use std::path::{Path, PathBuf};

/// How many files may belong to one tool.
const FILES_MAX: usize = 200;
/// Where Python keeps what it has compiled. Functions are run so that it is not read there.
pub(super) const COMPILED: &str = "__pycache__";

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
    let real = followed(&subject.root.join(venv)).ok()?;
    (real.starts_with(subject.root) && real != subject.root && real.is_dir()).then_some(real)
}

/// What lies beside the manifest.
fn beside(subject: Subject<'_>, venv: Option<&Path>) -> Result<Vec<PathBuf>, String> {
    let compiled = matches!(subject.manifest.exec, Exec::Python(_));
    let skipped = |path: &Path| {
        (compiled && path.file_name().is_some_and(|name| name == COMPILED))
            || venv.is_some_and(|venv| followed(path).is_ok_and(|real| real == venv))
    };
    let mut found = Vec::new();
    walk(subject.dir, &skipped, &mut found)?;
    let own = subject.dir.join(super::find::FILE);
    found.retain(|path| *path != own);
    Ok(found)
}

/// Where a module may be: its outermost package, whose parts may import one another, or its file. Nowhere, if that is no
/// name: none would be the whole directory.
pub(super) fn of_module(from: &Path, module: &str) -> Vec<PathBuf> {
    let first = module.split('.').next().unwrap_or_default();
    if first.is_empty() || first.contains(['/', '\0']) {
        return Vec::new();
    }
    vec![from.join(first), from.join(format!("{first}.py"))]
}

/// All that is in a directory and is none itself.
pub(super) fn walk(dir: &Path, skipped: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) -> Result<(), String> {
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
