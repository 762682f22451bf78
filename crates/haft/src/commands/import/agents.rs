//! Agents of other systems: `.claude/agents/*.md` (front matter and a prompt) and `.gemini/agents/*.toml`. Each becomes a file
//! in `.haft/agents`. What has no equivalent here is told and left out; nothing is made looser than it was.

use super::Taken;
use super::toml;
use super::write::{Draft, Place};
use haft_core::CallError;
use haft_core::agent::file::{self, AgentFile, is_name};
use haft_core::preview::inert;
use haft_core::secret::contains_secret;
use haft_runtime::agent::facts;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

const FILES_MAX: usize = 500;
const BYTES_MAX: u64 = 256 << 10;

/// An agent as it was found.
struct Found {
    name: String,
    said: Map<String, Value>,
    prompt: String,
}

/// All agents below a directory, or in it.
pub(super) fn read(dir: &Path) -> Result<Taken, CallError> {
    let known = [dir.join(".claude/agents"), dir.join(".gemini/agents")];
    let mut dirs: Vec<PathBuf> = known.into_iter().filter(|dir| dir.is_dir()).collect();
    if dirs.is_empty() {
        dirs.push(dir.to_owned());
    }
    let mut taken = Taken::default();
    for dir in dirs {
        for path in files(&dir)? {
            if let Err(why) = one(&path, &mut taken) {
                taken.notes.push(format!("{}: {why}", inert(&path.display().to_string())));
            }
        }
    }
    Ok(taken)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, CallError> {
    let entries = std::fs::read_dir(dir).map_err(|error| CallError::invalid(format!("{}: {error}", dir.display())))?;
    let ours = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md" || ending == "toml");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(ours).collect();
    paths.sort();
    paths.truncate(FILES_MAX);
    Ok(paths)
}

fn one(path: &Path, taken: &mut Taken) -> Result<(), String> {
    let meta = std::fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    if !meta.is_file() || meta.len() > BYTES_MAX {
        return Err(format!("it is no file of at most {} KiB", BYTES_MAX >> 10));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let found =
        if path.extension().is_some_and(|ending| ending == "md") { markdown(&text, stem) } else { gemini(&text, stem) };
    let mut found = found?;
    let (agent, notes) = translated(&mut found);
    let name = plain(&found.name);
    let mut note = |what: String| taken.notes.push(format!("{name}: {what}"));
    notes.into_iter().for_each(&mut note);
    if contains_secret(&text) {
        note("it holds what looks like a key".to_owned());
    }
    let yml = serde_saphyr::to_string(&agent).map_err(|error| format!("it cannot be written: {error}"))?;
    // What is written has to be what is read.
    if let Err(misfits) = file::read(&yml, &name) {
        return Err(misfits.iter().map(|misfit| misfit.fault.to_string()).collect::<Vec<_>>().join("; "));
    }
    if taken.drafts.iter().any(|draft| draft.name == name) {
        return Err(format!("another agent is called {name} already"));
    }
    let files = vec![(format!("{name}.yml"), yml.into_bytes())];
    taken.drafts.push(Draft { place: Place::Agent, name, files });
    Ok(())
}

/// Front matter, and the prompt below it.
fn markdown(text: &str, stem: String) -> Result<Found, String> {
    let none = || "it has no front matter".to_owned();
    let text = text.replace("\r\n", "\n");
    let rest = text.strip_prefix("---\n").ok_or_else(none)?;
    let (yaml, prompt) =
        rest.split_once("\n---\n").or_else(|| rest.strip_suffix("\n---").map(|yaml| (yaml, ""))).ok_or_else(none)?;
    let said: Value = serde_saphyr::from_str(yaml).map_err(|error| format!("its front matter: {error}"))?;
    let said = said.as_object().cloned().ok_or_else(none)?;
    Ok(named(said, prompt.trim().to_owned(), stem))
}

fn gemini(text: &str, stem: String) -> Result<Found, String> {
    let mut said = toml::read(text)?;
    let keys = ["prompt", "system_prompt", "instructions", "prompts.system_prompt", "prompt.system"];
    let prompt = keys.iter().find_map(|key| said.remove(*key)).and_then(|value| value.as_str().map(str::to_owned));
    Ok(named(said, prompt.unwrap_or_default().trim().to_owned(), stem))
}

fn named(mut said: Map<String, Value>, prompt: String, stem: String) -> Found {
    let name = said.remove("name").and_then(|name| name.as_str().map(str::to_owned)).filter(|name| !name.is_empty());
    Found { name: name.unwrap_or(stem), said, prompt }
}

/// The agent in our words, and what could not be said.
fn translated(found: &mut Found) -> (AgentFile, Vec<String>) {
    let mut notes = Vec::new();
    let mut agent = AgentFile { prompt: std::mem::take(&mut found.prompt), ..AgentFile::default() };
    for (key, value) in std::mem::take(&mut found.said) {
        match key.as_str() {
            "description" => value.as_str().unwrap_or_default().trim().clone_into(&mut agent.description),
            "tools" | "tool_config.tools" | "toolConfig.tools" => agent.tools = tools(&value, &mut notes),
            "disallowedTools" | "disallowed_tools" | "exclude_tools" => {
                // What may not be used and has no name here cannot be used anyway.
                agent.deny = words(&value).iter().filter_map(|name| meant(bare(name))).collect();
            }
            "model" | "model_config.model" | "modelConfig.model" => agent.model = model(&value, &mut notes),
            "max_turns" | "maxTurns" | "run_config.max_turns" | "runConfig.maxTurns" => {
                agent.max_turns = value.as_u64().and_then(|turns| u32::try_from(turns).ok()).filter(|turns| *turns > 0);
            }
            "color" | "display_name" | "kind" => {}
            other => notes.push(format!("`{}` cannot be said here", inert(other))),
        }
    }
    if agent.description.is_empty() {
        agent.description.clone_from(&found.name);
    }
    (agent, notes)
}

/// A list, or words with commas between them.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => split(text),
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(|word| word.trim().to_owned()).collect(),
        _ => Vec::new(),
    }
}

/// Parts between commas, but not those in parentheses.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0_usize);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match parts.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// The tools it may use; none if that is all.
fn tools(value: &Value, notes: &mut Vec<String>) -> Option<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for name in words(value) {
        if name == "*" {
            return None;
        }
        if name != bare(&name) {
            notes.push(format!("`{}` is narrower than a tool can be said here, and was left out", inert(&name)));
            continue;
        }
        match meant(&name) {
            Some(tool) if !found.contains(&tool) => found.push(tool),
            Some(_) => {}
            None => notes.push(format!("there is no tool here for `{}`, which was left out", inert(&name))),
        }
    }
    Some(found)
}

/// A name without what it is narrowed to: `Bash(git:*)`.
fn bare(name: &str) -> &str {
    name.split('(').next().unwrap_or(name).trim()
}

/// What a name means here.
fn meant(name: &str) -> Option<String> {
    if let Some(rest) = name.strip_prefix("mcp__") {
        let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
        return Some(format!("mcp:{server}:{tool}"));
    }
    let listed = haft_core::dialect::client_tool(name);
    let own = || {
        haft_runtime::tools::all()
            .iter()
            .map(|tool| &tool.spec().name)
            .find(|known| known.as_str() == name || known.api_name() == name)
    };
    listed.map(str::to_owned).or_else(|| own().map(ToString::to_string))
}

/// A model with its provider. What only other systems understand is left to whoever uses the agent.
fn model(value: &Value, notes: &mut Vec<String>) -> Option<String> {
    let name = value.as_str().unwrap_or_default().trim();
    let provider = [("claude-", "anthropic"), ("gemini-", "gemini"), ("gpt-", "openai")];
    match provider.iter().find(|(start, _)| name.starts_with(start)) {
        Some((_, provider)) => Some(format!("{provider}/{name}")),
        // Here, too, an agent that names no model has that of whoever it works for.
        None if name.is_empty() || name == "inherit" => None,
        None if ["opus", "sonnet", "haiku"].contains(&name) => {
            let newest = facts::models_of("anthropic").into_iter().filter(|model| model.model.contains(name));
            let newest = newest.max_by(|one, other| newness(&one.model).cmp(&newness(&other.model)));
            let instead = newest.map(|model| format!("; for that one write `model: {model}`")).unwrap_or_default();
            notes.push(format!(
                "the model `{name}` was left out, because only Claude Code knows which one that is: it has that of whoever it works for{instead}"
            ));
            None
        }
        None => {
            notes.push(format!("the model `{}` was left out; say it as `provider/model`", inert(name)));
            None
        }
    }
}

/// The numbers in a model's name: the larger, the newer.
fn newness(name: &str) -> Vec<u32> {
    name.split('-').filter_map(|part| part.parse().ok()).collect()
}

/// A name as agents have them here.
fn plain(name: &str) -> String {
    let small: String =
        name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let small: String = small.trim_matches('-').chars().take(60).collect();
    if is_name(&small) { small } else { format!("agent-{small}").trim_end_matches('-').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_of_tools_are_those_of_here_or_left_out() {
        let mut notes = Vec::new();
        let said = json!(
            "Read, Edit, MultiEdit, Bash, mcp__github__get_issue, mcp__docs, Bash(git log:*, git diff), Frobnicate"
        );
        let found = tools(&said, &mut notes).unwrap();
        assert_eq!(found, ["file.read", "file.edit", "shell.exec", "mcp:github:get_issue", "mcp:docs:*"]);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("`Bash(git log:*, git diff)` is narrower") && notes[1].contains("`Frobnicate`"));
        assert_eq!(tools(&json!(["*"]), &mut notes), None);
        let gemini = json!(["read_file", "run_shell_command", "google_web_search", "search_file_content", "ask_user"]);
        let expected = ["file.read", "shell.exec", "web.search", "file.grep", "user.ask"];
        assert_eq!(tools(&gemini, &mut notes).unwrap(), expected);
    }

    #[test]
    fn names_become_plain() {
        for (name, expected) in [
            ("code-reviewer", "code-reviewer"),
            ("Code Reviewer!", "code-reviewer"),
            ("2fast", "agent-2fast"),
            ("é", "agent"),
        ] {
            assert_eq!(plain(name), expected);
        }
    }
}
