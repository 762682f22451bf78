//! The laws of layering, over random configurations: an untrusted project never loosens a verdict, neither
//! does a deny that the user adds, and not even a trusted project lifts the user's floor.

use super::read::Layer;
use super::*;
use haft_core::admit::judge;
use haft_core::approval::{Decision, Verdict};
use haft_core::grant::{Grant, GrantScope};
use haft_core::place::{Access, Place, Sensitive};
use haft_core::record::Digest;
use haft_core::shell::rule::Stance;
use haft_core::shell::{Ground, Table};
use haft_core::{Call, CallId, Caller, Checked, Facts, Hold, Schema, Shell, ToolName, ToolSpec};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};

const TOOLS: [&str; 5] = ["file.read", "file.write", "file.edit", "calc.eval", "shell.exec"];

fn text(word: &str) -> Text {
    Text::new(word, Spot::BuiltIn)
}

fn spec(name: &str) -> ToolSpec {
    let spec = ToolSpec::new(name, "a sample").unwrap();
    match name {
        "file.read" => spec.touches("path", Access::Read, Some(".")),
        "file.write" | "file.edit" => spec.changes_files().touches("path", Access::Write, Some(".")),
        "shell.exec" => spec.runs().destructive(),
        _ => spec,
    }
}

fn checked(tool: &str, caller: Caller) -> Checked {
    let spec = spec(tool);
    let schema = Schema::compile(&spec.shapes.input).unwrap();
    let mut call = Call::new(CallId::new(0, 0), tool, json!({}));
    call.caller = caller;
    Checked::new(call, Arc::new(spec), &schema, json!({}).into()).unwrap()
}

fn place(access: Access, inside: bool, sensitive: Option<Sensitive>) -> Place {
    let (spoken, real, shown) = ("x".to_owned(), "/p/x".into(), "x".to_owned());
    Place { param: "path", spoken, real, shown, access, inside, sensitive }
}

/// Every combination of a sample call and what may be known about the world.
static SAMPLES: LazyLock<Vec<(Checked, Facts)>> = LazyLock::new(samples);

fn samples() -> Vec<(Checked, Facts)> {
    let agent = Caller { agent: Some("a".into()), ..Caller::default() };
    let both = Caller { agent: Some("a".into()), provider: Some("p".into()), ..Caller::default() };
    let spots = [(true, None), (false, None), (true, Some(Sensitive::Credentials))];
    let mut samples = Vec::new();
    for tool in TOOLS {
        for caller in [Caller::default(), agent.clone(), both.clone()] {
            let checked = checked(tool, caller);
            for (inside, sensitive) in spots {
                for (confined, granted) in [(false, false), (true, false), (false, true), (true, true)] {
                    let touches = &checked.spec().reach.touches;
                    let places = touches.iter().map(|touch| place(touch.access, inside, sensitive)).collect();
                    let grants = granted.then(|| grant(tool)).into_iter().collect();
                    let facts = Facts {
                        places,
                        grants,
                        hold: Some(hold(confined)),
                        shell: None,
                        altered: None,
                        now_ms: 0,
                        ..Facts::default()
                    };
                    let shells = if tool == "shell.exec" { shells() } else { vec![None] };
                    let with = |shell| (checked.clone(), Facts { shell, ..facts.clone() });
                    samples.extend(shells.into_iter().map(with));
                }
            }
        }
    }
    samples
}

/// Commands that rules may be about.
fn shells() -> Vec<Option<Shell>> {
    let ground = Ground { cwd: "/p", home: None, table: Table::shipped() };
    let known = |text| Some(Shell { judged: haft_core::shell::judge(text, &ground), unsettled: Vec::new() });
    ["ls", "mkdir a", "sudo rm b", "$x", "git log --output=c"].map(known).into_iter().chain([None]).collect()
}

fn hold(enforced: bool) -> Hold {
    Hold {
        level: "full".into(),
        enforced,
        permissions: BTreeMap::new(),
        network: false,
        writes: true,
        gap: None,
        guest: None,
    }
}

fn grant(tool: &str) -> Grant {
    let tool = ToolName::new(tool).unwrap();
    Grant {
        id: "g".into(),
        tool,
        pattern: "**".into(),
        session: None,
        uses_left: None,
        expires_ms: None,
        scope: GrantScope::Guarded,
        executed: None,
    }
}

fn patterns() -> impl Strategy<Value = Vec<Text>> {
    const NAMES: &[&str] =
        &["*", "file.*", "file.read", "file.write", "file.edit", "calc.eval", "shell.exec", "group:fs"];
    prop::collection::vec(prop::sample::select(NAMES).prop_map(text), 0..3)
}

fn profile() -> impl Strategy<Value = Option<Text>> {
    prop::option::of(prop::sample::select(&["minimal", "messaging", "coding", "full", "own"][..]).prop_map(text))
}

fn rules() -> impl Strategy<Value = Rules> {
    (prop::option::of(patterns()), patterns()).prop_map(|(allow, deny)| Rules { allow, deny })
}

fn narrowings(name: &'static str) -> impl Strategy<Value = BTreeMap<Text, Narrowing>> {
    let one = (profile(), rules()).prop_map(|(profile, Rules { allow, deny })| Narrowing { profile, allow, deny });
    prop::option::of(one).prop_map(move |found| found.map(|rules| (text(name), rules)).into_iter().collect())
}

fn autonomy() -> impl Strategy<Value = Option<Autonomy>> {
    prop::option::of(prop::sample::select(&[Autonomy::Conservative, Autonomy::Standard, Autonomy::Autonomous][..]))
}

fn level() -> impl Strategy<Value = Option<Level>> {
    prop::option::of(prop::sample::select(&[Level::Hitl, Level::Supervised, Level::Autonomous, Level::Yolo][..]))
}

fn hooks() -> impl Strategy<Value = Hooks> {
    (patterns(), patterns(), patterns()).prop_map(|(confirm, log, silent)| Hooks {
        confirm,
        log,
        silent,
        ..Hooks::default()
    })
}

fn floor() -> impl Strategy<Value = Vec<FloorRule>> {
    patterns().prop_map(|tools| tools.into_iter().map(|tool| FloorRule { tool, args: None, reason: None }).collect())
}

fn command_rules(stances: &'static [Stance]) -> impl Strategy<Value = Vec<CommandRule>> {
    const WORDS: &[&str] = &["*", "rm", "mkdir", "git log", "sudo", "ls"];
    let one = (prop::sample::select(stances), prop::sample::select(WORDS));
    prop::collection::vec(one.prop_map(|(stance, words)| CommandRule::one_off(stance, words, "--rule")), 0..3)
}

fn preset() -> impl Strategy<Value = Preset> {
    (patterns(), patterns()).prop_map(|(approve, deny)| Preset { approve, deny })
}

fn approval() -> impl Strategy<Value = Approval> {
    let named =
        prop::collection::vec(prop::sample::select(&["$readonly", "$default", "$mine"][..]).prop_map(text), 0..2);
    let list = prop::option::of((patterns(), named).prop_map(|(list, named)| [list, named].concat()));
    let presets = (preset(), prop::option::of(preset())).prop_map(|(mine, other)| {
        let other = other.map(|preset| (text("$readonly"), preset));
        [(text("$mine"), mine)].into_iter().chain(other).collect()
    });
    (list, patterns(), patterns(), presets, level()).prop_map(|(auto_approve, remove, deny, presets, level)| Approval {
        auto_approve,
        remove,
        deny,
        presets,
        level,
        grant_uses: None,
    })
}

prop_compose! {
    fn config()(
        (profile, own, deny) in (profile(), rules(), patterns()),
        (agents, providers) in (narrowings("a"), narrowings("p")),
        hooks in hooks(),
        autonomy in autonomy(),
        floor in floor(),
        approval in approval(),
        rules in command_rules(&[Stance::Allow, Stance::Deny]),
    ) -> Config {
        let profiles = BTreeMap::from([(text("own"), own)]);
        Config { profile, profiles, deny, agents, providers, hooks, autonomy, floor, approval, rules, ..Config::default() }
    }
}

prop_compose! {
    /// Only settings that nobody can lift.
    fn denies()(
        deny in patterns(),
        refused in patterns(),
        confirm in patterns(),
        floor in floor(),
        rules in command_rules(&[Stance::Deny]),
    ) -> Config {
        Config {
            deny,
            floor,
            rules,
            hooks: Hooks { confirm, ..Hooks::default() },
            approval: Approval { deny: refused, ..Approval::default() },
            ..Config::default()
        }
    }
}

prop_compose! {
    fn choices()(
        profile in profile(),
        autonomy in autonomy(),
        level in level(),
        rules in command_rules(&[Stance::Allow, Stance::Deny]),
    ) -> Choices {
        Choices { profile, autonomy, level, rules, ..Choices::default() }
    }
}

fn verdicts(user: &Config, project: Option<&Config>, trust: Trust, flags: &Choices) -> Vec<Verdict> {
    let layer = |config: &Config| Layer { digest: Digest::ZERO, text: String::new(), config: config.clone() };
    let layers = Layers {
        paths: Paths::new(Path::new("/h"), Path::new("/p")),
        user: Some(layer(user)),
        project: project.map(layer),
        glee: None,
        environment: Choices::default(),
        flags: flags.clone(),
    };
    let known = TOOLS.map(|name| ToolName::new(name).unwrap());
    let loaded = layers.resolve(&known, trust).unwrap();
    SAMPLES.iter().map(|(checked, facts)| judge(checked, facts, &loaded.policy, &loaded.chain).1).collect()
}

/// Fails with the first call whose verdict became looser.
fn never_looser(before: &[Verdict], after: &[Verdict]) -> Result<(), TestCaseError> {
    for (((checked, facts), before), after) in SAMPLES.iter().zip(before).zip(after) {
        let tool = &checked.spec().name;
        prop_assert!(after.decision >= before.decision, "{tool} {facts:?}: {before:?} became {after:?}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn an_untrusted_project_never_loosens(user in config(), project in config(), flags in choices()) {
        let before = verdicts(&user, None, Trust::Absent, &flags);
        for trust in [Trust::Untrusted, Trust::Changed] {
            never_looser(&before, &verdicts(&user, Some(&project), trust, &flags))?;
        }
    }

    #[test]
    fn a_deny_that_the_user_adds_never_loosens(
        user in config(), more in denies(), project in config(), flags in choices(), trusted in any::<bool>(),
    ) {
        let trust = if trusted { Trust::Trusted } else { Trust::Untrusted };
        let before = verdicts(&user, Some(&project), trust, &flags);
        let mut stricter = user;
        stricter.add(more);
        never_looser(&before, &verdicts(&stricter, Some(&project), trust, &flags))?;
    }

    #[test]
    fn a_trusted_project_never_lifts_the_users_floor(floor in denies(), project in config(), flags in choices()) {
        let before = verdicts(&floor, None, Trust::Absent, &Choices::default());
        let after = verdicts(&floor, Some(&project), Trust::Trusted, &flags);
        for (before, after) in before.iter().zip(&after) {
            let held = before.decision == Decision::Deny || before.by == "confirm hook";
            prop_assert!(!held || after.decision >= before.decision, "{before:?} became {after:?}");
        }
    }
}
