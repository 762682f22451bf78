//! The one guarded way out. Whatever haft asks of the web on an agent's behalf is sent by [`Way::send`]; no tool makes
//! a client of its own.
//!
//! A [`Way`] is what one call has of it: the rules for this agent and tool, the session whose requests are counted, and
//! the record that every request goes into. Each hop of a request is judged anew: the URL by one parser, the network
//! rules, the addresses that the name leads to in the moment of connecting.

mod body;
pub(crate) mod cache;
mod credential;
mod guard;
pub(crate) mod json_text;
pub mod profiles;
mod quota;
mod request;
mod room;
mod trouble;
pub(crate) mod written;

pub use credential::Credential;
pub use guard::Response;
pub use quota::Quota;
pub use request::Request;
pub(crate) use trouble::{cause, unreached};

use crate::http::{self, Carrier, Client, Leads};
use crate::tool::Aim;
use crate::tools::web::search::SearchSettings;
use cache::Pages;
use haft_core::host::{Host, HostRule, HostRules};
use haft_core::manifest::{Permissions, Reachable};
use haft_core::pattern::ToolPattern;
use haft_core::tool::Outward;
use haft_core::web::{Errand, Network, Rules, Target, doubts};
use haft_core::{CallError, CallId, Caller, Checked, SessionId, ToolName};
use haft_store::Store;
use profiles::Profiles;
use quota::Spent;
use room::Room;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// What is asked of the web, and how much of it.
#[derive(Debug, Clone)]
pub struct WebSettings {
    /// Who may be reached.
    pub network: Network,
    /// Hosts on this machine or its network that may be reached all the same.
    pub allow_private: HostRules,
    /// The network of one agent, by its name. It can only be narrower.
    pub agents: BTreeMap<String, Network>,
    /// The network of some tools. It can only be narrower.
    pub tools: Vec<(ToolPattern, Network)>,
    /// How many requests may be made.
    pub quota: Quota,
    /// The most that is read of one answer, decoded.
    pub bytes: usize,
    /// How long a request may take where nobody says otherwise.
    pub timeout: Duration,
    /// How long each 256 KiB of a larger answer may take: what fills the room that others wait for has to go on.
    pub pace: Duration,
    /// Who carries requests: haft itself, or the proxy that the environment names.
    pub carrier: Carrier,
    /// Who searches.
    pub search: SearchSettings,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            network: Network::All,
            allow_private: HostRules::default(),
            agents: BTreeMap::new(),
            tools: Vec::new(),
            quota: Quota::default(),
            bytes: 10 << 20,
            timeout: Duration::from_secs(30),
            pace: Duration::from_secs(15),
            carrier: Carrier::Own,
            search: SearchSettings::default(),
        }
    }
}

/// What all calls share: connections, and how much has been asked for.
pub struct Web {
    settings: WebSettings,
    outside: OnceLock<Result<Client, CallError>>,
    anywhere: OnceLock<Result<Client, CallError>>,
    spent: Spent,
    room: Room,
    profiles: Profiles,
    pages: Pages,
}

/// One call's way out.
#[derive(Clone, Copy)]
pub struct Way<'w> {
    pub(crate) web: &'w Web,
    pub(crate) store: &'w Store,
    pub(crate) call: &'w CallId,
    pub(crate) session: &'w SessionId,
    pub(crate) caller: &'w Caller,
    pub(crate) tool: &'w ToolName,
    /// What the tool's manifest declares, if it has one.
    pub(crate) permissions: Option<&'w Permissions>,
}

impl Web {
    /// A way out by these rules. What is known of APIs is kept below `data_dir`.
    pub fn new(settings: WebSettings, data_dir: &Path) -> Self {
        let (spent, room) = (Spent::new(settings.quota), Room::new(settings.pace));
        Self {
            settings,
            outside: OnceLock::new(),
            anywhere: OnceLock::new(),
            spent,
            room,
            profiles: Profiles::new(data_dir.join("apis")),
            pages: Pages::default(),
        }
    }

    /// What it goes by.
    pub fn settings(&self) -> &WebSettings {
        &self.settings
    }

    /// What is known of APIs.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// The pages that sessions have fetched.
    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Who may be reached by this agent with this tool.
    pub fn rules(&self, caller: &Caller, tool: &ToolName) -> Rules {
        let mut networks = vec![self.settings.network.clone()];
        networks.extend(caller.lineage().filter_map(|agent| self.settings.agents.get(agent)).cloned());
        let about = self.settings.tools.iter().filter(|(pattern, _)| pattern.matches(tool));
        networks.extend(about.map(|(_, network)| network.clone()));
        Rules { networks, private: self.settings.allow_private.clone() }
    }

    /// The client for a target: names that may lead inside have connections of their own, which nothing else uses.
    fn client(&self, rules: &Rules, target: &Target) -> Result<&Client, CallError> {
        let (cell, leads) = if rules.admits_inside(target) {
            (&self.anywhere, Leads::Anywhere)
        } else {
            (&self.outside, Leads::Outside)
        };
        let made = cell.get_or_init(|| http::client(leads, self.settings.carrier));
        made.as_ref().map_err(Clone::clone)
    }

    /// What a call would ask of the web, for those who decide about it. What it would do to a page that a browser shows
    /// is the browsers' to say.
    pub(crate) fn errand(&self, checked: &Checked) -> Result<Option<Errand>, CallError> {
        let (spec, args) = (checked.spec(), checked.args());
        let whereto = match spec.reach.web {
            Some(Outward::Url(param, _)) if args.get(param).is_none() => Some(Outward::Configured),
            whereto => whereto,
        };
        match whereto {
            Some(Outward::Url(param, method)) => {
                let Some(url) = args.get(param).and_then(Value::as_str) else { return Ok(None) };
                let target = Target::read(url).map_err(|error| CallError::invalid(error.to_string()))?;
                let method = method.and_then(|name| args.get(name)).and_then(Value::as_str).unwrap_or("GET");
                let mut errand = self.judged(checked, method, &target, texts(args, param));
                errand.refusal = errand.refusal.or_else(|| self.profiles.refusal(&target));
                Ok(Some(errand))
            }
            Some(Outward::Configured) => Ok(Some(Errand {
                method: "GET".to_owned(),
                url: String::new(),
                authority: "a host that the configuration names".to_owned(),
                writes: false,
                refusal: self
                    .rules(&checked.call().caller, &spec.name)
                    .networks
                    .contains(&Network::None)
                    .then(|| "the configuration gives no network".to_owned()),
                doubts: texts(args, "")
                    .into_iter()
                    .find(|(_, text)| haft_core::secret::contains_secret(text))
                    .map(|(name, _)| format!("`{name}` holds what looks like a key"))
                    .into_iter()
                    .collect(),
                secrets: Vec::new(),
            })),
            Some(Outward::Page | Outward::Made) | None => Ok(None),
        }
    }

    /// The same for a tool that says by itself where it goes.
    pub(crate) fn errand_to(&self, checked: &Checked, aim: &Aim) -> Errand {
        let sent = aim.sent.iter().map(|(name, text)| (*name, text.as_str()));
        let mut errand = self.judged(checked, &aim.method, &aim.target, sent);
        if let Some(declared) = &checked.spec().reach.declared {
            let refusal = undeclared(&declared.permissions, &aim.target).or(errand.refusal);
            let open = || self.is_open(&declared.permissions, &aim.target);
            errand.refusal =
                refusal.or_else(|| aim.secrets.first().filter(|_| open()).map(|name| open_to(name, &aim.target)));
        }
        errand
    }

    /// Whether what a manifest sends there can be read by everybody on the way. To a service of the user's own, by their
    /// word or by the manifest's that they accepted, secrets go without encryption.
    pub(crate) fn is_open(&self, permissions: &Permissions, target: &Target) -> bool {
        let named = |hosts: &[HostRule]| {
            let public = Rules { networks: vec![Network::All], ..Rules::default() };
            public.admits(target).is_err() && hosts.iter().any(|rule| rule.covers(target.host(), target.port()))
        };
        let inside = self.settings.allow_private.rule_for(target.host(), target.port()).is_some()
            || matches!(&permissions.network, Reachable::Hosts(hosts) if named(hosts));
        !target.is_secure() && !inside
    }

    fn judged<'t>(
        &self,
        checked: &Checked,
        method: &str,
        target: &Target,
        sent: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Errand {
        let (method, mut rules) =
            (method.to_ascii_uppercase(), self.rules(&checked.call().caller, &checked.spec().name));
        if let Some(declared) = &checked.spec().reach.declared {
            narrow(&mut rules, &declared.permissions);
        }
        Errand {
            url: target.to_string(),
            authority: target.authority(),
            writes: Errand::is_write(&method),
            refusal: rules.admits(target).err().map(|refusal| format!("{refusal}; {}", refusal.hint())),
            doubts: doubts(target, sent),
            secrets: Vec::new(),
            method,
        }
    }
}

/// Adds what a manifest declares to the rules: it reaches nobody else. A host that is on this machine or its network by
/// its own words, and that it names with its port, may be reached, because somebody accepted just that. A public name opens
/// nothing there, wherever it leads: whoever accepted it did not mean the address that its owner says today.
pub(crate) fn narrow(rules: &mut Rules, permissions: &Permissions) {
    match &permissions.network {
        Reachable::Any(true) => {}
        Reachable::Any(false) => rules.networks.push(Network::None),
        Reachable::Hosts(hosts) => {
            let named = |rule: &&HostRule| rule.host().is_some_and(Host::is_private) && rule.port().is_some();
            let named = hosts.iter().filter(named);
            rules.private = rules.private.iter().chain(named).cloned().collect::<Vec<_>>().into();
            rules.networks.push(Network::Only(hosts.clone().into()));
        }
    }
}

/// Why a secret is not sent in the open.
pub(crate) fn open_to(name: &str, target: &Target) -> String {
    format!("the secret `{name}` is not sent to {} without encryption; use https", target.authority())
}

/// Why a manifest's own word keeps it from a target.
fn undeclared(permissions: &Permissions, target: &Target) -> Option<String> {
    match &permissions.network {
        Reachable::Any(true) => None,
        Reachable::Any(false) => {
            Some("its manifest declares no network; `permissions.network` would have to".to_owned())
        }
        Reachable::Hosts(hosts) => {
            let listed = hosts.iter().any(|rule| rule.covers(target.host(), target.port()));
            (!listed).then(|| format!("`{}` is not in its manifest's `permissions.network`", target.authority()))
        }
    }
}

/// Every text among arguments, however deep, with the argument that holds it; but for one argument.
pub(crate) fn texts<'a>(args: &'a Value, but: &str) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    let object = args.as_object().into_iter().flatten().filter(|(name, _)| *name != but);
    let mut left: Vec<(&str, &Value)> = object.map(|(name, value)| (name.as_str(), value)).collect();
    while let Some((name, value)) = left.pop() {
        match value {
            Value::String(text) => found.push((name, text.as_str())),
            Value::Array(items) => left.extend(items.iter().map(|item| (name, item))),
            Value::Object(map) => {
                // What is sent as a name is sent, too.
                found.extend(map.keys().map(|key| (name, key.as_str())));
                left.extend(map.values().map(|value| (name, value)));
            }
            _ => {}
        }
    }
    found
}
