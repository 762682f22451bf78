//! agent.delegate with agents that are scripts: they print what the real ones print, and try what they must not.

use crate::Env;
use crate::process::until;
use crate::shell::confines;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const KEY: &str = "sk-test-4711-own";

/// What the last line of a script is: one of claude's results.
const DONE: &str = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"All done.","session_id":"s-1","total_cost_usd":0.25}'"#;

fn scene() -> Option<Env> {
    let env = Env::new();
    confines(&env).then_some(env)
}

impl Env {
    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Installs an agent: a shell script.
    fn install(&self, name: &str, script: &str) {
        let path = self.dir.path().join("bin").join(name);
        write(&path, &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A command that finds what is installed, and knows keys.
    fn with_agents(&self, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.dir.path().join("bin").display()))
            .env("ANTHROPIC_API_KEY", KEY)
            .env("OPENAI_API_KEY", "sk-test-4711-other");
        command
    }

    fn delegated(&self, args: Value, flags: &[&str]) -> Value {
        let args = args.to_string();
        let output =
            self.with_agents(&[&["call", "agent.delegate", &args, "--json"], flags].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{}", String::from_utf8_lossy(&output.stderr)))
    }

    fn delegate(&self, args: Value) -> Value {
        self.delegated(args, &["--yes"])
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn text(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| format!("{}: {error}", path.display()))
}

/// What it said, without the marks around what nobody vouches for.
fn words(outcome: &Value) -> Vec<&str> {
    let lines: Vec<&str> = outcome["output"].as_str().unwrap().lines().collect();
    assert!(lines[0].starts_with("<untrusted"), "{outcome:#}");
    lines[1..lines.len() - 1].to_vec()
}

/// The directory of claude's conversations about this project.
fn claudes(env: &Env) -> String {
    let root = env.root().canonicalize().unwrap().display().to_string();
    let name: String = root.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!(".claude/projects/{name}")
}

fn message(outcome: &Value) -> &str {
    outcome["error"]["message"].as_str().unwrap_or("nothing went wrong")
}

#[test]
fn a_task_goes_in_and_words_a_session_and_changes_come_out() {
    let Some(env) = scene() else { return };
    env.file("a.txt", "before\n");
    let script = "printf '%s|' \"$@\" > args.txt; cat > task.txt; echo after > a.txt";
    env.install("claude", &format!("{script}\n{DONE}"));
    let task = "--help; $(touch evil) `id` \"quoted\"\nsecond line";
    let outcome = env.delegate(json!({"task": task, "session": "s-0", "model": "opus"}));
    assert_eq!(outcome["success"], true, "{outcome:#}");
    assert_eq!(words(&outcome), ["All done.", "", "[claude can go on with this as session s-1]"]);
    let data = &outcome["data"];
    assert_eq!((&data["agent"], &data["session"], &data["exit_code"]), (&json!("claude"), &json!("s-1"), &json!(0)));
    assert_eq!(data["cost_usd"], 0.25);
    let mut changed: Vec<&str> = data["changed"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    changed.sort_unstable();
    assert_eq!(changed, ["a.txt", "args.txt", "task.txt"]);
    assert_eq!(outcome["labels"], json!(["untrusted"]), "nobody vouches for what it says");
    assert_eq!(env.read("task.txt"), task, "no shell has read it");
    let flags = "-p|--output-format|json|--permission-mode|bypassPermissions|--resume|s-0|--model|opus|";
    assert_eq!(env.read("args.txt"), flags);
    assert_eq!(env.read("a.txt"), "after\n");
    assert_eq!(outcome["undo"]["available"], true, "{outcome:#}");
    assert_eq!(env.run(&["undo", outcome["call_id"].as_str().unwrap()]).code, 0);
    assert_eq!(env.read("a.txt"), "before\n");
    assert!(!env.root().join("task.txt").exists());
}

#[test]
fn of_its_own_directory_conversations_about_the_project_stay_and_nothing_else() {
    let Some(env) = scene() else { return };
    let (home, own) = (env.home(), claudes(&env));
    let root = env.root().canonicalize().unwrap().display().to_string();
    let memory = format!("{own}/memory/MEMORY.md");
    let known = json!({"n": "mine", "projects": {root: {"here": 1}, "/other": {"secret": "theirs"}}}).to_string();
    for (path, content) in [
        (".claude/settings.json", "mine"),
        (".claude/.credentials.json", "login"),
        (".claude.json", known.as_str()),
        (".claude/history.jsonl", "theirs"),
        (".claude/projects/-other/s-0.jsonl", "theirs"),
        (".claude/projects/-other/memory/MEMORY.md", "theirs"),
        (memory.as_str(), "remembered"),
        (".ssh/id_ed25519", "private"),
        (".codex/auth.json", "another's login"),
    ] {
        write(&home.join(path), content);
    }
    let script = "cd \"$HOME\"; P=\"$OLDPWD\"\n\
        cat .claude/settings.json .claude/.credentials.json OWN/memory/MEMORY.md > \"$P/seen.txt\"; cp .claude.json \"$P/known.txt\"\n\
        ls .claude/projects > \"$P/projects.txt\"\n\
        echo turn > OWN/s-1.jsonl; printf 'new login' > .claude/.credentials.json; echo evil > OWN/memory/MEMORY.md\n\
        mkdir -p .claude/projects/-other/memory; echo evil > .claude/projects/-other/memory/MEMORY.md; echo evil > .claude/projects/x\n\
        echo evil > .claude/settings.json && echo evil > .claude/hooks.sh && echo evil > .claude.json && echo fine > \"$P/wrote.txt\"\n\
        mv OWN/memory OWN/old; rm -rf OWN/memory; ln -s /etc OWN/memory\n\
        echo evil > other; mkdir -p .config/autostart; echo evil > .config/autostart/x; echo evil > .bashrc\n\
        for file in .ssh/id_ed25519 .codex/auth.json .local/share/haft/haft.db .claude/history.jsonl .claude/projects/-other/s-0.jsonl; do cat $file; done > \"$P/stolen.txt\" 2>/dev/null\n\
        env | cut -d= -f1 | sort | tr '\\n' ' ' > \"$P/env.txt\"; echo \"$ANTHROPIC_API_KEY\" >&2"
        .replace("OWN", &own);
    env.install("claude", &format!("{script}\n{DONE}"));
    let outcome = env.delegate(json!({"task": "x"}));
    assert_eq!(outcome["success"], true, "{outcome:#}");
    assert_eq!(env.read("seen.txt"), "mineloginremembered", "it sees its settings, its login and what it remembers");
    assert_eq!(env.read("projects.txt").lines().count(), 1, "and nothing of other projects");
    assert!(env.read("known.txt").contains("here") && !env.read("known.txt").contains("theirs"));
    assert_eq!(env.read("wrote.txt"), "fine\n", "and nothing keeps it from writing them");
    let kept = |path: &str| text(home.join(path));
    let turn = format!("{own}/s-1.jsonl");
    assert_eq!((kept(".claude/settings.json"), kept(".claude.json")), ("mine".to_owned(), known));
    assert_eq!((kept(&turn), kept(&memory)), ("turn\n".to_owned(), "remembered".to_owned()));
    assert_eq!(kept(".claude/.credentials.json"), "login");
    assert_eq!(kept(".claude/projects/-other/memory/MEMORY.md"), "theirs");
    for gone in ["other", ".claude/projects/x", ".claude/hooks.sh", ".bashrc", ".config/autostart"] {
        assert!(!home.join(gone).exists(), "{gone}");
    }
    assert_eq!(env.read("stolen.txt"), "");
    let names = env.read("env.txt");
    assert!(names.contains("ANTHROPIC_API_KEY") && !names.contains("OPENAI_API_KEY"), "{names}");
    assert!(!outcome.to_string().contains(KEY), "{outcome:#}");
    assert_eq!(env.run(&["undo", outcome["call_id"].as_str().unwrap()]).code, 0);
    assert_eq!(kept(&turn), "turn\n", "a conversation that was had is not taken back");
}

#[test]
fn it_reaches_its_makers_hosts_and_nobody_else() {
    let Some(env) = scene() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let program = format!(
        "import json, os, socket\n\
         def tried(work):\n\
         \x20   try: return work()\n\
         \x20   except OSError as error: return 'no'\n\
         def dial(host, port):\n\
         \x20   return tried(lambda: socket.create_connection((host, port), 3) and 'reached')\n\
         def ask(host):\n\
         \x20   way = os.environ['https_proxy'].split('//')[1].split(':')\n\
         \x20   line = socket.create_connection((way[0], int(way[1])), 3)\n\
         \x20   line.sendall(f'CONNECT {{host}} HTTP/1.1\\r\\nHost: {{host}}\\r\\n\\r\\n'.encode())\n\
         \x20   return line.recv(100).decode().split()[1]\n\
         said = [dial('127.0.0.1', {port}), dial('192.0.2.1', 443), dial('169.254.169.254', 80), dial('example.com', 443)]\n\
         said += [tried(lambda: ask('example.com:443')), tried(lambda: ask('127.0.0.1:{port}'))]\n\
         said += [tried(lambda: ask('api.openai.com:443')), tried(lambda: ask('oauth2.googleapis.com:22'))]\n\
         names = sorted(line.split()[1] for line in open('/etc/hosts') if 'localhost' not in line and line.strip())\n\
         print(json.dumps({{'session_id': 'g-1', 'response': ' '.join(said + names)}}))\n"
    );
    write(&env.dir.path().join("bin/probe.py"), &program);
    env.install("gemini", "exec python3 \"$(dirname \"$0\")/probe.py\"");
    let outcome = env.delegate(json!({"task": "x", "agent": "gemini"}));
    let names =
        "accounts.google.com cloudcode-pa.googleapis.com generativelanguage.googleapis.com oauth2.googleapis.com";
    assert_eq!(words(&outcome)[0], format!("no no no no 403 403 403 403 {names}"), "{outcome:#}");
    assert_eq!(outcome["data"]["session"], "g-1");
    assert!(outcome["warnings"].to_string().contains("example.com"), "what was refused is told: {outcome:#}");
}

#[test]
fn the_first_that_is_installed_is_asked_unless_one_is_named() {
    let Some(env) = scene() else { return };
    let lines = concat!(
        "printf '%s|' \"$@\" > args.txt; D=\"$HOME/.codex/sessions/2026/01/02\"; F=\"$D/rollout-1-t-9.jsonl\"; mkdir -p \"$D\"\n",
        "test -s \"$F\" || printf '{\"payload\":{\"cwd\":\"%s\"}}\\n' \"$PWD\" > \"$F\"; echo turn >> \"$F\"\n",
        "echo '{\"type\":\"thread.started\",\"thread_id\":\"t-9\"}'\n",
        "echo '{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\",\"text\":\"Mended.\"}}'\n",
        "echo '{\"type\":\"turn.completed\",\"usage\":{}}'"
    );
    env.install("codex", lines);
    env.install("gemini", "echo '{\"response\":\"Hello.\"}'");
    let outcome = env.delegate(json!({"task": "x"}));
    assert_eq!((words(&outcome)[0], &outcome["data"]["session"]), ("Mended.", &json!("t-9")), "{outcome:#}");
    let fixed = "exec|--json|--skip-git-repo-check|--dangerously-bypass-approvals-and-sandbox|";
    assert_eq!(env.read("args.txt"), format!("{fixed}-|"));
    let outcome = env.delegate(json!({"task": "x", "session": "t-9"}));
    assert_eq!(outcome["success"], true, "{outcome:#}");
    assert_eq!(env.read("args.txt"), format!("{fixed}resume|t-9|-|"));
    let said = text(env.home().join(".codex/sessions/2026/01/02/rollout-1-t-9.jsonl"));
    assert_eq!(said.lines().filter(|line| *line == "turn").count(), 2, "it goes on where it was: {said}");
    let outcome = env.delegate(json!({"task": "x", "agent": "gemini"}));
    assert_eq!((words(&outcome), &outcome["data"]["session"]), (vec!["Hello."], &Value::Null), "{outcome:#}");
}

#[test]
fn an_agent_is_installed_outside_the_project_or_not_at_all() {
    let Some(env) = scene() else { return };
    let missing = env.delegate(json!({"task": "x", "agent": "claude"}));
    assert_eq!(missing["error"]["kind"], "not_found", "{missing:#}");
    assert_eq!(message(&missing), "the agent `claude` is not installed");
    assert!(missing["error"]["hint"].as_str().unwrap().contains("npm install -g @anthropic-ai/claude-code"));
    assert_eq!(message(&env.delegate(json!({"task": "x"}))), "no agent is installed that could be asked");
    let own = env.file("bin/claude", format!("#!/bin/sh\n{DONE}\n"));
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = env.command(&["call", "agent.delegate", r#"{"task":"x"}"#, "--json", "--yes"]);
    let output = command.env("PATH", format!("{}:/usr/bin:/bin", own.parent().unwrap().display())).output().unwrap();
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["error"]["kind"], "not_found", "{outcome:#}");
    // Nor is one that a link leads to, or a link through the project to what was installed.
    let (bin, fine) = (env.dir.path().join("bin"), env.dir.path().join("opt/claude"));
    write(&fine, &format!("#!/bin/sh\n{DONE}\n"));
    std::fs::set_permissions(&fine, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(&fine, own.with_file_name("through")).unwrap();
    std::fs::create_dir_all(&bin).unwrap();
    for target in [own.clone(), own.with_file_name("through")] {
        let _ = std::fs::remove_file(bin.join("claude"));
        std::os::unix::fs::symlink(&target, bin.join("claude")).unwrap();
        let outcome = env.delegate(json!({"task": "x"}));
        assert_eq!(outcome["error"]["kind"], "not_found", "{}: {outcome:#}", target.display());
    }
    // A script is read by whoever it names.
    std::fs::remove_file(bin.join("claude")).unwrap();
    std::fs::copy("/bin/sh", own.with_file_name("sh")).unwrap();
    write(&bin.join("claude"), &format!("#!{}\n{DONE}\n", own.with_file_name("sh").display()));
    std::fs::set_permissions(bin.join("claude"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(env.delegate(json!({"task": "x"}))["error"]["kind"], "not_found");
    std::fs::remove_file(bin.join("claude")).unwrap();
    std::os::unix::fs::symlink(&fine, bin.join("claude")).unwrap();
    assert_eq!(env.delegate(json!({"task": "x"}))["success"], true, "any other link is the user's own");
}

#[test]
fn codex_keeps_its_new_conversations_about_the_project_and_goes_on_with_no_others() {
    let Some(env) = scene() else { return };
    let sessions = env.home().join(".codex/sessions/2026/01/01");
    let theirs = "{\"payload\":{\"cwd\":\"/other\"}}\ntheirs\n";
    write(&sessions.join("rollout-1-theirs.jsonl"), theirs);
    write(&env.home().join(".codex/auth.json"), "login");
    let script = "cd \"$HOME/.codex\"; find sessions -type f | wc -l > \"$OLDPWD/seen.txt\"; D=sessions/2026/01/01; mkdir -p $D\n\
        echo evil > auth.json; echo evil > config.toml; echo evil > sessions/top.jsonl; echo evil > $D/rollout-1-theirs.jsonl\n\
        printf '{\"payload\":{\"cwd\":\"/other\"}}\\nevil\\n' > $D/rollout-2-planted.jsonl\n\
        printf '{\"payload\":{\"cwd\":\"%s\"}}\\nmine\\n' \"$OLDPWD\" > $D/rollout-3-mine.jsonl; ln -s /etc/passwd $D/rollout-4-link.jsonl\n\
        echo '{\"type\":\"thread.started\",\"thread_id\":\"mine\"}'; echo '{\"type\":\"turn.completed\",\"usage\":{}}'";
    env.install("codex", script);
    let outcome = env.delegate(json!({"task": "x", "agent": "codex"}));
    assert_eq!(outcome["success"], true, "{outcome:#}");
    assert_eq!(env.read("seen.txt").trim(), "0", "it sees no conversations");
    assert_eq!(text(sessions.join("rollout-1-theirs.jsonl")), theirs);
    assert!(text(sessions.join("rollout-3-mine.jsonl")).ends_with("mine\n"));
    let names = std::fs::read_dir(&sessions).unwrap().count();
    assert_eq!(names, 2, "what is about another project, or about nothing, is not kept");
    assert_eq!(text(env.home().join(".codex/auth.json")), "login");
    assert!(!env.home().join(".codex/config.toml").exists() && !env.home().join(".codex/sessions/top.jsonl").exists());
    let other = env.delegate(json!({"task": "x", "agent": "codex", "session": "theirs"}));
    assert_eq!(other["error"]["kind"], "not_found", "{other:#}");
    assert_eq!(message(&other), "codex has no session `theirs` about this project");
}

#[test]
fn gemini_keeps_no_programs() {
    let Some(env) = scene() else { return };
    let tmp = env.home().join(".gemini/tmp");
    write(&tmp.join("bin/rg"), "ripgrep");
    write(&tmp.join("other/chats/c.json"), "theirs");
    write(&tmp.join("named/chats/c.json"), "ours");
    let root = env.root().canonicalize().unwrap().display().to_string();
    write(&env.home().join(".gemini/projects.json"), &json!({"projects": {root: "named"}}).to_string());
    let script = "cd \"$HOME/.gemini/tmp\"; cat bin/rg named/chats/c.json > \"$OLDPWD/seen.txt\"; cat other/chats/c.json > \"$OLDPWD/stolen.txt\" 2>/dev/null\n\
        echo evil > bin/rg && echo evil > bin/node && echo evil > loose; mkdir -p other/chats; echo evil > other/chats/c.json; echo more >> named/chats/c.json\n\
        echo '{\"response\":\"Hello.\"}'";
    env.install("gemini", script);
    let outcome = env.delegate(json!({"task": "x", "agent": "gemini"}));
    assert_eq!(outcome["success"], true, "{outcome:#}");
    assert_eq!((env.read("seen.txt"), env.read("stolen.txt")), ("ripgrepours".to_owned(), String::new()));
    assert_eq!((text(tmp.join("bin/rg")), text(tmp.join("other/chats/c.json"))), ("ripgrep".into(), "theirs".into()));
    assert_eq!(text(tmp.join("named/chats/c.json")), "oursmore\n");
    assert!(!tmp.join("bin/node").exists() && !tmp.join("loose").exists());
}

#[test]
fn whoever_decides_later_is_told_which_program_and_what_it_has() {
    let Some(env) = scene() else { return };
    env.install("claude", &format!("touch ran\n{DONE}"));
    let asked = env.delegated(json!({"task": "x"}), &["--no-input"]);
    let id = asked["call_id"].as_str().unwrap();
    let program = env.dir.path().join("bin/claude").canonicalize().unwrap();
    let said =
        format!("claude is {}; it reads and writes the project, reaches api.anthropic.com:443", program.display());
    let shown = env.with_agents(&["approvals", "show", id]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    for what in [said.as_str(), "console.anthropic.com:443", &claudes(&env)] {
        assert!(shown.contains(what), "{what}: {shown}");
    }
    let listed = env.with_agents(&["approvals", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains(&said), "it is stored with the question");
    // Another program is another question.
    std::fs::rename(env.dir.path().join("bin"), env.dir.path().join("opt")).unwrap();
    let path = format!("{}:/usr/bin:/bin", env.dir.path().join("opt").display());
    let mut approve = env.with_agents(&["approvals", "approve", id, "--yes"]);
    let approved = approve.env("PATH", path).output().unwrap();
    assert!(!approved.status.success() && !env.root().join("ran").exists(), "{approved:?}");
}

#[test]
fn what_cannot_be_read_and_what_failed_is_told() {
    let Some(env) = scene() else { return };
    env.install("claude", "echo changed > a.txt; echo 'Welcome to the future'");
    let odd = env.delegate(json!({"task": "x"}));
    assert_eq!(odd["error"]["kind"], "failed", "{odd:#}");
    assert_eq!(message(&odd), "what claude printed is in none of the forms that are known: Welcome to the future");
    assert_eq!(env.read("a.txt"), "changed\n", "what it did it did, and it can be undone");
    assert_eq!(env.run(&["undo", odd["call_id"].as_str().unwrap()]).code, 0);
    assert!(!env.root().join("a.txt").exists());
    env.install("claude", "true");
    assert!(message(&env.delegate(json!({"task": "x"}))).ends_with("known: nothing"));
    env.install("claude", "echo 'no such flag' >&2; exit 3");
    let failed = env.delegate(json!({"task": "x"}));
    assert_eq!(message(&failed), "claude failed: exit status 3: no such flag");
    assert_eq!(failed["data"]["exit_code"], 3);
    let login = r#"{"type":"result","is_error":true,"result":"Please run /login","session_id":"s-2"}"#;
    env.install("claude", &format!("echo '{login}'; exit 1"));
    let failed = env.delegate(json!({"task": "x"}));
    assert_eq!(message(&failed), "claude failed: exit status 1: Please run /login");
    assert_eq!(failed["data"]["session"], "s-2", "it can be gone on with all the same");
    env.install("claude", &format!("echo '{login}'"));
    assert_eq!(message(&env.delegate(json!({"task": "x"}))), "claude says that it failed: Please run /login");
}

#[test]
fn one_that_takes_too_long_or_is_cancelled_leaves_nothing() {
    let Some(env) = scene() else { return };
    env.file("a.txt", "before\n");
    let own = claudes(&env);
    env.install("claude", &format!("echo after > a.txt; touch \"$HOME/{own}/begun\"; sleep 471.1"));
    let late = env.delegate(json!({"task": "x", "timeout_ms": 700}));
    assert_eq!(late["error"]["kind"], "timeout", "{late:#}");
    assert!(message(&late).starts_with("claude was ended after 700 ms"), "{late:#}");
    assert_eq!(env.read("a.txt"), "before\n");
    let begun = env.home().join(own).join("begun");
    std::fs::remove_file(&begun).unwrap();
    let mut command = env.with_agents(&["call", "agent.delegate", r#"{"task":"x"}"#, "--json", "--yes"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until(|| begun.exists());
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let outcome: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(outcome["error"]["kind"], "cancelled", "{outcome:#}");
    assert_eq!(env.read("a.txt"), "before\n");
    let marker = env.dir.path().join("bin/claude").display().to_string();
    let lines = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    assert_eq!(lines.filter(|line| String::from_utf8_lossy(line).contains(&marker)).count(), 0, "nothing outlives it");
}

#[test]
fn it_is_asked_about_with_all_that_it_may_reach_and_never_tried() {
    let Some(env) = scene() else { return };
    env.install("claude", &format!("touch ran\n{DONE}"));
    let asked = env.delegated(json!({"task": "x"}), &["--no-input"]);
    assert_eq!(asked["error"]["kind"], "approval_required", "{asked:#}");
    let output = env.with_agents(&["explain", "agent.delegate", r#"{"task":"x"}"#, "--json"]).output().unwrap();
    let explained: Value = serde_json::from_slice(&output.stdout).unwrap();
    let hold = &explained["hold"];
    assert_eq!((&explained["verdict"]["decision"], &hold["network"]), (&json!("ask"), &json!(true)), "{explained:#}");
    assert!(hold["permissions"]["network"].as_str().unwrap().starts_with("api.anthropic.com:443, claude.ai:443"));
    assert!(hold["permissions"]["write"].as_str().unwrap().contains(".claude/projects"), "{hold:#}");
    assert!(hold["gap"].as_str().unwrap().contains("stays told"), "{hold:#}");
    let dry = || env.delegated(json!({"task": "x"}), &["--dry-run", "--yes"]);
    assert_eq!(dry()["error"]["kind"], "approval_required", "trying it would reach somebody");
    env.config("approval: {auto_approve: [\"agent.delegate\"]}\n");
    assert!(message(&dry()).contains("cannot be tried without doing it"), "{:#}", dry());
    env.config("profile: coding\n");
    let coding = env.delegate(json!({"task": "x"}));
    assert_eq!(coding["success"], false, "who may run no programs may not delegate: {coding:#}");
    env.config("web: {network: false}\n");
    let closed = env.delegate(json!({"task": "x"}));
    assert_eq!(closed["error"]["kind"], "confinement", "{closed:#}");
    assert!(message(&closed).starts_with("the configuration lets it reach nobody"), "{closed:#}");
    assert!(!env.root().join("ran").exists() && !env.home().join(".claude").exists(), "nothing has happened");
}

#[test]
fn nothing_is_lent_through_a_link_and_nothing_becomes_an_option() {
    let Some(env) = scene() else { return };
    env.install("claude", &format!("touch ran\n{DONE}"));
    for args in [json!({"task": "x", "session": "--help"}), json!({"task": "x", "model": "-m"})] {
        assert_eq!(env.delegate(args)["error"]["kind"], "invalid_input");
    }
    std::fs::create_dir_all(env.home().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", env.home().join(".claude")).unwrap();
    let linked = env.delegate(json!({"task": "x"}));
    assert!(message(&linked).contains("there is a link on the way to it"), "{linked:#}");
    assert!(!env.root().join("ran").exists());
}

#[test]
fn glee_names_it_in_its_own_words() {
    let Some(env) = scene() else { return };
    env.install("claude", &format!("printf '%s|' \"$@\" > args.txt; cat > task.txt\n{DONE}"));
    let args = json!({"agent": "claude", "prompt": "mend it", "session_id": "s-1"}).to_string();
    let output =
        env.with_agents(&["call", "glee_task", &args, "--dialect", "glee", "--json", "--yes"]).output().unwrap();
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["success"], true, "{outcome:#}");
    assert_eq!(env.read("task.txt"), "mend it");
    assert!(env.read("args.txt").contains("|--resume|s-1|"));
}
