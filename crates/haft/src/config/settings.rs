//! Settings that are neither policy nor approval: places, limits, and who is calling.

use super::commands::Commands;
use super::confinement;
use super::doors::{self, Doors};
use super::error::ConfigError;
use super::file::{Config, Kept, Undo};
use super::layers::{Layers, Stack};
use super::models;
use super::names::Names;
use super::paths::Paths;
use super::placed::{Spot, Text};
use super::security::{self, Security};
use haft_core::grant::DEFAULT_USES;
use haft_core::shell::Table;
use haft_core::shell::rule::Rulebook;
use haft_core::suggest::nearest;
use haft_core::{Caller, Dialect};
use haft_runtime::agent::AgentSettings;
use haft_runtime::browser::BrowserSettings;
use haft_runtime::confined::Terms;
use haft_runtime::hooked::HookSettings;
use haft_runtime::making::Making;
use haft_runtime::media::MediaSettings;
use haft_runtime::memory::MemorySettings;
use haft_runtime::secrets::SecretSource;
use haft_runtime::web::WebSettings;
use haft_runtime::{KeptLimits, UndoLimits};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What the runtime is told besides policy and chain.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directories that may be used besides the project.
    pub roots: Roots,
    /// How much is kept for undo.
    pub undo: UndoLimits,
    /// On what terms programs run.
    pub terms: Terms,
    /// The vocabulary of tools.
    pub dialect: Dialect,
    /// The file of the store, or the address of its server.
    pub store: PathBuf,
    /// How often a remembered grant holds.
    pub grant_uses: u32,
    /// On whose behalf calls are made.
    pub caller: Caller,
    /// What programs do, if the shipped table is not all.
    pub table: Option<Arc<Table>>,
    /// The rules about shell commands.
    pub rules: Arc<Rulebook>,
    /// How the doors behave.
    pub doors: Doors,
    /// What may be asked of the web.
    pub web: WebSettings,
    /// What browsers go by.
    pub browser: BrowserSettings,
    /// What media tools go by.
    pub media: MediaSettings,
    /// What memory goes by.
    pub memory: MemorySettings,
    /// What agents go by.
    pub agent: AgentSettings,
    /// What agents may make.
    pub making: Making,
    /// Where secrets come from.
    pub secrets: BTreeMap<String, SecretSource>,
    /// Programs and addresses that are asked about calls.
    pub hooks: HookSettings,
}

/// Directories that may be used besides the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots {
    /// To be read unasked.
    pub read: Vec<PathBuf>,
    /// To count as the project when written.
    pub write: Vec<PathBuf>,
}

/// Builds the settings; mistakes that do no harm become warnings.
pub(super) fn build(
    layers: &Layers,
    stack: &Stack,
    merged: &Config,
    commands: Commands,
    names: &mut Names<'_>,
) -> Result<Settings, ConfigError> {
    let (web, hooks) = (merged.web.wanted(names)?, merged.hooks.wanted(names)?);
    let warnings = &mut names.warnings;
    let nearest_said = |flag: &Option<String>, variable: &Option<String>| flag.clone().or_else(|| variable.clone());
    let caller = Caller {
        agent: nearest_said(&layers.flags.agent, &layers.environment.agent),
        provider: nearest_said(&layers.flags.provider, &layers.environment.provider),
        claimed: false,
    };
    warnings.extend(misspelt("agent", caller.agent.as_deref(), merged.agents.keys().chain(merged.web.agents.keys())));
    warnings.extend(misspelt("provider", caller.provider.as_deref(), merged.providers.keys()));
    Ok(Settings {
        roots: roots(stack, &layers.paths, warnings)?,
        undo: undo(&merged.undo),
        terms: Terms {
            shell: merged.shell.wanted()?,
            kept: kept(&merged.kept),
            ..confinement::terms(&merged.permissions, &merged.confinement)?
        },
        dialect: merged.dialect.unwrap_or_default(),
        store: layers.store()?,
        grant_uses: grant_uses(merged)?,
        caller,
        table: commands.table,
        rules: commands.rules,
        browser: merged.browser.wanted(&web)?,
        web,
        media: merged.media.wanted()?,
        memory: merged.memory.wanted()?,
        agent: models::wanted(&merged.models, &merged.agent)?,
        making: security::making(&stack.user.security, &lowered(layers, stack))?,
        secrets: security::secrets(&merged.secrets)?,
        hooks,
        doors: doors::doors(&merged.mcp, &merged.tools, &merged.gateway)?,
    })
}

/// What lowers what agents may make.
fn lowered<'l>(layers: &'l Layers, stack: &'l Stack) -> Vec<&'l Security> {
    std::iter::once(&stack.project.security).chain(&layers.glee).collect()
}

/// A name that has no rules but nearly is one that has would escape them unnoticed.
fn misspelt<'k>(noun: &str, name: Option<&str>, known: impl Iterator<Item = &'k Text> + Clone) -> Option<String> {
    let name = name.filter(|name| known.clone().all(|text| text.as_str() != *name))?;
    let near = nearest(name, known.map(Text::as_str))?;
    Some(format!("no rules are given for the {noun} `{name}`; did you mean `{near}`?"))
}

fn kept(kept: &Kept) -> KeptLimits {
    let usual = KeptLimits::default();
    KeptLimits {
        age: kept.keep_days.map_or(usual.age, |days| Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        bytes: kept.max_total_bytes.unwrap_or(usual.bytes),
        log: kept.log_days.map(|days| Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
    }
}

fn undo(undo: &Undo) -> UndoLimits {
    let built_in = Undo::built_in();
    let or = |said: Option<u64>, otherwise: Option<u64>| said.or(otherwise).unwrap_or_default();
    let days = or(undo.keep_days.map(Into::into), built_in.keep_days.map(Into::into));
    UndoLimits {
        keep: Duration::from_secs(days.saturating_mul(24 * 60 * 60)),
        max_file_bytes: or(undo.max_file_bytes, built_in.max_file_bytes),
        max_total_bytes: or(undo.max_total_bytes, built_in.max_total_bytes),
    }
}

fn grant_uses(merged: &Config) -> Result<u32, ConfigError> {
    match &merged.approval.grant_uses {
        Some(uses) if uses.value == 0 => Err(ConfigError::malformed(&uses.spot, "has to be at least 1")),
        uses => Ok(uses.as_ref().map_or(DEFAULT_USES, |uses| uses.value)),
    }
}

fn roots(stack: &Stack, paths: &Paths, warnings: &mut Vec<String>) -> Result<Roots, ConfigError> {
    let mut roots = Roots::default();
    for (config, is_project) in [(&stack.user, false), (&stack.project, true)] {
        for (texts, list) in [(&config.files.read, &mut roots.read), (&config.files.write, &mut roots.write)] {
            for text in texts {
                let dir = root(text, paths, is_project)?;
                if !dir.exists() {
                    warnings.push(format!("{}: there is no directory `{}`", text.spot, text.value));
                }
                list.push(dir);
            }
        }
    }
    Ok(roots)
}

fn root(text: &Text, paths: &Paths, is_project: bool) -> Result<PathBuf, ConfigError> {
    let path = expanded(text, paths)?;
    if path.is_relative() && !is_project {
        return Err(ConfigError::malformed(&text.spot, relative(text)));
    }
    Ok(paths.root().join(path))
}

/// What a person named as the store: a file, or a server's address.
pub(super) fn store(text: &Text, paths: &Paths) -> Result<PathBuf, ConfigError> {
    match text.value.split_once("://") {
        Some(("postgres" | "postgresql", _)) => return Ok(PathBuf::from(&text.value)),
        // The rest of a URL may hold a password, so it is not repeated.
        Some((scheme, _)) => {
            let what = format!("a store at a `{scheme}` URL");
            return Err(ConfigError::Store { spot: text.spot.clone(), what, default: paths.default_store() });
        }
        None => {}
    }
    let path = expanded(text, paths)?;
    match text.spot {
        Spot::File { .. } if path.is_relative() => Err(ConfigError::malformed(&text.spot, relative(text))),
        _ => std::path::absolute(&path).map_err(|error| ConfigError::malformed(&text.spot, error.to_string())),
    }
}

fn expanded(text: &Text, paths: &Paths) -> Result<PathBuf, ConfigError> {
    if text.value.is_empty() || text.value.contains('\0') {
        return Err(ConfigError::malformed(&text.spot, "expected a path"));
    }
    let no_home = || ConfigError::malformed(&text.spot, "`~` means HOME, which is not set; write the path in full");
    paths.expand(&text.value).ok_or_else(no_home)
}

fn relative(text: &Text) -> String {
    format!("`{0}` is relative to nothing here; write it in full, or as `~/{0}`", text.value)
}
