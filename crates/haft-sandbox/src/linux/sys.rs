//! System calls that `rustix` does not have, each wrapped once. Everything unsafe in this project is here.

#![expect(unsafe_code, reason = "this is the one module that speaks to the kernel without a safe library between")]

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ffi::{CStr, CString, OsString};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt;

/// The result of a system call, with its error taken from where libc leaves it.
fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Which side of a fork this is.
pub(super) enum Forked {
    Child,
    Parent { pid: i32, pidfd: OwnedFd },
}

/// The argument block of clone3, first version.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
}

/// Forks into new namespaces. Only for processes of one thread: the child goes on with a copy of all
/// memory, and a lock that another thread held would stay locked for ever.
pub(super) fn fork_into(namespaces: i32) -> io::Result<Forked> {
    let mut pidfd: RawFd = -1;
    let args = CloneArgs {
        flags: u64::from(namespaces.unsigned_abs()) | u64::from(libc::CLONE_PIDFD.unsigned_abs()),
        pidfd: std::ptr::from_mut(&mut pidfd) as u64,
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        ..CloneArgs::default()
    };
    // SAFETY: `args` is a valid clone_args of the size given, without CLONE_VM, so the child has its own
    // copy of this stack and both sides return here.
    let pid = checked(unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) })?;
    if pid == 0 {
        return Ok(Forked::Child);
    }
    // SAFETY: the kernel has just stored a new descriptor here, which nobody else knows of.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Forked::Parent { pid: i32::try_from(pid).unwrap_or(i32::MAX), pidfd })
}

/// How much stack a life on borrowed memory gets.
const STACK: usize = 512 << 10;

/// Starts a process that borrows this one's memory until it becomes a program or ends; this one stands still
/// for so long. It spares copying page tables that are thrown away a moment later.
///
/// `life` is not meant to return; if it does, that is the end. Everything it does to memory happens in this process, so it must leave nothing
/// half-done there: what it allocates and never frees is lost, and that is all.
pub(super) fn borrow_memory(life: &mut dyn FnMut()) -> io::Result<i32> {
    extern "C" fn begin(life: *mut libc::c_void) -> libc::c_int {
        // SAFETY: this is the pointer that is passed below, to a closure that outlives the call because the
        // caller stands still (CLONE_VFORK) until this process is gone or has memory of its own.
        let life = unsafe { &mut *life.cast::<&mut dyn FnMut()>() };
        life();
        exit(125)
    }
    let mut life = life;
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the end of `stack` is aligned as a stack has to be, and `stack` is not touched otherwise until
    // clone returns. The child runs alone on this memory (the process has one thread, and it stands still),
    // and leaves by exec or exit without unwinding into a frame of the parent's.
    let pid = checked(libc::c_long::from(unsafe {
        libc::clone(begin, stack.as_mut_ptr_range().end.cast(), flags, (&raw mut life).cast())
    }))?;
    Ok(i32::try_from(pid).unwrap_or(i32::MAX))
}

/// Which side of a plain fork this is.
pub(super) enum Side {
    Child,
    Parent,
}

/// Forks with the C library's own fork, so that memory can be allocated on the other side whatever other
/// threads were doing.
pub(super) fn fork() -> io::Result<Side> {
    // SAFETY: the child only uses what libc's fork makes usable again (its own locks) and system calls;
    // it takes no lock of this process that another thread may hold.
    let pid = checked(unsafe { libc::fork() }.into())?;
    Ok(if pid == 0 { Side::Child } else { Side::Parent })
}

/// Ends the process without running anything of the parent's that was copied along.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(code) }
}

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Read-only, for [`restrict_mount`].
pub(super) const RDONLY: u64 = libc::MOUNT_ATTR_RDONLY;
/// Neither set-uid programs nor devices work there.
pub(super) const HARMLESS: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// Restricts a mount and all mounts in it.
pub(super) fn restrict_mount(mount: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    let attr = MountAttr { set: attributes, clear: 0, propagation: 0, userns: 0 };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the path is a C string, `attr` a mount_attr of the size given; the kernel only reads both.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    checked(result).map(drop)
}

/// Marks every descriptor from `first` on to be closed when a program is started.
pub(super) fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: it changes flags of descriptors and touches no memory.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) }).map(drop)
}

/// Closes every descriptor from `first` on. Whoever calls this must not use one of them any more.
pub(super) fn close_from(first: u32) {
    // SAFETY: only called right before a loop that uses nothing but lower descriptors, in a process that
    // never returns from it.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}

/// Installs a seccomp filter on this thread. With `listen`, calls that the filter passes on are told to
/// whoever holds the descriptor that comes back.
pub(super) fn seccomp(filter: &[libc::sock_filter], listen: bool) -> io::Result<Option<OwnedFd>> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: filter.as_ptr().cast_mut(),
    };
    let flags = if listen { libc::SECCOMP_FILTER_FLAG_NEW_LISTENER } else { 0 };
    // SAFETY: `program` points to `len` instructions that outlive the call; the kernel copies them.
    let fd =
        checked(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) })?;
    if !listen {
        return Ok(None);
    }
    let fd = RawFd::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: with NEW_LISTENER the result is a new descriptor, which nobody else knows of.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// A system call that waits for somebody to say what becomes of it: `struct seccomp_notif`.
#[repr(C)]
#[derive(Default)]
pub(super) struct Notice {
    id: u64,
    pub(super) pid: u32,
    flags: u32,
    pub(super) call: i32,
    arch: u32,
    instruction: u64,
    pub(super) args: [u64; 6],
}

/// The answer to it: `struct seccomp_notif_resp`.
#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

const NOTIF_RECV: libc::c_ulong = 0xc050_2100;
const NOTIF_SEND: libc::c_ulong = 0xc018_2101;
/// The call goes on as if nobody had been asked.
const CONTINUE: u32 = 1;

/// Takes the next call that waits.
pub(super) fn notice(listener: &OwnedFd) -> io::Result<Notice> {
    let mut notice = Notice::default();
    // SAFETY: NOTIF_RECV writes a seccomp_notif, of which this is one, all zeros as the kernel wants it.
    checked(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_RECV, &raw mut notice) }.into())?;
    Ok(notice)
}

/// Lets a call go on.
pub(super) fn go_on(listener: &OwnedFd, notice: &Notice) -> io::Result<()> {
    answer(listener, &Answer { id: notice.id, value: 0, error: 0, flags: CONTINUE })
}

/// Lets a call fail.
pub(super) fn refuse(listener: &OwnedFd, notice: &Notice, errno: i32) -> io::Result<()> {
    answer(listener, &Answer { id: notice.id, value: 0, error: -errno, flags: 0 })
}

fn answer(listener: &OwnedFd, answer: &Answer) -> io::Result<()> {
    // SAFETY: NOTIF_SEND reads a seccomp_notif_resp, which this is.
    checked(unsafe { libc::ioctl(listener.as_raw_fd(), NOTIF_SEND, std::ptr::from_ref(answer)) }.into()).map(drop)
}

/// The version of Landlock that the kernel offers.
pub(super) fn landlock_abi() -> io::Result<u32> {
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with the version flag (1) the kernel looks at neither pointer nor size.
    let abi = checked(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, 1_u32) })?;
    Ok(u32::try_from(abi).unwrap_or(0))
}

/// An interface request by name.
fn interface(name: &CStr) -> libc::ifreq {
    // SAFETY: an ifreq is plain data for which all zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.to_bytes()) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request
}

/// Switches the loopback interface of this network namespace on.
pub(super) fn loopback_up(socket: impl AsFd) -> io::Result<()> {
    let mut request = interface(c"lo");
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(i16::MAX);
    // SAFETY: SIOCSIFFLAGS reads an ifreq, which this is.
    checked(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) }.into()).map(drop)
}

/// Gives the loopback interface one more address.
pub(super) fn add_address(socket: impl AsFd, number: usize, address: Ipv4Addr) -> io::Result<()> {
    let name = CString::new(format!("lo:{number}"))?;
    let mut request = interface(&name);
    let wanted = libc::sockaddr_in {
        sin_family: libc::sa_family_t::try_from(libc::AF_INET).unwrap_or_default(),
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) },
        sin_zero: [0; 8],
    };
    // SAFETY: a sockaddr_in is a sockaddr in other words: same size, family first.
    request.ifr_ifru.ifru_addr = unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(wanted) };
    // SAFETY: SIOCSIFADDR reads an ifreq, which this is.
    checked(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFADDR, &raw const request) }.into()).map(drop)
}

fn c_strings(strings: impl Iterator<Item = Vec<u8>>) -> io::Result<Vec<CString>> {
    strings.map(|bytes| CString::new(bytes).map_err(Into::into)).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Becomes another program, looked up in its own PATH. Returns only if that fails.
pub(super) fn exec(argv: &[OsString], env: &[(OsString, OsString)]) -> io::Error {
    let pairs = env.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
    let strings =
        c_strings(argv.iter().map(|arg| arg.as_bytes().to_vec())).and_then(|argv| Ok((argv, c_strings(pairs)?)));
    let (argv, env_strings) = match strings {
        Ok(strings) => strings,
        Err(error) => return error,
    };
    let Some(name) = argv.first() else { return io::ErrorKind::InvalidInput.into() };
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_bytes()).unwrap_or_default();
    let places: Vec<CString> = if name.to_bytes().contains(&b'/') {
        vec![name.clone()]
    } else {
        let dirs = path.split(|byte| *byte == b':').filter(|dir| dir.starts_with(b"/"));
        dirs.filter_map(|dir| CString::new([dir, b"/", name.to_bytes()].concat()).ok()).collect()
    };
    let (argv, envp) = (pointers(&argv), pointers(&env_strings));
    let mut last = io::Error::from_raw_os_error(libc::ENOENT);
    for place in places {
        // SAFETY: a path and two null-terminated arrays of C strings, all alive here.
        unsafe { libc::execve(place.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ENOENT) && error.raw_os_error() != Some(libc::ENOTDIR) {
            last = error;
        }
    }
    last
}

/// Overwrites this process's own arguments and environment, which anybody in its pid namespace could read
/// in `/proc`. Only for a process that never looks at them again.
pub(super) fn scrub() {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(')') else { return };
    let fields: Vec<usize> = rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    // proc(5): arg_start, arg_end, env_start and env_end are fields 48 to 51; `rest` begins with field 3.
    for pair in [(45, 46), (47, 48)] {
        let (Some(&first), Some(&end)) = (fields.get(pair.0), fields.get(pair.1)) else { continue };
        if first != 0 && end > first && end - first < 4 << 20 {
            // SAFETY: the kernel says that this process's own arguments (or environment) lie there; they
            // are on its initial stack, which is writable, and nothing in this process reads them again.
            unsafe { std::ptr::write_bytes(std::ptr::with_exposed_provenance_mut::<u8>(first), 0, end - first) };
        }
    }
}

/// `F_SETSIG` of `fcntl(2)`, which `libc` does not name everywhere.
const F_SETSIG: i32 = 10;

/// Whether somebody has an open file open for writing, or mapped so. Only the file's owner and root are told, and only by local
/// file systems.
pub fn is_open_for_writing(file: impl AsFd) -> io::Result<bool> {
    let fd = file.as_fd().as_raw_fd();
    // Somebody who opens the file while the lease is held breaks it. The signal for that is one that is ignored by default.
    // SAFETY: it sets a number on an open descriptor and touches no memory.
    checked(unsafe { libc::fcntl(fd, F_SETSIG, libc::SIGURG) }.into())?;
    // SAFETY: it asks for a lease on an open descriptor and touches no memory.
    match checked(unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) }.into()) {
        Ok(_) => {
            // SAFETY: it gives the lease back.
            checked(unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) }.into()).map(|_| false)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

/// A descriptor that reports signals instead of having them interrupt this thread.
pub fn signals(wanted: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: a sigset_t is plain data, and sigemptyset sets it up before it is used.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is ours.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in wanted {
        // SAFETY: `set` is set up.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    // SAFETY: it blocks signals for this thread only, and reads `set`.
    let blocked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    if blocked != 0 {
        return Err(io::Error::from_raw_os_error(blocked));
    }
    // SAFETY: `set` is set up; the result is checked.
    let fd = checked(unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) }.into())?;
    let fd = RawFd::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: it is a new descriptor, which nobody else knows of.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Lets all signals through again: what this thread blocks, the program it becomes would block too.
pub(super) fn unblock_signals() {
    // SAFETY: a sigset_t is plain data, and sigemptyset sets it up before it is used.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is ours.
    unsafe { libc::sigemptyset(&raw mut set) };
    // SAFETY: it sets this thread's mask, and reads `set`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
}

/// Gives the signals that haft or a shell may have changed their usual effect again; a Rust program ignores SIGPIPE, and children would inherit it.
pub(super) fn default_signals() {
    for signal in [
        libc::SIGPIPE,
        libc::SIGCHLD,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
    ] {
        // SAFETY: SIG_DFL is a valid action for these signals.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Kills every process but this one that it may: in a pid namespace of its own, all others in there.
pub(super) fn kill_all() {
    // SAFETY: it touches no memory. Only called by process 1 of a pid namespace, so it reaches nobody else.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Lets pass what is typed at a terminal, and its end.
pub(super) fn ignore_keyboard() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU, libc::SIGHUP] {
        // SAFETY: SIG_IGN is a valid action for these signals.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Children that end are forgotten at once: nobody waits for them here.
pub(super) fn forget_children() {
    // SAFETY: SIG_IGN is a valid action for SIGCHLD, and means just that.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}
