//! Touching processes outside, and what they share.

use super::write::IntoTried;
use super::{Act, Prop, Sight};
use crate::attack::{Brief, Stop, Tried, any, broken, secrets, stopped};
use crate::sys::{self, at, c, call, int, into, zeroed};

pub(crate) const ACTS: &[Act] = &[
    harm("process.kill", |b| call(libc::SYS_kill, &[pid(b)?, 15]).tried()),
    harm("process.stop", |b| call(libc::SYS_kill, &[pid(b)?, libc::SIGSTOP as usize]).tried()),
    harm("process.kill_group", |b| call(libc::SYS_kill, &[int(-b.number("victim")?), 15]).tried()),
    harm("process.tgkill", |b| call(libc::SYS_tgkill, &[pid(b)?, pid(b)?, 15]).tried()),
    harm("process.tkill", |b| call(libc::SYS_tkill, &[pid(b)?, 15]).tried()),
    harm("process.sigqueue", |b| {
        let info: [i32; 32] = std::array::from_fn(|index| [15, 0, -1].get(index).copied().unwrap_or(0));
        call(libc::SYS_rt_sigqueueinfo, &[pid(b)?, 15, at(&info)]).tried()
    }),
    harm("process.pidfd_signal", |b| call(libc::SYS_pidfd_send_signal, &[pidfd(b)?, 15, 0, 0]).tried()),
    harm("process.setpriority", |b| call(libc::SYS_setpriority, &[0, pid(b)?, 7]).tried()),
    harm("process.prlimit", |b| {
        let limit = [77u64, 77];
        call(libc::SYS_prlimit64, &[pid(b)?, libc::RLIMIT_NOFILE as usize, at(&limit), 0]).tried()
    }),
    harm("process.scheduler", |b| {
        call(libc::SYS_sched_setscheduler, &[pid(b)?, libc::SCHED_BATCH as usize, at(&0i32)]).tried()
    }),
    victim("process.affinity", |b| call(libc::SYS_sched_setaffinity, &[pid(b)?, 8, at(&1u64)]).tried()),
    victim("process.io_priority", |b| call(libc::SYS_ioprio_set, &[1, pid(b)?, (2 << 13) | 6]).tried()),
    victim("process.ptrace_attach", |b| ptrace(b, libc::PTRACE_ATTACH)),
    victim("process.ptrace_seize", |b| ptrace(b, libc::PTRACE_SEIZE)),
    victim("process.trace_any", trace_any),
    Act::new("process.trace_past_the_filter", |_| trace_past_the_filter()),
    Act::new("process.trace_without_filter", |_| trace_without_filter()),
    victim("process.vm_write", vm_write),
    victim("process.mem_write", mem_write),
    victim("process.kcmp", |b| call(libc::SYS_kcmp, &[pid(b)?, std::process::id() as usize, 1, 0, 0]).tried()),
    victim("process.process_madvise", |b| {
        let range = [0usize, 0];
        call(libc::SYS_process_madvise, &[pidfd(b)?, at(&range), 1, libc::MADV_COLD as usize, 0]).tried()
    }),
    victim("process.setns", |b| setns(&format!("/proc/{}/ns", pid(b)?))),
    victim("process.setns_pidfd", |b| call(libc::SYS_setns, &[pidfd(b)?, libc::CLONE_NEWUTS as usize]).tried()),
    leak("process.vm_read", vm_read),
    leak("process.mem_read", |b| memory(b.get("victim")?)),
    leak("process.environ", |b| secrets(&std::fs::read(format!("/proc/{}/environ", pid(b)?))?)),
    leak("process.cmdline", |_| every("cmdline")),
    leak("process.every_environ", |_| every("environ")),
    leak("process.pidfd_getfd", pidfd_getfd),
    Act::new("process.setns_init", |_| setns("/proc/1/ns")),
    Act::new("process.unshare_user", |_| call(libc::SYS_unshare, &[int(libc::CLONE_NEWUSER)]).tried()),
    Act::new("process.unshare_any", |_| unshare_any()),
    Act::new("process.clone_user", |_| clone_user()),
    Act::new("process.clone3_user", |_| clone3_user()),
    Act::new("process.shared_memory", shared_memory).with(Prop::SysV).seen(Sight::Secret),
    Act::new("process.semaphore", |b| {
        call(libc::SYS_semctl, &[int(b.number("sem")?), 0, libc::GETVAL as usize]).tried()
    })
    .with(Prop::SysV),
    Act::new("process.message", message).with(Prop::SysV).seen(Sight::Secret),
    Act::new("process.ipc_list", |_| ipc_list()).with(Prop::SysV),
    Act::new("process.posix_queue", queue).with(Prop::Queue).seen(Sight::Secret),
    Act::new("process.key_read", key_read).with(Prop::Key).seen(Sight::Secret),
    Act::new("process.proc_keys", |_| proc_keys()).with(Prop::Key).seen(Sight::Secret),
    Act::new("process.tiocsti", |_| sys::ioctl(0, libc::TIOCSTI, at(b"x")).tried()).with(Prop::Terminal),
    Act::new("process.tiocsti_32", |_| sys::ioctl(0, libc::TIOCSTI | 0xffff_ffff_0000_0000, at(b"x")).tried())
        .with(Prop::Terminal),
    Act::new("process.tioclinux", |_| sys::ioctl(0, libc::TIOCLINUX, at(&[6u8, 0])).tried()).with(Prop::Terminal),
    Act::new("process.setuid_program", setuid_program).with(Prop::SetUid),
    Act::new("process.agent_sockets", agents).seen(Sight::Reached),
    Act::new("process.new_session_terminal", |_| {
        sys::open("/dev/tty", libc::O_RDWR).and_then(|fd| sys::ioctl(fd, libc::TIOCSTI, at(b"x"))).tried()
    })
    .with(Prop::Terminal),
];

const fn harm(name: &'static str, attempt: fn(&Brief) -> Tried) -> Act {
    victim(name, attempt).seen(Sight::Victim)
}

const fn victim(name: &'static str, attempt: fn(&Brief) -> Tried) -> Act {
    Act::new(name, attempt).with(Prop::Victim)
}

const fn leak(name: &'static str, attempt: fn(&Brief) -> Tried) -> Act {
    victim(name, attempt).seen(Sight::Secret)
}

fn pid(b: &Brief) -> Result<usize, Stop> {
    b.number("victim").map(int)
}

fn pidfd(b: &Brief) -> Result<usize, Stop> {
    Ok(call(libc::SYS_pidfd_open, &[pid(b)?, 0])?)
}

fn ptrace(b: &Brief, request: libc::c_uint) -> Tried {
    call(libc::SYS_ptrace, &[request as usize, pid(b)?, 0, 0])?;
    if request == libc::PTRACE_ATTACH {
        let _ = sys::wait(b.number("victim")?);
    }
    let _ = call(libc::SYS_ptrace, &[libc::PTRACE_DETACH as usize, pid(b)?, 0, 0]);
    Ok("attached".to_owned())
}

/// Traces whoever is there: the victim, the first process, the one that started this.
fn trace_any(b: &Brief) -> Tried {
    let seize = |pid: usize| call(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, pid, 0, 0]).tried();
    let parent = call(libc::SYS_getppid, &[])?;
    any(&[("victim", &|| seize(pid(b)?)), ("first", &|| seize(1)), ("parent", &|| seize(parent))])
}

/// A child that waits to be traced.
fn traced_child() -> Result<i32, Stop> {
    let child = sys::fork(|| {
        let _ = call(libc::SYS_ptrace, &[libc::PTRACE_TRACEME as usize, 0, 0, 0]);
        let _ = call(libc::SYS_kill, &[std::process::id() as usize, libc::SIGSTOP as usize]);
        call(libc::SYS_getppid, &[]).map_or(1, |_| 0)
    })?;
    sys::wait(child)?;
    Ok(child)
}

/// Makes a namespace by a call that its tracer puts in the place of a harmless one, when the kernel has seen that.
#[cfg(target_arch = "x86_64")]
fn trace_past_the_filter() -> Tried {
    let child = traced_child()?;
    let trace = |request: libc::c_uint, data: usize| call(libc::SYS_ptrace, &[request as usize, int(child), 0, data]);
    let next_stop = || trace(libc::PTRACE_SYSCALL, 0).and_then(|_| sys::wait(child));
    let mut registers: libc::user_regs_struct = zeroed();
    let tried = (|| {
        next_stop()?;
        trace(libc::PTRACE_GETREGS, into(&mut registers))?;
        registers.orig_rax = libc::SYS_unshare as u64;
        registers.rdi = libc::CLONE_NEWUSER as u64;
        trace(libc::PTRACE_SETREGS, at(&registers))?;
        next_stop()?;
        trace(libc::PTRACE_GETREGS, into(&mut registers))
    })();
    let _ = call(libc::SYS_kill, &[int(child), libc::SIGKILL as usize]);
    let _ = sys::wait(child);
    tried?;
    match registers.rax as i64 {
        0 => Ok("a user namespace".to_owned()),
        errno => stopped(std::io::Error::from_raw_os_error(-errno as i32).to_string()),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn trace_past_the_filter() -> Tried {
    broken("only written for x86_64")
}

/// Traces a child for which the filter is suspended.
fn trace_without_filter() -> Tried {
    const SUSPEND_SECCOMP: usize = 1 << 21;
    let child = sys::fork(|| call(libc::SYS_ppoll, &[0, 0, 0, 0, 0]).map_or(1, |_| 0))?;
    let tried = call(libc::SYS_ptrace, &[libc::PTRACE_SEIZE as usize, int(child), 0, SUSPEND_SECCOMP]);
    let _ = call(libc::SYS_kill, &[int(child), libc::SIGKILL as usize]);
    let _ = sys::wait(child);
    tried.tried()
}

/// Where the stack of a process is, with its environment at the top.
fn stack(process: &str) -> Result<(usize, usize), Stop> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
    let range = maps.lines().find(|line| line.ends_with("[stack]")).and_then(|line| line.split(' ').next());
    let ends = range.and_then(|range| range.split_once('-'));
    let number = |text: &str| usize::from_str_radix(text, 16).ok();
    let found = ends.and_then(|(from, to)| Some((number(from)?, number(to)?)));
    found.map_or_else(|| stopped("no stack is shown"), Ok)
}

fn vm_read(b: &Brief) -> Tried {
    let (start, end) = stack(b.get("victim")?)?;
    let mut buffer = vec![0u8; end - start];
    let (here, there) = ([into(buffer.as_mut_slice()), buffer.len()], [start, buffer.len()]);
    call(libc::SYS_process_vm_readv, &[pid(b)?, at(&here), 1, at(&there), 1, 0])?;
    secrets(&buffer)
}

fn vm_write(b: &Brief) -> Tried {
    let (start, _) = stack(b.get("victim")?)?;
    let byte = [0u8];
    let (here, there) = ([at(&byte), 1], [start, 1]);
    call(libc::SYS_process_vm_writev, &[pid(b)?, at(&here), 1, at(&there), 1, 0]).tried()
}

/// Looks for secrets in the memory of a process.
pub(crate) fn memory(process: &str) -> Tried {
    let (start, end) = stack(process)?;
    let fd = sys::open(format!("/proc/{process}/mem"), libc::O_RDONLY)?;
    let mut buffer = vec![0u8; end - start];
    let length = call(libc::SYS_pread64, &[int(fd), into(buffer.as_mut_slice()), buffer.len(), start])?;
    secrets(&buffer[..length])
}

fn mem_write(b: &Brief) -> Tried {
    let (start, _) = stack(b.get("victim")?)?;
    let fd = sys::open(format!("/proc/{}/mem", pid(b)?), libc::O_RDWR)?;
    call(libc::SYS_pwrite64, &[int(fd), at(&[0u8]), 1, start]).tried()
}

/// A file of every process that /proc shows.
pub(crate) fn every(file: &str) -> Tried {
    let me = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc")?.flatten().filter(|entry| entry.file_name().to_str() != Some(&me));
    let mut said = Vec::new();
    for entry in entries {
        if let Ok(bytes) = std::fs::read(entry.path().join(file)) {
            said.extend(secrets(&bytes).ok());
        }
    }
    if said.is_empty() { stopped("no process tells") } else { Ok(said.join(" ")) }
}

fn pidfd_getfd(b: &Brief) -> Tried {
    let pidfd = pidfd(b)?;
    let mut last = Stop::Stopped("no descriptor".to_owned());
    for number in 3..16 {
        match call(libc::SYS_pidfd_getfd, &[pidfd, number, 0]).and_then(|fd| sys::read(fd as i32)) {
            Ok(bytes) if secrets(&bytes).is_ok() => return secrets(&bytes),
            Ok(_) => {}
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

fn setns(dir: &str) -> Tried {
    let mut said = Vec::new();
    for kind in ["net", "ipc", "uts", "mnt", "cgroup", "user", "pid"] {
        match sys::open(format!("{dir}/{kind}"), libc::O_RDONLY).and_then(|fd| call(libc::SYS_setns, &[int(fd), 0])) {
            Ok(_) => return Ok(format!("joined {kind}")),
            Err(error) => said.push(format!("{kind}: {error}")),
        }
    }
    stopped(said.join("; "))
}

fn unshare_any() -> Tried {
    let kinds = [libc::CLONE_NEWNS, libc::CLONE_NEWNET, libc::CLONE_NEWPID, libc::CLONE_NEWIPC, libc::CLONE_NEWUTS];
    let more = [libc::CLONE_NEWCGROUP, 0x80];
    let together = kinds.iter().chain(&more).map(|kind| kind | libc::CLONE_NEWUSER);
    let mut alone = kinds.iter().chain(&more).copied().chain(together);
    let done = alone.find(|flags| call(libc::SYS_unshare, &[int(*flags)]).is_ok());
    done.map_or_else(|| stopped("no namespace is given"), |flags| Ok(format!("flags {flags:#x}")))
}

/// As a fork, with namespaces; the child ends at once.
fn clone_user() -> Tried {
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::SIGCHLD;
    child_of(call(libc::SYS_clone, &[int(flags), 0, 0, 0, 0]))
}

fn clone3_user() -> Tried {
    let arguments = [(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as u64, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    child_of(call(libc::SYS_clone3, &[at(&arguments), 64]))
}

fn child_of(pid: std::io::Result<usize>) -> Tried {
    if let Ok(0) = pid {
        let _ = call(libc::SYS_exit_group, &[0]);
    }
    sys::wait(pid? as i32)?;
    Ok("a child in namespaces of its own".to_owned())
}

fn shared_memory(b: &Brief) -> Tried {
    let start = call(libc::SYS_shmat, &[int(b.number("shm")?), 0, libc::SHM_RDONLY as usize])?;
    secrets(&sys::peek(start, 128))
}

fn message(b: &Brief) -> Tried {
    let mut buffer = [0u8; 256];
    let flags = libc::IPC_NOWAIT as usize;
    let length = call(libc::SYS_msgrcv, &[int(b.number("msg")?), into(&mut buffer), 200, 0, flags])?;
    secrets(&buffer[8..8 + length])
}

fn ipc_list() -> Tried {
    let lines = |file: &str| std::fs::read_to_string(format!("/proc/sysvipc/{file}")).map(|text| text.lines().count());
    let count = lines("shm")?.max(lines("msg")?).max(lines("sem")?);
    if count > 1 { Ok(format!("{count} lines")) } else { stopped("nobody's") }
}

fn queue(b: &Brief) -> Tried {
    let name = c(b.get("queue")?);
    let fd = call(libc::SYS_mq_open, &[name.as_ptr() as usize, (libc::O_RDONLY | libc::O_NONBLOCK) as usize, 0, 0])?;
    let mut buffer = [0u8; 8192];
    let now: libc::timespec = zeroed();
    let length = call(libc::SYS_mq_timedreceive, &[fd, into(&mut buffer), buffer.len(), 0, at(&now)])?;
    secrets(&buffer[..length])
}

fn key_read(b: &Brief) -> Tried {
    let mut buffer = [0u8; 256];
    let length = call(libc::SYS_keyctl, &[11, int(b.number("key")?), into(&mut buffer), buffer.len()])?;
    secrets(&buffer[..length])
}

/// Keys are listed with their names.
fn proc_keys() -> Tried {
    secrets(&std::fs::read("/proc/keys")?)
}

/// A program that runs as root for everybody, were it not for the mount or for no-new-privileges.
fn setuid_program(b: &Brief) -> Tried {
    let output = std::process::Command::new(b.path("setuid")?).arg("--who").output()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if call(libc::SYS_geteuid, &[])? == 0 {
        return broken("already root");
    }
    if said == "0" { Ok("became root".to_owned()) } else { stopped(format!("ran as {said}")) }
}

/// What the environment says of agents and daemons, and the places where they are.
fn agents(b: &Brief) -> Tried {
    let strip = |text: String| text.rsplit_once('=').map_or(text.clone(), |(_, path)| path.to_owned());
    let names = ["SSH_AUTH_SOCK", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY"];
    let told = names.iter().filter_map(|name| std::env::var(name).ok()).map(strip);
    let known = [
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/dbus/system_bus_socket",
        "/run/systemd/private",
        "/run/systemd/journal/stdout",
        "/tmp/.X11-unix/X0",
    ];
    let mut paths: Vec<String> = told.map(|path| path.replace("unix://", "")).collect();
    paths.push(b.file("outside", "s.sock")?.display().to_string());
    paths.extend(known.map(str::to_owned));
    let reach = |path: &String| super::net::unix_at(path.as_ref(), libc::SOCK_STREAM).is_ok();
    let found = paths.iter().find(|path| reach(path));
    any(&[("socket", &|| found.map_or_else(|| stopped("none answers"), |path| Ok(path.clone())))])
}
