//! `haft tui` as a person meets it: the real binary in a real terminal, talking to a model behind real HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

mod asked;
mod life;
mod model;
mod talking;
mod waiting;
mod window;

use model::Model;
use std::path::PathBuf;
use window::Window;

/// A home and a project.
struct Env {
    dir: tempfile::TempDir,
}

impl Env {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(dir.path().join("home")).unwrap();
        Self { dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn file(&self, path: &str, content: &str) {
        std::fs::write(self.root().join(path), content).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap_or_default()
    }

    /// The screen, talking to that model.
    fn open(&self, model: &Model, args: &[&str]) -> Window {
        model.known_to(self);
        let all = [&["tui"], args].concat();
        Window::open(self, &all, (80, 24), "xterm-256color")
    }
}
