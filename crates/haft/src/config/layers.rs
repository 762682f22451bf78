//! The layers, read but not yet joined: what each says, and whether the project's counts.

use super::choices::Choices;
use super::error::ConfigError;
use super::file::{Approval, Autonomy, Config, Undo};
use super::paths::Paths;
use super::placed::{Placed, Spot, Text};
use super::read::{Layer, read};
use super::security::{self, Security};
use super::settings;
use super::untrusted::{Tightened, tighten};
use haft_core::Dialect;
use haft_core::grant::DEFAULT_USES;
use haft_core::record::Digest;
use haft_store::{Store, StoreError};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Whether a project's configuration counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// There is none.
    Absent,
    /// The user has accepted exactly this content.
    Trusted,
    /// The user has not looked at it.
    Untrusted,
    /// The user has accepted other content. It counts as untrusted.
    Changed,
}

impl Trust {
    /// The state in one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
        }
    }
}

/// Everything that was said, layer by layer.
#[derive(Debug, Clone)]
pub struct Layers {
    pub(super) paths: Paths,
    pub(super) user: Option<Layer>,
    pub(super) project: Option<Layer>,
    /// What a `.glee/config.yml` lowers, where there is no file of haft's own.
    pub(super) glee: Option<Security>,
    pub(super) environment: Choices,
    pub(super) flags: Choices,
}

/// Reads the user's and the project's file. Nothing is decided yet.
pub fn load(paths: &Paths, environment: Choices, flags: Choices) -> Result<Layers, ConfigError> {
    let project = read(&paths.project_config(), paths)?;
    let glee = if project.is_none() { glee(&paths.root().join(".glee/config.yml")) } else { None };
    Ok(Layers { user: read(&paths.user_config(), paths)?, project, glee, paths: paths.clone(), environment, flags })
}

/// The servers that either file bridges, by name, whether the project's counts or not.
pub fn servers_named(paths: &Paths) -> Result<BTreeSet<String>, ConfigError> {
    let layers = load(paths, Choices::default(), Choices::default())?;
    let both = [&layers.user, &layers.project].into_iter().flatten();
    Ok(both.flat_map(|layer| layer.config.mcp.servers.keys().map(|name| name.value.clone())).collect())
}

/// Reads the user's file alone. For looking back in a project whose own file cannot be read: it must not
/// be able to keep anybody from the log or from undo.
pub fn load_without_project(paths: &Paths, environment: Choices, flags: Choices) -> Result<Layers, ConfigError> {
    let user = read(&paths.user_config(), paths)?;
    Ok(Layers { user, project: None, glee: None, paths: paths.clone(), environment, flags })
}

/// What Glee's own configuration lowers. One that cannot be read lowers all of it.
fn glee(path: &std::path::Path) -> Option<Security> {
    const MOST: u64 = 1 << 20;
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(_) => return Some(security::of_glee("[")),
    };
    let mut text = String::new();
    let read = std::io::Read::read_to_string(&mut std::io::Read::take(file, MOST), &mut text);
    Some(security::of_glee(if read.is_ok_and(|read| (read as u64) < MOST) { &text } else { "[" }))
}

/// The files' settings as far as they count.
pub(super) struct Stack {
    /// The user's.
    pub(super) user: Config,
    /// The project's; of an untrusted one, what can only tighten.
    pub(super) project: Config,
    /// Whether the project may loosen.
    pub(super) trusted: bool,
    /// Keys of the project's file that do not count.
    pub(super) ignored: Vec<&'static str>,
}

impl Layers {
    /// The content of the project's file, to be trusted or compared.
    pub fn project_digest(&self) -> Option<Digest> {
        self.project.as_ref().map(|layer| layer.digest)
    }

    /// What the project's file says, as it was read: what is shown is what is trusted.
    pub fn project_text(&self) -> Option<&str> {
        self.project.as_ref().map(|layer| layer.text.as_str())
    }

    /// A store that is named at the command line, beside the one that is used.
    pub fn place(&self, said: &str, argument: &'static str) -> Result<PathBuf, ConfigError> {
        settings::store(&Text::new(said, Spot::Flag(argument)), &self.paths)
    }

    /// The store, a file or a server's address: the user's to say, never a project's.
    pub fn store(&self) -> Result<PathBuf, ConfigError> {
        let user = self.user.as_ref().and_then(|layer| layer.config.store.as_ref());
        let said = self.flags.store.as_ref().or(self.environment.store.as_ref()).or(user);
        said.map_or_else(|| Ok(self.paths.default_store()), |text| settings::store(text, &self.paths))
    }

    /// Whether the project's file counts, given the content that was accepted earlier.
    pub fn trust(&self, accepted: Option<Digest>) -> Trust {
        match (self.project_digest(), accepted) {
            (None, _) => Trust::Absent,
            (Some(_), None) => Trust::Untrusted,
            (Some(content), Some(accepted)) if content == accepted => Trust::Trusted,
            (Some(_), Some(_)) => Trust::Changed,
        }
    }

    /// The same, looked up in the store. For threads that may block.
    pub fn trust_in(&self, store: &Store) -> Result<Trust, StoreError> {
        if self.project.is_none() {
            return Ok(Trust::Absent);
        }
        Ok(self.trust(store.trusted_blocking(self.paths.root())?))
    }

    /// What holds when nobody says anything.
    pub(super) fn built_in(&self) -> Config {
        let grant_uses = Some(Placed::new(DEFAULT_USES, Spot::BuiltIn));
        Config {
            profile: Some(Text::new("full", Spot::BuiltIn)),
            autonomy: Some(Autonomy::Standard),
            approval: Approval { grant_uses, ..Approval::default() },
            undo: Undo::built_in(),
            dialect: Some(Dialect::Haft),
            store: Some(Text::new(self.paths.default_store().to_string_lossy(), Spot::BuiltIn)),
            ..Config::default()
        }
    }

    /// The two files as far as they count.
    pub(super) fn stack(&self, trust: Trust) -> Stack {
        let config = |layer: &Option<Layer>| layer.as_ref().map(|layer| layer.config.clone()).unwrap_or_default();
        let (user, mut project) = (config(&self.user), config(&self.project));
        if trust == Trust::Trusted {
            let mut ignored: Vec<&'static str> = project.store.take().map(|_| "store").into_iter().collect();
            ignored.extend((!std::mem::take(&mut project.secrets).is_empty()).then_some("secrets"));
            ignored.extend(project.models.take_users_own());
            return Stack { user, project, trusted: true, ignored };
        }
        let mut base = self.built_in();
        base.add(user.clone());
        let Tightened { config, ignored } = tighten(&project, &base);
        Stack { user, project: config, trusted: false, ignored }
    }
}
