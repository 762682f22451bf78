//! The state of haft in each client on this machine, for `haft doctor`.

use super::clients::{self, ClientPlaces, EditPurpose, FilePlan, InstallMode, InstallPlan};
use super::config_file::ConfigFile;
use super::{codex_hooks, edits, overrides};
use crate::cli::{Common, McpClient};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// Whether a client's own file, shell and web tools are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NativeTools {
    /// All that haft knows are off.
    Off,
    /// They are off in the client's program for the terminal, and on in the editor.
    PartlyOff,
    /// They are on, and `haft hook` is asked before each use.
    Hooked,
    /// They are on, and the client does not run all of haft's hooks: a person has to trust them there first.
    HooksNotRun,
    On,
    /// A file that says so cannot be read.
    Unknown,
}

/// The state of haft in one client.
#[derive(Debug, Serialize)]
pub(crate) struct ClientState {
    pub(crate) client: &'static str,
    #[serde(skip)]
    pub(crate) kind: McpClient,
    /// Whether haft is one of its servers.
    pub(crate) entered: bool,
    pub(crate) native_tools: NativeTools,
    /// The file or variable that overrides haft's settings: it turns native tools on, or haft's hooks off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) overridden_by: Option<String>,
    /// The events under which the client does not run haft's hooks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hooks_not_run: Vec<String>,
    /// The files that say so.
    pub(crate) files: Vec<PathBuf>,
    /// Why a file could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// The state of haft in every client of which there are traces on this machine.
pub(crate) fn client_states(common: &Common) -> Vec<ClientState> {
    let Ok(places) = ClientPlaces::find(common) else { return Vec::new() };
    McpClient::ALL.into_iter().filter(|client| client.is_found(&places)).map(|client| state(client, &places)).collect()
}

/// What keeps an installation from having the effect that it is made for.
pub(super) enum Override {
    None,
    /// A file or a variable turns the client's own tools on, or its hooks off.
    By(String),
    /// The client does not run the hooks before a person has trusted them there.
    Untrusted,
    /// Why that is not known.
    Unknown(String),
}

/// What overrides the edits of an installation, once they are written.
pub(super) fn override_of(client: McpClient, mode: InstallMode, places: &ClientPlaces) -> Override {
    let source = match mode {
        InstallMode::Beside => return Override::None,
        InstallMode::Replace => overrides::turned_on_by(client, places),
        InstallMode::Hooks => overrides::hooks_turned_off_by(client, places),
    };
    match source {
        Ok(None) if mode == InstallMode::Hooks => match hooks_not_run(client, places) {
            Ok(events) if events.is_empty() => Override::None,
            Ok(_) => Override::Untrusted,
            Err(why) => Override::Unknown(why),
        },
        Ok(None) => Override::None,
        Ok(Some(source)) => Override::By(source.shown(&places.project)),
        Err(why) => Override::Unknown(why),
    }
}

fn state(client: McpClient, places: &ClientPlaces) -> ClientState {
    let mut state = ClientState {
        client: client.word(),
        kind: client,
        entered: false,
        native_tools: NativeTools::Unknown,
        overridden_by: None,
        hooks_not_run: Vec::new(),
        files: Vec::new(),
        problem: None,
    };
    if let Err(problem) = look(client, places, &mut state) {
        state.problem = Some(problem);
    }
    state
}

fn look(client: McpClient, places: &ClientPlaces, state: &mut ClientState) -> Result<(), String> {
    let beside = clients::plan(client, InstallMode::Beside, places).map_err(|error| error.message)?;
    if let Some(file) = beside.files.first() {
        state.files.push(file.path.clone());
        state.entered = edits::get(&value(client, file, places)?, &beside.entry).is_some();
    }
    let mut native_tools = NativeTools::On;
    if has_all(client, places, InstallMode::Replace, EditPurpose::NativeOff)? {
        let source = overrides::turned_on_by(client, places)?;
        state.overridden_by = source.map(|source| source.shown(&places.project));
        native_tools = match state.overridden_by {
            Some(_) => NativeTools::On,
            None if client.keeps_tools_in_editor() => NativeTools::PartlyOff,
            None => NativeTools::Off,
        };
    } else if has_all(client, places, InstallMode::Hooks, EditPurpose::Hook)? {
        let source = overrides::hooks_turned_off_by(client, places)?;
        state.overridden_by = source.map(|source| source.shown(&places.project));
        state.hooks_not_run = hooks_not_run(client, places)?;
        native_tools = match state.overridden_by {
            Some(_) => NativeTools::On,
            None if !state.hooks_not_run.is_empty() => NativeTools::HooksNotRun,
            None => NativeTools::Hooked,
        };
    }
    state.native_tools = native_tools;
    Ok(())
}

/// The events of haft's hooks, which are entered, that the client does not run as its files stand.
pub(super) fn hooks_not_run(client: McpClient, places: &ClientPlaces) -> Result<Vec<String>, String> {
    if client != McpClient::Codex {
        return Ok(Vec::new());
    }
    let plan = clients::plan(client, InstallMode::Hooks, places).map_err(|error| error.message)?;
    let Some(file) = plan.files.first() else { return Ok(Vec::new()) };
    codex_hooks::events_not_run(&value(client, file, places)?, places)
}

/// Whether the client's files hold all edits that an installation makes for this purpose.
fn has_all(client: McpClient, places: &ClientPlaces, mode: InstallMode, purpose: EditPurpose) -> Result<bool, String> {
    // Not every client can be installed in every way.
    let Ok(plan) = clients::plan(client, mode, places) else { return Ok(false) };
    if holds_all(client, places, &plan, purpose)? {
        return Ok(true);
    }
    clients::plan_by_bare_name(client, mode, places).map_or(Ok(false), |plan| holds_all(client, places, &plan, purpose))
}

fn holds_all(
    client: McpClient,
    places: &ClientPlaces,
    plan: &InstallPlan,
    purpose: EditPurpose,
) -> Result<bool, String> {
    let mut any = false;
    for file in &plan.files {
        let wanted: Vec<_> = file.edits.iter().filter(|(of, _)| *of == purpose).map(|(_, edit)| edit).collect();
        if wanted.is_empty() {
            continue;
        }
        any = true;
        let said = match (client, purpose) {
            (McpClient::Claude, EditPurpose::NativeOff) => overrides::claude_denials(places)?,
            _ => value(client, file, places)?,
        };
        if !wanted.iter().all(|edit| edit.is_in(&said)) {
            return Ok(false);
        }
    }
    Ok(any)
}

fn value(client: McpClient, file: &FilePlan, places: &ClientPlaces) -> Result<Value, String> {
    let project = client.is_of_project().then_some(places.project.as_path());
    let read = ConfigFile::read(&file.path, project).map_err(|error| error.message)?;
    let text = read.text.unwrap_or_default();
    edits::read(file.format, &text).map_err(|why| format!("{}: {why}", file.path.display()))
}
