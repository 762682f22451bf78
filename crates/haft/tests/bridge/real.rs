//! The servers that others wrote: the reference servers in TypeScript, and one in Python.

use super::{Env, Installed, python, said};
use serde_json::{Value, json};

fn node(found: &Installed, server: &str, args: &str) -> String {
    let Installed { node, modules, .. } = found;
    format!(
        "{{command: {node}, args: [{modules}/@modelcontextprotocol/{server}/dist/index.js{args}], read: [{modules}]"
    )
}

pub(crate) fn server_everything_serves_what_it_has() {
    let found = Installed::find();
    let env = Env::new().server("every", &format!("{}}}", node(&found, "server-everything", ", stdio")));
    let ran = env.run(&["mcp", "test", "every", "--json"]).json();
    assert_eq!(ran["state"], "ready", "{ran:#}");
    assert_eq!(said(&env.ok("mcp:every:echo", json!({"message": "héllo"}))), "Echo: héllo");
    let weather = env.ok("mcp:every:get-structured-content", json!({"location": "New York"}));
    assert!(weather["data"]["temperature"].is_number(), "{weather:#}");
    let image = env.ok("mcp:every:get-tiny-image", json!({}));
    let kinds: Vec<&Value> =
        image["content"]["blocks"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "image", "text"], "{image:#}");
    assert!(image["output"].as_str().unwrap().contains("[image: image/png"), "{image:#}");
    let long = env.ok("mcp:every:trigger-long-running-operation", json!({"duration": 1, "steps": 4}));
    assert!(long["output"].as_str().unwrap().contains("completed"), "{long:#}");
    let roots = env.ok("mcp:every:get-roots-list", json!({}));
    let root = env.root().canonicalize().unwrap();
    assert!(roots["output"].as_str().unwrap().contains(&format!("file://{}", root.display())), "{roots:#}");
    let asked = env.ok("mcp:every:trigger-elicitation-request", json!({}));
    assert!(asked["output"].as_str().unwrap().to_lowercase().contains("declin"), "{asked:#}");
    let (outcome, code) = env.call("mcp:every:get-sum", json!({"a": "two"}), &["--yes"]);
    assert_eq!((code, &outcome["error"]["kind"]), (2, &json!("invalid_input")), "haft checks before the server does");
    let (outcome, _) = env.call("mcp__every__get-sum", json!({"a": 2, "b": 3}), &["--yes"]);
    assert_eq!(said(&outcome), "The sum of 2 and 3 is 5.", "as models name it");
}

pub(crate) fn server_filesystem_reads_the_project_and_writes_where_it_may() {
    let found = Installed::find();
    let entry = format!("{}, write: [out]}}", node(&found, "server-filesystem", ", ."));
    let env = Env::new().server("files", &entry);
    std::fs::create_dir(env.root().join("out")).unwrap();
    std::fs::write(env.root().join("a.txt"), "content").unwrap();
    let path = |name: &str| env.root().canonicalize().unwrap().join(name);
    let read = env.ok("mcp:files:read_text_file", json!({"path": path("a.txt")}));
    assert_eq!(said(&read), "content");
    let write =
        |name: &str| env.call("mcp:files:write_file", json!({"path": path(name), "content": "x"}), &["--yes"]).0;
    assert_eq!(write("out/b.txt")["success"], true);
    assert_eq!(write("c.txt")["success"], false, "the kernel does not let it");
    assert!(path("out/b.txt").exists() && !path("c.txt").exists());
}

pub(crate) fn server_memory_remembers_in_its_file() {
    let found = Installed::find();
    let env = Env::new();
    let file = env.root().join("memory/graph.jsonl");
    std::fs::create_dir(env.root().join("memory")).unwrap();
    let more = format!(", write: [memory], env: {{MEMORY_FILE_PATH: {}}}}}", file.display());
    let env = env.server("memory", &(node(&found, "server-memory", "") + &more));
    let entity = json!({"name": "haft", "entityType": "tool", "observations": ["holds the blade"]});
    env.ok("mcp:memory:create_entities", json!({"entities": [entity]}));
    let graph = env.ok("mcp:memory:read_graph", json!({}));
    assert_eq!(graph["data"]["entities"][0]["name"], "haft", "{graph:#}");
}

pub(crate) fn a_python_server_speaks_the_newest_version() {
    let found = Installed::find();
    let venv = std::path::Path::new(&found.python).parent().and_then(|bin| bin.parent()).unwrap();
    let home = python(&found.python, "base_prefix");
    let args = "args: [-m, mcp_server_time, --local-timezone, UTC]";
    let entry = format!("{{command: {}, {args}, read: [{}, {home}]}}", found.python, venv.display());
    let env = Env::new().server("time", &entry);
    let now = env.ok("mcp:time:get_current_time", json!({"timezone": "Europe/Berlin"}));
    assert!(now["output"].as_str().unwrap().contains("Europe/Berlin"), "{now:#}");
    let (outcome, code) = env.call("mcp:time:get_current_time", json!({"timezone": "Nowhere"}), &["--yes"]);
    assert_eq!((code, &outcome["error"]["kind"]), (1, &Value::from("failed")), "{outcome:#}");
}

/// A server that speaks HTTP, ended with the test.
struct Http(std::process::Child);

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn a_server_at_an_address_is_reached_and_says_when_it_is_gone() {
    let found = Installed::find();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = format!("{}/@modelcontextprotocol/server-everything/dist/index.js", found.modules);
    let mut command = std::process::Command::new(&found.node);
    command.args([&script, "streamableHttp"]).env("PORT", port.to_string());
    let quiet = std::process::Stdio::null;
    let http = Http(command.stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().unwrap());
    let env = Env::new().server("web", &format!("{{url: \"http://127.0.0.1:{port}/mcp\", timeout_ms: 10000}}"));
    let begun = std::time::Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed().as_secs() < 30, "the server does not listen");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(said(&env.ok("mcp:web:echo", json!({"message": "hi"}))), "Echo: hi");
    let long = env.ok("mcp:web:trigger-long-running-operation", json!({"duration": 1, "steps": 2}));
    assert!(long["output"].as_str().unwrap().contains("completed"), "{long:#}");
    drop(http);
    let (kind, message) = env.err("mcp:web:echo", json!({"message": "hi"}));
    assert_eq!(kind, "upstream");
    assert!(message.contains("the MCP server `web` is not there: it cannot be reached"), "{message}");
}
