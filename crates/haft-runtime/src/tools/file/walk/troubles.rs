//! What went wrong on the way without ending the walk: told to the caller in a few lines.

use super::Unsound;
use crate::scene::Scene;
use haft_core::CallError;
use std::path::Path;

/// More messages than this are counted, not told.
const MAX_TOLD: usize = 5;

/// What a walk could not or would not read.
#[derive(Debug, Default)]
pub(in crate::tools::file) struct Troubles {
    told: Vec<String>,
    untold: usize,
    held_back: usize,
}

impl Troubles {
    /// A file or directory could not be read. Files come and go while others work on them, so one that
    /// has vanished is a trouble like any other.
    pub(in crate::tools::file) fn file(&mut self, scene: &Scene, path: &Path, error: &std::io::Error) {
        let CallError { message, .. } = crate::files::explain(&scene.shown(path), error);
        self.tell(message);
    }

    /// The walk itself, or an ignore file on its way, caused an error.
    pub(in crate::tools::file) fn walk(&mut self, scene: &Scene, error: &ignore::Error) {
        match error {
            ignore::Error::Partial(errors) => errors.iter().for_each(|error| self.walk(scene, error)),
            error => self.tell(explain(scene, error)),
        }
    }

    /// Directories were left out because of their ignore files.
    pub(in crate::tools::file) fn unsound(&mut self, scene: &Scene, unsound: &Unsound) {
        for dir in unsound.take() {
            self.tell(format!("{}: left out, because its ignore file cannot be read safely", scene.shown(&dir)));
        }
        for dir in unsound.take_linked() {
            let shown = scene.shown(&dir.join(".gitignore"));
            self.tell(format!("{shown} is a symbolic link, which git does not follow; its patterns do not count"));
        }
    }

    /// Something else that the caller should know.
    pub(in crate::tools::file) fn tell(&mut self, message: String) {
        if self.told.len() < MAX_TOLD {
            self.told.push(message);
        } else {
            self.untold += 1;
        }
    }

    /// A sensitive file was passed over.
    pub(super) fn hold_back(&mut self) {
        self.held_back += 1;
    }

    /// Takes over another thread's troubles.
    pub(super) fn merge(&mut self, other: Self) {
        self.untold += other.untold;
        self.held_back += other.held_back;
        other.told.into_iter().for_each(|message| self.tell(message));
    }

    /// Everything as warnings.
    pub(in crate::tools::file) fn warnings(mut self) -> Vec<String> {
        self.told.sort_unstable();
        if self.untold > 0 {
            self.told.push(format!("{} more places could not be read", self.untold));
        }
        if self.held_back > 0 {
            let (files, it) = if self.held_back == 1 { ("file", "it") } else { ("files", "one") };
            self.told.push(format!(
                "{} sensitive {files} (credentials or haft's own state) skipped; name {it} in `path` to ask for {it}",
                self.held_back
            ));
        }
        self.told
    }
}

fn explain(scene: &Scene, error: &ignore::Error) -> String {
    match error {
        ignore::Error::WithPath { path, err } => match &**err {
            ignore::Error::Io(io) => crate::files::explain(&scene.shown(path), io).message,
            err => format!("{}: {}", scene.shown(path), explain(scene, err)),
        },
        ignore::Error::WithDepth { err, .. } => explain(scene, err),
        ignore::Error::WithLineNumber { line, err } => format!("line {line}: {}", explain(scene, err)),
        error => error.to_string(),
    }
}
