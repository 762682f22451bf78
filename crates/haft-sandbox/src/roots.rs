//! From roots as people write them to roots that a kernel can be told. Every oddity has one defined
//! result, and none of them is wider than what was written:
//!
//! | written | result |
//! |---|---|
//! | a relative root | counted from the working directory |
//! | a root that does not exist | refused: what appears there later is not what was meant |
//! | a root that is a symbolic link | refused, with the place it leads to: whoever can change the link would choose |
//! | a root inside another | a writable one inside a readable one is writable; otherwise nothing is added |
//! | `/`, or a root above the system's own directories | readable: each of its directories; writable: refused |
//! | `/proc`, `/sys`, `/dev` or anything in them | refused: the program has its own |
//! | a protected place outside the writable roots | refused: it would protect nothing |
//! | a protected place that does not exist | kept absent where writes are layered; refused where they are direct |
//! | a hidden place that does not exist, or in no root | nothing to hide |

use crate::backend::SandboxError;
use crate::confinement::{Confinement, Writes};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Directories that belong to the kernel; a confined program has its own.
const KERNEL: &[&str] = &["/proc", "/sys", "/dev"];
/// Directories that a writable root must not contain.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev", "/boot"];

/// Makes every path absolute and free of links, or says what is wrong.
pub fn resolve(wanted: Confinement, from: &Path) -> Result<Confinement, SandboxError> {
    let write = wanted.write.iter().map(|path| writable(&from.join(path))).collect::<Result<Vec<_>, _>>()?;
    let mut read = Vec::new();
    for path in &wanted.read {
        read.extend(readable(&from.join(path))?);
    }
    let write = outermost(write);
    let mut read = outermost(read);
    read.retain(|path| !write.iter().any(|root| path.starts_with(root)));
    let direct = wanted.writes == Writes::Direct;
    let mut protect = Vec::new();
    for path in &wanted.protect {
        protect.push(protected(&from.join(path), &write, direct)?);
    }
    // What lies in no root is out of reach anyway.
    let reached = |path: &PathBuf| read.iter().chain(&write).any(|root| path.starts_with(root));
    let hide = wanted.hide.iter().filter_map(|path| followed(&from.join(path)).ok()).filter(reached).collect();
    Ok(Confinement { read, write, protect, hide, ..wanted })
}

/// Where a path leads. The kernel follows it at once, and says where it came to: asking about each part of a path, as a
/// library does, takes several times as long, and every start of a program asks about dozens.
pub fn followed(path: &Path) -> std::io::Result<PathBuf> {
    let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let said = rustix::fs::readlink(format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::new());
    match said.map(|said| PathBuf::from(OsString::from_vec(said.into_bytes()))) {
        // What was removed meanwhile is marked so, and a name may end like the mark.
        Ok(real) if real.is_absolute() && !real.as_os_str().as_bytes().ends_with(b" (deleted)") => Ok(real),
        _ => path.canonicalize(),
    }
}

fn unclear(path: &Path, why: &str) -> SandboxError {
    SandboxError::Unclear(format!("{}: {why}", path.display()))
}

fn real(path: &Path) -> Result<PathBuf, SandboxError> {
    if let Ok(target) = std::fs::read_link(clean(path)) {
        let why = format!("is a symbolic link to {}; name that place if you mean it", target.display());
        return Err(unclear(path, &why));
    }
    let real = followed(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => unclear(path, "does not exist; make it first, or leave it out"),
        _ => unclear(path, &error.to_string()),
    })?;
    if KERNEL.iter().any(|dir| real.starts_with(dir)) {
        return Err(unclear(
            path,
            "belongs to the kernel, and a confined program has its own there; use a directory elsewhere",
        ));
    }
    Ok(real)
}

fn writable(path: &Path) -> Result<PathBuf, SandboxError> {
    let real = real(path)?;
    if SYSTEM.iter().any(|dir| Path::new(dir).starts_with(&real)) {
        return Err(unclear(path, "contains the system's own directories; name a directory inside"));
    }
    if !real.is_dir() {
        return Err(unclear(path, "is not a directory; name the directory that it is in"));
    }
    Ok(real)
}

/// `a/link/` names the link's target; without the last slash, it names the link.
fn clean(path: &Path) -> PathBuf {
    path.components().collect()
}

/// The roots that a readable one stands for: itself, or for `/` each directory in it.
fn readable(path: &Path) -> Result<Vec<PathBuf>, SandboxError> {
    let real = real(path)?;
    if real != Path::new("/") {
        return Ok(vec![real]);
    }
    let entries = std::fs::read_dir("/").map_err(|error| unclear(path, &error.to_string()))?;
    let own = |dir: &PathBuf| KERNEL.iter().chain(&["/tmp"]).all(|other| dir != Path::new(other));
    Ok(entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(own)
        .collect())
}

/// Without those that lie inside others.
fn outermost(mut roots: Vec<PathBuf>) -> Vec<PathBuf> {
    roots.sort();
    roots.dedup();
    let mut kept: Vec<PathBuf> = Vec::new();
    for root in roots {
        if !kept.iter().any(|outer| root.starts_with(outer)) {
            kept.push(root);
        }
    }
    kept
}

/// A protected place: its directory resolved, its own name taken as it is.
fn protected(path: &Path, write: &[PathBuf], direct: bool) -> Result<PathBuf, SandboxError> {
    let path = clean(path);
    let there = std::fs::symlink_metadata(&path).is_ok();
    if !there && direct {
        return Err(unclear(&path, "does not exist, and the kernel can only protect what is there; make it first"));
    }
    let full =
        if there { followed(&path).map_err(|error| unclear(&path, &error.to_string()))? } else { absent(&path)? };
    if write.iter().any(|root| full.starts_with(root)) {
        Ok(full)
    } else {
        Err(unclear(&path, "is in no writable root, so there is nothing to protect it from"))
    }
}

/// The place where something that is not there would be.
fn absent(path: &Path) -> Result<PathBuf, SandboxError> {
    let (Some(parent), Some(Component::Normal(name))) = (path.parent(), path.components().next_back()) else {
        return Err(unclear(path, "is not a place"));
    };
    match followed(parent) {
        Ok(parent) => Ok(parent.join(name)),
        Err(_) => Ok(absent(parent)?.join(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_is_followed_to_where_a_library_would_come_to() {
        let (_dir, root) = scene();
        std::fs::write(root.join("gone (deleted)"), "x").unwrap();
        symlink("link/b/../../file", root.join("around")).unwrap();
        for path in ["a/b", "link", "link/b", "a/../file", "around", "gone (deleted)", "."] {
            let path = root.join(path);
            assert_eq!(followed(&path).unwrap(), path.canonicalize().unwrap(), "{}", path.display());
        }
        assert_eq!(followed(&root.join("nothing")).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(followed(&root.join("file/x")).unwrap_err().kind(), ErrorKind::NotADirectory);
    }

    fn scene() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("file"), "x").unwrap();
        symlink("a", root.join("link")).unwrap();
        (dir, root)
    }

    fn said(wanted: Confinement, root: &Path) -> String {
        let text = resolve(wanted, root).unwrap_err().to_string();
        text.replace(&root.display().to_string(), "ROOT")
    }

    fn writes(path: &str) -> Confinement {
        Confinement { write: vec![path.into()], ..Confinement::default() }
    }

    #[test]
    fn oddities_have_defined_results() {
        let (_dir, root) = scene();
        assert_eq!(said(writes("not-there"), &root), "ROOT/not-there: does not exist; make it first, or leave it out");
        assert_eq!(said(writes("link"), &root), "ROOT/link: is a symbolic link to a; name that place if you mean it");
        assert_eq!(said(writes("link/"), &root), "ROOT/link/: is a symbolic link to a; name that place if you mean it");
        let reads = Confinement { read: vec!["link".into()], ..Confinement::default() };
        assert!(said(reads, &root).contains("is a symbolic link to a"));
        assert!(said(writes("/"), &root).contains("contains the system's own directories"));
        assert!(said(writes("/proc/sys"), &root).contains("belongs to the kernel"));
        assert!(said(writes("file"), &root).contains("is not a directory"));
        let protects = |path: &str| Confinement { protect: vec![path.into()], ..writes("a") };
        assert!(said(protects("file"), &root).contains("in no writable root"));
        assert!(said(protects("a/c"), &root).contains("can only protect what is there"));
    }

    #[test]
    fn nested_roots_join_and_never_widen() {
        let (_dir, root) = scene();
        let wanted = Confinement {
            read: vec!["a".into(), ".".into()],
            write: vec!["a/b".into(), "a".into()],
            protect: vec!["a/b".into(), "a/new/place".into()],
            writes: Writes::Layered(PathBuf::new()),
            ..Confinement::default()
        };
        let resolved = resolve(wanted, &root).unwrap();
        assert_eq!(resolved.read, std::slice::from_ref(&root));
        assert_eq!(resolved.write, [root.join("a")]);
        assert_eq!(resolved.protect, [root.join("a/b"), root.join("a/new/place")]);
    }
}
