//! `haft doctor`: what works here, what does not, and how to mend it.

use crate::app::{Failure, Ground};
use crate::cli::{Common, McpClient};
use crate::commands::mcp::{ClientState, NativeTools, client_states};
use crate::config::Loaded;
use crate::operational_log;
use crate::style::{self, BAD, CARE, FAINT, GOOD, paint};
use haft_core::ToolSpec;
use haft_core::provider::{DeclarationNote, registration_notes};
use haft_mcp::client::{Server, accepted_provider_notes};
use haft_runtime::Halt;
use haft_runtime::agent::roles;
use haft_runtime::agent::worktrees::{Holds, kept};
use haft_runtime::browser::BrowserSettings;
use haft_runtime::confined::Require;
use haft_sandbox::{Level, Machine};
use haft_store::{Kind, Store};
use serde::Serialize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Good,
    Care,
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    name: String,
    health: Health,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// How haft stands in an MCP client, for findings about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<ClientState>,
}

fn good(name: impl Into<String>, found: impl Into<String>) -> Finding {
    Finding { name: name.into(), health: Health::Good, found: found.into(), fix: None, client: None }
}

fn finding(name: impl Into<String>, health: Health, found: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { name: name.into(), health, found: found.into(), fix: Some(fix.into()), client: None }
}

/// Looks at everything. Exits with 1 if something is broken.
pub(super) fn run(common: &Common) -> u8 {
    let mut findings = vec![good("haft", env!("CARGO_PKG_VERSION"))];
    match Ground::find_to_look_back(common) {
        Ok(ground) => {
            let (found, required) = look(&ground);
            findings.extend(found);
            findings.push(log_file(ground.paths.data_dir()));
            findings.extend(confinement(ground.paths.data_dir(), required));
        }
        // Whoever has a broken configuration wants to know what else is broken.
        Err(failure) => {
            findings.push(browser(&BrowserSettings::default()));
            findings.push(finding("config", Health::Bad, failure.message(), "mend the file it names"));
            let here = common.root_dir().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
            match crate::config::Paths::from_env(&here) {
                Ok(paths) => {
                    findings.push(log_file(paths.data_dir()));
                    findings.extend(confinement(paths.data_dir(), false));
                }
                Err(error) => findings.push(finding("data", Health::Bad, error.to_string(), "set HOME")),
            }
        }
    }
    findings.extend(client_states(common).into_iter().map(client));
    if common.json() {
        style::json(&findings);
    } else {
        findings.iter().for_each(show);
    }
    u8::from(findings.iter().any(|finding| finding.health == Health::Bad))
}

fn show(finding: &Finding) {
    let mark = match finding.health {
        Health::Good => paint(GOOD, "ok  "),
        Health::Care => paint(CARE, "care"),
        Health::Bad => paint(BAD, "bad "),
    };
    style::out(&format!("{mark}  {:<13} {}", finding.name, style::inert(&finding.found)));
    if let Some(fix) = &finding.fix {
        style::out(&format!("      {}", paint(FAINT, fix)));
    }
}

/// What is found, and whether the configuration requires full confinement.
fn look(ground: &Ground) -> (Vec<Finding>, bool) {
    let mut findings = vec![good("project", ground.workspace.root().display().to_string())];
    findings.extend(program_of_project(ground.workspace.root()));
    let store = match ground.store() {
        Ok(store) => store,
        Err(failure) => {
            findings.push(finding(
                "store",
                Health::Bad,
                failure.message(),
                failure.hint().unwrap_or("`haft log` says more"),
            ));
            return (findings, false);
        }
    };
    findings.push(chain(&store));
    findings.push(where_kept(&store));
    findings.extend(tools(ground, &store));
    findings.extend(worktrees(ground, &store));
    findings.extend(agents(ground));
    let loaded = ground.resolve(&store);
    if let Ok(loaded) = &loaded {
        findings.extend(providers(ground, &store, &loaded.settings.doors.servers));
    }
    let required = loaded.as_ref().is_ok_and(|loaded| loaded.settings.terms.require == Require::Full);
    let usual = BrowserSettings::default();
    findings.push(browser(loaded.as_ref().map_or(&usual, |loaded| &loaded.settings.browser)));
    findings.push(configuration(loaded));
    (findings, required)
}

/// Where processes that stay write down what they do and wait for.
fn log_file(data_dir: &Path) -> Finding {
    let (file, bound) = (operational_log::file(data_dir), operational_log::bound());
    good("log file", format!("{}, of serve, worker and mcp; {bound}", file.display()))
}

/// A `haft` of the project's that the PATH finds before the user's, as with a virtual environment: a client that starts
/// `haft` by its name would run it.
fn program_of_project(root: &Path) -> Option<Finding> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let found = std::env::split_paths(&path).map(|dir| dir.join("haft")).find(is_program)?;
    // An empty or relative directory of the PATH is wherever the client is.
    let absolute = std::path::absolute(&found).ok()?;
    let is_inside = |path: &Path| path.starts_with(root);
    let decided_by_project =
        found.is_relative() || is_inside(&absolute) || absolute.canonicalize().is_ok_and(|real| is_inside(&real));
    decided_by_project.then(|| {
        finding(
            "program",
            Health::Care,
            format!("the PATH finds `haft` at {}, which the project decides", absolute.display()),
            "remove it, or take that directory from the PATH; name haft with its whole path where a client starts it",
        )
    })
}

/// Whether haft is configured in an agent that is installed here, and whether the agent's own tools are on.
fn client(state: ClientState) -> Finding {
    let (title, word, native) = (state.kind.title(), state.kind.word(), state.kind.native_tools());
    let replace = if state.kind == McpClient::Vscode {
        "turn its built-in tools off in the chat's tool picker".to_owned()
    } else {
        format!("`haft mcp install {word} --replace` turns them off")
    };
    let name = format!("{word} client");
    let mut finding = match (state.entered, state.native_tools) {
        (_, NativeTools::Unknown) => finding(
            name,
            Health::Care,
            format!(
                "{title}: whether its own tools ({native}) are on is unknown: {}",
                state.problem.as_deref().unwrap_or("its configuration cannot be read")
            ),
            "correct what it names; haft does not edit a file until it is valid",
        ),
        (_, NativeTools::HooksNotRun) => finding(
            name,
            Health::Care,
            format!(
                "{title}: its own tools ({native}) are on, and {title} does not run haft's hooks ({}): nobody has trusted \
                 them there, or somebody has turned them off",
                state.hooks_not_run.join(", ")
            ),
            format!(
                "start `{word}`, open `/hooks` and trust haft's hooks; `haft mcp install {word} --replace` needs no trust"
            ),
        ),
        (false, NativeTools::On) => good(name, format!("{title}: haft is not configured; its own tools are on")),
        (false, _) => finding(
            name,
            Health::Care,
            format!("{title}: haft is not configured, and its own tools ({native}) are off, or checked by `haft hook`"),
            format!("`haft mcp install {word}` configures it"),
        ),
        (true, NativeTools::Off) => good(name, format!("{title}: haft is configured; its own tools are off")),
        (true, NativeTools::PartlyOff) => finding(
            name,
            Health::Care,
            format!("{title}: haft is configured; its own tools are off in the terminal, and on in the editor"),
            "no setting turns them off there; choose haft's tools in the chat",
        ),
        (true, NativeTools::Hooked) => {
            good(name, format!("{title}: haft is configured; its own tools are on, and checked by `haft hook`"))
        }
        (true, NativeTools::On) => match &state.overridden_by {
            Some(source) => finding(
                name,
                Health::Care,
                format!(
                    "{title}: haft is configured; its own tools ({native}) are on: {source} overrides haft's settings"
                ),
                format!("remove the entries of {source} that turn the tools on, or haft's hooks off"),
            ),
            None => finding(
                name,
                Health::Care,
                format!("{title}: haft is configured; its own tools ({native}) are on"),
                replace,
            ),
        },
    };
    finding.client = Some(state);
    finding
}

/// Worktrees of agents that nobody has removed.
fn worktrees(ground: &Ground, store: &Store) -> Option<Finding> {
    let kept = kept(&ground.data_dir(store), &Halt::new());
    let merged = kept.iter().filter(|tree| tree.holds == Holds::Merged).count();
    let found = match (kept.len(), merged) {
        (0, _) => return None,
        (all, 0) => format!("{all} of agents are kept, with changes that are not in their projects"),
        (all, merged) => format!("{all} of agents are kept, {merged} of them with nothing that is not in its project"),
    };
    let fix =
        "`haft agents worktrees` lists them, and removes what nobody needs: `haft agents worktrees remove --merged`";
    Some(finding("worktrees", Health::Care, found, fix))
}

/// The user's own agents that cannot be read.
fn agents(ground: &Ground) -> Option<Finding> {
    let files = roles::filed_in(&ground.paths.agents_dir());
    let broken: Vec<String> =
        files.iter().filter(|file| file.says.is_err()).map(|file| file.path.display().to_string()).collect();
    let found = format!("cannot be read: {}", broken.join(", "));
    (!broken.is_empty()).then(|| finding("agents", Health::Care, found, "`haft agents` says what is wrong"))
}

fn chain(store: &Store) -> Finding {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
        return finding("log", Health::Bad, "the async runtime cannot start", "check the limits of this process");
    };
    match runtime.block_on(store.verify(None)) {
        Ok(Ok(verified)) => good("log", format!("{} records, the chain holds", verified.head.seq)),
        Ok(Err(broken)) => finding(
            "log",
            Health::Bad,
            format!("broken at record {}: {}", broken.seq, broken.why),
            "somebody changed the log; keep the file and look at that record",
        ),
        Err(error) => finding("log", Health::Bad, error.to_string(), error.hint()),
    }
}

/// Tools that are files, and which of them cannot be called as they are.
fn tools(ground: &Ground, store: &Store) -> Option<Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
    let shelf = ground.shelf(store);
    if let Err(error) = runtime.block_on(shelf.load_all()) {
        return Some(finding("tools", Health::Bad, error.message, error.hint.unwrap_or_default()));
    }
    let (report, warnings) = (shelf.report(), shelf.report().warnings());
    if report.tools.is_empty() && warnings.is_empty() {
        return None;
    }
    let uncounted: Vec<&str> = report
        .tools
        .iter()
        .filter(|tool| tool.manifest.is_some() && !tool.standing.counts())
        .map(|tool| tool.name.as_str())
        .collect();
    let found = format!("{} are files", report.tools.len());
    Some(if let Some(first) = warnings.first() {
        let more = if warnings.len() == 1 { String::new() } else { format!(" (and {} more)", warnings.len() - 1) };
        finding("tools", Health::Care, format!("{found}; {first}{more}"), "mend the file; `haft lint` shows all")
    } else if uncounted.is_empty() {
        good("tools", found)
    } else {
        let names = haft_core::preview::cut(&uncounted.join(", "), 120);
        finding(
            "tools",
            Health::Care,
            format!("{found}; not accepted as they stand: {names}"),
            "look at them with `haft trust`",
        )
    })
}

/// Tools of manifests and bridged servers that a model provider cannot take as they are. Servers are not started: what was
/// accepted of them is looked at.
fn providers(ground: &Ground, store: &Store, servers: &[Server]) -> Vec<Finding> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else { return Vec::new() };
    let shelf = ground.shelf(store);
    // Why they cannot be read is a finding of its own.
    let loaded = runtime.block_on(shelf.load_all());
    let tools = loaded.map(|()| shelf.report().tools).unwrap_or_default();
    let manifests = tools.into_iter().filter_map(|tool| tool.manifest);
    let specs = manifests.filter_map(|manifest| {
        let spec = ToolSpec::new(&manifest.name, manifest.description.trim()).ok()?;
        Some(spec.input(manifest.inputs.schema.clone()))
    });
    let mut notes: Vec<DeclarationNote> = specs.flat_map(|spec| registration_notes(&spec)).collect();
    for server in servers {
        notes.extend(runtime.block_on(accepted_provider_notes(store, server)).unwrap_or_default());
    }
    let fix = "the tool works with other providers; simplify what the rule names in its input schema";
    notes.iter().map(|note| finding("provider", Health::Care, note.to_string(), fix)).collect()
}

/// Which store it is, whether it answers, and who else might read it.
fn where_kept(store: &Store) -> Finding {
    if store.kind() == Kind::Lite {
        return private(store.path());
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
        return finding("store", Health::Bad, "the async runtime cannot start", "check the limits of this process");
    };
    match runtime.block_on(store.about()) {
        Ok(about) => {
            let (path, way) = (store.path().display(), store.privacy());
            let text = format!("{path} ({}, format {}; {way})", about.database, about.format);
            if way.contains("verified") || way.contains("this machine") {
                return good("store", text);
            }
            finding("store", Health::Care, text, "sslmode=verify-full in its address, with sslrootcert=FILE if need be")
        }
        Err(error) => finding("store", Health::Bad, error.to_string(), error.hint()),
    }
}

fn private(path: &Path) -> Finding {
    let mode = std::fs::metadata(path).map_or(0, |meta| meta.permissions().mode() & 0o777);
    let text = format!("{} (mode {mode:o})", path.display());
    match mode & 0o077 {
        0 => good("store", text),
        _ => finding("store", Health::Care, text, format!("others can read it: chmod 600 {}", path.display())),
    }
}

/// Whether browser tools have a browser. Whoever does not use them needs none.
fn browser(settings: &BrowserSettings) -> Finding {
    match settings.find() {
        Ok(program) => good("browser", program.display().to_string()),
        Err(error) => finding("browser", Health::Care, error.message, error.hint.unwrap_or_default()),
    }
}

fn configuration(loaded: Result<Loaded, Failure>) -> Finding {
    match loaded {
        Ok(loaded) if loaded.warnings.is_empty() => good("config", "valid"),
        Ok(loaded) => {
            finding("config", Health::Care, loaded.warnings.join("; "), "`haft config show` shows what is in force")
        }
        Err(failure) => finding("config", Health::Bad, failure.message(), "mend the file it names"),
    }
}

/// The same for whoever shows it elsewhere: each thing by its name.
pub(super) fn confined(data_dir: &Path) -> serde_json::Value {
    let entry = |found: Finding| {
        let name = found.name.clone();
        let mut value = serde_json::to_value(found).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            fields.remove("name");
        }
        (name, value)
    };
    confinement(data_dir, false).into_iter().map(entry).collect()
}

/// What the kernel offers for confinement, found out by using it, and what follows.
fn confinement(data_dir: &Path, required: bool) -> Vec<Finding> {
    // Not what was found earlier: whoever asks the doctor may have just mended something.
    let machine = &haft_runtime::confined::machine::look_anew(data_dir);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut findings = vec![good("kernel", release.trim())];
    for mechanism in &machine.mechanisms {
        findings.push(if mechanism.works {
            good(mechanism.name.as_ref(), &mechanism.found)
        } else {
            finding(
                mechanism.name.as_ref(),
                Health::Care,
                &mechanism.found,
                mechanism.fix.as_deref().unwrap_or("nothing known"),
            )
        });
    }
    let (stops, lacks) = reach(machine);
    let found = format!("{}: {stops}", machine.level);
    findings.push(match lacks {
        None => good("confinement", found),
        Some(lacks) if required => {
            finding("confinement", Health::Bad, found, format!("{lacks}; the configuration requires full"))
        }
        Some(lacks) => finding("confinement", Health::Care, found, lacks),
    });
    findings
}

/// What a machine's level stops, and what it does not.
fn reach(machine: &Machine) -> (&'static str, Option<&'static str>) {
    match (machine.level, machine.layers) {
        (Level::Full, true) => (
            "programs see and change only what they may, reach no host that is not allowed, and what they change can be tried and undone; not stopped: bugs of the kernel, and what an allowed host does with what it gets",
            None,
        ),
        (Level::Full, false) => (
            "programs see and change only what they may, and reach no host that is not allowed",
            Some("what they change goes straight to the files: no dry run, no undo of commands"),
        ),
        (Level::Flat, _) => (
            "programs read and change only what they may, and have no network",
            Some(
                "names and sizes of other files and processes are visible; no protected places, no lists of hosts, no dry run, no undo of commands",
            ),
        ),
        (Level::None, _) => ("nothing is stopped", Some("shell.exec is refused unless confinement.require is none")),
    }
}
