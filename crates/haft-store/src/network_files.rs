//! Network file systems, on which a data directory cannot be: `SQLite`'s shared memory and the locks of processes hold for one
//! kernel, and those of other machines do not see them.

use std::path::Path;

/// Magic numbers of `statfs(2)`.
const NETWORK: &[(i64, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9p"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
];

/// The network file system that a directory is on, or would be if it were made.
pub fn network_file_system(dir: &Path) -> Option<&'static str> {
    if is_declared() {
        return Some("NFS");
    }
    let found = dir.ancestors().find_map(|above| {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        rustix::fs::statfs(above).ok()
    });
    found.and_then(|found| named(found.f_type))
}

/// Whether a test declares that there are no local disks here. Absent from release builds, like the other names of `HAFT_REFUSE`.
fn is_declared() -> bool {
    cfg!(debug_assertions)
        && std::env::var("HAFT_REFUSE").is_ok_and(|names| names.split(',').any(|name| name == "local-disk"))
}

fn named(magic: i64) -> Option<&'static str> {
    NETWORK.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

/// Why a data directory cannot be on it, and what to do.
pub(crate) fn refusal(name: &str, dir: &Path) -> String {
    format!(
        "{} is on a network file system ({name}), where processes do not see each other's locks; use a directory of a local disk (XDG_DATA_HOME or --store), or a PostgreSQL server (docs/shared-store.md)",
        dir.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_named_and_local_ones_are_not() {
        assert_eq!([0x6969, 0x0102_1997, 0xfe53_4d42].map(named), [Some("NFS"), Some("9p"), Some("SMB")]);
        // ext, tmpfs, btrfs, xfs, overlay.
        for local in [0xef53, 0x0102_1994, 0x9123_683e, 0x5846_5342, 0x794c_7630] {
            assert_eq!(named(local), None, "{local:x}");
        }
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(network_file_system(&dir.path().join("not/there/yet")), network_file_system(dir.path()));
    }
}
