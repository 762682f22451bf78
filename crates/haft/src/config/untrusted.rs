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
        commands,
        files,
        permissions,
        confinement,
        shell,
        undo,
        kept,
        mcp,
        tools,
        gateway,
        web,
        browser,
        media,
        memory,
        models,
        agent,
        security,
        secrets,
        dialect,
        store,
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
    note("commands", !commands.is_empty());
    note("files", files != Files::default());
    note("permissions", may_reach != permissions);
    note("confinement", held != confinement);
    note("shell", shell != Shell::default());
    note("undo", undo != Undo::default());
    note("kept", kept != Kept::default());
    // A server is a program that would be started.
    note("mcp", mcp != Mcp::default());
    note("tools", tools != Tools::default());
    note("gateway", gateway != Gateway::default());
    note("web", may_ask != web);
    note("browser", browser != Browser::default());
    note("media", media != Media::default());
    note("memory", memory != Memory::default());
    // It would say who gets keys and conversations.
    note("models", models != Models::default());
    note("agent", less != agent);
    // It would start a program, and say where secrets go.
    note("secrets", !secrets.is_empty());
    note("dialect", dialect.is_some());
    note("store", store.is_some());
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
