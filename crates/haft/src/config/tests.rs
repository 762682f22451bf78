//! What people meet: error messages, layers, trust, and what `haft config` and `haft init` print.

use super::read::parse;
use super::*;
use haft_core::{Dialect, Schema, ToolName};
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

const TOOLS: [&str; 8] =
    ["calc.eval", "file.batch", "file.edit", "file.glob", "file.grep", "file.list", "file.read", "file.write"];

/// A home and a project in a directory of their own.
struct Scene {
    _dir: tempfile::TempDir,
    paths: Paths,
    flags: Choices,
    environment: Choices,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (home, root) = (dir.path().join("home"), dir.path().join("home/project"));
        std::fs::create_dir_all(home.join(".config/haft")).unwrap();
        std::fs::create_dir_all(root.join(".haft")).unwrap();
        let paths = Paths::new(&home, &root);
        Self { _dir: dir, paths, flags: Choices::default(), environment: Choices::default() }
    }

    fn user(self, text: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.paths.user_config(), text).unwrap();
        self
    }

    fn project(self, text: &str) -> Self {
        std::fs::write(self.paths.project_config(), text).unwrap();
        self
    }

    fn layers(&self) -> Result<Layers, ConfigError> {
        load(&self.paths, self.environment.clone(), self.flags.clone())
    }

    fn resolve(&self, trust: Trust) -> Result<Loaded, ConfigError> {
        let known = TOOLS.map(|name| ToolName::new(name).unwrap());
        self.layers()?.resolve(&known, trust)
    }

    fn loaded(&self, trust: Trust) -> Loaded {
        self.resolve(trust).unwrap()
    }

    /// The warnings, with the directory of this run taken out.
    fn warnings(&self, trust: Trust) -> String {
        self.loaded(trust).warnings.join("\n")
    }
}

/// The error of a user's file, with its hint.
fn error(text: impl AsRef<[u8]>) -> String {
    let error = Scene::new().user(text).resolve(Trust::Absent).err().expect("an error");
    let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    format!("{error}{hint}")
}

#[test]
fn unknown_keys_and_values_suggest() {
    assert_snapshot!(error("profile: full\ndney: []\n"), @r"
    ~/.config/haft/config.yml:2:1: unknown key `dney`: did you mean `deny`?
    hint: known here: profile, profiles, deny, agents, providers, hooks, autonomy, floor, approval, rules, commands, files, permissions, confinement, shell, kept, undo, mcp, tools, gateway, web, browser, media, memory, models, agent, security, secrets, dialect, store
    ");
    assert_snapshot!(error("approval:\n  auto_aprove: []\n"), @r"
    ~/.config/haft/config.yml:2:3: unknown key `auto_aprove`: did you mean `auto_approve`?
    hint: known here: auto_approve, remove, deny, presets, level, grant_uses
    ");
    assert_snapshot!(error("autonomy: standart\n"), @r"
    ~/.config/haft/config.yml:1:11: unknown value `standart`: did you mean `standard`?
    hint: one of: conservative, standard, autonomous
    ");
    assert_snapshot!(error("dialect: flyn\n"), @r"
    ~/.config/haft/config.yml:1:10: unknown value `flyn`: did you mean `flynn`?
    hint: one of: haft, flynn, flyto, flemma, nodyn, glee
    ");
    assert_snapshot!(error("profile: codng\n"), @r"
    ~/.config/haft/config.yml:1:10: there is no profile `codng`: did you mean `coding`?
    hint: profiles: minimal, messaging, coding, full
    ");
    assert_snapshot!(error("agents:\n  a: {profile: nobody}\n"), @r"
    ~/.config/haft/config.yml:2:16: there is no profile `nobody`
    hint: profiles: minimal, messaging, coding, full
    ");
}

#[test]
fn wrong_shapes_say_what_is_expected() {
    assert_snapshot!(error("deny: shell.*\n"), @"~/.config/haft/config.yml:1:7: expected a list: `[a, b]`, or one `- item` a line");
    assert_snapshot!(error("- deny\n"), @"~/.config/haft/config.yml:1:1: expected keys with values: `key: value`");
    assert_snapshot!(error("deny: [{a: b}]\n"), @"~/.config/haft/config.yml:1:8: expected text");
    assert_snapshot!(error("undo:\n  keep_days: -1\n"), @"~/.config/haft/config.yml:2:14: expected a whole number, zero or more");
    assert_snapshot!(error("approval:\n  grant_uses: 0\n"), @"~/.config/haft/config.yml:2:15: has to be at least 1");
    assert_snapshot!(error("floor:\n  - reason: why\n"), @"~/.config/haft/config.yml:2:5: the key `tool` is missing");
    assert_snapshot!(error("deny: [*]\n"), @r#"~/.config/haft/config.yml:1:8: `*` begins an alias in YAML; put a pattern in quotes: "*""#);
    assert_snapshot!(error("deny: [\n  *.exec]\n"), @r#"~/.config/haft/config.yml:2:3: `*` begins an alias in YAML; put a pattern in quotes: "*""#);
    assert_snapshot!(error("deny: [a\n"), @"~/.config/haft/config.yml:1:7: unclosed bracket '['");
    assert_snapshot!(error("profile: full\nprofile: minimal\n"), @"~/.config/haft/config.yml:2:1: the key `profile` is given twice");
    assert_snapshot!(error("profile: full\n---\nprofile: minimal\n"), @"~/.config/haft/config.yml:3:1: a second YAML document; a configuration is one");
    assert_snapshot!(error(b"profile: full\ndeny: [\xff]\n"), @"~/.config/haft/config.yml:2:8: a byte that is not UTF-8");
}

#[test]
fn names_and_patterns_are_checked_where_they_stand() {
    assert_snapshot!(error("deny: [calc.eval, file.raed]\n"), @r"
    ~/.config/haft/config.yml:1:19: there is no tool `file.raed`: did you mean `file.read`?
    hint: `haft tools` lists all tools
    ");
    assert_snapshot!(error("deny:\n  - group:file\n"), @"~/.config/haft/config.yml:2:5: there is no group `file`; the groups are fs, runtime, web, memory, work, agents, tools, media, google");
    assert_snapshot!(error("hooks: {confirm: ['file.[']}\n"), @"~/.config/haft/config.yml:1:19: `file.[` is not a pattern for tool names: unclosed character class; missing ']'");
    assert_snapshot!(error("deny: [$readonly]\n"), @"~/.config/haft/config.yml:1:8: `$readonly` is a preset, which only `approval.auto_approve` can hold");
    assert_snapshot!(error("approval: {auto_approve: [$readnly]}\n"), @"~/.config/haft/config.yml:1:27: there is no preset `$readnly`: did you mean `$readonly`?");
    assert_snapshot!(error("approval: {presets: {mine: {}}}\n"), @"~/.config/haft/config.yml:1:22: the name of a preset begins with `$`: `$mine`");
    assert_snapshot!(error("approval: {presets: {$mine: {deny: [file.wirte]}}}\n"), @r"
    ~/.config/haft/config.yml:1:37: there is no tool `file.wirte`: did you mean `file.write`?
    hint: `haft tools` lists all tools
    ");
    assert_snapshot!(error("profiles: {full: {}}\n"), @"~/.config/haft/config.yml:1:12: haft ships a profile `full`; choose another name");
    assert_snapshot!(error("profiles: {mine: {allow: ['']}}\n"), @"~/.config/haft/config.yml:1:27: expected the name of a tool, found empty text");
    assert_snapshot!(error("floor:\n  - {tool: file.write, args: '(a'}\n"), @"~/.config/haft/config.yml:2:30: `(a` is not a regular expression: unclosed group");
    assert_snapshot!(error("files: {read: [notes]}\n"), @"~/.config/haft/config.yml:1:16: `notes` is relative to nothing here; write it in full, or as `~/notes`");
}

#[test]
fn a_store_can_be_a_server_and_its_password_is_not_shown() {
    let scene = Scene::new().user("store: postgres://me:secret@host/db\n");
    let loaded = scene.loaded(Trust::Absent);
    assert_eq!(loaded.settings.store, std::path::Path::new("postgres://me:secret@host/db"));
    let shown = format!("{} {}", show(&loaded), show_text(&loaded));
    assert!(shown.contains("postgres://me@host/db") && !shown.contains("secret"), "{shown}");
    let said = error("store: mysql://me:secret@host/db\n");
    assert!(said.starts_with(
        "~/.config/haft/config.yml:1:8: haft knows files and PostgreSQL servers, and not a store at a `mysql` URL"
    ));
    assert!(!said.contains("secret"));
}

#[test]
fn files_that_cannot_be_read_are_errors() {
    let scene = Scene::new();
    std::fs::create_dir(scene.paths.user_config()).unwrap();
    assert_snapshot!(scene.layers().unwrap_err(), @"~/.config/haft/config.yml: it is a directory, and a configuration has to be a file");
    let big = "# a comment that fills a line\n".repeat(400_000);
    assert_snapshot!(error(big), @"~/.config/haft/config.yml: larger than 1048576 bytes, which is the most a configuration may have");
    let scene = Scene::new();
    std::os::unix::fs::symlink("nowhere", scene.paths.user_config()).unwrap();
    assert_snapshot!(scene.layers().unwrap_err(), @"~/.config/haft/config.yml: No such file or directory (os error 2)");
    let scene = Scene::new().user("profile: full");
    std::fs::set_permissions(scene.paths.user_config(), PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::read(scene.paths.user_config()).is_err() {
        assert_snapshot!(scene.layers().unwrap_err(), @"~/.config/haft/config.yml: Permission denied (os error 13)");
    }
}

#[test]
fn yaml_that_unfolds_without_end_is_refused() {
    let said = |text: String| parse(text.as_bytes(), &Arc::from("bomb.yml")).unwrap_err().to_string();
    let again = format!("deny: [&a {}{}]\n", "x".repeat(500_000), ", *a".repeat(100_000));
    assert_snapshot!(said(again), @"bomb.yml:1:500269: too much YAML: it unfolds to more than a configuration may hold");
    let deep = format!("deny: {}", "[".repeat(100_000));
    assert_snapshot!(said(deep), @"bomb.yml:1:262: recursion limit exceeded");
}

#[test]
fn an_empty_file_means_the_defaults() {
    for text in ["", "# nothing\n", "deny:\napproval:\n  remove:\n"] {
        let loaded = Scene::new().user(text).loaded(Trust::Absent);
        let Settings { undo, dialect, grant_uses, .. } = &loaded.settings;
        assert_eq!((*dialect, *grant_uses, undo.max_file_bytes), (Dialect::Haft, 10, 64 << 20));
        assert_eq!(loaded.policy.profile.as_ref().unwrap().by, "profile full");
    }
}

#[test]
fn another_tools_directory_is_not_read() {
    let scene = Scene::new();
    std::fs::create_dir(scene.paths.root().join(".glee")).unwrap();
    std::fs::write(scene.paths.root().join(".glee/config.yml"), "not: ours").unwrap();
    assert_eq!(scene.layers().unwrap().project_digest(), None);
}

#[test]
fn the_nearest_single_value_counts() {
    let mut scene = Scene::new().user("profile: minimal\ndialect: flynn\n").project("profile: coding\n");
    let profile = |scene: &Scene| scene.loaded(Trust::Trusted).policy.profile.clone().unwrap().by;
    assert_eq!(profile(&scene), "profile coding");
    scene.environment.profile = Some(Text::new("messaging", Spot::Variable("HAFT_PROFILE")));
    assert_eq!(profile(&scene), "profile messaging");
    scene.flags.profile = Some(Text::new("full", Spot::Flag("--profile")));
    assert_eq!(profile(&scene), "profile full");
    scene.flags.profile = Some(Text::new("fulll", Spot::Flag("--profile")));
    let error = scene.resolve(Trust::Trusted).err().unwrap().to_string();
    assert_eq!(error, "--profile: there is no profile `fulll`: did you mean `full`?");
}

#[test]
fn a_project_cannot_give_the_users_words_another_meaning() {
    let scene =
        Scene::new().user("profile: mine\nprofiles: {mine: {deny: ['file.*']}}\n").project("profiles: {mine: {}}\n");
    let rules = scene.loaded(Trust::Trusted).policy.profile.clone().unwrap().rules;
    assert_eq!(rules.deny.len(), 1);
}

#[test]
fn an_untrusted_project_tightens_and_the_rest_is_named() {
    let text = "profile: minimal\ndeny: [calc.eval]\nautonomy: conservative\ndialect: flyto\nstore: /tmp/x\n\
        files: {write: [/]}\nhooks: {confirm: ['file.*'], log: ['*']}\n\
        approval: {auto_approve: ['*'], level: yolo, presets: {$readonly: {approve: ['*'], deny: [file.read]}}}\n";
    let scene = Scene::new().project(text);
    assert_snapshot!(scene.warnings(Trust::Untrusted), @"~/project/.haft/config.yml is not trusted; ignored: hooks.log, files, dialect, store, approval.auto_approve, approval.presets.*.approve, approval.level; review it and run `haft trust`");
    assert_snapshot!(scene.warnings(Trust::Changed), @"~/project/.haft/config.yml has changed since you trusted it; ignored: hooks.log, files, dialect, store, approval.auto_approve, approval.presets.*.approve, approval.level; review it and run `haft trust`");
    assert_snapshot!(scene.warnings(Trust::Trusted), @"~/project/.haft/config.yml: not for a project, ignored: store");
    let loaded = scene.loaded(Trust::Untrusted);
    assert_eq!(loaded.settings.roots, Roots::default());
    assert_eq!(loaded.settings.dialect, Dialect::Haft);
    let gates: Vec<&str> = loaded.policy.gates.iter().map(|gate| gate.by.as_str()).collect();
    assert_eq!(gates, ["the project's config", "profile minimal of the project's config"]);
    assert_eq!(loaded.config.autonomy, Some(Autonomy::Conservative));
    assert_eq!(loaded.config.approval.auto_approve, None);
}

#[test]
fn only_the_users_own_agents_replace_the_profile() {
    let rules = "agents: {a: {profile: full}}\n";
    let scene = Scene::new().user(rules).project(rules);
    let replaces: Vec<bool> =
        scene.loaded(Trust::Trusted).policy.agents["a"].iter().map(|one| one.replaces_profile).collect();
    assert_eq!(replaces, [true, false, false, false]);
}

#[test]
fn trust_is_for_exactly_this_content() {
    let layers = Scene::new().project("deny: []\n").layers().unwrap();
    let content = layers.project_digest();
    assert_eq!(layers.trust(None), Trust::Untrusted);
    assert_eq!(layers.trust(content), Trust::Trusted);
    assert_eq!(layers.trust(Some(haft_core::record::Digest::of(b"other"))), Trust::Changed);
    assert_eq!(Scene::new().layers().unwrap().trust(content), Trust::Absent);
}

#[test]
fn trust_is_looked_up_in_the_store() {
    let scene = Scene::new().project("deny: []\n");
    let layers = scene.layers().unwrap();
    let store = haft_store::Store::open(&layers.store().unwrap()).unwrap();
    assert_eq!(layers.trust_in(&store).unwrap(), Trust::Untrusted);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.trust(scene.paths.root(), layers.project_digest())).unwrap();
    assert_eq!(layers.trust_in(&store).unwrap(), Trust::Trusted);
}

#[test]
fn places_are_expanded_and_missing_ones_are_noticed() {
    let scene = Scene::new().user("files: {read: [~/notes]}\nstore: ~/my.db\n").project("files: {write: [../other]}\n");
    let loaded = scene.loaded(Trust::Trusted);
    let root = scene.paths.root();
    let home = root.parent().unwrap();
    assert_eq!(loaded.settings.roots.read, [home.join("notes")]);
    assert_eq!(loaded.settings.roots.write, [root.join("../other")]);
    assert_eq!(loaded.settings.store, home.join("my.db"));
    assert_snapshot!(loaded.warnings.join("\n"), @r"
    ~/.config/haft/config.yml:1:16: there is no directory `~/notes`
    ~/project/.haft/config.yml:1:17: there is no directory `../other`
    ");
}

#[test]
fn names_that_match_nothing_are_noticed() {
    let mut scene = Scene::new().user("deny: [file]\nagents: {reviewer: {deny: ['file.*']}}\n");
    scene.flags.agent = Some("reviwer".to_owned());
    assert_snapshot!(scene.warnings(Trust::Absent), @r"
    ~/.config/haft/config.yml:1:8: no tool is named `file` in this version; a whole family is `file.*`
    no rules are given for the agent `reviwer`; did you mean `reviewer`?
    ");
}

/// The example with every setting switched on: `#` is taken away, except where `# ` begins prose.
fn uncommented() -> String {
    let is_prose = |line: &str| line == "#" || (line.starts_with("# ") && !line.starts_with("#  "));
    let on = |line: &str| line.strip_prefix('#').map_or(line.to_owned(), str::to_owned);
    let lines = example().lines().filter(|line| !is_prose(line)).map(on);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_is_valid_with_every_setting_switched_on_and_shows_them_all() {
    assert_eq!(parse(example().as_bytes(), &Arc::from("example.yml")).unwrap(), Config::default());
    let loaded = Scene::new().user(uncommented()).loaded(Trust::Absent);
    let value = serde_json::to_value(&loaded.config).unwrap();
    let schema = Schema::compile(&schema()).unwrap();
    assert_eq!(schema.violations(&value), []);
    let all = schema.source()["properties"].as_object().unwrap();
    let shown: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(shown, all.keys().collect::<Vec<_>>());
}

#[test]
fn the_schema_describes_every_key() {
    let schema = schema();
    assert_eq!(schema["title"], "haft configuration");
    let undescribed = |fields: &Value| -> Vec<String> {
        let fields = fields["properties"].as_object().cloned().unwrap_or_default();
        fields.into_iter().filter(|(_, field)| field["description"].is_null()).map(|(key, _)| key).collect()
    };
    assert_eq!(undescribed(&schema), Vec::<String>::new());
    for definition in schema["$defs"].as_object().unwrap().values() {
        assert_eq!(undescribed(definition), Vec::<String>::new());
    }
    let compiled = Schema::compile(&schema).unwrap();
    assert!(!compiled.violations(&json!({ "polcy": 1 })).is_empty());
    assert!(!compiled.violations(&json!({ "approval": { "grant_uses": 0 } })).is_empty());
}

#[test]
fn what_is_shown_says_where_it_comes_from_and_can_be_read_again() {
    let mut scene = Scene::new()
        .user("deny: [calc.eval]\nautonomy: conservative\n")
        .project("deny: ['file.b*']\nprofile: coding\n");
    scene.flags.dialect = Some(Dialect::Flyto);
    let loaded = scene.loaded(Trust::Untrusted);
    let home = PathBuf::from(scene.paths.root()).parent().unwrap().display().to_string();
    let text = show_text(&loaded);
    assert_snapshot!(text.replace(&home, "HOME"), @r"
    # HOME/.config/haft/config.yml: trusted
    # HOME/project/.haft/config.yml: untrusted

    # from: built in, project (narrowed to `coding`)
    profile: full

    # from: user, project
    deny:
    - calc.eval
    - file.b*

    # from: user
    autonomy: conservative

    # from: built in
    approval:
      grant_uses: 10

    # from: built in
    undo:
      keep_days: 30
      max_file_bytes: 67108864
      max_total_bytes: 1073741824

    # from: flags
    dialect: flyto

    # from: built in
    store: HOME/.local/share/haft/haft.db
    ");
    assert_eq!(parse(text.as_bytes(), &Arc::from("shown.yml")).unwrap(), loaded.config);
    let shown = show(&loaded);
    assert_eq!(shown["settings"]["deny"], json!({ "value": ["calc.eval", "file.b*"], "from": ["user", "project"] }));
    assert_eq!(shown["settings"]["dialect"], json!({ "value": "flyto", "from": ["flags"] }));
    assert_eq!(shown["sources"][1]["trust"], "untrusted");
}
