//! `haft mcp install`: haft in a client's own configuration. Shows what it will write, asks, and keeps what was there.

mod clients;
mod json;
mod text;

use super::whole;
use crate::app::Failure;
use crate::cli::{Common, McpClient};
use crate::style::{self, GOOD, paint};
use clients::{Form, Target};
use haft_core::{CallError, ErrorKind};
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

/// Larger files are no configuration.
const FILE_MAX: u64 = 4 << 20;

/// Enters haft in a client's configuration.
pub(super) fn run(common: &Common, client: McpClient, print: bool, yes: bool) -> Result<u8, Failure> {
    let target = clients::target(client, common)?;
    let old = read(&target.file)?;
    let new = match target.form {
        Form::Json { under } => json::entered(&old, under, &target.entry),
        Form::Toml => text::toml(&old, &target.snippet()),
        Form::Yaml => text::yaml(&old, &target.entry),
    };
    let new = new.map_err(|why| {
        CallError::conflict(format!("{}: {why}", target.file.display()))
            .hint(format!("add this by hand:\n{}", target.snippet()))
    })?;
    if print {
        show(common, &target);
        return Ok(0);
    }
    if new == old {
        return Ok(said(common, &target, "already there", None));
    }
    if !yes && !confirmed(&target, old.is_empty())? {
        return Err(CallError::new(ErrorKind::Rejected, "nothing was written").into());
    }
    let backup = write(&target.file, &old, &new)?;
    Ok(said(common, &target, "written", backup.as_deref()))
}

/// What is there; nothing, if there is no file.
fn read(file: &Path) -> Result<String, CallError> {
    let explain = |why: String| CallError::failed(format!("{}: {why}", file.display()));
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(explain(error.to_string())),
        Ok(meta) if !meta.is_file() => return Err(explain("it is not a file".to_owned())),
        Ok(meta) if meta.len() > FILE_MAX => return Err(explain("it is too large to be a configuration".to_owned())),
        Ok(_) => {}
    }
    std::fs::read_to_string(file).map_err(|error| explain(error.to_string()))
}

fn show(common: &Common, target: &Target) {
    if common.json() {
        style::json(
            &json!({"file": target.file, "name": clients::NAME, "entry": target.entry, "text": target.snippet()}),
        );
    } else {
        style::note(&format!("in {}:", style::inert(&target.file.display().to_string())));
        style::out(&target.snippet());
    }
}

fn said(common: &Common, target: &Target, state: &str, backup: Option<&Path>) -> u8 {
    if common.json() {
        style::json(&json!({"file": target.file, "state": state, "backup": backup}));
        return 0;
    }
    style::out(&format!("{}: {}", paint(GOOD, state), style::inert(&target.file.display().to_string())));
    if let Some(backup) = backup {
        style::note(&format!("what was there before: {}", style::inert(&backup.display().to_string())));
    }
    if state == "written" {
        style::note(target.then);
    }
    0
}

/// Shows what will be written, and asks.
fn confirmed(target: &Target, new: bool) -> Result<bool, CallError> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(CallError::new(ErrorKind::ApprovalRequired, "nobody can be asked whether to write this")
            .hint("add --yes, or look at it with --print"));
    }
    style::note(&target.snippet());
    let how = if new { "make" } else { "enter this in" };
    let shown = style::inert(&target.file.display().to_string());
    let asked = write!(std::io::stderr(), "{how} {shown}? [y/N] ").and_then(|()| std::io::stderr().flush());
    let mut answer = String::new();
    let heard = asked.and_then(|()| std::io::stdin().lock().read_line(&mut answer));
    Ok(heard.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Puts the new text in the place of the old, whole or not at all, with its mode; and keeps the old beside it.
fn write(file: &Path, old: &str, new: &str) -> Result<Option<PathBuf>, CallError> {
    let fail = |error: std::io::Error| CallError::failed(format!("{}: {error}", file.display()));
    // A link stays one.
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let dir = real.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).map_err(fail)?;
    let mode = whole::mode(&real);
    let backup =
        if old.is_empty() { None } else { Some(whole::beside(&real, "before-haft", old, mode).map_err(fail)?) };
    whole::place(&real, new, mode).map_err(fail)?;
    Ok(backup)
}
