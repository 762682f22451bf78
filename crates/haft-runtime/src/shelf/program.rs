//! A manifest's program, held to what the manifest declares and run to its end: what commands and functions share.

use super::made::Made;
use super::standing::{Accepted, Care};
use crate::confined::command::{Ending, Kept, Readied, Reins, carry};
use crate::confined::terms::Settled;
use crate::confined::{environment, explain, filter};
use crate::scene::Scene;
use crate::secrets::{Cut, Used};
use crate::tools::running::Stage;
use haft_core::manifest::Permissions;
use haft_core::preview::{cut, inert};
use haft_core::{CallError, ErrorKind};
use haft_sandbox::{Bounds, Program};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much of what is complained about is kept: its end.
const COMPLAINTS_MAX: usize = 4 << 10;
/// How much of it a sentence shows.
const SAID_COLUMNS: usize = 600;
/// The most that goes in.
pub(super) const STDIN_MAX: usize = 16 << 20;

/// A program to be run, and under what.
pub(super) struct Order<'o> {
    pub(super) permissions: &'o Permissions,
    /// What it has to read besides, to be itself.
    pub(super) made_of: &'o [PathBuf],
    pub(super) program: Program,
    pub(super) stdin: Option<&'o [u8]>,
    pub(super) timeout: Duration,
    /// The memory it may use, where that is less than for every program.
    pub(super) memory: Option<u64>,
    /// The exit statuses that are no failure.
    pub(super) fine: &'o [i32],
    /// What it was accepted as.
    pub(super) pinned: Option<Arc<Accepted>>,
}

/// What came of it.
pub(super) struct Came {
    pub(super) kept: Kept,
    pub(super) ending: Ending,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Tail,
    /// Whether it was ended, and did not end by itself.
    pub(super) ended: bool,
}

/// How a manifest's program is held in this project, for this caller.
pub(super) fn settle(
    scene: &Scene,
    (permissions, made_of): (&Permissions, &[PathBuf]),
    staging: &Path,
) -> Result<Settled, CallError> {
    let rules = scene.web().rules(&scene.call().caller, scene.tool());
    let settled = scene.terms().settle_declared(scene.workspace(), permissions, (made_of, &rules), staging);
    settled.map_err(|error| explain(&error))
}

/// Lets the program see what was accepted, whatever becomes of the files that it was accepted as.
pub(super) fn stand_in(scene: &Scene, settled: &mut Settled, pinned: Option<&Accepted>) -> Result<(), CallError> {
    let Some(pinned) = pinned else { return Ok(()) };
    let confinement = &mut settled.plan.confinement;
    let places: Vec<PathBuf> = confinement.read.iter().chain(&confinement.write).cloned().collect();
    confinement.stand_in = pinned.stand_ins(&scene.terms().data_dir, &places)?;
    Ok(())
}

/// Runs it to its end. For worker threads.
pub(super) fn run(stage: &Stage, order: Order<'_>) -> Result<Came, CallError> {
    let scene = &stage.scene;
    let begun = Instant::now();
    // What writes nothing needs no layers.
    let staging =
        if order.permissions.fs.write.is_empty() { None } else { Some(scene.terms().stage(&scene.call().id)) };
    let staging = staging.transpose().map_err(|error| {
        CallError::internal(format!("no room for what it changes: {error}")).hint("check the data directory")
    })?;
    let at = staging.as_ref().map_or(Path::new(""), |staging| staging.path());
    let mut settled = settle(scene, (order.permissions, order.made_of), at)?;
    stand_in(scene, &mut settled, order.pinned.as_deref())?;
    let bounds = settled.plan.confinement.bounds;
    let memory = order.memory.or(bounds.memory);
    settled.plan.confinement.bounds = Bounds { wall: Some(order.timeout), memory, ..bounds };
    let stdin = order.stdin.map(filter::placed).transpose();
    let stdin = stdin.map_err(|error| CallError::internal(format!("no room for its input: {error}")))?;
    let readied = Readied { settled, program: order.program, staging, stdin, begun };
    let (mut stdout, mut stderr) = (Vec::new(), Tail::default());
    let mut sink = |number: usize, bytes: &[u8]| match number {
        0 => stdout.extend_from_slice(bytes),
        _ => stderr.push(bytes, COMPLAINTS_MAX),
    };
    let reins = Reins { stop: &|| stage.halted().is_some(), signal: &|| None, begun: &|| {} };
    if let Some(pinned) = &order.pinned {
        pinned.check(Care::Fresh)?;
    }
    let done = carry(readied, &reins, &mut sink)?;
    let (kept, mut ending) = done.settle_within(order.fine, stage.halted(), &|path| scene.shown(path));
    if let Some(error) = ending.error.as_mut().filter(|error| error.kind == ErrorKind::Timeout) {
        *error = late(order.timeout, kept.staging.is_some());
    }
    ending.warnings.extend(scene.used().left_in(&kept.changes, &|path| scene.shown(path)));
    let by_itself = |code: i32| ending.error.is_none() || !order.fine.contains(&code);
    let ended = stage.halted().is_some() || !ending.exit_code.is_some_and(by_itself);
    Ok(Came { kept, ending, stdout, stderr, ended })
}

/// What is said of what took too long.
pub(super) fn late(timeout: Duration, changes: bool) -> CallError {
    let kept = if changes { ", and what it had changed was discarded" } else { "" };
    let message = format!("it did not finish within {} ms; it was ended{kept}", timeout.as_millis());
    CallError::new(ErrorKind::Timeout, message).hint("`timeout_ms` in its manifest says how long it may take")
}

/// What is kept only by its end.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    /// Whether there was more before it.
    cut: bool,
}

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8], most: usize) {
        self.bytes.extend_from_slice(&bytes[bytes.len().saturating_sub(most)..]);
        let over = self.bytes.len().saturating_sub(most);
        self.bytes.drain(..over);
        self.cut |= over > 0 || bytes.len() > most;
    }

    /// What is left, without the secrets of the call. `ended` says that whoever printed it was ended, perhaps in the middle
    /// of a word.
    pub(crate) fn masked(mut self, used: &Used, ended: bool) -> Vec<u8> {
        used.mask_bytes(&mut self.bytes, Cut { front: self.cut, back: ended });
        self.bytes
    }
}

/// The end of what was printed, as a sentence shows it.
pub(crate) fn said(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = inert(text.trim());
    let from = text.char_indices().rev().nth(SAID_COLUMNS).map(|(at, _)| at);
    match from {
        Some(at) => format!("…{}", &text[at..]),
        None => cut(&text, SAID_COLUMNS + 1),
    }
}

/// The variables of a manifest's program: the harmless ones, the secrets it declares, and its own.
pub(super) fn environment(
    project: &Path,
    secrets: &BTreeMap<String, String>,
    own: &[(String, String)],
) -> Result<Vec<(OsString, OsString)>, CallError> {
    let mut env = environment::make(&[], &[]).map_err(|error| CallError::internal(error.to_string()))?;
    env.retain(|(name, _)| name != "PATH");
    env.push(("PATH".into(), environment::outside(project).path.clone()));
    let all = secrets.iter().chain(own.iter().map(|(name, value)| (name, value)));
    for (name, value) in all {
        check_variable(name, value)?;
        env.retain(|(known, _)| known != name.as_str());
        env.push((name.into(), value.into()));
    }
    Ok(env)
}

fn check_variable(name: &str, value: &str) -> Result<(), CallError> {
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !first || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let shown = cut(&inert(name), 40);
        return Err(CallError::invalid(format!("`{shown}` is not the name of a variable"))
            .hint("letters, digits and `_`, and no digit first"));
    }
    if value.contains('\0') {
        return Err(CallError::invalid(format!("the variable {name} has a NUL in it, which no variable can hold")));
    }
    Ok(())
}

/// How long a tool may take.
pub(super) fn timeout(made: &Made) -> Duration {
    Duration::from_millis(made.manifest().timeout_ms().clamp(1, haft_core::manifest::TIMEOUT_MAX_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_complaints_is_kept() {
        let mut kept = Tail::default();
        kept.push(b"abc", 5);
        assert!(!kept.cut);
        kept.push(b"defg", 5);
        assert!(kept.cut && kept.bytes == b"cdefg");
        kept.push(b"0123456789", 5);
        assert_eq!(kept.bytes, b"56789");
        let mut at_once = Tail::default();
        at_once.push(b"0123456789", 5);
        assert!(at_once.cut && at_once.bytes == b"56789");
        assert_eq!(said(b"  one\ntwo \x1b[0m\n"), "one↵two \\u{1b}[0m");
        assert_eq!(said("x".repeat(5000).as_bytes()).chars().count(), SAID_COLUMNS + 2);
    }

    #[test]
    fn variables_have_names() {
        let env = |name: &str, value: &str| {
            environment(Path::new("/project"), &BTreeMap::new(), &[(name.to_owned(), value.to_owned())])
        };
        let made = env("MODE", "fast").unwrap();
        assert!(made.contains(&("MODE".into(), "fast".into())));
        assert!(!made.iter().any(|(name, _)| name == "CARGO_PKG_NAME"));
        for bad in ["", "1X", "A B", "A=B", "Ä", "A\0"] {
            assert!(env(bad, "x").is_err(), "{bad:?}");
        }
        assert!(env("A", "x\0y").is_err());
    }
}
