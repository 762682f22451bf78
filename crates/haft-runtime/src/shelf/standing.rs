//! Whether a project's tool is the one that somebody accepted: its manifest, what lies beside it, and what it starts.
//!
//! What was accepted is pinned in the store by digests. The manifest is compared when it is read, everything else before
//! each call, so that a script that changed since does not run under a yes to another one.

use super::find::{Good, Stamp};
use haft_core::manifest::{Exec, Manifest};
use haft_core::record::Digest;
use haft_store::Pin;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// How many files may belong to one tool, and how much they may hold together.
const FILES_MAX: usize = 200;
const BYTES_MAX: u64 = 8 << 20;

/// How a tool stands with the person whose machine this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is the user's own, and counts as it is.
    Own,
    /// It is the project's, and was accepted as it is.
    Accepted,
    /// It is the project's, and nobody has accepted it.
    Untrusted,
    /// It is the project's, and has changed since it was accepted.
    Changed,
}

impl Standing {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Accepted => "accepted",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
        }
    }

    /// Whether it counts.
    pub const fn counts(self) -> bool {
        matches!(self, Self::Own | Self::Accepted)
    }
}

/// The files that belong to a tool, each with its digest, by their paths from the project's root.
pub(super) type Files = BTreeMap<String, Digest>;

/// What a project's tool was accepted as, to be compared with what it is.
#[derive(Debug)]
pub(crate) struct Accepted {
    name: String,
    root: PathBuf,
    dir: PathBuf,
    manifest: Arc<Manifest>,
    /// The accepted files; none if the manifest is not the accepted one.
    files: Option<Files>,
    /// Whether an earlier version was accepted.
    earlier: bool,
    /// Digests of files that have not changed since they were taken.
    known: Mutex<BTreeMap<PathBuf, (Stamp, Digest)>>,
}

impl Accepted {
    /// The manifest that was found, as far as this pin accepts it.
    pub(super) fn new(root: &Path, dir: &Path, good: &Good, pin: Option<&Pin>) -> Self {
        let same = pin.filter(|pin| pin.digest == good.digest);
        Self {
            name: good.manifest.name.clone(),
            root: root.to_owned(),
            dir: dir.to_owned(),
            manifest: Arc::clone(&good.manifest),
            files: same.map(|pin| files_of(&pin.declaration)),
            earlier: pin.is_some(),
            known: Mutex::default(),
        }
    }

    /// The files that were accepted with it.
    pub(super) fn files(&self) -> Option<&Files> {
        self.files.as_ref()
    }

    /// How it stands, by its manifest alone.
    pub(super) fn by_manifest(&self) -> Standing {
        match (&self.files, self.earlier) {
            (Some(_), _) => Standing::Accepted,
            (None, true) => Standing::Changed,
            (None, false) => Standing::Untrusted,
        }
    }

    /// How it stands, its files looked at.
    pub(super) fn standing(&self) -> Standing {
        match self.by_manifest() {
            Standing::Accepted if self.strayed().is_some() => Standing::Changed,
            other => other,
        }
    }

    /// Why it may not run as it is.
    pub(crate) fn barred(&self) -> Option<String> {
        let name = &self.name;
        match self.by_manifest() {
            Standing::Own => None,
            Standing::Untrusted => {
                Some(format!("nobody has accepted this tool of the project; `haft trust {name}` shows it and asks"))
            }
            Standing::Changed => Some(format!(
                "its tool.yml has changed since the tool was accepted; `haft trust {name}` shows what changed and asks"
            )),
            Standing::Accepted => self.strayed().map(|why| format!("{why}; `haft trust {name}` shows it and asks")),
        }
    }

    /// What is not as it was accepted.
    fn strayed(&self) -> Option<String> {
        let accepted = self.files.as_ref()?;
        let now = match self.inventory() {
            Ok(now) => now,
            Err(why) => return Some(why),
        };
        let (first, others) = differences(accepted, &now).split_first().map(|(one, rest)| (one.clone(), rest.len()))?;
        let more = if others == 0 { String::new() } else { format!(", and {others} more") };
        Some(format!("{first} since the tool was accepted{more}"))
    }

    fn inventory(&self) -> Result<Files, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        inventory(&self.root, &self.dir, &self.manifest, &mut known)
    }
}

/// What is different now, each in a few words.
pub(super) fn differences(accepted: &Files, now: &Files) -> Vec<String> {
    let gone = accepted.keys().filter(|path| !now.contains_key(*path)).map(|path| format!("`{path}` went away"));
    let other = now.iter().filter_map(|(path, digest)| match accepted.get(path) {
        None => Some(format!("`{path}` came")),
        Some(known) if known != digest => Some(format!("`{path}` changed")),
        Some(_) => None,
    });
    gone.chain(other).collect()
}

/// What is pinned when a tool is accepted as it stands.
pub(super) fn pin(root: &Path, dir: &Path, good: &Good) -> Result<Pin, String> {
    let files = inventory(root, dir, &good.manifest, &mut BTreeMap::new())?;
    let files: serde_json::Map<String, Value> =
        files.into_iter().map(|(path, digest)| (path, digest.to_string().into())).collect();
    // The text is kept to show what changed.
    let declaration = json!({"manifest": good.digest.to_string(), "files": files, "text": &*good.text});
    Ok(Pin { tool: good.manifest.name.clone(), digest: good.digest, declaration })
}

/// The files that a pin accepts. What cannot be read is nobody's digest.
pub(super) fn files_of(declaration: &Value) -> Files {
    let files = declaration["files"].as_object().into_iter().flatten();
    let digest = |value: &Value| value.as_str().and_then(digest_of).unwrap_or(Digest::ZERO);
    files.map(|(path, value)| (path.clone(), digest(value))).collect()
}

fn digest_of(hex: &str) -> Option<Digest> {
    let pair = |at: usize| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(pair).collect();
    Digest::from_bytes(&bytes?)
}

/// Everything that belongs to a tool: what lies beside its manifest, and what it starts of the project.
fn inventory(
    root: &Path,
    dir: &Path,
    manifest: &Manifest,
    known: &mut BTreeMap<PathBuf, (Stamp, Digest)>,
) -> Result<Files, String> {
    let shown = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    let (mut files, mut left, mut bytes) = (Files::new(), vec![dir.to_owned()], 0);
    let mut take = |path: &Path, files: &mut Files| -> Result<(), String> {
        if files.len() == FILES_MAX {
            return Err(format!("more than {FILES_MAX} files belong to it, which nobody can look through"));
        }
        let digest = digest(path, known, &mut bytes).map_err(|why| format!("`{}` {why}", shown(path)))?;
        files.insert(shown(path), digest);
        Ok(())
    };
    let mut dirs = 0;
    while let Some(next) = left.pop() {
        dirs += 1;
        let entries = std::fs::read_dir(&next).map_err(|error| format!("`{}`: {error}", shown(&next)))?;
        if dirs > FILES_MAX {
            return Err(format!("more than {FILES_MAX} directories belong to it, which nobody can look through"));
        }
        for entry in entries {
            let entry = entry.map_err(|error| format!("`{}`: {error}", shown(&next)))?;
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(path),
                Ok(_) if path == dir.join(super::find::FILE) => {}
                Ok(_) => take(&path, &mut files)?,
                Err(error) => return Err(format!("`{}`: {error}", shown(&path))),
            }
        }
    }
    for path in started(root, manifest)? {
        if !files.contains_key(&shown(&path)) {
            take(&path, &mut files)?;
        }
    }
    Ok(files)
}

/// The files of the project that a tool starts: its entrypoint; or its module, the packages that it is in, and the
/// interpreter of its environment. Each by the name that it really has: what a link leads to is what runs.
fn started(root: &Path, manifest: &Manifest) -> Result<Vec<PathBuf>, String> {
    let candidates = match &manifest.exec {
        Exec::Command(command) if command.entrypoint.contains("${") => {
            return Err("its entrypoint is filled in by whoever calls it, so nobody can accept it".to_owned());
        }
        Exec::Command(command) if command.entrypoint.contains('/') => vec![root.join(&command.entrypoint)],
        Exec::Python(python) => {
            let from = root.join(python.cwd.as_deref().unwrap_or("."));
            let words: Vec<&str> = python.module.split('.').collect();
            let mut all = vec![from.join(words[0]), from.join(words[0]).with_extension("py")];
            if let Some(venv) = &python.venv {
                all.extend(["bin/python3", "bin/python", "pyvenv.cfg"].map(|part| root.join(venv).join(part)));
            }
            all
        }
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for path in candidates {
        // What is not there cannot be started, and what is the system's is nobody's to change here.
        let Ok(real) = path.canonicalize() else { continue };
        match real.metadata() {
            _ if !real.starts_with(root) => {}
            Ok(meta) if meta.is_dir() => package(&real, &mut found)?,
            _ => found.push(real),
        }
    }
    Ok(found)
}

/// All files of a package, which may be imported by one another.
fn package(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let (mut left, mut dirs) = (vec![dir.to_owned()], 0);
    while let Some(next) = left.pop() {
        dirs += 1;
        let entries = std::fs::read_dir(&next).map_err(|error| format!("`{}`: {error}", next.display()))?;
        for entry in entries.flatten() {
            let compiled = entry.file_name() == "__pycache__";
            match entry.file_type() {
                // What is compiled there is not read.
                Ok(kind) if kind.is_dir() && !compiled => left.push(entry.path()),
                Ok(kind) if !kind.is_dir() => found.push(entry.path()),
                _ => {}
            }
        }
        if dirs > FILES_MAX || found.len() > FILES_MAX {
            return Err(format!("more than {FILES_MAX} files belong to it, which nobody can look through"));
        }
    }
    Ok(())
}

/// The digest of a file, or of a link and what it leads to.
fn digest(path: &Path, known: &mut BTreeMap<PathBuf, (Stamp, Digest)>, bytes: &mut u64) -> Result<Digest, String> {
    let failed = |error: io::Error| format!("cannot be read: {error}");
    let link = path.symlink_metadata().map_err(failed)?.is_symlink();
    let meta = path.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(if meta.is_dir() { "is a link to a directory" } else { "is not a file" }.to_owned());
    }
    *bytes = bytes.saturating_add(meta.len());
    if *bytes > BYTES_MAX {
        return Err(format!("is one too many: more than {} MiB belong to the tool", BYTES_MAX >> 20));
    }
    let stamp = Stamp::from(&meta);
    if let Some((_, digest)) = known.get(path).filter(|(known, _)| *known == stamp && !link) {
        return Ok(*digest);
    }
    let mut content = Vec::new();
    if link {
        let target = std::fs::read_link(path).map_err(failed)?;
        content.extend_from_slice(format!("link to {}\n", target.display()).as_bytes());
    }
    File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut content)).map_err(failed)?;
    let digest = Digest::of(&content);
    if let Some(stamp) = stamp.settled() {
        known.insert(path.to_owned(), (stamp, digest));
    }
    Ok(digest)
}
