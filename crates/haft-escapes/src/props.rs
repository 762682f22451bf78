//! What stands around an act: a victim, things shared between processes, a server that answers, people
//! who move things. Each is made for one run and taken away after it.

use crate::acts::Prop;
use crate::site::Identity;
use crate::sys::{self, HERE, at, c, call, int, into};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// See the module.
#[derive(Default)]
pub(crate) struct Props {
    pub(crate) facts: Vec<(String, String)>,
    /// The slave of a terminal, for standard input.
    pub(crate) terminal: Option<OwnedFd>,
    master: Option<OwnedFd>,
    victim: Option<(Child, String)>,
    sysv: Vec<(libc::c_long, usize)>,
    queue: Option<String>,
    key: Option<usize>,
    others: Vec<JoinHandle<()>>,
    over: Arc<AtomicBool>,
    /// A project in whose place a link was put.
    replaced: Option<PathBuf>,
    /// Somebody came in where nobody should.
    pub(crate) entered: Arc<AtomicBool>,
}

impl Props {
    pub(crate) fn new(who: &Identity, prop: Prop, dir: &Path, token: &str) -> std::io::Result<Self> {
        let mut props = Self::default();
        match prop {
            Prop::Victim => props.make_victim(who, dir, token)?,
            Prop::SysV => props.make_sysv(token),
            Prop::Queue => props.make_queue(token),
            Prop::Key => props.make_key(token),
            Prop::Terminal => props.make_terminal(who)?,
            Prop::SetUid => props.make_setuid(who, dir)?,
            Prop::Friend => props.make_friend()?,
            Prop::None | Prop::Dialler | Prop::Swapper | Prop::Replacer => {}
        }
        Ok(props)
    }

    fn tell(&mut self, key: &str, value: &dyn std::fmt::Display) {
        self.facts.push((key.to_owned(), value.to_string()));
    }

    fn make_victim(&mut self, who: &Identity, dir: &Path, token: &str) -> std::io::Result<()> {
        let secret = sys::own(sys::open(dir.join("outside/secret.txt"), libc::O_RDONLY | libc::O_CLOEXEC)?);
        let mut command = Command::new(&who.attacker);
        command.args(["--victim", token]).env_clear().env("VICTIM_TOKEN", token).current_dir(dir.join("outside"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        become_one(&mut command, who);
        sys::inherit(&mut command, vec![(secret.as_raw_fd(), 7)], None);
        let child = command.spawn()?;
        self.tell("victim", &child.id());
        std::thread::sleep(Duration::from_millis(20));
        let state = condition(child.id());
        self.victim = Some((child, state));
        Ok(())
    }

    /// Whether the victim is not as it was.
    pub(crate) fn is_harmed(&self) -> bool {
        self.victim.as_ref().is_some_and(|(child, before)| condition(child.id()) != *before)
    }

    fn make_sysv(&mut self, token: &str) {
        if let Ok(id) = call(libc::SYS_shmget, &[0, 4096, 0o1666]) {
            if let Ok(start) = call(libc::SYS_shmat, &[id, 0, 0]) {
                sys::poke(start, token.as_bytes());
                let _ = call(libc::SYS_shmdt, &[start]);
            }
            self.tell("shm", &id);
            self.sysv.push((libc::SYS_shmctl, id));
        }
        if let Ok(id) = call(libc::SYS_semget, &[0, 1, 0o1666]) {
            self.tell("sem", &id);
            self.sysv.push((libc::SYS_semctl, id));
        }
        if let Ok(id) = call(libc::SYS_msgget, &[0, 0o1666]) {
            let mut message = 1u64.to_ne_bytes().to_vec();
            message.extend(token.as_bytes());
            let _ = call(libc::SYS_msgsnd, &[id, at(message.as_slice()), token.len(), libc::IPC_NOWAIT as usize]);
            self.tell("msg", &id);
            self.sysv.push((libc::SYS_msgctl, id));
        }
    }

    fn make_queue(&mut self, token: &str) {
        let name = token.to_lowercase();
        let path = c(&name);
        let flags = libc::O_CREAT | libc::O_RDWR;
        if let Ok(fd) = call(libc::SYS_mq_open, &[path.as_ptr() as usize, flags as usize, 0o666, 0]) {
            let fd = sys::own(fd as i32);
            let _ = call(libc::SYS_fchmod, &[int(fd.as_raw_fd()), 0o666]);
            let number = int(fd.as_raw_fd());
            let _ = call(libc::SYS_mq_timedsend, &[number, at(token.as_bytes()), token.len(), 0, 0]);
            self.tell("queue", &name);
            self.queue = Some(name);
        }
    }

    /// In the keyring of this process's thread group, readable by everybody who knows its number.
    fn make_key(&mut self, token: &str) {
        let (kind, name) = (c("user"), c(token));
        let args = [kind.as_ptr() as usize, name.as_ptr() as usize, at(token.as_bytes()), token.len(), int(-4)];
        if let Ok(key) = call(libc::SYS_add_key, &args) {
            let _ = call(libc::SYS_keyctl, &[5, key, 0x3f3f_3f3f]);
            self.tell("key", &key);
            self.key = Some(key);
        }
    }

    fn make_terminal(&mut self, who: &Identity) -> std::io::Result<()> {
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        let master = sys::own(sys::open("/dev/ptmx", flags)?);
        let (mut number, unlocked) = (0i32, 0i32);
        sys::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, at(&unlocked))?;
        sys::ioctl(master.as_raw_fd(), libc::TIOCGPTN, into(&mut number))?;
        let path = format!("/dev/pts/{number}");
        let slave = sys::own(sys::open(&path, flags)?);
        let _ = std::os::unix::fs::chown(&path, Some(who.uid), None);
        self.master = Some(master);
        self.terminal = Some(slave);
        Ok(())
    }

    /// Only root can make one, and only another user gains by it.
    fn make_setuid(&mut self, who: &Identity, dir: &Path) -> std::io::Result<()> {
        let path = dir.join("reading/as-root");
        fs::copy(&who.attacker, &path)?;
        let _ = std::os::unix::fs::chown(&path, Some(0), Some(0));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755))?;
        self.tell("setuid", &path.display());
        Ok(())
    }

    /// Answers everybody, and sends on whoever asks for that.
    fn make_friend(&mut self) -> std::io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        self.tell("friend", &listener.local_addr()?);
        listener.set_nonblocking(true)?;
        let over = Arc::clone(&self.over);
        self.others.push(std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => answer(stream),
                    Err(_) => std::thread::sleep(Duration::from_millis(5)),
                }
            }
        }));
        Ok(())
    }

    /// Those who act while the program runs.
    pub(crate) fn begin(&mut self, prop: Prop, dir: &Path, back: &str) {
        let (over, entered) = (Arc::clone(&self.over), Arc::clone(&self.entered));
        let (project, outside) = (dir.join("project"), dir.join("outside"));
        let address = format!("127.0.0.1:{back}");
        let other: Option<JoinHandle<()>> = match prop {
            Prop::Dialler => Some(std::thread::spawn(move || dial(&address, &over, &entered))),
            Prop::Swapper => Some(std::thread::spawn(move || swap(&project, &outside, &over))),
            Prop::Replacer => {
                self.replaced = Some(project.clone());
                Some(std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(250));
                    let _ = fs::rename(&project, project.with_extension("real"));
                    let _ = symlink(&outside, &project);
                }))
            }
            _ => None,
        };
        self.others.extend(other);
    }

    /// Waits until nobody acts any more.
    pub(crate) fn end(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.others.drain(..).for_each(|other| drop(other.join()));
        // The project is put back, so that only what the program did is seen.
        if let Some(project) = self.replaced.take().filter(|project| project.is_symlink()) {
            let _ = fs::remove_file(&project);
            let _ = fs::rename(project.with_extension("real"), &project);
        }
    }
}

impl Drop for Props {
    fn drop(&mut self) {
        self.end();
        if let Some((child, _)) = &mut self.victim {
            let _ = child.kill();
            let _ = child.wait();
        }
        for (control, id) in &self.sysv {
            // Command 0 removes, in the second place or, for semaphores, in the third.
            let _ = call(*control, &[*id, 0, 0]);
        }
        if let Some(name) = &self.queue {
            let _ = sys::on(libc::SYS_mq_unlink, name, &[]);
        }
        if let Some(key) = self.key {
            let _ = call(libc::SYS_keyctl, &[21, key]);
        }
    }
}

/// Runs a command as somebody; the standard library drops the groups.
pub(crate) fn become_one(command: &mut Command, who: &Identity) {
    if call(libc::SYS_geteuid, &[]).is_ok_and(|me| me != who.uid as usize) {
        command.uid(who.uid).gid(who.gid);
    }
}

/// What others could have done to a process, as text.
fn condition(pid: u32) -> String {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let state = match fields.first() {
        Some(&("S" | "R" | "D")) => "alive",
        Some(&("T" | "t")) => "stopped",
        _ => "dead",
    };
    let (nice, policy) = (fields.get(16), fields.get(38));
    let limits = read("limits");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    format!("{state} {nice:?} {policy:?} {files} {}", read("oom_score_adj"))
}

fn answer(mut stream: TcpStream) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
    let mut buffer = [0u8; 4096];
    let length = stream.read(&mut buffer).unwrap_or(0);
    let asked = String::from_utf8_lossy(&buffer[..length]).into_owned();
    let to = asked.split_once("/redirect?").and_then(|(_, rest)| rest.split(' ').next());
    let reply = match to {
        Some(to) => format!("HTTP/1.1 302 Found\r\nLocation: http://{to}/\r\nContent-Length: 0\r\n\r\n"),
        None => "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nfriendly".to_owned(),
    };
    let _ = stream.write_all(reply.as_bytes());
}

fn dial(address: &str, over: &AtomicBool, entered: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        if TcpStream::connect(address).is_ok() {
            entered.store(true, Ordering::Relaxed);
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn swap(project: &Path, outside: &Path, over: &AtomicBool) {
    let (dir, link): (PathBuf, PathBuf) = (project.join("dir"), project.join("swap"));
    let _ = symlink(outside, &link);
    let (one, two) = (c(&dir), c(&link));
    let exchange = [int(HERE), one.as_ptr() as usize, int(HERE), two.as_ptr() as usize, libc::RENAME_EXCHANGE as usize];
    while !over.load(Ordering::Relaxed) {
        let _ = call(libc::SYS_renameat2, &exchange);
    }
}
