//! What a person has decided in advance: which tools exist, what runs unasked, and where things are kept.
//!
//! Settings come in layers: built in, the user's file, the project's file, the environment, flags. Two
//! rules join them. Lists add up, so nobody can take away what somebody else denies; of single values
//! the nearest counts. A project's file is written by whoever wrote the project, so until the user trusts
//! its exact content it can only tighten.
//!
//! Reading ([`load`]) and deciding ([`Layers::resolve`]) are two steps, because whether a project is
//! trusted is written in the store, and where the store is, is written in the configuration.

mod approval;
mod browser;
mod choices;
mod commands;
mod confinement;
mod doors;
mod error;
mod file;
mod hooks;
mod layers;
mod media;
mod memory;
mod merge;
mod models;
mod names;
mod paths;
mod placed;
mod policy;
mod read;
mod resolve;
mod search;
mod security;
mod servers;
mod settings;
mod shell;
mod show;
mod untrusted;
mod web;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

pub use browser::Browser;
pub use choices::{BadWord, Choices};
pub use commands::CommandRule;
pub use confinement::{Confinement, Hosts, Limits, Net, Permissions, Require, WriteMode};
pub use doors::{Doors, Gateway, Mcp, OnDisconnect, Tools, Waiting};
pub use error::ConfigError;
pub use file::{Approval, Autonomy, Config, Files, FloorRule, Hooks, Level, Narrowing, Preset, Rules, Undo};
pub use hooks::HookSaid;
pub use layers::{Layers, Trust, load, load_without_project, servers_named};
pub use media::{Command as ListenCommand, Listener, Media, Model};
pub use memory::{Meaning, MeaningWord, Memory};
pub use models::{Agent, Effort, Known, Models, ProviderSaid, Wire, Words};
pub use paths::Paths;
pub use placed::{Placed, Spot, Text};
pub use read::parse;
pub use resolve::{Loaded, Source};
pub use search::Search;
pub use security::{MaxFs, MaxPermissions, Reach, SecretSaid, Security};
pub use servers::{OAuth, Server, Start};
pub use settings::{Roots, Settings};
pub use shell::{Printed, Shell};
pub use show::{example, schema, show, show_text};
pub use web::{Web, WebLimits};
