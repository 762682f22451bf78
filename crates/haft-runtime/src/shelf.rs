//! The shelf: tools that are files, found in folders, read, followed, and accepted.

mod calls;
mod command;
mod http;
mod interpreter;
mod interpreters;
pub(crate) mod made;
mod places;
mod program;
mod python;
mod raised;

pub use interpreters::Interpreters;

use crate::tool::Tool;
use haft_core::CallError;
use haft_core::manifest::Manifest;
use std::path::PathBuf;
use std::sync::Arc;

/// The tool of a manifest, for whoever vouches for it and registers it by hand. `dir` is where it lies.
pub fn tool(manifest: Manifest, dir: PathBuf) -> Result<Arc<dyn Tool>, CallError> {
    Ok(Arc::new(made::Made::new(Arc::new(manifest), dir, None)?))
}

/// Where tools are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The directory, with one directory a tool in it.
    pub path: PathBuf,
    /// Whose tools these are.
    pub whose: Whose,
}

/// Whose tools are in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The user's own: they count as they stand.
    Own,
    /// The project's: they count as they were accepted.
    Project,
}

/// The tools that are files.
#[derive(Debug, Default)]
pub struct Shelf {
    folders: Vec<Folder>,
}

impl Shelf {
    /// A shelf over these folders. An earlier one is stronger.
    pub fn new(folders: Vec<Folder>) -> Self {
        Self { folders }
    }

    /// Where it looks.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// Accepts tools as they stand now.
    #[expect(clippy::unused_async, reason = "what was accepted is kept in the store")]
    pub async fn accept(&self, names: &[String]) -> Result<(), CallError> {
        let _ = names;
        Ok(())
    }
}
