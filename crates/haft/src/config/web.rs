//! What may be asked of the web on an agent's behalf, as the configuration says it.

use super::confinement::Net;
use super::error::ConfigError;
use super::merge::nearer;
use super::names::Names;
use super::placed::{Placed, Spot, Text};
use super::search::Search;
use haft_core::host::{Fault, HostRule, HostRules};
use haft_core::web::Network;
use haft_runtime::http::Carrier;
use haft_runtime::web::{Quota, WebSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What web tools may reach, and how much they may ask for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Web {
    /// `true` for every public host, `false` for none, or the hosts that can be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Net>,
    /// Services on this machine or its network that may be reached all the same: `host:port`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_private: Vec<Text>,
    /// The same for one agent, by its name. It can only be narrower.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<Text, Net>,
    /// The same for some tools, by name, glob or group. It can only be narrower.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Text, Net>,
    /// How much may be asked for.
    #[serde(skip_serializing_if = "super::file::is_default")]
    pub limits: WebLimits,
    /// Whether the proxy is used that the environment names (`HTTPS_PROXY` and its like). `trust` leaves names to it
    /// that have no address here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Who searches.
    #[serde(skip_serializing_if = "super::file::is_default")]
    pub search: Search,
}

/// Whether a proxy is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Proxy {
    /// Yes or no.
    Switch(bool),
    /// Yes, and more.
    Word(ProxyTrust),
}

/// How far a proxy is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProxyTrust {
    /// With names that have no address here.
    Trust,
}

impl From<Proxy> for Carrier {
    fn from(proxy: Proxy) -> Self {
        match proxy {
            Proxy::Switch(false) => Self::Own,
            Proxy::Switch(true) => Self::Environment,
            Proxy::Word(ProxyTrust::Trust) => Self::Trusted,
        }
    }
}

/// How much may be asked of the web.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WebLimits {
    /// Requests in one session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u32>,
    /// Requests in an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hour: Option<u32>,
    /// Requests in a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<u32>,
    /// How long one request may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Web {
    pub(super) fn add(&mut self, layer: Self) {
        let Self { network, allow_private, agents, tools, limits, proxy, search } = layer;
        nearer(&mut self.network, network);
        self.allow_private.extend(allow_private);
        self.agents.extend(agents);
        self.tools.extend(tools);
        nearer(&mut self.limits.session, limits.session);
        nearer(&mut self.limits.hour, limits.hour);
        nearer(&mut self.limits.day, limits.day);
        nearer(&mut self.limits.timeout_ms, limits.timeout_ms);
        nearer(&mut self.proxy, proxy);
        self.search.add(search);
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        self.search.each_spot(visit);
        for text in &mut self.allow_private {
            visit(&mut text.spot);
        }
        if let Some(net) = &mut self.network {
            net.each_spot(visit);
        }
        for nets in [&mut self.agents, &mut self.tools] {
            let visited = std::mem::take(nets).into_iter().map(|(Placed { value, mut spot }, mut net)| {
                visit(&mut spot);
                net.each_spot(visit);
                (Placed { value, spot }, net)
            });
            *nets = visited.collect();
        }
    }

    /// What of it can only take away: no network at all, for everybody, an agent or a tool. A list could stand in place of
    /// a shorter one.
    pub(super) fn tightened(self) -> Self {
        let none = |nets: BTreeMap<Text, Net>| nets.into_iter().filter(|(_, net)| *net == Net::Switch(false)).collect();
        Self {
            network: self.network.filter(|net| *net == Net::Switch(false)),
            agents: none(self.agents),
            tools: none(self.tools),
            ..Self::default()
        }
    }

    /// What the runtime is told.
    pub(super) fn wanted(&self, names: &mut Names<'_>) -> Result<WebSettings, ConfigError> {
        let usual = WebSettings::default();
        let agent = |(name, net): (&Text, &Net)| Ok((name.value.clone(), network(net)?));
        // A restriction with a typing mistake restricts nothing.
        let tool = |(name, net): (&Text, &Net)| Ok((names.pattern(name)?, network(net)?));
        let WebLimits { session, hour, day, timeout_ms } = self.limits;
        Ok(WebSettings {
            network: self.network.as_ref().map(network).transpose()?.unwrap_or(usual.network),
            allow_private: services(&self.allow_private)?,
            agents: self.agents.iter().map(agent).collect::<Result<_, ConfigError>>()?,
            tools: self.tools.iter().map(tool).collect::<Result<_, ConfigError>>()?,
            quota: Quota {
                session: session.unwrap_or(usual.quota.session),
                hour: hour.unwrap_or(usual.quota.hour),
                day: day.unwrap_or(usual.quota.day),
            },
            timeout: timeout_ms.map_or(usual.timeout, Duration::from_millis),
            carrier: self.proxy.map_or(usual.carrier, Carrier::from),
            search: self.search.wanted()?,
            ..usual
        })
    }
}

fn network(net: &Net) -> Result<Network, ConfigError> {
    Ok(match net {
        Net::Switch(true) => Network::All,
        Net::Switch(false) => Network::None,
        Net::Hosts(list) => Network::Only(hosts(&list.allow)?),
    })
}

fn hosts(list: &[Text]) -> Result<HostRules, ConfigError> {
    let rule = |text: &Text| {
        text.value.parse::<HostRule>().map_err(|error| ConfigError::malformed(&text.spot, error.to_string()))
    };
    Ok(list.iter().map(rule).collect::<Result<Vec<_>, _>>()?.into())
}

/// Services inside are named one by one: a wildcard or a host with all its ports would open more than anybody thinks of.
pub(super) fn services(list: &[Text]) -> Result<HostRules, ConfigError> {
    let rules = list.iter().map(service).collect::<Result<Vec<_>, _>>()?;
    let rules = HostRules::from(rules);
    let vague = rules.iter().zip(list).find(|(rule, _)| rule.host().is_none() || rule.port().is_none());
    match vague {
        Some((_, text)) => {
            let why = format!("`{}` is not one service; {ONE_SERVICE}", text.value);
            Err(ConfigError::malformed(&text.spot, why))
        }
        None => Ok(rules),
    }
}

/// What is to be written.
const ONE_SERVICE: &str = "write its host and port, as in `127.0.0.1:8080`";

fn service(text: &Text) -> Result<HostRule, ConfigError> {
    text.value.parse::<HostRule>().map_err(|error| {
        let why = match error.fault {
            // Elsewhere no port means every port; a service has one.
            Fault::Port(_) => format!("`{}`: its port is not a number from 1 to 65535; {ONE_SERVICE}", error.rule),
            _ => error.to_string(),
        };
        ConfigError::malformed(&text.spot, why)
    })
}

#[cfg(test)]
mod tests;
