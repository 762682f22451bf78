//! Configuration that takes precedence over the files that haft edits: files of a project and environment variables. It can
//! turn a client's own tools on again after `haft mcp install --replace`, and the hooks off after `--hooks`.
//!
//! `tests/agent_clients/overrides.rs` runs the real programs on such files and compares the tools that they offer with
//! what `haft doctor` says. A file that cannot be read is an error here, so that tools are never called off by mistake.

mod opencode;

use super::clients::{self, ClientPlaces, EditPurpose, GOOSE_PLUGIN, InstallMode};
use super::config_file::ConfigFile;
use super::edits::{self, ConfigEdit, FileFormat};
use crate::cli::McpClient;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConfigSource {
    File(PathBuf),
    /// An environment variable.
    Variable(&'static str),
}

impl ConfigSource {
    /// As a person is told of it: a file of the project relative to the project.
    pub(super) fn shown(&self, project: &Path) -> String {
        match self {
            Self::Variable(name) => format!("${name}"),
            Self::File(path) => match path.strip_prefix(project) {
                Ok(inside) => format!("./{}", inside.display()),
                Err(_) => path.display().to_string(),
            },
        }
    }
}

/// What turns a client's own tools on again, although the files that haft edits turn them off.
pub(super) fn turned_on_by(client: McpClient, places: &ClientPlaces) -> Result<Option<ConfigSource>, String> {
    refuse_moved_configuration(client, places)?;
    match client {
        McpClient::Claude => claude_code(places),
        McpClient::Codex => codex(places),
        McpClient::Gemini => gemini_cli(places),
        McpClient::Opencode => opencode::turned_on_by(places),
        McpClient::Goose => goose(places),
        McpClient::Cursor | McpClient::Vscode => Ok(None),
    }
}

/// What turns off the hooks that haft entered in a client.
pub(super) fn hooks_turned_off_by(client: McpClient, places: &ClientPlaces) -> Result<Option<ConfigSource>, String> {
    refuse_moved_configuration(client, places)?;
    let file = match client {
        // A project's file turns off the user's hooks as well.
        McpClient::Codex => return Ok(last_to_turn_on(codex_layers(places)?, codex_runs_hooks)),
        McpClient::Claude => match last_switch(&claude_settings(places), &["disableAllHooks"])? {
            Some((file, true)) => Some(file),
            _ => None,
        },
        McpClient::Gemini => gemini_hooks_turned_off_by(places)?,
        McpClient::Goose => goose_hooks_turned_off_by(places)?,
        McpClient::Opencode | McpClient::Cursor | McpClient::Vscode => None,
    };
    Ok(file.map(ConfigSource::File))
}

/// goose runs no hooks of a plugin that settings disable, and those of the project's plugin in place of the user's with the
/// same name. It looks in the directory in which it is started. The nearest settings that name the plugin decide.
fn goose_hooks_turned_off_by(places: &ClientPlaces) -> Result<Option<PathBuf>, String> {
    let rival = places.here.join(GOOSE_PLUGIN);
    if places.here != places.home && rival.is_dir() {
        return Ok(Some(rival));
    }
    let own = places.here.join(".config/goose");
    let user = places.home.join(".config/goose/settings.json");
    for file in [own.join("settings.local.json"), own.join("settings.json"), user] {
        let said = read(&file, FileFormat::Json)?.unwrap_or_default();
        let names = |list: &str| texts(&said, &[list]).iter().any(|plugin| plugin == clients::NAME);
        if names("disabledPlugins") {
            return Ok(Some(file));
        }
        if names("enabledPlugins") {
            return Ok(None);
        }
    }
    Ok(None)
}

fn gemini_hooks_turned_off_by(places: &ClientPlaces) -> Result<Option<PathBuf>, String> {
    let files = gemini_settings(places);
    for file in &files {
        let said = read(file, FileFormat::Json)?.unwrap_or_default();
        let disabled = texts(&said, &["hooksConfig", "disabled"]);
        // A hook is named by its name or its command.
        if disabled.iter().any(|hook| hook == clients::NAME || hook.ends_with(" hook gemini")) {
            return Ok(Some(file.clone()));
        }
    }
    match last_switch(&files, &["hooksConfig", "enabled"])? {
        Some((file, false)) => Ok(Some(file)),
        _ => Ok(None),
    }
}

/// How a switch stands, and the file that says so: the last of them that has the switch.
fn last_switch(files: &[PathBuf], path: &[&str]) -> Result<Option<(PathBuf, bool)>, String> {
    let mut last = None;
    for file in files {
        let said = read(file, FileFormat::Json)?.unwrap_or_default();
        let switch = path.iter().try_fold(&said, |value, name| value.get(name)).and_then(Value::as_bool);
        last = switch.map(|is_on| (file.clone(), is_on)).or(last);
    }
    Ok(last)
}

/// Variables that move a client's configuration to another directory, and the directory without them, from home.
fn moving_variables(client: McpClient) -> &'static [(&'static str, &'static str)] {
    match client {
        McpClient::Codex => &[("CODEX_HOME", ".codex")],
        McpClient::Gemini => &[("GEMINI_CLI_HOME", "")],
        McpClient::Opencode => &[("XDG_CONFIG_HOME", ".config")],
        McpClient::Goose => &[("XDG_CONFIG_HOME", ".config"), ("GOOSE_PATH_ROOT", "")],
        McpClient::Claude | McpClient::Cursor | McpClient::Vscode => &[],
    }
}

/// haft edits the files below the home directory. A client that reads others is not known to be configured.
fn refuse_moved_configuration(client: McpClient, places: &ClientPlaces) -> Result<(), String> {
    for (name, usual) in moving_variables(client) {
        let Some(dir) = variable(name) else { continue };
        // GOOSE_PATH_ROOT has a layout of its own.
        if *name == "GOOSE_PATH_ROOT" || Path::new(&dir) != places.home.join(usual) {
            return Err(format!("{name} is set to {dir}, so {} reads its configuration there", client.title()));
        }
    }
    Ok(())
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}

/// What a file says; none if there is no such file.
fn read(path: &Path, format: FileFormat) -> Result<Option<Value>, String> {
    let Some(text) = read_text(path)? else { return Ok(None) };
    edits::read(format, &text).map(Some).map_err(|why| format!("{}: {why}", path.display()))
}

fn read_text(path: &Path) -> Result<Option<String>, String> {
    Ok(ConfigFile::read(path, None).map_err(|error| error.message)?.text)
}

/// A list of texts at a path; empty if there is none.
fn texts(value: &Value, path: &[&str]) -> Vec<String> {
    let list = path.iter().try_fold(value, |value, name| value.get(name)).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Merges a layer into those below it: objects member by member, everything else as a whole. Members keep their place.
fn merge(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                match below.get_mut(&name) {
                    Some(known) => merge(known, value),
                    None => {
                        below.insert(name, value);
                    }
                }
            }
        }
        (below, above) => *below = above,
    }
}

/// Merges layers from the lowest precedence to the highest, and names the last layer that turned the tools on, or in the
/// same way the hooks off.
fn last_to_turn_on(layers: Vec<(ConfigSource, Value)>, is_off: impl Fn(&Value) -> bool) -> Option<ConfigSource> {
    let mut merged = Value::Object(Map::new());
    let mut turned_on_by = None;
    let mut was_off = true;
    for (source, layer) in layers {
        merge(&mut merged, layer);
        let is_off_now = is_off(&merged);
        if is_off_now {
            turned_on_by = None;
        } else if was_off {
            turned_on_by = Some(source);
        }
        was_off = is_off_now;
    }
    turned_on_by
}

/// The edits by which an installation turns a client's own tools off.
fn native_off_edits(client: McpClient, places: &ClientPlaces) -> Result<Vec<ConfigEdit>, String> {
    let plan = clients::plan(client, InstallMode::Replace, places).map_err(|error| error.message)?;
    let edits = plan.files.into_iter().flat_map(|file| file.edits);
    Ok(edits.filter(|(purpose, _)| *purpose == EditPurpose::NativeOff).map(|(_, edit)| edit).collect())
}

/// The directories in which a client looks for files of a project, the outermost first: from the root of the repository
/// down to where the client is started. Without a repository they begin at `outermost`.
fn project_dirs(places: &ClientPlaces, outermost: &Path) -> Vec<PathBuf> {
    let here = &places.here;
    let repository = here.ancestors().find(|dir| dir.join(".git").exists());
    let top = repository.unwrap_or(outermost);
    let mut dirs: Vec<PathBuf> = here.ancestors().take_while(|dir| dir.starts_with(top)).map(Path::to_owned).collect();
    dirs.reverse();
    if dirs.is_empty() { vec![here.clone()] } else { dirs }
}

/// The settings of Claude Code that hold in a project, lowest precedence first.
fn claude_settings(places: &ClientPlaces) -> [PathBuf; 3] {
    let project = places.project.join(".claude");
    [places.home.join(".claude/settings.json"), project.join("settings.json"), project.join("settings.local.json")]
}

/// All denied tools of Claude Code, whichever file denies them, as one file would say it.
pub(super) fn claude_denials(places: &ClientPlaces) -> Result<Value, String> {
    let mut denied = Vec::new();
    for file in claude_settings(places) {
        denied.extend(read(&file, FileFormat::Json)?.iter().flat_map(|said| texts(said, &["permissions", "deny"])));
    }
    Ok(json!({"permissions": {"deny": denied}}))
}

/// Claude Code merges the rules of all files, and no file can allow a tool that another one denies. A file that cannot be
/// read is an error all the same: what Claude Code makes of it is not known.
fn claude_code(places: &ClientPlaces) -> Result<Option<ConfigSource>, String> {
    claude_denials(places).map(|_| None)
}

fn codex(places: &ClientPlaces) -> Result<Option<ConfigSource>, String> {
    let edits = native_off_edits(McpClient::Codex, places)?;
    // A permission profile takes the place of `sandbox_mode`.
    let is_off = |said: &Value| said.get("default_permissions").is_none() && edits.iter().all(|edit| edit.is_in(said));
    Ok(last_to_turn_on(codex_layers(places)?, is_off))
}

/// Whether Codex runs hooks at all. The feature has an older name, too.
fn codex_runs_hooks(said: &Value) -> bool {
    ["hooks", "codex_hooks"].iter().all(|feature| said["features"][*feature] != false)
}

/// Codex merges the `.codex/config.toml` of every directory of a project over the user's, if the user trusts the project.
fn codex_layers(places: &ClientPlaces) -> Result<Vec<(ConfigSource, Value)>, String> {
    let own = places.home.join(".codex");
    let file = own.join("config.toml");
    let user = read(&file, FileFormat::Toml)?.unwrap_or_default();
    let dirs: Vec<PathBuf> = project_dirs(places, &places.project)
        .into_iter()
        .filter(|dir| dir.join(".codex") != own && is_trusted_by_codex(&user, dir))
        .collect();
    let mut layers = vec![(ConfigSource::File(file), user)];
    for dir in dirs {
        let file = dir.join(".codex/config.toml");
        if let Some(said) = read(&file, FileFormat::Toml)? {
            layers.push((ConfigSource::File(file), said));
        }
    }
    Ok(layers)
}

/// Whether the user's configuration trusts a directory or one around it. A linked worktree is trusted with its main
/// checkout, which is elsewhere, so it counts as trusted.
fn is_trusted_by_codex(user: &Value, dir: &Path) -> bool {
    let is_linked_worktree = dir.ancestors().any(|dir| dir.join(".git").is_file());
    let projects = user.get("projects").and_then(Value::as_object);
    let mut trusted = projects.into_iter().flatten().filter(|(_, project)| project["trust_level"] == "trusted");
    is_linked_worktree
        || trusted.any(|(path, _)| {
            let real = Path::new(path).canonicalize().unwrap_or_else(|_| PathBuf::from(path));
            dir.starts_with(real)
        })
}

/// The settings of Gemini CLI that hold in a project, lowest precedence first.
fn gemini_settings(places: &ClientPlaces) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for dir in [&places.home, &places.project, &places.here] {
        let file = dir.join(".gemini/settings.json");
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

/// Gemini CLI joins the lists of excluded tools of all settings, so a project takes none out of the user's; but settings
/// whose `tools` is no object replace the whole of them. Then only the user's policies are left, which Gemini CLI reads
/// only if no settings name others (`policyPaths`), and policies of an administrator (`adminPolicyPaths`) take precedence.
/// Settings of a project that Gemini CLI trusts can do all of that. Whether it trusts this one is not looked at: an editor
/// or a variable may say so, too.
fn gemini_cli(places: &ClientPlaces) -> Result<Option<ConfigSource>, String> {
    let own = places.home.join(".gemini/policies");
    let mut is_list_replaced = false;
    for file in gemini_settings(places) {
        let said = read(&file, FileFormat::Json)?.unwrap_or_default();
        is_list_replaced |= said.get("tools").is_some_and(|tools| !tools.is_object());
    }
    if !is_list_replaced {
        return Ok(None);
    }
    // The lists of all files are joined.
    let mut named = Vec::new();
    for file in gemini_settings(places) {
        let Some(said) = read(&file, FileFormat::Json)? else { continue };
        if !texts(&said, &["adminPolicyPaths"]).is_empty() {
            return Ok(Some(ConfigSource::File(file)));
        }
        let paths = texts(&said, &["policyPaths"]);
        named.extend(paths.iter().map(|path| (file.clone(), expanded(path, places))));
    }
    let is_own_read = named.is_empty() || named.iter().any(|(_, path)| *path == own);
    for (file, path) in &named {
        if !is_own_read || (*path != own && rival_policy(path)?.is_some()) {
            return Ok(Some(ConfigSource::File(file.clone())));
        }
    }
    Ok(rival_policy(&own)?.map(ConfigSource::File))
}

/// A policy file at or below this path with a rule of the highest priority that does not deny. Of two rules with the same
/// priority, Gemini CLI applies the one it reads first.
fn rival_policy(path: &Path) -> Result<Option<PathBuf>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(fail)? {
            let file = entry.map_err(fail)?.path();
            if file.extension().is_some_and(|extension| extension == "toml") {
                files.push(file);
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    for file in files {
        let said = read(&file, FileFormat::Toml)?.unwrap_or_default();
        let mut rules = said.get("rule").and_then(Value::as_array).into_iter().flatten();
        let is_rival =
            |rule: &Value| rule["decision"] != "deny" && rule["priority"].as_f64().is_none_or(|rank| rank >= 999.0);
        if rules.any(is_rival) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// A path as Gemini CLI takes it: `~` is the home directory, everything else is relative to where it is started.
fn expanded(path: &str, places: &ClientPlaces) -> PathBuf {
    let path = match path.strip_prefix("~/") {
        Some(rest) => places.home.join(rest),
        None => places.here.join(path),
    };
    path.canonicalize().unwrap_or(path)
}

/// goose has no file for a project. A variable replaces the whole map of extensions.
fn goose(places: &ClientPlaces) -> Result<Option<ConfigSource>, String> {
    let Some(extensions) = variable("EXTENSIONS") else { return Ok(None) };
    let said = json!({"extensions": serde_json::from_str::<Value>(&extensions).unwrap_or_default()});
    let edits = native_off_edits(McpClient::Goose, places)?;
    Ok((!edits.iter().all(|edit| edit.is_in(&said))).then_some(ConfigSource::Variable("EXTENSIONS")))
}
