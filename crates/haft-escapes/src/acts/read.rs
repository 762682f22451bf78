//! Reading what was not declared.

use super::{Act, Prop, Sight};
use crate::attack::{Brief, Stop, Tried, any, grab, secrets, stopped};
use crate::sys::{self, HERE, at, c, call, int, into, on, under};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

pub(crate) const ACTS: &[Act] = &[
    Act::new("fs.read.absolute", |b| grab(secret(b)?)).seen(Sight::Secret),
    Act::new("fs.read.dotdot", dotdot).seen(Sight::Secret),
    Act::new("fs.read.symlink", by_symlink).seen(Sight::Secret),
    Act::new("fs.read.planted_symlink", |b| grab(b.file("project", "planted/secret.txt")?)).seen(Sight::Secret),
    Act::new("fs.read.hardlink", by_hardlink).seen(Sight::Secret),
    Act::new("fs.read.proc_self_root", |b| rooted(b, &["self", "thread-self"])).seen(Sight::Secret),
    Act::new("fs.read.proc_init_root", |b| rooted(b, &["1"])).seen(Sight::Secret),
    Act::new("fs.read.proc_others", proc_others).with(Prop::Victim).seen(Sight::Secret),
    Act::new("fs.read.inherited_file", |_| inherited(&|fd| secrets(&sys::read(fd)?))).seen(Sight::Secret),
    Act::new("fs.read.inherited_dir", |_| inherited(&in_directory)).seen(Sight::Secret),
    Act::new("fs.read.inherited_parent", |_| inherited(&in_parent)).seen(Sight::Secret),
    Act::new("fs.read.inherited_list", |_| inherited(&listed)).seen(Sight::Secret),
    Act::new("fs.read.inherited_fchdir", |_| inherited(&by_fchdir)).seen(Sight::Secret),
    Act::new("fs.read.proc_self_fd", |_| inherited(&|fd| grab(format!("/proc/self/fd/{fd}")))).seen(Sight::Secret),
    Act::new("fs.read.name_to_handle", |b| handle_of(secret(b)?).map(|_| "a handle".to_owned())),
    Act::new("fs.read.open_by_handle", open_by_handle).seen(Sight::Secret),
    Act::new("fs.read.list", list).seen(Sight::Secret),
    Act::new("fs.read.readlink", |b| named(&std::fs::read_link(b.file("outside", "pointer")?)?)).seen(Sight::Secret),
    Act::new("fs.read.stat", |b| Ok(format!("{} bytes", std::fs::metadata(secret(b)?)?.len()))),
    Act::new("fs.read.access", |b| on(libc::SYS_access, secret(b)?, &[4]).map_err(Stop::from).map(ok)),
    Act::new("fs.read.getxattr", getxattr).seen(Sight::Secret),
    Act::new("fs.read.inotify", inotify),
    Act::new("fs.read.exec", execute).seen(Sight::Secret),
    Act::new("fs.read.o_path", by_o_path).seen(Sight::Secret),
    Act::new("fs.read.openat2", by_openat2).seen(Sight::Secret),
    Act::new("fs.read.shadow", |_| shadow()),
    Act::new("fs.read.ssh_key", |b| grab(b.file("home", ".ssh/id_ed25519")?)).seen(Sight::Secret),
    Act::new("fs.read.haft_store", |b| grab(b.file("home", ".local/share/haft/notes.txt")?)).seen(Sight::Secret),
    Act::new("fs.read.bind_mount", bind_mount).seen(Sight::Secret),
    Act::new("fs.read.new_mount_api", new_mount_api).seen(Sight::Secret),
    Act::new("fs.read.overlay_mount", overlay_mount).seen(Sight::Secret),
    Act::new("fs.read.proc_mount", proc_mount).with(Prop::Victim).seen(Sight::Secret),
    Act::new("fs.read.umount", umount).seen(Sight::Secret),
    Act::new("fs.read.chroot", by_chroot).seen(Sight::Secret),
    Act::new("fs.read.pivot_root", by_pivot_root).seen(Sight::Secret),
    Act::new("fs.read.dev_mem", |_| first_bytes(&["/dev/mem", "/dev/kmem", "/dev/port"])),
    Act::new("fs.read.block_device", |_| block_device()),
    Act::new("fs.read.made_block_device", made_block_device),
    Act::new("fs.read.kcore", |_| first_bytes(&["/proc/kcore"])),
    Act::new("fs.read.kmsg", |_| first_bytes(&["/dev/kmsg", "/proc/kmsg"])),
];

fn ok<T>(_: T) -> String {
    "allowed".to_owned()
}

fn secret(b: &Brief) -> Result<PathBuf, Stop> {
    b.file("outside", "secret.txt")
}

fn named(path: &Path) -> Tried {
    secrets(path.as_os_str().as_encoded_bytes())
}

fn dotdot(b: &Brief) -> Tried {
    std::env::set_current_dir(b.path("project")?)?;
    let path = secret(b)?;
    let from_top = format!("{}{}", "../".repeat(20), path.display().to_string().trim_start_matches('/'));
    any(&[
        ("beside", &|| grab("../outside/secret.txt")),
        ("through a directory", &|| grab("dir/../../outside/secret.txt")),
        ("from the top", &|| grab(&from_top)),
        ("from /usr", &|| grab(Path::new("/usr/lib").join(&from_top))),
    ])
}

fn by_symlink(b: &Brief) -> Tried {
    let link = |name: &str, to: PathBuf| b.file("project", name).and_then(|at| Ok(symlink(to, &at).map(|()| at)?));
    any(&[
        ("to the file", &|| grab(link("one", secret(b)?)?)),
        ("to the directory", &|| grab(link("two", b.path("outside")?)?.join("secret.txt"))),
        ("relative", &|| grab(link("three", "../outside/secret.txt".into())?)),
        ("by /proc", &|| grab(link("four", Path::new("/proc/self/root").join(secret(b)?.strip_prefix("/").unwrap()))?)),
    ])
}

fn by_hardlink(b: &Brief) -> Tried {
    let fresh = |name: &str| b.file("project", name);
    let linkat = |from: &Path, to: &Path, flags: i32| {
        let (from, to) = (c(from), c(to));
        call(libc::SYS_linkat, &[int(HERE), from.as_ptr() as usize, int(HERE), to.as_ptr() as usize, int(flags)])
    };
    any(&[
        ("link", &|| {
            linkat(&secret(b)?, &fresh("hard1")?, 0)?;
            grab(fresh("hard1")?)
        }),
        ("by descriptor", &|| {
            let fd = sys::open(secret(b)?, libc::O_PATH)?;
            let from = format!("/proc/self/fd/{fd}");
            linkat(Path::new(&from), &fresh("hard2")?, libc::AT_SYMLINK_FOLLOW)?;
            grab(fresh("hard2")?)
        }),
        ("in /tmp", &|| {
            let to = PathBuf::from(format!("/tmp/escape-hard-{}", std::process::id()));
            linkat(&secret(b)?, &to, 0)?;
            let got = grab(&to);
            std::fs::remove_file(to)?;
            got
        }),
    ])
}

fn rooted(b: &Brief, processes: &[&str]) -> Tried {
    let path = secret(b)?;
    let below = path.strip_prefix("/").unwrap_or(&path);
    let mut said = Vec::new();
    for process in processes {
        for way in ["root", "cwd/../../../../../../../../.."] {
            match grab(Path::new("/proc").join(process).join(way).join(below)) {
                Ok(got) => return Ok(got),
                Err(Stop::Stopped(why) | Stop::Broken(why)) => said.push(why),
            }
        }
    }
    stopped(said.join("; "))
}

/// Every process that /proc shows, but this one.
fn others() -> Vec<PathBuf> {
    let me = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let number = |name: &str| name.parse::<u32>().is_ok() && name != me;
    entries.filter(|e| e.file_name().to_str().is_some_and(number)).map(|e| e.path()).collect()
}

fn proc_others(b: &Brief) -> Tried {
    let path = secret(b)?;
    let below = path.strip_prefix("/").unwrap_or(&path).to_path_buf();
    let mut processes = others();
    processes.push(Path::new("/proc").join(b.get("victim")?));
    for process in &processes {
        let mut doors = vec![process.join("cwd/secret.txt"), process.join("root").join(&below)];
        doors.extend((3..16).map(|fd| process.join(format!("fd/{fd}"))));
        doors.extend((3..16).map(|fd| process.join(format!("fd/{fd}/secret.txt"))));
        if let Some(got) = doors.iter().find_map(|door| grab(door).ok()) {
            return Ok(got);
        }
    }
    stopped(format!("no door of {} processes is open", processes.len()))
}

/// Tries something with every descriptor that a caller may have left open.
fn inherited(with: &dyn Fn(i32) -> Tried) -> Tried {
    let open = |fd: &i32| call(libc::SYS_fcntl, &[int(*fd), int(libc::F_GETFD)]).is_ok();
    let found: Vec<i32> = (3..1024).filter(open).collect();
    let got = found.iter().find_map(|fd| with(*fd).ok());
    got.map_or_else(|| stopped(format!("descriptors {found:?} give nothing")), Ok)
}

fn in_directory(fd: i32) -> Tried {
    secrets(&sys::read(sys::openat(fd, "secret.txt", libc::O_RDONLY)?)?)
}

fn in_parent(fd: i32) -> Tried {
    secrets(&sys::read(sys::openat(fd, "../outside/secret.txt", libc::O_RDONLY)?)?)
}

fn listed(fd: i32) -> Tried {
    let mut buffer = vec![0u8; 32768];
    let length = call(libc::SYS_getdents64, &[int(fd), into(buffer.as_mut_slice()), buffer.len()])?;
    secrets(&buffer[..length])
}

fn by_fchdir(fd: i32) -> Tried {
    call(libc::SYS_fchdir, &[int(fd)])?;
    grab("secret.txt")
}

/// A file's handle, which names it for whoever may open files by handle.
pub(crate) fn handle_of(path: impl AsRef<Path>) -> Result<[u8; 136], Stop> {
    let mut handle = [0u8; 136];
    handle[..4].copy_from_slice(&128u32.to_ne_bytes());
    let mut mount = 0i32;
    under(libc::SYS_name_to_handle_at, HERE, path, &[into(&mut handle), into(&mut mount), 0])?;
    Ok(handle)
}

fn open_by_handle(b: &Brief) -> Tried {
    let text = b.get("handle")?;
    let mut handle = [0u8; 136];
    for (index, byte) in handle.iter_mut().enumerate() {
        *byte = text.get(index * 2..index * 2 + 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(0);
    }
    let through = |mount: PathBuf| {
        let mount = sys::open(mount, libc::O_RDONLY)?;
        let fd = call(libc::SYS_open_by_handle_at, &[int(mount), at(&handle), 0])?;
        secrets(&sys::read(fd as i32)?)
    };
    any(&[
        ("by the project", &|| through(b.path("project")?)),
        ("by what may be read", &|| through(b.path("reading")?)),
        ("by /usr", &|| through("/usr".into())),
        ("by /etc/passwd", &|| through("/etc/passwd".into())),
    ])
}

fn list(b: &Brief) -> Tried {
    let outside = b.path("outside")?;
    let names = |dir: &Path| {
        let entries = std::fs::read_dir(dir)?.flatten();
        secrets(&entries.flat_map(|entry| entry.file_name().into_encoded_bytes()).collect::<Vec<u8>>())
    };
    any(&[
        ("outside", &|| names(&outside)),
        ("by the project", &|| names(&b.file("project", "../outside")?)),
        ("by a link", &|| names(&b.file("project", "planted")?)),
    ])
}

fn getxattr(b: &Brief) -> Tried {
    let (path, name) = (c(secret(b)?), c("user.note"));
    let mut value = [0u8; 256];
    let args = [path.as_ptr() as usize, name.as_ptr() as usize, into(&mut value), value.len()];
    let length = call(libc::SYS_getxattr, &args)?;
    secrets(&value[..length])
}

fn inotify(b: &Brief) -> Tried {
    let fd = call(libc::SYS_inotify_init1, &[0])?;
    let path = c(b.path("outside")?);
    call(libc::SYS_inotify_add_watch, &[fd, path.as_ptr() as usize, libc::IN_ALL_EVENTS as usize])?;
    Ok("sees what happens outside".to_owned())
}

fn execute(b: &Brief) -> Tried {
    let outside = b.file("outside", "tool")?;
    let run = |path: &Path| secrets(&std::process::Command::new(path).output()?.stdout);
    any(&[
        ("directly", &|| run(&outside)),
        ("by the loader", &|| {
            let output = std::process::Command::new("/bin/sh").arg(&outside).output()?;
            secrets(&output.stdout)
        }),
    ])
}

fn by_o_path(b: &Brief) -> Tried {
    let reopen = |fd: i32| grab(format!("/proc/self/fd/{fd}"));
    any(&[
        ("the file", &|| reopen(sys::open(secret(b)?, libc::O_PATH)?)),
        ("its directory", &|| {
            let fd = sys::open(b.path("outside")?, libc::O_PATH)?;
            secrets(&sys::read(sys::openat(fd, "secret.txt", libc::O_RDONLY)?)?)
        }),
        ("up from the project", &|| {
            let fd = sys::open(b.path("project")?, libc::O_PATH)?;
            secrets(&sys::read(sys::openat(fd, "../outside/secret.txt", libc::O_RDONLY)?)?)
        }),
    ])
}

fn by_openat2(b: &Brief) -> Tried {
    let how = [libc::O_RDONLY as u64, 0, 0];
    let path = secret(b)?;
    let open = |dir: i32, path: &Path| {
        let fd = under(libc::SYS_openat2, dir, path, &[at(&how), 24])?;
        secrets(&sys::read(fd as i32)?)
    };
    any(&[
        ("absolute", &|| open(HERE, &path)),
        ("relative", &|| open(sys::open(b.path("project")?, libc::O_PATH)?, Path::new("../outside/secret.txt"))),
    ])
}

fn shadow() -> Tried {
    let text = std::fs::read_to_string("/etc/shadow")?;
    Ok(format!("{} lines", text.lines().count()))
}

/// Namespaces of one's own, in which an ordinary user may mount.
fn own_mounts() {
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS;
    // Root may mount as it is; whoever can do neither is stopped by the mount that follows.
    let _ = call(libc::SYS_unshare, &[int(flags)]).or_else(|_| call(libc::SYS_unshare, &[int(libc::CLONE_NEWNS)]));
    let _ = mount("none", "/", "", libc::MS_REC | libc::MS_PRIVATE, "");
}

fn mount(from: impl AsRef<Path>, to: impl AsRef<Path>, kind: &str, flags: u64, data: &str) -> Result<(), Stop> {
    let (from, to, kind, data) = (c(from), c(to), c(kind), c(data));
    let addresses = [from.as_ptr(), to.as_ptr(), kind.as_ptr()].map(|pointer| pointer as usize);
    let args = [addresses[0], addresses[1], addresses[2], flags as usize, data.as_ptr() as usize];
    call(libc::SYS_mount, &args)?;
    Ok(())
}

fn bind_mount(b: &Brief) -> Tried {
    own_mounts();
    let over = b.file("project", "dir")?;
    let outside = b.path("outside")?;
    any(&[
        ("the directory", &|| {
            mount(&outside, &over, "", libc::MS_BIND, "").and_then(|()| grab(over.join("secret.txt")))
        }),
        ("the root", &|| {
            mount("/", &over, "", libc::MS_BIND | libc::MS_REC, "")?;
            grab(over.join(secret(b)?.strip_prefix("/").unwrap()))
        }),
        ("by /proc", &|| {
            mount(Path::new("/proc/1/root").join(outside.strip_prefix("/").unwrap()), &over, "", libc::MS_BIND, "")?;
            grab(over.join("secret.txt"))
        }),
    ])
}

fn new_mount_api(b: &Brief) -> Tried {
    own_mounts();
    let clone = 1 | libc::O_CLOEXEC;
    any(&[
        ("open_tree", &|| {
            let fd = under(libc::SYS_open_tree, HERE, b.path("outside")?, &[int(clone)])? as i32;
            secrets(&sys::read(sys::openat(fd, "secret.txt", libc::O_RDONLY)?)?)
        }),
        ("move_mount", &|| {
            let fd = under(libc::SYS_open_tree, HERE, "/", &[int(clone | libc::AT_RECURSIVE)])?;
            let (empty, to) = (c(""), c(b.file("project", "dir")?));
            let args = [fd, empty.as_ptr() as usize, int(HERE), to.as_ptr() as usize, 4];
            call(libc::SYS_move_mount, &args)?;
            grab(b.file("project", "dir")?.join(secret(b)?.strip_prefix("/").unwrap()))
        }),
    ])
}

fn overlay_mount(b: &Brief) -> Tried {
    own_mounts();
    let data = format!("lowerdir={}:{}", b.get("outside")?, b.get("reading")?);
    let over = b.file("project", "dir")?;
    mount("overlay", &over, "overlay", 0, &data)?;
    grab(over.join("secret.txt"))
}

fn proc_mount(b: &Brief) -> Tried {
    let over = b.file("project", "dir")?;
    let victim = b.get("victim")?;
    any(&[
        // An unconfined attacker needs no fresh view, but shows that the way leads somewhere.
        ("as it is", &|| grab(Path::new("/proc").join(victim).join("environ"))),
        ("fresh", &|| {
            own_mounts();
            mount("proc", &over, "proc", 0, "")?;
            grab(over.join(victim).join("environ"))
        }),
    ])
}

fn umount(b: &Brief) -> Tried {
    own_mounts();
    let project = b.path("project")?;
    for path in project.ancestors().chain([Path::new("/proc"), Path::new("/tmp"), Path::new("/dev")]) {
        let _ = on(libc::SYS_umount2, path, &[libc::MNT_DETACH as usize]);
    }
    grab(secret(b)?)
}

fn by_chroot(b: &Brief) -> Tried {
    let below = secret(b)?;
    let below = below.strip_prefix("/").unwrap().to_path_buf();
    let _ = call(libc::SYS_unshare, &[int(libc::CLONE_NEWUSER)]);
    let jail = b.file("project", "dir")?;
    let out = sys::open("/", libc::O_PATH)?;
    on(libc::SYS_chroot, &jail, &[])?;
    call(libc::SYS_fchdir, &[int(out)])?;
    for _ in 0..64 {
        on(libc::SYS_chdir, "..", &[])?;
    }
    on(libc::SYS_chroot, ".", &[])?;
    grab(Path::new("/").join(below))
}

fn by_pivot_root(b: &Brief) -> Tried {
    own_mounts();
    let over = b.file("project", "dir")?;
    let below = secret(b)?;
    let below = below.strip_prefix("/").unwrap();
    mount(&over, &over, "", libc::MS_BIND, "")?;
    std::fs::create_dir_all(over.join("old"))?;
    std::env::set_current_dir(&over)?;
    let (here, old) = (c("."), c("old"));
    call(libc::SYS_pivot_root, &[here.as_ptr() as usize, old.as_ptr() as usize])?;
    grab(Path::new("/old").join(below))
}

fn first_bytes(paths: &[&str]) -> Tried {
    let mut said = Vec::new();
    for path in paths {
        let got = sys::open(path, libc::O_RDONLY | libc::O_NONBLOCK).and_then(sys::read);
        match got {
            Ok(bytes) if !bytes.is_empty() => return Ok(format!("{} bytes of {path}", bytes.len())),
            Ok(_) => said.push(format!("{path} is empty")),
            Err(error) => said.push(format!("{path}: {error}")),
        }
    }
    stopped(said.join("; "))
}

/// The names of the machine's disks, from wherever they are told.
fn disks() -> Vec<String> {
    let names = |dir| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.file_name());
    let mut found: Vec<String> = names("/sys/block").filter_map(|name| name.into_string().ok()).collect();
    found.extend(["vda", "sda", "nvme0n1", "loop0"].map(str::to_owned));
    found
}

fn block_device() -> Tried {
    let paths: Vec<String> = disks().iter().map(|disk| format!("/dev/{disk}")).collect();
    first_bytes(&paths.iter().map(String::as_str).collect::<Vec<_>>())
}

fn made_block_device(b: &Brief) -> Tried {
    let mut numbers: Vec<(u32, u32)> = vec![(254, 0), (8, 0), (259, 0), (7, 0)];
    for disk in disks() {
        let text = std::fs::read_to_string(format!("/sys/block/{disk}/dev")).unwrap_or_default();
        let pair = text.trim().split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        numbers.splice(0..0, pair);
    }
    let mut said = String::new();
    for place in [b.file("project", "disk")?, format!("/tmp/escape-disk-{}", std::process::id()).into()] {
        for (major, minor) in &numbers {
            let device = libc::makedev(*major, *minor) as usize;
            let made = on(libc::SYS_mknod, &place, &[(libc::S_IFBLK | 0o600) as usize, device]);
            let got = made.and_then(|_| sys::open(&place, libc::O_RDONLY)).and_then(sys::read);
            let _ = std::fs::remove_file(&place);
            match got {
                Ok(bytes) => return Ok(format!("{} bytes of disk {major}:{minor}", bytes.len())),
                Err(error) => said = error.to_string(),
            }
        }
    }
    stopped(said)
}
