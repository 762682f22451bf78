//! What remains of a project's file that the user has not trusted: only what can make a verdict stricter.
//!
//! Its deny lists, rules that deny, floor rules and confirm hooks add up with the user's. Its profile and its rules for
//! agents become gates beside the user's, which can only narrow. All the rest is ignored and named.

use super::browser::Browser;
use super::doors::{Gateway, Mcp, Tools};
use super::file::{Approval, Autonomy, Config, Files, Hooks, Kept, Level, Preset, Undo};
use super::media::Media;
use super::memory::Memory;
use super::models::Models;
use super::shell::Shell;

/// A project's file with everything taken out that could loosen, and the keys that were.
pub(super) struct Tightened {
    /// What counts.
    pub(super) config: Config,
    /// What does not.
    pub(super) ignored: Vec<&'static str>,
}

/// Takes out what could loosen. `base` is what holds without the project.
pub(super) fn tighten(project: &Config, base: &Config) -> Tightened {
    // Every field is named, so that a new setting cannot slip through here.
    let Config {
        profile,
        profiles,
        deny,
        agents,
        providers,
        hooks: Hooks { confirm, log, silent, before, after },
        autonomy,
        floor,
        approval,
        rules,
        commands: _,
        files: _,
        permissions,
        confinement,
        shell: _,
        undo: _,
        kept: _,
        mcp: _,
        tools: _,
        gateway: _,
        web,
        browser: _,
        media: _,
        memory: _,
        models: _,
        agent,
        security,
        secrets: _,
        dialect: _,
        store: _,
    } = project.clone();
    let (may_reach, may_ask) = (permissions.clone().tightened(), web.clone().tightened());
    let held = confinement.clone().tightened(base.confinement.require);
    let less = agent.clone().tightened(&base.agent);
    let stricter_autonomy = autonomy.filter(|said| autonomy_is_stricter(*said, base.autonomy));
    let mut ignored = Vec::new();
    let mut note = |key: &'static str, is_said: bool| ignored.extend(is_said.then_some(key));
    note("hooks.log", !log.is_empty());
    note("hooks.silent", !silent.is_empty());
    // They are programs that would be started.
    note("hooks.before", !before.is_empty());
    note("hooks.after", !after.is_empty());
    note("autonomy", stricter_autonomy != autonomy);
    note("rules.*.allow", rules.iter().any(|rule| rule.allow.is_some()));
    note("permissions", may_reach != permissions);
    note("confinement", held != confinement);
    note("web", may_ask != web);
    note("agent", less != agent);
    ignored.extend(users_alone(project));
    let config = Config {
        profile,
        profiles,
        deny,
        agents,
        providers,
        hooks: Hooks { confirm, ..Hooks::default() },
        autonomy: stricter_autonomy,
        floor,
        approval: tighten_approval(approval, base.approval.level, &mut ignored),
        rules: rules.into_iter().filter(|rule| rule.allow.is_none()).collect(),
        permissions: may_reach,
        confinement: held,
        web: may_ask,
        agent: less,
        // It can only lower what the user has: both hold.
        security,
        ..Config::default()
    };
    Tightened { config, ignored }
}

/// What is the user's alone to say: the keys of it that the project says all the same.
fn users_alone(project: &Config) -> impl Iterator<Item = &'static str> {
    let said = [
        ("commands", !project.commands.is_empty()),
        ("files", project.files != Files::default()),
        ("shell", project.shell != Shell::default()),
        ("undo", project.undo != Undo::default()),
        ("kept", project.kept != Kept::default()),
        // A server is a program that would be started.
        ("mcp", project.mcp != Mcp::default()),
        ("tools", project.tools != Tools::default()),
        ("gateway", project.gateway != Gateway::default()),
        ("browser", project.browser != Browser::default()),
        ("media", project.media != Media::default()),
        ("memory", project.memory != Memory::default()),
        // It would say who gets conversations.
        ("models", project.models != Models::default()),
        // It would start a program, and say where secrets go.
        ("secrets", !project.secrets.is_empty()),
        ("dialect", project.dialect.is_some()),
        ("store", project.store.is_some()),
    ];
    said.into_iter().filter_map(|(key, is_said)| is_said.then_some(key))
}

fn tighten_approval(approval: Approval, base: Option<Level>, ignored: &mut Vec<&'static str>) -> Approval {
    let Approval { auto_approve, remove, deny, presets, level, grant_uses } = approval;
    let stricter_level = level.filter(|said| level_is_stricter(*said, base));
    let mut note = |key: &'static str, is_said: bool| ignored.extend(is_said.then_some(key));
    note("approval.auto_approve", auto_approve.is_some());
    note("approval.presets.*.approve", presets.values().any(|preset| !preset.approve.is_empty()));
    note("approval.level", stricter_level != level);
    note("approval.grant_uses", grant_uses.is_some());
    let denying = |preset: Preset| Preset { approve: Vec::new(), deny: preset.deny };
    let presets = presets.into_iter().map(|(name, preset)| (name, denying(preset))).collect();
    Approval { remove, deny, presets, level: stricter_level, ..Approval::default() }
}

/// Conservative asks more and autonomous refuses more than standard; neither is stricter than the other.
fn autonomy_is_stricter(said: Autonomy, base: Option<Autonomy>) -> bool {
    base.is_none_or(|base| base == Autonomy::Standard || base == said)
}

/// Without a level everything that nobody decides is asked, and so it is at yolo where nothing confines:
/// next to these only hitl is stricter.
fn level_is_stricter(said: Level, base: Option<Level>) -> bool {
    said == Level::Hitl || base == Some(said) || (said, base) == (Level::Supervised, Some(Level::Autonomous))
}
