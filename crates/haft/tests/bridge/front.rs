//! haft in front of a server that others wrote: a client sees the server's own tools, resources and prompts, governed.

use super::{Env, Installed};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

/// A client of `haft mcp` on its pipes.
pub(super) struct Client {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    next: u64,
    /// What the log said so far.
    pub(super) logged: Vec<Value>,
}

impl Client {
    pub(super) fn start(env: &Env, args: &[&str]) -> Self {
        let mut command = env.command(&[&["mcp"], args].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, output, next: 0, logged: Vec::new() };
        client.ask(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
        );
        client.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The answer to a request: its result, or its error.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "haft ended before it answered {method}");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] == "notifications/message" {
                self.logged.push(message["params"].clone());
            }
            if message["id"] == id && message.get("method").is_none() {
                return message.get("result").or_else(|| message.get("error")).unwrap().clone();
            }
        }
    }
}

impl Client {
    /// Closes stdin, and waits until haft has written everything down.
    pub(super) fn leave(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// haft with the reference server of the protocol's authors, and more configuration.
fn everything(more: &str) -> Env {
    let found = Installed::find();
    let modules = &found.modules;
    let script = format!("{modules}/@modelcontextprotocol/server-everything/dist/index.js");
    let entry = format!("{{command: {}, args: [{script}, stdio], read: [{modules}]}}", found.node);
    let env = Env::new().server("every", &entry);
    let config = env.config();
    std::fs::write(env.config_file(), format!("{config}{more}")).unwrap();
    env
}

fn names<'v>(list: &'v Value, kind: &str, name: &str) -> Vec<&'v str> {
    list[kind].as_array().unwrap().iter().filter_map(|item| item[name].as_str()).collect()
}

pub(crate) fn a_fronted_server_keeps_its_names_and_sends_its_content_unchanged() {
    let env = everything("approval: {auto_approve: [\"mcp:every:*\"]}\n");
    let mut client = Client::start(&env, &["--front", "every"]);
    let tools = client.ask("tools/list", json!({}));
    let tools = names(&tools, "tools", "name");
    assert!(tools.contains(&"echo") && !tools.contains(&"file_read"), "{tools:?}");
    let image = client.ask("tools/call", json!({"name": "get-tiny-image", "arguments": {}}));
    let content = image["content"].as_array().unwrap();
    let kinds: Vec<&Value> = content.iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "text", "image", "text", "text"], "{image:#}");
    assert!(content[0]["text"].as_str().unwrap().starts_with("<untrusted mark="), "{image:#}");
    assert_eq!(content[1]["text"], "Here's the image you requested:", "{image:#}");
    let resources = client.ask("resources/list", json!({}));
    let uri = names(&resources, "resources", "uri")[0].to_owned();
    assert!(!uri.starts_with("haft://"), "{resources:#}");
    let read = client.ask("resources/read", json!({ "uri": uri }));
    assert_eq!(read["contents"][0]["uri"], uri, "{read:#}");
    assert!(!read["contents"][0]["text"].as_str().unwrap().contains("<untrusted"), "{read:#}");
    assert_eq!(read["contents"][0]["_meta"]["haft"]["labels"], json!(["untrusted"]), "{read:#}");
    let prompts = client.ask("prompts/list", json!({}));
    let prompts = names(&prompts, "prompts", "name");
    assert!(prompts.contains(&"simple-prompt"), "{prompts:?}");
    let prompt = client.ask("prompts/get", json!({"name": "simple-prompt"}));
    assert_eq!(prompt["messages"][0]["role"], "user", "{prompt:#}");
    drop(client);
    let log = env.run(&["log", "--json"]).stdout;
    assert!(log.contains("mcp:every:resources:read") && log.contains("mcp:every:prompts:get"), "{log}");
}

pub(crate) fn a_bridged_resource_is_named_after_its_server_and_found_by_its_own_address() {
    let env = everything("approval: {auto_approve: [\"mcp:every:*\"]}\ntools: {budget_tokens: 0}\n");
    assert_eq!(env.run(&["mcp", "test", "every"]).code, 0);
    let mut client = Client::start(&env, &[]);
    // Nothing is known of its resources before it is started once.
    client.ask("tools/call", json!({"name": "mcp__every__echo", "arguments": {"message": "hi"}}));
    let resources = client.ask("resources/list", json!({}));
    let named = names(&resources, "resources", "uri").into_iter().find(|uri| uri.starts_with("haft://mcp/every/"));
    let named = named.unwrap_or_else(|| panic!("{resources:#}")).to_owned();
    let own = named.strip_prefix("haft://mcp/every/").unwrap();
    for uri in [named.as_str(), own] {
        let read = client.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(read["contents"][0]["uri"], uri, "{read:#}");
    }
    let prompts = client.ask("prompts/list", json!({}));
    assert!(names(&prompts, "prompts", "name").contains(&"mcp__every__simple-prompt"), "{prompts:#}");
    let tools = client.ask("tools/list", json!({}));
    assert!(!names(&tools, "tools", "name").iter().any(|name| name.ends_with("resources__read")), "{tools:#}");
}

pub(crate) fn reading_a_bridged_resource_waits_for_approval_and_can_be_denied() {
    let env = everything("");
    let config = env.config().replace("mcp:\n", "mcp:\n  wait_ms: 0\n");
    std::fs::write(env.config_file(), &config).unwrap();
    let mut client = Client::start(&env, &["--front", "every"]);
    let resources = client.ask("resources/list", json!({}));
    let uri = names(&resources, "resources", "uri")[0].to_owned();
    let waits = client.ask("resources/read", json!({ "uri": uri }));
    assert!(waits["message"].as_str().unwrap().contains("It waits as approval"), "{waits:#}");
    drop(client);
    std::fs::write(env.config_file(), format!("{config}deny: [\"mcp:every:resources:read\"]\n")).unwrap();
    let mut client = Client::start(&env, &["--front", "every"]);
    let listed = client.ask("resources/list", json!({}));
    assert_eq!(listed["resources"], json!([]), "what is denied is not listed");
    let denied = client.ask("resources/read", json!({ "uri": uri }));
    assert!(denied["code"].is_number() && denied.get("contents").is_none(), "{denied:#}");
}

pub(crate) fn bridged_data_is_structured_content_only_if_nothing_has_to_be_said_about_it() {
    let env = Env::new().hostile("odd", "");
    let config = env.config();
    std::fs::write(env.config_file(), format!("{config}approval: {{auto_approve: [\"mcp:odd:*\"]}}\n")).unwrap();
    let mut client = Client::start(&env, &["--front", "odd"]);
    let tools = client.ask("tools/list", json!({}));
    let promising: Vec<&Value> =
        tools["tools"].as_array().unwrap().iter().filter(|tool| tool.get("outputSchema").is_some()).collect();
    assert!(promising.is_empty(), "a client would require structured content of these: {promising:#?}");
    let plain = client.ask("tools/call", json!({"name": "measured", "arguments": {}}));
    assert_eq!(plain["structuredContent"], json!({"n": 7}), "{plain:#}");
    // haft warns that this does not fit the schema.
    let warned = client.ask("tools/call", json!({"name": "shaped", "arguments": {}}));
    assert_eq!((&warned["isError"], warned.get("structuredContent")), (&json!(false), None), "{warned:#}");
    assert!(warned["_meta"]["haft"]["data"]["n"].as_str().unwrap().contains(">not a number<"), "{warned:#}");
    assert!(warned["content"].to_string().contains("Warning: "), "{warned:#}");
}
