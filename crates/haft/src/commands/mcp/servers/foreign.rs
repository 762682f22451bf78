//! Servers as other clients write them: `.mcp.json` and its kin, `mcpServers`, `servers`.

use crate::config::{Server, Spot, Text};
use haft_core::CallError;
use serde_json::{Map, Value};
use std::path::Path;

/// The most that is read of another client's file.
const MAX_BYTES: u64 = 16 << 20;
/// Under which names clients keep their servers.
const KEYS: &[&str] = &["mcpServers", "servers", "mcp_servers", "context_servers"];

/// The servers of a file.
pub(super) fn read(path: &Path) -> Result<Vec<(String, Server)>, CallError> {
    let fail = |error: String| CallError::invalid(format!("{}: {error}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| fail(error.to_string()))?.len();
    if size > MAX_BYTES {
        return Err(fail(format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    let value: Value = serde_json::from_str(&without_comments(&text)).map_err(|error| fail(error.to_string()))?;
    let servers = servers(&value).ok_or_else(|| {
        fail("no MCP servers are in it".to_owned())
            .hint("expected an object `mcpServers` or `servers`, as in .mcp.json")
    })?;
    let mut found = Vec::new();
    for (name, entry) in servers {
        let server = server(entry).map_err(|why| fail(format!("`{}`: {why}", haft_core::preview::inert(name))))?;
        found.push((named(name), server));
    }
    Ok(found)
}

/// Visual Studio Code keeps them one level deeper in its settings.
fn servers(value: &Value) -> Option<&Map<String, Value>> {
    let at = |value: &'_ Value| KEYS.iter().find_map(|key| value.get(key)?.as_object().map(|_| *key));
    match at(value) {
        Some(key) => value.get(key)?.as_object(),
        None => value.get("mcp").and_then(|inner| inner.get(at(inner)?)?.as_object()),
    }
}

/// A name that can be part of a tool's.
fn named(name: &str) -> String {
    let lower = name.to_lowercase();
    let mapped: String = lower
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .take(40)
        .collect();
    if mapped.is_empty() { "server".to_owned() } else { mapped }
}

fn server(entry: &Value) -> Result<Server, &'static str> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let placed = |value: &str| Text::new(expressed(value), Spot::Flag("import"));
    let texts = |name: &str| -> Vec<String> {
        let items = entry.get(name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(expressed).collect()
    };
    let map = |name: &str| {
        let items = entry.get(name).and_then(Value::as_object).into_iter().flatten();
        items.filter_map(|(name, value)| Some((name.clone(), expressed(value.as_str()?)))).collect()
    };
    let url = text("url").or_else(|| text("serverUrl")).or_else(|| text("httpUrl"));
    match (text("command"), url) {
        (None, None) => Err("neither a command nor an address"),
        (Some(command), _) => Ok(Server {
            command: Some(placed(command)),
            args: texts("args"),
            env: map("env"),
            cwd: text("cwd").map(placed),
            ..Server::default()
        }),
        (None, Some(url)) => Ok(Server { url: Some(placed(url)), headers: map("headers"), ..Server::default() }),
    }
}

/// `${env:NAME}` is how some write `${NAME}`.
fn expressed(value: &str) -> String {
    value.replace("${env:", "${")
}

/// Comments, and commas before a closing bracket, are common in such files and not JSON.
fn without_comments(text: &str) -> String {
    let (mut out, mut chars, mut quoted) = (String::new(), text.chars().peekable(), false);
    while let Some(c) = chars.next() {
        match c {
            '\\' if quoted => {
                out.push(c);
                out.extend(chars.next());
            }
            '"' => {
                quoted = !quoted;
                out.push(c);
            }
            '/' if !quoted && chars.peek() == Some(&'/') => while chars.next_if(|c| *c != '\n').is_some() {},
            '/' if !quoted && chars.peek() == Some(&'*') => {
                let mut last = ' ';
                for c in chars.by_ref().skip(1) {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            '}' | ']' if !quoted => {
                let end = out.trim_end().len();
                if out[..end].ends_with(',') {
                    out.truncate(end - 1);
                }
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_understood() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".mcp.json");
        let text = r#"{ // mine
            "mcpServers": {
                "Git Hub": {"command": "npx", "args": ["-y", "//x"], "env": {"TOKEN": "${env:T}"}, "type": "stdio"},
                "web": {"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${T}"},},
            }, /* more */
        }"#;
        std::fs::write(&file, text).unwrap();
        let found = read(&file).unwrap();
        let shown = |server: &Server| serde_json::to_string(server).unwrap();
        assert_eq!(found[0].0, "git_hub");
        assert_eq!(shown(&found[0].1), r#"{"command":"npx","args":["-y","//x"],"env":{"TOKEN":"${T}"}}"#);
        assert_eq!(shown(&found[1].1), r#"{"url":"https://x/mcp","headers":{"Authorization":"Bearer ${T}"}}"#);
        std::fs::write(&file, r#"{"mcp": {"servers": {"a": {"command": "b"}}}}"#).unwrap();
        assert_eq!(read(&file).unwrap().len(), 1);
        std::fs::write(&file, r#"{"a": 1}"#).unwrap();
        assert!(read(&file).unwrap_err().message.contains("no MCP servers are in it"));
    }
}
