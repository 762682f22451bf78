//! What this machine offers, found out by doing it in children that are thrown away: a kernel may know a
//! mechanism and still refuse it, because of a setting, a container or a policy. Only the helper does this:
//! the children go on with a copy of its memory.

use super::inside::Identity;
use super::{filter, sys};
use crate::standing::{Level, Machine, Mechanism};

/// Looks at everything.
pub(super) fn machine() -> Machine {
    let landlock = landlock_abi();
    let seccomp = tries(0, seccomp);
    let namespaces = tries(namespaces(), mounts);
    let layers =
        if namespaces.is_ok() { tries(self::namespaces(), overlay) } else { Err("needs namespaces".to_owned()) };
    let level = match (&namespaces, &seccomp, landlock) {
        (Ok(()), Ok(()), _) => Level::Full,
        (Err(_), Ok(()), 1..) => Level::Flat,
        _ => Level::None,
    };
    let mechanisms = vec![
        mechanism("namespaces", &namespaces, "user, mount, pid, net, ipc, uts", Some(namespaces_fix())),
        mechanism("overlay", &layers, "copy-on-write views", Some("a kernel from 5.11 on, with overlayfs")),
        mechanism("seccomp", &seccomp, "filters", Some("a kernel built with CONFIG_SECCOMP_FILTER")),
        Mechanism {
            name: "landlock".into(),
            works: landlock > 0,
            found: if landlock > 0 {
                format!("ABI {landlock}")
            } else {
                "not in this kernel, or not switched on".to_owned()
            },
            fix: (landlock == 0).then_some("a kernel from 5.13 on, with `landlock` in the lsm= boot parameter".into()),
        },
    ];
    Machine { level, layers: layers.is_ok(), landlock, mechanisms }
}

fn mechanism(name: &'static str, tried: &Result<(), String>, found: &str, fix: Option<&'static str>) -> Mechanism {
    match tried {
        Ok(()) => Mechanism { name: name.into(), works: true, found: found.to_owned(), fix: None },
        Err(why) => Mechanism { name: name.into(), works: false, found: why.clone(), fix: fix.map(Into::into) },
    }
}

fn namespaces() -> i32 {
    libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWNET
}

/// The setting that stands in the way, as far as one can be seen.
fn namespaces_fix() -> &'static str {
    let is = |file: &str, value: &str| std::fs::read_to_string(file).is_ok_and(|text| text.trim() == value);
    if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for haft with `userns,`";
    }
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return "sysctl kernel.unprivileged_userns_clone=1";
    }
    if is("/proc/sys/user/max_user_namespaces", "0") {
        return "sysctl user.max_user_namespaces=10000";
    }
    "in a container: allow user namespaces (docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined)"
}

/// The version of Landlock; zero without it.
fn landlock_abi() -> u32 {
    sys::landlock_abi().unwrap_or(0)
}

/// Runs a trial in a child with these namespaces. The child writes down which step failed: the helper does
/// not keep track of how its children end.
fn tries(namespaces: i32, trial: fn(Identity) -> Result<(), Trial>) -> Result<(), String> {
    let identity = Identity::here();
    let fail = |error: std::io::Error| format!("refused: {error}");
    let (result, theirs) = crate::watch::pipe().map_err(fail)?;
    match sys::fork_into(namespaces).map_err(fail)? {
        sys::Forked::Child => {
            let step = trial(identity).err().map_or(0, |step| step as u8);
            let _ = rustix::io::write(&theirs, &[step]);
            sys::exit(0)
        }
        sys::Forked::Parent { .. } => {
            drop(theirs);
            let mut step = [u8::MAX];
            let _ = rustix::io::read(&result, &mut step);
            Trial::said(step[0])
        }
    }
}

/// A step of a trial that failed, as an exit status.
#[derive(Clone, Copy)]
enum Trial {
    Map = 1,
    Private,
    Tmpfs,
    Proc,
    Loopback,
    Dirs,
    Overlay,
    Opaque,
    Filter,
    NotFiltered,
}

impl Trial {
    fn said(code: u8) -> Result<(), String> {
        let step = match code {
            0 => return Ok(()),
            code if code == Self::Map as u8 => "the user cannot be mapped",
            code if code == Self::Private as u8 => "mounts cannot be made private",
            code if code == Self::Tmpfs as u8 => "no file system can be mounted",
            code if code == Self::Proc as u8 => "/proc cannot be mounted (a container that masks it?)",
            code if code == Self::Loopback as u8 => "loopback cannot be switched on",
            code if code == Self::Dirs as u8 => "directories cannot be made",
            code if code == Self::Overlay as u8 => "an overlay cannot be mounted",
            code if code == Self::Opaque as u8 => "an overlay cannot replace a directory",
            code if code == Self::Filter as u8 => "a filter cannot be installed",
            code if code == Self::NotFiltered as u8 => "a filter has no effect",
            _ => "the trial crashed",
        };
        Err(step.to_owned())
    }
}

fn mounts(identity: Identity) -> Result<(), Trial> {
    use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
    super::inside::map(identity).map_err(|_| Trial::Map)?;
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).map_err(|_| Trial::Private)?;
    mount("tmpfs", "/tmp", "tmpfs", MountFlags::NOSUID, None).map_err(|_| Trial::Tmpfs)?;
    std::fs::create_dir("/tmp/proc").map_err(|_| Trial::Dirs)?;
    mount("proc", "/tmp/proc", "proc", MountFlags::RDONLY, None).map_err(|_| Trial::Proc)?;
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(|_| Trial::Loopback)?;
    sys::loopback_up(&socket).map_err(|_| Trial::Loopback)
}

/// Mounts an overlay, and replaces a directory in it: without `userxattr` that is what fails.
fn overlay(identity: Identity) -> Result<(), Trial> {
    mounts(identity)?;
    if crate::faults::is_refused("overlay") {
        return Err(Trial::Overlay);
    }
    for dir in ["/tmp/l/x", "/tmp/u", "/tmp/w", "/tmp/m"] {
        std::fs::create_dir_all(dir).map_err(|_| Trial::Dirs)?;
    }
    let options = c"lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w,userxattr";
    let flags = rustix::mount::MountFlags::NOSUID;
    rustix::mount::mount("overlay", "/tmp/m", "overlay", flags, options).map_err(|_| Trial::Overlay)?;
    std::fs::remove_dir("/tmp/m/x").and_then(|()| std::fs::create_dir("/tmp/m/x")).map_err(|_| Trial::Opaque)
}

fn seccomp(_: Identity) -> Result<(), Trial> {
    rustix::thread::set_no_new_privs(true).map_err(|_| Trial::Filter)?;
    let shape =
        filter::Shape { internet: false, unix: false, rooted: true, watched: false, counts_shared_memory: false };
    sys::seccomp(&filter::assemble(shape), false).map_err(|_| Trial::Filter)?;
    let refused = std::net::UdpSocket::bind("127.0.0.1:0").is_err();
    if refused { Ok(()) } else { Err(Trial::NotFiltered) }
}
