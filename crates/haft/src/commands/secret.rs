//! `haft secret`: the encrypted store, for people.

use crate::app::{Failure, Ground};
use crate::cli::{Common, SecretAction};
use crate::started_by::require_user;
use crate::style::{self, FAINT, GOOD, NAME, paint};
use crate::time;
use haft_core::CallError;
use haft_core::host::HostRule;
use haft_runtime::secrets::{Kept, SecretSource, VALUE_MAX};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};

/// Does one thing with secrets.
pub(super) fn run(common: &Common, action: Option<SecretAction>) -> Result<u8, Failure> {
    let ground = Ground::find(common)?;
    let action = action.unwrap_or(SecretAction::List);
    if !matches!(action, SecretAction::List | SecretAction::Show { reveal: false, .. }) {
        require_user()?;
    }
    match action {
        SecretAction::List => list(common, &ground),
        SecretAction::Set { name, host, stdin } => set(common, &ground, &name, (&host, stdin)),
        SecretAction::Remove { name } => remove(common, &ground, &name),
        SecretAction::Show { name, reveal } => show(common, &ground, &name, reveal),
    }
}

/// What is known of a secret, without its value.
struct Known {
    name: String,
    from: Vec<&'static str>,
    hosts: Vec<String>,
    at_ms: Option<i64>,
}

impl Known {
    fn of(name: &str, kept: Option<&Kept>, source: Option<&SecretSource>) -> Self {
        let from = [
            (std::env::var_os(name).is_some(), "environment"),
            (kept.is_some(), "store"),
            (source.is_some_and(|source| source.command.is_some()), "command"),
        ];
        let said = source.map(|source| &source.hosts).filter(|hosts| !hosts.is_empty());
        let hosts = said.or_else(|| kept.map(|kept| &kept.hosts));
        Self {
            name: name.to_owned(),
            from: from.into_iter().filter(|(is, _)| *is).map(|(_, from)| from).collect(),
            hosts: hosts.into_iter().flatten().map(ToString::to_string).collect(),
            at_ms: kept.map(|kept| kept.at_ms),
        }
    }

    fn json(&self) -> Value {
        json!({"name": self.name, "from": self.from, "hosts": self.hosts, "set_ms": self.at_ms})
    }

    fn print(&self) {
        let hosts = if self.hosts.is_empty() { "bound to no host".to_owned() } else { self.hosts.join(", ") };
        let at = self.at_ms.map(|at| format!(" (set {})", time::shown(at))).unwrap_or_default();
        let from = if self.from.is_empty() { "nowhere to be found".to_owned() } else { self.from.join(", ") };
        style::out(&format!("{}  {from}{}  {hosts}", paint(NAME, &self.name), paint(FAINT, at)));
    }
}

type Sources = BTreeMap<String, SecretSource>;

fn sources(ground: &Ground) -> Result<Sources, Failure> {
    Ok(ground.resolve(&ground.store()?)?.settings.secrets)
}

fn list(common: &Common, ground: &Ground) -> Result<u8, Failure> {
    let (kept, sources) = (ground.vault().all()?, sources(ground)?);
    let names: BTreeSet<&String> = kept.keys().chain(sources.keys()).collect();
    let all: Vec<Known> = names.iter().map(|name| Known::of(name, kept.get(*name), sources.get(*name))).collect();
    if common.json() {
        style::pretty(&all.iter().map(Known::json).collect::<Vec<_>>());
        return Ok(0);
    }
    if all.is_empty() {
        style::note("no secrets are kept; `haft secret set NAME --host api.example.com` keeps one");
    }
    all.iter().for_each(Known::print);
    Ok(0)
}

fn set(common: &Common, ground: &Ground, name: &str, (hosts, stdin): (&[String], bool)) -> Result<u8, Failure> {
    let rule = |host: &String| host.parse::<HostRule>().map_err(|error| CallError::invalid(error.to_string()));
    let hosts = hosts.iter().map(rule).collect::<Result<Vec<_>, _>>()?;
    if !haft_runtime::secrets::is_name(name) {
        return Err(CallError::invalid(format!("`{}` is no name for a secret", style::inert(name)))
            .hint("it is written like a variable's: A-Z, digits and _, and no digit first; HAFT_*, PATH and the like are none")
            .into());
    }
    let value = if stdin { read_all(std::io::stdin())? } else { asked(name)? };
    let bound = !hosts.is_empty();
    let short = value.trim_end_matches(['\r', '\n']).len() < haft_runtime::secrets::MASKED_MIN;
    let before = ground.vault().set(name, &value, hosts, haft_runtime::now_ms())?;
    if short {
        style::warn("it has fewer than 4 bytes: so short a value is told from nothing, and is masked nowhere");
    }
    if common.json() {
        style::json(&json!({"set": name, "replaced": before}));
        return Ok(0);
    }
    let verb = if before { "replaced" } else { "kept" };
    style::out(&format!("{} {name}", paint(GOOD, verb)));
    if !bound {
        style::note("it is bound to no host: tools that declare it get it, but `secret:NAME` in requests is refused");
    }
    Ok(0)
}

fn remove(common: &Common, ground: &Ground, name: &str) -> Result<u8, Failure> {
    if !ground.vault().remove(name)? {
        return Err(CallError::not_found(format!("no secret `{}` is kept", style::inert(name)))
            .hint("`haft secret list` names those that are")
            .into());
    }
    if common.json() {
        style::json(&json!({ "removed": name }));
    } else {
        style::out(&format!("{} {name}", paint(GOOD, "removed")));
    }
    Ok(0)
}

fn show(common: &Common, ground: &Ground, name: &str, reveal: bool) -> Result<u8, Failure> {
    let (kept, sources) = (ground.vault().all()?, sources(ground)?);
    let known = Known::of(name, kept.get(name), sources.get(name));
    if known.from.is_empty() {
        return Err(CallError::not_found(format!("there is no secret `{}`", style::inert(name))).into());
    }
    if !reveal {
        if common.json() {
            style::json(&known.json());
        } else {
            known.print();
        }
        return Ok(0);
    }
    let Some(kept) = kept.get(name) else {
        return Err(CallError::invalid("only what the store keeps can be shown").into());
    };
    // Not into a pipe, a file or a program's hands: for eyes alone.
    if common.json() || !std::io::stdout().is_terminal() {
        return Err(CallError::invalid("a secret is shown on a terminal alone").hint("run it without a pipe").into());
    }
    let answer = at_terminal(&format!("Show the value of {name} here? Type yes: "), false)?;
    if answer.trim() != "yes" {
        return Err(CallError::new(haft_core::ErrorKind::Rejected, "not shown").into());
    }
    style::out_foreign(kept.reveal());
    Ok(0)
}

fn read_all(source: impl Read) -> Result<String, CallError> {
    let mut text = String::new();
    // A line end more is no part of it.
    let read = source.take(VALUE_MAX as u64 + 3).read_to_string(&mut text);
    read.map_err(|error| CallError::invalid(format!("stdin: {error}")))?;
    Ok(text)
}

fn asked(name: &str) -> Result<String, CallError> {
    at_terminal(&format!("Value of {name} (it is not shown): "), true)
}

/// One line from the terminal, seen or unseen.
fn at_terminal(prompt: &str, unseen: bool) -> Result<String, CallError> {
    let nobody = |_| CallError::invalid("there is no terminal to ask at").hint("give the value on stdin with --stdin");
    let mut tty = File::options().read(true).write(true).open("/dev/tty").map_err(nobody)?;
    let fail = |error: std::io::Error| CallError::failed(format!("the terminal cannot be used: {error}"));
    let quiet = unseen.then(|| Quiet::new(&tty)).transpose().map_err(fail)?;
    tty.write_all(prompt.as_bytes()).map_err(fail)?;
    let mut line = String::new();
    let copy = tty.try_clone().map_err(fail)?;
    BufReader::new(copy).take(VALUE_MAX as u64 + 3).read_line(&mut line).map_err(fail)?;
    drop(quiet);
    if unseen {
        let _ = tty.write_all(b"\n");
    }
    Ok(line)
}

/// A terminal that does not show what is typed, as long as this lives.
struct Quiet {
    tty: File,
    before: rustix::termios::Termios,
}

impl Quiet {
    fn new(tty: &File) -> std::io::Result<Self> {
        let tty = tty.try_clone()?;
        let before = rustix::termios::tcgetattr(&tty)?;
        let mut silent = before.clone();
        silent.local_modes.remove(rustix::termios::LocalModes::ECHO);
        rustix::termios::tcsetattr(&tty, rustix::termios::OptionalActions::Flush, &silent)?;
        Ok(Self { tty, before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(&self.tty, rustix::termios::OptionalActions::Now, &self.before);
    }
}
