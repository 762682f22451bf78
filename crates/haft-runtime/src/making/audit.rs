//! The project's own log of what agents made, for readers of that format: one line an event, nothing in it that could
//! end the line or be taken for another one. The journal is what counts; this is a copy for whoever greps.

use haft_core::manifest::{Permissions, Reachable};
use haft_core::preview::{cut, inert};
use haft_core::secret::mask;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Where it is, from the project's root.
pub(super) const FILE: &str = ".haft/audit/tools.log";
/// So long it grows before it is put aside.
const SIZE_MAX: u64 = 1 << 20;
/// So much of what a tool was given is written.
const PARAMS_MAX: usize = 1024;

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
    format!("TOOL_EXECUTED name={} params={} status={status}", word(name), cut(&shown(params), PARAMS_MAX))
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
    let text = match value {
        Value::Object(map) => {
            let bare = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let pair = |(name, value): (&String, &Value)| {
                let name = if bare(name) { name.clone() } else { json!(name).to_string() };
                format!("{name}:{}", shown(value))
            };
            format!("{{{}}}", map.iter().map(pair).collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    };
    inert(&mask(&text))
}

/// Adds a line, all at once. No link leads it elsewhere.
pub(super) fn append(root: &Path, line: &str) -> io::Result<()> {
    let dir = root.join(".haft/audit");
    for dir in [root.join(".haft"), dir.clone()] {
        match std::fs::symlink_metadata(&dir) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(io::Error::other(format!("{} is no directory", dir.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::fs::DirBuilder::new().recursive(true).mode(0o755).create(&dir)?;
            }
            Err(error) => return Err(error),
        }
    }
    let path = root.join(FILE);
    let line = format!("[{}] {line}\n", now());
    if std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() + line.len() as u64 > SIZE_MAX) {
        std::fs::rename(&path, path.with_extension("log.1"))?;
    }
    let mut options = OpenOptions::new();
    let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut file = options.append(true).create(true).mode(0o600).custom_flags(nofollow).open(&path)?;
    file.write_all(line.as_bytes())
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
    }
}
