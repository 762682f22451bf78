//! A project with the whole tool layer around it, in which every question is answered with yes.

use haft_core::{Call, Outcome};
use haft_runtime::{Haft, Halt, Settings, Workspace, Yes, new_call_id};
use haft_store::Store;
use serde_json::Value;
use std::path::Path;

pub(crate) struct Project {
    _dir: tempfile::TempDir,
    haft: Haft,
    runtime: tokio::runtime::Runtime,
}

impl Project {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// The same with other settings.
    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        // Not in /tmp: a confined program has one of its own.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = dir.path().join("project");
        std::fs::create_dir(&root).unwrap();
        let workspace = Workspace::new(&root).unwrap();
        let store = Store::open(&dir.path().join("haft.db")).unwrap();
        let mut settings = Settings::new(dir.path().join("data"));
        change(&mut settings);
        let haft = Haft::new(workspace, store, settings);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { _dir: dir, haft, runtime }
    }

    pub(crate) fn root(&self) -> &Path {
        self.haft.workspace().root()
    }

    /// Writes a file, and the directories above it.
    pub(crate) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn call(&self, tool: &str, args: Value) -> Outcome {
        self.runtime.block_on(self.haft.call(Call::new(new_call_id(), tool, args), &Yes, &Halt::new()))
    }
}
