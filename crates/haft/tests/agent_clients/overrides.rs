//! Project files that override what `haft mcp install --replace` wrote, and some that do not: what `haft doctor` says of a
//! client's own tools is what the real client offers its model.

use crate::HAFT;
use crate::client::{AgentClient, HaftEntry, scripted_model};
use crate::project::Project;
use crate::replace::install;
use crate::trials::{for_clients, for_every_client};
use haft_stub::{Reply, Stub};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials =
        for_every_client("doctor_knows_which_files_of_a_project_turn_native_tools_on", doctor_agrees_with_the_client);
    let clients = [AgentClient::ClaudeCode, AgentClient::GeminiCli, AgentClient::Goose];
    let name = "doctor_knows_whether_hooks_run_in_a_project_that_turns_them_off";
    trials.extend(for_clients(&clients, name, doctor_knows_whether_hooks_run));
    let name = "doctor_knows_which_hooks_the_client_trusts";
    trials.extend(for_clients(&[AgentClient::Codex], name, doctor_knows_which_hooks_are_trusted));
    trials
}

/// A file of a project, and whether the client's own tools are on because of it.
struct ProjectFile {
    path: &'static str,
    text: &'static str,
    turns_tools_on: bool,
}

const fn turning_on(path: &'static str, text: &'static str) -> ProjectFile {
    ProjectFile { path, text, turns_tools_on: true }
}

const fn without_effect(path: &'static str, text: &'static str) -> ProjectFile {
    ProjectFile { path, text, turns_tools_on: false }
}

/// As commands name a client.
fn command_name(client: AgentClient) -> &'static str {
    match client {
        AgentClient::ClaudeCode => "claude",
        AgentClient::GeminiCli => "gemini",
        client => client.name(),
    }
}

/// A tool that acts, and that the client offers unless it is off.
fn native_tool(client: AgentClient) -> &'static str {
    match client {
        AgentClient::ClaudeCode => "Bash",
        AgentClient::Codex => "exec_command",
        AgentClient::GeminiCli => "run_shell_command",
        AgentClient::Opencode => "bash",
        AgentClient::Goose => "shell",
    }
}

fn project_files(client: AgentClient) -> &'static [ProjectFile] {
    const BYPASS: &str =
        "{\"permissions\": {\"allow\": [\"Bash\"], \"deny\": [], \"defaultMode\": \"bypassPermissions\"}}";
    const AGENT: &str = "---\ndescription: Builds\npermission:\n  bash: allow\n---\nBuild it.\n";
    match client {
        AgentClient::ClaudeCode => const { &[without_effect(".claude/settings.json", BYPASS)] },
        AgentClient::Codex => const { &[turning_on(".codex/config.toml", "[features]\nshell_tool = true\n")] },
        AgentClient::GeminiCli => {
            const {
                &[
                    // Either wall is enough: the policy of the user, or the user's list of excluded tools.
                    without_effect(".gemini/settings.json", "{\"policyPaths\": [\"none\"]}"),
                    without_effect(".gemini/settings.json", "{\"tools\": \"replaced\"}"),
                    turning_on(".gemini/settings.json", "{\"policyPaths\": [\"none\"], \"tools\": \"replaced\"}"),
                    without_effect(".gemini/settings.json", "{\"tools\": {\"allowed\": [\"run_shell_command\"]}}"),
                ]
            }
        }
        AgentClient::Opencode => {
            const {
                &[
                    turning_on("opencode.json", "{\"permission\": {\"bash\": \"allow\"}}"),
                    turning_on(".opencode/agent/build.md", AGENT),
                    without_effect("opencode.jsonc", "{\"tools\": {\"bash\": true}, /* older */}"),
                ]
            }
        }
        AgentClient::Goose => {
            const { &[without_effect(".goose/config.yaml", "extensions:\n  developer:\n    enabled: true\n")] }
        }
    }
}

/// The user trusts the project, so that its files count.
fn trust_project(client: AgentClient, project: &Project) {
    let root = project.root().canonicalize().unwrap().display().to_string();
    match client {
        AgentClient::Codex => {
            let file = project.home().join(".codex/config.toml");
            let config = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, format!("{config}\n[projects.{root:?}]\ntrust_level = \"trusted\"\n")).unwrap();
        }
        AgentClient::GeminiCli => {
            project.write("home/.gemini/trustedFolders.json", &format!("{{{root:?}: \"TRUST_FOLDER\"}}"));
        }
        _ => {}
    }
}

fn doctor_agrees_with_the_client(client: AgentClient) {
    for file in project_files(client) {
        let project = Project::new(1);
        let model = scripted_model(Vec::new());
        client.configure(&project, &model, HaftEntry::Installed);
        install(client, &project, &["install", "--replace"]);
        trust_project(client, &project);
        project.write(&format!("project/{}", file.path), file.text);
        // Codex knows which tools a model takes by its name.
        let options = if client == AgentClient::Codex { &["-m", "gpt-5.5"] } else { client.permissive_options() };
        let transcript = client.run_configured(&project, &model, options);
        let offered: BTreeSet<String> = model.asked().iter().flat_map(haft_stub::Asked::tools).collect();
        assert!(!offered.is_empty(), "{client:?} offers nothing with {}:\n{}", file.path, transcript.printed);
        let is_offered = offered.contains(native_tool(client));
        assert_eq!(is_offered, file.turns_tools_on, "{client:?} with {}: {offered:?}", file.path);

        let found = state_in_doctor(&project, client);
        let expected = if is_offered { ("on", Some(format!("./{}", file.path))) } else { ("off", None) };
        let said = (found["native_tools"].as_str().unwrap(), found["overridden_by"].as_str().map(str::to_owned));
        assert_eq!(said, expected, "{client:?} with {}: {found:#}", file.path);
    }
}

/// What `haft doctor` says of a client.
fn state_in_doctor(project: &Project, client: AgentClient) -> Value {
    let findings = project.haft(&["doctor", "--json"]);
    let mut clients = findings.as_array().unwrap().iter().map(|finding| &finding["client"]);
    clients.find(|found| found["client"] == command_name(client)).unwrap().clone()
}

/// How many calls of native tools haft's log holds.
fn observed_calls(project: &Project) -> usize {
    let log = project.command(Path::new(HAFT)).args(["log", "-n", "1000", "--json"]).output().unwrap();
    let lines = String::from_utf8(log.stdout).unwrap();
    lines.lines().filter(|line| line.contains("\"observed\"")).count()
}

/// The hooks of Claude Code run all the same, because the user's local settings count more. Gemini CLI's and goose's do not,
/// and `haft doctor` says so.
fn doctor_knows_whether_hooks_run(client: AgentClient) {
    let (files, still_run): (&[(&str, &str)], bool) = match client {
        AgentClient::ClaudeCode => (&[(".claude/settings.json", "{\"disableAllHooks\": true}")], true),
        AgentClient::Goose => (
            &[
                (".config/goose/settings.json", "{\"disabledPlugins\": [\"haft\"]}"),
                (".config/goose/settings.local.json", "{\"disabledPlugins\": [\"haft\"]}"),
                // A plugin of the project stands in for the user's with the same name.
                (".agents/plugins/haft", ""),
            ],
            false,
        ),
        _ => (
            &[
                (".gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}"),
                (".gemini/settings.json", "{\"hooksConfig\": {\"disabled\": [\"haft\"]}}"),
            ],
            false,
        ),
    };
    for (path, text) in files {
        let project = Project::new(1);
        let model = model_that_runs_a_command(native_tool(client));
        client.configure(&project, &model, HaftEntry::Installed);
        install(client, &project, &["install", "--hooks"]);
        trust_project(client, &project);
        if text.is_empty() {
            std::fs::create_dir_all(project.root().join(path)).unwrap();
        } else {
            project.write(&format!("project/{path}"), text);
        }
        let transcript = client.run_configured(&project, &model, client.permissive_options());

        let observed = observed_calls(&project) > 0;
        assert_eq!(observed, still_run, "{client:?} with {text}:\n{}", transcript.printed);
        let found = state_in_doctor(&project, client);
        let by = if still_run { None } else { Some(format!("./{path}")) };
        let expected = (if still_run { "hooked" } else { "on" }, by);
        let said = (found["native_tools"].as_str().unwrap(), found["overridden_by"].as_str().map(str::to_owned));
        assert_eq!(said, expected, "{client:?} with {text}: {found:#}");
    }
}

/// A model that calls a native tool for commands once, then ends the conversation.
fn model_that_runs_a_command(tool: &'static str) -> Stub {
    let has_called = AtomicBool::new(false);
    Stub::with(move |asked| {
        let is_offered = asked.tools().iter().any(|offered| offered == tool);
        if is_offered && !has_called.swap(true, Ordering::SeqCst) {
            let mut args = json!({"command": "cat hello.txt"});
            if tool != "shell" {
                args["description"] = "x".into();
            }
            Reply::call(tool, args)
        } else {
            Reply::say("Done.")
        }
    })
}

/// Codex runs haft's hooks only once its user has trusted them: until then `haft doctor` says that they do not run.
fn doctor_knows_which_hooks_are_trusted(client: AgentClient) {
    let project = Project::new(1);
    // haft asks about every command of Codex's that no rule names.
    project.write("home/.config/haft/config.yml", "rules: [{allow: cat}]\n");
    // In each conversation the model runs one command.
    let model = Stub::with(|asked| {
        if asked.tools().iter().any(|tool| tool == "exec_command") && !asked.says("function_call_output") {
            Reply::call("exec_command", json!({"cmd": "cat hello.txt"}))
        } else {
            Reply::say("Done.")
        }
    });
    client.configure(&project, &model, HaftEntry::Installed);
    install(client, &project, &["install", "--hooks"]);
    let run = || {
        let (observed, asked) = (observed_calls(&project), model.asked().len());
        let transcript = client.run_configured(&project, &model, &["-m", "gpt-5.5"]);
        assert!(model.asked().len() > asked + 1, "the model was not told of its call: {}", transcript.printed);
        observed_calls(&project) > observed
    };

    assert!(!run(), "nobody has trusted the hooks");
    let events = ["PreToolUse", "PostToolUse", "Stop", "SessionEnd"];
    let found = state_in_doctor(&project, client);
    assert_eq!(
        (&found["native_tools"], &found["hooks_not_run"]),
        (&json!("hooks_not_run"), &json!(events)),
        "{found:#}"
    );

    let hooks = hooks_in_codex(&project);
    assert_eq!(hooks.len(), events.len(), "{hooks:#?}");
    let config = project.home().join(".codex/config.toml");
    let installed = std::fs::read_to_string(&config).unwrap();
    let trust = |hook: &Value| format!("\n[hooks.state.{}]\ntrusted_hash = {}\n", hook["key"], hook["currentHash"]);
    let trusted: String = hooks.iter().map(trust).collect();
    std::fs::write(&config, format!("{installed}{trusted}")).unwrap();
    assert!(hooks_in_codex(&project).iter().all(|hook| hook["trustStatus"] == "trusted"), "{trusted}");
    assert!(run(), "the hooks are trusted");
    assert_eq!(state_in_doctor(&project, client)["native_tools"], "hooked");

    let off = trusted.replacen("trusted_hash", "enabled = false\ntrusted_hash", 1);
    std::fs::write(&config, format!("{installed}{off}")).unwrap();
    let is_off = |hook: &&Value| hook["enabled"] == false;
    let all = hooks_in_codex(&project);
    let names: Vec<&Value> = all.iter().filter(is_off).map(|hook| &hook["eventName"]).collect();
    assert_eq!(names, ["preToolUse"], "{all:#?}");
    let found = state_in_doctor(&project, client);
    assert_eq!(found["hooks_not_run"], json!(["PreToolUse"]), "{found:#}");
}

/// The hooks that Codex knows in the project, as its app server lists them.
fn hooks_in_codex(project: &Project) -> Vec<Value> {
    let mut server = AgentClient::codex_command(project);
    server.arg("app-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = server.spawn().unwrap();
    let client = json!({"name": "haft-tests", "title": "haft-tests", "version": "1"});
    let messages = [
        json!({"id": 1, "method": "initialize", "params": {"clientInfo": client}}),
        json!({"method": "initialized"}),
        json!({"id": 2, "method": "hooks/list", "params": {"cwds": [project.root()]}}),
    ];
    // It ends when its input does, so that stays open until the answer is there.
    let mut input = server.stdin.take().unwrap();
    for message in messages {
        writeln!(input, "{message}").unwrap();
    }
    let lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let answers = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let listed = answers.into_iter().find(|answer| answer["id"] == 2);
    drop(input);
    let _ = server.kill();
    let _ = server.wait();
    let listed = listed.unwrap_or_else(|| panic!("Codex's app server ended without an answer"));
    listed["result"]["data"][0]["hooks"].as_array().unwrap_or_else(|| panic!("no hooks: {listed:#}")).clone()
}
