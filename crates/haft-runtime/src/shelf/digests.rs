//! Digests of single files, taken once as long as a file stays as it is.
//!
//! A file is opened once and without following a link; what tells its content from others is asked of the same descriptor
//! before and after it is read, so that nothing that happens to its name or its directories in between gives one content
//! the mark of another. Writes through a shared mapping can leave that mark as it is: whoever has such a mapping has to
//! have had the right to write the file.

use super::find::Stamp;
use super::pages::Page;
use haft_core::record::Digest;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How much the files of one tool may hold together.
pub(super) const BYTES_MAX: u64 = 8 << 20;

/// Digests of files that have not changed since they were taken.
pub(super) type Known = BTreeMap<PathBuf, (Stamp, Digest)>;

/// One look at the files of one tool.
pub(super) struct Look<'k> {
    known: &'k mut Known,
    /// What they hold, if somebody is to be shown it.
    pub(super) pages: Option<Vec<Page>>,
    bytes: u64,
}

impl<'k> Look<'k> {
    /// A look that compares.
    pub(super) fn comparing(known: &'k mut Known) -> Self {
        Self { known, pages: None, bytes: 0 }
    }

    /// A look that keeps what it sees.
    pub(super) fn showing(known: &'k mut Known) -> Self {
        Self { known, pages: Some(Vec::new()), bytes: 0 }
    }

    /// The digest of a file; or of a link and what it leads to.
    pub(super) fn take(&mut self, path: &Path, shown: &str) -> Result<Digest, String> {
        let failed = |error: io::Error| format!("cannot be read: {error}");
        let (mut file, mut content) = match open(path).map_err(failed)? {
            Some(file) => (file, Vec::new()),
            None => linked(path)?,
        };
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            let dir = meta.is_dir() && !content.is_empty();
            return Err(if dir { "is a link to a directory" } else { "is not a file" }.to_owned());
        }
        self.bytes = self.bytes.saturating_add(meta.len());
        if self.bytes > BYTES_MAX {
            return Err(format!("is one too many: more than {} MiB belong to the tool", BYTES_MAX >> 20));
        }
        let (stamp, link) = (Stamp::from(&meta), !content.is_empty());
        if let Some((_, digest)) = self.known.get(path).filter(|(known, _)| *known == stamp && !link)
            && self.pages.is_none()
        {
            return Ok(*digest);
        }
        file.by_ref().take(BYTES_MAX + 1).read_to_end(&mut content).map_err(failed)?;
        if Stamp::from(&file.metadata().map_err(failed)?) != stamp {
            return Err("is being changed".to_owned());
        }
        let digest = Digest::of(&content);
        if let Some(stamp) = stamp.settled().filter(|_| !link) {
            self.known.insert(path.to_owned(), (stamp, digest));
        }
        if let Some(pages) = &mut self.pages {
            pages.push(Page::of(shown, content));
        }
        Ok(digest)
    }
}

/// Opens a file without waiting for anybody. None if it is a link.
fn open(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What a link leads to, and the link in words: both belong to what is digested.
fn linked(path: &Path) -> Result<(File, Vec<u8>), String> {
    let failed = |error: io::Error| format!("leads nowhere: {error}");
    let target = std::fs::read_link(path).map_err(failed)?;
    let real = path.canonicalize().map_err(failed)?;
    let file = open(&real).map_err(failed)?.ok_or("is being changed")?;
    Ok((file, format!("link to {}\n", target.display()).into_bytes()))
}
