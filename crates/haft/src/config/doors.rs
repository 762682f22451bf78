//! The doors, as the configuration says them: MCP both ways, the gateway, and how many tools a model is told about.

use super::error::ConfigError;
use super::merge::nearer;
use super::placed::{Placed, Spot, Text};
use super::servers::Server;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// MCP: haft as a server, and the servers whose tools haft offers as its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mcp {
    /// How long a call waits for somebody to decide about it before the client is told that it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Whether questions are also put to the person behind a client that can do so (elicitation).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<bool>,
    /// What becomes of a call whose client has gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// Servers whose tools are offered as `mcp:NAME:TOOL`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<Text, Server>,
}

/// What becomes of a call whose client has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnDisconnect {
    /// It is cancelled.
    Cancel,
    /// It is carried to its end, and its outcome is in the log.
    Finish,
}

/// Which tools a model is told about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// About how many tokens the listed tools may cost. What does not fit is found with `tool.search` and called
    /// with `tool.call`. 0 lists all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<usize>,
}

/// The gateway: `haft serve`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gateway {
    /// Address and port, like `127.0.0.1:4747`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<Text>,
    /// Names under which others reach it, besides the address it listens on. Requests for other hosts are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Text>,
    /// Whether a single approval can be opened on another device by a link that works once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<bool>,
    /// How long a call waits for somebody to decide about it before its caller is told that it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// What becomes of a call whose caller has gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
}

/// What the doors are told.
#[derive(Debug, Clone)]
pub struct Doors {
    /// How an MCP call waits.
    pub mcp: Waiting,
    /// How a gateway's call waits.
    pub gateway: Waiting,
    /// Whether questions are put to the person behind an MCP client.
    pub elicitation: bool,
    /// About how many tokens the listed tools may cost; 0 is all.
    pub budget_tokens: usize,
    /// Whether the configuration says so.
    pub is_budget_configured: bool,
    /// Where the gateway listens.
    pub listen: SocketAddr,
    /// Under which other names it is reached.
    pub hosts: Vec<String>,
    /// Whether links that work once are given out.
    pub links: bool,
    /// The servers whose tools are offered.
    pub servers: Vec<haft_mcp::client::Server>,
}

impl Doors {
    /// What the tools that a client is told of may cost, if whoever starts the server wishes another budget than the usual
    /// one. What the configuration says counts more.
    pub fn listing_budget(&self, wished: Option<usize>) -> usize {
        wished.filter(|_| !self.is_budget_configured).unwrap_or(self.budget_tokens)
    }
}

/// How a call at a door waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// For somebody to decide about it.
    pub patience: Duration,
    /// What becomes of it when its caller has gone.
    pub on_disconnect: OnDisconnect,
}

const USUAL_LISTEN: &str = "127.0.0.1:4747";
const USUAL_BUDGET: usize = 1400;

impl Mcp {
    pub(super) fn add(&mut self, layer: Self) {
        let Self { wait_ms, elicitation, on_disconnect, servers } = layer;
        nearer(&mut self.wait_ms, wait_ms);
        nearer(&mut self.elicitation, elicitation);
        nearer(&mut self.on_disconnect, on_disconnect);
        // The farther entry stays: a project must not give the user's names another meaning.
        for (name, server) in servers {
            self.servers.entry(name).or_insert(server);
        }
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        let servers = std::mem::take(&mut self.servers).into_iter().map(|(Placed { value, mut spot }, mut server)| {
            visit(&mut spot);
            server.each_spot(visit);
            (Placed { value, spot }, server)
        });
        self.servers = servers.collect();
    }
}

impl Tools {
    pub(super) fn add(&mut self, layer: &Self) {
        nearer(&mut self.budget_tokens, layer.budget_tokens);
    }
}

impl Gateway {
    pub(super) fn add(&mut self, layer: Self) {
        let Self { listen, hosts, links, wait_ms, on_disconnect } = layer;
        nearer(&mut self.listen, listen);
        self.hosts.extend(hosts);
        nearer(&mut self.links, links);
        nearer(&mut self.wait_ms, wait_ms);
        nearer(&mut self.on_disconnect, on_disconnect);
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        for text in self.listen.iter_mut().chain(&mut self.hosts) {
            visit(&mut text.spot);
        }
    }
}

/// What the doors are told.
pub(super) fn doors(mcp: &Mcp, tools: &Tools, gateway: &Gateway) -> Result<Doors, ConfigError> {
    let usual = Text::new(USUAL_LISTEN, Spot::BuiltIn);
    let listen = gateway.listen.as_ref().unwrap_or(&usual);
    let address = listen.as_str().parse().map_err(|_| {
        ConfigError::malformed(&listen.spot, format!("`{}` is no address and port like {USUAL_LISTEN}", listen.value))
    })?;
    let waiting = |ms: Option<u64>, usual: u64, gone: Option<OnDisconnect>, otherwise| Waiting {
        patience: Duration::from_millis(ms.unwrap_or(usual)),
        on_disconnect: gone.unwrap_or(otherwise),
    };
    Ok(Doors {
        // Less than the minute after which clients of the official SDKs give up.
        mcp: waiting(mcp.wait_ms, 45_000, mcp.on_disconnect, OnDisconnect::Cancel),
        gateway: waiting(gateway.wait_ms, 0, gateway.on_disconnect, OnDisconnect::Finish),
        elicitation: mcp.elicitation.unwrap_or(true),
        budget_tokens: tools.budget_tokens.unwrap_or(USUAL_BUDGET),
        is_budget_configured: tools.budget_tokens.is_some(),
        listen: address,
        hosts: gateway.hosts.iter().map(|text| text.value.clone()).collect(),
        links: gateway.links.unwrap_or(false),
        servers: mcp.servers.iter().map(|(name, server)| server.wanted(name)).collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_budget_counts_more_than_the_one_wished_for() {
        let budget = |configured: Option<usize>, wished: Option<usize>| {
            let tools = Tools { budget_tokens: configured };
            doors(&Mcp::default(), &tools, &Gateway::default()).unwrap().listing_budget(wished)
        };
        assert_eq!(budget(None, None), USUAL_BUDGET);
        assert_eq!(budget(None, Some(1000)), 1000);
        assert_eq!(budget(Some(0), Some(1000)), 0, "the configuration lists all");
        assert_eq!(budget(Some(2000), Some(1000)), 2000);
    }
}
