//! Agent Skills: a directory with a `SKILL.md`, which is YAML front matter and Markdown.
//!
//! [`read`] takes the text of a `SKILL.md` and the name of its directory. It says what the skill is, and every way in which
//! the file departs from the specification, with line and column. The two are apart: a file may depart from the
//! specification and still be of use, and [`ParsedSkill::skill`] is absent only where it cannot be.
//!
//! A skill goes by the name of its directory, because no two skills of one folder have the same. What a skill says is text
//! for models; nothing in it permits anything.

mod allowed;
mod front;
mod links;
#[cfg(test)]
mod tests;

pub use allowed::{AllowedTool, AllowedToolMeaning, ToolAllowlist};
pub use links::RelativeLink;

use crate::manifest::lint::Rule;
use crate::manifest::{Flaw, Written};
use crate::preview::inert;
use crate::scan::{Kind, Scan, scan};
use crate::suggest::did_you_mean;
use crate::tokens::estimate;
use front::FrontMatter;
use links::relative_links;
use serde_json::{Map, Value};

/// The file that makes a directory a skill.
pub const FILE: &str = "SKILL.md";
/// The longest name.
pub const NAME_MAX: usize = 64;
/// The longest description, in characters.
pub const DESCRIPTION_MAX: usize = 1024;
/// The longest `compatibility`, in characters.
const COMPATIBILITY_MAX: usize = 500;
/// A body of more lines or tokens should be split into files beside it.
const BODY_LINES: usize = 500;
const BODY_TOKENS: usize = 5000;

/// The keys that the specification has, and the two of Claude Code's that haft obeys.
const KEYS: [&str; 8] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
    "disable-model-invocation",
    "user-invocable",
];

/// What is asked of skills.
pub const RULES: [Rule; 8] = [
    Rule { id: "skill", asks: "A skill's SKILL.md can be read, and its values have the types of the specification." },
    Rule { id: "skill-name", asks: "A skill's name is lower case letters, digits and -, and is its directory's." },
    Rule { id: "skill-description", asks: "A skill says in at most 1024 characters what it does and when to use it." },
    Rule { id: "skill-unknown-key", asks: "The keys of a skill's front matter are those of the specification." },
    Rule { id: "skill-tool", asks: "The tools that a skill lists exist, and haft can hold an agent to the list." },
    Rule { id: "skill-link", asks: "Relative links of a skill lead to files in its directory." },
    Rule { id: "skill-size", asks: "A SKILL.md is short enough to be read in full when the skill is used." },
    Rule { id: "skill-injection", asks: "A skill hides nothing, and gives no orders that look like prompt injection." },
];

/// A skill that can be offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// What it does and when to use it.
    pub description: String,
    /// Its licence, or the file that has it.
    pub license: Option<String>,
    /// What it needs around it.
    pub compatibility: Option<String>,
    /// The tools that it lists; none if it lists none.
    pub allowed_tools: Option<Vec<AllowedTool>>,
    /// Whether models are told of it: not with `disable-model-invocation`.
    pub for_models: bool,
    /// Whether people are offered it as a prompt: not with `user-invocable: false`.
    pub for_people: bool,
    /// The Markdown below the front matter.
    pub body: String,
}

/// What a `SKILL.md` says, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParsedSkill {
    /// The skill, if it can be offered.
    pub skill: Option<Skill>,
    /// Departures from the specification, in the order of their places.
    pub flaws: Vec<Flaw>,
}

impl ParsedSkill {
    /// What is known of a file that cannot be read at all.
    pub fn unreadable(flaw: Flaw) -> Self {
        Self { skill: None, flaws: vec![flaw] }
    }
}

/// Whether something can be a skill's name.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=NAME_MAX).contains(&name.len())
        && name.chars().all(plain)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Reads a `SKILL.md` that lies in a directory of this name.
pub fn read(text: &str, directory: &str) -> ParsedSkill {
    let Some(front) = FrontMatter::split(text) else {
        let message = "has no front matter; it begins with `---`, then `name:` and `description:`, then `---`";
        return ParsedSkill::unreadable(Flaw::error("skill", "", message).at((1, 1)));
    };
    let mut flaws = Vec::new();
    let said = front.parse(&mut flaws);
    let skill = said.and_then(|said| {
        let written = Written::new(front.yaml);
        let mut fields = Fields { said: &said, written, flaws: &mut flaws };
        fields.skill(&front, directory)
    });
    flaws.sort_by_key(|flaw| (flaw.line, flaw.column));
    ParsedSkill { skill, flaws }
}

/// The front matter's values, checked one by one.
struct Fields<'f> {
    said: &'f Map<String, Value>,
    written: Written<'f>,
    flaws: &'f mut Vec<Flaw>,
}

impl Fields<'_> {
    fn skill(&mut self, front: &FrontMatter<'_>, directory: &str) -> Option<Skill> {
        let named = self.name(directory);
        let description = self.description();
        let license = self.text("license", usize::MAX);
        let compatibility = self.text("compatibility", COMPATIBILITY_MAX);
        self.metadata();
        self.keys();
        let allowed_tools = self.allowed_tools();
        let for_models = !self.switch("disable-model-invocation", false);
        let for_people = self.switch("user-invocable", true);
        let description = description.filter(|_| named)?;
        let body = front.body.to_owned();
        Some(Skill { description, license, compatibility, allowed_tools, for_models, for_people, body })
    }

    /// Where a key stands in the file: the front matter begins on its second line.
    fn place(&self, pointer: &str) -> (u64, u64) {
        let (line, column) = self.written.place(pointer);
        (line + 1, column)
    }

    fn error(&mut self, rule: &'static str, key: &str, message: impl Into<String>) {
        let pointer = if key.is_empty() { String::new() } else { format!("/{key}") };
        let place = self.place(&pointer);
        self.flaws.push(Flaw::error(rule, pointer, message).at(place));
    }

    fn warn(&mut self, rule: &'static str, key: &str, message: impl Into<String>) {
        let pointer = format!("/{key}");
        let place = self.place(&pointer);
        self.flaws.push(Flaw::warning(rule, pointer, message).at(place));
    }

    /// Whether the directory's name can be a skill's. The name that is written has to be the same.
    fn name(&mut self, directory: &str) -> bool {
        const FORM: &str = "1 to 64 lower-case letters, digits and hyphens; no leading, trailing or double hyphen";
        let usable = is_name(directory);
        if !usable {
            self.error(
                "skill-name",
                "name",
                format!("the directory `{}` has no valid skill name: {FORM}", inert(directory)),
            );
        }
        match self.said.get("name") {
            None => self.error("skill-name", "", format!("`name` is missing; write `name: {}`", inert(directory))),
            Some(Value::String(name)) if name == directory => {}
            Some(Value::String(name)) if !is_name(name) => {
                self.error("skill-name", "name", format!("is not a valid skill name: {FORM}"));
            }
            Some(Value::String(_)) => {
                let directory = inert(directory);
                self.error("skill-name", "name", format!("must equal the directory's name, `{directory}`"));
            }
            Some(_) => self.error("skill-name", "name", "must be a string"),
        }
        usable
    }

    fn description(&mut self) -> Option<String> {
        let rule = "skill-description";
        let text = match self.said.get("description") {
            // Lists have it on one line.
            Some(Value::String(text)) if !text.trim().is_empty() => {
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            }
            Some(Value::String(_)) => {
                self.error(rule, "description", "is empty: models choose a skill by it");
                return None;
            }
            Some(_) => {
                self.error(rule, "description", "must be a string");
                return None;
            }
            None => {
                self.error(rule, "", "`description` is missing: models choose a skill by it");
                return None;
            }
        };
        let looked = scan(&text);
        if let Some(why) = injection_reason(&looked) {
            self.error("skill-injection", "description", why);
            return None;
        }
        if looked.is_noted() {
            let why = format!("could be taken for an order to models: {}", looked.reasons());
            self.warn("skill-injection", "description", why);
        }
        let length = text.chars().count();
        if length > DESCRIPTION_MAX {
            self.error(rule, "description", format!("has {length} characters; the limit is {DESCRIPTION_MAX}"));
        }
        Some(text.chars().take(DESCRIPTION_MAX).collect())
    }

    fn text(&mut self, key: &str, max: usize) -> Option<String> {
        match self.said.get(key)? {
            Value::String(text) if text.trim().is_empty() => self.error("skill", key, "is empty; leave it out"),
            Value::String(text) if text.chars().count() > max => {
                self.error("skill", key, format!("is longer than {max} characters"));
            }
            Value::String(text) => return Some(text.trim().to_owned()),
            _ => self.error("skill", key, "must be a string"),
        }
        None
    }

    fn metadata(&mut self) {
        match self.said.get("metadata") {
            None => {}
            Some(Value::Object(map)) => {
                if let Some((key, _)) = map.iter().find(|(_, value)| !value.is_string()) {
                    let message = format!("values must be strings; quote `{}`", inert(key));
                    self.warn("skill", "metadata", message);
                }
            }
            Some(_) => self.error("skill", "metadata", "must be a mapping of strings"),
        }
    }

    fn keys(&mut self) {
        let unknown: Vec<&String> = self.said.keys().filter(|key| !KEYS.contains(&key.as_str())).collect();
        for key in unknown {
            let hint = did_you_mean(key, KEYS).unwrap_or_else(|| "put it under `metadata`".to_owned());
            let message = format!("is not in the specification and is ignored; {hint}");
            self.warn("skill-unknown-key", key, message);
        }
    }

    fn switch(&mut self, key: &str, usual: bool) -> bool {
        match self.said.get(key) {
            None => usual,
            Some(Value::Bool(value)) => *value,
            // What cannot be read offers the skill to fewer, and never to more.
            Some(_) => {
                self.error("skill", key, "must be true or false");
                !usual
            }
        }
    }

    /// The list; an unreadable one names nothing, because a list can only narrow.
    fn allowed_tools(&mut self) -> Option<Vec<AllowedTool>> {
        let words = match self.said.get("allowed-tools")? {
            Value::String(text) => allowed::split(text),
            Value::Array(list) if list.iter().all(Value::is_string) => {
                list.iter().filter_map(Value::as_str).flat_map(allowed::split).collect()
            }
            _ => {
                let message = "must be a space-separated string or a list of tool names";
                self.error("skill-tool", "allowed-tools", message);
                return Some(Vec::new());
            }
        };
        if words.iter().any(|word| word == "*") {
            return None;
        }
        let tools: Vec<AllowedTool> = words.iter().map(|word| AllowedTool::read(word)).collect();
        for tool in &tools {
            if let Some(why) = tool.ignored_reason() {
                self.warn("skill-tool", "allowed-tools", why);
            }
        }
        Some(tools)
    }
}

/// What is wrong with the Markdown of a `SKILL.md`. Apart from [`read`], because it takes longer and a list of skills needs
/// none of it.
pub fn body_flaws(text: &str) -> Vec<Flaw> {
    let Some(front) = FrontMatter::split(text) else { return Vec::new() };
    let mut flaws = Vec::new();
    let mut warn = |rule, line, message: String| flaws.push(Flaw::warning(rule, "", message).at((line, 1)));
    if front.body.trim().is_empty() {
        warn("skill", front.body_line, "has no instructions below its front matter".to_owned());
    }
    let (lines, tokens) = (front.body.lines().count(), estimate(front.body));
    if lines > BODY_LINES || tokens > BODY_TOKENS {
        let message = format!(
            "has {lines} lines, about {tokens} tokens, which are read whenever the skill is used; keep it under \
             {BODY_LINES} lines and {BODY_TOKENS} tokens, and move the rest into files beside it"
        );
        warn("skill-size", front.body_line, message);
    }
    let looked = scan(front.body);
    if let Some(why) = injection_reason(&looked) {
        let at = looked.findings.first().map_or(0, |finding| finding.at);
        let before = front.body.get(..at).unwrap_or_default().matches('\n').count() as u64;
        warn("skill-injection", front.body_line + before, format!("{why}; it is handed out as untrusted text"));
    }
    flaws
}

/// The relative links of a `SKILL.md`, with their places in the file.
pub fn links(text: &str) -> Vec<RelativeLink> {
    let Some(front) = FrontMatter::split(text) else { return Vec::new() };
    let mut links = relative_links(front.body);
    for link in &mut links {
        link.line += front.body_line - 1;
    }
    links
}

/// Whether a text of a skill looks like prompt injection, so that it is handed out as untrusted.
pub fn is_flagged(text: &str) -> bool {
    injection_reason(&scan(text)).is_some()
}

/// Why a text looks like prompt injection.
fn injection_reason(looked: &Scan) -> Option<String> {
    if looked.findings.iter().any(|finding| finding.kind == Kind::Hidden) {
        return Some("contains invisible characters that models still read".to_owned());
    }
    looked.is_flagged().then(|| format!("looks like prompt injection: {}", looked.reasons()))
}
