//! What a hook answers to what no client should send, and to clients that go. It fails closed where it decides.

use crate::plain;
use crate::project::Project;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        plain("event_that_is_not_understood_blocks", not_understood),
        plain("hook_that_is_not_done_in_time_blocks", late_decision_blocks),
        plain("hook_whose_input_never_ends_blocks", endless_input_blocks),
        plain("catastrophic_command_is_denied_whatever_is_allowed", catastrophic_command_is_denied),
        plain("cursor_is_answered_in_its_own_format", cursor_is_answered),
        plain("goose_is_answered_in_its_own_format", goose_is_answered),
        plain("unknown_tool_is_asked_about", unknown_tool),
        plain("unknown_parameter_is_asked_about_whatever_is_allowed", unknown_parameter),
        plain("unknown_fields_change_nothing", unknown_fields),
        plain("directory_of_a_call_does_not_move_the_project", call_elsewhere),
        plain("broken_configuration_denies", broken_configuration),
        plain("report_that_cannot_be_recorded_does_not_disturb_the_client", unrecordable_report_is_silent),
        plain("tool_list_does_not_allow_an_unconfined_command", auto_approve_excludes_native_commands),
        plain("call_refused_by_the_clients_user_is_recorded_as_not_run", refused_by_user),
        plain("call_asked_by_the_client_is_approved_by_its_user_when_it_ran", approved_by_user),
        plain("waiting_call_ends_with_its_answer", answered_while_waiting),
        plain("approval_holds_for_the_same_call_once", approval_is_used_once),
        plain("secrets_and_bodies_are_not_in_the_store", secrets_are_not_recorded),
        plain("own_tools_and_internal_tools_get_no_opinion", no_opinion),
        plain("codex_command_is_asked_about_unless_a_rule_names_it", codex_directory),
        plain("path_that_the_client_may_read_otherwise_is_asked_about", paths_read_otherwise),
        plain("search_is_judged_where_it_looks", searches),
        plain("tool_of_another_server_named_haft_is_asked_about", another_server),
        plain("patch_with_blanks_around_a_path_is_denied", patch_with_blanks),
        plain("command_that_shows_the_environment_is_asked_about", environment),
        plain("edit_of_a_client_control_file_is_asked_about_whatever_is_allowed", client_control_files),
        plain("unknown_event_that_may_be_a_call_blocks", unknown_event),
        plain("call_of_a_client_that_ended_is_interrupted_once", client_ended),
    ]
}

/// An event of Claude Code's.
pub(crate) fn event(project: &Project, name: &str, tool: &str, input: &Value) -> Value {
    json!({
        "session_id": "s1", "cwd": project.root(), "hook_event_name": name, "permission_mode": "default",
        "tool_name": tool, "tool_input": input, "tool_use_id": "toolu_1",
    })
}

pub(crate) fn said(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    if output.stdout.trim_ascii().is_empty() {
        return Value::Null;
    }
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"));
    answer["hookSpecificOutput"].clone()
}

pub(crate) fn ask(project: &Project, tool: &str, input: &Value) -> Value {
    said(&project.hook(&["claude", "--wait-ms", "0"], &event(project, "PreToolUse", tool, input).to_string()))
}

fn not_understood() {
    let project = Project::new("");
    for text in ["", "\n", "{", "[1]", "nonsense", "{\"hook_event_name\": 7}"] {
        let output = project.hook(&["claude"], text);
        assert_eq!(output.status.code(), Some(2), "{text:?}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("haft: "), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    let renamed = event(&project, "BeforeAnyTool", "Bash", &json!({"command": "ls"})).to_string();
    assert_eq!(project.hook(&["claude"], &renamed).status.code(), Some(2));
    let odd = event(&project, "PreToolUse", "Bash", &json!("ls")).to_string();
    assert_eq!(said(&project.hook(&["claude"], &odd))["permissionDecision"], "deny");
}

/// A client runs a call whose hook is late: it is blocked before that, and its question stays in the inbox.
fn late_decision_blocks() {
    let project = Project::new("mcp: {wait_ms: 600000}\n");
    let write = event(&project, "PreToolUse", "Write", &json!({"file_path": project.file("new.txt"), "content": "x"}));
    let started = Instant::now();
    let output = project.hook(&["claude", "--ask", "inbox", "--deadline-ms", "1500"], &write.to_string());
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("haft did not decide within 1500 ms"), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert_eq!(project.haft(&["approvals", "--json"])[0]["tool"], "file.write");
}

fn endless_input_blocks() {
    let project = Project::new("");
    let mut command = project.command(std::path::Path::new(crate::HAFT));
    command.args(["hook", "claude", "--deadline-ms", "300"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut hook = command.spawn().unwrap();
    let input = hook.stdin.take();
    let status = hook.wait().unwrap();
    drop(input);
    assert_eq!(status.code(), Some(2));
}

fn catastrophic_command_is_denied() {
    let project = Project::new("approval: {auto_approve: [\"*\"], level: yolo}\n");
    let answer = ask(&project, "Bash", &json!({"command": "rm -rf ~"}));
    assert_eq!(answer["permissionDecision"], "deny", "{answer}");
    assert!(answer["permissionDecisionReason"].as_str().unwrap().contains("whole home directory"), "{answer}");
    assert_eq!(project.haft(&["approvals", "--json"]), json!([]), "nobody can approve it");
}

/// Cursor's form has other names: the answer is `permission` with a message for the user and one for the agent.
fn cursor_is_answered() {
    let project = Project::new("");
    let decide = |command: &str| -> Value {
        let event = json!({
            "conversation_id": "c1", "generation_id": "g1", "hook_event_name": "preToolUse", "tool_name": "Shell",
            "tool_input": {"command": command}, "tool_use_id": "t1", "cwd": project.root(),
            "workspace_roots": [project.root()],
        });
        let output = project.hook(&["cursor", "--wait-ms", "0"], &event.to_string());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
    };
    assert_eq!(decide("ls")["permission"], "allow");
    assert_eq!(decide("rm -rf ~")["permission"], "deny");
    let waiting = decide("touch new.txt");
    assert_eq!(waiting["permission"], "deny", "{waiting}");
    let id = project.haft(&["approvals", "--json"])[0]["id"].as_str().unwrap().to_owned();
    assert!(waiting.to_string().contains(&id), "{waiting}");
}

/// goose names the event, the directory and the call otherwise, and takes an answer without a decision for a failure.
fn goose_is_answered() {
    let project = Project::new("");
    let decide_in = |dir: &str, tool: &str, input: Value| -> Value {
        let event = json!({
            "event": "PreToolUse", "session_id": "20261119_1", "matcher_context": tool, "tool_call_id": "call_2",
            "tool_name": tool, "tool_input": input, "working_dir": dir,
        });
        let output = project.hook(&["goose", "--wait-ms", "0"], &event.to_string());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
    };
    let root = project.root().to_str().unwrap().to_owned();
    let decide = |tool: &str, input: Value| decide_in(&root, tool, input);
    // The directory of a delegate is the model's choice and does not move the project.
    let elsewhere = decide_in("/etc", "shell", json!({"command": "cat hostname"}));
    assert!(elsewhere["reason"].as_str().unwrap().contains("/etc lies outside the readable roots"), "{elsewhere}");
    for (tool, input) in [
        ("shell", json!({"command": "ls", "timeout_secs": 5})),
        ("tree", json!({"path": ".", "depth": 1})),
        ("analyze", json!({"path": "hello.txt"})),
        ("haft__file_write", json!({"path": "x", "content": "x"})),
    ] {
        assert_eq!(decide(tool, input), json!({"decision": "allow"}), "{tool}");
    }
    for (tool, input) in [
        ("shell", json!({"command": "rm -rf ~"})),
        ("write", json!({"path": "new.txt", "content": "x"})),
        ("read_image", json!({"source": "http://127.0.0.1/x.png"})),
        ("extensionmanager__manage_extensions", json!({"action": "enable", "extension_name": "x"})),
        ("other__file_read", json!({"path": "hello.txt"})),
    ] {
        let answer = decide(tool, input);
        assert_eq!(answer["decision"], "block", "{tool}: {answer}");
        assert!(answer["reason"].as_str().unwrap().starts_with("haft ("), "{tool}: {answer}");
    }
}

fn unknown_tool() {
    let project = Project::new("");
    let answer = ask(&project, "mcp__github__create_issue", &json!({"title": "x"}));
    assert_eq!(answer["permissionDecision"], "deny");
    let waiting = project.haft(&["approvals", "--json"]);
    assert_eq!(waiting[0]["tool"], "native:claude:mcp__github__create_issue");
    // A list may name it.
    let project = Project::new("approval: {auto_approve: [\"native:claude:*\"]}\n");
    let answer = ask(&project, "mcp__github__create_issue", &json!({"title": "x"}));
    assert_eq!(answer["permissionDecision"], "allow", "{answer}");
}

fn unknown_parameter() {
    let project = Project::new("rules: [{allow: echo}]\n");
    assert_eq!(ask(&project, "Bash", &json!({"command": "echo hi > a"}))["permissionDecision"], "deny");
    assert_eq!(ask(&project, "Bash", &json!({"command": "echo hi"}))["permissionDecision"], "allow");
    let answer = ask(&project, "Bash", &json!({"command": "echo hi", "dangerouslyDisableSandbox": true}));
    assert_eq!(answer["permissionDecision"], "deny");
    let reason = answer["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("`dangerouslyDisableSandbox`, which haft does not know"), "{reason}");
}

fn unknown_fields() {
    let project = Project::new("");
    let mut before = event(&project, "PreToolUse", "Read", &json!({"file_path": "hello.txt"}));
    before["a_new_field"] = json!({"of": ["a", "later", "version"]});
    let answer = said(&project.hook(&["claude"], &before.to_string()));
    assert_eq!(answer["permissionDecision"], "allow", "{answer}");
}

fn call_elsewhere() {
    let project = Project::new("");
    let mut elsewhere = event(&project, "PreToolUse", "Bash", &json!({"command": "cat hostname"}));
    elsewhere["cwd"] = "/etc".into();
    let answer = said(&project.hook(&["claude", "--wait-ms", "0"], &elsewhere.to_string()));
    let reason = answer["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("/etc lies outside the readable roots"), "{reason}");
}

/// What haft answers to a command of Codex's; null is its word for yes.
fn codex_says(project: &Project, tool: &str, command: &str) -> Value {
    let event = event(project, "PreToolUse", tool, &json!({"command": command})).to_string();
    said(&project.hook(&["codex", "--wait-ms", "0"], &event))
}

fn codex_directory() {
    let project = Project::new("rules: [{allow: cat}, {allow: make}, {allow: ./run.sh}, {allow: git}]\n");
    project.write("project/run.sh", "#!/bin/sh\n");
    assert_eq!(codex_says(&project, "Bash", "cat hello.txt"), Value::Null);
    for command in ["ls", "head -1 hello.txt", "make test", "./run.sh", "git status"] {
        let answer = codex_says(&project, "Bash", command);
        assert_eq!(answer["permissionDecision"], "deny", "{command}: {answer}");
        let reason = answer["permissionDecisionReason"].as_str().unwrap();
        assert!(reason.contains("does not report the directory"), "{command}: {reason}");
    }
    // One that allows everything names nothing.
    let project = Project::new("rules: [{allow: \"*\"}]\n");
    assert_eq!(codex_says(&project, "Bash", "touch x")["permissionDecision"], "deny");
}

/// Asserts that each call is asked about, and that the question says why.
pub(crate) fn assert_asked(project: &Project, calls: &[(&str, Value)], why: &str) {
    for (tool, input) in calls {
        let answer = ask(project, tool, input);
        assert_eq!(answer["permissionDecision"], "deny", "{tool} {input}: {answer}");
        let reason = answer["permissionDecisionReason"].as_str().unwrap();
        assert!(reason.contains(why), "{tool} {input}: {reason}");
        assert!(reason.contains("waits"), "{tool} {input}: {reason}");
    }
}

fn paths_read_otherwise() {
    let project = Project::new("approval: {auto_approve: [\"file.*\"]}\n");
    project.write("project/src/a.rs", "");
    let calls = [
        ("Grep", json!({"pattern": "x", "path": "~"})),
        ("Grep", json!({"pattern": "x", "path": " hello.txt"})),
        ("LS", json!({"path": "src/.."})),
        ("Glob", json!({"pattern": "*", "path": "~/x"})),
        ("Read", json!({"file_path": "hello.txt\t"})),
        ("Write", json!({"file_path": "~/x", "content": ""})),
        ("MultiEdit", json!({"file_path": "src/../x", "edits": []})),
    ];
    assert_asked(&project, &calls, "which the agent may interpret differently than haft");
    assert_eq!(ask(&project, "Read", &json!({"file_path": "./hello.txt"}))["permissionDecision"], "allow");
}

fn searches() {
    let project = Project::new("");
    let patterns = ["/etc/*", "../*", "~/*", "{/etc,a}/*"];
    let calls = patterns.map(|pattern| ("Glob", json!({"pattern": pattern})));
    assert_asked(&project, &calls, "which the agent may interpret differently than haft");
    std::os::unix::fs::symlink("/etc", project.root().join("out")).unwrap();
    assert_asked(&project, &[("Glob", json!({"pattern": "out/*"}))], "/etc lies outside the readable roots");
    assert_eq!(ask(&project, "Glob", &json!({"pattern": "**/*.{rs,txt}"}))["permissionDecision"], "allow");
    // Without a place it looks where the client is.
    project.write("outside/plain.txt", "");
    let outside = project.root().parent().unwrap().join("outside");
    for tool in ["Grep", "Glob"] {
        let mut elsewhere = event(&project, "PreToolUse", tool, &json!({"pattern": "x"}));
        elsewhere["cwd"] = outside.to_str().into();
        let answer = said(&project.hook(&["claude", "--wait-ms", "0"], &elsewhere.to_string()));
        let reason = answer["permissionDecisionReason"].as_str().unwrap();
        assert!(reason.contains("outside lies outside the readable roots"), "{tool}: {reason}");
    }
}

fn another_server() {
    let project = Project::new("");
    for (client, name, tool) in [
        ("claude", "PreToolUse", "mcp__haft__file_reads"),
        ("claude", "PreToolUse", "mcp__haft__file.read"),
        ("claude", "PreToolUse", "mcp__haft__"),
        ("gemini", "BeforeTool", "mcp_haft_x_file_read"),
    ] {
        let output = project.hook(&[client, "--wait-ms", "0"], &event(&project, name, tool, &json!({})).to_string());
        assert!(String::from_utf8_lossy(&output.stdout).contains("deny"), "{tool}: {output:?}");
        let waiting = project.haft(&["approvals", "--json"]);
        let waits = |asked: &Value| asked["tool"] == format!("native:{client}:{}", tool.replace(' ', "_"));
        assert!(waiting.as_array().unwrap().iter().any(waits), "{tool}: {waiting:#}");
    }
}

fn patch_with_blanks() {
    let project = Project::new("approval: {auto_approve: [file.edit]}\n");
    for patch in
        ["*** Add File:  a\n+x", "*** Delete File: hello.txt ", "*** Update File: hello.txt\n*** Move to: b \n@@\n+x"]
    {
        let answer = codex_says(&project, "apply_patch", &format!("*** Begin Patch\n{patch}\n*** End Patch"));
        assert_eq!(answer["permissionDecision"], "deny", "{patch}: {answer}");
        let reason = answer["permissionDecisionReason"].as_str().unwrap();
        assert!(reason.contains("a path begins or ends with a blank"), "{patch}: {reason}");
    }
    let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch";
    assert_eq!(codex_says(&project, "apply_patch", patch), Value::Null);
}

fn environment() {
    let project = Project::new("rules: [{allow: echo}]\n");
    for command in ["env", "printenv", "set", "export -p", "declare -p", "echo $TOKEN", "bash -c 'echo $TOKEN'"] {
        let answer = ask(&project, "Bash", &json!({"command": command}));
        assert_eq!(answer["permissionDecision"], "deny", "{command}: {answer}");
    }
    for command in ["echo $HOME", "cat hello.txt"] {
        let answer = ask(&project, "Bash", &json!({"command": command}));
        assert_eq!(answer["permissionDecision"], "allow", "{command}: {answer}");
    }
}

fn unknown_event() {
    let project = Project::new("");
    for (name, field) in
        [("beforeShellExecution", "command"), ("opens", "file_path"), ("starts", "tool_input"), ("PREx", "x")]
    {
        let event = json!({"hook_event_name": name, "session_id": "s", field: "x"}).to_string();
        let output = project.hook(&["cursor"], &event);
        assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("unsupported Cursor hook event"), "{output:?}");
    }
}

fn broken_configuration() {
    let project = Project::new("rules: 7\n");
    let answer = ask(&project, "Read", &json!({"file_path": "hello.txt"}));
    assert_eq!(answer["permissionDecision"], "deny");
    let reason = answer["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("haft could not decide") && reason.contains("config.yml"), "{reason}");
}

fn unrecordable_report_is_silent() {
    let project = Project::new("rules: 7\n");
    for name in ["PostToolUse", "PostToolUseFailure", "SessionEnd"] {
        let output = project.hook(&["claude"], &event(&project, name, "Bash", &json!({"command": "ls"})).to_string());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

fn auto_approve_excludes_native_commands() {
    let project = Project::new("approval: {auto_approve: [shell.exec, file.write]}\n");
    assert_eq!(ask(&project, "Bash", &json!({"command": "touch x"}))["permissionDecision"], "deny");
    let write = json!({"file_path": "new.txt", "content": "x"});
    assert_eq!(ask(&project, "Write", &write)["permissionDecision"], "allow");
}

/// An event of an attended Claude Code, which asks its user.
fn attended(project: &Project, name: &str, extra: &Value) -> Output {
    let mut event = event(project, name, "Write", &json!({"file_path": "new.txt", "content": "x\n"}));
    for (key, value) in extra.as_object().into_iter().flatten() {
        event[key] = value.clone();
    }
    let script = format!("CLAUDE_CODE_SESSION_ATTENDED=1 {} hook claude", crate::HAFT);
    let mut command = project.command(std::path::Path::new("/bin/sh"));
    command.args(["-c", &script]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), event.to_string().as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn refused_by_user() {
    let project = Project::new("");
    assert_eq!(said(&attended(&project, "PreToolUse", &json!({})))["permissionDecision"], "ask");
    // The user said no in the client: no report comes, and the batch of calls ends.
    attended(&project, "PostToolBatch", &json!({"tool_calls": [{"tool_name": "Write", "tool_use_id": "toolu_1"}]}));
    let outcome = project.records_of("outcome").remove(0);
    assert_eq!((outcome["success"].clone(), outcome["reported"].clone()), (json!(false), json!(false)));
    assert_eq!(outcome["error"]["message"], "Claude Code did not run it: its user did not agree");
    assert_eq!(outcome.get("approved_by"), None);
    assert!(project.records_of("interrupted").is_empty());
    assert!(project.haft(&["changes", "--json"]).as_array().unwrap().is_empty());
}

fn approved_by_user() {
    let project = Project::new("");
    attended(&project, "PreToolUse", &json!({}));
    assert!(project.records_of("outcome").is_empty(), "nobody has said yes yet");
    project.write("project/new.txt", "x\n");
    attended(&project, "PostToolUse", &json!({"tool_response": {"success": true}}));
    let outcome = project.records_of("outcome").remove(0);
    assert_eq!(outcome["approved_by"], "the user of Claude Code");
    assert!(project.run(&["undo", "--last"]).status.success());
    assert_eq!(project.text("new.txt"), None);
}

fn answered_while_waiting() {
    let project = Project::new("");
    let event = event(&project, "PreToolUse", "Bash", &json!({"command": "touch x"})).to_string();
    let answer = std::thread::scope(|scope| {
        let hook = scope.spawn(|| project.hook(&["claude", "--wait-ms", "30000"], &event));
        let id = loop {
            let waiting = project.haft(&["approvals", "--json"]);
            if let Some(id) = waiting[0]["id"].as_str() {
                break id.to_owned();
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        assert!(project.run(&["approvals", "approve", &id]).status.success());
        said(&hook.join().unwrap())
    });
    assert_eq!(answer["permissionDecision"], "allow", "{answer}");
    let intent = project.records_of("intent").remove(0);
    let reason = intent["verdict"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("approved; asked because"), "{intent:#}");
}

fn approval_is_used_once() {
    let project = Project::new("");
    let touch = json!({"command": "touch x", "description": "first words"});
    assert_eq!(ask(&project, "Bash", &touch)["permissionDecision"], "deny");
    let id = project.haft(&["approvals", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let approved = project.run(&["approvals", "approve", &id]);
    assert!(
        approved.status.success() && String::from_utf8_lossy(&approved.stdout).contains("within 10 minutes"),
        "{approved:?}"
    );
    assert_eq!(ask(&project, "Bash", &json!({"command": "touch y"}))["permissionDecision"], "deny");
    let again = json!({"command": "touch x", "description": "other words"});
    assert_eq!(ask(&project, "Bash", &again)["permissionDecision"], "allow");
    assert_eq!(ask(&project, "Bash", &again)["permissionDecision"], "deny", "a yes is for one call");
}

fn secrets_are_not_recorded() {
    let project = Project::new("approval: {auto_approve: [file.write]}\n");
    let content = "the body of a letter that nobody else reads";
    let write = json!({"file_path": "new.txt", "content": content});
    assert_eq!(ask(&project, "Write", &write)["permissionDecision"], "allow");
    let unknown = json!({"password": "hunter2-hunter2", "text": content});
    let mut config = event(&project, "PreToolUse", "mcp__x__send", &unknown);
    config["tool_use_id"] = "toolu_2".into();
    project.write("home/.config/haft/config.yml", "approval: {auto_approve: [\"native:*\"]}\n");
    assert_eq!(said(&project.hook(&["claude"], &config.to_string()))["permissionDecision"], "allow");
    let log = serde_json::to_string(&project.records()).unwrap();
    assert!(!log.contains("nobody else reads") && !log.contains("hunter2"), "{log}");
}

fn no_opinion() {
    let project = Project::new("deny: [\"*\"]\n");
    for tool in ["mcp__haft__file_read", "TodoWrite", "ExitPlanMode"] {
        let output = project.hook(&["claude"], &event(&project, "PreToolUse", tool, &json!({})).to_string());
        assert_eq!(said(&output), Value::Null, "{tool}");
    }
    assert!(project.records().is_empty(), "{:#?}", project.records());
}

fn client_ended() {
    let project = Project::new("approval: {auto_approve: [file.write]}\n");
    // A client that ends before it reports: here a process that starts the hook and is gone.
    let text = event(&project, "PreToolUse", "Write", &json!({"file_path": "new.txt", "content": "x\n"})).to_string();
    project.write("event.json", &text);
    let file = project.home().join("../event.json");
    let client = "import subprocess, sys; subprocess.run([sys.argv[1], 'hook', 'claude'], stdin=open(sys.argv[2]))";
    let python = crate::needs::need("HAFT_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = project.command(&python);
    let ran = command.args(["-c", client, crate::HAFT]).arg(&file).output().unwrap();
    assert!(String::from_utf8_lossy(&ran.stdout).contains("allow"), "{ran:?}");
    let warned = project.run(&["changes", "--json"]);
    let said = String::from_utf8(warned.stderr).unwrap();
    assert!(said.contains("has no reported outcome: the agent exited first"), "{said}");
    let interrupted = project.records_of("interrupted");
    assert_eq!((interrupted.len(), interrupted[0]["observed"].clone()), (1, json!(true)));
    assert!(project.haft(&["changes", "--json"]).as_array().unwrap().is_empty(), "it had changed nothing");
}

fn client_control_files() {
    let project = Project::new("approval: {auto_approve: [file.write, file.edit]}\nrules: [{allow: \"*\"}]\n");
    let why = "an agent client's tools, hooks or permissions";
    for path in [
        ".claude/settings.local.json",
        ".claude/settings.json",
        ".mcp.json",
        ".gemini/settings.json",
        ".codex/config.toml",
        ".cursor/hooks.json",
        ".vscode/tasks.json",
        "opencode.json",
    ] {
        let file = project.file(path);
        let edit = json!({"file_path": file, "old_string": "a", "new_string": "b"});
        let command = json!({"command": format!("echo '{{}}' > {path}")});
        let calls = [("Write", json!({"file_path": file, "content": "{}"})), ("Edit", edit), ("Bash", command)];
        assert_asked(&project, &calls, why);
    }
    let agents = json!({"file_path": project.file("AGENTS.md"), "content": "x"});
    assert_eq!(ask(&project, "Write", &agents)["permissionDecision"], "allow");
}
