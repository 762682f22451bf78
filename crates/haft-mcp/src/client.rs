//! The other way: any MCP server's tools as tools of haft.
//!
//! A server is a program that runs confined, or a URL. Each has one task that starts it, follows what it offers,
//! starts it again when it has crashed, and ends it; a slow one keeps nobody waiting but its own callers. What it
//! says of its tools is pinned: a tool whose declaration has changed is asked about before it is used again. What
//! its tools give is labelled untrusted, and what it asks for goes to whoever answers for the call that it serves.

mod answer;
mod bridge;
mod call;
pub(crate) mod catalogue;
mod connect;
mod courier;
mod declared;
mod follow;
mod link;
pub(crate) mod log_message;
pub mod oauth;
mod observed;
mod remote_task;
mod reply;
mod status;
mod tool;
mod wire;

pub use bridge::{Bridge, Learn, accepted_provider_notes};
pub use status::{Garbage, State, Status};

use haft_core::pattern::glob_is_sane;
use haft_runtime::SamplingConsent;
use haft_sandbox::Network;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How long a server may take to answer unless its entry says otherwise.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest name of a server.
const NAME_MAX: usize = 40;

/// A server whose tools are offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Its name here.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// Tools that are offered, as globs over their names there; none means all.
    pub allow: Option<Vec<String>>,
    /// Tools that are not.
    pub deny: Vec<String>,
    /// When it is started.
    pub start: Start,
    /// How long it may take to answer.
    pub timeout: Duration,
    /// Whether the user agrees beforehand that the caller's model answers it.
    pub sampling: SamplingConsent,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Reach {
    /// A program that speaks over its input and output.
    Program(Box<Program>),
    /// An address that speaks HTTP.
    Url {
        /// The address.
        url: String,
        /// Headers for every request. `${NAME}` stands for haft's own variable.
        headers: BTreeMap<String, String>,
        /// As whom haft signs in, if it has to.
        who: oauth::Who,
    },
}

/// A program that is a server, and what it may reach.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    /// Itself and its arguments.
    pub argv: Vec<String>,
    /// Its environment besides harmless variables. `${NAME}` stands for haft's own variable.
    pub env: BTreeMap<String, String>,
    /// Where it starts; the project's root otherwise.
    pub cwd: Option<PathBuf>,
    /// Which part of the network it may use.
    pub network: Network,
    /// Variables of haft's environment that it gets.
    pub pass: Vec<String>,
    /// Secrets that it gets.
    pub secrets: Vec<String>,
    /// What it may read besides the project.
    pub read: Vec<PathBuf>,
    /// Where it may write.
    pub write: Vec<PathBuf>,
}

/// When a server is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Start {
    /// At the first call of one of its tools.
    #[default]
    Lazy,
    /// When haft starts.
    Eager,
}

/// What is wrong with an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadServer {
    /// Its name cannot be part of a tool's name.
    #[error("`{0}` cannot be a server's name: use 1 to {NAME_MAX} of a-z, 0-9, _ and -")]
    Name(String),
    /// A glob that cannot be used.
    #[error("`{0}` is no pattern for tool names")]
    Glob(String),
}

impl Server {
    /// A server with the usual settings.
    pub fn new(name: &str, reach: Reach) -> Result<Self, BadServer> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(fits) {
            return Err(BadServer::Name(haft_core::preview::cut(&haft_core::preview::inert(name), NAME_MAX)));
        }
        let name = name.to_owned();
        Ok(Self {
            name,
            reach,
            allow: None,
            deny: Vec::new(),
            start: Start::Lazy,
            timeout: USUAL_TIMEOUT,
            sampling: SamplingConsent::default(),
        })
    }

    /// Whether a pattern for tools can be used.
    pub fn check_glob(glob: &str) -> Result<(), BadServer> {
        let fine = !glob.is_empty() && glob_is_sane(glob) && haft_core::pattern::ToolPattern::new(glob).is_ok();
        if fine { Ok(()) } else { Err(BadServer::Glob(haft_core::preview::cut(&haft_core::preview::inert(glob), 80))) }
    }

    /// Whether one of its tools is offered.
    pub fn offers(&self, tool: &str) -> bool {
        let any = |globs: &[String]| globs.iter().any(|glob| matches(glob, tool));
        self.allow.as_deref().is_none_or(any) && !any(&self.deny)
    }

    /// Whether it is a program.
    pub fn is_program(&self) -> bool {
        matches!(self.reach, Reach::Program(_))
    }
}

/// Whether a name fits a pattern in which `*` stands for anything and `?` for one character. A pattern with other
/// signs in it stands for itself.
fn matches(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    let (mut at, mut seen, mut star) = (0, 0, None);
    while seen < name.len() {
        match glob.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(c) if *c == '?' || *c == name[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((back, from)) => {
                    star = Some((back, from + 1));
                    at = back + 1;
                    seen = from + 1;
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|c| *c == '*')
}

/// Text with `${NAME}` replaced by haft's own variables. One that is not set is an error: a header without its token
/// would be sent to somebody, and refused with a riddle.
pub(crate) fn expanded(text: &str) -> Result<String, haft_core::CallError> {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        done.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            done.push_str("${");
            rest = after;
            continue;
        };
        let value = std::env::var(name).map_err(|_| {
            let name = haft_core::preview::inert(name);
            haft_core::CallError::failed(format!("the variable {name} is named in the entry, and not set"))
                .hint("set it in haft's own environment, or take it out of the entry")
        })?;
        done.push_str(&value);
        rest = behind;
    }
    Ok(done + rest)
}

/// Text from a server: every line inert, and not more than so many bytes.
pub(crate) fn tamed(text: &str, most: usize) -> String {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let cut = if end < text.len() { "…" } else { "" };
    let lines: Vec<String> = text[..end].split('\n').map(haft_core::preview::inert).collect();
    lines.join("\n") + cut
}

/// Makes the texts in a value from a server inert, each as long as it may be under its member's name. A member whose name could act is left out, as is every member named `haft` of `_meta`.
pub(crate) fn tamed_texts(name: &str, value: &mut serde_json::Value, most: &dyn Fn(&str) -> usize) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = tamed(text, most(name)),
        Value::Array(items) => items.iter_mut().for_each(|item| tamed_texts(name, item, most)),
        Value::Object(members) => {
            members.retain(|member, _| is_inert(member) && !(name == "_meta" && member == "haft"));
            members.iter_mut().for_each(|(member, value)| tamed_texts(member, value, most));
        }
        _ => {}
    }
}

/// Whether a text shows all that it is.
pub(crate) fn is_inert(text: &str) -> bool {
    haft_core::preview::inert(text) == text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_part_of_tool_names() {
        let reach = Reach::Url { url: "http://127.0.0.1/".into(), headers: BTreeMap::new(), who: oauth::Who::New };
        for bad in ["", "A", "a:b", "a.b", "a b", &"x".repeat(41)] {
            assert!(Server::new(bad, reach.clone()).is_err(), "{bad:?}");
        }
        assert!(Server::new("git_hub-2", reach).is_ok());
    }

    #[test]
    fn denied_tools_are_not_offered_whatever_is_allowed() {
        let reach = Reach::Url { url: String::new(), headers: BTreeMap::new(), who: oauth::Who::New };
        let mut server = Server::new("x", reach).unwrap();
        assert!(server.offers("anything"));
        server.allow = Some(vec!["get_*".into(), "list?".into()]);
        server.deny = vec!["*secret*".into()];
        let offered: Vec<&str> = ["get_a", "get_secret_b", "lists", "list", "other"]
            .into_iter()
            .filter(|tool| server.offers(tool))
            .collect();
        assert_eq!(offered, ["get_a", "lists"]);
    }

    #[test]
    fn variables_are_put_in_and_a_missing_one_is_named() {
        assert_eq!(expanded("a $b ${CARGO_PKG_NAME} ${").unwrap(), "a $b haft-mcp ${");
        let error = expanded("Bearer ${HAFT_NO_SUCH_VARIABLE}").unwrap_err();
        assert_eq!(error.message, "the variable HAFT_NO_SUCH_VARIABLE is named in the entry, and not set");
    }

    #[test]
    fn text_of_a_server_is_cut_at_a_character_and_cannot_act() {
        assert_eq!(tamed("äöü\x1b[2J", 3), "ä…");
        assert_eq!(tamed("a\nb\x1b[2J", 100), "a\nb\\u{1b}[2J");
    }
}
