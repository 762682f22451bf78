//! A client's configuration file as haft found it, and its replacement.
//!
//! Links stay links: the file that a link leads to is edited. A file of a project must lie in the project, because a
//! project that was fetched from elsewhere may contain a link to a file that is none of its business (path traversal).
//! A file or directory that is read-only stays as it is, also for the superuser: it says that nobody should change it.

use crate::commands::mcp::whole;
use haft_core::CallError;
use haft_core::change::{Change, State};
use haft_core::record::Digest;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Larger files are no configuration.
const SIZE_MAX: u64 = 4 << 20;
/// The permission bits of a directory that haft makes: an agent's configuration is nobody else's business.
const DIR_MODE: u32 = 0o700;

/// A configuration file as it was read.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// As the client names it.
    pub(super) path: PathBuf,
    /// Where it really is.
    pub(super) real: PathBuf,
    /// What it says; none if there is no file.
    pub(super) text: Option<String>,
    mode: u32,
}

impl ConfigFile {
    /// Reads a file that may be missing. A file of a project must not lie outside `project`.
    pub(super) fn read(path: &Path, project: Option<&Path>) -> Result<Self, CallError> {
        let fail = |why: &str| CallError::failed(format!("{}: {why}", path.display()));
        let real = real_path(path).map_err(|why| fail(&why))?;
        if project.is_some_and(|project| !real.starts_with(project)) {
            return Err(fail(&format!("it leads out of the project, to {}", real.display()))
                .hint("put a file of the project in the place of the link"));
        }
        let meta = match std::fs::metadata(&real) {
            Ok(meta) => Some(meta),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(fail(&error.to_string())),
        };
        let text = meta.as_ref().map(|meta| read_text(&real, meta)).transpose().map_err(|why| fail(&why))?;
        let mode = whole::mode(&real);
        Ok(Self { path: path.to_owned(), real, text, mode })
    }

    /// Why the file must not be replaced, if it must not.
    pub(super) fn check_writable(&self) -> Result<(), CallError> {
        let refused = |path: &Path, what: &str| {
            CallError::failed(format!("{}: the {what} is read-only", path.display()))
                .hint(format!("nothing was written; `chmod u+w {}` allows it", path.display()))
        };
        if self.text.is_some() && self.mode & 0o200 == 0 {
            return Err(refused(&self.real, "file"));
        }
        let mut dirs = self.real.ancestors().skip(1);
        let nearest = dirs.find_map(|dir| std::fs::metadata(dir).ok().map(|meta| (dir, meta)));
        if let Some((dir, _)) = nearest.filter(|(_, meta)| meta.permissions().mode() & 0o200 == 0) {
            return Err(refused(dir, "directory"));
        }
        Ok(())
    }

    /// The change as a unified diff.
    pub(super) fn diff(&self, new: Option<&str>) -> String {
        let state = |text: &Option<String>| match text {
            None => State::Absent,
            Some(text) => State::File { digest: Digest::of(text.as_bytes()), mode: self.mode },
        };
        let (path, before) = (self.real.clone(), state(&self.text));
        let change = match new {
            Some(new) => Change::Write { path, content: new.as_bytes().to_vec(), before, mode: None },
            None => Change::Remove { path, before },
        };
        let shown = self.path.display().to_string();
        haft_runtime::diff(&[change], &|_| shown.trim_start_matches('/').to_owned())
    }

    /// The directories that a new file needs, outermost first.
    pub(super) fn missing_dirs(&self) -> Vec<PathBuf> {
        let dirs = self.real.ancestors().skip(1).take_while(|dir| !dir.exists());
        let mut dirs: Vec<PathBuf> = dirs.map(Path::to_owned).collect();
        dirs.reverse();
        dirs
    }

    /// Puts the new text in the place of the file, or removes the file. Refused if the file is no longer as it was read:
    /// another program has written it since (TOCTOU).
    pub(super) fn replace(&self, new: Option<&str>) -> Result<(), CallError> {
        let fail = |error: std::io::Error| CallError::failed(format!("{}: {error}", self.path.display()));
        self.check_unchanged()?;
        let Some(new) = new else {
            return if self.text.is_some() { std::fs::remove_file(&self.real).map_err(fail) } else { Ok(()) };
        };
        for dir in self.missing_dirs() {
            std::fs::create_dir(&dir).map_err(fail)?;
            std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(DIR_MODE)).map_err(fail)?;
        }
        let is_placed = whole::place_if(&self.real, new, self.mode, || self.check_unchanged().is_ok()).map_err(fail)?;
        if is_placed { Ok(()) } else { Err(self.changed_meanwhile()) }
    }

    fn check_unchanged(&self) -> Result<(), CallError> {
        let is_same = match (std::fs::read(&self.real), &self.text) {
            (Ok(now), Some(text)) => now == text.as_bytes(),
            (Err(error), None) => error.kind() == ErrorKind::NotFound,
            _ => false,
        };
        if is_same { Ok(()) } else { Err(self.changed_meanwhile()) }
    }

    fn changed_meanwhile(&self) -> CallError {
        CallError::conflict(format!("{}: another program changed the file just now", self.path.display()))
            .hint("its change stays, and haft wrote nothing there; run the command again")
    }
}

/// The digest of a text, as the record of an installation keeps it.
pub(super) fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string()
}

/// Where a path leads, with the links of all that exists of it resolved.
fn real_path(path: &Path) -> Result<PathBuf, String> {
    if let Ok(real) = path.canonicalize() {
        return Ok(real);
    }
    if path.is_symlink() {
        return Err("it is a link that leads nowhere".to_owned());
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err("it is no path of a file".to_owned());
    };
    Ok(real_path(parent)?.join(name))
}

fn read_text(path: &Path, meta: &Metadata) -> Result<String, String> {
    if !meta.is_file() {
        return Err("it is not a file".to_owned());
    }
    if meta.len() > SIZE_MAX {
        return Err("it is too large to be a configuration".to_owned());
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}
