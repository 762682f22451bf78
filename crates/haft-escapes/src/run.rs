//! Starting a program at a site, confined or not, and hearing what it says.

use crate::acts::{Act, Prop};
use crate::props::become_one;
use crate::site::{Identity, Site};
use crate::sys;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Whether anything stands between the program and the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// The control: an attempt that fails here proves nothing.
    Free,
    /// Under `haft confine`.
    Confined,
}

/// How a run ended.
pub(crate) struct Ran {
    /// As a shell would say it; none if it had to be killed.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// No run takes this long by itself.
const PATIENCE: Duration = Duration::from_secs(25);
/// More output than this is read and forgotten.
const KEPT_OUTPUT: usize = 1 << 20;

/// Makes an attempt.
pub(crate) fn attempt(who: &Identity, site: &mut Site, act: &Act, mode: Mode) -> Ran {
    let mut words = vec![who.attacker.display().to_string(), "--attack".to_owned(), act.name.to_owned()];
    words.extend(site.facts.iter().map(|(key, value)| format!("{key}={value}")));
    let mut command = prepare(who, site, act.flags, &words, mode);
    let terminal = site.props.terminal.as_ref().and_then(|fd| fd.as_fd().try_clone_to_owned().ok());
    let number = terminal.as_ref().map(|_| 0);
    command.stdin(terminal.map_or_else(Stdio::null, Stdio::from));
    sys::inherit(&mut command, site.inherited(), number);
    let (dir, back) = (site.dir.clone(), site.fact("back").to_owned());
    let begun = command.spawn();
    site.props.begin(act.prop, &dir, &back);
    let ran = finish(begun);
    if act.prop != Prop::None {
        site.props.end();
    }
    ran
}

/// Runs a shell script, as a job that has to work.
pub(crate) fn script(who: &Identity, site: &Site, flags: &[&str], text: &str, mode: Mode) -> Ran {
    let words = ["/bin/sh".to_owned(), "-c".to_owned(), site.fill(text)];
    let mut command = prepare(who, site, flags, &words, mode);
    finish(command.stdin(Stdio::null()).spawn())
}

fn prepare(who: &Identity, site: &Site, flags: &[&str], words: &[String], mode: Mode) -> Command {
    let mut command = match mode {
        // A shell in between, that holds the caller's environment as haft does.
        Mode::Free => {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "\"$@\"; exit $?", "sh"]);
            command
        }
        Mode::Confined => {
            let mut command = Command::new(&who.haft);
            command.arg("confine").args(grants(who, site, flags)).arg("--");
            command
        }
    };
    command.args(words).env_clear().envs(environment(site)).current_dir(site.dir.join("project"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    become_one(&mut command, who);
    command
}

/// What every run is granted, and what its act adds.
fn grants(who: &Identity, site: &Site, flags: &[&str]) -> Vec<String> {
    let tools = who.attacker.parent().unwrap_or(&who.base).display().to_string();
    let mut words: Vec<String> = Vec::new();
    for (flag, value) in [("--read", site.fact("reading")), ("--read", &tools), ("--write", site.fact("project"))] {
        words.extend([flag.to_owned(), value.to_owned()]);
    }
    for (flag, value) in [("--net", "none"), ("--wall", "15")] {
        if !flags.contains(&flag) {
            words.extend([flag.to_owned(), value.to_owned()]);
        }
    }
    words.extend(flags.iter().map(|flag| site.fill(flag)));
    words
}

/// The environment of a careless caller.
fn environment(site: &Site) -> Vec<(&'static str, String)> {
    let socket = site.dir.join("outside/s.sock").display().to_string();
    vec![
        ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("HOME", site.fact("home").to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("FOO_TOKEN", site.token.clone()),
        ("GITHUB_TOKEN", site.token.clone()),
        ("AWS_SECRET_ACCESS_KEY", site.token.clone()),
        ("SSH_AUTH_SOCK", socket.clone()),
        ("DOCKER_HOST", format!("unix://{socket}")),
        ("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={socket}")),
    ]
}

fn finish(begun: std::io::Result<Child>) -> Ran {
    let mut child = match begun {
        Ok(child) => child,
        Err(error) => return Ran { code: None, stdout: String::new(), stderr: error.to_string() },
    };
    let out = child.stdout.take().map(|pipe| std::thread::spawn(|| hear(pipe)));
    let err = child.stderr.take().map(|pipe| std::thread::spawn(|| hear(pipe)));
    let status = wait(&mut child);
    let text = |ear: Option<std::thread::JoinHandle<String>>| ear.and_then(|ear| ear.join().ok()).unwrap_or_default();
    let code = status.map(|status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
    Ran { code, stdout: text(out), stderr: text(err) }
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

fn hear(mut pipe: impl Read + AsRawFd) -> String {
    let (mut kept, mut buffer) = (Vec::new(), vec![0u8; 65536]);
    while let Ok(length) = pipe.read(&mut buffer) {
        if length == 0 {
            break;
        }
        let room = KEPT_OUTPUT.saturating_sub(kept.len()).min(length);
        kept.extend_from_slice(&buffer[..room]);
    }
    String::from_utf8_lossy(&kept).into_owned()
}
