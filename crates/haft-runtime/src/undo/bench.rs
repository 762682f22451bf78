//! A project, a vault and overlay views of the project, for tests.

use super::*;
use crate::apply::FileMetadata;
use haft_core::record::Digest;
use haft_sandbox::layer::{Layer, at, tree};
use haft_store::UndoCall;
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
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
    /// Removes what is kept on other mounts, and then all the rest, at the end.
    _shelves: Option<Shelving>,
    _temporary: Vec<tempfile::TempDir>,
}

/// The directories of before-images on other mounts than the vault, which would stay behind.
struct Shelving(PathBuf);

impl Drop for Shelving {
    fn drop(&mut self) {
        for call in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let _ = crate::apply::remove_kept(&call.path());
        }
    }
}

/// Changes as they are shown to somebody who is in no project.
pub(super) fn diff(changes: &[Change]) -> String {
    crate::diff(changes, &shown)
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
        let shelves = Some(Shelving(bench.data.join("undo")));
        Self { _shelves: shelves, _temporary: vec![dir, data], ..bench }
    }

    /// Another project with another vault beside these, and the same store: opening one takes its time.
    pub(super) fn another(&self) -> Self {
        let beside = |dir: &Path| tempfile::tempdir_in(dir.parent().unwrap()).unwrap();
        let (dir, data) = (beside(&self.dir), beside(&self.data));
        std::fs::create_dir(dir.path().join("project")).unwrap();
        Self {
            dir: dir.path().canonicalize().unwrap(),
            data: data.path().canonicalize().unwrap(),
            store: self.store.clone(),
            vault: Vault::new(&data.path().canonicalize().unwrap(), self.vault.limits).without_project_lock(),
            _shelves: Some(Shelving(data.path().join("undo"))),
            _temporary: vec![dir, data],
        }
    }

    /// One that another process made.
    pub(super) fn open(dir: &Path, data: &Path, limits: UndoLimits) -> Self {
        let (dir, data) = (dir.canonicalize().unwrap(), data.canonicalize().unwrap());
        let store = Store::open(&data.join("haft.db")).unwrap();
        let vault = Vault::new(&data, limits).without_project_lock();
        Self { dir, data, store, vault, _shelves: None, _temporary: Vec::new() }
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
        self.undo_rows(call).unwrap()
    }

    /// What undo knows of a call, if it knows it.
    pub(super) fn undo_rows(&self, call: &CallId) -> Option<(UndoCall, Vec<UndoStep>)> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.store.undo_of(call)).unwrap()
    }

    /// What a call changed, as it is shown.
    pub(super) fn changes(&self, call: &UndoCall, steps: &[UndoStep]) -> String {
        let viewer = apply::Viewer { project: Some(&self.root()), shown: &shown, under: None };
        changes(&self.vault, call, steps, viewer).diff
    }

    /// Takes a call back as `haft undo` does.
    pub(super) fn undo(&self, call: &CallId) -> Result<CallId, CallError> {
        let id = crate::new_call_id();
        self.undo_as(&id, call).map(|()| id)
    }

    pub(super) fn undo_as(&self, id: &CallId, call: &CallId) -> Result<(), CallError> {
        let (found, steps) = self.rows(call);
        let _held = self.vault.hold(call)?;
        if let Some(by) = &found.undone_by {
            return Err(CallError::conflict(format!("{call} was undone already, by {by}")));
        }
        let inverse = self.vault.inverse(&Standing::of_one((found.clone(), steps.clone())));
        let changes = inverse.whole(&found, &shown)?;
        self.vault.carry_out(&self.store, (id, Some(call)), &self.root(), &changes, &shown)?;
        self.vault.release(&self.store, call, &steps);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.store.mark_undone(call, id)).unwrap();
        Ok(())
    }

    /// Takes back what of a call can be taken back, as `haft undo --partial` does. The call that did, and what is left.
    pub(super) fn undo_partly(&self, call: &CallId) -> (Option<CallId>, Vec<String>) {
        let _held = self.vault.hold(call).unwrap();
        let inverse = self.vault.inverse(&Standing::of_one(self.rows(call)));
        let mut left: Vec<String> =
            inverse.stuck.iter().map(|stuck| format!("{}: {}", stuck.path.display(), stuck.why)).collect();
        let id = crate::new_call_id();
        match self.vault.carry_out(&self.store, (&id, Some(call)), &self.root(), &inverse.changes, &shown) {
            Ok(_) => {
                self.vault.release(&self.store, call, &inverse.parts[0].steps);
                (Some(id), left)
            }
            Err(error) => {
                left.push(error.message);
                (None, left)
            }
        }
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

/// How closely two trees are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closeness {
    /// Kind, owner, group, mode, access control list, extended attributes, and content or target.
    Alike,
    /// The same, and of files and links the times, the number of names, and whether there are holes.
    Exact,
}

/// Everything below a directory.
pub(super) fn snapshot(root: &Path, closeness: Closeness) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    tree::each(root, &mut |entry| {
        let (path, stat) = (root.join(entry.inner), entry.stat);
        let metadata = FileMetadata::read(entry.dir, entry.name)?;
        let what = match at::kind(stat) {
            FileType::Symlink => format!("-> {:?}", std::fs::read_link(&path)?.as_os_str().as_bytes()),
            FileType::Directory => "dir".to_owned(),
            _ => format!("{:?}", std::fs::read(&path).ok().map(|content| Digest::of(&content))),
        };
        let exact = if closeness == Closeness::Exact && at::kind(stat) != FileType::Directory {
            let is_sparse = at::size(stat) > 4096 && stat.st_blocks * 512 < stat.st_size;
            format!(" {} {} names, sparse: {is_sparse}", at::mtime_ns(stat), stat.st_nlink)
        } else {
            String::new()
        };
        let FileMetadata { owner, group, mode, attributes, .. } = metadata;
        found.insert(shown(entry.inner), format!("{owner}:{group} {mode:o} {attributes:?} {what}{exact}"));
        Ok(())
    })
    .unwrap();
    found
}

/// An access control list that lets one more user read and write, and the owning group only read: as the group's bits of the
/// mode say what the list allows at the most, they say more than the group may.
pub(super) fn access_list(user: u32) -> Vec<u8> {
    let none = u32::MAX;
    let entries: [(u16, u16, u32); 5] =
        [(0x01, 0o6, none), (0x02, 0o6, user), (0x04, 0o4, none), (0x10, 0o6, none), (0x20, 0o0, none)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

pub(super) fn set_attribute(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
}
