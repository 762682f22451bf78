//! Changing what was not declared as writable.

use super::{Act, Prop, Sight};
use crate::attack::{Brief, Stop, Tried, any, stopped};
use crate::sys::{self, HERE, at, c, call, int, on, under};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

pub(crate) const ACTS: &[Act] = &[
    changed("fs.write.create", |b| put(b.file("outside", "new.txt")?)),
    changed("fs.write.create_dotdot", |b| put(b.file("project", "../outside/new.txt")?)),
    changed("fs.write.append", |b| append(b.file("outside", "data.txt")?)),
    changed("fs.write.overwrite", |b| put(b.file("outside", "data.txt")?)),
    changed("fs.write.truncate", |b| on(libc::SYS_truncate, b.file("outside", "data.txt")?, &[1]).tried()),
    changed("fs.write.unlink", |b| on(libc::SYS_unlink, b.file("outside", "data.txt")?, &[]).tried()),
    changed("fs.write.mkdir", |b| on(libc::SYS_mkdir, b.file("outside", "newdir")?, &[0o755]).tried()),
    changed("fs.write.rmdir", |b| on(libc::SYS_rmdir, b.file("outside", "empty")?, &[]).tried()),
    changed("fs.write.symlink", |b| symlink("x", b.file("outside", "newlink")?).tried()),
    changed("fs.write.mkfifo", |b| mknod(&b.file("outside", "newfifo")?, libc::S_IFIFO, 0)),
    changed("fs.write.rename", |b| rename(&b.file("outside", "data.txt")?, &b.file("outside", "moved.txt")?, 0)),
    changed("fs.write.rename_out", |b| rename(&b.file("project", "file.txt")?, &b.file("outside", "data.txt")?, 0)),
    changed("fs.write.rename_in", |b| rename(&b.file("outside", "data.txt")?, &b.file("project", "got.txt")?, 0)),
    changed("fs.write.rename_exchange", |b| {
        rename(&b.file("project", "file.txt")?, &b.file("outside", "data.txt")?, libc::RENAME_EXCHANGE)
    }),
    changed("fs.write.link_out", |b| link(&b.file("project", "file.txt")?, &b.file("outside", "linked.txt")?)),
    changed("fs.write.link_in", |b| {
        link(&b.file("outside", "data.txt")?, &b.file("project", "alias.txt")?)?;
        append(b.file("project", "alias.txt")?)
    }),
    changed("fs.write.by_symlink", |b| {
        symlink(b.file("outside", "data.txt")?, b.file("project", "way")?)?;
        put(b.file("project", "way")?)
    }),
    changed("fs.write.planted_symlink", |b| put(b.file("project", "planted/data.txt")?)),
    changed("fs.write.planted_file_symlink", |b| append(b.file("project", "planted.txt")?)),
    changed("fs.write.by_proc_root", |b| {
        let path = b.file("outside", "data.txt")?;
        append(Path::new("/proc/self/root").join(path.strip_prefix("/").unwrap()))
    }),
    changed("fs.write.chmod", |b| chmod_ways(&b.file("outside", "data.txt")?)),
    changed("fs.write.chown", |b| chown_ways(&b.file("outside", "data.txt")?)),
    changed("fs.write.utime", |b| utime(&b.file("outside", "data.txt")?)),
    changed("fs.write.setxattr", |b| setxattr(&b.file("outside", "data.txt")?, "user.evil", b"x")),
    changed("fs.write.removexattr", |b| removexattr(&b.file("outside", "secret.txt")?)),
    changed("fs.write.mapped", mapped),
    changed("fs.write.readonly_write", |b| append(b.file("reading", "data.txt")?)),
    changed("fs.write.readonly_create", |b| put(b.file("reading", "new.txt")?)),
    changed("fs.write.readonly_unlink", |b| on(libc::SYS_unlink, b.file("reading", "data.txt")?, &[]).tried()),
    changed("fs.write.readonly_chmod", |b| chmod_ways(&b.file("reading", "data.txt")?)),
    changed("fs.write.readonly_chown", |b| chown_ways(&b.file("reading", "data.txt")?)),
    changed("fs.write.readonly_utime", |b| utime(&b.file("reading", "data.txt")?)),
    changed("fs.write.readonly_xattr", |b| setxattr(&b.file("reading", "data.txt")?, "user.evil", b"x")),
    changed("fs.write.readonly_rename", |b| rename(&b.file("reading", "data.txt")?, &b.file("reading", "x")?, 0)),
    changed("fs.write.readonly_take", |b| rename(&b.file("reading", "data.txt")?, &b.file("project", "x")?, 0)),
    changed("fs.write.readonly_link", |b| {
        link(&b.file("reading", "data.txt")?, &b.file("project", "alias.txt")?)?;
        append(b.file("project", "alias.txt")?)
    }),
    changed("fs.write.readonly_remount", remount),
    changed("fs.write.readonly_bind_over", bind_over),
    changed("fs.write.inherited_write", |_| inherited(&|fd| sys::write(fd, b"evil").map_err(Stop::from))),
    changed("fs.write.inherited_truncate", |_| inherited(&|fd| Ok(call(libc::SYS_ftruncate, &[int(fd), 1])?))),
    changed("fs.write.inherited_chmod", |_| inherited(&|fd| Ok(call(libc::SYS_fchmod, &[int(fd), 0o711])?))),
    changed("fs.write.inherited_create", |_| {
        inherited(&|fd| Ok(sys::openat(fd, "made.txt", libc::O_CREAT | libc::O_WRONLY)? as usize))
    }),
    changed("fs.write.proc_self_fd", |_| {
        inherited(&|fd| Ok(sys::open(format!("/proc/self/fd/{fd}"), libc::O_WRONLY | libc::O_TRUNC)? as usize))
    }),
    Act::new("fs.write.fifo", |b| fifo(&b.file("outside", "fifo")?)).seen(Sight::Reached),
    Act::new("fs.write.readonly_fifo", |b| fifo(&b.file("reading", "fifo")?)).seen(Sight::Reached),
    Act::new("fs.write.project_fifo", |b| fifo(&b.file("project", "fifo")?)).seen(Sight::Reached).judged_outside(),
    Act::new("fs.write.mknod", |b| {
        mknod(&b.file("project", "mem")?, libc::S_IFCHR, libc::makedev(1, 3))?;
        sys::open(b.file("project", "mem")?, libc::O_RDWR).tried()
    }),
    Act::new("fs.write.setuid_bit", setuid_bit).seen(Sight::Protected).judged_outside(),
    Act::new("fs.write.setgid_bit", setgid_bit).seen(Sight::Protected).judged_outside(),
    Act::new("fs.write.file_capability", file_capability).seen(Sight::Protected).judged_outside(),
    Act::new("fs.write.core_pattern", |_| same_again("/proc/sys/kernel/core_pattern")),
    Act::new("fs.write.proc_sys", |_| same_again("/proc/sys/vm/swappiness")),
    Act::new("fs.write.hostname_file", |_| same_again("/proc/sys/kernel/hostname")),
    Act::new("fs.write.sys", |_| same_again("/sys/kernel/mm/transparent_hugepage/enabled")),
    Act::new("fs.write.cgroup", |_| cgroup()),
    Act::new("fs.write.dev_null_mode", |_| dev_null()),
    Act::new("fs.write.dev_null_owner", |_| on(libc::SYS_chown, "/dev/null", &[0, 0]).tried()),
    Act::new("fs.write.usr", |_| usr()),
    Act::new("fs.write.etc", |_| etc()),
    Act::new("fs.write.victim_oom", |b| {
        std::fs::write(format!("/proc/{}/oom_score_adj", b.get("victim")?), "500")?;
        Ok("set".to_owned())
    })
    .with(Prop::Victim)
    .seen(Sight::Victim),
];

const fn changed(name: &'static str, attempt: fn(&Brief) -> Tried) -> Act {
    Act::new(name, attempt).seen(Sight::Changed)
}

/// Any success will do.
pub(crate) trait IntoTried {
    fn tried(self) -> Tried;
}

impl<T, E: Into<Stop>> IntoTried for Result<T, E> {
    fn tried(self) -> Tried {
        self.map(|_| "allowed".to_owned()).map_err(Into::into)
    }
}

pub(crate) fn put(path: impl AsRef<Path>) -> Tried {
    std::fs::write(path, "evil\n").tried()
}

pub(crate) fn append(path: impl AsRef<Path>) -> Tried {
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(b"evil\n").tried()
}

pub(crate) fn rename(from: &Path, to: &Path, flags: u32) -> Tried {
    let (from, to) = (c(from), c(to));
    let args = [int(HERE), from.as_ptr() as usize, int(HERE), to.as_ptr() as usize, flags as usize];
    call(libc::SYS_renameat2, &args).tried()
}

pub(crate) fn link(from: &Path, to: &Path) -> Tried {
    std::fs::hard_link(from, to).tried()
}

fn mknod(path: &Path, kind: u32, device: u64) -> Tried {
    on(libc::SYS_mknod, path, &[(kind | 0o666) as usize, device as usize]).tried()
}

fn chmod_ways(path: &Path) -> Tried {
    any(&[
        ("chmod", &|| on(libc::SYS_chmod, path, &[0o777]).tried()),
        ("fchmodat", &|| under(libc::SYS_fchmodat, HERE, path, &[0o777]).tried()),
        ("fchmodat2", &|| under(452, HERE, path, &[0o777, 0]).tried()),
        ("fchmod", &|| {
            let fd = sys::open(path, libc::O_RDONLY)?;
            call(libc::SYS_fchmod, &[int(fd), 0o777]).tried()
        }),
        ("by a path descriptor", &|| {
            let fd = sys::open(path, libc::O_PATH)?;
            on(libc::SYS_chmod, format!("/proc/self/fd/{fd}"), &[0o777]).tried()
        }),
    ])
}

/// To whom it belongs already: the kernel notes even that, and an ordinary user may do no more.
fn chown_ways(path: &Path) -> Tried {
    let (user, group) = (int(-1), call(libc::SYS_getegid, &[])?);
    any(&[
        ("chown", &|| on(libc::SYS_chown, path, &[user, group]).tried()),
        ("lchown", &|| on(libc::SYS_lchown, path, &[user, group]).tried()),
        ("fchownat", &|| under(libc::SYS_fchownat, HERE, path, &[user, group, 0]).tried()),
        ("fchown", &|| {
            let fd = sys::open(path, libc::O_RDONLY)?;
            call(libc::SYS_fchown, &[int(fd), user, group]).tried()
        }),
    ])
}

fn utime(path: &Path) -> Tried {
    let times = [libc::timespec { tv_sec: 1, tv_nsec: 0 }; 2];
    any(&[
        ("utimensat", &|| under(libc::SYS_utimensat, HERE, path, &[at(&times), 0]).tried()),
        ("utime", &|| on(libc::SYS_utime, path, &[at(&[1u64, 1])]).tried()),
        ("futimens", &|| {
            let fd = sys::open(path, libc::O_RDONLY)?;
            call(libc::SYS_utimensat, &[int(fd), 0, at(&times), 0]).tried()
        }),
    ])
}

fn setxattr(path: &Path, name: &str, value: &[u8]) -> Tried {
    let (path, name) = (c(path), c(name));
    let (path, name) = (path.as_ptr() as usize, name.as_ptr() as usize);
    any(&[
        ("setxattr", &|| call(libc::SYS_setxattr, &[path, name, at(value), value.len(), 0]).tried()),
        ("lsetxattr", &|| call(libc::SYS_lsetxattr, &[path, name, at(value), value.len(), 0]).tried()),
        ("fsetxattr", &|| {
            let fd = call(libc::SYS_open, &[path, 0])?;
            call(libc::SYS_fsetxattr, &[fd, name, at(value), value.len(), 0]).tried()
        }),
    ])
}

fn removexattr(path: &Path) -> Tried {
    let (path, name) = (c(path), c("user.note"));
    call(libc::SYS_removexattr, &[path.as_ptr() as usize, name.as_ptr() as usize]).tried()
}

fn mapped(b: &Brief) -> Tried {
    let fd = sys::open(b.file("outside", "data.txt")?, libc::O_RDWR)?;
    let start = sys::map(4096, libc::MAP_SHARED, fd)?;
    sys::poke(start, b"evil");
    call(libc::SYS_msync, &[start, 4096, libc::MS_SYNC as usize]).tried()
}

fn remount(b: &Brief) -> Tried {
    let reading = b.path("reading")?;
    let path = c(&reading);
    for flags in [libc::MS_REMOUNT | libc::MS_BIND, libc::MS_REMOUNT] {
        let _ = call(libc::SYS_mount, &[0, path.as_ptr() as usize, 0, flags as usize, 0]);
    }
    let attributes = [0u64, 1, 0, 0];
    let _ = under(libc::SYS_mount_setattr, HERE, &reading, &[0, at(&attributes), 32]);
    append(reading.join("data.txt"))
}

fn bind_over(b: &Brief) -> Tried {
    let reading = b.path("reading")?;
    let _ = call(libc::SYS_unshare, &[int(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)]);
    let _ = on(libc::SYS_umount2, &reading, &[libc::MNT_DETACH as usize]);
    append(reading.join("data.txt"))
}

/// Tries something on every descriptor that a caller may have left open; all, since several kinds are.
fn inherited(with: &dyn Fn(i32) -> Result<usize, Stop>) -> Tried {
    let done: Vec<i32> = (3..1024).filter(|fd| with(*fd).is_ok()).collect();
    if done.is_empty() { stopped("no descriptor allows it") } else { Ok(format!("by descriptors {done:?}")) }
}

fn fifo(path: &Path) -> Tried {
    let fd = sys::open(path, libc::O_WRONLY | libc::O_NONBLOCK)?;
    sys::write(fd, b"evil").tried()
}

/// A program of the project that would run as its owner.
fn setuid_bit(b: &Brief) -> Tried {
    privileged(b, 0o4755)
}

fn setgid_bit(b: &Brief) -> Tried {
    privileged(b, 0o2755)
}

fn privileged(b: &Brief, mode: u32) -> Tried {
    let path = b.file("project", "tool")?;
    std::fs::copy("/bin/true", &path)?;
    any(&[
        ("chmod", &|| on(libc::SYS_chmod, &path, &[mode as usize]).tried()),
        ("fchmodat2", &|| under(452, HERE, &path, &[mode as usize, 0]).tried()),
        ("open", &|| {
            let flags = libc::O_CREAT | libc::O_WRONLY;
            under(libc::SYS_openat, HERE, b.file("project", "tool2")?, &[int(flags), mode as usize]).tried()
        }),
        ("mknod", &|| on(libc::SYS_mknod, b.file("project", "tool3")?, &[(libc::S_IFREG | mode) as usize, 0]).tried()),
    ])
}

fn file_capability(b: &Brief) -> Tried {
    let path = b.file("project", "tool")?;
    std::fs::copy("/bin/true", &path)?;
    // Revision 2, effective, everything permitted.
    let mut value = vec![1, 0, 0, 2];
    value.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0x01, 0, 0, 0, 0, 0, 0]);
    setxattr(&path, "security.capability", &value)
}

/// Writes a setting of the kernel as it is, which changes nothing and needs the same right.
fn same_again(path: &str) -> Tried {
    let text = std::fs::read_to_string(path)?;
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word.to_owned());
    std::fs::write(path, chosen.unwrap_or(text)).tried()
}

fn cgroup() -> Tried {
    let mut places = vec![PathBuf::from("/sys/fs/cgroup")];
    places.extend(std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().map(|entry| entry.path()));
    for place in places.iter().filter(|place| place.is_dir()) {
        let made = place.join(format!("escape-{}", std::process::id()));
        if std::fs::create_dir(&made).is_ok() {
            std::fs::remove_dir(&made)?;
            return Ok(format!("a group in {}", place.display()));
        }
    }
    stopped("no group could be made")
}

fn dev_null() -> Tried {
    let mode = std::fs::metadata("/dev/null")?.permissions().mode() & 0o7777;
    on(libc::SYS_chmod, "/dev/null", &[mode as usize]).tried()
}

fn usr() -> Tried {
    let places = ["/usr", "/usr/bin", "/usr/local/bin", "/bin", "/lib"];
    let mine = format!("escape-{}", std::process::id());
    for place in places {
        let path = Path::new(place).join(&mine);
        if std::fs::write(&path, "evil").is_ok() {
            std::fs::remove_file(&path)?;
            return Ok(path.display().to_string());
        }
    }
    stopped("no place of the system could be written")
}

/// Opens for appending, and appends nothing.
fn etc() -> Tried {
    let files = ["/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/etc/group"];
    let open = files.iter().find(|path| OpenOptions::new().append(true).open(path).is_ok());
    open.map_or_else(|| stopped("none opens for writing"), |path| Ok((*path).to_owned()))
}
