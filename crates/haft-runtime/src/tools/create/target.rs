//! Where a proposal is kept: a directory or a file below `.haft`, reached without following any link, and only if what is
//! there was made in the same way.

use crate::files;
use crate::scene::Scene;
use haft_core::CallError;
use haft_core::change::{Change, State};
use haft_core::record::Digest;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// How many things are looked through in a directory that is to be changed.
const ENTRIES_MAX: usize = 200;

/// Where a proposal is kept.
pub(super) struct Target {
    what: &'static str,
    name: String,
    root: PathBuf,
    /// From the root.
    dir: PathBuf,
    /// The main file in it.
    main: String,
    /// Whether the directory is its own.
    whole: bool,
}

impl Target {
    /// A directory of its own, with a main file in it.
    pub(super) fn directory(scene: &Scene, what: &'static str, dir: &str, main: &str) -> Self {
        let name = dir.rsplit('/').next().unwrap_or_default().to_owned();
        let root = scene.workspace().root().to_owned();
        Self { what, name, root, dir: dir.into(), main: main.to_owned(), whole: true }
    }

    /// A file of its own, in a directory with others.
    pub(super) fn file(scene: &Scene, what: &'static str, name: &str, dir: &str, main: String) -> Self {
        let root = scene.workspace().root().to_owned();
        Self { what, name: name.to_owned(), root, dir: dir.into(), main, whole: false }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.join(&self.dir).join(path)
    }

    /// What the main file says now, if it was made by a proposal; none if nothing is there. Everything else is somebody
    /// else's and stays.
    pub(super) fn before(&self, scene: &Scene) -> Result<Option<Vec<u8>>, CallError> {
        self.no_links(&self.dir.join(&self.main))?;
        let main = self.place(&self.main);
        let shown = scene.shown(&main);
        if files::state(&main).map_err(|error| files::explain(&shown, &error))? == State::Absent {
            let others = self.whole && !self.entries()?.is_empty();
            return if others { Err(self.taken(&scene.shown(&self.root.join(&self.dir)))) } else { Ok(None) };
        }
        let (content, _) = files::load(&main, &shown, files::LOAD_MAX)?;
        let made = scene.store().maker_blocking(&self.root, (self.what, &self.name), Digest::of(&content));
        match made.map_err(crate::store_error)? {
            Some(_) => Ok(Some(content)),
            None => Err(self.taken(&shown)),
        }
    }

    fn taken(&self, shown: &str) -> CallError {
        CallError::conflict(format!("{shown} is there already, and is not as an agent made it"))
            .hint(format!("take another name for the {}", self.what))
    }

    /// What has to change so that this is all that there is. What would be changed or removed has to be as an agent made
    /// it: what a person wrote or edited is theirs.
    pub(super) fn changes(&self, scene: &Scene, content: BTreeMap<String, Vec<u8>>) -> Result<Vec<Change>, CallError> {
        let changes = self.needed(content)?;
        let made =
            scene.store().made_files_blocking(&self.root, (self.what, &self.name)).map_err(crate::store_error)?;
        for change in &changes {
            let (Change::Write { path, before, .. } | Change::Remove { path, before }) = change else { continue };
            let digest = match before {
                State::Absent => continue,
                State::File { digest, .. } => *digest,
                _ => Digest::ZERO,
            };
            let inside = path.strip_prefix(self.root.join(&self.dir)).unwrap_or(path).to_string_lossy().into_owned();
            if !made.contains(&(inside, digest)) {
                return Err(self.taken(&scene.shown(path)));
            }
        }
        Ok(changes)
    }

    fn needed(&self, content: BTreeMap<String, Vec<u8>>) -> Result<Vec<Change>, CallError> {
        let mut changes = Vec::new();
        let gone = if self.whole { self.entries()? } else { Vec::new() };
        for path in gone.into_iter().filter(|path| !content.contains_key(path)) {
            let place = self.place(&path);
            let before = files::state(&place).map_err(|error| files::explain(&path, &error))?;
            changes.push(Change::Remove { path: place, before });
        }
        // The main file last, so that nobody meets it without what belongs to it.
        let (main, others): (Vec<_>, Vec<_>) = content.into_iter().partition(|(path, _)| *path == self.main);
        for (path, content) in others.into_iter().chain(main) {
            self.no_links(&self.dir.join(&path))?;
            let place = self.place(&path);
            let before = files::state(&place).map_err(|error| files::explain(&path, &error))?;
            let mode = content.starts_with(b"#!").then_some(0o755);
            if before != State::Absent
                && matches!(&before, State::File { digest, .. } if *digest == Digest::of(&content))
            {
                continue;
            }
            changes.push(Change::Write { path: place, content, before, mode });
        }
        Ok(changes)
    }

    /// The files in the directory, from there.
    fn entries(&self) -> Result<Vec<String>, CallError> {
        let (base, mut found) = (self.root.join(&self.dir), Vec::new());
        let mut left = vec![base.clone()];
        let mut seen = 0;
        while let Some(dir) = left.pop() {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                seen += 1;
                let (path, kind) = (entry.path(), entry.file_type());
                let inside = path.strip_prefix(&base).ok().and_then(Path::to_str);
                match (kind, inside) {
                    _ if seen > ENTRIES_MAX => return Err(self.taken(&self.dir.display().to_string())),
                    (Ok(kind), _) if kind.is_dir() => left.push(path),
                    (Ok(kind), Some(inside)) if kind.is_file() => found.push(inside.to_owned()),
                    _ => return Err(self.taken(&self.dir.display().to_string())),
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// Refuses a way that leads over a link: what is written must be where it says.
    fn no_links(&self, inside: &Path) -> Result<(), CallError> {
        let mut path = self.root.clone();
        for part in inside.components() {
            path.push(part);
            if std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink()) {
                return Err(CallError::conflict(format!("{} is a link, and is not followed", path.display())));
            }
        }
        Ok(())
    }
}

/// Refuses files that are too many, too large, or not below the directory.
pub(super) fn files_fit(files: &BTreeMap<String, String>, most: usize, bytes: usize) -> Result<(), CallError> {
    let size: usize = files.values().map(String::len).sum();
    if files.len() > most || size > bytes {
        return Err(CallError::invalid(format!("there are more than {most} files, or more than {} KiB", bytes >> 10)));
    }
    for path in files.keys() {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let inert = path.chars().all(|c| c.is_ascii_alphanumeric() || "._-/ ".contains(c));
        let bad = path.is_empty() || path.len() > 200 || !inert || path.ends_with('/') || path.contains("//");
        if bad || !Path::new(path).components().all(plain) || path.starts_with("./") || path.contains("/./") {
            let shown = haft_core::preview::cut(&haft_core::preview::inert(path), 80);
            return Err(CallError::invalid(format!("`{shown}` is no path beside tool.yml"))
                .hint("paths are relative, like scripts/run.sh, without `..`"));
        }
        if path.eq_ignore_ascii_case("tool.yml") {
            return Err(CallError::invalid("tool.yml is made from the definition").hint("leave it out of `files`"));
        }
    }
    Ok(())
}
