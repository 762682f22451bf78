//! A data directory that several users share: who may write to it may also write to the directories in it that every call needs.
//! What a call keeps there stays private to the user who made the call.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
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

fn share(dir: &Path, above: &Metadata) -> io::Result<()> {
    if above.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    let made = File::open(dir)?;
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
}
