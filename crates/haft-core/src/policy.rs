//! Which tools exist for a caller. The same answer is used when tools are listed and when one is called,
//! so a model is never shown a tool it may not use, and cannot use one it was not shown.

use crate::call::Caller;
use crate::name::ToolName;
use crate::pattern::{BadPattern, ToolPattern, first_match};
use crate::tool::ToolSpec;
use std::collections::BTreeMap;

/// An allow list and a deny list. Deny wins.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// What exists.
    pub allow: Vec<ToolPattern>,
    /// What does not, whatever `allow` says.
    pub deny: Vec<ToolPattern>,
}

impl Rules {
    /// Reads both lists.
    pub fn new<S: AsRef<str>>(allow: &[S], deny: &[S]) -> Result<Self, BadPattern> {
        let read = |list: &[S]| list.iter().map(|text| ToolPattern::new(text.as_ref())).collect::<Result<_, _>>();
        Ok(Self { allow: read(allow)?, deny: read(deny)? })
    }

    fn verdict(&self, tool: &ToolSpec) -> Result<(), String> {
        if let Some(pattern) = self.deny.iter().find(|pattern| pattern.holds(tool)) {
            return Err(format!("its deny list holds `{pattern}`"));
        }
        if first_match(&self.allow, &tool.name).is_none() {
            return Err(format!("its allow list does not hold `{}`", tool.name));
        }
        Ok(())
    }
}

/// The profiles that haft ships, as allow and deny lists.
pub const PROFILES: &[(&str, &[&str], &[&str])] = &[
    ("minimal", &["system.info"], &[]),
    ("messaging", &["system.info", "memory.read", "memory.write"], &["shell.*", "file.*", "process.*"]),
    ("coding", &["*"], &["group:runtime", "agent.delegate"]),
    ("full", &["*"], &[]),
];

/// The rules of a profile that haft ships.
pub fn shipped_profile(name: &str) -> Option<Rules> {
    let (_, allow, deny) = PROFILES.iter().find(|(known, _, _)| *known == name)?;
    Rules::new(allow, deny).ok()
}

/// One layer of rules that a tool has to pass, and where it comes from.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Who speaks: `profile coding`, `agent reviewer`, `the project's config`.
    pub by: String,
    /// What it lets through.
    pub rules: Rules,
}

/// The rules for one agent or one provider.
#[derive(Debug, Clone)]
pub struct Override {
    /// What it lets through.
    pub gate: Gate,
    /// Whether it stands in for the profile. Only the user's own config may say so: anybody else's
    /// override can only narrow.
    pub replaces_profile: bool,
}

/// What hooks say about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// A person confirms.
    Confirm,
    /// It is marked in the log.
    Log,
    /// No opinion.
    Silent,
}

/// Globs per hook. Confirm outranks log outranks silent.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    /// Tools that a person confirms.
    pub confirm: Vec<ToolPattern>,
    /// Tools that are marked in the log.
    pub log: Vec<ToolPattern>,
    /// Tools that nobody has an opinion about.
    pub silent: Vec<ToolPattern>,
}

impl Hooks {
    /// The strongest hook that holds the tool, and the pattern by which it does.
    pub fn action(&self, tool: &ToolName) -> (Hook, Option<&ToolPattern>) {
        [(Hook::Confirm, &self.confirm), (Hook::Log, &self.log)]
            .into_iter()
            .find_map(|(hook, list)| first_match(list, tool).map(|pattern| (hook, Some(pattern))))
            .unwrap_or((Hook::Silent, first_match(&self.silent, tool)))
    }
}

/// How much an agent may do by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Autonomy {
    /// What standard would ask is refused: nobody is there to answer.
    Autonomous,
    /// The approval chain decides.
    #[default]
    Standard,
    /// Everything that writes or runs is asked.
    Conservative,
}

/// A rule that nothing can lift.
#[derive(Debug, Clone)]
pub struct FloorDeny {
    /// The tools it is about.
    pub tool: ToolPattern,
    /// Where given, only calls whose arguments (as JSON text) or resolved paths match.
    pub args: Option<regex::Regex>,
    /// Why, for the person who meets it.
    pub reason: String,
}

/// Which tools exist for whom.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// The profile in force; none lets everything through.
    pub profile: Option<Gate>,
    /// Every tool passes all of these as well.
    pub gates: Vec<Gate>,
    /// Rules for one agent; all of them hold.
    pub agents: BTreeMap<String, Vec<Override>>,
    /// Rules for one provider; all of them hold.
    pub providers: BTreeMap<String, Vec<Override>>,
    /// Confirm, log, silent.
    pub hooks: Hooks,
    /// How much happens unasked.
    pub autonomy: Autonomy,
    /// What nothing can lift.
    pub floor: Vec<FloorDeny>,
}

/// A tool does not exist for this caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotThere {
    /// The gate that stopped it.
    pub by: String,
    /// Why.
    pub reason: String,
}

impl Policy {
    /// Whether the tool exists for the caller: it must pass every gate that applies.
    pub fn admits(&self, tool: &ToolSpec, caller: &Caller) -> Result<(), NotThere> {
        // A child has at the most what its parent has: its own rules narrow, whatever they say of the profile.
        let agent = caller.lineage().next().and_then(|name| self.agents.get(name));
        let below = caller.lineage().skip(1).filter_map(|name| self.agents.get(name));
        let provider = caller.provider.as_ref().and_then(|name| self.providers.get(name));
        let own = agent.into_iter().chain(provider).chain(below).flatten();
        // Whoever names itself can take more rules upon itself, and shed none.
        let counts =
            |rules: Option<&Vec<Override>>| rules.is_some_and(|all| all.iter().any(|one| one.replaces_profile));
        // A child may be given another model, and sheds nothing by that.
        let by_provider = caller.depth() == 0 && counts(provider);
        let replaced = counts(agent.filter(|_| !caller.claimed)) || by_provider;
        let profile = self.profile.iter().filter(|_| !replaced);
        for gate in profile.chain(&self.gates).chain(own.map(|one| &one.gate)) {
            gate.rules.verdict(tool).map_err(|reason| NotThere { by: gate.by.clone(), reason })?;
        }
        Ok(())
    }

    /// The floor rule, if any, that forbids this tool with any of these texts: its arguments as JSON, the
    /// paths they lead to, the paths it would change.
    pub fn forbidden(&self, tool: &ToolName, texts: &[String]) -> Option<&FloorDeny> {
        let hit = |pattern: &regex::Regex| texts.iter().any(|text| pattern.is_match(text));
        self.floor.iter().find(|rule| rule.tool.matches(tool) && rule.args.as_ref().is_none_or(hit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(tool: &str) -> ToolSpec {
        ToolSpec::new(tool, "a tool").unwrap()
    }

    #[test]
    fn who_runs_no_programs_runs_none_by_another_name() {
        let caller = Caller::default();
        let (shown, runs) = (named("deploy_site"), named("deploy_site").runs());
        assert!(policy("coding").admits(&shown, &caller).is_ok());
        let gone = policy("coding").admits(&runs, &caller).unwrap_err();
        assert!(gone.reason.contains("group:runtime"), "{}", gone.reason);
        assert!(policy("full").admits(&runs, &caller).is_ok());
    }

    fn policy(profile: &str) -> Policy {
        let gate = Gate { by: format!("profile {profile}"), rules: shipped_profile(profile).unwrap() };
        Policy { profile: Some(gate), ..Policy::default() }
    }

    #[test]
    fn a_name_that_an_agent_gave_itself_can_only_narrow() {
        let full = Gate { by: "agent boss".to_owned(), rules: shipped_profile("full").unwrap() };
        let agents = BTreeMap::from([("boss".to_owned(), vec![Override { gate: full, replaces_profile: true }])]);
        let policy = Policy { agents, ..policy("minimal") };
        let caller = |claimed| Caller { agent: Some("boss".to_owned()), claimed, ..Caller::default() };
        let tool = named("shell.exec");
        assert!(policy.admits(&tool, &caller(false)).is_ok());
        assert!(policy.admits(&tool, &caller(true)).is_err());
    }

    fn there(policy: &Policy, tool: &str) -> bool {
        policy.admits(&named(tool), &Caller::default()).is_ok()
    }

    #[test]
    fn the_shipped_profiles_are_those_of_the_document() {
        let rows: Vec<String> = PROFILES
            .iter()
            .map(|(name, _, _)| {
                let policy = policy(name);
                let tools = ["system.info", "memory.read", "file.read", "shell.exec"];
                format!(
                    "{name}: {}",
                    tools.into_iter().filter(|tool| there(&policy, tool)).collect::<Vec<_>>().join(" ")
                )
            })
            .collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        minimal: system.info
        messaging: system.info memory.read
        coding: system.info memory.read file.read
        full: system.info memory.read file.read shell.exec
        ");
    }

    #[test]
    fn an_override_only_narrows_unless_it_replaces_the_profile() {
        let mut policy = policy("minimal");
        let caller = Caller { agent: Some("a".into()), ..Caller::default() };
        let admits = |policy: &Policy| policy.admits(&named("file.read"), &caller).is_ok();
        for (replaces_profile, expected) in [(false, false), (true, true)] {
            let gate = Gate { by: "agent a".into(), rules: shipped_profile("full").unwrap() };
            policy.agents.insert("a".into(), vec![Override { gate, replaces_profile }]);
            assert_eq!(admits(&policy), expected);
        }
    }

    #[test]
    fn a_child_has_at_the_most_what_its_parent_has() {
        let (full, minimal) = (shipped_profile("full").unwrap(), shipped_profile("minimal").unwrap());
        let mut policy = policy("coding");
        let rule = |by: &str, rules: &Rules, replaces_profile| {
            vec![Override { gate: Gate { by: by.to_owned(), rules: rules.clone() }, replaces_profile }]
        };
        policy.agents.insert("narrow".to_owned(), rule("narrow", &minimal, false));
        policy.agents.insert("narrow/wide".to_owned(), rule("narrow/wide", &full, true));
        policy.agents.insert("wide".to_owned(), rule("wide", &full, true));
        policy.agents.insert("wide/narrow".to_owned(), rule("wide/narrow", &minimal, false));
        let admits = |agent: &str, tool: &str| {
            let caller = Caller { agent: Some(agent.to_owned()), ..Caller::default() };
            policy.admits(&named(tool), &caller).is_ok()
        };
        assert!(!admits("narrow", "file.read") && !admits("narrow/other", "file.read"));
        assert!(!admits("narrow/wide", "file.read"), "what its own rules say does not lift its parent's");
        assert!(admits("wide", "shell.exec") && admits("wide/other", "shell.exec"), "what its parent has");
        assert!(!admits("wide/narrow", "shell.exec") && !admits("wide/narrow/deep", "shell.exec"));
        assert!(!admits("other/wide", "shell.exec"), "only the outermost name can stand in for the profile");
        policy.providers.insert("near".to_owned(), rule("near", &full, true));
        for (agent, expected) in [("other", true), ("other/child", false)] {
            let caller =
                Caller { agent: Some(agent.to_owned()), provider: Some("near".to_owned()), ..Caller::default() };
            let there = policy.admits(&named("shell.exec"), &caller).is_ok();
            assert_eq!(there, expected, "a child's model does not lift what holds for its parent");
        }
    }

    #[test]
    fn confirm_outranks_log_outranks_silent() {
        let list = |text: &str| vec![ToolPattern::new(text).unwrap()];
        let hooks = Hooks { confirm: list("file.write"), log: list("file.*"), silent: list("*") };
        let action = |tool: &str| hooks.action(&ToolName::new(tool).unwrap()).0;
        assert_eq!(action("file.write"), Hook::Confirm);
        assert_eq!(action("file.read"), Hook::Log);
        assert_eq!(action("calc.eval"), Hook::Silent);
    }
}
