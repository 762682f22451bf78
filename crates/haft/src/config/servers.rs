//! MCP servers whose tools haft offers as its own, as the configuration says them.

use super::confinement::{self, Permissions};
use super::error::ConfigError;
use super::file::is_default;
use super::placed::{Spot, Text};
use haft_mcp::client::oauth::Who;
use haft_mcp::client::{self, Program, Reach};
use haft_runtime::SamplingConsent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// An MCP server: a program that speaks over its input and output, or a URL.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// The program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Text>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment, besides harmless variables like PATH and LANG. `${NAME}` stands for haft's own variable.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where it starts; the project's root otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Text>,
    /// The address of a server that speaks HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    /// Headers for every request. `${NAME}` stands for haft's own variable.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// As whom haft signs in where the server wants to know who asks. Absent: it asks to be registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuth>,
    /// Tools that are offered, by their names there; globs work. Absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<Text>>,
    /// Tools that are not, whatever `allow` says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Text>,
    /// What the program may reach.
    #[serde(skip_serializing_if = "is_default")]
    pub permissions: Permissions,
    /// Directories that the program may read besides the project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Text>,
    /// Directories that the program may write. Absent: none, not even the project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<Text>,
    /// When it is started: at the first call, or at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// How long it may take to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether the model behind a call answers the server unasked. Absent: a person agrees to each request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
}

/// As whom haft signs in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OAuth {
    /// The client that the server's owner has registered.
    pub client_id: String,
    /// Its secret. `${NAME}` stands for haft's own variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
}

/// Whether the model behind a call answers a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sampling {
    /// A person agrees to each request.
    Ask,
    /// haft passes each request on. The client may still ask its own user.
    Allow,
}

/// When a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// At the first call of one of its tools.
    Lazy,
    /// When haft starts.
    Eager,
}

impl Server {
    pub(super) fn each_spot(&mut self, visit: &mut dyn FnMut(&mut Spot)) {
        self.permissions.each_spot(visit);
        let single = [&mut self.command, &mut self.cwd, &mut self.url].into_iter().flatten();
        let lists = self.allow.iter_mut().flatten().chain(&mut self.deny).chain(&mut self.read).chain(&mut self.write);
        for text in single.chain(lists) {
            visit(&mut text.spot);
        }
    }

    /// Whether an entry makes sense.
    pub fn check(&self, name: &Text) -> Result<(), ConfigError> {
        self.wanted(name).map(drop)
    }

    /// What the bridge is told.
    pub(super) fn wanted(&self, name: &Text) -> Result<client::Server, ConfigError> {
        let bad = |spot: &Spot| {
            let spot = spot.clone();
            move |error: client::BadServer| ConfigError::malformed(&spot, error.to_string())
        };
        let mut server = client::Server::new(&name.value, self.reach(name)?).map_err(bad(&name.spot))?;
        for glob in self.allow.iter().flatten().chain(&self.deny) {
            client::Server::check_glob(&glob.value).map_err(bad(&glob.spot))?;
        }
        let texts = |list: &[Text]| list.iter().map(|text| text.value.clone()).collect::<Vec<_>>();
        server.allow = self.allow.as_deref().map(texts);
        server.deny = texts(&self.deny);
        server.start = match self.start {
            Some(Start::Eager) => client::Start::Eager,
            Some(Start::Lazy) | None => client::Start::Lazy,
        };
        server.timeout = match self.timeout_ms {
            Some(0) => return Err(ConfigError::malformed(&name.spot, "`timeout_ms` has to be at least 1")),
            Some(ms) => Duration::from_millis(ms),
            None => client::USUAL_TIMEOUT,
        };
        server.sampling = match self.sampling {
            Some(Sampling::Allow) => SamplingConsent::Given,
            Some(Sampling::Ask) | None => SamplingConsent::EachRequest,
        };
        Ok(server)
    }

    /// A program or an address, and nothing that belongs to the other.
    fn reach(&self, name: &Text) -> Result<Reach, ConfigError> {
        let both =
            |spot: &Spot, what: &str| ConfigError::malformed(spot, format!("{what}; an entry is one or the other"));
        match (&self.command, &self.url) {
            (Some(_), Some(url)) => Err(both(&url.spot, "a server has a `command` or a `url`")),
            (None, None) => Err(ConfigError::malformed(&name.spot, "a server needs a `command` or a `url`")),
            (None, Some(url)) => {
                let for_programs = !self.args.is_empty()
                    || !self.env.is_empty()
                    || self.cwd.is_some()
                    || !self.read.is_empty()
                    || !self.write.is_empty()
                    || self.permissions != Permissions::default();
                if for_programs {
                    let what = "`args`, `env`, `cwd`, `read`, `write` and `permissions` are for a `command`";
                    return Err(both(&url.spot, what));
                }
                let known = ["https://", "http://"].iter().any(|scheme| url.value.starts_with(scheme));
                if !known {
                    return Err(ConfigError::malformed(&url.spot, "expected an address like https://example.com/mcp"));
                }
                let who = self.oauth.as_ref().map_or(Who::New, |oauth| Who::Known {
                    id: oauth.client_id.clone(),
                    secret: oauth.client_secret.clone(),
                });
                Ok(Reach::Url { url: url.value.clone(), headers: self.headers.clone(), who })
            }
            (Some(command), None) => {
                if !self.headers.is_empty() || self.oauth.is_some() {
                    return Err(both(&command.spot, "`headers` and `oauth` are for a `url`"));
                }
                Ok(Reach::Program(Box::new(self.program(command)?)))
            }
        }
    }

    fn program(&self, command: &Text) -> Result<Program, ConfigError> {
        if command.value.is_empty() {
            return Err(ConfigError::malformed(&command.spot, "expected a program"));
        }
        let program = opened(command)?.to_string_lossy().into_owned();
        let terms = confinement::terms(&self.permissions, &confinement::Confinement::default())?;
        Ok(Program {
            argv: std::iter::once(program).chain(self.args.iter().cloned()).collect(),
            env: self.env.clone(),
            cwd: self.cwd.as_ref().map(opened).transpose()?,
            network: terms.network,
            pass: terms.pass,
            secrets: terms.secrets,
            read: self.read.iter().map(opened).collect::<Result<_, _>>()?,
            write: self.write.iter().map(opened).collect::<Result<_, _>>()?,
        })
    }
}

/// A path, with a leading `~` opened. Relative ones start at the project's root.
fn opened(text: &Text) -> Result<PathBuf, ConfigError> {
    if text.value.is_empty() || text.value.contains('\0') {
        return Err(ConfigError::malformed(&text.spot, "expected a path"));
    }
    match text.value.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        None => Ok(PathBuf::from(&text.value)),
        Some(rest) => haft_runtime::confined::environment::home()
            .map(|home| home.join(rest.trim_start_matches('/')))
            .ok_or_else(|| ConfigError::malformed(&text.spot, "`~` means HOME, which is not set")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    fn said(entry: &str) -> String {
        let text = format!("mcp:\n  servers:\n    x: {entry}\n");
        let config = crate::config::parse(text.as_bytes(), &Arc::from("f")).map_err(|error| error.to_string());
        let wanted = config.and_then(|config| {
            let (name, server) = config.mcp.servers.first_key_value().unwrap();
            server.wanted(name).map_err(|error| error.to_string())
        });
        match wanted {
            Ok(server) => format!("{:?}", server.reach),
            Err(error) => error,
        }
    }

    #[test]
    fn an_entry_is_a_program_or_an_address_and_says_where_it_is_wrong() {
        assert_eq!(said("{}"), "f:3:5: a server needs a `command` or a `url`");
        assert!(said("{command: a, url: http://x/}").contains("one or the other"));
        assert!(said("{url: ftp://x}").starts_with("f:3:14: expected an address"));
        assert!(said("{url: http://x/, args: [a]}").contains("are for a `command`"));
        assert!(said("{command: a, headers: {b: c}}").contains("are for a `url`"));
        assert!(said("{command: a, allow: [\"{\"]}").contains("no pattern"));
        assert!(said("{command: a, timeout_ms: 0}").contains("at least 1"));
        let reach = said("{command: a, args: [b], permissions: {network: true}}");
        assert!(reach.contains("argv: [\"a\", \"b\"]") && reach.contains("network: All"), "{reach}");
    }
}
