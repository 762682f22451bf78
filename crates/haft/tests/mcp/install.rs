//! `haft mcp install` and `uninstall`: haft in the configuration of every client that it knows, and out of it again.
//! `tests/agent_clients` runs the real clients on what is written here.

use crate::Env;
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CLIENTS: [(&str, &str); 7] = [
    ("claude", "project/.mcp.json"),
    ("codex", "home/.codex/config.toml"),
    ("gemini", "home/.gemini/settings.json"),
    ("cursor", "home/.cursor/mcp.json"),
    ("goose", "home/.config/goose/config.yaml"),
    ("opencode", "home/.config/opencode/opencode.json"),
    ("vscode", "project/.vscode/mcp.json"),
];
/// Those whose own tools can be turned off.
const REPLACEABLE: [&str; 6] = ["claude", "codex", "gemini", "cursor", "goose", "opencode"];
/// Those that ask a hook before they use their own tools.
const HOOKABLE: [&str; 5] = ["claude", "codex", "gemini", "cursor", "goose"];

/// Every file below the home directory and the project, except haft's own.
pub(crate) fn files(env: &Env) -> Vec<(PathBuf, Vec<u8>)> {
    fn walk(dir: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with(".local/share/haft") {
                walk(&path, found);
            } else if path.is_file() {
                found.push((path.clone(), std::fs::read(path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    walk(env.dir.path(), &mut found);
    found.sort();
    found
}

/// A file anywhere below the temporary directory.
pub(crate) fn place(env: &Env, path: &str, text: &str) -> PathBuf {
    let file = env.dir.path().join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    file
}

pub(crate) fn install(env: &Env, client: &str, options: &[&str]) -> Value {
    env.json(&[&["mcp", "install", client, "--yes", "--json"], options].concat())
}

pub(crate) fn uninstall(env: &Env, client: &str) -> Value {
    env.json(&["mcp", "uninstall", client, "--yes", "--json"])
}

/// What a refused command says on stderr.
fn refused(env: &Env, args: &[&str]) -> String {
    let output = env.run(args);
    assert!(!output.status.success(), "{args:?} went through: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn install_writes_once_and_uninstall_leaves_nothing_behind() {
    for mode in [&[][..], &["--replace"]] {
        for (client, file) in CLIENTS {
            if !mode.is_empty() && !REPLACEABLE.contains(&client) {
                continue;
            }
            let env = Env::new();
            let before = files(&env);
            let first = install(&env, client, mode);
            assert_eq!(first["state"], "written", "{client}: {first:#}");
            let text = std::fs::read_to_string(env.dir.path().join(file)).unwrap();
            assert!(text.contains("haft") && text.contains("\"mcp\""), "{client}: {text}");
            let written = files(&env);
            assert_eq!(install(&env, client, mode)["state"], "already there", "{client}");
            assert_eq!(files(&env), written, "{client}");
            let restored = uninstall(&env, client);
            assert_eq!(restored["state"], "restored", "{client}: {restored:#}");
            assert_eq!(files(&env), before, "{client}");
            let dirs = ["project/.claude", "project/.vscode", "home/.codex", "home/.gemini", "home/.cursor"];
            assert!(dirs.iter().all(|dir| !env.dir.path().join(dir).exists()), "{client}");
            assert_eq!(uninstall(&env, client)["state"], "not there", "{client}");
        }
    }
}

/// Configurations as people have them: comments, their own servers, their own rules.
const LIVED_IN: [(&str, &str, &str); 7] = [
    ("claude", "project/.mcp.json", "{\n\t\"mcpServers\": {\"other\": {\"command\": \"x\"}}, \"mine\": [1]\n}"),
    (
        "claude",
        "project/.claude/settings.local.json",
        "{\r\n    \"permissions\": {\r\n        \"deny\": [\"Read(./.env)\"],\r\n        \"allow\": []\r\n    }\r\n}\r\n",
    ),
    (
        "codex",
        "home/.codex/config.toml",
        "# mine\nmodel = \"gpt-5.5\" # the good one\nsandbox_mode = \"workspace-write\"\n\n[features]\nshell_tool = true\n\n\
         # about the other\n[mcp_servers.other]\ncommand = \"y\"\n",
    ),
    (
        "gemini",
        "home/.gemini/settings.json",
        "{\n  // mine\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}, // theirs\n  },\n}\n",
    ),
    (
        "opencode",
        "home/.config/opencode/opencode.jsonc",
        "{\"permission\": {\"bash\": {\"*\": \"ask\"}, \"edit\": \"ask\"} /* careful */}\n",
    ),
    (
        "goose",
        "home/.config/goose/config.yaml",
        "# mine\nGOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true # yes\n    type: platform\n    name: developer\n\
         \n  memory:\n    enabled: true\nafter: 1\n",
    ),
    (
        "cursor",
        "home/.cursor/cli-config.json",
        "{\"version\": 1, \"permissions\": {\"allow\": [\"Shell(ls)\"], \"deny\": []}}",
    ),
];

#[test]
fn uninstall_restores_every_byte_after_any_sequence_of_installations() {
    for modes in [&[&[][..]][..], &[&["--replace"]], &[&[], &["--replace"]], &[&["--replace"], &[]]] {
        let env = Env::new();
        for (_, path, text) in LIVED_IN {
            let file = place(&env, path, text);
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        }
        let before = files(&env);
        for client in REPLACEABLE {
            for mode in modes {
                let state = install(&env, client, mode);
                assert!(
                    ["written", "already there"].contains(&state["state"].as_str().unwrap()),
                    "{client}: {state:#}"
                );
            }
        }
        for (path, text) in &before {
            let now = std::fs::read_to_string(path).unwrap();
            for comment in ["# mine", "// mine", "// theirs", "# the good one", "/* careful */", "# about the other"] {
                let was = String::from_utf8_lossy(text).contains(comment);
                assert!(!was || now.contains(comment), "{} lost {comment}:\n{now}", path.display());
            }
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o640, "{}", path.display());
        }
        for client in REPLACEABLE {
            let restored = uninstall(&env, client);
            assert_eq!(restored["state"], "restored", "{client}: {restored:#}");
        }
        assert_eq!(files(&env), before, "{modes:?}");
    }
}

#[test]
fn plain_install_over_a_replacing_one_keeps_native_tools_off() {
    let env = Env::new();
    install(&env, "claude", &["--replace"]);
    assert_eq!(install(&env, "claude", &[])["native_tools"], "off");
    let settings = std::fs::read_to_string(env.root().join(".claude/settings.local.json")).unwrap();
    assert!(settings.contains("\"Bash\""), "{settings}");
    let said = refused(&env, &["mcp", "install", "claude", "--hooks", "--yes"]);
    assert!(said.contains("uninstall"), "{said}");
}

#[test]
fn uninstall_keeps_what_was_changed_since() {
    let env = Env::new();
    let codex = place(&env, "home/.codex/config.toml", LIVED_IN[2].2);
    install(&env, "codex", &["--replace"]);
    let text = std::fs::read_to_string(&codex).unwrap();
    let changed = text.replace("sandbox_mode = \"read-only\"", "sandbox_mode = \"danger-full-access\"");
    std::fs::write(&codex, format!("{changed}\n[mcp_servers.new]\ncommand = \"z\"\n")).unwrap();
    let restored = uninstall(&env, "codex");
    assert_eq!(restored["files"][0]["restored"], "edits_only", "{restored:#}");
    assert_eq!(restored["files"][0]["left"], json!(["sandbox_mode"]), "{restored:#}");
    let now = std::fs::read_to_string(&codex).unwrap();
    assert!(!now.contains("haft") && !now.contains("granular"), "{now}");
    for kept in ["danger-full-access", "[mcp_servers.new]", "[mcp_servers.other]", "shell_tool = true", "# mine"] {
        assert!(now.contains(kept), "{kept} is lost:\n{now}");
    }

    let goose = place(&env, "home/.config/goose/config.yaml", LIVED_IN[5].2);
    install(&env, "goose", &["--replace"]);
    let text = std::fs::read_to_string(&goose).unwrap();
    std::fs::write(&goose, text.replace("GOOSE_MODEL: x", "GOOSE_MODEL: y")).unwrap();
    assert_eq!(install(&env, "goose", &["--replace"])["state"], "already there");
    uninstall(&env, "goose");
    assert_eq!(
        std::fs::read_to_string(&goose).unwrap(),
        LIVED_IN[5].2.replace("GOOSE_MODEL: x", "GOOSE_MODEL: y").replace("true # yes", "true")
    );

    let claude = place(&env, "project/.mcp.json", "{}");
    install(&env, "claude", &["--replace"]);
    std::fs::write(&claude, "this is no JSON any more").unwrap();
    let said = refused(&env, &["mcp", "uninstall", "claude", "--yes"]);
    let kept = said.lines().find_map(|line| line.split("is kept: ").nth(1)).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(std::fs::read_to_string(kept.trim()).unwrap(), "{}", "{said}");
    assert_eq!(std::fs::read_to_string(&claude).unwrap(), "this is no JSON any more");
}

#[test]
fn entry_without_a_record_is_removed_alone() {
    let env = Env::new();
    let file = env
        .file(".mcp.json", "{\n  \"mcpServers\": {\n    \"haft\": {\"command\": \"haft\"},\n    \"b\": {}\n  }\n}\n");
    assert_eq!(uninstall(&env, "claude")["state"], "restored");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "{\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}\n");
}

#[test]
fn nothing_is_written_unasked_or_to_print() {
    let env = Env::new();
    let before = files(&env);
    for (client, _) in CLIENTS {
        let shown = env.run(&["mcp", "install", client, "--print"]);
        let text = String::from_utf8_lossy(&shown.stdout);
        assert!(shown.status.success() && text.contains("+++") && text.contains("haft"), "{client}: {shown:?}");
        let unasked = env.run(&["mcp", "install", client]);
        assert_eq!(unasked.status.code(), Some(4), "{client}: {unasked:?}");
    }
    assert_eq!(files(&env), before);
}

#[test]
fn plain_install_says_that_native_tools_remain() {
    let env = Env::new();
    for (client, _) in CLIENTS {
        let said = env.run(&["mcp", "install", client, "--yes"]);
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(text.contains("keeps its own tools") && text.contains("does not decide"), "{client}: {text}");
        assert_eq!(text.contains("--replace"), client != "vscode", "{client}: {text}");
    }
    let said = refused(&env, &["mcp", "install", "vscode", "--replace", "--yes"]);
    assert!(said.contains("tool picker"), "{said}");
}

#[test]
fn hooks_are_entered_beside_those_of_others_and_taken_out_again() {
    let env = Env::new();
    let own = "{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": []}]}}";
    place(&env, "project/.claude/settings.local.json", own);
    place(&env, "home/.gemini/settings.json", "{}");
    place(
        &env,
        "home/.codex/config.toml",
        "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"x\"\n",
    );
    place(&env, "home/.cursor/hooks.json", "{\"hooks\": {\"preToolUse\": [{\"command\": \"x\"}]}}");
    let before = files(&env);
    for client in HOOKABLE {
        let said = install(&env, client, &["--hooks"]);
        // Codex runs no hook that its user has not trusted.
        let native = if client == "codex" { "hooks_not_run" } else { "hooked" };
        assert_eq!((&said["state"], &said["native_tools"]), (&json!("written"), &json!(native)), "{said:#}");
        let texts: Vec<u8> = files(&env).into_iter().flat_map(|(_, text)| text).collect();
        assert!(String::from_utf8_lossy(&texts).contains(&format!(" hook {client}")), "{client}");
    }
    let settings = std::fs::read_to_string(env.root().join(".claude/settings.local.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let groups = settings["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!((groups.len(), &groups[0]["matcher"]), (2, &json!("Bash")), "{settings:#}");
    // Cursor's form is flat, names a version, and refuses a call whose hook fails only if it is told to.
    let hooks = std::fs::read_to_string(env.home().join(".cursor/hooks.json")).unwrap();
    let hooks: Value = serde_json::from_str(&hooks).unwrap();
    let before_use = hooks["hooks"]["preToolUse"].as_array().unwrap();
    assert_eq!((before_use.len(), &before_use[0]), (2, &json!({"command": "x"})), "{hooks:#}");
    assert!(before_use[1]["command"].as_str().unwrap().ends_with(" hook cursor"), "{hooks:#}");
    assert_eq!((&hooks["version"], &before_use[1]["failClosed"]), (&json!(1), &json!(true)), "{hooks:#}");
    let reported: Vec<&String> = hooks["hooks"].as_object().unwrap().keys().collect();
    assert_eq!(reported, ["preToolUse", "postToolUse", "postToolUseFailure", "sessionEnd"]);
    // goose runs a call whose hook fails, unless it is told otherwise.
    let hooks = std::fs::read_to_string(env.home().join(".agents/plugins/haft/hooks/hooks.json")).unwrap();
    let hooks: Value = serde_json::from_str(&hooks).unwrap();
    let hook = &hooks["hooks"]["PreToolUse"][0]["hooks"][0];
    assert_eq!((&hook["on_failure"], &hook["timeout"]), (&json!("block"), &json!(300)), "{hooks:#}");
    for client in HOOKABLE {
        uninstall(&env, client);
    }
    assert_eq!(files(&env), before);
    let said = refused(&env, &["mcp", "install", "opencode", "--hooks", "--yes"]);
    assert!(said.contains("no hooks"), "{said}");
}

#[test]
fn doctor_says_for_each_client_whether_haft_is_entered_and_native_tools_are_on() {
    let env = Env::new();
    for dir in ["home/.codex", "home/.gemini", "home/.config/goose", "home/.config/opencode", "project/.claude"] {
        std::fs::create_dir_all(env.dir.path().join(dir)).unwrap();
    }
    install(&env, "codex", &["--replace"]);
    install(&env, "claude", &["--hooks"]);
    install(&env, "gemini", &[]);
    place(&env, "home/.config/opencode/opencode.json", "no JSON");
    let findings = env.json(&["doctor", "--json"]);
    let of = |client: &str| {
        let all = findings.as_array().unwrap().iter();
        let mut own = all.filter(|finding| finding["client"]["client"] == client);
        own.next().unwrap_or_else(|| panic!("{client} is not in {findings:#}")).clone()
    };
    let expected = [
        ("codex", "good", true, "off"),
        ("claude", "good", true, "hooked"),
        ("gemini", "care", true, "on"),
        ("goose", "good", false, "on"),
        ("opencode", "care", false, "unknown"),
    ];
    for (client, health, entered, native) in expected {
        let finding = of(client);
        assert_eq!(finding["health"], health, "{finding:#}");
        assert_eq!(
            (&finding["client"]["entered"], &finding["client"]["native_tools"]),
            (&json!(entered), &json!(native))
        );
    }
    assert!(of("gemini")["fix"].as_str().unwrap().contains("--replace"));
    assert!(of("opencode")["found"].as_str().unwrap().contains("not valid JSON"), "{:#}", of("opencode"));
    assert!(!findings.to_string().contains("vscode"), "a client without traces is not reported");
}

/// A configuration that cannot be edited stays as it is, and the person is told why.
fn assert_left_alone(env: &Env, client: &str, file: &Path, why: &str) {
    let before = files(env);
    let said = refused(env, &["mcp", "install", client, "--replace", "--yes"]);
    assert!(said.contains(why) && said.contains(file.file_name().unwrap().to_str().unwrap()), "{client}: {said}");
    assert_eq!(files(env), before, "{client}");
    assert!(!env.home().join(".local/share/haft/clients").join(client).exists(), "no record of what was not done");
}

#[test]
fn unreadable_and_unknown_configurations_are_left_alone() {
    let cases = [
        ("claude", "project/.mcp.json", "{\"mcpServers\": [", "not valid JSON"),
        ("claude", "project/.mcp.json", "[]", "not a JSON object"),
        ("claude", "project/.mcp.json", "{\"mcpServers\": []}", "`mcpServers` in it is not an object"),
        ("claude", "project/.mcp.json", "{\"mcpServers\": {}, \"mcpServers\": {}}", "twice"),
        ("claude", "project/.claude/settings.local.json", "{\"permissions\": {\"deny\": \"all\"}}", "not a list"),
        ("claude", "project/.claude/settings.local.json", "{\"permissions\": 3}", "not an object"),
        ("gemini", "home/.gemini/settings.json", "{\"mcpServers\": null}", "not an object"),
        ("opencode", "home/.config/opencode/opencode.json", "{\"permission\": \"ask\"}", "not an object"),
        ("codex", "home/.codex/config.toml", "model = \n", "not valid TOML"),
        ("codex", "home/.codex/config.toml", "mcp_servers = 3\n", "`mcp_servers` in it is not"),
        ("goose", "home/.config/goose/config.yaml", "a: [1\n", "not valid YAML"),
        ("goose", "home/.config/goose/config.yaml", "extensions: {a: {enabled: true}}\n", "not written as a block"),
        ("goose", "home/.config/goose/config.yaml", "- 1\n", "not a YAML mapping"),
    ];
    for (client, path, text, why) in cases {
        let env = Env::new();
        let file = place(&env, path, text);
        assert_left_alone(&env, client, &file, why);
    }
    let env = Env::new();
    let file = place(&env, "project/.mcp.json", "");
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    assert_left_alone(&env, "claude", &file, "not UTF-8");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert_left_alone(&env, "claude", &file, "not a file");
}

#[test]
fn link_stays_a_link_and_its_file_is_edited() {
    let env = Env::new();
    let real = place(&env, "home/dotfiles/codex.toml", "# mine\n");
    let link = env.home().join(".codex/config.toml");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    install(&env, "codex", &["--replace"]);
    assert!(link.is_symlink() && std::fs::read_to_string(&real).unwrap().contains("[mcp_servers.haft]"));
    uninstall(&env, "codex");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "# mine\n");
}

#[test]
fn link_to_nowhere_or_out_of_the_project_is_refused() {
    let env = Env::new();
    let (nowhere, file) = (env.dir.path().join("nowhere"), env.root().join(".mcp.json"));
    std::os::unix::fs::symlink(&nowhere, &file).unwrap();
    assert_left_alone(&env, "claude", &file, "leads nowhere");
    std::fs::remove_file(&file).unwrap();
    let outside = place(&env, "home/other.json", "{}");
    std::os::unix::fs::symlink(&outside, &file).unwrap();
    assert_left_alone(&env, "claude", &file, "out of the project");
    std::fs::remove_file(&file).unwrap();
    // A directory on the way can be a link, too.
    std::os::unix::fs::symlink(env.home(), env.root().join(".claude")).unwrap();
    assert_left_alone(&env, "claude", &env.root().join(".claude/settings.local.json"), "out of the project");
}

#[test]
fn read_only_file_and_directory_are_left_alone() {
    let env = Env::new();
    let file = place(&env, "home/.codex/config.toml", "# mine\n");
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&file, 0o444);
    assert_left_alone(&env, "codex", &file, "the file is read-only");
    mode(&file, 0o644);
    mode(file.parent().unwrap(), 0o555);
    let said = refused(&env, &["mcp", "install", "codex", "--yes"]);
    mode(file.parent().unwrap(), 0o755);
    assert!(said.contains("the directory is read-only"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n");
}

/// Runs a command that is refused after the person said yes on a terminal, and says what the screen showed. `meanwhile`
/// happens between the question and the answer.
pub(crate) fn answer_on_a_terminal(env: &Env, command: &str, meanwhile: impl FnOnce()) -> String {
    let command = format!("exec {} {command} --color never", env!("CARGO_BIN_EXE_haft"));
    let screen_file = env.dir.path().join("screen");
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-f", "-c", &command]).arg(&screen_file);
    script.current_dir(env.root()).env_clear().env("HOME", env.home()).env("TERM", "xterm");
    script.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let screen = || std::fs::read_to_string(&screen_file).unwrap_or_default();
    let started = std::time::Instant::now();
    while !screen().contains("[y/N]") {
        assert!(started.elapsed() < crate::PATIENCE, "no question: {}", screen());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    meanwhile();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"y\n").unwrap();
    let status = child.wait().unwrap();
    drop(input);
    let said = screen();
    // It is no file of the user.
    std::fs::remove_file(&screen_file).unwrap();
    assert!(!status.success(), "{said}");
    said
}

#[test]
fn file_changed_by_another_program_meanwhile_is_left_alone() {
    let env = Env::new();
    let file = place(&env, "project/.mcp.json", "{}\n");
    let said = answer_on_a_terminal(&env, "mcp install claude --replace", || {
        std::fs::write(&file, "{\"theirs\": 1}\n").unwrap();
    });
    assert!(said.contains("another program changed the file"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"theirs\": 1}\n");
    assert!(!env.root().join(".claude").exists(), "nothing else was written");
    assert_eq!(uninstall(&env, "claude")["state"], "not there", "no record of what was not done");
}
