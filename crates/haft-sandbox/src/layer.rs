//! A copy-on-write view of a directory, and what a command changed on it.
//!
//! The view is an overlay mount, made elsewhere: reads fall through to the real directory, writes land in
//! `upper`. Afterwards [`Layer::diff`] reads `upper` alone, so it costs in proportion to what was changed
//! and not to what is there. Nobody may write to `upper` any more by then.

pub mod at;
mod attributes;
mod clean;
#[cfg(test)]
mod tests;
pub mod tree;
mod walk;

pub use attributes::{ACCESS_LIST, attributes};
pub use clean::remove_all;
pub use tree::{stands, stands_alone, stands_at};

use haft_core::change::Change;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// One view of one directory.
#[derive(Debug)]
pub struct Layer {
    /// The real directory, which stays as it is.
    pub lower: PathBuf,
    /// Where changes land.
    pub upper: PathBuf,
    /// What overlayfs wants for itself.
    pub work: PathBuf,
    /// Whatever changed below after this changed behind the view's back.
    pub started: SystemTime,
}

/// What a command changed.
#[derive(Debug, Default)]
pub struct Diffed {
    /// The changes that make the real directory what the command saw.
    pub changes: Vec<Change>,
    /// What is not kept, and what is said of it.
    pub refused: Vec<(PathBuf, &'static str)>,
    /// What is changed, and was also changed below by somebody else in the meantime.
    pub conflicts: Vec<PathBuf>,
    /// Changed files that had other names, which keep the old content.
    pub hard_links: Vec<PathBuf>,
}

/// Why the changes cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The system says no.
    #[error("{}: {source}", path.display())]
    Io {
        /// About this.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The view was mounted with options that leave content elsewhere than in `upper`.
    #[error("{} is only a note about content that is elsewhere; mount without metacopy and redirect_dir", path.display())]
    Elsewhere {
        /// This.
        path: PathBuf,
    },
    /// More levels than can be walked.
    #[error("{}: directories are nested too deeply", path.display())]
    TooDeep {
        /// From here on.
        path: PathBuf,
    },
}

impl LayerError {
    fn at(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path: path.clone(), source }
    }
}

impl Layer {
    /// Makes the directories for a view of `lower` in `dir`, which nobody else may look into.
    pub fn create(dir: &Path, lower: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let (dir, lower) = (dir.canonicalize()?, lower.canonicalize()?);
        let (upper, work) = (dir.join("upper"), dir.join("work"));
        for made in [&upper, &work] {
            std::fs::DirBuilder::new().mode(0o700).create(made)?;
        }
        // The view's own directory shows the mode of `upper`.
        std::fs::set_permissions(&upper, std::fs::metadata(&lower)?.permissions())?;
        // By the file system's clock, which lags behind the precise one: a later change is never earlier.
        let meta = std::fs::metadata(&upper)?;
        let since = Duration::new(
            u64::try_from(meta.ctime()).unwrap_or_default(),
            u32::try_from(meta.ctime_nsec()).unwrap_or_default(),
        );
        Ok(Self { lower, upper, work, started: SystemTime::UNIX_EPOCH + since })
    }

    /// What was changed, as changes to the real directory. What they place stands ready in `upper`,
    /// cleaned, and has to stay there until they are applied. To be called once: what its owner may not
    /// enter is opened on the way.
    pub fn diff(&self) -> Result<Diffed, LayerError> {
        walk::diff(self)
    }

    /// Throws the changes away.
    pub fn discard(self) -> io::Result<()> {
        remove_all(&self.upper).and(remove_all(&self.work))
    }
}
