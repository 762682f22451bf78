//! Opening the files that tools work on, and writing haft's own. What calls change goes through `apply.rs`.
//!
//! Paths that come here were resolved and decided upon before. Every open refuses to follow a link, so a
//! path that was swapped for one in the meantime is an error and not a way out. Every replacement is
//! atomic: a reader, a crash or a full disk sees the old content or the new, never a part.

use haft_core::CallError;
use haft_core::change::State;
use haft_core::record::Digest;
use haft_sandbox::layer::at;
use haft_store::Sighting;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Files larger than this are not loaded whole.
pub const LOAD_MAX: u64 = 64 << 20;

/// Opens a regular file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    // Without NONBLOCK, opening a FIFO would wait for a writer that never comes.
    let file = File::from(at::open(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
    match file.metadata()?.file_type() {
        kind if kind.is_file() => Ok(file),
        kind if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// A file's content, if it is not larger than `max`.
pub fn load(path: &Path, shown: &str, max: u64) -> Result<(Vec<u8>, Sighting), CallError> {
    let (content, sighting, _) = load_open(path, shown, max)?;
    Ok((content, sighting))
}

/// A file's content, what was seen of it, and its permission bits.
fn load_open(path: &Path, shown: &str, max: u64) -> Result<(Vec<u8>, Sighting, u32), CallError> {
    let file = open(path).map_err(|error| explain(shown, &error))?;
    let meta = file.metadata().map_err(|error| explain(shown, &error))?;
    let too_large = || {
        let limit = haft_core::preview::size(usize::try_from(max).unwrap_or(usize::MAX));
        CallError::failed(format!("{shown} is larger than {limit}, the limit here"))
            .hint("read it in parts with file.read and its offset and limit")
    };
    if meta.len() > max {
        return Err(too_large());
    }
    let mut content = Vec::new();
    file.take(max + 1).read_to_end(&mut content).map_err(|error| explain(shown, &error))?;
    if content.len() as u64 > max {
        return Err(too_large());
    }
    let sighting = crate::seen::whole(&content, mtime_ns(&meta));
    Ok((content, sighting, meta.permissions().mode() & 0o7777))
}

/// The same with what stands at the path as a change expects it: both are of the bytes that were read.
pub fn load_with_state(path: &Path, shown: &str, max: u64) -> Result<(Vec<u8>, Sighting, State), CallError> {
    let (content, sighting, mode) = load_open(path, shown, max)?;
    let digest = sighting.digest.unwrap_or_else(|| Digest::of(&content));
    let state = State::File { digest, mode };
    Ok((content, sighting, state))
}

/// The modification time in nanoseconds.
pub fn mtime_ns(meta: &std::fs::Metadata) -> i64 {
    meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec())
}

/// Which regular file stands at a path now, if any. The content is hashed in pieces, whatever its size.
pub fn state(path: &Path) -> io::Result<State> {
    state_while(path, &|| Ok(()))
}

/// The same, until the call ends.
pub(crate) fn state_until(path: &Path, shown: &str, halt: &crate::Halt) -> Result<State, CallError> {
    let goes_on = || halt.check().map_err(|_| io::Error::from(io::ErrorKind::Interrupted));
    state_while(path, &goes_on).map_err(|error| halt.check().err().unwrap_or_else(|| explain(shown, &error)))
}

fn state_while(path: &Path, goes_on: &dyn Fn() -> io::Result<()>) -> io::Result<State> {
    let mut file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::Absent),
        Err(error) => return Err(error),
    };
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        goes_on()?;
        match file.read(&mut piece)? {
            0 => return Ok(State::File { digest: Digest::from_hasher(hasher), mode }),
            n => hasher.update(&piece[..n]),
        }
    }
}

/// Puts `content` at `path`, atomically and durably, whatever is there: for files of haft's own. Permissions and owner of an existing file are kept
/// unless `mode` says otherwise; where nothing is, nothing may appear in the meantime.
pub fn replace(path: &Path, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    let (dir, name) = at::parent(path)?;
    let old = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(stat),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    let draft = draft_name();
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Never more open than what it replaces, not even for a moment.
    let first = old.as_ref().map_or(0o666, |stat| stat.st_mode & 0o777);
    let mut file = File::from(rustix::fs::openat(&dir, &draft, create, Mode::from_raw_mode(first))?);
    let written = (|| {
        file.write_all(content)?;
        if let Some(stat) = &old {
            // An ordinary user may not give files away; then the file becomes theirs, as with any editor.
            let _ = rustix::fs::fchown(
                &file,
                Some(rustix::process::Uid::from_raw(stat.st_uid)),
                Some(rustix::process::Gid::from_raw(stat.st_gid)),
            );
        }
        if let Some(mode) = mode.or_else(|| old.as_ref().map(|stat| stat.st_mode & 0o7777)) {
            file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        file.sync_all()?;
        crate::crash_point("drafted");
        if old.is_some() {
            rustix::fs::renameat(&dir, &draft, &dir, name)?;
        } else {
            rustix::fs::renameat_with(&dir, &draft, &dir, name, RenameFlags::NOREPLACE)?;
        }
        rustix::fs::fsync(&dir)?;
        Ok(())
    })();
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&dir, &draft, AtFlags::empty());
    }
    written
}

/// A name for something that is not ready to be seen.
fn draft_name() -> String {
    format!(".haft-{:016x}.tmp", crate::chance())
}

/// The name of the draft of a new file that a call makes in one of its steps: the next process knows it, too.
pub(crate) fn draft_name_of(call: &str, number: usize) -> String {
    let digest = Digest::of(format!("{call} {number}").as_bytes()).to_string();
    format!(".haft-{}.tmp", &digest[digest.len() - 16..])
}

/// Removes the draft that a call left beside `path`, if it did.
pub(crate) fn remove_draft(call: &str, number: usize, path: &Path) {
    if let Ok((dir, _)) = at::reach(path) {
        let _ = rustix::fs::unlinkat(&dir, draft_name_of(call, number), AtFlags::empty());
    }
}

/// Removes a file.
pub fn remove(path: &Path) -> io::Result<()> {
    let (dir, name) = at::parent(path)?;
    rustix::fs::unlinkat(&dir, name, AtFlags::empty())?;
    rustix::fs::fsync(dir.as_fd())?;
    Ok(())
}

/// Makes the missing directories above `path` and returns them, outermost first.
pub fn make_parents(path: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let missing: Vec<_> = path.ancestors().skip(1).take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
    let mut made = Vec::new();
    for dir in missing.into_iter().rev() {
        let (above, name) = at::parent(&dir)?;
        match rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => made.push(dir),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(made)
}

/// Whether an error says that a path leads through (too many) links.
pub(crate) fn is_link_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// An I/O error about a file, as the caller should hear it.
pub fn explain(shown: &str, error: &io::Error) -> CallError {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound => CallError::not_found(format!("{shown} does not exist")),
        Kind::PermissionDenied => CallError::failed(format!("{shown}: permission denied"))
            .hint("the user that haft runs as may not do this; check the file's owner and mode"),
        Kind::IsADirectory => {
            CallError::failed(format!("{shown} is a directory")).hint("list it with file.list, or `ls` in a shell")
        }
        Kind::CrossesDevices => {
            CallError::failed(format!("{shown} cannot be moved as a whole: {error}; nothing was changed"))
                .hint("a directory of a lower overlay layer cannot be moved, and nothing can be moved to another mount")
        }
        Kind::AlreadyExists => CallError::conflict(format!("{shown} already exists")),
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => {
            CallError::failed(format!("{shown}: {error}; nothing was changed")).hint("free some space and call again")
        }
        _ if is_link_loop(error) => {
            CallError::conflict(format!("{shown} leads through a symbolic link that was not there before"))
        }
        _ => CallError::failed(format!("{shown}: {error}")),
    }
}
