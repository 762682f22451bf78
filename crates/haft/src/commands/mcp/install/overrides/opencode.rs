//! opencode's permissions: merged from many files, then read as rules of which the last match counts.
//!
//! The order of the files and the meaning of the rules are opencode's own (`config/config.ts`, `permission/index.ts` and
//! `agent/agent.ts` of its repository).

use super::{ConfigSource, last_to_turn_on, project_dirs, read, read_text, variable};
use crate::commands::mcp::install::clients::{ClientPlaces, OPENCODE_NATIVE};
use crate::commands::mcp::install::edits::{self, FileFormat};
use serde_json::{Map, Value, json};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Where an administrator's files are.
const MANAGED_DIR: &str = "/etc/opencode";
/// opencode looks for agents at any depth; deeper ones are no configuration.
const AGENT_DEPTH_MAX: usize = 8;
/// A directory with more agents is no configuration.
const AGENTS_MAX: usize = 1000;

/// What turns opencode's own tools on again.
pub(super) fn turned_on_by(places: &ClientPlaces) -> Result<Option<ConfigSource>, String> {
    let mut layers = Layers::default();
    let own = places.home.join(".config/opencode");
    layers.add_files(&own, &["config.json", "opencode.json", "opencode.jsonc"])?;
    if let Some(file) = variable("OPENCODE_CONFIG") {
        layers.add_file(&places.here.join(file))?;
    }
    let skips_project = variable("OPENCODE_DISABLE_PROJECT_CONFIG").is_some_and(|word| word == "1" || word == "true");
    let project = if skips_project { Vec::new() } else { project_dirs(places, Path::new("/")) };
    for dir in &project {
        layers.add_files(dir, &["opencode.json", "opencode.jsonc"])?;
    }
    layers.add_agents(&own)?;
    // The innermost comes first here, and the home directory's takes precedence.
    let mut dirs: Vec<PathBuf> = project.iter().rev().map(|dir| dir.join(".opencode")).collect();
    dirs.push(places.home.join(".opencode"));
    dirs.extend(variable("OPENCODE_CONFIG_DIR").map(|dir| places.here.join(dir)));
    for dir in &dirs {
        layers.add_files(dir, &["opencode.json", "opencode.jsonc"])?;
        layers.add_agents(dir)?;
    }
    layers.add_variable("OPENCODE_CONFIG_CONTENT", |said| said)?;
    layers.add_files(Path::new(MANAGED_DIR), &["opencode.json", "opencode.jsonc"])?;
    layers.add_variable("OPENCODE_PERMISSION", |said| json!({ "permission": said }))?;
    Ok(last_to_turn_on(layers.0, are_native_tools_off))
}

/// What each source says, the one that counts least first.
#[derive(Default)]
struct Layers(Vec<(ConfigSource, Value)>);

impl Layers {
    fn add_files(&mut self, dir: &Path, names: &[&str]) -> Result<(), String> {
        names.iter().try_for_each(|name| self.add_file(&dir.join(name)))
    }

    fn add_file(&mut self, file: &Path) -> Result<(), String> {
        if let Some(said) = read(file, FileFormat::Json)? {
            self.0.push((ConfigSource::File(file.to_owned()), normalized(checked(said, &file.display().to_string())?)));
        }
        Ok(())
    }

    fn add_variable(&mut self, name: &'static str, layer: fn(Value) -> Value) -> Result<(), String> {
        let Some(text) = variable(name) else { return Ok(()) };
        let said = edits::read(FileFormat::Json, &text).map_err(|why| format!("${name}: {why}"))?;
        self.0.push((ConfigSource::Variable(name), normalized(checked(layer(said), name)?)));
        Ok(())
    }

    /// Agents that are written as Markdown files, with their permissions in the front matter.
    fn add_agents(&mut self, dir: &Path) -> Result<(), String> {
        for kind in ["agent", "agents", "mode", "modes"] {
            let dir = dir.join(kind);
            let mut files = Vec::new();
            markdown_files(&dir, AGENT_DEPTH_MAX, &mut files).map_err(|error| format!("{}: {error}", dir.display()))?;
            files.sort();
            for file in files {
                let Some(text) = read_text(&file)? else { continue };
                let Some(head) = front_matter(&text) else { continue };
                let said = edits::read(FileFormat::Yaml, head).map_err(|why| format!("{}: {why}", file.display()))?;
                let inside = file.strip_prefix(&dir).unwrap_or(&file).with_extension("").display().to_string();
                let name = said.get("name").and_then(Value::as_str).map_or(inside, str::to_owned);
                let layer = json!({"agent": Map::from_iter([(name, said)])});
                self.0.push((ConfigSource::File(file), normalized(layer)));
            }
        }
        Ok(())
    }
}

/// The Markdown files below a directory that may be missing.
fn markdown_files(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if depth == 0 || found.len() >= AGENTS_MAX {
            return Err(io::Error::other("too many agents to be looked at"));
        }
        if path.is_dir() {
            markdown_files(&path, depth - 1, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// Refuses names that opencode completes from variables and files (`{env:…}`, `{file:…}`): they may name a permission.
/// A value that is completed is never `deny` here, so it turns a tool on.
fn checked(said: Value, source: &str) -> Result<Value, String> {
    let is_completed = |name: &String| name.contains("{env:") || name.contains("{file:");
    let mut left = vec![&said];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) if members.keys().any(is_completed) => {
                return Err(format!("{source}: a name in it is completed from a variable or a file"));
            }
            Value::Object(members) => left.extend(members.values()),
            Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
    Ok(said)
}

/// The YAML between the first two lines `---` of a Markdown file.
fn front_matter(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches('\u{feff}').strip_prefix("---")?;
    let (first, rest) = rest.split_once('\n')?;
    let end = rest.match_indices("---").map(|(at, _)| at).find(|at| *at == 0 || rest[..*at].ends_with('\n'))?;
    first.trim().is_empty().then_some(&rest[..end])
}

/// A layer in the form in which layers are merged: a permission that is one word holds for every tool, and the tools of
/// an agent are permissions.
fn normalized(mut said: Value) -> Value {
    if let Some(permission) = said.get_mut("permission") {
        widen_permission(permission);
    }
    for kind in ["agent", "mode"] {
        let agents = said.get_mut(kind).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
        agents.for_each(normalize_agent);
    }
    said
}

fn normalize_agent(agent: &mut Value) {
    let mut permission = permissions_of_tools(agent.get("tools"));
    let mut own = agent.get("permission").cloned().unwrap_or_else(|| json!({}));
    widen_permission(&mut own);
    // Tool by tool, and not merged more deeply.
    permission.extend(own.as_object().cloned().unwrap_or_default());
    if let Some(agent) = agent.as_object_mut() {
        agent.insert("permission".to_owned(), Value::Object(permission));
    }
}

fn widen_permission(permission: &mut Value) {
    if permission.is_string() {
        *permission = json!({"*": permission});
    }
}

/// The older form of permissions: a tool, and whether it is on.
fn permissions_of_tools(tools: Option<&Value>) -> Map<String, Value> {
    let rule = |(tool, is_on): (&String, &Value)| {
        let permission = if matches!(tool.as_str(), "write" | "edit" | "patch") { "edit" } else { tool };
        (permission.to_owned(), Value::from(if is_on == false { "deny" } else { "allow" }))
    };
    tools.and_then(Value::as_object).into_iter().flatten().map(rule).collect()
}

/// Whether no agent has one of opencode's own tools.
fn are_native_tools_off(merged: &Value) -> bool {
    let mut common = Value::Object(permissions_of_tools(merged.get("tools")));
    if let Some(permission) = merged.get("permission") {
        super::merge(&mut common, permission.clone());
    }
    let common = common.as_object().cloned().unwrap_or_default();
    let mut agents = merged.get("agent").cloned().unwrap_or_else(|| json!({}));
    super::merge(&mut agents, merged.get("mode").cloned().unwrap_or_else(|| json!({})));
    let agents = agents.as_object().into_iter().flat_map(Map::values);
    let enabled = agents.filter(|agent| agent.get("disable") != Some(&Value::Bool(true)));
    let mut own = enabled.map(|agent| agent.get("permission").and_then(Value::as_object).cloned().unwrap_or_default());
    are_denied(&[&common]) && own.all(|own| are_denied(&[&common, &own]))
}

/// Whether the last rule for each of opencode's own tools denies it whatever its arguments are.
fn are_denied(rulesets: &[&Map<String, Value>]) -> bool {
    let is_denied = |tool: &str| {
        let rules = rulesets.iter().rev().flat_map(|rules| rules.iter().rev());
        // An object without rules in it is no rule.
        let mut matching = rules.filter(|(pattern, rule)| {
            names_tool(pattern, tool) && rule.as_object().is_none_or(|rules| !rules.is_empty())
        });
        matching.next().is_some_and(|(_, rule)| match rule {
            Value::Object(rules) => {
                rules.iter().next_back().is_some_and(|(pattern, word)| pattern == "*" && word == "deny")
            }
            word => word == "deny",
        })
    };
    OPENCODE_NATIVE.into_iter().all(is_denied)
}

/// Whether a permission is about a tool. `*` matches any text, and `?` any character; ` *` at the end may be missing.
fn names_tool(pattern: &str, tool: &str) -> bool {
    // Which beginnings of the pattern match the letters so far: linear in each, whatever a project writes.
    let pattern = pattern.strip_suffix(" *").unwrap_or(pattern).as_bytes();
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    let pass_stars = |reached: &mut [bool]| {
        for (at, letter) in pattern.iter().enumerate() {
            reached[at + 1] |= reached[at] && *letter == b'*';
        }
    };
    pass_stars(&mut reached);
    for letter in tool.bytes() {
        let mut next = vec![false; pattern.len() + 1];
        for (at, wanted) in pattern.iter().enumerate().filter(|(at, _)| reached[*at]) {
            next[at] |= *wanted == b'*';
            next[at + 1] |= *wanted == b'?' || *wanted == letter;
        }
        pass_stars(&mut next);
        reached = next;
    }
    reached[pattern.len()]
}

#[cfg(test)]
mod tests;
