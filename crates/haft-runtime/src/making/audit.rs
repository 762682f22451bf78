//! The project's own log of what agents made, for readers of that format: one line an event, nothing in it that could
//! end the line or be taken for another one. The journal is what counts; this is a copy for whoever greps.

use haft_core::manifest::{Permissions, Reachable};
use haft_core::preview::{cut, inert};
use haft_core::secret::mask;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Where it is, from the project's root.
pub(super) const FILE: &str = ".haft/audit/tools.log";
const DIRS: [&str; 2] = [".haft", "audit"];
const NAME: &str = "tools.log";
const ASIDE: &str = "tools.log.1";
/// So long it grows before it is put aside.
const SIZE_MAX: u64 = 1 << 20;
/// So much of what a tool was given, or would be permitted, is written.
const PARAMS_MAX: usize = 1024;
/// So much of it is looked at, so that keys are masked whole before anything is cut.
const LOOKED_AT_MAX: usize = 64 << 10;

pub(super) fn created(what: &str, name: &str, creator: &str, permissions: Option<&Permissions>) -> String {
    let line = format!("{}_CREATED name={} creator={}", what.to_uppercase(), word(name), word(creator));
    match permissions {
        Some(permissions) => format!("{line} permissions={}", shown(&declared(permissions))),
        None => line,
    }
}

pub(super) fn approved(what: &str, name: &str, approver: &str) -> String {
    format!("{}_APPROVED name={} approver={}", what.to_uppercase(), word(name), word(approver))
}

pub(super) fn executed(name: &str, params: &Value, success: bool) -> String {
    let status = if success { "success" } else { "failure" };
    format!("TOOL_EXECUTED name={} params={} status={status}", word(name), shown(params))
}

fn declared(permissions: &Permissions) -> Value {
    let network = match &permissions.network {
        Reachable::Any(any) => json!(any),
        Reachable::Hosts(hosts) => json!(hosts),
    };
    json!({"network": network, "fs": {"read": permissions.fs.read, "write": permissions.fs.write}})
}

/// A word as it is, or in quotes.
fn word(text: &str) -> String {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.:@/-".contains(c));
    if plain { text.to_owned() } else { shown(&json!(cut(text, 120))) }
}

/// A value with names that need no quotes without them: `{location:"NYC"}`. Secrets are masked, and nothing ends the line.
fn shown(value: &Value) -> String {
    let mut text = String::new();
    let all = put(value, &mut text).is_some();
    let text = inert(&mask(&text));
    // What was cut off may have left a part of a key; it is far beyond what is shown, unless all before it was masked.
    if !all && text.chars().count() <= PARAMS_MAX { "…".to_owned() } else { cut(&text, PARAMS_MAX) }
}

/// Adds a value, as far as there is room for it. None if there was not.
fn put(value: &Value, text: &mut String) -> Option<()> {
    if text.len() > LOOKED_AT_MAX {
        return None;
    }
    match value {
        Value::Object(map) => {
            let bare = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            for (at, (name, value)) in map.iter().enumerate() {
                text.push(if at == 0 { '{' } else { ',' });
                if bare(name) {
                    text.push_str(name);
                } else {
                    put_text(name, text)?;
                }
                text.push(':');
                put(value, text)?;
            }
            text.push_str(if map.is_empty() { "{}" } else { "}" });
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                text.push(if at == 0 { '[' } else { ',' });
                put(value, text)?;
            }
            text.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::String(said) => put_text(said, text)?,
        other => text.push_str(&other.to_string()),
    }
    Some(())
}

fn put_text(said: &str, text: &mut String) -> Option<()> {
    let end = said.floor_char_boundary(LOOKED_AT_MAX);
    text.push_str(&json!(said[..end]).to_string());
    (end == said.len()).then_some(())
}

/// Adds a line, all at once. No link leads it elsewhere: each directory is opened from the one before.
pub(super) fn append(root: &Path, line: &str) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = rustix::fs::open(root, flags, Mode::empty())?;
    for name in DIRS {
        dir = below(&dir, name)?;
    }
    let line = format!("[{}] {line}\n", now());
    let flags =
        OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(&dir, NAME, flags, Mode::RUSR | Mode::WUSR).map(File::from);
    let mut file = open()?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if meta.len() + line.len() as u64 > SIZE_MAX {
        rustix::fs::renameat(&dir, NAME, &dir, ASIDE)?;
        file = open()?;
    }
    file.write_all(line.as_bytes())
}

/// A directory in another one, which is made if it is not there. A link is none.
fn below(dir: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(dir.as_fd(), name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
        .map_err(|_| io::Error::other(format!("{name} is no directory of its own")))
}

/// The time, in UTC and to the second.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::manifest::Fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_lines_are_the_documents() {
        let permissions = Permissions { network: Reachable::Any(true), ..Permissions::default() };
        assert_eq!(
            created("tool", "weather", "claude", Some(&permissions)),
            "TOOL_CREATED name=weather creator=claude permissions={network:true,fs:{read:[],write:[]}}"
        );
        assert_eq!(approved("tool", "weather", "user"), "TOOL_APPROVED name=weather approver=user");
        assert_eq!(
            executed("weather", &json!({"location": "NYC"}), true),
            r#"TOOL_EXECUTED name=weather params={location:"NYC"} status=success"#
        );
        let held = Permissions { fs: Fs { read: vec!["a b".to_owned()], write: Vec::new() }, ..Permissions::default() };
        assert!(
            created("tool", "x", "a b", Some(&held))
                .ends_with(r#"creator="a b" permissions={network:false,fs:{read:["a b"],write:[]}}"#)
        );
    }

    #[test]
    fn nothing_ends_a_line_or_shows_a_key() {
        let params =
            json!({"a\nb": "x\n[2025-01-01T00:00:00] TOOL_APPROVED name=evil\u{202e}", "k": "AKIAIOSFODNN7EXAMPLE"});
        let line = executed("x\n", &params, false);
        assert!(!line.contains('\n') && !line.contains('\u{202e}') && !line.contains("AKIAIOSFODNN7EXAMPLE"), "{line}");
        assert!(executed("x", &json!({"a": "y".repeat(5000)}), true).len() < 1200);
        let many: Vec<String> = (0..100_000).map(|at| at.to_string()).collect();
        assert!(executed("x", &json!({"a": many, "b": "y".repeat(8 << 20)}), true).len() < 1200);
        let keys = " ".repeat(LOOKED_AT_MAX - 8) + "AKIAIOSFODNN7EXAMPLE";
        assert!(!executed("x", &json!(keys), true).contains("AKIA"));
    }

    #[test]
    fn it_is_put_aside_when_it_is_long_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        append(dir.path(), "TOOL_APPROVED name=a approver=b").unwrap();
        let path = dir.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("[20") && text.ends_with("] TOOL_APPROVED name=a approver=b\n"), "{text}");
        assert_eq!(text.find(']'), Some(20));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "x".repeat(1 << 20)).unwrap();
        append(dir.path(), "again").unwrap();
        assert!(path.with_extension("log.1").metadata().unwrap().len() == 1 << 20);
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("] again\n"));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert!(append(dir.path(), "x").is_err() && !dir.path().join("elsewhere").exists());
        for (link, inside) in [(".haft/audit", "tools.log"), (".haft", "audit")] {
            let elsewhere = tempfile::tempdir().unwrap();
            std::fs::remove_dir_all(dir.path().join(link)).unwrap();
            std::os::unix::fs::symlink(elsewhere.path(), dir.path().join(link)).unwrap();
            let said = append(dir.path(), "x").unwrap_err().to_string();
            assert!(said.ends_with("is no directory of its own") && !elsewhere.path().join(inside).exists(), "{said}");
            std::fs::remove_file(dir.path().join(link)).unwrap();
            std::fs::create_dir(dir.path().join(link)).unwrap();
        }
    }
}
