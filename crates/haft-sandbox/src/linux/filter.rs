//! The seccomp filter, assembled from a table: which system calls are refused, and how.
//!
//! Everything else is allowed, because namespaces and mounts already decide what can be reached; the table
//! closes what they leave open. A number that this version does not know gets "no such call".

use libc::{EACCES, ENOSYS, EOPNOTSUPP, EPERM, sock_filter};

/// What a filter has to make up for.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each given by name")]
pub(super) struct Shape {
    /// Whether internet sockets can be made: they lead to a private loopback, or to a network that is allowed.
    pub(super) internet: bool,
    /// Whether unix sockets can be made: only where no foreign socket is in reach.
    pub(super) unix: bool,
    /// Whether a private root stands between the program and everybody else's files and processes.
    pub(super) rooted: bool,
    /// Whether the addresses that the program connects to are reported.
    pub(super) watched: bool,
    /// Whether somebody counts the System V shared memory that the program asks for.
    pub(super) counts_shared_memory: bool,
}

/// One refusal. Arguments are tested by their low half: flags and families all fit.
enum Test {
    Always,
    /// This argument has one of these bits.
    Bits(u8, u32),
    /// This argument is one of these.
    Is(u8, &'static [u32]),
    /// This argument is none of these.
    IsNot(u8, &'static [u32]),
}

struct Rule {
    call: libc::c_long,
    test: Test,
    errno: i32,
}

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const JUMP_BITS: u16 = 0x45;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const TELL: u32 = 0x7fc0_0000;
const ERRNO: u32 = 0x0005_0000;

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xC000_00B7;

/// The first number that this version does not know (Linux 6.18).
const UNKNOWN: u32 = 471;

/// Every flag of clone that makes a namespace.
const NEW_NAMESPACES: u32 = 0x7E02_0000;
/// Set-uid and set-gid.
const SET_ID: u32 = 0o6000;
/// Asking, being ordinary, and being loaded at fixed addresses, as debuggers want it. Others bring in code
/// of the kernel that nobody looks after.
const PERSONALITIES: &[u32] = &[0xffff_ffff, 0, 0x0004_0000];
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541C;

/// Refused with "not permitted": no ordinary program needs these, and each has been a way out somewhere.
const NEVER: &[libc::c_long] = &[
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    467, // open_tree_attr
    // Other processes.
    libc::SYS_process_madvise,
    448, // process_mrelease
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Large parts of the kernel that a confined program has no business with.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_memfd_secret,
    // The machine itself.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    443, // quotactl_fd
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// What debuggers do. In a pid namespace of its own a program finds its own processes, and the keeper, which is not dumpable, has
/// more capabilities and is outside its Landlock domain. The kernel looks at a call again after a tracer has changed it.
const TRACING: &[libc::c_long] = &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];

/// Memory that no limit sees. In an IPC namespace of its own the segments are the program's, and their sizes are counted where
/// they are asked for.
const SHARED_MEMORY: &[libc::c_long] = &[libc::SYS_shmget, libc::SYS_shmat];

#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_lookup_dcookie,
    libc::SYS_uselib,
    libc::SYS__sysctl,
    libc::SYS_nfsservctl,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[libc::c_long] = &[];

/// Refused as if the kernel did not know them, so that libraries fall back: `io_uring` would get around this
/// filter, clone3 hides its flags behind a pointer, and memfd makes memory that no limit sees.
const UNHEARD_OF: &[libc::c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_clone3,
    libc::SYS_memfd_create,
];

/// Without a private root, Landlock stands alone, and these are what it does not see.
const UNSEEN_BY_LANDLOCK: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    452, // fchmodat2
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_fsetxattr,
    libc::SYS_fremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    463, // setxattrat
    464, // getxattrat
    465, // listxattrat
    466, // removexattrat
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_inotify_add_watch,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_ioprio_set,
    468, // file_getattr
    469, // file_setattr
];

#[cfg(target_arch = "x86_64")]
const UNSEEN_HERE: &[libc::c_long] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const UNSEEN_HERE: &[libc::c_long] = &[];

/// Calls that may be made about oneself, and not about another process of the same user.
const ONLY_ONESELF: &[(libc::c_long, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_setpriority, 1),
];

#[cfg(target_arch = "x86_64")]
const CHMODS: &[(libc::c_long, u8)] = &[(libc::SYS_chmod, 1), (libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (452, 2)];
#[cfg(not(target_arch = "x86_64"))]
const CHMODS: &[(libc::c_long, u8)] = &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (452, 2)];

fn rules(shape: Shape) -> Vec<Rule> {
    let refuse = |errno: i32| move |call: &libc::c_long| Rule { call: *call, test: Test::Always, errno };
    let mut rules: Vec<Rule> = NEVER.iter().chain(NEVER_HERE).map(refuse(EPERM)).collect();
    rules.extend(UNHEARD_OF.iter().map(refuse(ENOSYS)));
    rules.push(Rule { call: libc::SYS_fallocate, test: Test::Always, errno: EOPNOTSUPP });
    rules.push(Rule { call: libc::SYS_clone, test: Test::Bits(0, NEW_NAMESPACES), errno: EPERM });
    rules.push(Rule { call: libc::SYS_personality, test: Test::IsNot(0, PERSONALITIES), errno: EPERM });
    rules.push(Rule { call: libc::SYS_ioctl, test: Test::Is(1, &[TIOCSTI, TIOCLINUX]), errno: EPERM });
    if !shape.counts_shared_memory {
        rules.extend(SHARED_MEMORY.iter().map(refuse(EPERM)));
    }
    if shape.rooted {
        let set_id =
            |(call, mode): &(libc::c_long, u8)| Rule { call: *call, test: Test::Bits(*mode, SET_ID), errno: EPERM };
        rules.extend(CHMODS.iter().map(set_id));
    } else {
        rules.extend(UNSEEN_BY_LANDLOCK.iter().chain(UNSEEN_HERE).chain(TRACING).map(refuse(EPERM)));
        let oneself =
            |(call, pid): &(libc::c_long, u8)| Rule { call: *call, test: Test::IsNot(*pid, &[0]), errno: EPERM };
        rules.extend(ONLY_ONESELF.iter().map(oneself));
    }
    rules.sort_by_key(|rule| rule.call);
    rules
}

const fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

const fn refuse(errno: i32) -> sock_filter {
    statement(RETURN, ERRNO | errno.unsigned_abs())
}

/// Where the low half of an argument lies in what the kernel hands to the filter.
fn argument(number: u8) -> sock_filter {
    statement(LOAD, 16 + 8 * u32::from(number))
}

/// What follows once the number is known to be this rule's.
fn body(rule: &Rule) -> Vec<sock_filter> {
    let allow = statement(RETURN, ALLOW);
    match rule.test {
        Test::Always => vec![refuse(rule.errno)],
        Test::Bits(arg, bits) => vec![argument(arg), jump(JUMP_BITS, bits, 0, 1), refuse(rule.errno), allow],
        Test::Is(arg, values) => one_of(arg, values, refuse(rule.errno), allow),
        Test::IsNot(arg, values) => one_of(arg, values, allow, refuse(rule.errno)),
    }
}

/// One answer if an argument is one of these, and another if it is not.
fn one_of(arg: u8, values: &[u32], then: sock_filter, otherwise: sock_filter) -> Vec<sock_filter> {
    let mut code = vec![argument(arg)];
    for value in values {
        code.extend([jump(JUMP_EQUAL, *value, 0, 1), then]);
    }
    code.push(otherwise);
    code
}

/// Socket families by name; a netlink socket only for routes, which in a namespace of one's own shows
/// nothing.
fn sockets(shape: Shape) -> Vec<sock_filter> {
    let family = |family: i32| [jump(JUMP_EQUAL, family.unsigned_abs(), 0, 1), statement(RETURN, ALLOW)];
    let mut code = vec![argument(0)];
    if shape.unix {
        code.extend(family(libc::AF_UNIX));
    }
    if shape.internet {
        code.extend(family(libc::AF_INET));
        code.extend(family(libc::AF_INET6));
        code.extend([
            jump(JUMP_EQUAL, libc::AF_NETLINK.unsigned_abs(), 0, 3),
            argument(2),
            jump(JUMP_EQUAL, libc::NETLINK_ROUTE.unsigned_abs(), 0, 1),
            statement(RETURN, ALLOW),
        ]);
    }
    code.push(refuse(EACCES));
    code
}

/// A pair of connected sockets reaches nobody.
fn socket_pairs() -> Vec<sock_filter> {
    let unix = libc::AF_UNIX.unsigned_abs();
    vec![argument(0), jump(JUMP_EQUAL, unix, 0, 1), statement(RETURN, ALLOW), refuse(EACCES)]
}

/// The filter for a shape.
pub(super) fn assemble(shape: Shape) -> Vec<sock_filter> {
    let mut code = vec![
        statement(LOAD, 4),
        jump(JUMP_EQUAL, ARCH, 1, 0),
        statement(RETURN, KILL),
        statement(LOAD, 0),
        jump(JUMP_AT_LEAST, UNKNOWN, 0, 1),
        refuse(ENOSYS),
    ];
    let mut on = |call: libc::c_long, body: Vec<sock_filter>| {
        let (call, length) = (u32::try_from(call).unwrap_or(u32::MAX), u8::try_from(body.len()).unwrap_or(u8::MAX));
        code.push(jump(JUMP_EQUAL, call, 0, length));
        code.extend(body);
    };
    for rule in rules(shape) {
        on(rule.call, body(&rule));
    }
    on(libc::SYS_socket, sockets(shape));
    on(libc::SYS_socketpair, socket_pairs());
    if shape.watched {
        on(libc::SYS_connect, vec![statement(RETURN, TELL)]);
    }
    if shape.counts_shared_memory {
        on(libc::SYS_shmget, vec![statement(RETURN, TELL)]);
    }
    code.push(statement(RETURN, ALLOW));
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Shape = Shape { internet: true, unix: true, rooted: true, watched: false, counts_shared_memory: false };

    /// What the filter says to a call: a reading of the program, instruction by instruction.
    fn ask(code: &[sock_filter], call: libc::c_long, args: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(u32::try_from(call).unwrap().to_ne_bytes());
        data.extend(ARCH.to_ne_bytes());
        data.extend(0_u64.to_ne_bytes());
        for arg in args {
            data.extend(arg.to_ne_bytes());
        }
        let (mut at, mut held) = (0, 0);
        loop {
            let step = code[at];
            let jumped = |taken: bool| at + 1 + usize::from(if taken { step.jt } else { step.jf });
            at = match step.code {
                LOAD => {
                    let from = step.k as usize;
                    held = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
                    at + 1
                }
                JUMP_EQUAL => jumped(held == step.k),
                JUMP_AT_LEAST => jumped(held >= step.k),
                JUMP_BITS => jumped(held & step.k != 0),
                RETURN => return step.k,
                other => panic!("{other:x}"),
            };
        }
    }

    fn errno(errno: i32) -> u32 {
        ERRNO | errno.unsigned_abs()
    }

    #[test]
    fn the_table_is_what_the_filter_says() {
        let code = assemble(FULL);
        for call in NEVER.iter().chain(NEVER_HERE) {
            assert_eq!(ask(&code, *call, [0; 6]), errno(EPERM), "{call}");
        }
        for call in UNHEARD_OF {
            assert_eq!(ask(&code, *call, [0; 6]), errno(ENOSYS), "{call}");
        }
        let flat = assemble(Shape { rooted: false, ..FULL });
        for call in TRACING {
            let said = [&code, &flat].map(|code| ask(code, *call, [0; 6]));
            assert_eq!(said, [ALLOW, errno(EPERM)], "{call}: among its own processes alone");
        }
        let counted = assemble(Shape { counts_shared_memory: true, ..FULL });
        for (call, answer) in SHARED_MEMORY.iter().zip([TELL, ALLOW]) {
            let said = [&code, &counted].map(|code| ask(code, *call, [0; 6]));
            assert_eq!(said, [errno(EPERM), answer], "{call}: only where it is counted");
        }
        assert_eq!(ask(&code, 1000, [0; 6]), errno(ENOSYS));
        assert_eq!(ask(&code, libc::SYS_read, [0; 6]), ALLOW);
        assert_eq!(ask(&code, libc::SYS_clone, [0x1000_0011, 0, 0, 0, 0, 0]), errno(EPERM));
        assert_eq!(ask(&code, libc::SYS_clone, [0x11, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(ask(&code, libc::SYS_ioctl, [0, u64::from(TIOCSTI) | 1 << 32, 0, 0, 0, 0]), errno(EPERM));
        assert_eq!(ask(&code, libc::SYS_fchmod, [3, 0o4755, 0, 0, 0, 0]), errno(EPERM));
        assert_eq!(ask(&code, libc::SYS_personality, [0x0040_0000, 0, 0, 0, 0, 0]), errno(EPERM));
        assert_eq!(ask(&code, libc::SYS_personality, [0xffff_ffff, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(ask(&code, libc::SYS_fchmod, [3, 0o755, 0, 0, 0, 0]), ALLOW);
    }

    #[test]
    fn sockets_follow_the_shape() {
        let family = |shape: Shape, family: i32, protocol: u64| {
            ask(&assemble(shape), libc::SYS_socket, [u64::from(family.unsigned_abs()), 1, protocol, 0, 0, 0])
        };
        assert_eq!(family(FULL, libc::AF_UNIX, 0), ALLOW);
        assert_eq!(family(Shape { unix: false, ..FULL }, libc::AF_UNIX, 0), errno(EACCES));
        assert_eq!(family(FULL, libc::AF_INET6, 0), ALLOW);
        assert_eq!(family(Shape { internet: false, ..FULL }, libc::AF_INET, 0), errno(EACCES));
        assert_eq!(family(FULL, libc::AF_NETLINK, 0), ALLOW);
        assert_eq!(family(FULL, libc::AF_NETLINK, 9), errno(EACCES));
        for other in [libc::AF_VSOCK, libc::AF_PACKET, libc::AF_ALG, libc::AF_BLUETOOTH] {
            assert_eq!(family(FULL, other, 0), errno(EACCES));
        }
    }

    #[test]
    fn no_rule_is_redundant() {
        for rooted in [true, false] {
            let rules = rules(Shape { rooted, ..FULL });
            for pair in rules.windows(2) {
                assert_ne!(pair[0].call, pair[1].call, "two rules for one call: the second is never reached");
            }
        }
    }
}
