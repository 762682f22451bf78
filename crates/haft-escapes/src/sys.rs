//! The kernel without a library in between: an attempt has to be made with exactly the call it names.
//!
//! All unsafe code of the attacker is here or in [`crate::acts::kernel`]. The functions are safe to call
//! in the sense of this crate only: a process that attacks is thrown away after one attempt.

#![expect(unsafe_code, reason = "system calls by number")]

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A system call by number. Pointers are given as addresses of values that outlive the call.
pub(crate) fn call(number: libc::c_long, given: &[usize]) -> io::Result<usize> {
    let mut args = [0usize; 6];
    args[..given.len()].copy_from_slice(given);
    // SAFETY: the kernel checks every address; one that it writes to is of a live value of the caller's, whose
    // size the caller passes along, or the process that breaks is a throw-away one.
    let result = unsafe { libc::syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// The address of a value, for [`call`].
pub(crate) fn at<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).cast::<u8>() as usize
}

/// The address of a value that the kernel fills in.
pub(crate) fn into<T: ?Sized>(value: &mut T) -> usize {
    std::ptr::from_mut(value).cast::<u8>() as usize
}

/// A negative argument, such as a descriptor that stands for the working directory.
pub(crate) fn int(value: i32) -> usize {
    value as isize as usize
}

/// The working directory, where a descriptor is asked for.
pub(crate) const HERE: i32 = libc::AT_FDCWD;

pub(crate) fn c(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().as_os_str().as_bytes()).expect("no path has a zero byte")
}

/// A system call whose first arguments are a path and numbers, the commonest form.
pub(crate) fn on(number: libc::c_long, path: impl AsRef<Path>, rest: &[usize]) -> io::Result<usize> {
    let path = c(path);
    let mut args = vec![path.as_ptr() as usize];
    args.extend(rest);
    call(number, &args)
}

/// The same with a directory descriptor before the path.
pub(crate) fn under(number: libc::c_long, dir: i32, path: impl AsRef<Path>, rest: &[usize]) -> io::Result<usize> {
    let path = c(path);
    let mut args = vec![int(dir), path.as_ptr() as usize];
    args.extend(rest);
    call(number, &args)
}

pub(crate) fn open(path: impl AsRef<Path>, flags: i32) -> io::Result<i32> {
    under(libc::SYS_openat, HERE, path, &[int(flags), 0o644]).map(|fd| fd as i32)
}

pub(crate) fn openat(dir: i32, path: &str, flags: i32) -> io::Result<i32> {
    under(libc::SYS_openat, dir, path, &[int(flags), 0o644]).map(|fd| fd as i32)
}

/// Up to 64 kB of what a descriptor has at an offset, whether or not it can seek.
pub(crate) fn read(fd: i32) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0u8; 65536];
    let args = [int(fd), into(buffer.as_mut_slice()), buffer.len(), 0];
    let length = call(libc::SYS_pread64, &args).or_else(|_| call(libc::SYS_read, &args[..3]))?;
    buffer.truncate(length);
    Ok(buffer)
}

pub(crate) fn write(fd: i32, bytes: &[u8]) -> io::Result<usize> {
    call(libc::SYS_write, &[int(fd), at(bytes), bytes.len()])
}

/// A C struct of numbers, all zero.
pub(crate) fn zeroed<T: Copy>() -> T {
    // SAFETY: used with libc's plain structs alone, of which all bits zero is a value.
    unsafe { std::mem::zeroed() }
}

/// Runs a function in a child, which ends with what it returns.
pub(crate) fn fork(child: impl FnOnce() -> i32) -> io::Result<i32> {
    // SAFETY: an attacker has one thread when it forks, so no lock is held by a thread that is gone.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = child();
        // SAFETY: ends this process; nothing that runs at exit may run twice.
        unsafe { libc::_exit(code) }
    }
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) }
}

/// The status with which a child ended; a signal counts as 128 and its number.
pub(crate) fn wait(pid: i32) -> io::Result<i32> {
    let mut status = 0i32;
    call(libc::SYS_wait4, &[int(pid), into(&mut status), 0, 0])?;
    Ok(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) })
}

/// Lets a signal do nothing.
pub(crate) fn ignore(signal: i32) {
    // SAFETY: SIG_IGN runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Memory of this size, private or shared, or a file's.
pub(crate) fn map(length: usize, flags: i32, fd: i32) -> io::Result<usize> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    call(libc::SYS_mmap, &[0, length, int(access), int(flags), int(fd), 0])
}

/// Writes one byte a page of memory that [`map`] gave.
pub(crate) fn touch(start: usize, length: usize) {
    for offset in (0..length).step_by(4096) {
        // SAFETY: the range was mapped writable by the caller and is used by nobody else.
        unsafe { std::ptr::write_volatile((start + offset) as *mut u8, 1) };
    }
}

/// Runs another function with memory that [`map`] or `shmat` gave.
pub(crate) fn peek(start: usize, length: usize) -> Vec<u8> {
    // SAFETY: the caller was given at least this many readable bytes by the kernel.
    unsafe { std::slice::from_raw_parts(start as *const u8, length) }.to_vec()
}

/// Copies bytes into memory that [`map`] or `shmat` gave.
pub(crate) fn poke(start: usize, bytes: &[u8]) {
    // SAFETY: the caller was given at least this many writable bytes by the kernel.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start as *mut u8, bytes.len()) };
}

/// Makes the next program of a command inherit descriptors, at numbers of our choosing.
pub(crate) fn inherit(command: &mut std::process::Command, fds: Vec<(i32, i32)>, terminal: Option<i32>) {
    use std::os::unix::process::CommandExt;
    let hook = move || {
        if let Some(fd) = terminal {
            // SAFETY: makes the child a session of its own, then gives it the terminal.
            unsafe { libc::setsid() };
            // SAFETY: a request on a descriptor that is open.
            if unsafe { libc::ioctl(fd, libc::TIOCSCTTY, 0) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        for (from, to) in &fds {
            // SAFETY: duplicates an open descriptor; the copy is kept over exec on purpose.
            if unsafe { libc::dup2(*from, *to) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the hook makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(hook) };
}

/// A request to a device.
pub(crate) fn ioctl(fd: i32, request: u64, argument: usize) -> io::Result<usize> {
    call(libc::SYS_ioctl, &[int(fd), request as usize, argument])
}

/// Takes over a descriptor, so that it is closed.
pub(crate) fn own(fd: i32) -> std::os::fd::OwnedFd {
    use std::os::fd::FromRawFd;
    // SAFETY: every caller just received the number from the kernel and keeps no other copy.
    unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) }
}
