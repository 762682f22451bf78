//! Doors of the kernel that no tool needs. Where a call could do harm it is made with arguments that fail
//! after the check for the right: `EINVAL` and its like then mean that the right was there.

#![expect(unsafe_code, reason = "the old way into the kernel is an instruction")]

use super::Act;
use super::write::IntoTried;
use crate::attack::{Tried, any, stopped};
use crate::sys::{at, c, call, int, into, zeroed};
use std::io;

pub(crate) const ACTS: &[Act] = &[
    Act::new("kernel.bpf", |_| bpf()),
    Act::new("kernel.perf", |_| perf()),
    Act::new("kernel.userfaultfd", |_| {
        any(&[
            ("any", &|| call(libc::SYS_userfaultfd, &[0]).tried()),
            ("own", &|| call(libc::SYS_userfaultfd, &[1]).tried()),
        ])
    }),
    Act::new("kernel.io_uring", |_| {
        let mut parameters = [0u8; 120];
        call(libc::SYS_io_uring_setup, &[4, into(&mut parameters)]).tried()
    }),
    Act::new("kernel.keyctl", |_| call(libc::SYS_keyctl, &[0, int(-4), 1]).tried()),
    Act::new("kernel.add_key", |_| {
        let (kind, name) = (c("user"), c("escape"));
        let key = call(libc::SYS_add_key, &[kind.as_ptr() as usize, name.as_ptr() as usize, at(b"x"), 1, int(-2)])?;
        call(libc::SYS_keyctl, &[3, key]).tried()
    }),
    Act::new("kernel.request_key", |_| {
        let (kind, name) = (c("user"), c("escape-none"));
        passed(call(libc::SYS_request_key, &[kind.as_ptr() as usize, name.as_ptr() as usize, 0, 0]), &[libc::ENOKEY])
    }),
    Act::new("kernel.init_module", |_| passed(call(libc::SYS_init_module, &[0, 0, 0]), BAD)),
    Act::new("kernel.finit_module", |_| passed(call(libc::SYS_finit_module, &[int(-1), at(&0u8), 0]), BAD)),
    Act::new("kernel.delete_module", |_| {
        let name = c("escape_no_such_module");
        passed(call(libc::SYS_delete_module, &[name.as_ptr() as usize, libc::O_NONBLOCK as usize]), BAD)
    }),
    Act::new("kernel.kexec", |_| passed(call(libc::SYS_kexec_load, &[0, 99, 0, usize::MAX]), BAD)),
    Act::new("kernel.kexec_file", |_| {
        passed(call(libc::SYS_kexec_file_load, &[int(-1), int(-1), 0, 0, usize::MAX]), BAD)
    }),
    Act::new("kernel.reboot", |_| passed(call(libc::SYS_reboot, &[0, 0, 0, 0]), BAD)),
    Act::new("kernel.swapon", |_| nowhere(libc::SYS_swapon)),
    Act::new("kernel.swapoff", |_| nowhere(libc::SYS_swapoff)),
    Act::new("kernel.acct", |_| nowhere(libc::SYS_acct)),
    Act::new("kernel.syslog", |_| call(libc::SYS_syslog, &[10, 0, 0]).tried()),
    Act::new("kernel.iopl", |_| call(libc::SYS_iopl, &[3]).tried()),
    Act::new("kernel.ioperm", |_| call(libc::SYS_ioperm, &[0x80, 1, 1]).tried()),
    Act::new("kernel.clock", |_| clock()),
    Act::new("kernel.sethostname", |_| hostname(libc::SYS_sethostname)),
    Act::new("kernel.setdomainname", |_| passed(call(libc::SYS_setdomainname, &[0, usize::MAX]), BAD)),
    Act::new("kernel.modify_ldt", |_| passed(call(libc::SYS_modify_ldt, &[1, at(&[0u32; 4]), 16]), &[])),
    Act::new("kernel.fanotify", |_| call(libc::SYS_fanotify_init, &[0, 0]).tried()),
    Act::new("kernel.fsopen", |_| {
        let kind = c("tmpfs");
        call(libc::SYS_fsopen, &[kind.as_ptr() as usize, 0]).tried()
    }),
    Act::new("kernel.old_entry", |_| old_entry()),
    Act::new("kernel.x32", |_| call(0x4000_0000 + 39, &[]).tried()),
    Act::new("kernel.capabilities", |_| capabilities()),
    Act::new("kernel.nice", |_| call(libc::SYS_setpriority, &[0, 0, int(-5)]).tried()),
    Act::new("kernel.real_time", |_| {
        call(libc::SYS_sched_setscheduler, &[0, libc::SCHED_FIFO as usize, at(&1i32)]).tried()
    }),
    Act::new("kernel.raise_limit", |_| raise_limit()),
    Act::new("kernel.setuid", |_| other_user()),
    Act::new("kernel.kernel_symbols", |_| symbols()),
];

/// What says that the arguments, not the caller, were refused.
const BAD: &[i32] = &[libc::EINVAL, libc::EFAULT, libc::ENOENT, libc::EBADF, libc::ENOEXEC];

fn passed(result: io::Result<usize>, past: &[i32]) -> Tried {
    match result {
        Err(error) if past.contains(&error.raw_os_error().unwrap_or(0)) => Ok(format!("let through to {error}")),
        other => other.tried(),
    }
}

fn nowhere(number: libc::c_long) -> Tried {
    let path = c("/escape/no/such/file");
    passed(call(number, &[path.as_ptr() as usize, 0]), &[libc::ENOENT, libc::EINVAL])
}

/// A map of one entry, then the smallest program.
fn bpf() -> Tried {
    let mut map = [0u32; 32];
    map[..4].copy_from_slice(&[2, 4, 4, 1]);
    let code: [u64; 2] = [0x0000_0000_0000_00b7, 0x95];
    let licence = c("GPL");
    let mut program = [0u64; 16];
    program[0] = 1 | (2 << 32);
    program[1] = at(&code) as u64;
    program[2] = licence.as_ptr() as u64;
    any(&[
        ("a map", &|| call(libc::SYS_bpf, &[0, at(&map), 72]).tried()),
        ("a program", &|| call(libc::SYS_bpf, &[5, at(&program), 72]).tried()),
    ])
}

/// Counts something of this process, in user mode alone: the least that can be asked.
fn perf() -> Tried {
    let mut attributes = [0u64; 16];
    attributes[0] = 1 | (128 << 32);
    attributes[5] = (1 << 5) | (1 << 6);
    call(libc::SYS_perf_event_open, &[at(&attributes), 0, int(-1), int(-1), 0]).tried()
}

/// Sets the length of a tick to what it is.
fn clock() -> Tried {
    let mut clock: libc::timex = zeroed();
    call(libc::SYS_adjtimex, &[into(&mut clock)])?;
    clock.modes = 0x4000;
    call(libc::SYS_adjtimex, &[into(&mut clock)]).tried()
}

/// The name that the machine has.
fn hostname(number: libc::c_long) -> Tried {
    let mut names: libc::utsname = zeroed();
    call(libc::SYS_uname, &[into(&mut names)])?;
    let length = names.nodename.iter().position(|c| *c == 0).unwrap_or(0);
    call(number, &[at(&names.nodename), length]).tried()
}

/// `getpid` by the entry of 32-bit programs, whose numbers mean other calls.
#[cfg(target_arch = "x86_64")]
fn old_entry() -> Tried {
    let result: u32;
    // SAFETY: getpid has no arguments; the kernel keeps all registers but those named here.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("eax") 20u32 => result, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    if result == std::process::id() || (result as i32) > 0 {
        Ok("answered".to_owned())
    } else {
        stopped(format!("{result}"))
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn old_entry() -> Tried {
    crate::attack::broken("this machine has none")
}

fn capabilities() -> Tried {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let has = |line: &&str| {
        let Some((name, value)) = line.split_once(":\t") else { return false };
        ["CapInh", "CapPrm", "CapEff", "CapAmb"].contains(&name) && value.chars().any(|c| c != '0')
    };
    status.lines().find(has).map_or_else(|| stopped("none"), |line| Ok(line.to_owned()))
}

/// More open files than were allowed.
fn raise_limit() -> Tried {
    let limit = [1_000_000u64, 1_000_000];
    call(libc::SYS_prlimit64, &[0, libc::RLIMIT_NOFILE as usize, at(&limit), 0]).tried()
}

fn other_user() -> Tried {
    let me = call(libc::SYS_geteuid, &[])?;
    let others = [0usize, 1, 1000, 65534].into_iter().filter(|user| *user != me);
    let mut became = others.filter(|user| call(libc::SYS_setresuid, &[*user, *user, *user]).is_ok());
    became.next().map_or_else(|| stopped("nobody else"), |user| Ok(format!("became {user}")))
}

/// Addresses that are not hidden.
fn symbols() -> Tried {
    let text = std::fs::read_to_string("/proc/kallsyms")?;
    let shown = text.lines().take(50).find(|line| !line.starts_with("0000000000000000"));
    shown.map_or_else(|| stopped("hidden"), |line| Ok(line.to_owned()))
}
