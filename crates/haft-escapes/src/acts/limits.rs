//! Using more than was granted. Every attempt is bounded by itself, so that it ends where nothing stops it.

#![expect(clippy::unnecessary_wraps, reason = "an attempt that only a signal stops has the type of all attempts")]

use super::write::IntoTried;
use super::{Act, Sight};
use crate::attack::{Brief, Stop, Tried, say, stopped};
use crate::sys::{self, HERE, at, c, call, ignore, int, on, under};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MEMORY: &[&str] = &["--mem", "48m", "--disk", "48m"];
const DISK: &[&str] = &["--disk", "8m"];
const SIZE: &[&str] = &["--fsize", "2m"];
const PIDS: &[&str] = &["--pids", "40"];
const CPU: &[&str] = &["--cpu", "1"];
const WALL: &[&str] = &["--wall", "1"];
/// What is tried of memory, in bytes.
const TOO_MUCH: usize = 120 << 20;

pub(crate) const ACTS: &[Act] = &[
    Act::new("limits.fork_bomb", |_| fork_many(300)).flags(PIDS).heavy(),
    Act::new("limits.fork_tree", |_| fork_tree()).flags(PIDS).heavy(),
    Act::new("limits.threads", |_| threads()).flags(PIDS).heavy(),
    Act::new("limits.zombies", |_| zombies()).flags(PIDS).heavy(),
    Act::new("limits.memory", |_| memory(libc::MAP_PRIVATE)).flags(MEMORY).heavy(),
    Act::new("limits.memory_shared", |_| memory(libc::MAP_SHARED)).flags(MEMORY).heavy(),
    Act::new("limits.memory_in_children", |_| memory_in_children()).flags(MEMORY).heavy(),
    Act::new("limits.memfd", |_| memfd()).flags(MEMORY).heavy(),
    Act::new("limits.sysv_memory", |_| sysv_memory()).flags(MEMORY).heavy(),
    Act::new("limits.fill_tmp", |_| fill(&mine("/tmp"), TOO_MUCH)).flags(MEMORY).heavy(),
    Act::new("limits.fill_shm", |_| fill(&mine("/dev/shm"), TOO_MUCH)).flags(MEMORY).heavy(),
    Act::new("limits.fill_home", |b| fill(&home(b)?.join("fill"), TOO_MUCH)).flags(MEMORY).heavy(),
    Act::new("limits.inodes", |_| inodes()).flags(MEMORY).heavy(),
    Act::new("limits.cpu", |_| spin_for(3.0)).flags(CPU).heavy(),
    Act::new("limits.cpu_children", |_| spin_children(false)).flags(CPU).heavy(),
    Act::new("limits.cpu_unreaped", |_| spin_children(true)).flags(CPU).heavy(),
    Act::new("limits.cpu_threads", |_| spin_threads()).flags(CPU).heavy(),
    Act::new("limits.disk", |b| fill(&b.file("project", "big")?, 32 << 20)).flags(DISK).heavy(),
    Act::new("limits.disk_many_files", many_files).flags(DISK).heavy(),
    Act::new("limits.file_size", |b| fill(&b.file("project", "big")?, 6 << 20)).flags(SIZE),
    Act::new("limits.file_size_sparse", |b| sparse(&b.file("project", "big")?)).flags(SIZE),
    Act::new("limits.fallocate", |b| fallocate(&b.file("project", "big")?)).flags(DISK),
    Act::new("limits.wall", |_| stay(3)).flags(WALL),
    Act::new("limits.wall_deaf", |_| deaf()).flags(WALL),
    Act::new("limits.wall_stopped_child", |_| stopped_child()).flags(WALL),
    Act::new("limits.endless_output", |_| endless()).flags(WALL),
    lingers("limits.daemon", |b| daemon(b, 0)),
    lingers("limits.daemon_deaf", |b| {
        (1..32).filter(|signal| ![libc::SIGCHLD].contains(signal)).for_each(ignore);
        daemon(b, 0)
    }),
    lingers("limits.daemon_after_wall", |b| daemon(b, 3)).flags(WALL),
];

const fn lingers(name: &'static str, attempt: fn(&Brief) -> Tried) -> Act {
    Act::new(name, attempt).seen(Sight::Lingers).judged_outside()
}

/// A watchdog looks now and then: what is had has to be held for a while.
const HELD: Duration = Duration::from_millis(600);

fn held(what: impl Into<String>) -> Tried {
    std::thread::sleep(HELD);
    Ok(what.into())
}

fn mine(dir: &str) -> PathBuf {
    Path::new(dir).join(format!("escape-{}", std::process::id()))
}

fn home(b: &Brief) -> Result<PathBuf, Stop> {
    std::env::var_os("HOME").map_or_else(|| b.path("home"), |home| Ok(PathBuf::from(home)))
}

fn sleeper() -> i32 {
    std::thread::sleep(Duration::from_secs(2));
    0
}

fn gone(pids: &[i32]) {
    for pid in pids {
        let _ = call(libc::SYS_kill, &[int(*pid), 9]);
        let _ = sys::wait(*pid);
    }
}

fn fork_many(count: usize) -> Tried {
    let mut pids = Vec::new();
    while pids.len() < count {
        match sys::fork(sleeper) {
            Ok(pid) => pids.push(pid),
            Err(error) => {
                // Twice what was granted is too much, whatever stopped it then, if it could be held.
                let many = pids.len() > 80;
                if many {
                    std::thread::sleep(HELD);
                }
                gone(&pids);
                return if many { Ok(format!("{} children", pids.len())) } else { Err(error.into()) };
            }
        }
    }
    std::thread::sleep(HELD);
    gone(&pids);
    Ok(format!("{count} children"))
}

/// Children that have children, whose parents end: nobody's children.
fn fork_tree() -> Tried {
    let mut made = 0;
    for _ in 0..12 {
        let pid = sys::fork(|| i32::from((0..12).filter(|_| sys::fork(sleeper).is_err()).count() > 0))?;
        made += i32::from(sys::wait(pid)? == 0) * 12;
    }
    if made > 80 { held(format!("{made} orphans")) } else { stopped(format!("{made} orphans")) }
}

fn threads() -> Tried {
    let spawn = |_| std::thread::Builder::new().stack_size(16 << 10).spawn(|| std::thread::sleep(HELD));
    let made: Vec<_> = (0..200).map_while(|index| spawn(index).ok()).collect();
    let count = made.len();
    for thread in made {
        let _ = thread.join();
    }
    if count > 80 { Ok(format!("{count} threads")) } else { stopped(format!("{count} threads")) }
}

fn zombies() -> Tried {
    let mut pids = Vec::new();
    for _ in 0..300 {
        match sys::fork(|| 0) {
            Ok(pid) => pids.push(pid),
            Err(error) if pids.len() <= 80 => return Err(error.into()),
            Err(_) => break,
        }
    }
    std::thread::sleep(HELD);
    Ok(format!("{} zombies", pids.len()))
}

fn memory(flags: i32) -> Tried {
    let piece = 8 << 20;
    for _ in 0..TOO_MUCH / piece {
        sys::touch(sys::map(piece, flags | libc::MAP_ANONYMOUS, -1)?, piece);
    }
    held("all of it")
}

fn memory_in_children() -> Tried {
    let part = TOO_MUCH / 4;
    let hold = || {
        let Ok(start) = sys::map(part, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1) else { return 1 };
        sys::touch(start, part);
        std::thread::sleep(HELD);
        0
    };
    let pids: Vec<i32> = (0..4).map(|_| sys::fork(hold)).collect::<Result<_, _>>()?;
    let ended: Vec<i32> = pids.into_iter().map(sys::wait).collect::<Result<_, _>>()?;
    if ended.iter().all(|code| *code == 0) { Ok("all of it".to_owned()) } else { stopped(format!("{ended:?}")) }
}

fn memfd() -> Tried {
    let name = c("escape");
    let fd = call(libc::SYS_memfd_create, &[name.as_ptr() as usize, 0])? as i32;
    pour(fd, TOO_MUCH)?;
    held("all of it")
}

fn sysv_memory() -> Tried {
    let id = call(libc::SYS_shmget, &[0, TOO_MUCH, 0o1600])?;
    let start = call(libc::SYS_shmat, &[id, 0, 0]);
    let _ = call(libc::SYS_shmctl, &[id, 0, 0]);
    sys::touch(start?, TOO_MUCH);
    held("all of it")
}

fn pour(fd: i32, bytes: usize) -> Result<(), Stop> {
    let piece = vec![7u8; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        left -= sys::write(fd, &piece[..left.min(piece.len())])?.min(left);
    }
    Ok(())
}

fn fill(path: &Path, bytes: usize) -> Tried {
    let fd = sys::open(path, libc::O_CREAT | libc::O_WRONLY)?;
    let poured = pour(fd, bytes).and_then(|()| {
        let _ = call(libc::SYS_fsync, &[int(fd)]);
        held("all of it")
    });
    let _ = std::fs::remove_file(path);
    poured
}

fn many_files(b: &Brief) -> Tried {
    let dir = b.file("project", "many")?;
    std::fs::create_dir(&dir)?;
    for index in 0..64 {
        std::fs::write(dir.join(index.to_string()), vec![7u8; 512 << 10])?;
    }
    held("all of them")
}

fn inodes() -> Tried {
    let dir = mine("/dev/shm");
    std::fs::create_dir(&dir)?;
    let made = (0..80_000).try_for_each(|index| std::fs::write(dir.join(index.to_string()), ""));
    let outcome = made.tried();
    let _ = std::fs::remove_dir_all(&dir);
    outcome
}

fn used() -> f64 {
    let mut time: libc::timespec = sys::zeroed();
    let _ = call(libc::SYS_clock_gettime, &[libc::CLOCK_PROCESS_CPUTIME_ID as usize, sys::into(&mut time)]);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32).as_secs_f64()
}

fn spin(seconds: f64) -> i32 {
    ignore(libc::SIGXCPU);
    while used() < seconds {
        std::hint::black_box((0..10_000u64).sum::<u64>());
    }
    0
}

fn spin_for(seconds: f64) -> Tried {
    spin(seconds);
    Ok(format!("{seconds} s"))
}

/// Each child stays below the limit; together they do not.
fn spin_children(unreaped: bool) -> Tried {
    if unreaped {
        ignore(libc::SIGCHLD);
    }
    // One after the other where nobody counts the dead, together where somebody does.
    let (rounds, abreast) = if unreaped { (4, 1) } else { (2, 2) };
    for _ in 0..rounds {
        let pids: Vec<i32> = (0..abreast).map(|_| sys::fork(|| spin(0.8))).collect::<Result<_, _>>()?;
        for pid in pids {
            match sys::wait(pid) {
                Ok(0) => {}
                Ok(code) => return stopped(format!("a child ended with {code}")),
                // With nobody to wait for, the call returns when the last has gone.
                Err(error) if !unreaped => return Err(error.into()),
                Err(_) => {}
            }
        }
    }
    Ok("3.2 s in children".to_owned())
}

fn spin_threads() -> Tried {
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(|| spin(3.0))).collect();
    for thread in threads {
        let _ = thread.join();
    }
    Ok("3 s in threads".to_owned())
}

fn sparse(path: &Path) -> Tried {
    ignore(libc::SIGXFSZ);
    let fd = sys::open(path, libc::O_CREAT | libc::O_WRONLY)?;
    call(libc::SYS_pwrite64, &[int(fd), at(b"x"), 1, 64 << 20])
        .or_else(|_| on(libc::SYS_truncate, path, &[64 << 20]))?;
    Ok("64 MB with a hole".to_owned())
}

fn fallocate(path: &Path) -> Tried {
    let flags = libc::O_CREAT | libc::O_WRONLY;
    let fd = under(libc::SYS_openat, HERE, path, &[int(flags), 0o644])?;
    call(libc::SYS_fallocate, &[fd, 0, 0, 64 << 20])?;
    held("64 MB")
}

fn stay(seconds: u64) -> Tried {
    std::thread::sleep(Duration::from_secs(seconds));
    Ok(format!("lived {seconds} s"))
}

fn deaf() -> Tried {
    (1..65).for_each(ignore);
    let _ = call(libc::SYS_setsid, &[]);
    let _ = call(libc::SYS_prctl, &[libc::PR_SET_PDEATHSIG as usize, 0]);
    stay(3)
}

/// A stopped process does not hear that it should end.
fn stopped_child() -> Tried {
    let pid = sys::fork(|| {
        let _ = call(libc::SYS_kill, &[std::process::id() as usize, libc::SIGSTOP as usize]);
        0
    })?;
    let outcome = stay(3);
    gone(&[pid]);
    outcome
}

fn endless() -> Tried {
    ignore(libc::SIGPIPE);
    let begun = Instant::now();
    let line = "y".repeat(4000);
    while begun.elapsed() < Duration::from_secs(3) {
        say(&line);
    }
    Ok("wrote for 3 s".to_owned())
}

/// Leaves a process behind that has no parent, no session and no terminal in common with anybody.
fn daemon(b: &Brief, stay: u64) -> Tried {
    let marker = b.get("marker")?.to_owned();
    let program = std::env::current_exe()?;
    let (program, linger, marker) = (c(program), c("--linger"), c(marker));
    let argv = [program.as_ptr() as usize, linger.as_ptr() as usize, marker.as_ptr() as usize, 0];
    let pid = sys::fork(|| {
        let _ = call(libc::SYS_setsid, &[]);
        let run = || {
            for fd in 0..3 {
                let _ = call(libc::SYS_close, &[fd]);
            }
            let _ = call(libc::SYS_execve, &[argv[0], at(&argv), at(&[0usize])]);
            1
        };
        i32::from(sys::fork(run).is_err())
    })?;
    sys::wait(pid)?;
    std::thread::sleep(Duration::from_secs(stay).max(Duration::from_millis(150)));
    Ok("left one behind".to_owned())
}
