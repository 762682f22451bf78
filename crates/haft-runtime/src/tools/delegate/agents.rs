//! The agents that are known: a table of how each is asked, what it needs, and who understands what it prints.

use super::said::{self, Said};
use crate::confined::{Guest, environment};
use crate::shelf::places::{interpreter, look_up_in};
use crate::workspace::Workspace;
use haft_core::CallError;
use haft_sandbox::roots::followed;
use std::path::{Path, PathBuf};

/// What is asked of an agent.
pub(super) struct Wish<'w> {
    /// An earlier conversation to go on with.
    pub(super) session: Option<&'w str>,
    /// The model.
    pub(super) model: Option<&'w str>,
}

/// An agent that somebody else makes. What it is to do always goes in by its standard input: there it can be neither an
/// option nor too long, and nobody reads it in a list of processes.
pub(super) struct Agent {
    /// Its name, and its program's.
    pub(super) name: &'static str,
    /// How it is installed.
    install: &'static str,
    /// Its directory in the user's home.
    house: &'static str,
    /// Directories in there with its conversations.
    kept_dirs: &'static [&'static str],
    /// Files in there with its login.
    kept_files: &'static [&'static str],
    /// Files in the user's home that it reads and writes besides.
    copied: &'static [&'static str],
    /// Its maker's hosts.
    hosts: &'static [&'static str],
    /// Variables that hold its keys.
    pub(super) keys: &'static [&'static str],
    /// Variables that tell it where it is.
    pub(super) env: &'static [(&'static str, &'static str)],
    /// Its arguments.
    pub(super) args: fn(&Wish<'_>) -> Vec<String>,
    /// What it said, if what it printed is in its form.
    pub(super) read: fn(&str) -> Option<Said>,
}

/// All of them, in the order in which one is chosen. None asks for anything while it works: the kernel holds it, and what
/// it changes is decided upon here.
pub(super) const ALL: &[Agent] = &[
    Agent {
        name: "claude",
        install: "npm install -g @anthropic-ai/claude-code",
        house: ".claude",
        kept_dirs: &["projects"],
        kept_files: &[".credentials.json"],
        copied: &[".claude.json"],
        hosts: &["api.anthropic.com:443", "claude.ai:443", "console.anthropic.com:443", "platform.claude.com:443"],
        keys: &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"],
        env: &[("IS_SANDBOX", "1"), ("DISABLE_AUTOUPDATER", "1"), ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")],
        args: |wish| {
            let fixed = ["-p", "--output-format", "json", "--permission-mode", "bypassPermissions"];
            with(&fixed, &[("--resume", wish.session), ("--model", wish.model)])
        },
        read: said::claude,
    },
    Agent {
        name: "codex",
        install: "npm install -g @openai/codex",
        house: ".codex",
        kept_dirs: &["sessions"],
        kept_files: &["auth.json"],
        copied: &[],
        hosts: &["api.openai.com:443", "chatgpt.com:443", "auth.openai.com:443"],
        keys: &["OPENAI_API_KEY", "CODEX_API_KEY"],
        env: &[],
        args: |wish| {
            let fixed = ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
            let mut args = with(&fixed, &[("--model", wish.model), ("resume", wish.session)]);
            args.push("-".to_owned());
            args
        },
        read: said::codex,
    },
    Agent {
        name: "gemini",
        install: "npm install -g @google/gemini-cli",
        house: ".gemini",
        kept_dirs: &["tmp"],
        kept_files: &["oauth_creds.json", "google_accounts.json"],
        copied: &[],
        hosts: &[
            "generativelanguage.googleapis.com:443",
            "oauth2.googleapis.com:443",
            "accounts.google.com:443",
            "cloudcode-pa.googleapis.com:443",
        ],
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        env: &[("SANDBOX", "haft"), ("GEMINI_SANDBOX", "false")],
        args: |wish| {
            let fixed = ["--output-format", "json", "--approval-mode", "yolo"];
            with(&fixed, &[("--resume", wish.session), ("--model", wish.model)])
        },
        read: said::gemini,
    },
];

fn with(fixed: &[&str], options: &[(&str, Option<&str>)]) -> Vec<String> {
    let given = options.iter().filter_map(|(name, value)| Some([*name, (*value)?]));
    fixed.iter().copied().chain(given.flatten()).map(str::to_owned).collect()
}

/// An agent that is installed.
pub(super) struct Found {
    /// Which.
    pub(super) agent: &'static Agent,
    /// Its program.
    pub(super) program: PathBuf,
    made_of: Vec<PathBuf>,
}

/// The agent that is meant, or the first that is installed. What lies in the project is nobody's agent: whoever may write
/// there would choose what is lent to it.
pub(super) fn chosen(named: Option<&str>, workspace: &Workspace) -> Result<Found, CallError> {
    let outside = environment::outside(workspace.root());
    let dirs: Vec<PathBuf> = std::env::split_paths(&outside.path).collect();
    let mut meant = ALL.iter().filter(|agent| named.is_none_or(|name| name == agent.name));
    let found = meant.find_map(|agent| Some((agent, look_up_in(&dirs, agent.name)?)));
    let Some((agent, path)) = found else { return Err(missing(named)) };
    let gone = |error: std::io::Error| CallError::not_found(format!("`{}` cannot be found: {error}", agent.name));
    let real = followed(&path).map_err(gone)?;
    let at = path.parent().and_then(|dir| followed(dir).ok()).unwrap_or_default();
    let seen = environment::is_system(&at) || environment::toolchains().contains(&at);
    // A program that goes by the name it was called by is called by that, where the name can be seen.
    let program = if seen { at.join(agent.name) } else { real.clone() };
    let mut made_of = Vec::new();
    made_of.extend(interpreter(&real));
    made_of.extend(beside(&real));
    made_of.push(real);
    made_of.retain(|place| !environment::is_system(place));
    Ok(Found { agent, program, made_of })
}

/// What lies around a program and belongs to it: the packages that it is one of, or its directory, unless that is a home.
fn beside(real: &Path) -> Option<PathBuf> {
    let packages = real.ancestors().filter(|dir| dir.file_name().is_some_and(|name| name == "node_modules")).last();
    let home = environment::real_home();
    let around_home = |dir: &Path| home.as_ref().is_none_or(|home| home.starts_with(dir));
    packages.or(real.parent()).filter(|dir| !around_home(dir)).map(Path::to_owned)
}

fn missing(named: Option<&str>) -> CallError {
    let known = ALL.iter().filter(|agent| named.is_none_or(|name| name == agent.name));
    let ways: Vec<String> = known.map(|agent| format!("`{}` ({})", agent.name, agent.install)).collect();
    let message = match named {
        Some(name) => format!("the agent `{name}` is not installed"),
        None => "no agent is installed that could be asked".to_owned(),
    };
    CallError::not_found(message)
        .hint(format!("install {}, and put it on the PATH, outside the project", ways.join(" or ")))
}

impl Found {
    /// What it needs besides what every program may touch.
    pub(super) fn guest(&self) -> Result<Guest, CallError> {
        let agent = self.agent;
        let home = environment::real_home();
        let home =
            home.ok_or_else(|| CallError::failed(format!("`{}` needs a home, and HOME names none", agent.name)))?;
        let house = home.join(agent.house);
        let bad = |error| CallError::internal(format!("a host of `{}` is none: {error}", agent.name));
        Ok(Guest {
            read: self.made_of.clone(),
            kept_dirs: agent.kept_dirs.iter().map(|name| house.join(name)).collect(),
            kept_files: agent.kept_files.iter().map(|name| house.join(name)).filter(|file| file.exists()).collect(),
            copied: agent.copied.iter().map(|name| home.join(name)).collect(),
            hosts: agent.hosts.iter().map(|host| host.parse()).collect::<Result<_, _>>().map_err(bad)?,
            house,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_asked_in_its_own_way() {
        let args = |name: &str, session: Option<&str>, model: Option<&str>| {
            let agent = ALL.iter().find(|agent| agent.name == name).unwrap();
            (agent.args)(&Wish { session, model }).join(" ")
        };
        let claude = "-p --output-format json --permission-mode bypassPermissions";
        assert_eq!(args("claude", None, None), claude);
        assert_eq!(args("claude", Some("s-1"), Some("opus")), format!("{claude} --resume s-1 --model opus"));
        let codex = "exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox";
        assert_eq!(args("codex", None, None), format!("{codex} -"));
        assert_eq!(args("codex", Some("t-1"), Some("gpt-5")), format!("{codex} --model gpt-5 resume t-1 -"));
        let gemini = "--output-format json --approval-mode yolo";
        assert_eq!(args("gemini", Some("g-1"), None), format!("{gemini} --resume g-1"));
    }

    #[test]
    fn every_host_can_be_named() {
        for host in ALL.iter().flat_map(|agent| agent.hosts) {
            let rule = host.parse::<haft_core::host::HostRule>().unwrap();
            assert_eq!(rule.port(), Some(443), "{host}");
        }
    }
}
