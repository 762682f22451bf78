//! Digests of single files.
//!
//! A file is opened once and without following a link; what tells its content from others is asked of the same descriptor
//! before and after it is read, so that nothing that happens to its name or its directories in between gives one content
//! the mark of another. Writes through a shared mapping can leave that mark as it is, so that a digest that is remembered
//! by it does for lists and for what runs already, and what is about to start is read.
//!
//! A link that leads out of the project is what it says and no more: what is there is the user's, and is not opened.

use super::pages::Page;
use crate::file_stamp::FileStamp;
use haft_core::record::Digest;
use haft_sandbox::roots::followed;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How much the files of one tool may hold together.
pub(super) const BYTES_MAX: u64 = 8 << 20;

/// How a file is opened: nobody is waited for, and no link is followed.
const FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Digests of files that have not changed since they were taken.
pub(super) type Known = BTreeMap<PathBuf, (FileStamp, Digest)>;

/// One look at the files of one tool.
pub(super) struct Look<'k> {
    /// The project.
    root: &'k Path,
    known: &'k mut Known,
    /// Whether every file is read, whatever is known of it.
    reads: bool,
    /// What they hold, if somebody is to be shown it.
    pub(super) pages: Option<Vec<Page>>,
    bytes: u64,
}

impl<'k> Look<'k> {
    /// A look that compares, and reads only what is not known.
    pub(super) fn comparing(root: &'k Path, known: &'k mut Known) -> Self {
        Self { root, known, reads: false, pages: None, bytes: 0 }
    }

    /// A look that reads everything, and compares.
    pub(super) fn reading(root: &'k Path, known: &'k mut Known) -> Self {
        Self { reads: true, ..Self::comparing(root, known) }
    }

    /// A look that reads everything, and keeps what it sees.
    pub(super) fn showing(root: &'k Path, known: &'k mut Known) -> Self {
        Self { pages: Some(Vec::new()), ..Self::reading(root, known) }
    }

    /// The digest of a file; of a link, of what it says and of what it leads to in the project.
    pub(super) fn take(&mut self, path: &Path, shown: &str) -> Result<Digest, String> {
        let failed = |error: io::Error| format!("cannot be read: {error}");
        let (mut file, mut content) = match open(path).map_err(failed)? {
            Some(file) => (file, Vec::new()),
            None => match linked(self.root, path)? {
                (Some(file), words) => (file, words),
                (None, words) => return Ok(self.seen(shown, words, true)),
            },
        };
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err("is not a file".to_owned());
        }
        self.bytes = self.bytes.saturating_add(meta.len());
        if self.bytes > BYTES_MAX {
            return Err(format!("is one too many: more than {} MiB belong to the tool", BYTES_MAX >> 20));
        }
        let (stamp, link) = (FileStamp::from(&meta), !content.is_empty());
        if let Some((_, digest)) = self.known.get(path).filter(|(known, _)| *known == stamp && !link && !self.reads) {
            return Ok(*digest);
        }
        file.by_ref().take(BYTES_MAX + 1).read_to_end(&mut content).map_err(failed)?;
        if FileStamp::from(&file.metadata().map_err(failed)?) != stamp {
            return Err("is being changed".to_owned());
        }
        let digest = self.seen(shown, content, path.starts_with(self.root));
        if let Some(stamp) = Some(stamp).filter(|stamp| stamp.is_settled() && !link) {
            self.known.insert(path.to_owned(), (stamp, digest));
        }
        Ok(digest)
    }

    /// Takes in what was read, to be shown if it is the project's.
    fn seen(&mut self, shown: &str, content: Vec<u8>, projects: bool) -> Digest {
        let digest = Digest::of(&content);
        let page =
            |content: Vec<u8>| if projects { Page::of(shown, content) } else { Page::outside(shown, content.len()) };
        if let Some(pages) = &mut self.pages {
            pages.push(page(content));
        }
        digest
    }
}

/// Opens a file without waiting for anybody. None if it is a link.
fn open(path: &Path) -> io::Result<Option<File>> {
    match rustix::fs::open(path, FLAGS, Mode::empty()) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What a link leads to, if that is in the project, and the link in words: both belong to what is digested.
fn linked(root: &Path, path: &Path) -> Result<(Option<File>, Vec<u8>), String> {
    let failed = |error: io::Error| format!("leads nowhere: {error}");
    let target = std::fs::read_link(path).map_err(failed)?;
    let real = followed(path).map_err(failed)?;
    if real.is_dir() {
        return Err("is a link to a directory".to_owned());
    }
    let words = format!("link to {}\n", target.display()).into_bytes();
    if !real.starts_with(root) {
        return Ok((None, words));
    }
    // Nothing on the way may have become a link meanwhile.
    let opened = haft_sandbox::layer::at::open(&real, FLAGS);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => "is being changed".to_owned(),
        _ => failed(error),
    })?;
    Ok((Some(File::from(file)), words))
}
