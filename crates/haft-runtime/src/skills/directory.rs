//! The files of one skill's directory: read from inside it alone, bounded, and without following a link.

use crate::file_stamp::FileStamp;
use haft_core::record::Digest;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many files a skill may have.
const FILES_MAX: usize = 500;
/// How many directories.
const DIRS_MAX: usize = 200;
/// How much the files of one skill may hold together.
const BYTES_MAX: u64 = 32 << 20;
/// How many digests are remembered.
const KNOWN_MAX: usize = 20_000;
/// Where Python keeps what it has compiled. It is accepted like every other file, because Python runs it in place of the source
/// beside it; it is not listed, because nobody reads it.
const COMPILED: &str = "__pycache__";

/// Whether Python made a file of a skill from another: nobody reads such a file.
pub(super) fn is_compiled(name: &str) -> bool {
    name.split('/').any(|part| part == COMPILED)
}
/// How a file is opened: nobody is waited for.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The digest of every file, by its path from the directory. A link's is that of where it leads.
pub(super) type Inventory = BTreeMap<String, Digest>;

/// Digests of files that have not changed since they were taken.
pub(super) type KnownDigests = HashMap<PathBuf, (FileStamp, Digest)>;

/// A skill's directory, open.
pub(super) struct SkillDirectory {
    fd: OwnedFd,
    path: PathBuf,
}

impl SkillDirectory {
    /// Opens it.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let flags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| format!("cannot be opened: {error}"))?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// The content of a file in it, if that is not larger than `max`. The error ends a sentence about the file.
    pub(super) fn read(&self, inside: &str, max: u64) -> Result<Vec<u8>, String> {
        let (mut file, meta) = self.file(inside)?;
        if meta.size() > max {
            return Err(too_large(max));
        }
        let mut bytes = Vec::new();
        file.by_ref().take(max + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > max { Err(too_large(max)) } else { Ok(bytes) }
    }

    fn file(&self, inside: &str) -> Result<(File, Metadata), String> {
        let opened = haft_sandbox::layer::at::open_beneath(&self.fd, Path::new(inside), FLAGS);
        let file = File::from(opened.map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR) => "does not exist".to_owned(),
            Some(Errno::LOOP) => "leads over a link, and none is followed".to_owned(),
            Some(Errno::XDEV) => "leads out of its directory".to_owned(),
            _ => format!("cannot be read: {error}"),
        })?);
        let meta = file.metadata().map_err(|error| error.to_string())?;
        if meta.is_file() { Ok((file, meta)) } else { Err("is not a file".to_owned()) }
    }

    /// Every entry that is no directory, by its path; and whether it is a link.
    fn entries(&self) -> Result<BTreeMap<String, bool>, String> {
        let (mut found, mut left, mut dirs) = (BTreeMap::new(), vec![self.path.clone()], 0);
        while let Some(next) = left.pop() {
            dirs += 1;
            if dirs > DIRS_MAX {
                return Err(format!("has more than {DIRS_MAX} directories, the limit for a skill"));
            }
            let failed = |error: io::Error| format!("cannot be read: {error}");
            for entry in std::fs::read_dir(&next).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let (kind, path) = (entry.file_type().map_err(failed)?, entry.path());
                if kind.is_dir() {
                    left.push(path);
                    continue;
                }
                let inside = path.strip_prefix(&self.path).ok().and_then(Path::to_str);
                let inside = inside.ok_or_else(|| "has a file whose name is not UTF-8".to_owned())?;
                found.insert(inside.to_owned(), kind.is_symlink());
                if found.len() > FILES_MAX {
                    return Err(format!("has more than {FILES_MAX} files, the limit for a skill"));
                }
            }
        }
        Ok(found)
    }

    /// The files that can be read from it, without what Python compiled. What has too many has none that are named.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = self.entries().unwrap_or_default();
        entries.into_iter().filter(|(name, is_link)| !is_link && !is_compiled(name)).map(|(name, _)| name).collect()
    }

    /// The links in it.
    pub(super) fn links(&self) -> Vec<String> {
        let entries = self.entries().unwrap_or_default();
        entries.into_iter().filter(|(_, is_link)| *is_link).map(|(name, _)| name).collect()
    }

    /// The digest of each file. A file that has not changed since its digest in `known` is not read again.
    pub(super) fn inventory(&self, known: &mut KnownDigests) -> Result<Inventory, String> {
        let (mut inventory, mut bytes) = (Inventory::new(), 0);
        for (inside, is_link) in self.entries()? {
            let path = self.path.join(&inside);
            let digest = if is_link {
                link_digest(&path)?
            } else {
                let (file, meta) = self.file(&inside).map_err(|why| format!("has `{inside}`, which {why}"))?;
                bytes += meta.size();
                if bytes > BYTES_MAX {
                    return Err(format!("holds more than {} MiB, the limit for a skill", BYTES_MAX >> 20));
                }
                digest_of(file, &meta, path, known).map_err(|error| format!("has `{inside}`: {error}"))?
            };
            inventory.insert(inside, digest);
        }
        Ok(inventory)
    }

    /// Every file with its content, and the digests of these very contents.
    pub(super) fn contents(&self) -> Result<(BTreeMap<String, Vec<u8>>, Inventory), String> {
        let (mut contents, mut inventory, mut left) = (BTreeMap::new(), Inventory::new(), BYTES_MAX);
        for (inside, is_link) in self.entries()? {
            if is_link {
                inventory.insert(inside.clone(), link_digest(&self.path.join(&inside))?);
                continue;
            }
            let bytes = self.read(&inside, left).map_err(|why| format!("has `{inside}`, which {why}"))?;
            left -= bytes.len() as u64;
            inventory.insert(inside.clone(), Digest::of(&bytes));
            contents.insert(inside, bytes);
        }
        Ok((contents, inventory))
    }
}

fn too_large(max: u64) -> String {
    let size = if max >= 1 << 20 { format!("{} MiB", max >> 20) } else { format!("{} KiB", max >> 10) };
    format!("is larger than {size}")
}

/// A link is what it says, and no more: nothing behind it is handed out.
fn link_digest(path: &Path) -> Result<Digest, String> {
    let target = std::fs::read_link(path).map_err(|error| error.to_string())?;
    Ok(Digest::of(format!("link to {}", target.display()).as_bytes()))
}

fn digest_of(mut file: File, meta: &Metadata, path: PathBuf, known: &mut KnownDigests) -> io::Result<Digest> {
    let stamp = FileStamp::from(meta);
    if let Some((_, digest)) = known.get(&path).filter(|(earlier, _)| *earlier == stamp) {
        return Ok(*digest);
    }
    let mut bytes = Vec::new();
    file.by_ref().take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let digest = Digest::of(&bytes);
    // A file that is being written is read again next time.
    if stamp.is_settled() && FileStamp::from(&file.metadata()?) == stamp && known.len() < KNOWN_MAX {
        known.insert(path, (stamp, digest));
    }
    Ok(digest)
}

/// Whether something stands at a path, whatever it is.
pub(super) fn is_there(path: &Path) -> bool {
    rustix::fs::statat(CWD, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
}
