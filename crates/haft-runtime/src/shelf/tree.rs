//! The digest of a virtual environment: of all that Python may load from it, wherever a link has put that.
//!
//! What is digested are contents, so that nothing but another content is a change: package managers link one file into many
//! environments, and its times change with each. Within one haft a file is read again only when the file system says that
//! it is not the one that was read.

use crate::confined::environment::is_system;
use crate::file_stamp::FileStamp;
use haft_core::record::Digest;
use haft_sandbox::roots::followed;
use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// How many entries a virtual environment may have.
const ENTRIES_MAX: usize = 50_000;
/// How much its files may hold together.
const BYTES_MAX: u64 = 4 << 30;
/// Of how many files it is known what is in them.
const KNOWN_MAX: usize = 2 * ENTRIES_MAX;
/// Where Python keeps what it has compiled. Functions are run so that it is not read there.
const COMPILED: &str = "__pycache__";

type Known = HashMap<PathBuf, (FileStamp, Digest)>;

fn known() -> MutexGuard<'static, Known> {
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The digest of an environment. Of a directory only its name counts, because Python adds to it what it has compiled.
pub(super) fn tree(dir: &Path) -> Result<Digest, String> {
    let mut walk = Walk { dir, left: vec![dir.to_owned()], seen: HashSet::new(), lines: Vec::new(), bytes: 0 };
    while let Some(next) = walk.left.pop() {
        if walk.seen.insert(next.clone()) {
            walk.look_into(&next)?;
        }
    }
    walk.lines.sort_unstable();
    let mut hasher = Sha256::new();
    for line in walk.lines {
        hasher.update((line.len() as u64).to_le_bytes());
        hasher.update(line);
    }
    Ok(Digest::from_hasher(hasher))
}

/// A walk through an environment.
struct Walk<'w> {
    dir: &'w Path,
    left: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
    lines: Vec<Vec<u8>>,
    bytes: u64,
}

impl Walk<'_> {
    fn look_into(&mut self, dir: &Path) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot be looked through: {error}");
        for entry in std::fs::read_dir(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
            if kind.is_dir() && entry.file_name() == COMPILED {
                continue;
            }
            if kind.is_dir() {
                self.line(&path, "directory", b"")?;
                self.left.push(path);
            } else if kind.is_symlink() {
                self.link(&path)?;
            } else if kind.is_file() {
                self.file(&path)?;
            } else {
                self.line(&path, "other", b"")?;
            }
        }
        Ok(())
    }

    /// A link, and what it leads to, unless that is looked at anyway or is the system's.
    fn link(&mut self, path: &Path) -> Result<(), String> {
        let target = std::fs::read_link(path).map_err(|error| format!("cannot be looked through: {error}"))?;
        self.line(path, "link", target.as_os_str().as_bytes())?;
        let Ok(real) = followed(path) else { return Ok(()) };
        let compiled = real.components().any(|part| part.as_os_str() == COMPILED);
        if is_system(&real) || (real.starts_with(self.dir) && !compiled) {
            return Ok(());
        }
        match real.symlink_metadata() {
            Ok(meta) if meta.is_dir() => self.left.push(real),
            Ok(meta) if meta.is_file() => self.file(&real)?,
            _ => {}
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), String> {
        let shown = || path.strip_prefix(self.dir).unwrap_or(path).display();
        let read = digest(path).map_err(|error| format!("cannot be looked through: `{}`: {error}", shown()))?;
        let (digest, size) = read;
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > BYTES_MAX {
            return Err(format!("holds more than {} GiB, which nobody can keep track of", BYTES_MAX >> 30));
        }
        self.line(path, "file", digest.as_bytes())
    }

    fn line(&mut self, path: &Path, kind: &str, what: &[u8]) -> Result<(), String> {
        let name = path.strip_prefix(self.dir).unwrap_or(path);
        self.lines.push([name.as_os_str().as_bytes(), kind.as_bytes(), what].join(&0));
        if self.lines.len() > ENTRIES_MAX {
            return Err(format!("holds more than {ENTRIES_MAX} files, which nobody can keep track of"));
        }
        Ok(())
    }
}

/// The digest of a file, and its size. It is opened without waiting for anybody, and without following a link.
fn digest(path: &Path) -> io::Result<(Digest, u64)> {
    let before = FileStamp::from(&path.symlink_metadata()?);
    if let Some((_, digest)) = known().get(path).filter(|(stamp, _)| *stamp == before) {
        return Ok((*digest, before.size));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    let stamp = FileStamp::from(&meta);
    if !meta.is_file() {
        return Err(io::Error::other("it is no file any more"));
    }
    let (mut hasher, mut piece) = (Sha256::new(), vec![0; 64 << 10]);
    let mut left = BYTES_MAX;
    loop {
        let count = file.by_ref().take(left).read(&mut piece)?;
        if count == 0 {
            break;
        }
        hasher.update(&piece[..count]);
        left -= count as u64;
    }
    if FileStamp::from(&file.metadata()?) != stamp {
        return Err(io::Error::other("it is being changed"));
    }
    let digest = Digest::from_hasher(hasher);
    if stamp.is_settled() {
        let mut known = known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(path.to_owned(), (stamp, digest));
    }
    Ok((digest, meta.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// An environment in a project, with one package.
    fn environment() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let venv = dir.path().canonicalize().unwrap().join("project/.venv");
        std::fs::create_dir_all(venv.join("lib/site-packages/dep/__pycache__")).unwrap();
        std::fs::write(venv.join("lib/site-packages/dep/__init__.py"), "a = 1\n").unwrap();
        symlink("lib", venv.join("lib64")).unwrap();
        (dir, venv)
    }

    #[test]
    fn only_another_content_is_a_change() {
        let (_dir, venv) = environment();
        let before = tree(&venv).unwrap();
        let dep = venv.join("lib/site-packages/dep/__init__.py");
        std::fs::hard_link(&dep, venv.join("../elsewhere.py")).unwrap();
        std::fs::write(venv.join("lib/site-packages/dep/__pycache__/x.pyc"), "compiled").unwrap();
        File::open(&dep).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(tree(&venv).unwrap(), before, "not one more name for it, nor a time");
        let copy = venv.join("copy");
        std::fs::copy(&dep, &copy).unwrap();
        std::fs::rename(&copy, &dep).unwrap();
        assert_eq!(tree(&venv).unwrap(), before, "nor another file with the same in it");
        std::fs::write(&dep, "a = 2\n").unwrap();
        File::open(&dep).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let changed = tree(&venv).unwrap();
        assert_ne!(changed, before);
        std::fs::write(&dep, "a = 1\n").unwrap();
        assert_eq!(tree(&venv).unwrap(), before, "and what is as it was is as it was");
        std::fs::write(venv.join("lib/site-packages/new.pth"), "").unwrap();
        assert_ne!(tree(&venv).unwrap(), before);
    }

    #[test]
    fn what_a_link_leads_to_is_part_of_it() {
        let (_dir, venv) = environment();
        let outside = venv.join("../packages");
        std::fs::create_dir_all(outside.join("deep")).unwrap();
        std::fs::write(venv.join("../alone.pth"), "import this\n").unwrap();
        std::fs::write(outside.join("deep/x.py"), "good").unwrap();
        std::fs::write(venv.join("lib/site-packages/dep/__pycache__/y.pth"), "good").unwrap();
        symlink("../packages", venv.join("more")).unwrap();
        symlink("../../../alone.pth", venv.join("lib/site-packages/alone.pth")).unwrap();
        symlink("dep/__pycache__/y.pth", venv.join("lib/site-packages/y.pth")).unwrap();
        symlink("/usr/bin", venv.join("bin")).unwrap();
        symlink("/nowhere/at/all", venv.join("dangling")).unwrap();
        symlink("..", outside.join("deep/round")).unwrap();
        let mut before = tree(&venv).unwrap();
        for (file, text) in [
            ("../packages/deep/x.py", "evil"),
            ("../alone.pth", "import evil\n"),
            ("lib/site-packages/dep/__pycache__/y.pth", "evil"),
            ("../packages/new.py", ""),
        ] {
            std::fs::write(venv.join(file), text).unwrap();
            let after = tree(&venv).unwrap();
            assert_ne!(after, before, "{file}");
            before = after;
        }
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let (_dir, venv) = environment();
        let mut walk = Walk { dir: &venv, left: Vec::new(), seen: HashSet::new(), lines: Vec::new(), bytes: BYTES_MAX };
        assert!(walk.look_into(&venv.join("lib/site-packages/dep")).unwrap_err().contains("more than 4 GiB"));
        walk.lines = vec![Vec::new(); ENTRIES_MAX];
        assert!(walk.look_into(&venv).unwrap_err().contains("more than 50000 files"));
    }
}
