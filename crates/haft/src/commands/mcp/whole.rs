//! Writing a configuration file whole: old or new, never a part, and never through a link that somebody else has laid
//! where a draft would be.

use std::fs::{OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The mode of a file, or that of a new one.
pub(super) fn mode(file: &Path) -> u32 {
    std::fs::metadata(file).map_or(0o600, |meta| meta.permissions().mode() & 0o777)
}

/// Puts a text in the place of a file. A link there is replaced, not followed.
pub(super) fn place(file: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    place_if(file, text, mode, || true).map(drop)
}

/// The same if `is_wanted` holds just before. Says whether the text is in its place.
pub(super) fn place_if(file: &Path, text: &str, mode: u32, is_wanted: impl Fn() -> bool) -> std::io::Result<bool> {
    let fresh = beside(file, "haft-new", text, mode)?;
    let placed = if is_wanted() { std::fs::rename(&fresh, file).map(|()| true) } else { Ok(false) };
    if !matches!(placed, Ok(true)) {
        let _ = std::fs::remove_file(&fresh);
    }
    placed
}

/// Writes a file beside another, under a name that nobody has.
pub(super) fn beside(file: &Path, ending: &str, text: &str, mode: u32) -> std::io::Result<PathBuf> {
    for number in 0..1000 {
        let mut name = file.as_os_str().to_owned();
        name.push(if number == 0 { format!(".{ending}") } else { format!(".{ending}.{number}") });
        let path = PathBuf::from(name);
        // Whatever is there, a link to nowhere included, is somebody's.
        let mut file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            opened => opened?,
        };
        // Whatever the umask took away.
        let written = file
            .set_permissions(Permissions::from_mode(mode))
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.sync_all());
        return written.map(|()| path.clone()).inspect_err(|_| {
            let _ = std::fs::remove_file(&path);
        });
    }
    Err(std::io::Error::other(format!("there are a thousand files `.{ending}` beside it; remove some")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (file, victim) = (dir.path().join("config.yml"), dir.path().join("victim"));
        std::fs::write(&victim, "mine").unwrap();
        for planted in ["config.yml", "config.yml.haft-new", "config.yml.haft-new.1"] {
            std::os::unix::fs::symlink(&victim, dir.path().join(planted)).unwrap();
        }
        place(&file, "new", 0o640).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        assert_eq!((std::fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("new", 0o640));
        assert!(!file.is_symlink() && !dir.path().join("config.yml.haft-new.2").exists());
    }
}
