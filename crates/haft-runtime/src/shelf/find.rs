//! Looking into folders: which tools there are, and what their files say. Everything that is read is bounded, nothing is
//! opened that could wait, and no link leads out of a folder.

use super::{Folder, Note};
use crate::file_stamp::FileStamp;
use haft_core::ToolName;
use haft_core::manifest::Manifest;
use haft_core::manifest::written::Written;
use haft_core::record::Digest;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that makes a directory a tool.
pub(super) const FILE: &str = "tool.yml";
/// How many directories of one folder are looked at.
const DIRS_MAX: usize = 10_000;
/// The largest manifest.
const BYTES_MAX: u64 = 256 << 10;
/// How much the manifests of all folders may hold together: whoever puts them there does not own this memory. Stronger
/// folders come first, and in each the names in their order.
const TOGETHER_MAX: u64 = 16 << 20;
/// From how many tools on it is worth a thread to look at some of them.
const THREAD_MIN: usize = 32;

/// A manifest that can be read, with what it was read from.
#[derive(Debug, Clone)]
pub(super) struct Good {
    pub(super) manifest: Arc<Manifest>,
    /// Of the file.
    pub(super) digest: Digest,
    /// The file, as people wrote it.
    pub(super) text: Arc<str>,
}

/// What is in a file: what was in it before, something else, or something that is no manifest.
#[derive(Debug)]
pub(super) enum Content {
    Same,
    Good(Good),
    Bad(Vec<String>),
}

/// A tool's file in the strongest folder that has one.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    /// Which folder, by its place among them.
    pub(super) folder: usize,
    /// What tells this content of the file from others; none if nothing does.
    pub(super) stamp: Option<FileStamp>,
    pub(super) content: Content,
}

/// Where a tool's file was last, and what it looked like.
pub(super) type Before = BTreeMap<String, (usize, Option<FileStamp>)>;

/// Whether a directory may be called so: a tool's name without what names families and servers.
pub(super) fn is_plain(name: &str) -> bool {
    ToolName::new(name).is_ok() && !name.contains(['.', ':'])
}

/// Everything in these folders, the strongest of each name, and what is worth knowing besides.
pub(super) fn survey(folders: &[Folder], before: &Before) -> (Vec<Found>, Vec<Note>) {
    let (mut found, mut notes) = (BTreeMap::<String, Found>::new(), Vec::new());
    let mut room = TOGETHER_MAX;
    for (at, folder) in folders.iter().enumerate() {
        let dir = match open_folder(&folder.path) {
            Ok(Some(dir)) => dir,
            Ok(None) => continue,
            Err(error) => {
                notes.push(Note::new(&folder.path, format!("it cannot be read: {error}")));
                continue;
            }
        };
        let mut plain = Vec::new();
        for name in names(&folder.path, &mut notes) {
            let file = folder.path.join(&name).join(FILE);
            if let Some(stronger) = found.get(&name) {
                if is_there(&dir, &name) {
                    let counts = folders[stronger.folder].path.join(&name).join(FILE);
                    notes.push(Note::new(&file, format!("{} has the same name, and counts", counts.display())));
                }
            } else if !is_plain(&name) {
                if is_there(&dir, &name) {
                    let why =
                        "a tool's name has letters, digits, `_` and `-`, starts with a letter, and is its directory's";
                    notes.push(Note::new(&file, format!("it does not count: {why}")));
                }
            } else {
                plain.push(name);
            }
        }
        let counting = plain.iter().take_while(|name| take(&mut room, size(&dir, name))).count();
        let beyond = plain.split_off(counting);
        let looked = look_at_all(&plain, |name| look((&dir, at), name, before));
        found.extend(looked.into_iter().map(|one| (one.name.clone(), one)));
        let beyond: Vec<String> = beyond.into_iter().filter(|name| is_there(&dir, name)).collect();
        if let Some(first) = beyond.first() {
            let (count, together) = (beyond.len(), TOGETHER_MAX >> 20);
            let why = format!("the manifests hold more than {together} MiB together");
            notes.push(Note::new(&folder.path, format!("{why}; from `{first}` on they are not listed: {count}")));
        }
    }
    (found.into_values().collect(), notes)
}

/// How much of the room a tool's file takes.
fn size(dir: &OwnedFd, name: &str) -> u64 {
    let size = rustix::fs::statat(dir, path_of(name), rustix::fs::AtFlags::empty()).map_or(0, |stat| stat.st_size);
    // Of what is larger, nothing is read.
    u64::try_from(size).ok().filter(|size| *size <= BYTES_MAX).unwrap_or_default()
}

/// Takes so much from the room, if there is as much.
fn take(room: &mut u64, size: u64) -> bool {
    let left = room.checked_sub(size);
    *room = left.unwrap_or_default();
    left.is_some()
}

/// Looks at many, on as many threads as there are cores. Reading YAML is what takes the time.
fn look_at_all(names: &[String], look: impl Fn(&str) -> Option<Found> + Sync) -> Vec<Found> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = names.len().div_ceil(cores).max(THREAD_MIN);
    let some = |part: &[String]| part.iter().filter_map(|name| look(name)).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        let mut parts = names.chunks(share);
        let first = parts.next().unwrap_or_default();
        let others: Vec<_> = parts.map(|part| scope.spawn(move || some(part))).collect();
        let mut all = some(first);
        for other in others {
            match other.join() {
                Ok(found) => all.extend(found),
                Err(crash) => std::panic::resume_unwind(crash),
            }
        }
        all
    })
}

/// One tool, by its name; none if no folder has it.
pub(super) fn one(folders: &[Folder], name: &str, before: &Before) -> Option<Found> {
    if !is_plain(name) {
        return None;
    }
    let dirs = folders.iter().enumerate().filter_map(|(at, folder)| Some((at, open_folder(&folder.path).ok()??)));
    dirs.into_iter().find_map(|(at, dir)| look((&dir, at), name, before))
}

fn open_folder(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from) {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The directories of a folder, in order.
pub(super) fn names(folder: &Path, notes: &mut Vec<Note>) -> Vec<String> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            notes.push(Note::new(folder, format!("it cannot be read: {error}")));
            return Vec::new();
        }
    };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let kind = entry.file_type();
        if !kind.is_ok_and(|kind| kind.is_dir() || kind.is_symlink()) {
            continue;
        }
        if names.len() == DIRS_MAX {
            notes
                .push(Note::new(folder, format!("it holds more than {DIRS_MAX} directories; the others do not count")));
            break;
        }
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    names
}

fn path_of(name: &str) -> PathBuf {
    Path::new(name).join(FILE)
}

fn is_there(dir: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(dir, path_of(name), rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Looks at one tool's file. None if there is none.
fn look((dir, folder): (&OwnedFd, usize), name: &str, before: &Before) -> Option<Found> {
    let found = |stamp: Option<FileStamp>, content| {
        Some(Found { name: name.to_owned(), folder, stamp: stamp.filter(|stamp| stamp.is_settled()), content })
    };
    let bad = |stamp, why: &str| found(stamp, Content::Bad(vec![format!("1:1: {why}")]));
    // A pipe would wait for somebody to write into it.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let opened = if haft_sandbox::faults::is_refused("openat2") {
        Err(Errno::NOSYS)
    } else {
        rustix::fs::openat2(dir, path_of(name), flags, Mode::empty(), within)
    };
    let opened = match opened {
        // Without openat2, no link can be followed and be known to stay in its folder.
        Err(Errno::NOSYS | Errno::PERM) => haft_sandbox::layer::at::open_beneath(dir, &path_of(name), flags),
        opened => opened.map_err(io::Error::from),
    };
    let mut file = match opened {
        Ok(file) => File::from(file),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            // A link that leads nowhere is somebody's mistake, not an absent tool.
            return is_there(dir, name).then(|| bad(None, "it is a link that leads nowhere")).flatten();
        }
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            return bad(None, "it leads out of its folder, and is not followed");
        }
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            return bad(None, "it is a link, or leads over one; links are followed only where the kernel has openat2");
        }
        Err(error) => return bad(None, &format!("it cannot be opened: {error}")),
    };
    let stamp = match file.metadata() {
        Ok(meta) if !meta.is_file() => return bad(Some(FileStamp::from(&meta)), "it is not a file"),
        Ok(meta) if meta.len() > BYTES_MAX => {
            return bad(Some(FileStamp::from(&meta)), &format!("it is larger than {} KiB", BYTES_MAX >> 10));
        }
        Ok(meta) => FileStamp::from(&meta),
        Err(error) => return bad(None, &format!("it cannot be looked at: {error}")),
    };
    if before.get(name) == Some(&(folder, Some(stamp))) {
        return found(Some(stamp), Content::Same);
    }
    let mut bytes = Vec::new();
    match file.by_ref().take(BYTES_MAX + 1).read_to_end(&mut bytes) {
        Ok(read) if read as u64 > BYTES_MAX => bad(Some(stamp), &format!("it is larger than {} KiB", BYTES_MAX >> 10)),
        Ok(_) => found(Some(stamp), read(&bytes, name)),
        Err(error) => bad(None, &format!("it cannot be read: {error}")),
    }
}

/// What a file says, or where and why it is no manifest.
fn read(bytes: &[u8], name: &str) -> Content {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Content::Bad(vec!["1:1: it is not text in UTF-8".to_owned()]);
    };
    match super::read(text) {
        Ok(manifest) if manifest.name != name => {
            let (line, column) = Written::new(text).place("/name");
            let said = haft_core::preview::cut(&haft_core::preview::inert(&manifest.name), 80);
            Content::Bad(vec![format!(
                "{line}:{column}: name: it says `{said}`, and its directory is `{name}`; both have to be the same"
            )])
        }
        Ok(manifest) => {
            let (digest, text) = (Digest::of(bytes), Arc::from(text));
            Content::Good(Good { manifest: Arc::new(manifest), digest, text })
        }
        Err(flaws) => Content::Bad(flaws),
    }
}
