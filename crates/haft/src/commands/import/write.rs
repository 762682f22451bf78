//! Writing what was taken from elsewhere: all of it or, if something is there, nothing.

use crate::cli::Writing;
use haft_core::CallError;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// Something to write.
pub(super) struct Draft {
    pub(super) place: Place,
    pub(super) name: String,
    /// Its files, by their paths in its directory.
    pub(super) files: Vec<(String, Vec<u8>)>,
}

/// Where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Tool,
    Skill,
    /// A file, not a directory.
    Agent,
}

impl Place {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Skill => "skill",
            Self::Agent => "agent",
        }
    }

    const fn dir(self) -> &'static str {
        match self {
            Self::Tool => ".haft/tools",
            Self::Skill => ".haft/skills",
            Self::Agent => ".haft/agents",
        }
    }
}

impl Draft {
    /// Its directory, from the project's root.
    fn dir(&self) -> PathBuf {
        let dir = Path::new(self.place.dir());
        if self.place == Place::Agent { dir.to_owned() } else { dir.join(&self.name) }
    }

    /// Whether something is there already.
    fn is_there(&self, root: &Path) -> bool {
        let dir = root.join(self.dir());
        if self.place == Place::Agent {
            self.files.iter().any(|(path, _)| dir.join(path).exists())
        } else {
            dir.exists()
        }
    }
}

/// Writes everything, and gives what was written.
pub(super) fn all(root: &Path, drafts: &[Draft], writing: Writing) -> Result<Vec<PathBuf>, CallError> {
    let dir_of = |draft: &Draft| root.join(draft.dir());
    for draft in drafts {
        let own = draft.dir();
        no_links(root, &own)?;
        draft.files.iter().try_for_each(|(path, _)| no_links(root, &own.join(path)))?;
    }
    let taken: Vec<String> =
        drafts.iter().filter(|draft| draft.is_there(root)).map(|draft| draft.name.clone()).collect();
    if !taken.is_empty() && !writing.force {
        return Err(CallError::conflict(format!("there are already: {}; nothing was written", taken.join(", ")))
            .hint("--force overwrites them"));
    }
    let mut written = Vec::new();
    for draft in drafts {
        for (path, content) in &draft.files {
            let place = dir_of(draft).join(path);
            if !writing.dry_run {
                put(&place, content).map_err(|error| CallError::failed(format!("{}: {error}", place.display())))?;
            }
            written.push(place);
        }
    }
    Ok(written)
}

/// Puts a file there whole, or not at all.
fn put(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let draft = path.with_file_name(format!(".haft-import-{}", std::process::id()));
    let mode = if content.starts_with(b"#!") { 0o755 } else { 0o644 };
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    let done = file
        .write_all(content)
        .and_then(|()| std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(mode)))
        .and_then(|()| std::fs::rename(&draft, path));
    if done.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    done
}

/// Refuses a way that leads over a link or out of the project.
fn no_links(root: &Path, inside: &Path) -> Result<(), CallError> {
    let mut path = root.to_owned();
    for part in inside.components() {
        if !matches!(part, Component::Normal(_)) {
            return Err(CallError::invalid(format!("{} leads elsewhere", inside.display())));
        }
        path.push(part);
        if std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink()) {
            return Err(CallError::conflict(format!("{} is a link, and is not followed", path.display())));
        }
    }
    Ok(())
}
