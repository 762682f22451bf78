//! A hook that is a program: JSON in, JSON out. It has the environment of shell commands, and a process group of its own
//! that ends with it, with its time, or with its call.

use super::{ANSWER_MAX, REASON_MAX};
use crate::confined::Terms;
use crate::confined::environment;
use haft_core::preview::{cut, inert};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How much of what it complains about is kept.
const COMPLAINT_MAX: u64 = 64 << 10;
/// Names under a project where agents cannot write.
const OWN: &[&str] = &[".haft", ".glee"];

/// A process group that ends when this does. Emptied before its leader is reaped: the number may be somebody else's
/// after that.
#[derive(Clone)]
struct Group(Arc<Mutex<Option<Pid>>>);

impl Group {
    fn end(&self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = held.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Ends the group when nobody waits for the answer any more.
struct Leash(Group);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs the program and returns what it prints. If this is dropped, the program is ended with all that it started.
pub(super) async fn ask(command: &[String], root: &Path, terms: &Terms, given: Vec<u8>) -> Result<Vec<u8>, String> {
    let (program, args) = command.split_first().ok_or("it names no program")?;
    if let Some(inside) = command.iter().find_map(|word| changeable(word, root)) {
        return Err(format!(
            "{} lies in the project, where agents may change it; put it outside, or below .haft",
            inert(&inside.to_string_lossy())
        ));
    }
    let mut child = Command::new(program)
        .args(args)
        .current_dir(root)
        .env_clear()
        .envs(variables(root, terms)?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let group = Group(Arc::new(Mutex::new(pid)));
    let leash = Leash(group.clone());
    let talked = tokio::task::spawn_blocking(move || {
        let said = talk(&mut child, given);
        if said.is_err() {
            group.end();
        }
        let status = reap(&mut child, &group);
        let (answer, complaints) = said?;
        judged(status, answer, &complaints.join().unwrap_or_default())
    });
    let answer = talked.await.map_err(|crash| format!("asking it crashed: {crash}"))?;
    drop(leash);
    answer
}

/// The environment that shell commands have, with a PATH that leads nowhere into the project.
fn variables(root: &Path, terms: &Terms) -> Result<Vec<(OsString, OsString)>, String> {
    let mut env = environment::make(&terms.pass, &[]).map_err(|error| error.to_string())?;
    env.retain(|(name, _)| name != "PATH" && name != "TMPDIR");
    env.push(("PATH".into(), environment::outside(root).path.clone()));
    Ok(env)
}

/// A word that names a file of the project which agents may change.
fn changeable(word: &str, root: &Path) -> Option<PathBuf> {
    let place = root.join(word).canonicalize().ok().filter(|place| place.is_file())?;
    let root = root.canonicalize().ok()?;
    let inside = place.strip_prefix(&root).ok()?;
    let own = inside.components().any(|part| OWN.iter().any(|own| part.as_os_str() == *own));
    (!own).then_some(place)
}

/// Gives it what it is asked, and hears it out. What it complains about is whole once its group has ended.
fn talk(child: &mut Child, given: Vec<u8>) -> Result<(Vec<u8>, JoinHandle<String>), String> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        return Err("it cannot be talked to".to_owned());
    };
    // A program need not read what it is given, nor print before it has.
    std::thread::spawn(move || drop(stdin.write_all(&given)));
    let complaints = std::thread::spawn(move || {
        let mut complaint = Vec::new();
        let _ = stderr.take(COMPLAINT_MAX).read_to_end(&mut complaint);
        String::from_utf8_lossy(&complaint).into_owned()
    });
    let mut answer = Vec::new();
    let read = stdout.take(ANSWER_MAX as u64 + 1).read_to_end(&mut answer);
    if answer.len() > ANSWER_MAX {
        return Err(format!("it prints more than {} MiB", ANSWER_MAX >> 20));
    }
    read.map_err(|error| format!("what it prints cannot be read: {error}"))?;
    Ok((answer, complaints))
}

/// Waits until it has ended, and leaves it to be reaped.
fn exited(child: &Child) -> bool {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let ended = |pid| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    pid.is_some_and(|pid| ended(pid).is_ok())
}

/// Waits for its end, and ends what it left behind.
fn reap(child: &mut Child, group: &Group) -> std::io::Result<std::process::ExitStatus> {
    exited(child);
    group.end();
    child.wait()
}

fn judged(
    status: std::io::Result<std::process::ExitStatus>,
    answer: Vec<u8>,
    complaint: &str,
) -> Result<Vec<u8>, String> {
    let status = status.map_err(|error| format!("how it ended is not known: {error}"))?;
    if status.success() {
        return Ok(answer);
    }
    let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let said = if last.is_empty() { String::new() } else { format!(": {}", cut(&inert(last), REASON_MAX)) };
    Err(format!("it ended with {status}{said}"))
}
