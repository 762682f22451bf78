//! What runs of a project's tool is what was accepted: copies of its files, kept by their content where no tool can write,
//! and seen by its program in the place of the files themselves. So nothing that happens to those while it starts or runs
//! is ever read as its code.

use super::standing::Files;
use haft_core::CallError;
use haft_core::record::Digest;
use haft_sandbox::roots::followed;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where copies are, in the directory of haft's own data.
const DIR: &str = "accepted";
/// The largest file that a tool may have; more than that is never accepted.
const BYTES_MAX: u64 = 8 << 20;
/// How many copies are kept; then those go that were made first. What is needed is made anew.
const KEPT_MAX: usize = 4000;

/// The accepted files that lie in these places, and the copies that stand in for them. A file that is not as it was
/// accepted has none, and then nothing runs.
pub(super) fn stand_ins(
    (root, accepted): (&Path, &Files),
    data_dir: &Path,
    places: &[PathBuf],
) -> Result<Vec<(PathBuf, PathBuf)>, CallError> {
    let full = |error| CallError::internal(format!("no room for copies: {error}")).hint("check the data directory");
    let dir = data_dir.join(DIR);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(full)?;
    // Whoever mounts them follows no link.
    let dir = followed(&dir).map_err(full)?;
    let mut all = Vec::new();
    for (path, digest) in accepted {
        let place = root.join(path);
        // A directory is an environment, which is looked at as a whole.
        if path.ends_with('/') || !places.iter().any(|around| place.starts_with(around)) {
            continue;
        }
        let meta = match place.symlink_metadata() {
            Ok(meta) if meta.is_file() => meta,
            // A link was accepted by what it says; the file that it leads to, by its own name.
            Ok(meta) if meta.is_symlink() => continue,
            _ => return Err(gone(path, "it is not there")),
        };
        let executable = meta.permissions().mode() & 0o111 != 0;
        let copy = dir.join(format!("{digest}{}", if executable { "-x" } else { "" }));
        if !copy.is_file() {
            let made = make(&place, *digest, (&dir, &copy), executable);
            made.map_err(|error| gone(path, &error.to_string()))?;
        }
        all.push((place, copy));
    }
    Ok(all)
}

fn gone(path: &str, why: &str) -> CallError {
    let path = haft_core::preview::inert(path);
    CallError::conflict(format!("`{path}` cannot be taken as it was accepted: {why}; nothing ran"))
        .hint("call it again; `haft trust` shows what changed")
}

/// Copies a file, if it holds what was accepted. The copy appears whole or not at all.
fn make(place: &Path, digest: Digest, (dir, copy): (&Path, &Path), executable: bool) -> io::Result<()> {
    let mut content = Vec::new();
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file =
        OpenOptions::new().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or_default()).open(place)?;
    file.take(BYTES_MAX + 1).read_to_end(&mut content)?;
    if Digest::of(&content) != digest {
        return Err(io::Error::other("it has changed"));
    }
    make_room(dir)?;
    let draft = dir.join(format!(".{}", crate::chance()));
    let mode = if executable { 0o555 } else { 0o444 };
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
    let written = file.write_all(&content).and_then(|()| file.set_permissions(std::fs::Permissions::from_mode(mode)));
    let done = written.and_then(|()| std::fs::rename(&draft, copy));
    if done.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    done
}

fn make_room(dir: &Path) -> io::Result<()> {
    let mut all: Vec<_> = std::fs::read_dir(dir)?.flatten().map(|entry| entry.path()).collect();
    if all.len() < KEPT_MAX {
        return Ok(());
    }
    all.sort_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok());
    // A program that runs keeps what it has open.
    all.iter().take(KEPT_MAX / 4).for_each(|path| drop(std::fs::remove_file(path)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_what_was_accepted_or_there_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let (root, data) = (dir.path().join("project"), dir.path().join("data"));
        std::fs::create_dir_all(root.join("scripts")).unwrap();
        let write = |path: &str, text: &str| std::fs::write(root.join(path), text).unwrap();
        write("scripts/run.sh", "accepted");
        write("other.txt", "accepted, too");
        std::fs::set_permissions(root.join("scripts/run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("run.sh", root.join("scripts/link")).unwrap();
        let accepted: Files = [
            ("scripts/run.sh", Digest::of(b"accepted")),
            ("scripts/link", Digest::of(b"link to run.sh\naccepted")),
            ("other.txt", Digest::of(b"accepted, too")),
            (".venv/", Digest::ZERO),
        ]
        .map(|(path, digest)| (path.to_owned(), digest))
        .into();
        let take = || stand_ins((&root, &accepted), &data, &[root.join("scripts")]);
        let all = take().unwrap();
        assert_eq!(all.len(), 1, "what it cannot read needs no copy, and a link has its target's");
        let (place, copy) = &all[0];
        assert_eq!(
            (place, std::fs::read_to_string(copy).unwrap().as_str()),
            (&root.join("scripts/run.sh"), "accepted")
        );
        assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o555);
        write("scripts/run.sh", "something else");
        assert_eq!(take().unwrap(), all, "what was accepted is still known");
        std::fs::remove_file(copy).unwrap();
        assert!(take().unwrap_err().message.contains("`scripts/run.sh` cannot be taken as it was accepted"));
    }
}
