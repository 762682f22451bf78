//! Tools that are files, from the command line: found, listed, called, tested, and followed while a client is served.

use crate::Env;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Stdio};

/// Answers every request with this, on a port of its own, as long as the test runs.
pub(crate) fn answering(body: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let answer =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

/// A tool that asks a port of this machine.
pub(crate) fn asks(name: &str, port: u16, more: &str) -> String {
    format!(
        "name: {name}\ndescription: Asks the service.\nkind: http\nversion: 1\n\
         inputs:\n  schema: {{type: object, additionalProperties: false, properties: {{q: {{type: string}}}}}}\n\
         outputs: {{format: json}}\nexec:\n  http: {{method: GET, url: \"http://127.0.0.1:{port}/\", query: {{q: \"${{q}}\"}}}}\n\
         permissions: {{network: [\"127.0.0.1:{port}\"], fs: {{read: [], write: []}}, secrets: {{}}}}\napproval: {{required: false}}\n{more}"
    )
}

fn own(env: &Env, name: &str, text: &str) {
    let dir = env.dir.path().join("home/.config/haft/tools").join(name);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("tool.yml"), text).unwrap();
}

#[test]
fn a_file_is_a_tool_at_once() {
    let env = Env::new();
    let port = answering(r#"{"answer": 42}"#);
    own(&env, "ask_it", &asks("ask_it", port, ""));
    assert_eq!(env.ok("ask_it", json!({"q": "x"}))["data"], json!({"answer": 42}));
    assert_eq!(env.ok("tool.call", json!({"name": "ask_it", "args": {}}))["data"], json!({"answer": 42}));
    assert_eq!(env.err("ask_it", json!({"nonsense": 1}), &[]).0, "invalid_input");
    let listed = env.ok("tool.list", json!({}));
    assert!(listed["data"]["tools"].as_array().unwrap().contains(&json!("ask_it")), "{listed}");
    let tools = env.run(&["tools"]);
    assert!(tools.stdout.contains("(http, own) Asks the service"), "{}", tools.stdout);
    let shown = env.run(&["tools", "ask_it"]).stdout;
    assert!(shown.contains(&format!("network   127.0.0.1:{port}")) && shown.contains("standing  own"), "{shown}");
    let batch = env.file("batch.jsonl", "{\"tool\": \"ask_it\"}\n");
    assert_eq!(env.run(&["batch", batch.to_str().unwrap()]).json()["data"], json!({"answer": 42}));
    let explained = env.run(&["explain", "ask_it", "q=x", "--json"]).json();
    assert_eq!(explained["verdict"]["by"], "manifest", "{explained}");
}

#[test]
fn a_bad_file_is_told_where_tools_are_listed_and_nowhere_else() {
    let env = Env::new();
    let port = answering("1");
    own(&env, "good", &asks("good", port, ""));
    own(&env, "bad", "name: bad\nkind: nonsense\n");
    let tools = env.run(&["tools"]);
    assert!(tools.stderr.contains("tools/bad/tool.yml:"), "{}", tools.stderr);
    assert!(tools.stdout.contains("good"), "{}", tools.stdout);
    let report = env.run(&["tools", "--json"]).json();
    assert_eq!(report["manifests"]["tools"].as_array().unwrap().len(), 2, "{report}");
    let good = env.run(&["call", "good"]);
    assert_eq!((good.code, good.stderr.as_str()), (0, ""), "one call reads one manifest");
    let (kind, said, code) = env.err("bad", json!({}), &[]);
    assert!(kind == "invalid_input" && code == 2 && said.contains("tools/bad/tool.yml:"), "{said}");
    own(&env, "worse", "name: [");
    let one = env.run(&["tools", "bad"]);
    assert!(one.code == 2 && one.stderr.contains("tools/bad/tool.yml:"), "{}", one.stderr);
    assert!(!one.stderr.contains("worse"), "one is asked about: {}", one.stderr);
    let doctor = env.run(&["doctor"]).stdout;
    assert!(doctor.contains("care  tools") && doctor.contains("tools/bad/tool.yml:"), "{doctor}");
}

#[test]
fn a_manifests_name_can_be_in_a_list() {
    let env = Env::new();
    let port = answering("1");
    own(&env, "web_search", &asks("web_search", port, ""));
    assert_eq!(env.ok("web_search", json!({"q": "x"}))["data"], 1, "an exact name is stronger than a spelling");
    let tools = env.run(&["tools"]);
    assert!(
        tools.stderr.contains("not told about web.search") && !tools.stdout.contains("web.search"),
        "{}",
        tools.stderr
    );
    env.config("deny: [web_search]\n");
    assert_eq!(env.err("web_search", json!({}), &[]).2, 3);
    let tools = env.run(&["tools"]);
    assert!(!tools.stderr.contains("no tool is named"), "it is a tool, and no mistake: {}", tools.stderr);
}

#[test]
fn a_pipeline_is_a_tool_whose_calls_are_decided_one_by_one() {
    let env = Env::new();
    env.file("from.txt", "words");
    own(
        &env,
        "copy",
        "name: copy\ndescription: Copies a file.\nkind: pipeline\nversion: 1\n\
         inputs:\n  schema: {type: object, required: [to], properties: {to: {type: string}}}\noutputs: {format: text}\n\
         exec:\n  pipeline:\n    steps:\n\
         \x20     - {id: look, tool: file.read, args: {path: from.txt}}\n\
         \x20     - {id: put, tool: file.write, args: {path: \"${to}\", content: \"went: ${steps.look.success}\"}}\n\
         permissions: {network: false, fs: {read: [], write: []}, secrets: {}}\napproval: {required: false}\n",
    );
    let (outcome, code) = env.call("copy", json!({"to": "a.txt"}), &["--no-input"]);
    assert_eq!(code, 4, "the write is asked about: {outcome}");
    assert!(outcome["error"]["message"].as_str().unwrap().starts_with("step `put` (file.write) failed"), "{outcome}");
    env.ok("copy", json!({"to": "a.txt"}));
    assert_eq!(env.read("a.txt"), "went: true");
    let (dry, code) = env.call("copy", json!({"to": "b.txt"}), &["--dry-run"]);
    assert!(code == 1 && dry["error"]["message"].as_str().unwrap().contains("cannot be tried"), "{dry}");
    let intents = env.records().into_iter().filter(|record| record["body"]["kind"] == "intent").count();
    assert_eq!(intents, 5, "each call is recorded as itself");
}

#[test]
fn examples_are_run_and_compared() {
    let env = Env::new();
    let port = answering(r#"{"answer": 42, "more": [1, 2]}"#);
    let examples = |expected: &str| {
        format!(
            "examples:\n  - description: Asks\n    params: {{q: x}}\n    expected_output: |\n      {expected}\n  - params: {{}}\n"
        )
    };
    own(&env, "right", &asks("right", port, &examples(r#"{"answer": 42, "more": [1, ...]}"#)));
    own(&env, "none", &asks("none", port, ""));
    let ran = env.run(&["test"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("pass  right example 1: Asks") && ran.stdout.contains("pass  right example 2"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("none has no examples") && ran.stderr.contains("2 passed, 0 failed"), "{}", ran.stderr);
    own(&env, "wrong", &asks("wrong", port, &examples(r#"{"answer": 43, "more": "..."}"#)));
    let ran = env.run(&["test", "wrong", "--json"]);
    let report = ran.json();
    assert_eq!((ran.code, &report["failed"], &report["passed"]), (1, &json!(1), &json!(1)), "{report}");
    let why = report["examples"][0]["why"].as_str().unwrap();
    assert!(why.contains("answer") && why.contains("43") && why.contains("42"), "{why}");
    for command in ["test", "trust", "lint", "tools", "call"] {
        assert_eq!(env.run(&[command, "nothing"]).code, 2, "{command}");
    }
    env.file(".haft/tools/new/tool.yml", asks("new", port, &examples("...")));
    for named in [&["test", "new"][..], &["test"]] {
        let ran = env.run(named);
        assert!(ran.code == 1 && ran.stdout.contains("FAIL  new\n"), "{}", ran.stdout);
        assert!(ran.stdout.contains("nobody has accepted it; run `haft trust new`"), "{}", ran.stdout);
    }
}

#[test]
fn a_new_tool_of_every_kind_passes_or_is_skipped() {
    let env = Env::new();
    for (kind, passed, skipped) in
        [("http", 0, 1), ("command", 2, 0), ("python", 2, 0), ("mcp", 0, 1), ("pipeline", 1, 0)]
    {
        let name = format!("my_{kind}");
        assert_eq!(env.run(&["new", &name, "--kind", kind]).code, 0);
        assert_eq!(env.run(&["trust", &name, "--yes"]).code, 0);
        let ran = env.run(&["test", &name, "--json"]);
        let report = ran.json();
        assert_eq!((ran.code, &report["failed"], &report["passed"]), (0, &json!(0), &json!(passed)), "{report:#}");
        assert_eq!(report["skipped"].as_array().unwrap().len(), skipped, "{report:#}");
    }
    let ran = env.run(&["test", "my_http", "my_mcp"]);
    let why = "skip  my_http example 1: without an `expected_output` nothing is sent to api.github.com";
    assert!(ran.stderr.contains(why) && ran.stderr.contains("`haft mcp add documents`"), "{}", ran.stderr);
    assert!(ran.code == 0 && ran.stderr.contains("0 passed, 0 failed, 2 skipped"), "{}", ran.stderr);
}

/// The first block of the document, line by line as it stands there.
#[test]
fn the_documents_first_block_runs_as_shown() {
    let env = Env::new();
    let text = include_str!("../../../../docs/write-a-tool.md");
    let block = text.split("```").nth(1).unwrap();
    let lines: Vec<&str> = block.lines().filter_map(|line| line.strip_prefix("haft ")).collect();
    assert_eq!(lines.len(), 5, "{block}");
    for line in lines {
        let mut words: Vec<&str> = line.split('#').next().unwrap().split_whitespace().collect();
        if words[0] == "trust" {
            // There is nobody to ask here, as the comment beside it says.
            words.push("--yes");
        }
        let ran = env.run(&words);
        assert_eq!(ran.code, 0, "{line}: {}{}", ran.stdout, ran.stderr);
    }
}

/// A client that speaks to `haft mcp` line by line.
struct Client {
    child: Child,
    lines: BufReader<ChildStdout>,
    next: u64,
    changed: usize,
}

impl Client {
    fn start(env: &Env) -> Self {
        let mut child =
            env.command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, lines, next: 0, changed: 0 };
        let info = json!({"name": "test", "version": "1"});
        client.ask("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}));
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "it went away");
        let message: Value = serde_json::from_str(&line).unwrap();
        self.changed += usize::from(message["method"] == "notifications/tools/list_changed");
        message
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let heard = self.hear();
            if heard["id"] == id {
                return heard["result"].clone();
            }
        }
    }

    /// The declaration of a tool, if it is told about.
    fn tool(&mut self, name: &str) -> Option<Value> {
        let list = self.ask("tools/list", json!({}));
        list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).cloned()
    }

    fn until_changed(&mut self) {
        let before = self.changed;
        while self.changed == before {
            self.hear();
        }
    }

    fn call(&mut self, name: &str) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": {}}))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn a_client_hears_of_what_changes() {
    let env = Env::new();
    let port = answering(r#""served""#);
    let mut client = Client::start(&env);
    assert_eq!(client.tool("late"), None);
    own(&env, "late", &asks("late", port, ""));
    client.until_changed();
    assert_eq!(
        client.tool("late").unwrap()["description"],
        "Asks the service.",
        "it is told about within the usual budget"
    );
    assert!(client.call("late").to_string().contains("served"));
    // Another declaration is served, and a call never meets the one before.
    let other = asks("late", port, "")
        .replace("Asks the service.", "Asks otherwise.")
        .replace("q: {type: string}", "z: {type: string}");
    own(&env, "late", &other.replace("query: {q: \"${q}\"}", "query: {z: \"${z}\"}"));
    client.until_changed();
    let now = client.tool("late").unwrap();
    assert_eq!(now["description"], "Asks otherwise.");
    assert!(now["inputSchema"]["properties"].get("z").is_some(), "{now}");
    // What is broken stays as it was.
    own(&env, "late", "name: late\nkind: [");
    assert!(client.call("late").to_string().contains("served"));
    let mut said = BufReader::new(client.child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let broken = said.find(|line| line.contains("late/tool.yml:2:")).unwrap();
    assert!(broken.contains("the last good version is used"), "{broken}");
    std::fs::remove_dir_all(env.dir.path().join("home/.config/haft/tools/late")).unwrap();
    client.until_changed();
    assert_eq!(client.tool("late"), None);
}
