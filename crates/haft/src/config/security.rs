//! What agents may make, and where secrets come from, as the configuration says it.

use super::error::ConfigError;
use super::merge::nearer;
use super::placed::{Placed, Spot, Text};
use haft_core::host::HostRule;
use haft_core::manifest::ceiling::Ceiling;
use haft_core::manifest::{Fs, Reachable};
use haft_runtime::making::{Making, PER_SESSION, usual_ceiling};
use haft_runtime::secrets::{SecretSource, is_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// More proposals than this are no session's.
const PER_SESSION_MAX: u32 = 1000;

/// What agents may make. A project can only lower it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Security {
    /// The most that a tool made by an agent may touch. What asks for more is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_permissions: Option<MaxPermissions>,
    /// How many tools, skills and reflections an agent may propose in one session; 0 is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1000))]
    pub tools_per_session: Option<Placed<u32>>,
}

/// The most that a tool made by an agent may touch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MaxPermissions {
    /// true, false, or a list of hosts. Absent: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Reach>,
    /// Files, from the project's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs: Option<MaxFs>,
    /// The secrets it may get, by name. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secrets: Option<Vec<Text>>,
}

/// Whom it may reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Reach {
    /// Nobody, or every public host.
    Any(bool),
    /// These hosts.
    Hosts(Vec<Text>),
}

/// Files that it may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MaxFs {
    /// What it may read. Absent: the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<Text>>,
    /// What it may also write. Absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<Text>>,
}

/// A secret: where it comes from, and where it may go.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretSaid {
    /// The program that prints it, with its arguments. No shell is involved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<Text>>,
    /// The hosts that `secret:NAME` may be sent to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Text>,
}

impl Security {
    pub(super) fn add(&mut self, layer: Self) {
        let Self { max_permissions, tools_per_session } = layer;
        if let Some(more) = max_permissions {
            let MaxPermissions { network, fs, secrets } = more;
            let held = self.max_permissions.get_or_insert_default();
            nearer(&mut held.network, network);
            nearer(&mut held.secrets, secrets);
            if let Some(MaxFs { read, write }) = fs {
                let held = held.fs.get_or_insert_default();
                nearer(&mut held.read, read);
                nearer(&mut held.write, write);
            }
        }
        nearer(&mut self.tools_per_session, tools_per_session);
    }

    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        if let Some(held) = &mut self.max_permissions {
            let hosts = match &mut held.network {
                Some(Reach::Hosts(hosts)) => Some(hosts),
                _ => None,
            };
            let (read, write) = held.fs.as_mut().map_or((None, None), |fs| (fs.read.as_mut(), fs.write.as_mut()));
            for list in [hosts, held.secrets.as_mut(), read, write].into_iter().flatten() {
                for text in list {
                    visit(&mut text.spot);
                }
            }
        }
        self.tools_per_session.iter_mut().for_each(|count| visit(&mut count.spot));
    }
}

impl MaxPermissions {
    /// The ceiling that this makes of another: what is not said stays.
    fn over(&self, base: &Ceiling) -> Result<Ceiling, ConfigError> {
        let words = |list: &[Text]| list.iter().map(|text| text.value.clone()).collect::<Vec<_>>();
        let network = match &self.network {
            None => base.network.clone(),
            Some(Reach::Any(any)) => Reachable::Any(*any),
            Some(Reach::Hosts(hosts)) => Reachable::Hosts(rules(hosts)?),
        };
        let fs = self.fs.clone().unwrap_or_default();
        let read = fs.read.map_or_else(|| base.fs.read.clone(), |list| words(&list));
        let write = fs.write.map_or_else(|| base.fs.write.clone(), |list| words(&list));
        let secrets = self.secrets.as_ref().map_or_else(|| base.secrets.clone(), |list| words(list));
        Ok(Ceiling { network, fs: Fs { read, write }, secrets })
    }
}

fn rules(hosts: &[Text]) -> Result<Vec<HostRule>, ConfigError> {
    let read = |host: &Text| {
        host.value.parse::<HostRule>().map_err(|error| ConfigError::malformed(&host.spot, error.to_string()))
    };
    hosts.iter().map(read).collect()
}

/// What agents may make: as the user has it, and as each project's file lowers it.
pub(super) fn making(user: &Security, projects: &[&Security]) -> Result<Making, ConfigError> {
    let usual = usual_ceiling();
    let own = user.max_permissions.as_ref().map_or(Ok(usual.clone()), |said| said.over(&usual))?;
    let mut making = Making { ceilings: vec![own.clone()], per_session: count(user)?.unwrap_or(PER_SESSION) };
    for project in projects {
        if let Some(said) = &project.max_permissions {
            making.ceilings.push(said.over(&own)?);
        }
        // Of two numbers the smaller: a project can only lower it.
        making.per_session = making.per_session.min(count(project)?.unwrap_or(making.per_session));
    }
    Ok(making)
}

fn count(security: &Security) -> Result<Option<u32>, ConfigError> {
    match &security.tools_per_session {
        Some(count) if count.value > PER_SESSION_MAX => {
            Err(ConfigError::malformed(&count.spot, format!("has to be at most {PER_SESSION_MAX}")))
        }
        count => Ok(count.as_ref().map(|count| count.value)),
    }
}

/// Where secrets come from.
pub(super) fn secrets(said: &BTreeMap<Text, SecretSaid>) -> Result<BTreeMap<String, SecretSource>, ConfigError> {
    let mut sources = BTreeMap::new();
    for (name, SecretSaid { command, hosts }) in said {
        if !is_name(&name.value) {
            let why =
                "a secret's name is written like a variable's: A-Z, digits and _; HAFT_*, PATH and the like are none";
            return Err(ConfigError::malformed(&name.spot, why));
        }
        if command.as_ref().is_some_and(|words| words.first().is_none_or(|program| program.value.is_empty())) {
            return Err(ConfigError::malformed(&name.spot, "its `command` names no program"));
        }
        let command = command.as_ref().map(|words| words.iter().map(|word| word.value.clone()).collect());
        sources.insert(name.value.clone(), SecretSource { command, hosts: rules(hosts)? });
    }
    Ok(sources)
}

/// What a `.glee/config.yml` lowers. It is read only for that; what cannot be read permits nothing.
pub(super) fn of_glee(text: &str) -> Security {
    #[derive(Deserialize)]
    struct Glee {
        #[serde(default)]
        security: Option<Inner>,
    }
    #[derive(Deserialize)]
    struct Inner {
        #[serde(default)]
        max_permissions: Option<MaxPermissions>,
    }
    let nothing = MaxPermissions {
        network: Some(Reach::Any(false)),
        fs: Some(MaxFs { read: Some(Vec::new()), write: Some(Vec::new()) }),
        secrets: Some(Vec::new()),
    };
    let read: Result<Option<Glee>, _> = serde_saphyr::from_str(text);
    let max_permissions = match read {
        Ok(glee) => glee.and_then(|glee| glee.security).and_then(|inner| inner.max_permissions),
        Err(_) => Some(nothing),
    };
    Security { max_permissions, tools_per_session: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(yaml: &str) -> Security {
        super::super::parse(yaml.as_bytes(), &"config.yml".into()).unwrap().security
    }

    #[test]
    fn the_usual_ceiling_is_low_and_the_user_raises_it() {
        let making = making(&Security::default(), &[]).unwrap();
        assert_eq!(making, Making::default());
        let user = said(
            "security: {max_permissions: {network: [api.test], fs: {write: [out]}, secrets: [A]}, tools_per_session: 7}",
        );
        let making = super::making(&user, &[]).unwrap();
        let [ceiling] = &making.ceilings[..] else { panic!("{making:?}") };
        assert!(matches!(&ceiling.network, Reachable::Hosts(hosts) if hosts.len() == 1));
        assert_eq!((&ceiling.fs.read[..], &ceiling.fs.write[..]), (&[".".to_owned()][..], &["out".to_owned()][..]));
        assert_eq!(making.per_session, 7);
    }

    #[test]
    fn a_project_only_lowers_it() {
        let user = said("security: {tools_per_session: 3}");
        let project = said("security: {max_permissions: {network: true, secrets: [A]}, tools_per_session: 9}");
        let making = making(&user, &[&project]).unwrap();
        assert_eq!((making.ceilings.len(), making.per_session), (2, 3));
        assert_eq!(making.ceilings[0], usual_ceiling(), "the user's own still holds");
        let lower = super::making(&user, &[&said("security: {tools_per_session: 0}")]).unwrap();
        assert_eq!(lower.per_session, 0);
    }

    #[test]
    fn glees_file_is_read_for_this_alone_and_fails_closed() {
        let text = "project: {name: x}\nsecurity:\n  max_permissions:\n    fs:\n      read: [src]\n      write: []\n    secrets: []\n";
        let security = of_glee(text);
        let held = security.max_permissions.unwrap();
        assert_eq!(held.fs.unwrap().read.unwrap()[0].value, "src");
        assert!(of_glee("agents: {}\n").max_permissions.is_none());
        for broken in ["security: {max_permissions: {netwrok: true}}", "security: [", "security: {max_permissions: 7}"]
        {
            let making = making(&Security::default(), &[&of_glee(broken)]).unwrap();
            assert_eq!(making.ceilings[1], Ceiling::default(), "{broken}");
        }
    }

    #[test]
    fn secrets_are_named_and_told_by_programs() {
        let read = |yaml: &str| {
            let config =
                super::super::parse(yaml.as_bytes(), &"config.yml".into()).map_err(|error| error.to_string())?;
            secrets(&config.secrets).map_err(|error| error.to_string())
        };
        let sources = read("secrets: {GITHUB_TOKEN: {command: [op, read, x], hosts: [api.github.com]}}").unwrap();
        assert_eq!(sources["GITHUB_TOKEN"].command.as_ref().unwrap().len(), 3);
        for (yaml, why) in [
            ("secrets: {token: {hosts: [a.test]}}", "A-Z"),
            ("secrets: {A: {command: []}}", "names no program"),
            ("secrets: {A: {hosts: ['a b']}}", "config.yml:1"),
            ("secrets: {A: {value: x}}", "value"),
        ] {
            let error = read(yaml).unwrap_err();
            assert!(error.contains(why), "{yaml}: {error}");
        }
    }
}
