//! Where tools that are files lie, and how one is read and written.

use crate::config::Paths;
use haft_core::manifest::written::MAX_BYTES;
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
    /// What lies outside of this is somebody else's.
    pub(super) around: PathBuf,
}

/// Every directory that is, or should be, a tool, in the order in which they count.
pub(super) fn all(root: &Path, paths: &Paths, global: bool) -> Vec<File> {
    let mut places = vec![(root.join(".haft/tools"), root), (root.join(".glee/tools"), root)];
    if global {
        places.push((paths.config_dir().join("tools"), paths.config_dir()));
    }
    let below = |(place, around): (PathBuf, &Path)| {
        let mut found: Vec<File> = std::fs::read_dir(&place)
            .into_iter()
            .flatten()
            .filter_map(|entry| named(&entry.ok()?))
            .map(|(name, dir)| {
                let file = dir.join("tool.yml");
                let shown =
                    file.strip_prefix(root).map_or_else(|_| paths.shown(&file), |below| below.display().to_string());
                File { name, dir, shown, around: around.to_owned() }
            })
            .collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    };
    places.into_iter().flat_map(below).collect()
}

/// A directory, or a link to whatever; hidden ones and files are nobody's tools.
fn named(entry: &DirEntry) -> Option<(String, PathBuf)> {
    let name = entry.file_name().to_string_lossy().into_owned();
    let kind = entry.file_type().ok()?;
    ((kind.is_dir() || kind.is_symlink()) && !name.starts_with('.')).then(|| (name, entry.path()))
}

impl File {
    /// What it says; otherwise why that cannot be known.
    pub(super) fn text(&self) -> Result<String, String> {
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
        String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            // A file that was cut may end within a character; that it is too large is told by whoever reads it.
            if error.as_bytes().len() > MAX_BYTES {
                return format!("is larger than {} KiB", MAX_BYTES >> 10);
            }
            let line = error.as_bytes()[..valid].split(|byte| *byte == b'\n').count();
            format!("has a byte in line {line} that is not UTF-8")
        })
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
