//! The root that a confined program lives in: the system's programs and libraries, a few files of `/etc`,
//! the declared places, and a `/proc`, `/dev` and `/tmp` of its own. What is not there cannot be reached.

use super::layout::{GATE, Kind, Layout, Spot, Ways};
use super::step::{Failed, Step};
use super::sys::{self, HARMLESS, RDONLY};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Where the new root is put together: any directory will do, for it is covered.
const SITE: &str = "/tmp";

/// The system's programs and libraries.
const BASE: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];
/// What programs want from `/etc`, and what is nobody's secret.
const ETC: &[&str] = &[
    "ld.so.cache",
    "passwd",
    "group",
    "nsswitch.conf",
    "hosts",
    "resolv.conf",
    "host.conf",
    "gai.conf",
    "protocols",
    "services",
    "ssl",
    "pki",
    "localtime",
    "timezone",
    "alternatives",
    "mime.types",
    "magic",
    "debian_version",
    "lsb-release",
    "os-release",
    "gitconfig",
    "bash.bashrc",
    "profile",
    "inputrc",
    "terminfo",
    "fonts",
    "perl",
    "python3",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "java-25-openjdk",
];
/// Smaller files of `/etc` are copied: that is quicker than a mount.
const COPY_MAX: i64 = 128 << 10;
/// An empty directory, below every view for reading. It stays: the kernel does not list a directory of which one
/// layer was removed.
const NOTHING: &str = "/.nothing";
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// One mount alone becomes read-only; those in it have their own say.
const SEALED: MountFlags =
    MountFlags::BIND.union(MountFlags::RDONLY).union(MountFlags::NOSUID).union(MountFlags::NODEV);
/// How many files the directories in memory may hold.
const INODES: u32 = 65_536;

/// A path inside the site.
fn at(path: &OsStr) -> PathBuf {
    let mut full = OsString::from(SITE);
    full.push(path);
    full.into()
}

fn open_place(path: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // A link that was put in the way since the path was resolved must not lead elsewhere.
    crate::layer::at::open(Path::new(path), flags)
}

/// A place that has to be a regular file: a directory, which may have sockets in it, could have been put there since.
fn open_file(path: &OsStr) -> io::Result<OwnedFd> {
    let place = open_place(path)?;
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode);
    if kind.is_file() { Ok(place) } else { Err(io::Error::other("it is not a file any more")) }
}

/// A copy of the mounts at a place, not attached anywhere yet.
fn clone_mount(place: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(place, "", flags)?)
}

fn attach(mount: impl AsFd, path: &Path) -> io::Result<()> {
    Ok(rustix::mount::move_mount(mount, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// How a path is named to an overlay: by descriptor, so that neither a comma or colon in it nor a link
/// put in its way can change what it says.
fn by_descriptor(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

fn overlay(options: &[(&str, String)], attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    if crate::faults::is_refused("overlay") {
        return Err(rustix::io::Errno::NODEV.into());
    }
    let filesystem = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        rustix::mount::fsconfig_set_string(&filesystem, *name, value.as_str())?;
    }
    rustix::mount::fsconfig_set_flag(&filesystem, "userxattr")?;
    rustix::mount::fsconfig_create(&filesystem)?;
    let harmless = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(rustix::mount::fsmount(&filesystem, FsMountFlags::FSMOUNT_CLOEXEC, attributes | harmless)?)
}

/// A declared place with what it takes to mount it, opened before the site covers anything.
struct Opened<'l> {
    spot: &'l Spot,
    place: Option<OwnedFd>,
    layer: Option<(OwnedFd, OwnedFd)>,
}

fn open_spot(spot: &Spot) -> Result<Opened<'_>, Failed> {
    let shown = || format!("open {}", Path::new(&spot.path).display());
    let place = match spot.kind {
        Kind::Read | Kind::ReadView | Kind::Write | Kind::Layer { .. } => Some(open_place(&spot.path).step(shown)?),
        Kind::ReadFile => Some(open_file(&spot.path).step(shown)?),
        Kind::StandIn { ref by } => Some(open_place(by).step(shown)?),
        Kind::Lent { ref of } => Some(open_place(of).step(shown)?),
        Kind::Pin | Kind::Protect | Kind::Hide | Kind::Own | Kind::Empty | Kind::Seal => None,
    };
    let layer = match &spot.kind {
        Kind::Layer { upper, work } => Some((open_place(upper).step(shown)?, open_place(work).step(shown)?)),
        _ => None,
    };
    Ok(Opened { spot, place, layer })
}

/// Builds the root and moves into it. The caller is in fresh user, mount and pid namespaces.
pub(super) fn enter(layout: &Layout) -> Result<(), Failed> {
    rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .step(|| "make all mounts private".to_owned())?;
    let base = open_base().step(|| "open the system's directories".to_owned())?;
    let etc = open_place(OsStr::new("/etc")).step(|| "open /etc".to_owned())?;
    let devices = open_devices();
    let spots = layout.spots.iter().map(open_spot).collect::<Result<Vec<_>, _>>()?;

    tmpfs(Path::new(SITE), "size=4m,mode=755").step(|| "mount the root".to_owned())?;
    for (path, place) in base {
        base_dir(&path, place).step(|| format!("mount {}", path.display()))?;
    }
    own_dirs(layout.bounds.temp).step(|| "mount /tmp".to_owned())?;
    etc_files(&etc, &layout.ways).step(|| "fill /etc".to_owned())?;
    dev(devices).step(|| "fill /dev".to_owned())?;
    proc(layout.bounds.processes).step(|| "mount /proc".to_owned())?;
    std::fs::DirBuilder::new()
        .mode(0o555)
        .create(at(OsStr::new(NOTHING)))
        .step(|| "make an empty directory".to_owned())?;
    for spot in spots {
        let path = Path::new(&spot.spot.path).display().to_string();
        put(spot).step(|| format!("mount {path}"))?;
    }
    for spot in layout.spots.iter().filter(|spot| spot.kind == Kind::Seal) {
        let path = || format!("seal {}", Path::new(&spot.path).display());
        rustix::mount::mount_remount(at(&spot.path), SEALED, "").step(path)?;
    }
    leave_old_root().step(|| "change the root".to_owned())
}

fn tmpfs(path: &Path, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    Ok(rustix::mount::mount("tmpfs", path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str())?)
}

/// The system's directories: links as they are, directories opened.
fn open_base() -> io::Result<Vec<(PathBuf, Result<OwnedFd, PathBuf>)>> {
    let mut found = Vec::new();
    for path in BASE.iter().map(Path::new) {
        match std::fs::read_link(path) {
            Ok(target) => found.push((path.to_owned(), Err(target))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => found.push((path.to_owned(), Ok(open_place(path.as_os_str())?))),
        }
    }
    Ok(found)
}

fn base_dir(path: &Path, place: Result<OwnedFd, PathBuf>) -> io::Result<()> {
    let to = at(path.as_os_str());
    match place {
        Err(target) => symlink(target, to),
        Ok(place) => {
            std::fs::create_dir_all(&to)?;
            let mount = clone_mount(place)?;
            sys::restrict_mount(mount.as_fd(), HARMLESS | RDONLY)?;
            attach(mount, &to)
        }
    }
}

/// Its own temporary directories. Their size and their number of files are bounded: both are memory.
fn own_dirs(size: u64) -> io::Result<()> {
    for dir in ["/proc", "/dev", "/tmp", "/etc", "/run", "/var", "/var/tmp", "/home", "/root"] {
        let mode = if dir == "/root" { 0o700 } else { 0o755 };
        std::fs::DirBuilder::new().mode(mode).create(at(OsStr::new(dir)))?;
    }
    let temp = at(OsStr::new("/tmp"));
    tmpfs(&temp, &format!("size={size},nr_inodes={INODES},mode=1777"))?;
    // A mount and not a link: a root may lie in there, and no link may lead to it.
    Ok(rustix::mount::mount_bind(temp, at(OsStr::new("/var/tmp")))?)
}

fn etc_files(etc: &OwnedFd, ways: &Ways) -> io::Result<()> {
    let dir = at(OsStr::new("/etc"));
    for name in ETC {
        // What this user may not open is nothing the program could read, either.
        let Ok(place) =
            rustix::fs::openat(etc, *name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
        else {
            continue;
        };
        let (to, stat) = (dir.join(name), rustix::fs::fstat(&place)?);
        match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
            rustix::fs::FileType::Symlink => etc_link(etc, name, &to)?,
            rustix::fs::FileType::RegularFile if stat.st_size <= COPY_MAX => etc_copy(etc, name, &to)?,
            kind => {
                if kind.is_dir() {
                    std::fs::create_dir(&to)?;
                } else {
                    drop(std::fs::File::create(&to)?);
                }
                let mount = clone_mount(place)?;
                sys::restrict_mount(mount.as_fd(), HARMLESS | RDONLY)?;
                attach(mount, &to)?;
            }
        }
    }
    if let Ways::Gate(known) = ways {
        let mut hosts = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for host in known.iter().filter(|known| known.host.parse::<std::net::IpAddr>().is_err()) {
            hosts.push_str(&format!("{} {}\n", host.address, host.host));
        }
        let names = format!("nameserver {GATE}\noptions timeout:1 attempts:1\n");
        for (name, content) in [("/etc/hosts", hosts), ("/etc/resolv.conf", names)] {
            let to = at(OsStr::new(name));
            let _ = std::fs::remove_file(&to);
            write_file(&to, content.as_bytes())?;
        }
    }
    Ok(())
}

/// A link into what is there stays one; any other is replaced by what it leads to.
fn etc_link(etc: &OwnedFd, name: &str, to: &Path) -> io::Result<()> {
    let target = rustix::fs::readlinkat(etc, name, Vec::new())?;
    let target = Path::new(OsStr::from_bytes(target.as_bytes())).to_owned();
    if target.starts_with("/usr") || target.starts_with("../usr") {
        symlink(target, to)
    } else {
        etc_copy(etc, name, to)
    }
}

fn etc_copy(etc: &OwnedFd, name: &str, to: &Path) -> io::Result<()> {
    let Ok(source) = rustix::fs::openat(etc, name, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())
    else {
        return Ok(());
    };
    let mut content = Vec::with_capacity(4096);
    let limit = u64::try_from(COPY_MAX).unwrap_or(u64::MAX);
    // A directory, or something that cannot be read: then it is not there.
    if std::fs::File::from(source).take(limit).read_to_end(&mut content).is_err() {
        return Ok(());
    }
    write_file(to, &content)
}

/// A small file that everybody may read, whatever the umask is while the root is built.
fn write_file(to: &Path, content: &[u8]) -> io::Result<()> {
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(to)?.write_all(content)
}

fn open_devices() -> Vec<(&'static str, OwnedFd)> {
    let open = |name: &&'static str| Some((*name, open_place(OsStr::new(&format!("/dev/{name}"))).ok()?));
    DEVICES.iter().filter_map(open).collect()
}

/// Devices are mounted read-only: that stops changing their mode or owner, not using them.
fn dev(devices: Vec<(&'static str, OwnedFd)>) -> io::Result<()> {
    let dir = at(OsStr::new("/dev"));
    for (name, place) in devices {
        let to = dir.join(name);
        std::fs::File::create(&to)?;
        let mount = clone_mount(place)?;
        sys::restrict_mount(mount.as_fd(), libc::MOUNT_ATTR_NOSUID | RDONLY)?;
        attach(mount, &to)?;
    }
    // Shared memory counts against the same bound as temporary files.
    let shared = at(OsStr::new("/tmp/.shm"));
    std::fs::create_dir(&shared)?;
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777))?;
    symlink("/tmp/.shm", dir.join("shm"))?;
    std::fs::create_dir(dir.join("pts"))?;
    let own = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    if rustix::mount::mount("devpts", dir.join("pts"), "devpts", own, options).is_ok() {
        symlink("pts/ptmx", dir.join("ptmx"))?;
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, dir.join(name))?;
    }
    Ok(())
}

/// Whether a pid namespace has its own highest number, which Linux knows since 6.14. Before that it is the
/// whole machine's.
fn pids_are_own() -> bool {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    matches!((numbers.next(), numbers.next()), (Some(major), Some(minor)) if (major, minor) >= (6, 14))
}

/// `/proc` of the program's own pid namespace, read-only: as root, the machine's settings would be writable.
fn proc(processes: Option<u64>) -> io::Result<()> {
    let dir = at(OsStr::new("/proc"));
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("proc", &dir, "proc", flags, None)?;
    if let (Some(processes), true) = (processes, pids_are_own()) {
        // Root is above the limit on a user's processes; nobody is above this one. A little more than the
        // watch allows, so that the watch says what happened; and never less than the kernel takes.
        let most = processes.saturating_add(64).max(301).to_string();
        // Where it cannot be set, the watch counts alone.
        let _ = std::fs::write(dir.join("sys/kernel/pid_max"), most);
    }
    rustix::mount::mount_remount(&dir, flags | MountFlags::RDONLY, "")?;
    // It would show the keys of everybody who is this user.
    let keys = dir.join("keys");
    if std::fs::symlink_metadata(&keys).is_err() {
        return Ok(());
    }
    Ok(rustix::mount::mount_bind(at(OsStr::new("/dev/null")), keys)?)
}

/// Makes the mount point of a place.
fn make_point(to: &Path, is_dir: bool) -> io::Result<()> {
    if std::fs::symlink_metadata(to).is_ok() {
        return Ok(());
    }
    if is_dir {
        return std::fs::create_dir_all(to);
    }
    to.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::File::create(to).map(drop)
}

fn put(opened: Opened<'_>) -> io::Result<()> {
    let Opened { spot, place, layer } = opened;
    let to = at(&spot.path);
    match (&spot.kind, place, layer) {
        (Kind::Own, ..) => {
            // In the same memory as /tmp, and within the same bound.
            let own = at(OsStr::new("/tmp/.home"));
            std::fs::DirBuilder::new().mode(0o700).create(&own)?;
            make_point(&to, true)?;
            Ok(rustix::mount::mount_bind(own, &to)?)
        }
        (Kind::Empty, ..) => make_point(&to, true),
        (Kind::Seal, ..) => {
            make_point(&to, true)?;
            over_itself(&to, 0)
        }
        (Kind::Hide, ..) => hide(&to),
        (Kind::Pin, ..) => over_itself(&to, 0),
        (Kind::Protect, ..) => over_itself(&to, RDONLY),
        (Kind::Layer { .. }, Some(lower), Some((upper, work))) => {
            let options = [
                ("lowerdir", by_descriptor(&lower)),
                ("upperdir", by_descriptor(&upper)),
                ("workdir", by_descriptor(&work)),
            ];
            make_point(&to, true)?;
            attach(overlay(&options, MountAttrFlags::empty())?, &to)
        }
        (Kind::ReadView, Some(lower), _) if is_dir(&lower)? => {
            // An overlay without an upper layer needs two lower ones; this one is empty.
            let empty = open_place(at(OsStr::new(NOTHING)).as_os_str())?;
            let lowers = format!("{}:{}", by_descriptor(&lower), by_descriptor(&empty));
            make_point(&to, true)?;
            attach(overlay(&[("lowerdir", lowers)], MountAttrFlags::MOUNT_ATTR_RDONLY)?, &to)
        }
        (kind, Some(place), _) => {
            make_point(&to, is_dir(&place)?)?;
            let mount = clone_mount(place)?;
            let written = matches!(kind, Kind::Write | Kind::Lent { .. });
            sys::restrict_mount(mount.as_fd(), if written { HARMLESS } else { HARMLESS | RDONLY })?;
            attach(mount, &to)
        }
        (_, None, _) => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn is_dir(place: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode).is_dir())
}

/// Mounts a place over itself: a mount point cannot be renamed or removed, and may be read-only.
fn over_itself(to: &Path, attributes: u64) -> io::Result<()> {
    let place = match open_place(to.as_os_str()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        place => place?,
    };
    let mount = clone_mount(place)?;
    sys::restrict_mount(mount.as_fd(), HARMLESS | attributes)?;
    attach(mount, to)
}

/// Covers a place with something that nobody may open.
fn hide(to: &Path) -> io::Result<()> {
    let Ok(meta) = std::fs::symlink_metadata(to) else { return Ok(()) };
    let cover = at(OsStr::new("/.closed"));
    if meta.is_dir() {
        std::fs::DirBuilder::new().mode(0o0).create(&cover)?;
    } else {
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o0).open(&cover)?;
    }
    let done = rustix::mount::mount_bind(&cover, to);
    // The mount keeps what it shows; the name is not needed any more.
    if meta.is_dir() {
        std::fs::remove_dir(&cover)?;
    } else {
        std::fs::remove_file(&cover)?;
    }
    Ok(done?)
}

fn leave_old_root() -> io::Result<()> {
    std::env::set_current_dir(SITE)?;
    rustix::process::pivot_root(".", ".")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")?;
    // Only the root itself: the mounts in it have their own say.
    Ok(rustix::mount::mount_remount("/", SEALED, "")?)
}
