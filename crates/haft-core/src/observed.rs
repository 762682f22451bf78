//! Observed calls: what a coding agent's own tools mean in haft's words.
//!
//! The agent (Claude Code, Codex, Gemini CLI, Cursor, goose) runs these tools itself; haft is asked before and told after, by the
//! agent's hooks. What each tool means is data (`table`): the tool of haft's that policy, rules and grants know it by, and
//! which parameter is a place, a body or a command. haft does not sandbox these calls, so no verdict may rest on a sandbox.

pub mod doubts;
pub mod environment;
pub mod patch;
mod table;

use crate::error::CallError;
use crate::place::Access;
use crate::preview::{cut, inert};
use crate::tool::{Effect, Outward, ToolSpec};
use serde_json::{Map, Value, json};

pub use table::{EditKind, NativeTool, NativeToolKind, ParamRole};

/// The parameter under which arguments are kept that the table does not name.
pub const UNLISTED: &str = "unlisted";
/// The parameter that holds the agent's own words about a call, on which nothing depends.
pub const NOTE: &str = "note";
/// The parameter that holds a patch.
pub const PATCH: &str = "patch";
/// The name under which haft installs itself in a client.
const OWN_SERVER: &str = "haft";
/// The name prefix of native tools that are not in the table.
const NATIVE: &str = "native";

/// A coding agent whose own tools haft can observe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookClient {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    GeminiCli,
    /// Cursor.
    Cursor,
    /// goose.
    Goose,
}

impl HookClient {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::ClaudeCode, Self::Codex, Self::GeminiCli, Self::Cursor, Self::Goose];

    /// The word by which it is chosen, and which stands before the names of its tools.
    pub const fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini",
            Self::Cursor => "cursor",
            Self::Goose => "goose",
        }
    }

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::GeminiCli => "Gemini CLI",
            Self::Cursor => "Cursor",
            Self::Goose => "goose",
        }
    }

    /// The agent that policies know it as.
    pub const fn agent(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Cursor => "cursor",
            Self::Goose => "goose",
        }
    }
}

/// Which files below a directory an agent's own search opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentSearch<'a> {
    /// Those that `rg --hidden` opens, with this as `--glob`.
    Ripgrep {
        /// The glob, if there is one.
        glob: Option<&'a str>,
    },
    /// Perhaps all.
    Everything,
}

/// A tool of an agent's own, as it is observed.
#[derive(Debug, Clone, Copy)]
pub struct ObservedTool<'n> {
    /// Whose tool it is.
    pub client: HookClient,
    /// What the agent calls it.
    pub name: &'n str,
    /// What it means; none for a tool that haft does not know.
    pub native: Option<&'static NativeTool>,
}

impl<'n> ObservedTool<'n> {
    /// The tool of a client by its own name.
    pub fn new(client: HookClient, name: &'n str) -> Self {
        let native = match table::meaning(client, name) {
            Some(NativeToolKind::Tool(native)) => Some(native),
            Some(NativeToolKind::Internal { .. }) | None => None,
        };
        Self { client, name, native }
    }

    /// The same from the name under which its calls are stored, `CLIENT:TOOL`.
    pub fn spoken(text: &'n str) -> Option<Self> {
        let (word, name) = text.split_once(':')?;
        let client = HookClient::ALL.into_iter().find(|client| client.word() == word)?;
        Some(Self::new(client, name))
    }

    /// The name under which its calls are stored.
    pub fn stored_name(self) -> String {
        format!("{}:{}", self.client.word(), self.name)
    }

    /// Canonical arguments: listed parameters under haft's names, places absolute, everything else set apart so that it
    /// cannot pass for one of them.
    pub fn arguments(self, input: &Value, cwd: &str) -> Result<Value, CallError> {
        let Some(given) = input.as_object() else {
            return Err(CallError::invalid(format!("the arguments of `{}` are not an object", self.shown())));
        };
        let Some(native) = self.native else { return Ok(input.clone()) };
        let (mut args, mut unlisted) = (Map::new(), Map::new());
        for (name, value) in given {
            let Some(param) = native.params.iter().find(|param| param.native == name) else {
                unlisted.insert(name.clone(), value.clone());
                continue;
            };
            let value = match (param.role, value.as_str()) {
                (ParamRole::Reads | ParamRole::Writes, Some(path)) => json!(absolute(path, cwd)),
                _ => value.clone(),
            };
            args.insert(param.canonical.to_owned(), value);
        }
        if !unlisted.is_empty() {
            args.insert(UNLISTED.to_owned(), Value::Object(unlisted));
        }
        if native.searches() {
            args.entry("path").or_insert_with(|| json!(cwd));
        }
        if native.starts_in_directory() {
            args.entry("cwd").or_insert_with(|| json!(cwd));
        }
        Ok(Value::Object(args))
    }

    /// Why a person has to look at these arguments whatever is allowed: they have a parameter that haft does not know, or
    /// one that the agent may interpret differently than haft.
    pub fn doubt(self, args: &Value) -> Option<String> {
        let native = self.native?;
        if let Some(unlisted) = args.get(UNLISTED).and_then(Value::as_object) {
            let names: Vec<String> = unlisted.keys().map(|name| format!("`{}`", cut(&inert(name), 40))).collect();
            return Some(format!("{} was called with {}, which haft does not know", native.name, names.join(", ")));
        }
        native.params.iter().find_map(|param| {
            let value = args.get(param.canonical)?;
            match (param.role, value.as_str()) {
                (ParamRole::Reads | ParamRole::Writes, Some(path)) => self.path_doubt(path),
                (ParamRole::Pattern, Some(pattern)) => {
                    let why = doubts::pattern_base(pattern).err()?;
                    Some(doubts::sentence(native.name, "pattern", pattern, why))
                }
                (ParamRole::Addresses, _) => Some(format!(
                    "{} opens the addresses that stand in its text, and haft cannot tell which",
                    native.name
                )),
                (ParamRole::Pattern, None) => Some(format!("the pattern of {} is not a text", native.name)),
                _ => None,
            }
        })
    }

    /// Why a person has to look at a path: the agent may mean another place by it than haft.
    pub fn path_doubt(self, path: &str) -> Option<String> {
        doubts::path_doubt(path).map(|why| doubts::sentence(self.name, "path", path, why))
    }

    /// Where the patterns of a search begin to look, as far as they can be read.
    pub fn pattern_places(self, args: &Value) -> Vec<String> {
        let Some(native) = self.native else { return Vec::new() };
        let Some(dir) = args.get("path").and_then(Value::as_str) else { return Vec::new() };
        let patterns = native.params.iter().filter(|param| param.role == ParamRole::Pattern);
        let bases = patterns.filter_map(|param| doubts::pattern_base(args.get(param.canonical)?.as_str()?).ok());
        bases.filter(|base| !base.is_empty()).map(|base| absolute(&base, dir)).collect()
    }

    /// Which files it searches the contents of, below the place that it is given; none if it opens no file below one.
    pub fn content_search(self, args: &Value) -> Option<ContentSearch<'_>> {
        self.native.filter(|native| native.searches_contents())?;
        Some(match self.client {
            HookClient::ClaudeCode => ContentSearch::Ripgrep { glob: args.get("glob").and_then(Value::as_str) },
            HookClient::Codex | HookClient::GeminiCli | HookClient::Cursor | HookClient::Goose => {
                ContentSearch::Everything
            }
        })
    }

    /// Why haft does not know the directory in which a command runs.
    pub fn unknown_directory(self) -> Option<&'static str> {
        let runs = self.native.is_some_and(|native| native.effect == Effect::Runs);
        (runs && self.client == HookClient::Codex).then_some(
            "Codex does not report the directory and the shell of a command, so haft cannot tell what the command does",
        )
    }

    /// The declaration under which haft decides and records calls of this tool.
    pub fn spec(self) -> Result<ToolSpec, CallError> {
        let title = self.client.title();
        let bad = |error: crate::name::BadName| CallError::invalid(error.to_string());
        let Some(native) = self.native else {
            let name = format!("{NATIVE}:{}:{}", self.client.word(), plain(self.name));
            let about = format!("A tool of {title} that haft does not know: {}", self.shown());
            let mut spec =
                ToolSpec::new(&name, about).map_err(bad)?.acts().destructive().input(json!({"type": "object"}));
            spec.effects.open_world = true;
            return Ok(spec);
        };
        let about = format!("{} of {title}, which runs it itself", native.name);
        let mut spec = ToolSpec::new(native.tool, about).map_err(bad)?.input(native.schema());
        spec.effects.effect = native.effect;
        spec.effects.open_world = native.open_world;
        for param in native.params {
            spec = match param.role {
                ParamRole::Reads => spec.touches(param.canonical, Access::Read, None),
                ParamRole::Writes => spec.touches(param.canonical, Access::Write, None),
                ParamRole::Body => spec.body(param.canonical),
                ParamRole::Command => spec.command(param.canonical, None),
                ParamRole::Url => spec.web(Outward::Url(param.canonical, None)),
                ParamRole::Plain | ParamRole::Pattern | ParamRole::Note | ParamRole::Addresses => spec,
            };
        }
        if native.starts_in_directory() && !native.params.iter().any(|param| param.canonical == "cwd") {
            spec = spec.touches("cwd", Access::Read, None);
        }
        if native.effect == Effect::Runs {
            spec.reach.network = true;
        }
        Ok(spec)
    }

    fn shown(self) -> String {
        cut(&inert(self.name), 80)
    }
}

/// A path as the agent means it: relative to its working directory. Agents do not expand `~`.
pub fn absolute(path: &str, cwd: &str) -> String {
    if path.is_empty() || path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{}/{path}", cwd.trim_end_matches('/'))
    }
}

/// A name of which every character can stand in a tool's name.
fn plain(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.chars().take(120).map(|c| if fits(c) { c } else { '_' }).collect()
}

/// What is known of an observed call besides its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Whose tool it is.
    pub client: HookClient,
    /// Why a person has to look at it, whatever is allowed.
    pub doubt: Option<String>,
    /// Why haft does not know the directory in which the command runs. Such a call is asked about, unless a rule or a grant
    /// names commands whose programs do not depend on the directory.
    pub unknown_directory: Option<&'static str>,
    /// Whether policies know it by the name of a tool of haft's, whose calls haft guards.
    pub stands_for_own: bool,
}

/// The MCP server that a call goes to, and its name for the tool, as far as the client says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpTarget {
    /// The client's name for the server.
    pub server: String,
    /// The server's name for the tool.
    pub tool: String,
}

/// What a tool of a client's own means to haft.
pub fn meaning(client: HookClient, tool: &str, input: &Value) -> Option<NativeToolKind> {
    let found = table::meaning(client, tool)?;
    let NativeToolKind::Internal { params: Some(known), .. } = found else { return Some(found) };
    // An unknown parameter may change what the tool does, so it does not count as internal.
    let all = input.as_object().is_some_and(|given| given.keys().all(|name| known.contains(&name.as_str())));
    all.then_some(found)
}

/// The part after the prefix that this client puts before tools of an MCP server named `haft`; none without the prefix, and
/// none if a tool of a server whose name begins with it could be called the same. It proves nothing: another server may have
/// that name.
pub fn own_tool_name<'t>(client: HookClient, tool: &'t str, target: Option<&'t McpTarget>) -> Option<&'t str> {
    let name = match client {
        // Server and tool are joined by two underscores: a tool's name with two more may be half a server's.
        HookClient::ClaudeCode | HookClient::Codex => {
            tool.strip_prefix("mcp__haft__").filter(|name| !name.contains("__"))?
        }
        HookClient::Goose => tool.strip_prefix("haft__").filter(|name| !name.contains("__"))?,
        // They are joined by one, which either may contain; but the event names them apart.
        HookClient::GeminiCli => {
            let target = target.filter(|target| target.server == OWN_SERVER)?;
            tool.starts_with("mcp_").then_some(target.tool.as_str())?
        }
        // Its names say nothing about the server.
        HookClient::Cursor => return None,
    };
    Some(name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_makes_a_valid_declaration() {
        for client in HookClient::ALL {
            for native in table::tools(client) {
                let spec = ObservedTool::new(client, native.name).spec().unwrap();
                crate::Schema::compile(&spec.shapes.input).unwrap();
                let mut names: Vec<&str> = native.params.iter().map(|param| param.canonical).collect();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), native.params.len(), "{client:?} {}: two parameters share a name", native.name);
            }
        }
    }

    #[test]
    fn native_arguments_get_canonical_names_and_absolute_places() {
        let edit = ObservedTool::new(HookClient::ClaudeCode, "Edit");
        let input = json!({"file_path": "src/a.rs", "old_string": "a", "new_string": "b"});
        let expected = json!({"path": "/p/src/a.rs", "old_string": "a", "new_string": "b"});
        assert_eq!(edit.arguments(&input, "/p").unwrap(), expected);
        assert_eq!(edit.spec().unwrap().name.as_str(), "file.edit");
        let tilde = edit.arguments(&json!({"file_path": "~/x"}), "/p/").unwrap();
        assert_eq!(tilde["path"], "/p/~/x");
    }

    #[test]
    fn unlisted_parameter_is_set_apart_and_doubted() {
        let bash = ObservedTool::new(HookClient::ClaudeCode, "Bash");
        let args =
            bash.arguments(&json!({"command": "ls", "dangerouslyDisableSandbox": true, "cwd": "/"}), "/p").unwrap();
        assert_eq!(args["cwd"], "/p");
        assert_eq!(args[UNLISTED], json!({"dangerouslyDisableSandbox": true, "cwd": "/"}));
        let doubt = bash.doubt(&args).unwrap();
        assert_eq!(doubt, "Bash was called with `dangerouslyDisableSandbox`, `cwd`, which haft does not know");
        assert_eq!(bash.doubt(&bash.arguments(&json!({"command": "ls"}), "/p").unwrap()), None);
    }

    #[test]
    fn path_that_the_agent_may_read_otherwise_is_doubted() {
        for (client, tool, param) in [
            (HookClient::ClaudeCode, "Grep", "path"),
            (HookClient::ClaudeCode, "Glob", "path"),
            (HookClient::ClaudeCode, "LS", "path"),
            (HookClient::ClaudeCode, "MultiEdit", "file_path"),
            (HookClient::GeminiCli, "read_file", "file_path"),
            (HookClient::GeminiCli, "run_shell_command", "dir_path"),
            (HookClient::Cursor, "Read", "file_path"),
            (HookClient::Cursor, "Shell", "working_directory"),
        ] {
            let tool = ObservedTool::new(client, tool);
            let doubt = |path: &str| tool.doubt(&tool.arguments(&json!({param: path}), "/p").unwrap());
            for path in ["~/.ssh", " /etc/passwd", "link/../x", "/p/a\tb", "x\n"] {
                assert!(doubt(path).is_some(), "{} {path:?}", tool.name);
            }
            assert_eq!(doubt("src/a b.rs"), None, "{}", tool.name);
        }
    }

    #[test]
    fn search_looks_in_the_working_directory_and_where_its_pattern_begins() {
        let glob = ObservedTool::new(HookClient::ClaudeCode, "Glob");
        let args = glob.arguments(&json!({"pattern": ".ssh/*"}), "/p").unwrap();
        assert_eq!(args["path"], "/p");
        assert_eq!(glob.pattern_places(&args), ["/p/.ssh"]);
        assert_eq!(glob.doubt(&args), None);
        let gemini = ObservedTool::new(HookClient::GeminiCli, "glob");
        let args = gemini.arguments(&json!({"pattern": "../*", "dir_path": "src"}), "/p").unwrap();
        assert!(gemini.doubt(&args).unwrap().contains("it contains `..`"));
    }

    #[test]
    fn directory_of_a_codex_command_is_not_known() {
        assert!(ObservedTool::new(HookClient::Codex, "Bash").unknown_directory().is_some());
        assert_eq!(ObservedTool::new(HookClient::Codex, "apply_patch").unknown_directory(), None);
        assert_eq!(ObservedTool::new(HookClient::ClaudeCode, "Bash").unknown_directory(), None);
    }

    #[test]
    fn unknown_tool_has_a_name_that_policies_can_match() {
        let tool = ObservedTool::new(HookClient::GeminiCli, "mcp_github_create issue");
        let spec = tool.spec().unwrap();
        assert_eq!(spec.name.as_str(), "native:gemini:mcp_github_create_issue");
        assert!(spec.effects.open_world && spec.effects.effect == Effect::Acts);
        assert_eq!(ObservedTool::spoken(&tool.stored_name()).unwrap().name, tool.name);
    }

    #[test]
    fn internal_tool_with_a_strange_parameter_is_not_internal() {
        let agent = |input: Value| meaning(HookClient::ClaudeCode, "Agent", &input);
        assert!(matches!(agent(json!({"description": "d", "prompt": "p"})), Some(NativeToolKind::Internal { .. })));
        assert!(agent(json!({"description": "d", "prompt": "p", "isolation": "remote"})).is_none());
    }

    #[test]
    fn name_that_another_server_s_tool_may_have_is_not_own() {
        let claude = |tool| own_tool_name(HookClient::ClaudeCode, tool, None);
        assert_eq!(claude("mcp__haft__file_read"), Some("file_read"));
        for other in ["mcp__haftish__file_read", "mcp__haft__", "mcp__haft__mcp__github__read", "haft__file_read"] {
            assert_eq!(claude(other), None, "{other}");
        }
        let target = |server: &str, tool: &str| McpTarget { server: server.to_owned(), tool: tool.to_owned() };
        let gemini = |target: Option<&McpTarget>| {
            own_tool_name(HookClient::GeminiCli, "mcp_haft_file_read", target).map(str::to_owned)
        };
        let (own, other) = (target("haft", "file_read"), target("haft_file", "read"));
        assert_eq!(gemini(Some(&own)).as_deref(), Some("file_read"));
        assert_eq!(gemini(Some(&other)), None);
        assert_eq!(gemini(None), None);
        let goose = |tool| own_tool_name(HookClient::Goose, tool, None);
        assert_eq!(goose("haft__file_read"), Some("file_read"));
        for other in ["file_read", "haft__", "haft__x__file_read", "mcp__haft__file_read"] {
            assert_eq!(goose(other), None, "{other}");
        }
        for name in ["MCP:haft:file_read", "MCP:file_read"] {
            assert_eq!(own_tool_name(HookClient::Cursor, name, Some(&own)), None, "{name}");
        }
    }
}
