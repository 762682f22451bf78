//! A data directory that several users share: who may write to it may also write to the directories in it that every call needs.
//! What a call keeps there stays private to the user who made the call.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{DirBuilder, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Those but the owner who may write.
const OTHERS_WRITE: u32 = 0o022;

/// Makes a directory of a data directory: private, unless others may write to the data directory as well.
pub(crate) fn make_directory(dir: &Path) -> io::Result<()> {
    let made = DirBuilder::new().mode(0o700).create(dir);
    match made {
        Ok(()) => dir.parent().map(std::fs::metadata).transpose()?.map_or(Ok(()), |above| share(dir, &above)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // The data directory is not there yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)
        }
        Err(error) => Err(error),
    }
}

/// Shares a directory that was just made. Another who may write above it may have put a link or a directory in its place
/// since (TOCTOU), to have root give that away: no link is followed, and what was made belongs to this process's user.
fn share(dir: &Path, above: &Metadata) -> io::Result<()> {
    if above.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    let replaced = || {
        let words = format!("{} was replaced by another user while it was made; remove it", dir.display());
        io::Error::new(io::ErrorKind::PermissionDenied, words)
    };
    let made =
        OpenOptions::new().read(true).custom_flags(flags).open(dir).map_err(|error| {
            match Errno::from_io_error(&error) {
                Some(Errno::NOTDIR | Errno::LOOP) => replaced(),
                _ => error,
            }
        })?;
    if made.metadata()?.uid() != rustix::process::geteuid().as_raw() {
        return Err(replaced());
    }
    // A directory's group is its parent's where that says so; otherwise only root may give it away.
    let _ = std::os::unix::fs::fchown(&made, Some(above.uid()), Some(above.gid()));
    made.set_permissions(Permissions::from_mode(above.mode() & 0o7777))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_private_unless_others_may_write_above_it() {
        let data = tempfile::tempdir().unwrap();
        let mode = |dir: &Path| std::fs::metadata(dir).unwrap().mode() & 0o7777;
        for (above, expected) in [(0o700, 0o700), (0o755, 0o700), (0o2770, 0o2770), (0o1777, 0o1777)] {
            std::fs::set_permissions(data.path(), Permissions::from_mode(above)).unwrap();
            let dir = data.path().join(format!("{above:o}"));
            make_directory(&dir).unwrap();
            make_directory(&dir).unwrap();
            assert_eq!(mode(&dir), expected, "{above:o}");
        }
        let nested = data.path().join("not/there");
        make_directory(&nested).unwrap();
        assert_eq!(mode(&nested), 0o700);
    }

    #[test]
    fn link_in_place_of_a_directory_that_was_just_made_is_refused_and_its_target_stays() {
        let data = tempfile::tempdir().unwrap();
        std::fs::set_permissions(data.path(), Permissions::from_mode(0o2777)).unwrap();
        let (victim, link) = (data.path().join("victim"), data.path().join("outputs"));
        std::fs::create_dir(&victim).unwrap();
        std::fs::set_permissions(&victim, Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        let refused = share(&link, &std::fs::metadata(data.path()).unwrap()).unwrap_err();
        assert!(refused.to_string().contains("was replaced by another user"), "{refused}");
        assert_eq!(std::fs::metadata(&victim).unwrap().mode() & 0o7777, 0o700);
    }
}
