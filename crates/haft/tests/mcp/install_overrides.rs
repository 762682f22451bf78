//! `haft doctor` about configuration that overrides what `haft mcp install --replace` wrote. That the real clients
//! read it in this way is tested in `tests/agent_clients/overrides.rs`.

use crate::Env;
use crate::install::{install, place, uninstall};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// What `haft doctor` finds about a client, run by `command`.
fn finding(command: &mut Command, client: &str) -> Value {
    let output = command.args(["doctor", "--json"]).output().unwrap();
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"));
    let mut all = findings.as_array().unwrap().iter();
    let own = all.find(|finding| finding["client"]["client"] == client);
    own.unwrap_or_else(|| panic!("{client} is not in {findings:#}")).clone()
}

/// Asserts what `haft doctor` says of a client's own tools, and what it names as the reason.
fn assert_native_tools(found: &Value, native: &str, by: Option<&str>) {
    let client = &found["client"];
    let said = (&client["native_tools"], client["overridden_by"].as_str());
    assert_eq!(said, (&json!(native), by), "{found:#}");
    let health = if native == "off" { "good" } else { "care" };
    assert_eq!(found["health"], health, "{found:#}");
    let text = found["found"].as_str().unwrap();
    assert!(by.is_none_or(|by| text.ends_with(&format!("are on: {by} overrides haft's settings"))), "{text}");
    assert!(native != "unknown" || text.contains("is unknown: "), "{text}");
}

/// An environment with a client whose own tools haft has turned off.
fn replaced(client: &str) -> Env {
    let env = Env::new();
    install(&env, client, &["--replace"]);
    assert_native_tools(&finding(&mut env.command(&[]), client), "off", None);
    env
}

#[test]
fn file_of_a_project_that_turns_native_tools_on_is_named() {
    let agent = "---\ndescription: x\npermission:\n  edit: allow\n---\nBuild.\n";
    let cases = [
        ("opencode", "opencode.json", "{\"permission\": {\"bash\": \"allow\"}}"),
        ("opencode", "opencode.jsonc", "{\"permission\": \"ask\"} // as I like it\n"),
        ("opencode", ".opencode/opencode.json", "{\"agent\": {\"plan\": {\"tools\": {\"bash\": true}}}}"),
        ("opencode", ".opencode/agent/build.md", agent),
        ("gemini", ".gemini/settings.json", "{\"policyPaths\": [\"policies\"], \"tools\": 1}"),
        ("gemini", ".gemini/settings.json", "{\"adminPolicyPaths\": [\"policies\"], \"tools\": null}"),
    ];
    for (client, path, text) in cases {
        let env = replaced(client);
        env.file(path, text);
        assert_native_tools(&finding(&mut env.command(&[]), client), "on", Some(&format!("./{path}")));
    }
}

#[test]
fn codex_reads_files_of_trusted_projects_only() {
    let env = replaced("codex");
    env.file(".codex/config.toml", "[features]\nshell_tool = true\n");
    assert_native_tools(&finding(&mut env.command(&[]), "codex"), "off", None);
    let user = env.home().join(".codex/config.toml");
    let own = std::fs::read_to_string(&user).unwrap();
    let trust = |level: &str| format!("{own}\n[projects.\"{}\"]\ntrust_level = \"{level}\"\n", env.root().display());
    std::fs::write(&user, trust("untrusted")).unwrap();
    assert_native_tools(&finding(&mut env.command(&[]), "codex"), "off", None);
    std::fs::write(&user, trust("trusted")).unwrap();
    assert_native_tools(&finding(&mut env.command(&[]), "codex"), "on", Some("./.codex/config.toml"));
    env.file(".codex/config.toml", "default_permissions = \":workspace\"\n");
    assert_native_tools(&finding(&mut env.command(&[]), "codex"), "on", Some("./.codex/config.toml"));
    env.file(".codex/config.toml", "model = \"gpt-5.5\"\n");
    assert_native_tools(&finding(&mut env.command(&[]), "codex"), "off", None);
}

#[test]
fn file_that_cannot_turn_native_tools_on_is_not_blamed() {
    let cases = [
        ("claude", ".claude/settings.json", "{\"permissions\": {\"allow\": [\"Bash\"], \"deny\": []}}"),
        ("gemini", ".gemini/settings.json", "{\"tools\": {\"allowed\": [\"run_shell_command\"]}}"),
        ("gemini", ".gemini/settings.json", "{\"policyPaths\": [\"~/.gemini/policies\", \"more\"], \"tools\": 1}"),
        ("gemini", ".gemini/settings.json", "{\"policyPaths\": [\"more\"], \"tools\": {\"exclude\": []}}"),
        ("gemini", ".gemini/settings.json", "{\"adminPolicyPaths\": [\"more\"]}"),
        ("opencode", "opencode.json", "{\"permission\": {\"task\": \"allow\"}, \"model\": \"a/b\"}"),
        ("opencode", ".opencode/agent/build.md", "Build.\n"),
        ("goose", ".config/goose/config.yaml", "extensions: {developer: {enabled: true}}\n"),
    ];
    for (client, path, text) in cases {
        let env = replaced(client);
        env.file(path, text);
        assert_native_tools(&finding(&mut env.command(&[]), client), "off", None);
    }
}

#[test]
fn file_of_a_project_that_turns_hooks_off_is_named() {
    let off = "{\"disableAllHooks\": true}";
    let cases = [
        ("claude", ".claude/settings.local.json", off),
        ("gemini", ".gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}"),
        ("gemini", ".gemini/settings.json", "{\"hooksConfig\": {\"disabled\": [\"haft\"]}}"),
        ("goose", ".config/goose/settings.json", "{\"disabledPlugins\": [\"haft\"]}"),
    ];
    for (client, path, text) in cases {
        let env = Env::new();
        install(&env, client, &["--hooks"]);
        assert_eq!(finding(&mut env.command(&[]), client)["client"]["native_tools"], "hooked");
        let file = env.root().join(path);
        let installed = std::fs::read_to_string(&file).ok();
        // The hooks stay where they are in the same file.
        let text = installed
            .map_or(text.to_owned(), |own| own.replace("\"disableAllHooks\": false", "\"disableAllHooks\": true"));
        env.file(path, &text);
        assert_native_tools(&finding(&mut env.command(&[]), client), "on", Some(&format!("./{path}")));
        // An installation says so as well.
        if client == "gemini" {
            let said = install(&env, client, &["--hooks"]);
            assert_eq!(said["native_tools"], "on", "{said:#}");
            assert_eq!(said["overridden_by"], format!("./{path}"), "{said:#}");
        }
    }
}

/// The user's local settings, which haft edits, count more than those of the project.
#[test]
fn project_does_not_turn_hooks_of_claude_code_off() {
    let off = "{\"disableAllHooks\": true}";
    for own in [None, Some("{\"disableAllHooks\": true}\n"), Some("{\"model\": \"x\"}")] {
        let env = Env::new();
        env.file(".claude/settings.json", off);
        let local = env.root().join(".claude/settings.local.json");
        if let Some(own) = own {
            env.file(".claude/settings.local.json", own);
        }
        install(&env, "claude", &["--hooks"]);
        assert_eq!(finding(&mut env.command(&[]), "claude")["client"]["native_tools"], "hooked");
        let settings: Value = serde_json::from_slice(&std::fs::read(&local).unwrap()).unwrap();
        assert_eq!(settings["disableAllHooks"], false, "{settings:#}");
        uninstall(&env, "claude");
        assert_eq!(std::fs::read_to_string(&local).ok().as_deref(), own);
    }
}

/// A `PATH` that begins in the project, as in a virtual environment, does not choose the program of the user's own hooks.
#[test]
fn hooks_of_claude_code_name_the_program_with_its_directory() {
    let env = Env::new();
    install(&env, "claude", &["--hooks"]);
    let local = std::fs::read_to_string(env.root().join(".claude/settings.local.json")).unwrap();
    assert!(local.contains(&format!("\"{} hook claude\"", env!("CARGO_BIN_EXE_haft"))), "{local}");
    assert!(!local.contains("\"haft hook claude\""), "{local}");
    // What an earlier version wrote is known all the same.
    env.file(".claude/settings.local.json", local.replace(env!("CARGO_BIN_EXE_haft"), "haft"));
    assert_eq!(finding(&mut env.command(&[]), "claude")["client"]["native_tools"], "hooked");
}

#[test]
fn program_by_haft_s_name_in_the_project_is_named() {
    let env = Env::new();
    let path = std::env::var("PATH").unwrap();
    let planted = |env: &Env| {
        let bin = env.root().join(".venv/bin");
        let output = env.command(&["doctor", "--json"]).env("PATH", format!("{}:{path}", bin.display())).output();
        let findings: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        findings.as_array().unwrap().iter().find(|finding| finding["name"] == "program").cloned()
    };
    assert_eq!(planted(&env), None);
    env.file(".venv/bin/haft", "#!/bin/sh\n");
    assert_eq!(planted(&env), None, "it cannot be run");
    let file = env.root().join(".venv/bin/haft");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let finding = planted(&env).unwrap();
    assert_eq!(finding["health"], "care");
    assert!(finding["found"].as_str().unwrap().contains(".venv/bin/haft, which the project decides"), "{finding:#}");
}

/// Of two rules with the highest priority, Gemini CLI takes the one that it reads first.
#[test]
fn rival_policy_of_gemini_cli_is_named() {
    let rule = |priority: u32| format!("[[rule]]\ntoolName = \"*\"\ndecision = \"allow\"\npriority = {priority}\n");
    let env = replaced("gemini");
    env.file(".gemini/settings.json", "{\"tools\": 1}");
    let policy = place(&env, "home/.gemini/policies/a.toml", &rule(998));
    assert_native_tools(&finding(&mut env.command(&[]), "gemini"), "off", None);
    std::fs::write(&policy, rule(999)).unwrap();
    assert_native_tools(&finding(&mut env.command(&[]), "gemini"), "on", policy.to_str());
    std::fs::remove_file(&policy).unwrap();
    env.file("more/a.toml", rule(999));
    env.file(".gemini/settings.json", "{\"policyPaths\": [\"more\", \"~/.gemini/policies\"], \"tools\": 1}");
    assert_native_tools(&finding(&mut env.command(&[]), "gemini"), "on", Some("./.gemini/settings.json"));
}

/// The team's settings deny what the user's do not have to deny then.
#[test]
fn denials_of_claude_code_add_up() {
    let env = replaced("claude");
    let local = env.root().join(".claude/settings.local.json");
    let settings: Value = serde_json::from_slice(&std::fs::read(&local).unwrap()).unwrap();
    let deny = settings["permissions"]["deny"].as_array().unwrap();
    let (team, user) = deny.split_at(5);
    env.file(".claude/settings.json", json!({"permissions": {"deny": team}}).to_string());
    std::fs::write(&local, json!({"permissions": {"deny": &user[1..]}}).to_string()).unwrap();
    assert_native_tools(&finding(&mut env.command(&[]), "claude"), "on", None);
    place(&env, "home/.claude/settings.json", &json!({"permissions": {"deny": &user[..1]}}).to_string());
    assert_native_tools(&finding(&mut env.command(&[]), "claude"), "off", None);
}

#[test]
fn unreadable_file_of_a_project_makes_native_tools_unknown() {
    let cases = [
        ("claude", ".claude/settings.json", "{\"permissions\": "),
        ("codex", ".codex/config.toml", "[features\n"),
        ("gemini", ".gemini/settings.json", "{\"tools\": "),
        ("opencode", "opencode.json", "{\"permission\": "),
        ("opencode", "opencode.json", "{\"permission\": {\"{file:name}\": \"allow\"}}"),
        ("opencode", ".opencode/agents/mine.md", "---\ntools: [\n---\n"),
    ];
    for (client, path, text) in cases {
        let env = replaced(client);
        env.file(path, text);
        if client == "codex" {
            let user = env.home().join(".codex/config.toml");
            let own = std::fs::read_to_string(&user).unwrap();
            std::fs::write(
                &user,
                format!("{own}\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n", env.root().display()),
            )
            .unwrap();
        }
        let found = finding(&mut env.command(&[]), client);
        assert_native_tools(&found, "unknown", None);
        assert!(found["found"].as_str().unwrap().contains(path), "{found:#}");
    }
    let env = replaced("opencode");
    std::fs::create_dir(env.root().join("opencode.json")).unwrap();
    assert_native_tools(&finding(&mut env.command(&[]), "opencode"), "unknown", None);
}

#[test]
fn variable_that_turns_native_tools_on_is_named() {
    let developer = "{\"developer\": {\"enabled\": true, \"type\": \"platform\", \"name\": \"developer\"}}";
    let cases = [
        ("goose", "EXTENSIONS", developer, Some("$EXTENSIONS")),
        ("opencode", "OPENCODE_PERMISSION", "{\"bash\": \"allow\"}", Some("$OPENCODE_PERMISSION")),
        ("opencode", "OPENCODE_CONFIG_CONTENT", "{\"permission\": \"allow\"}", Some("$OPENCODE_CONFIG_CONTENT")),
        ("opencode", "OPENCODE_CONFIG_CONTENT", "{\"model\": \"a/b\"}", None),
    ];
    for (client, name, value, by) in cases {
        let found = finding(replaced(client).command(&[]).env(name, value), client);
        assert_native_tools(&found, if by.is_some() { "on" } else { "off" }, by);
    }
    for (client, name) in [("codex", "CODEX_HOME"), ("gemini", "GEMINI_CLI_HOME"), ("goose", "XDG_CONFIG_HOME")] {
        let env = replaced(client);
        let found = finding(env.command(&[]).env(name, env.dir.path()), client);
        assert_native_tools(&found, "unknown", None);
        assert!(found["found"].as_str().unwrap().contains(name), "{found:#}");
    }
}

/// A client that is started below the root of a project also reads the files on the way.
#[test]
fn files_between_the_root_and_the_directory_count() {
    let env = replaced("opencode");
    env.file("part/opencode.json", "{\"permission\": {\"bash\": \"allow\"}}");
    assert_native_tools(&finding(&mut env.command(&[]), "opencode"), "off", None);
    let found = finding(env.command(&[]).current_dir(env.root().join("part")), "opencode");
    assert_native_tools(&found, "on", Some("./part/opencode.json"));
}

/// Codex runs a hook only after its user has trusted it, and stops when the hook changes, or a file turns hooks off.
#[test]
fn hooks_of_codex_count_once_they_are_trusted() {
    let env = Env::new();
    install(&env, "codex", &["--hooks"]);
    let found = finding(&mut env.command(&[]), "codex");
    assert_native_tools(&found, "hooks_not_run", None);
    let events = json!(["PreToolUse", "PostToolUse", "Stop", "SessionEnd"]);
    assert_eq!(found["client"]["hooks_not_run"], events, "{found:#}");
    assert!(found["fix"].as_str().unwrap().contains("/hooks"), "{found:#}");

    let user = env.home().join(".codex/config.toml");
    let own = std::fs::read_to_string(&user).unwrap();
    let trust = |event: &str, hash: &str| {
        format!("\n[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"{hash}\"\n", user.display())
    };
    std::fs::write(&user, format!("{own}{}", trust("pre_tool_use", "sha256:0000"))).unwrap();
    let found = finding(&mut env.command(&[]), "codex");
    assert_eq!(found["client"]["hooks_not_run"], events, "a hash of another hook is no trust: {found:#}");

    std::fs::write(&user, format!("{own}\n[features]\nhooks = false\n")).unwrap();
    assert_native_tools(&finding(&mut env.command(&[]), "codex"), "on", user.to_str());
    let project = format!("{own}\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n", env.root().display());
    std::fs::write(&user, project).unwrap();
    env.file(".codex/config.toml", "[features]\ncodex_hooks = false\n");
    assert_native_tools(&finding(&mut env.command(&[]), "codex"), "on", Some("./.codex/config.toml"));
}
