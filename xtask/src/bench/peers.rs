//! Other sandboxes, each told to start `true` with as much the same permissions as it has words for: the
//! system's programs and a few files of `/etc` to read, the project to write, a `/tmp`, `/proc` and `/dev` of
//! its own, no network, no capabilities, nothing of the environment.

use super::haft::Haft;
use crate::needs::{BWRAP, FIREJAIL, NSJAIL, Need, SOCAT, SRT};
use crate::sh;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TRUE: &str = "/bin/true";
const PATH: &str = "/usr/bin:/bin";
/// A home that the program finds empty.
const INSIDE_HOME: &str = "/home/somebody";

/// What can be measured, and sentences about what cannot.
pub(super) struct Peers {
    pub(super) there: Vec<Peer>,
    pub(super) missing: Vec<String>,
}

/// One way to start `true`.
pub(super) struct Peer {
    /// By which the benchmark calls it.
    pub(super) name: &'static str,
    /// As it is shown.
    pub(super) shown: String,
    argv: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Peer {
    pub(super) fn json(&self) -> Value {
        let env: serde_json::Map<String, Value> =
            self.env.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        json!({"name": self.name, "argv": self.argv, "env": env})
    }
}

/// The command line of a peer: from the program and the project.
type Make = fn(&Haft, &Path, &Path) -> Result<Vec<String>>;

/// Everybody who is here or can be installed, and can start `true`.
pub(super) fn peers(haft: &Haft, project: &Path) -> Result<Peers> {
    let mut peers = Peers { there: own(haft), missing: Vec::new() };
    let others: [(&'static str, &[&Need], Make); 4] = [
        ("bwrap", &[&BWRAP], bwrap),
        ("firejail", &[&FIREJAIL], firejail),
        ("nsjail", &[&NSJAIL], nsjail),
        ("srt", &[&BWRAP, &SOCAT, &SRT], srt),
    ];
    for (name, needs, make) in others {
        match needs.iter().map(|need| need.meet()).collect::<Result<Vec<PathBuf>, String>>() {
            Ok(programs) => {
                let program = programs.last().context("a peer needs a program")?;
                let argv = make(haft, program, project)?;
                let path = std::env::var("PATH").unwrap_or_default();
                let env = vec![("PATH", path), ("HOME", haft.program().1.display().to_string())];
                peers.there.push(Peer { name, shown: version(name, program), argv, env });
            }
            Err(sentence) => peers.missing.push(sentence),
        }
    }
    let works = |peer: &Peer| -> Result<(), String> {
        let (program, args) = peer.argv.split_first().ok_or("it has no program")?;
        let mut command = Command::new(program);
        command.args(args).current_dir(project).env_clear().envs(peer.env.iter().map(|(name, value)| (name, value)));
        sh::capture(&mut command).map(drop).map_err(|error| error.to_string())
    };
    peers.there.retain(|peer| match works(peer) {
        Ok(()) => true,
        Err(error) => {
            peers.missing.push(format!("could not: {} does not start `true` here: {error}", peer.shown));
            false
        }
    });
    Ok(peers)
}

fn version(name: &str, program: &Path) -> String {
    let said = sh::capture(&mut sh::command(program, &["--version"])).unwrap_or_default();
    let number = said.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let full = if name == "srt" { "@anthropic-ai/sandbox-runtime" } else { name };
    format!("{full} {}", number.unwrap_or_default()).trim_end().to_owned()
}

/// haft as a program: with the same permissions as everybody here, and as people type it, with its view of
/// the project and whatever toolchains are in the home of who runs this.
fn own(haft: &Haft) -> Vec<Peer> {
    let (program, home) = haft.program();
    let argv = |more: &[&str]| {
        let confine = ["confine", "--write", "."];
        let words = confine.iter().chain(more).chain(&["--", TRUE]).map(|word| (*word).to_owned());
        std::iter::once(program.display().to_string()).chain(words).collect::<Vec<_>>()
    };
    let bare = vec![("PATH", PATH.to_owned()), ("HOME", home.display().to_string())];
    let given = ["PATH", "HOME"].map(|name| (name, std::env::var(name).unwrap_or_default())).to_vec();
    let peer = |name, shown: &str, argv, env| Peer { name, shown: shown.to_owned(), argv, env };
    vec![
        peer("confine", "`haft confine --direct`", argv(&["--direct"]), bare.clone()),
        peer("confine_layered", "`haft confine`", argv(&[]), bare),
        peer("confine_given", "`haft confine` with the toolchains of this home", argv(&[]), given),
    ]
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// What of `/etc` a program sees that haft confines: asked of haft, so that the peer gets the same.
fn etc(haft: &Haft) -> Result<Vec<String>> {
    let (program, home) = haft.program();
    let mut look = Command::new(program);
    look.args(["confine", "--", "/bin/ls", "/etc"]).env("HOME", home);
    Ok(sh::capture(&mut look)?.lines().map(|name| format!("/etc/{name}")).collect())
}

/// A link as it is, anything else by what a flag mounts.
fn place(argv: &mut Vec<String>, flag: &str, path: &str) {
    match fs::read_link(path) {
        Ok(target) => argv.extend(["--symlink".to_owned(), target.display().to_string(), path.to_owned()]),
        Err(_) if Path::new(path).exists() => argv.extend([flag.to_owned(), path.to_owned(), path.to_owned()]),
        Err(_) => {}
    }
}

fn bwrap(haft: &Haft, program: &Path, project: &Path) -> Result<Vec<String>> {
    let project = project.display().to_string();
    let mut argv = vec![program.display().to_string()];
    argv.extend(words("--unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup-try"));
    argv.extend(words("--die-with-parent --new-session --clearenv --cap-drop ALL"));
    argv.extend(["--setenv", "PATH", PATH, "--setenv", "HOME", INSIDE_HOME].map(str::to_owned));
    for path in ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
        place(&mut argv, "--ro-bind", path);
    }
    for path in etc(haft)? {
        place(&mut argv, "--ro-bind", &path);
    }
    argv.extend(words("--proc /proc --dev /dev --tmpfs /tmp --dir /run --dir /var --tmpfs"));
    argv.push(INSIDE_HOME.to_owned());
    argv.extend(["--bind", &project, &project, "--remount-ro", "/", "--chdir", &project, TRUE].map(str::to_owned));
    Ok(argv)
}

/// It begins with everything and takes away, so its policy has another form; this comes near.
#[expect(clippy::unnecessary_wraps, reason = "a peer is made like any other")]
fn firejail(_: &Haft, program: &Path, project: &Path) -> Result<Vec<String>> {
    let mut argv = vec![program.display().to_string()];
    argv.extend(words("--quiet --noprofile --net=none --private-dev --private-tmp --caps.drop=all --nonewprivs"));
    argv.extend(words("--seccomp --ipc-namespace --read-only=/"));
    argv.extend([format!("--read-write={}", project.display()), "--".to_owned(), TRUE.to_owned()]);
    Ok(argv)
}

fn nsjail(haft: &Haft, program: &Path, project: &Path) -> Result<Vec<String>> {
    let mut argv = vec![program.display().to_string()];
    argv.extend(words("--quiet --mode o --disable_proc --tmpfsmount /tmp"));
    for path in ["/usr", "/bin", "/sbin", "/lib", "/lib64"].map(str::to_owned).into_iter().chain(etc(haft)?) {
        if Path::new(&path).exists() {
            argv.extend(["--bindmount_ro".to_owned(), path]);
        }
    }
    argv.extend(["--bindmount".to_owned(), project.display().to_string(), "--".to_owned(), TRUE.to_owned()]);
    Ok(argv)
}

fn srt(haft: &Haft, program: &Path, project: &Path) -> Result<Vec<String>> {
    let settings = haft.program().1.join("srt.json");
    let rules = json!({
        "network": {"allowedDomains": [], "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": [project], "denyWrite": []},
    });
    fs::write(&settings, rules.to_string())?;
    Ok([program, Path::new("--settings"), &settings, Path::new(TRUE)].map(|word| word.display().to_string()).to_vec())
}
