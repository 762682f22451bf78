//! The agents that are known: a table of how each is asked, what it needs, and who understands what it prints.

use super::said::{self, Said};
use crate::confined::guest::{conversations, is_about};
use crate::confined::{Guest, environment};
use crate::shelf::places::interpreter_by;
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

/// Where it works.
struct Place<'p> {
    /// Its directory.
    house: &'p Path,
    /// The project.
    root: &'p Path,
    /// An earlier conversation to go on with.
    session: Option<&'p str>,
}

/// What of its conversations an agent is lent.
#[derive(Default)]
struct Lent {
    /// Directories that stay as it leaves them.
    dirs: Vec<PathBuf>,
    /// Files that do.
    files: Vec<PathBuf>,
    /// Directories that it sees, and that stay as they are.
    passing: Vec<PathBuf>,
    /// A directory in which its new conversations are kept.
    gathered: Option<PathBuf>,
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
    /// Places in there with what was said about any project. It sees nothing of them but what is lent to it.
    unseen: &'static [&'static str],
    /// What of its conversations it is lent.
    lent: fn(&Place<'_>) -> Result<Lent, CallError>,
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
        unseen: &[
            "projects",
            "history.jsonl",
            "file-history",
            "todos",
            "tasks",
            "plans",
            "shell-snapshots",
            "session-env",
            "paste-cache",
            "debug",
            "backups",
        ],
        lent: |place| Ok(claudes(place)),
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
        unseen: &["sessions", "archived_sessions", "history.jsonl", "log", "shell_snapshots", "memories"],
        lent: codexs,
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
        unseen: &["tmp", "history"],
        lent: |place| Ok(geminis(place)),
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

/// One directory for each project, named after its path. What it remembers there of the project it would believe later, where
/// nothing holds it.
fn claudes(place: &Place<'_>) -> Lent {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_string() } else { "-".repeat(c.len_utf16()) };
    let name: String = place.root.to_string_lossy().chars().map(plain).collect();
    let dir = place.house.join("projects").join(name);
    Lent { passing: vec![dir.join("memory")], dirs: vec![dir], ..Lent::default() }
}

/// One directory for all projects, by day. The one to go on with is lent, if it is about this project.
fn codexs(place: &Place<'_>) -> Result<Lent, CallError> {
    let dir = place.house.join("sessions");
    let mut files = Vec::new();
    if let Some(session) = place.session {
        let end = format!("-{session}.jsonl");
        let named = |file: &PathBuf| file.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&end));
        let found = conversations(&dir).into_iter().find(|file| named(file) && is_about(file, place.root));
        files.push(found.ok_or_else(|| {
            CallError::not_found(format!("codex has no session `{session}` about this project"))
                .hint("pass on what an earlier call in this project gave as `session`, or leave it out")
        })?);
    }
    Ok(Lent { files, gathered: Some(dir), ..Lent::default() })
}

/// One directory for each project, named by a digest of its path, or by what a list says. Beside them are programs that it runs.
fn geminis(place: &Place<'_>) -> Lent {
    let (all, root) = (place.house.join("tmp"), place.root.to_string_lossy());
    let mut names = vec![haft_core::record::Digest::of(root.as_bytes()).to_string()];
    let list = std::fs::read(place.house.join("projects.json")).ok();
    let list: Option<serde_json::Value> = list.and_then(|text| serde_json::from_slice(&text).ok());
    let listed = list.as_ref().and_then(|list| list["projects"][&*root].as_str());
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    names
        .extend(listed.filter(|name| !name.is_empty() && *name != "bin" && name.chars().all(plain)).map(str::to_owned));
    let passing = Some(all.join("bin")).filter(|programs| programs.is_dir());
    let dirs = names.iter().map(|name| all.join(name)).collect();
    Lent { dirs, passing: passing.into_iter().collect(), ..Lent::default() }
}

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
    let projects = [workspace.project(), workspace.root()];
    let mut meant = ALL.iter().filter(|agent| named.is_none_or(|name| name == agent.name));
    let found = meant.find_map(|agent| Some((agent, environment::installed(agent.name, &projects)?)));
    let Some((agent, path)) = found else { return Err(missing(named)) };
    let gone = |error: std::io::Error| CallError::not_found(format!("`{}` cannot be found: {error}", agent.name));
    let real = followed(&path).map_err(gone)?;
    let at = path.parent().and_then(|dir| followed(dir).ok()).unwrap_or_default();
    let seen = environment::is_system(&at) || environment::toolchains().contains(&at);
    // A program that goes by the name it was called by is called by that, where the name can be seen.
    let program = if seen { at.join(agent.name) } else { real.clone() };
    let mut made_of = Vec::new();
    made_of.extend(interpreter_by(&real, |name| environment::installed(name, &projects)));
    made_of.extend(beside(&real));
    made_of.push(real);
    made_of.retain(|place| !environment::is_system(place));
    // Whoever reads a script is as good as the script.
    if made_of.iter().any(|place| projects.iter().any(|root| environment::is_projects(place, root))) {
        return Err(missing(Some(agent.name)));
    }
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
    pub(super) fn guest(&self, workspace: &Workspace, session: Option<&str>) -> Result<Guest, CallError> {
        let (agent, root) = (self.agent, workspace.root());
        let home = environment::real_home();
        let home =
            home.ok_or_else(|| CallError::failed(format!("`{}` needs a home, and HOME names none", agent.name)))?;
        let house = home.join(agent.house);
        let bad = |error| CallError::internal(format!("a host of `{}` is none: {error}", agent.name));
        let lent = (agent.lent)(&Place { house: &house, root, session })?;
        // A place that is not there needs no hiding, unless something of it is lent.
        let within = |place: &PathBuf| lent.dirs.iter().chain(&lent.files).any(|lent| lent.starts_with(place));
        let needed = |place: &PathBuf| place.exists() || within(place) || lent.gathered.as_ref() == Some(place);
        Ok(Guest {
            name: agent.name,
            program: self.program.clone(),
            root: root.to_owned(),
            read: self.made_of.clone(),
            unseen: agent.unseen.iter().map(|name| house.join(name)).filter(needed).collect(),
            kept_dirs: lent.dirs,
            kept_files: lent.files,
            passing: lent.passing,
            gathered: lent.gathered,
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
