//! Where tools that are files lie, and how one is read and written.

use crate::config::Paths;
use haft_core::manifest::Flaw;
use haft_core::manifest::written::MAX_BYTES;
use haft_runtime::shelf::{Folder, Whose};
use std::fs::{DirEntry, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A directory that is, or should be, a tool.
pub(super) struct File {
    /// The directory's name.
    pub(super) name: String,
    /// The directory.
    pub(super) dir: PathBuf,
    /// Its `tool.yml`, as people write it.
    pub(super) shown: String,
    /// Whose it is.
    pub(super) whose: Whose,
    /// What lies outside of this is somebody else's.
    around: PathBuf,
}

/// A file that somebody may take for a tool.
pub(super) struct Stray {
    /// The file, as people write it.
    pub(super) shown: String,
    /// In whose folder it lies.
    pub(super) whose: Whose,
}

/// Every directory that is, or should be, a tool, in the order in which they count; and what lies beside them.
pub(super) fn all(root: &Path, paths: &Paths) -> (Vec<File>, Vec<Stray>) {
    let (mut files, mut strays) = (Vec::new(), Vec::new());
    for Folder { path, whose } in paths.tool_folders() {
        let around = if whose == Whose::Own { paths.config_dir() } else { root };
        let shown = |file: &Path| {
            file.strip_prefix(root).map_or_else(|_| paths.shown(file), |below| below.display().to_string())
        };
        let mut entries: Vec<DirEntry> = std::fs::read_dir(&path).into_iter().flatten().flatten().collect();
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            let (name, dir) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
            let Ok(kind) = entry.file_type() else { continue };
            if name.starts_with('.') {
                continue;
            }
            // A link may lead to whatever.
            if kind.is_dir() || kind.is_symlink() {
                let shown = shown(&dir.join("tool.yml"));
                files.push(File { name, dir, shown, whose, around: around.to_owned() });
            } else if is_like_a_manifest(&dir) {
                strays.push(Stray { shown: shown(&dir), whose });
            }
        }
    }
    (files, strays)
}

/// A note may lie beside tools; a manifest there is one that nobody finds.
fn is_like_a_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ["yml", "yaml", "json", "toml"].iter().any(|known| ending == *known))
}

impl File {
    /// What it says; otherwise why that cannot be known.
    pub(super) fn text(&self) -> Result<String, Flaw> {
        let bytes = self.bytes().map_err(|why| Flaw::error("file", "", why))?;
        String::from_utf8(bytes).map_err(|error| {
            let (bytes, valid) = (error.as_bytes(), error.utf8_error().valid_up_to());
            // A file that was cut may end within a character; what is wrong with it is that it is too large.
            if bytes.len() > MAX_BYTES {
                return Flaw::error("file", "", format!("is larger than {} KiB", MAX_BYTES >> 10)).at((1, 1));
            }
            let before = String::from_utf8_lossy(&bytes[..valid]);
            let (line, begin) = (before.matches('\n').count() + 1, before.rfind('\n').map_or(0, |end| end + 1));
            let place = (line as u64, before[begin..].chars().count() as u64 + 1);
            Flaw::error("file", "", "has a byte here that is not UTF-8").at(place)
        })
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        let path = self.dir.join("tool.yml");
        let meta = path.symlink_metadata().map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.missing(),
            _ => error.to_string(),
        })?;
        let linked = meta.is_symlink() || self.dir.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
        if linked {
            let real = path.canonicalize().map_err(|error| format!("is a link that leads nowhere: {error}"))?;
            if !self.around.canonicalize().is_ok_and(|around| real.starts_with(around)) {
                return Err("is a link that leads out of the project".to_owned());
            }
        }
        // Opening a pipe would wait for ever.
        if !std::fs::metadata(&path).is_ok_and(|meta| meta.is_file()) {
            return Err("is not a file".to_owned());
        }
        let mut bytes = Vec::new();
        let most = MAX_BYTES as u64 + 1;
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        opened.and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn missing(&self) -> String {
        let other =
            ["tool.yaml", "tool.json", "TOOL.yml", "tool.toml"].iter().find(|name| self.dir.join(name).exists());
        match other {
            Some(other) => format!("is not there; {other} is, and has to be called tool.yml"),
            None => "is not there, so the directory is no tool".to_owned(),
        }
    }

    /// Puts a text in its place, whole or not at all.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        let path = self.dir.join("tool.yml");
        if path.symlink_metadata()?.is_symlink() {
            return Err(io::Error::other("it is a link"));
        }
        let rights = std::fs::metadata(&path)?.permissions();
        let beside = self.dir.join(format!(".tool.yml.{}", std::process::id()));
        let written = OpenOptions::new().write(true).create_new(true).open(&beside).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.set_permissions(rights)?;
            file.sync_all()
        });
        let moved = written.and_then(|()| std::fs::rename(&beside, &path));
        if moved.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        moved
    }
}
