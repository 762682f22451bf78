//! A project, a vault and overlay views of the project, for tests.

use super::*;
use haft_sandbox::layer::Layer;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

/// Where files are fast and nobody waits for a disk, if there is such a place.
pub(super) fn memory() -> PathBuf {
    let shm = PathBuf::from("/dev/shm");
    if shm.is_dir() { shm } else { std::env::temp_dir() }
}

/// A project and a vault.
pub(super) struct Bench {
    pub(super) dir: PathBuf,
    pub(super) data: PathBuf,
    pub(super) store: Store,
    pub(super) vault: Vault,
    /// Removes both at the end.
    _temporary: Vec<tempfile::TempDir>,
}

pub(super) fn shown(path: &Path) -> String {
    crate::workspace::display(path.as_os_str())
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::across(&memory(), &memory(), UndoLimits::default())
    }

    /// With the project in one place and the vault in another.
    pub(super) fn across(project: &Path, vault: &Path, limits: UndoLimits) -> Self {
        let (dir, data) = (tempfile::tempdir_in(project).unwrap(), tempfile::tempdir_in(vault).unwrap());
        std::fs::create_dir(dir.path().join("project")).unwrap();
        let bench = Self::open(dir.path(), data.path(), limits);
        Self { _temporary: vec![dir, data], ..bench }
    }

    /// One that another process made.
    pub(super) fn open(dir: &Path, data: &Path, limits: UndoLimits) -> Self {
        let (dir, data) = (dir.canonicalize().unwrap(), data.canonicalize().unwrap());
        let store = Store::open(&data.join("haft.db")).unwrap();
        let vault = Vault::new(&data, limits);
        Self { dir, data, store, vault, _temporary: Vec::new() }
    }

    pub(super) fn root(&self) -> PathBuf {
        self.dir.join("project")
    }

    pub(super) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A view of the project, in which nothing has happened yet.
    pub(super) fn layer(&self) -> Layer {
        let dir = tempfile::tempdir_in(&self.dir).unwrap().keep();
        Layer::create(&dir, &self.root()).unwrap()
    }

    pub(super) fn carry_out(&self, changes: &[Change]) -> Result<CallId, CallError> {
        let id = crate::new_call_id();
        self.carry_out_as(&id, changes).map(|()| id)
    }

    pub(super) fn carry_out_as(&self, id: &CallId, changes: &[Change]) -> Result<(), CallError> {
        self.vault.carry_out(&self.store, (id, None), &self.root(), changes, &shown)?;
        self.vault.forget(&self.store);
        Ok(())
    }

    pub(super) fn rows(&self, call: &CallId) -> (UndoCall, Vec<UndoStep>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.store.undo_of(call)).unwrap().unwrap()
    }

    /// Takes a call back as `haft undo` does.
    pub(super) fn undo(&self, call: &CallId) -> Result<CallId, CallError> {
        let (found, steps) = self.rows(call);
        let changes = self.vault.inverse(&found, &steps, &shown)?;
        let id = crate::new_call_id();
        self.vault.carry_out(&self.store, (&id, Some(call)), &self.root(), &changes, &shown)?;
        self.vault.release(&self.store, call, &steps);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.store.mark_undone(call, &id)).unwrap();
        Ok(id)
    }
}

/// The shell command that mounts a view.
pub(super) fn mounting(layer: &Layer, mount: &Path) -> String {
    let (lower, upper, work) = (layer.lower.display(), layer.upper.display(), layer.work.display());
    format!(
        "mount -t overlay overlay -o lowerdir={lower},upperdir={upper},workdir={work},userxattr '{}'",
        mount.display()
    )
}

/// Runs a program where it may mount things. False, and loudly, where that is forbidden.
pub(super) fn overlaid(command: &[&str]) -> bool {
    let allowed = Command::new("unshare").args(["-Urm", "true"]).stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: user namespaces are forbidden here, so no overlay can be mounted");
        return false;
    }
    let output = Command::new("unshare").arg("-Urm").args(command).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    true
}

/// Everything below a directory: kind and mode, content or target, and optionally the files' times.
pub(super) fn snapshot(root: &Path, times: bool) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    tree::each(root, &mut |entry| {
        let path = root.join(entry.inner);
        let meta = std::fs::symlink_metadata(&path)?;
        let what = match meta.file_type() {
            kind if kind.is_symlink() => format!("-> {:?}", std::fs::read_link(&path)?.as_os_str().as_bytes()),
            kind if kind.is_dir() => "dir".to_owned(),
            _ => {
                let time = if times { meta.mtime() * 1_000_000_000 + meta.mtime_nsec() } else { 0 };
                format!("{time} {:?}", std::fs::read(&path).ok().map(|content| Digest::of(&content)))
            }
        };
        found.insert(shown(entry.inner), format!("{:o} {what}", meta.permissions().mode()));
        Ok(())
    })
    .unwrap();
    found
}
