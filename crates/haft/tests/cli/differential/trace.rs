//! Commands run in haft's sandbox, where they may write the project, with every system call that could write,
//! run or send recorded by strace.
//!
//! strace stands outside and sees haft as well; what counts begins and ends with markers. Many commands share
//! one sandbox and one strace: starting those costs more than most of the commands.

use crate::Env;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Calls that open files and connections and start programs; whether they are harmless is in their arguments.
const LOOKED_INTO: &str = "execve,execveat,open,openat,openat2,creat,socket,connect";
/// Calls that change something whatever their arguments are.
const CHANGES: &str = "unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,\
    truncate,ftruncate,fallocate,chmod,fchmod,fchmodat,chown,lchown,fchown,fchownat,utime,utimes,futimesat,utimensat,\
    mknod,mknodat,setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr,bind,listen,mount,umount2,\
    pivot_root,chroot,ptrace,process_vm_writev,io_uring_setup,bpf,memfd_create,init_module,finit_module,swapon,reboot";
/// Places that keep nothing of what is written to them.
const SINKS: &[&str] = &["/dev/null", "/dev/tty", "/dev/stdout", "/dev/stderr", "/dev/full"];
/// What a program runs that is part of itself: on some systems these are scripts around another.
const PARTS: &[(&str, &[&str])] = &[
    ("egrep", &["grep", "sh", "bash"]),
    ("fgrep", &["grep", "sh", "bash"]),
    ("zcat", &["gzip", "sh", "bash"]),
    ("which", &["sh", "bash"]),
    ("git", &["git"]),
    ("dpkg", &["dpkg-query"]),
];
const PATH: &str = "/usr/bin:/bin";

/// Whether strace is here and may work.
pub(super) fn works() -> bool {
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-Y", "-o", "/dev/null", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
    strace.status().is_ok_and(|status| status.success())
}

/// Runs commands, each with the programs that it may run; says what they did beyond that.
pub(super) fn run(env: &Env, name: &str, runs: &[(String, BTreeSet<String>)]) -> Vec<String> {
    let at = |ending: &str| env.dir.path().join(format!("{name}.{ending}"));
    let (script, log, report) = (at("sh"), at("log"), at("json"));
    std::fs::write(&script, batch(runs)).unwrap();
    let confined = env.command(&["confine", "--write", ".", "--wall", "300", "--read"]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-Y", "-s", "4096", "-e", &format!("trace={LOOKED_INTO},{CHANGES}"), "-o"]);
    strace.arg(&log).arg(confined.get_program()).args(confined.get_args()).arg(&script);
    strace.arg("--json").arg(&report).args(["--", "bash"]).arg(&script).current_dir(env.root());
    strace.env_clear().env("HOME", env.dir.path().join("home")).env("PATH", PATH).env("TZ", "UTC");
    let output = strace.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&std::fs::read(&log).unwrap()).into_owned();
    let last = text.contains("\"haft-end\"");
    assert!(
        last,
        "the batch broke off: {}",
        String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default()
    );
    let mut wrong = watched(&text, runs);
    wrong.extend(changed(&report));
    wrong
}

/// Every command in a shell of its own, whose name is its number.
fn batch(runs: &[(String, BTreeSet<String>)]) -> String {
    let mut script = String::new();
    for (number, (command, _)) in runs.iter().enumerate() {
        let _ = writeln!(script, "bash -c '{}' haft-{number} < /dev/null", command.replace('\'', r"'\''"));
    }
    script.push_str("bash -c : haft-end\nexit 0\n");
    script
}

/// What haft itself saw to have changed.
fn changed(report: &Path) -> Vec<String> {
    let said: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let files = said["files"].as_array().unwrap();
    files.iter().map(|file| format!("the sandbox reports: {} {}", file["path"], file["change"])).collect()
}

/// Goes through what was recorded.
fn watched(log: &str, runs: &[(String, BTreeSet<String>)]) -> Vec<String> {
    let mut wrong = BTreeSet::new();
    let mut whose: HashMap<&str, Option<usize>> = HashMap::new();
    let mut current = None;
    for line in log.lines() {
        let Some((process, call)) = line.split_once(' ') else { continue };
        let pid = process.split('<').next().unwrap_or_default();
        if let Some(marker) = marker(call) {
            let Ok(number) = marker.parse() else { break };
            current = Some(number);
            whose.insert(pid, current);
            continue;
        }
        // Whoever was there before the first marker is haft; so is whoever is called that.
        let owner = *whose.entry(pid).or_insert(if process.contains("<haft") { None } else { current });
        let Some((command, programs)) = owner.and_then(|number| runs.get(number)) else { continue };
        if let Some(deed) = deed(call, programs) {
            wrong.insert(format!("{command:?} {deed}"));
        }
    }
    wrong.into_iter().collect()
}

/// The number that a shell started by the batch bears as its name.
fn marker(call: &str) -> Option<&str> {
    let argv = call.strip_prefix("execve(")?.split_once("], ")?.0;
    argv.contains("\"bash\", \"-c\", ").then(|| argv.rsplit_once(", \"haft-")?.1.strip_suffix('"')).flatten()
}

/// What a call does that one which only reads would not.
fn deed(call: &str, programs: &BTreeSet<String>) -> Option<String> {
    let (name, args) = call.trim_start().split_once('(')?;
    let path = args.split('"').nth(1).unwrap_or_default();
    match name {
        "execve" | "execveat" => {
            let program = path.rsplit('/').next().unwrap_or_default();
            (!may_run(program, programs)).then(|| format!("runs {program} ({path})"))
        }
        "open" | "openat" | "openat2" | "creat" => {
            let writes = name == "creat"
                || ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"].iter().any(|flag| args.contains(flag));
            (writes && !is_kept_nowhere(path)).then(|| format!("writes {path}: {call}"))
        }
        // The C library asks a name service that is hardly ever there.
        "socket" => (!args.starts_with("AF_UNIX")).then(|| format!("opens a socket: {call}")),
        "connect" => (!args.contains("/var/run/nscd/socket")).then(|| format!("connects: {call}")),
        // Those that strace itself says, such as `+++ exited`, have no arguments.
        name if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
            Some(format!("changes something: {call}"))
        }
        _ => None,
    }
}

fn may_run(program: &str, programs: &BTreeSet<String>) -> bool {
    let base = |named: &String| named.rsplit('/').next() == Some(program);
    let part = |(whole, parts): &(&str, &[&str])| programs.contains(*whole) && parts.contains(&program);
    programs.iter().any(base) || PARTS.iter().any(part)
}

/// Devices that keep nothing, and what a shell puts a long here-document into.
fn is_kept_nowhere(path: &str) -> bool {
    SINKS.contains(&path)
        || path.starts_with("/tmp/sh-thd")
        || path.starts_with("/dev/fd/")
        || path.starts_with("/proc/self/fd/")
}
