//! Trees as text: two that are equal were not touched.

use crate::sys::{c, call, into};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Everything below a directory, itself included, sorted.
fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_path_buf()];
    let mut index = 0;
    while index < found.len() {
        if fs::symlink_metadata(&found[index]).is_ok_and(|meta| meta.is_dir()) {
            let entries = fs::read_dir(&found[index]).into_iter().flatten().flatten();
            found.extend(entries.map(|entry| entry.path()).collect::<Vec<_>>());
        }
        index += 1;
    }
    found.sort();
    found
}

/// What a file holds, whatever it is.
fn content(path: &Path, meta: &fs::Metadata) -> String {
    if meta.is_symlink() {
        return fs::read_link(path).unwrap_or_default().display().to_string();
    }
    if meta.is_file() {
        String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
    } else {
        String::new()
    }
}

/// The names and values of a file's extended attributes.
fn attributes(path: &Path) -> String {
    let path = c(path);
    let mut names = [0u8; 1024];
    let length = call(libc::SYS_llistxattr, &[path.as_ptr() as usize, into(&mut names), names.len()]).unwrap_or(0);
    String::from_utf8_lossy(&names[..length]).replace('\0', " ")
}

/// A tree in which nothing at all may change, times of change included.
pub(crate) fn whole(dir: &Path) -> String {
    let line = |path: &PathBuf| {
        let Ok(meta) = fs::symlink_metadata(path) else { return format!("{} gone\n", path.display()) };
        let pipe = meta.mode() & libc::S_IFMT == libc::S_IFIFO;
        let times = if pipe { (0, 0) } else { (meta.ctime(), meta.ctime_nsec()) };
        let owner = (meta.mode(), meta.uid(), meta.gid(), meta.nlink());
        format!("{} {owner:?} {times:?} {} {}\n", path.display(), attributes(path), content(path, &meta))
    };
    walk(dir).iter().map(line).collect()
}

/// Whether a path of a project is one that no tool may touch.
fn is_protected(path: &Path, meta: &fs::Metadata) -> bool {
    let parts: Vec<&[u8]> = path.components().map(|part| part.as_os_str().as_bytes()).collect();
    let git = parts.iter().position(|part| *part == b".git");
    let below = git.and_then(|index| parts.get(index + 1));
    let redirected = parts.last() == Some(&b".git".as_slice()) && !meta.is_dir();
    parts.iter().any(|part| [b".haft".as_slice(), b".glee", b"kept"].contains(part))
        || below.is_some_and(|part| [b"hooks".as_slice(), b"config", b"commondir"].contains(part))
        || redirected
}

/// What a project has of protected paths, and of files with privileges.
pub(crate) fn protected(project: &Path) -> String {
    let mut text = String::new();
    for path in walk(project) {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        let below = path.strip_prefix(project).unwrap_or(&path);
        if is_protected(below, &meta) {
            let when = (meta.mode(), meta.mtime(), meta.mtime_nsec());
            text.push_str(&format!("{} {when:?} {}\n", below.display(), content(&path, &meta)));
        }
        let privileged = meta.is_file() && meta.mode() & 0o6000 != 0;
        if privileged || attributes(&path).contains("security.capability") {
            text.push_str(&format!("{} has privileges\n", below.display()));
        }
        // Through a link in place of a repository, its settings are somewhere else.
        if meta.is_symlink() && path.join("config").is_file() {
            text.push_str(&format!("{} leads to settings\n", below.display()));
        }
    }
    text
}

const START: &[&str] = &[".bashrc", ".profile", ".bash_profile", ".bash_login", ".zshenv", ".zshrc", ".zprofile"];

/// What a shell reads when it starts.
pub(crate) fn start_files(home: &Path) -> String {
    let line = |name: &&str| {
        let path = home.join(name);
        let meta = fs::symlink_metadata(&path).ok()?;
        Some(format!("{name} {:o} {}\n", meta.mode(), content(&path, &meta)))
    };
    START.iter().filter_map(line).collect()
}
