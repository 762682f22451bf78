//! What `haft confine` is told: a policy file and options, which add up. Of single values the option counts.

use crate::cli::ConfineArgs;
use crate::size::size;
use haft_core::CallError;
use haft_core::host::HostRule;
use haft_sandbox::{Bounds, Network};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Permissions as they were written.
#[derive(Debug, Clone, Default)]
pub(super) struct Policy {
    pub(super) read: Vec<PathBuf>,
    pub(super) write: Vec<PathBuf>,
    pub(super) protect: Vec<PathBuf>,
    pub(super) network: Network,
    pub(super) secrets: Vec<String>,
    pub(super) bounds: Bounds,
}

/// A policy file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PolicyFile {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    protect: Vec<PathBuf>,
    net: Option<Net>,
    secrets: Vec<String>,
    mem: Option<Size>,
    pids: Option<u64>,
    cpu: Option<f64>,
    wall: Option<f64>,
    fsize: Option<Size>,
    disk: Option<Size>,
}

/// `none`, `all`, `true`, `false`, one text of hosts, a list of hosts, or `{allow: [...]}`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected none, all, true, false, a list of hosts, or {allow: [hosts]}")]
enum Net {
    Switch(bool),
    Text(String),
    List(Vec<String>),
    Allow(Allow),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allow {
    allow: Vec<String>,
}

/// A number of bytes, or a text like `512m`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a size like 65536, 64k, 512m or 2g")]
enum Size {
    Bytes(u64),
    Text(String),
}

impl Size {
    fn bytes(&self) -> Result<u64, CallError> {
        match self {
            Self::Bytes(bytes) => size(&bytes.to_string()),
            Self::Text(text) => size(text),
        }
    }
}

impl Policy {
    /// Joins the file and the options.
    pub(super) fn of(args: &ConfineArgs) -> Result<Self, CallError> {
        let file = args.policy.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let join = |file: Vec<PathBuf>, more: &[PathBuf]| file.into_iter().chain(more.iter().cloned()).collect();
        let network = match (&args.net, file.net) {
            (Some(text), _) => network(text)?,
            (None, Some(net)) => net.read()?,
            (None, None) => Network::None,
        };
        let said = |option: &Option<String>, file: Option<Size>| -> Result<Option<u64>, CallError> {
            match (option, file) {
                (Some(text), _) => size(text).map(Some),
                (None, Some(said)) => said.bytes().map(Some),
                (None, None) => Ok(None),
            }
        };
        let usual = Bounds::default();
        let bounds = Bounds {
            memory: said(&args.mem, file.mem)?.or(usual.memory),
            processes: at_least_one(args.pids.or(file.pids))?.or(usual.processes),
            cpu: seconds("cpu", args.cpu.or(file.cpu))?.or(usual.cpu),
            wall: seconds("wall", args.wall.or(file.wall))?,
            file_size: said(&args.fsize, file.fsize)?.or(usual.file_size),
            disk: said(&args.disk, file.disk)?.or(usual.disk),
            output: None,
            temp: usual.temp,
        };
        // What is written to /tmp is memory, and counts as disk space as well.
        let temp = usual.temp.min(bounds.memory.unwrap_or(u64::MAX)).min(bounds.disk.unwrap_or(u64::MAX));
        Ok(Self {
            read: join(file.read, &args.read),
            write: join(file.write, &args.write),
            protect: join(file.protect, &args.protect),
            network,
            secrets: file.secrets.into_iter().chain(args.secret.iter().cloned()).collect(),
            bounds: Bounds { temp, ..bounds },
        })
    }
}

/// Paths in a policy file count from the file, so that it means the same wherever it is used from.
fn read_file(path: &Path) -> Result<PolicyFile, CallError> {
    let fail = |why: String| CallError::invalid(format!("{}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    let mut file: PolicyFile = serde_saphyr::from_str(&text).map_err(|error| fail(error.to_string()))?;
    let base = path.canonicalize().map_err(|error| fail(error.to_string()))?;
    let base = base.parent().unwrap_or(Path::new("/"));
    for list in [&mut file.read, &mut file.write, &mut file.protect] {
        for entry in list.iter_mut() {
            *entry = base.join(&entry);
        }
    }
    Ok(file)
}

impl Net {
    fn read(self) -> Result<Network, CallError> {
        match self {
            Self::Switch(true) => Ok(Network::All),
            Self::Switch(false) => Ok(Network::None),
            Self::Text(text) => network(&text),
            Self::List(hosts) | Self::Allow(Allow { allow: hosts }) => rules(hosts.iter().map(String::as_str)),
        }
    }
}

fn network(text: &str) -> Result<Network, CallError> {
    match text {
        "none" => Ok(Network::None),
        "all" => Ok(Network::All),
        list => rules(list.split(',').map(str::trim)),
    }
}

/// An empty list allows nothing, as it says.
fn rules<'h>(hosts: impl Iterator<Item = &'h str>) -> Result<Network, CallError> {
    let rules = hosts.filter(|host| !host.is_empty()).map(str::parse::<HostRule>);
    let rules = rules.collect::<Result<Vec<_>, _>>().map_err(|error| CallError::invalid(error.to_string()))?;
    Ok(if rules.is_empty() { Network::None } else { Network::Hosts(rules) })
}

fn at_least_one(pids: Option<u64>) -> Result<Option<u64>, CallError> {
    match pids {
        Some(0) => Err(CallError::invalid("pids 0: the program itself is one")),
        pids => Ok(pids),
    }
}

fn seconds(name: &str, value: Option<f64>) -> Result<Option<Duration>, CallError> {
    let Some(value) = value else { return Ok(None) };
    let bad = || CallError::invalid(format!("--{name} {value}: expected a number of seconds above zero"));
    let duration = Duration::try_from_secs_f64(value).map_err(|_| bad())?;
    if duration.is_zero() { Err(bad()) } else { Ok(Some(duration)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_hosts_is_read_and_an_empty_one_allows_nothing() {
        let read = |text: &str| network(text).map_err(|error| error.message);
        assert_eq!(read("none"), Ok(Network::None));
        assert_eq!(read(""), Ok(Network::None));
        assert!(matches!(read("example.com:443, *.example.org"), Ok(Network::Hosts(rules)) if rules.len() == 2));
        assert!(read("a.*.com").is_err());
    }
}
