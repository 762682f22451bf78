//! What programs that tools start may reach and use up, as the configuration says it.

use super::error::ConfigError;
use super::merge::nearer;
use super::placed::{Spot, Text};
use crate::size::size;
use haft_core::host::HostRule;
use haft_runtime::confined::{Require as Needed, Terms};
use haft_sandbox::{Bounds, Network};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::time::Duration;

/// What programs that tools start may reach, besides the files that `files` names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// The network: `true` for all of it, `false` for none, or the hosts that can be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Net>,
    /// Variables of haft's environment that programs get, besides harmless ones like PATH and LANG.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<Text>,
    /// The same for secrets: one that is not set is an error before anything runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Text>,
}

/// The network.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Net {
    /// All of it, or none.
    Switch(bool),
    /// Some hosts.
    Hosts(Hosts),
}

/// Read by hand: what is derived for such a choice forgets where each host was written.
impl<'de> Deserialize<'de> for Net {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Choice)
    }
}

struct Choice;

impl<'de> Visitor<'de> for Choice {
    type Value = Net;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false, or the hosts that can be reached (`allow: [example.com]`)")
    }

    fn visit_bool<E>(self, all: bool) -> Result<Net, E> {
        Ok(Net::Switch(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Net, A::Error> {
        Hosts::deserialize(MapAccessDeserializer::new(map)).map(Net::Hosts)
    }
}

/// Hosts that can be reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Like `example.com`, `example.com:443` or `*.example.com:443`.
    pub allow: Vec<Text>,
}

/// How programs that tools start are confined.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Confinement {
    /// How much the kernel has to enforce for a program to run at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<Require>,
    /// Where a program's writes go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<WriteMode>,
    /// What a program may use up.
    #[serde(skip_serializing_if = "super::file::is_default")]
    pub limits: Limits,
}

/// How much the kernel has to enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Require {
    /// Nothing: where the kernel cannot confine, programs run unconfined, and the log says so.
    None,
    /// Every permission, by whatever this machine has.
    Enforced,
    /// Every permission, by namespaces.
    Full,
}

/// Where a program's writes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WriteMode {
    /// To a copy-on-write view, from which they are kept when it has ended. They can be shown and undone.
    Layered,
    /// Straight into the project, where nothing can be shown beforehand or undone.
    Direct,
}

/// What a program may use up. Sizes are like `512m` or `8g`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Memory of all its processes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Text>,
    /// Processes and threads at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Processor time of all its processes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// The largest file it may write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<Text>,
    /// All that it writes to disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Text>,
    /// Its own temporary directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temp: Option<Text>,
    /// What it prints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Text>,
}

impl Net {
    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        if let Self::Hosts(hosts) = self {
            hosts.allow.iter_mut().for_each(|text| visit(&mut text.spot));
        }
    }
}

impl Permissions {
    pub(super) fn add(&mut self, layer: Self) {
        let Self { network, env, secrets } = layer;
        nearer(&mut self.network, network);
        self.env.extend(env);
        self.secrets.extend(secrets);
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        if let Some(net) = &mut self.network {
            net.each_spot(visit);
        }
        for text in self.env.iter_mut().chain(&mut self.secrets) {
            visit(&mut text.spot);
        }
    }

    /// What of it can only take away: no network at all.
    pub(super) fn tightened(self) -> Self {
        let none = self.network.filter(|net| *net == Net::Switch(false));
        Self { network: none, ..Self::default() }
    }
}

impl Confinement {
    pub(super) fn add(&mut self, layer: Self) {
        let Self { require, writes, limits } = layer;
        nearer(&mut self.require, require);
        nearer(&mut self.writes, writes);
        self.limits.add(limits);
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        let Limits { memory, file_size, disk, temp, output, .. } = &mut self.limits;
        for text in [memory, file_size, disk, temp, output].into_iter().flatten() {
            visit(&mut text.spot);
        }
    }

    /// What of it can only make more necessary.
    pub(super) fn tightened(self, base: Option<Require>) -> Self {
        let stricter = self.require.filter(|said| *said >= base.unwrap_or(Require::Enforced));
        Self { require: stricter, ..Self::default() }
    }
}

impl Limits {
    fn add(&mut self, layer: Self) {
        let Self { memory, processes, cpu_seconds, file_size, disk, temp, output } = layer;
        nearer(&mut self.memory, memory);
        nearer(&mut self.processes, processes);
        nearer(&mut self.cpu_seconds, cpu_seconds);
        nearer(&mut self.file_size, file_size);
        nearer(&mut self.disk, disk);
        nearer(&mut self.temp, temp);
        nearer(&mut self.output, output);
    }

    fn bounds(&self) -> Result<Bounds, ConfigError> {
        let usual = Bounds::default();
        let read = |text: &Option<Text>| {
            let read =
                |text: &Text| size(&text.value).map_err(|error| ConfigError::malformed(&text.spot, error.message));
            text.as_ref().map(read).transpose()
        };
        Ok(Bounds {
            memory: read(&self.memory)?.or(usual.memory),
            processes: self.processes.or(usual.processes),
            cpu: self.cpu_seconds.map(Duration::from_secs).or(usual.cpu),
            wall: None,
            file_size: read(&self.file_size)?.or(usual.file_size),
            disk: read(&self.disk)?.or(usual.disk),
            output: read(&self.output)?.or(usual.output),
            temp: read(&self.temp)?.unwrap_or(usual.temp),
        })
    }
}

/// The terms on which programs run.
pub(super) fn terms(permissions: &Permissions, confinement: &Confinement) -> Result<Terms, ConfigError> {
    let texts = |list: &[Text]| list.iter().map(|text| text.value.clone()).collect();
    Ok(Terms {
        require: match confinement.require {
            Some(Require::Full) => Needed::Full,
            Some(Require::Enforced) | None => Needed::Enforced,
            Some(Require::None) => Needed::Nothing,
        },
        network: network(permissions.network.as_ref())?,
        direct: confinement.writes == Some(WriteMode::Direct),
        bounds: confinement.limits.bounds()?,
        pass: texts(&permissions.env),
        secrets: texts(&permissions.secrets),
        ..Terms::default()
    })
}

fn network(net: Option<&Net>) -> Result<Network, ConfigError> {
    let hosts = match net {
        None | Some(Net::Switch(false)) => return Ok(Network::None),
        Some(Net::Switch(true)) => return Ok(Network::All),
        Some(Net::Hosts(hosts)) => &hosts.allow,
    };
    let rule = |text: &Text| {
        text.value.parse::<HostRule>().map_err(|error| ConfigError::malformed(&text.spot, error.to_string()))
    };
    let rules = hosts.iter().map(rule).collect::<Result<Vec<_>, _>>()?;
    // An empty list allows nothing, as it says.
    Ok(if rules.is_empty() { Network::None } else { Network::Hosts(rules) })
}
