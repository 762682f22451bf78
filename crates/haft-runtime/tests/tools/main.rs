//! Tools that are files, of the kinds `command` and `python`, as a caller meets them: the whole tool layer, real programs
//! and a real interpreter.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod command;
mod held;
mod pool;
mod python;
mod veiled;

use haft_core::manifest::Manifest;
use haft_core::{Call, Outcome, ToolName};
use haft_runtime::{Haft, Halt, Settings, Workspace, Yes, new_call_id, shelf};
use haft_store::Store;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A project, and a tool layer around it.
struct Stage {
    dir: tempfile::TempDir,
    haft: Haft,
}

impl Stage {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        // Not in /tmp: a confined program has one of its own, and may write anything there.
        Self::at(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(), change)
    }

    fn at(dir: tempfile::TempDir, change: impl FnOnce(&mut Settings)) -> Self {
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        let workspace = Workspace::new(&dir.path().join("project")).unwrap();
        let store = Store::open(&dir.path().join("haft.db")).unwrap();
        let mut settings = Settings::new(dir.path().join("data"));
        change(&mut settings);
        Self { haft: Haft::new(workspace, store, settings), dir }
    }

    fn root(&self) -> &Path {
        self.haft.workspace().root()
    }

    /// A directory outside the project.
    fn outside(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    /// Writes a file of the project.
    fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a program of the project.
    fn script(&self, path: &str, text: &str) {
        let path = self.file(path, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root().join(path)).ok()
    }

    /// Registers a tool: the parts that say something, in a manifest that says nothing else.
    fn tool(&self, name: &str, parts: Value) {
        let mut manifest = json!({
            "name": name, "description": "A test", "version": 1,
            "kind": parts["exec"].as_object().unwrap().keys().next().unwrap(),
            "inputs": {"schema": {"type": "object"}},
            "outputs": {"format": "json"},
            "permissions": {"network": false, "fs": {"read": ["."], "write": []}},
            "approval": {"required": false},
        });
        for (key, value) in parts.as_object().unwrap() {
            manifest[key] = value.clone();
        }
        let manifest: Manifest = serde_json::from_value(manifest).unwrap();
        let dir = self.root().join(".haft/tools").join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let _ = self.haft.registry().unregister(&ToolName::new(name).unwrap());
        self.haft.registry().register(shelf::tool(manifest, dir).unwrap()).unwrap();
    }

    /// Registers a python tool whose function `run` is in this text. Its one argument is the input `x`, if that is given.
    fn python(&self, name: &str, text: &str) {
        self.python_with(name, text, json!({}));
    }

    fn python_with(&self, name: &str, text: &str, parts: Value) {
        self.file(&format!("py/{name}.py"), text);
        let mut all =
            json!({"exec": {"python": {"module": format!("py.{name}"), "function": "run", "args": ["${x}"]}}});
        for (key, value) in parts.as_object().unwrap() {
            all[key] = value.clone();
        }
        self.tool(name, all);
    }

    async fn call(&self, tool: &str, args: Value) -> Outcome {
        self.call_until(tool, args, &Halt::new()).await
    }

    async fn call_until(&self, tool: &str, args: Value, halt: &Halt) -> Outcome {
        self.haft.call(Call::new(new_call_id(), tool, args), &Yes, halt).await
    }
}

/// What went wrong, as a caller reads it.
fn wrong(outcome: &Outcome) -> &str {
    outcome.error.as_ref().map_or("nothing went wrong", |error| error.message.as_str())
}

/// What came out, or the whole outcome where nothing did.
fn data(outcome: &Outcome) -> &Value {
    assert!(outcome.success, "{outcome:?}");
    outcome.data.as_ref().unwrap()
}

/// The permissions of a tool that reads its project.
fn permissions(network: Value, read: &[&str], write: &[&str], secrets: Value) -> Value {
    json!({"network": network, "fs": {"read": read, "write": write}, "secrets": secrets})
}
