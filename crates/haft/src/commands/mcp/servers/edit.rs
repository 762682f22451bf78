//! Entering servers in a configuration file and taking them out, as text: everything else in the file stays as it
//! is, byte for byte. What comes out has to say exactly what is meant, or nothing is written.

use crate::commands::mcp::whole;
use crate::config::{self, Config, Server};
use haft_core::CallError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A configuration file.
pub(super) struct File {
    path: PathBuf,
    before: Option<String>,
    text: String,
    config: Config,
}

/// A file with other text, not written yet.
pub(super) struct Edited<'f> {
    file: &'f File,
    text: String,
}

/// Where the servers of a file are, by line.
struct Spot {
    /// Where an entry would go in.
    at: usize,
    /// How far it is indented.
    indent: usize,
    /// What has to come before it.
    head: String,
}

impl File {
    /// Reads a file; one that is not there is empty.
    pub(super) fn open(path: &Path) -> Result<Self, CallError> {
        let before = match std::fs::read_to_string(path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(CallError::failed(format!("{}: {error}", path.display()))),
        };
        let text = before.clone().unwrap_or_default();
        let config = read(&text, path)?;
        Ok(Self { path: path.to_owned(), before, text, config })
    }

    /// The same for a project's file, which has to be in the project: whoever made the project might have laid a
    /// link to another file of the person's.
    pub(super) fn open_in(root: &Path, path: &Path) -> Result<Self, CallError> {
        let inside = root.canonicalize().is_ok_and(|root| {
            let dir = path.parent().unwrap_or(root.as_path());
            let stays = |path: &Path| match path.canonicalize() {
                Ok(real) => real.starts_with(&root),
                Err(_) => !path.is_symlink(),
            };
            stays(dir) && stays(path)
        });
        if inside {
            return Self::open(path);
        }
        let message = format!("{} leads out of the project, and is not written", path.display());
        Err(CallError::conflict(message).hint("put a file there instead of the link, or leave out --project"))
    }

    /// Whether a server is entered.
    pub(super) fn has(&self, name: &str) -> bool {
        self.config.mcp.servers.keys().any(|known| known.value == name)
    }

    /// The same with these servers.
    pub(super) fn with(&self, servers: &[(String, Server)]) -> Result<Edited<'_>, CallError> {
        if let Some((name, _)) = servers.iter().find(|(name, _)| self.has(name)) {
            let message = format!("`{}` is in {} already", haft_core::preview::inert(name), self.path.display());
            return Err(CallError::conflict(message).hint("`haft mcp remove` takes it out; or choose another name"));
        }
        let refused = |why: &str| {
            CallError::conflict(format!("{} cannot be edited safely: {why}", self.path.display()))
                .hint(format!("add this yourself:\n{}", snippet(servers).trim_end()))
        };
        let spot = find(&self.text).ok_or_else(|| refused("`mcp` is not written as a block there"))?;
        let mut lines: Vec<&str> = self.text.split_inclusive('\n').collect();
        let tail = lines.split_off(spot.at.min(lines.len()));
        let mut text = lines.concat();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&spot.head);
        text.push_str(&entries(servers, spot.indent));
        text.push_str(&tail.concat());
        // What is written has to say what was there and this, and nothing else.
        let mut meant = self.config.clone();
        let said = read(&text, &self.path).map_err(|error| refused(&error.message))?;
        for (name, server) in servers {
            meant.mcp.servers.insert(config::Text::new(name.as_str(), config::Spot::BuiltIn), server.clone());
        }
        if said != meant {
            return Err(refused("the result would say something else"));
        }
        for (name, server) in &said.mcp.servers {
            if servers.iter().any(|(added, _)| *added == name.value) {
                server.check(name).map_err(|error| CallError::invalid(error.to_string()))?;
            }
        }
        Ok(Edited { file: self, text })
    }

    /// The same without a server.
    pub(super) fn without(&self, name: &str) -> Result<Edited<'_>, CallError> {
        let refused = || {
            CallError::conflict(format!("{} cannot be edited safely", self.path.display()))
                .hint(format!("take the entry `{name}` under `mcp.servers` out yourself"))
        };
        let mut meant = self.config.clone();
        meant.mcp.servers.retain(|known, _| known.value != name);
        let lines: Vec<&str> = self.text.split_inclusive('\n').collect();
        // With the blocks around it, if nothing else is in them; else alone.
        for depth in [2, 1, 0] {
            let Some(text) = cut(&lines, name, depth) else { continue };
            if read(&text, &self.path).is_ok_and(|said| said == meant) {
                return Ok(Edited { file: self, text });
            }
        }
        Err(refused())
    }
}

impl Edited<'_> {
    /// Writes it, keeping what was there beside it.
    pub(super) fn keep(&self) -> Result<(), CallError> {
        let path = &self.file.path;
        let fail = |error: std::io::Error| CallError::failed(format!("{}: {error}", path.display()));
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(fail)?;
        }
        // A link stays a link: what it leads to is written.
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let mode = whole::mode(&real);
        if let Some(before) = &self.file.before {
            whole::place(&real.with_extension("yml.bak"), before, mode).map_err(fail)?;
        }
        whole::place(&real, &self.text, mode).map_err(fail)
    }
}

fn read(text: &str, path: &Path) -> Result<Config, CallError> {
    if text.trim().is_empty() {
        return Ok(Config::default());
    }
    config::parse(text.as_bytes(), &Arc::from(path.display().to_string()))
        .map_err(|error| CallError::invalid(error.to_string()))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn says(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && !text.starts_with('#')
}

/// Whether a line opens a block of this name.
fn opens(line: &str, key: &str) -> bool {
    let Some(rest) = line.trim().strip_prefix(key).and_then(|rest| rest.strip_prefix(':')) else { return false };
    rest.trim().is_empty() || rest.trim_start().starts_with('#')
}

/// The lines of the block that a line opens.
fn block(lines: &[&str], at: usize) -> std::ops::Range<usize> {
    let depth = indent(lines[at]);
    let inside = |line: &&str| !says(line) || indent(line) > depth;
    let end = lines[at + 1..].iter().position(|line| !inside(line)).map_or(lines.len(), |more| at + 1 + more);
    at + 1..end
}

/// The line in a range that opens a block of this name.
fn line_of(lines: &[&str], range: std::ops::Range<usize>, key: &str) -> Option<usize> {
    let depth = range.clone().find(|at| says(lines[*at])).map(|at| indent(lines[at]))?;
    range.clone().find(|at| says(lines[*at]) && indent(lines[*at]) == depth && opens(lines[*at], key))
}

/// Where an entry goes in. None if the file is not written in a way that allows it.
fn find(text: &str) -> Option<Spot> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let top = |line: &&str| indent(line) == 0 && line.trim_start().starts_with("mcp:");
    let Some(mcp) = lines.iter().position(top) else {
        return Some(Spot { at: lines.len(), indent: 4, head: "mcp:\n  servers:\n".to_owned() });
    };
    if !opens(lines[mcp], "mcp") {
        return None;
    }
    let inner = block(&lines, mcp);
    let depth = inner.clone().find(|at| says(lines[*at])).map_or(2, |at| indent(lines[at]));
    match line_of(&lines, inner.clone(), "servers") {
        Some(servers) => {
            let entries = block(&lines, servers);
            let indent = entries.clone().find(|at| says(lines[*at])).map_or(depth + 2, |at| indent(lines[at]));
            Some(Spot { at: servers + 1, indent, head: String::new() })
        }
        None => Some(Spot { at: mcp + 1, indent: depth + 2, head: format!("{}servers:\n", " ".repeat(depth)) }),
    }
}

/// The text without an entry, or without the block around it.
fn cut(lines: &[&str], name: &str, depth: usize) -> Option<String> {
    let mcp = lines.iter().position(|line| indent(line) == 0 && opens(line, "mcp"))?;
    let servers = line_of(lines, block(lines, mcp), "servers")?;
    let inner = block(lines, servers);
    let quoted = [name.to_owned(), format!("\"{name}\""), format!("'{name}'")];
    let named = |at: &usize| {
        let line = lines[*at].trim();
        quoted.iter().any(|key| line.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with(':')))
    };
    let at = inner
        .clone()
        .find(|at| says(lines[*at]))
        .map(|at| indent(lines[at]))
        .and_then(|first| inner.clone().find(|at| indent(lines[*at]) == first && named(at)))?;
    let first = [at, servers, mcp][depth];
    let mut gone = first..block(lines, first).end;
    // A comment of somebody's that is not the entry's own stays, and with it what it is in.
    let own = at..block(lines, at).end;
    if gone.clone().any(|line| !own.contains(&line) && lines[line].contains('#')) {
        return None;
    }
    // Blank lines and comments at the end of it belong to what follows.
    while gone.end > first + 1 && !says(lines[gone.end - 1]) {
        gone.end -= 1;
    }
    Some(lines[..gone.start].iter().chain(&lines[gone.end..]).copied().collect())
}

/// What would be added to an empty file.
pub(super) fn snippet(servers: &[(String, Server)]) -> String {
    format!("mcp:\n  servers:\n{}", entries(servers, 4))
}

/// Entries as YAML: JSON is YAML too, and quotes what has to be quoted.
fn entries(servers: &[(String, Server)], indent: usize) -> String {
    let mut text = String::new();
    for (name, server) in servers {
        text.push_str(&format!("{}{name}:\n", " ".repeat(indent)));
        let value = serde_json::to_value(server).unwrap_or_default();
        for (key, value) in value.as_object().into_iter().flatten() {
            text.push_str(&format!("{}{key}: {value}\n", " ".repeat(indent + 2)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> File {
        let config = read(text, Path::new("f")).unwrap();
        File { path: "f".into(), before: Some(text.to_owned()), text: text.to_owned(), config }
    }

    fn server() -> Server {
        let text = |value: &str| config::Text::new(value, config::Spot::BuiltIn);
        Server { command: Some(text("run: # me")), args: vec!["a".into()], ..Server::default() }
    }

    #[test]
    fn an_entry_goes_in_and_out_and_the_rest_stays() {
        let entry = [("new".to_owned(), server())];
        let texts = [
            "",
            "deny: [shell.exec] # why\n",
            "deny: [shell.exec]",
            "mcp:\n  wait_ms: 5\n# end\n",
            "mcp:\n  servers:\n    old:\n      url: http://x/\n\n# about undo\nundo:\n  keep_days: 3\n",
            "mcp:\n    servers: # mine\n        old: {command: x}\n    wait_ms: 7\ndeny: []\n",
        ];
        for text in texts {
            let file = file(text);
            let edited = file.with(&entry).unwrap().text;
            for line in text.lines() {
                assert!(edited.contains(line), "{line:?} is lost in\n{edited}");
            }
            let again = self::file(&edited);
            assert!(again.has("new"));
            let back = again.without("new").unwrap().text;
            assert_eq!(back.trim_end(), text.trim_end(), "{edited}");
        }
    }

    #[test]
    fn what_is_not_written_as_a_block_is_left_alone() {
        for text in ["mcp: {wait_ms: 5}\n", "mcp:\n  servers: {old: {command: x}}\n"] {
            let file = file(text);
            let error = file.with(&[("new".to_owned(), server())]).err().unwrap();
            assert!(error.hint.unwrap().contains("    new:\n      command: \"run: # me\""), "{text}");
        }
        let twice = file("mcp:\n  servers:\n    new: {command: x}\n");
        assert!(twice.with(&[("new".to_owned(), server())]).is_err());
    }
}
