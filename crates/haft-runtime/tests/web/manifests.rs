//! Tools that are files and ask the web: what they send, what becomes of the answer, and what they may not do.

use super::names::{Names, PUBLIC, SETUP};
use super::server::{Answer, Server, ok, sends_on};
use super::tls::{acceptor, file};
use super::{Stage, alone, data, fault, part, passes, roomy, run};
use haft_core::outcome::Label;
use haft_core::{Call, Outcome};
use haft_runtime::shelf::{Folder, Whose};
use haft_runtime::{Approver, BoxFuture, Decider, Haft, Halt, Question, Said, Settings, Workspace, Yes, new_call_id};
use haft_store::Store;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A project whose user has these tools.
pub(super) fn with(tools: &[Value]) -> Stage {
    let dir = tempfile::tempdir().unwrap();
    for tool in tools {
        let home = dir.path().join("tools").join(tool["name"].as_str().unwrap());
        std::fs::create_dir_all(&home).unwrap();
        // JSON is YAML.
        std::fs::write(home.join("tool.yml"), serde_json::to_string_pretty(tool).unwrap()).unwrap();
    }
    let haft = haft(dir.path(), &dir.path().join("tools"));
    Stage { dir, haft }
}

fn haft(dir: &Path, tools: &Path) -> Haft {
    std::fs::create_dir_all(dir.join("project/.git")).unwrap();
    let workspace = Workspace::new(&dir.join("project")).unwrap();
    let mut settings = Settings::new(dir.join("data"));
    settings.web = roomy();
    settings.folders = vec![Folder { path: tools.to_owned(), whose: Whose::Own }];
    Haft::new(workspace, Store::open(&dir.join("haft.db")).unwrap(), settings)
}

pub(super) async fn call(haft: &Haft, tool: &str, args: Value) -> Outcome {
    haft.call(Call::new(new_call_id(), tool, args), &Yes, &Halt::new()).await
}

/// A tool that asks this server, with what differs.
pub(super) fn asks(server: &Server, name: &str, http: Value, more: Value) -> Value {
    let mut tool = json!({
        "name": name, "description": "Asks.", "kind": "http", "version": 1,
        "inputs": {"schema": {"type": "object", "additionalProperties": false, "properties": {
            "id": {"type": "string"}, "count": {"type": "integer", "default": 10}, "flag": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}}, "text": {"type": "string"}}}},
        "outputs": {"format": "json"}, "exec": {"http": {"method": "GET", "url": server.url("/v1")}},
        "permissions": {"network": [format!("127.0.0.1:{}", server.port())], "fs": {"read": [], "write": []}, "secrets": {}},
        "approval": {"required": false}
    });
    for (key, value) in http.as_object().unwrap() {
        tool["exec"]["http"][key] = value.clone();
    }
    for (key, value) in more.as_object().unwrap() {
        tool[key] = value.clone();
    }
    tool
}

/// The same in a process that has secrets in its environment.
pub(super) fn with_secrets(test: &str) {
    let mut command = alone(&[], test);
    command.env("API_TOKEN", "hunter2/hunter2+x").env("OTHER_TOKEN", "open-sesame-open");
    passes(command);
}

fn secrets() -> Value {
    json!({"API_TOKEN": {"type": "string", "required": true}, "OTHER_TOKEN": {"type": "string", "required": true}})
}

#[test]
fn what_is_sent_is_what_the_manifest_says() {
    run(async {
        let server = Server::start(|_| ok("content-type: application/json\r\n", "{}")).await;
        let get = asks(
            &server,
            "get",
            json!({"url": server.url("/v1/${id}/x?fixed=1"), "headers": {"X-Flag": "f=${flag}", "X-Gone": "${text}"},
                "query": {"count": "${count}", "tag": "${tags}", "gone": "${text}", "both": "a ${id}&b"}}),
            json!({}),
        );
        let post = asks(
            &server,
            "post",
            json!({"method": "POST", "body": {"id": "${id}", "count": "${count}", "tags": "${tags}", "gone": "${text}"}}),
            json!({}),
        );
        let form = asks(
            &server,
            "form",
            json!({"method": "POST", "headers": {"Content-Type": "application/x-www-form-urlencoded"},
                "body": {"id": "${id}", "tag": "${tags}"}}),
            json!({}),
        );
        let text = asks(&server, "text", json!({"method": "PUT", "body": "say ${id}"}), json!({}));
        let stage = with(&[get, post, form, text]);
        let args = json!({"id": "a/b?c=d", "tags": ["x y", "z&"], "flag": true});
        for tool in ["get", "post", "form", "text"] {
            let outcome = call(&stage.haft, tool, args.clone()).await;
            assert!(outcome.success && outcome.labels == [Label::Untrusted], "{tool}: {outcome:?}");
        }
        let heard = server.heard();
        let lines = heard[0].lines().collect::<Vec<_>>();
        assert_eq!(
            lines[0],
            "GET /v1/a%2Fb%3Fc%3Dd/x?fixed=1&count=10&tag=x+y&tag=z%26&both=a+a%2Fb%3Fc%3Dd%26b HTTP/1.1"
        );
        assert!(lines.contains(&"x-flag: f=true") && !heard[0].contains("gone"), "{lines:?}");
        assert!(heard[1].contains("content-type: application/json\r\n"), "{}", heard[1]);
        assert!(heard[1].ends_with(r#"{"id":"a/b?c=d","count":10,"tags":["x y","z&"]}"#), "{}", heard[1]);
        assert!(heard[2].ends_with("id=a%2Fb%3Fc%3Dd&tag=x+y&tag=z%26"), "{}", heard[2]);
        assert!(heard[3].ends_with("\r\n\r\nsay a/b?c=d") && !heard[3].contains("content-type"), "{}", heard[3]);
    });
}

#[test]
fn json_is_taken_as_it_is_written() {
    run(async {
        let json = "\u{feff}{\"price\":1.10,\"id\":12345678901234567890123}";
        let server = Server::start(move |request| {
            if request.starts_with("GET /not-modified") {
                return Answer::Bytes(b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec());
            }
            ok("content-type: application/json\r\n", json)
        })
        .await;
        let get = asks(&server, "get", json!({"url": server.url("/v1")}), json!({}));
        let old = asks(&server, "old", json!({"url": server.url("/not-modified")}), json!({}));
        let stage = with(&[get, old]);
        let outcome = call(&stage.haft, "get", json!({})).await;
        let shown = "\n{\n  \"price\": 1.10,\n  \"id\": 12345678901234567890123\n}\n";
        assert!(outcome.success && outcome.output.contains(shown), "{outcome:?}");
        let outcome = call(&stage.haft, "old", json!({})).await;
        assert!(outcome.error.as_ref().unwrap().message.ends_with("answered 304 Not Modified"), "{outcome:?}");
    });
}

#[test]
fn nothing_is_sent_that_could_be_taken_for_something_else() {
    run(async {
        let server = Server::start(|_| ok("", "{}")).await;
        let stage = with(&[
            asks(&server, "header", json!({"headers": {"X-Id": "${id}"}}), json!({})),
            asks(&server, "host", json!({"headers": {"Host": "${id}"}}), json!({})),
            asks(&server, "path", json!({"url": server.url("/a/${id}/b")}), json!({})),
            asks(&server, "body", json!({"body": "${id}"}), json!({})),
        ]);
        for (tool, id) in [
            ("header", "x\r\nX-Evil: 1"),
            ("header", "x\nX-Evil: 1"),
            ("header", "x\0"),
            ("header", "ü"),
            ("host", "evil.example"),
            ("path", ".."),
            ("path", "."),
            ("body", "a GET has none"),
        ] {
            let outcome = call(&stage.haft, tool, json!({ "id": id })).await;
            assert_eq!(fault(&outcome).0, "invalid_input", "{tool} {id:?}: {outcome:?}");
        }
        assert_eq!(server.connections(), 0);
    });
}

#[test]
fn each_failure_is_told_as_what_it_is() {
    run(async {
        let server = Server::start(|request| match request.split(' ').nth(1).unwrap() {
            "/missing" => Answer::Bytes(b"HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nno such x".to_vec()),
            "/broken" => ok("content-type: application/json\r\n", "{broken"),
            "/never" => Answer::Nothing,
            "/shape" => {
                ok("content-type: application/json\r\n", r#"{"web":{"results":[{"title":1},{"title":"b","more":2}]}}"#)
            }
            _ => ok("content-type: application/json\r\n", ""),
        })
        .await;
        let at = |name: &str, path: &str, more: Value| {
            asks(&server, name, json!({"url": server.url(path), "timeout_ms": 1500}), more)
        };
        let shape = json!({"outputs": {"format": "json", "schema": {"type": "array", "items": {
            "type": "object", "properties": {"title": {"type": "string"}}}}}});
        let mut taken = at("taken", "/shape", shape);
        taken["exec"]["http"]["response"] = json!({"json_path": "web.results", "fields": [{"name": "title", "path": "title"}, {"name": "url", "path": "url"}]});
        let mut nowhere = at("nowhere", "/shape", json!({}));
        nowhere["exec"]["http"]["response"] = json!({"json_path": "web.pages"});
        let mut unheard = at("unheard", "/", json!({}));
        unheard["exec"]["http"]["url"] = json!("http://127.0.0.1:1/");
        unheard["permissions"]["network"] = json!(["127.0.0.1:1"]);
        let mut words = at("words", "/missing", json!({}));
        words["outputs"]["format"] = json!("text");
        let mut secret = at("secret", "/", json!({}));
        secret["permissions"]["secrets"] = json!({"NOWHERE_TO_BE_FOUND": {"type": "string"}});
        let stage = with(&[
            at("missing", "/missing", json!({})),
            words,
            at("broken", "/broken", json!({})),
            at("never", "/never", json!({})),
            at("empty", "/empty", json!({})),
            taken,
            nowhere,
            unheard,
            secret,
        ]);
        // Input that does not fit: the violations, and nothing runs.
        let outcome = call(&stage.haft, "missing", json!({"count": "many", "extra": 1})).await;
        let (kind, said) = fault(&outcome);
        assert!(kind == "invalid_input" && said.contains("count") && said.contains("extra"), "{said}");
        // A secret that is nowhere: nothing runs.
        let outcome = call(&stage.haft, "secret", json!({})).await;
        assert!(fault(&outcome).1.contains("`NOWHERE_TO_BE_FOUND` is declared and nowhere to be found"), "{outcome:?}");
        assert_eq!(server.connections(), 0);
        // A request that fails: status and message, and what was said about it.
        for tool in ["missing", "words"] {
            let outcome = call(&stage.haft, tool, json!({})).await;
            let (kind, said) = fault(&outcome);
            assert!(kind == "upstream" && said.ends_with("answered 404 Not Found"), "{said}");
            assert_eq!(outcome.error.as_ref().unwrap().details, Some(json!({"status": 404})));
            assert!(outcome.output.contains("no such x"), "{}", outcome.output);
        }
        let outcome = call(&stage.haft, "broken", json!({})).await;
        assert!(
            fault(&outcome).1.contains("with what is not JSON") && outcome.output.contains("{broken"),
            "{outcome:?}"
        );
        let outcome = call(&stage.haft, "never", json!({})).await;
        assert_eq!(fault(&outcome), ("timeout", "no whole answer within 1.5 s"));
        let outcome = call(&stage.haft, "unheard", json!({})).await;
        let (kind, said) = fault(&outcome);
        assert!(kind == "upstream" && said.contains("nobody listens"), "{said}");
        assert_eq!(data(&call(&stage.haft, "empty", json!({})).await), &Value::Null);
        // Output that does not fit: a warning, and the output.
        let outcome = call(&stage.haft, "taken", json!({})).await;
        assert_eq!(data(&outcome), &json!([{"title": 1, "url": null}, {"title": "b", "url": null}]));
        let warnings = outcome.warnings.join("\n");
        assert!(outcome.success && warnings.contains("output does not fit its schema: /0/title"), "{warnings}");
        assert!(warnings.contains("the field `url` is null in 2 of 2 items"), "{warnings}");
        let outcome = call(&stage.haft, "nowhere", json!({})).await;
        assert!(outcome.success && outcome.warnings[0].contains("`json_path` leads to nothing"), "{outcome:?}");
    });
}

#[test]
fn it_reaches_whom_it_declares() {
    run(async {
        let other = Server::start(|_| ok("", r#""elsewhere""#)).await;
        let to = other.url("/");
        let server = Server::start(move |request| match request.split(' ').nth(1).unwrap() {
            "/onward" => sends_on(302, &to),
            _ => ok("", r#""here""#),
        })
        .await;
        let network = |name: &str, path: &str, network: Value| {
            let mut tool = asks(&server, name, json!({"url": server.url(path)}), json!({}));
            tool["permissions"]["network"] = network;
            tool
        };
        let (here, there) = (format!("127.0.0.1:{}", server.port()), format!("127.0.0.1:{}", other.port()));
        let stage = with(&[
            network("none", "/", json!(false)),
            network("others", "/", json!(["example.com"])),
            network("all", "/", json!(true)),
            network("portless", "/", json!(["127.0.0.1"])),
            network("named", "/", json!([here])),
            network("onward", "/onward", json!([here])),
            network("both", "/onward", json!([here, there])),
        ]);
        for (tool, why) in [
            ("none", "its manifest declares no network"),
            ("others", "is not in its manifest's `permissions.network`"),
            ("all", "is not a public address"),
            ("portless", "is not a public address"),
            ("onward", "is not on the list of hosts"),
        ] {
            let outcome = call(&stage.haft, tool, json!({})).await;
            let (kind, said) = fault(&outcome);
            assert!(kind == "denied" && said.contains(why), "{tool}: {outcome:?}");
        }
        assert_eq!(other.connections(), 0);
        let hint = call(&stage.haft, "onward", json!({})).await.error.unwrap().hint.unwrap();
        assert_eq!(hint, "its manifest's `permissions.network` would have to name the host");
        assert_eq!(data(&call(&stage.haft, "named", json!({})).await), "here");
        assert_eq!(data(&call(&stage.haft, "both", json!({})).await), "elsewhere");
    });
}

#[test]
fn a_secret_goes_to_one_place_and_is_seen_nowhere() {
    if part().is_none() {
        return with_secrets("manifests::a_secret_goes_to_one_place_and_is_seen_nowhere");
    }
    run(async {
        let other = Server::start(|_| ok("", r#""elsewhere""#)).await;
        let to = other.url("/");
        let server = Server::start(move |request| match request.split(' ').nth(1).unwrap() {
            path if path.starts_with("/onward") => sends_on(307, &to),
            // It says back all that it was told.
            _ => ok("content-type: application/json\r\n", json!({"echo": request}).to_string()),
        })
        .await;
        let http = |path: &str| {
            json!({"method": "POST", "url": server.url(path), "headers": {"Authorization": "Bearer ${API_TOKEN}",
                "X-Other": "${OTHER_TOKEN}"}, "query": {"key": "${OTHER_TOKEN}", "q": "${id}"}, "body": {"token": "${API_TOKEN}"}})
        };
        let hosts = json!([format!("127.0.0.1:{}", server.port()), format!("127.0.0.1:{}", other.port())]);
        let permissions = json!({"network": hosts, "fs": {"read": [], "write": []}, "secrets": secrets()});
        let more = json!({ "permissions": permissions });
        let stage =
            with(&[asks(&server, "echo", http("/echo"), more.clone()), asks(&server, "onward", http("/onward"), more)]);
        let outcome = call(&stage.haft, "echo", json!({"id": "x"})).await;
        let heard = server.heard();
        assert!(heard[0].starts_with("POST /echo?q=x&key=open-sesame-open HTTP/1.1\r\n"), "{}", heard[0]);
        assert!(
            heard[0].contains("authorization: Bearer hunter2/hunter2+x\r\nx-other: open-sesame-open"),
            "{}",
            heard[0]
        );
        assert!(heard[0].ends_with(r#"{"token":"hunter2/hunter2+x"}"#), "{}", heard[0]);
        let onward = call(&stage.haft, "onward", json!({"id": "x"})).await;
        assert!(onward.success && other.connections() == 1, "{onward:?}");
        assert!(!other.heard().concat().contains("hunter2") && !other.heard().concat().contains("sesame"));
        stage.haft.flush().await.unwrap();
        let records = stage.haft.store().records(0, 10_000, None).await.unwrap();
        let records: String = records.iter().map(|record| record.body.to_string()).collect();
        let said = format!("{} {}", serde_json::to_string(&outcome).unwrap(), serde_json::to_string(&onward).unwrap());
        for seen in [&said, &records] {
            assert!(!seen.contains("hunter2") && !seen.contains("sesame"), "{seen}");
        }
        // Whoever decides sees where it goes, with secrets by their names.
        let explained = stage.haft.explain(Call::new(new_call_id(), "echo", json!({"id": "x"}))).await.unwrap();
        assert_eq!(explained.problem, None);
        assert!(!serde_json::to_string(&explained).unwrap().contains("hunter2"));
    });
}

pub(super) fn pipeline(name: &str, steps: Value, output: Value) -> Value {
    json!({
        "name": name, "description": "Several calls.", "kind": "pipeline", "version": 1,
        "inputs": {"schema": {"type": "object", "properties": {"id": {"type": "string"}}}}, "outputs": {"format": "json"},
        "exec": {"pipeline": {"steps": steps, "output": output}},
        "permissions": {"network": false, "fs": {"read": [], "write": []}, "secrets": {}}, "approval": {"required": false}
    })
}

#[test]
fn a_pipeline_makes_its_calls_in_order_and_ends_with_the_first_that_fails() {
    run(async {
        let server = Server::start(|request| match request.split(' ').nth(1).unwrap() {
            "/fail?q=b" => Answer::Bytes(b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n".to_vec()),
            path => ok(
                "content-type: application/json\r\n",
                json!({ "next": path.replace("/one?q=", "").to_uppercase() }).to_string(),
            ),
        })
        .await;
        let query = |name: &str, path: &str| {
            asks(&server, name, json!({"url": server.url(path), "query": {"q": "${id}"}}), json!({}))
        };
        let step = |id: &str, tool: &str, value: &str| json!({"id": id, "tool": tool, "args": {"id": value}});
        let good = json!([step("a", "one", "${id}"), step("b", "two", "${steps.a.data.next}")]);
        let bad = json!([step("a", "one", "${id}"), step("b", "fail", "b"), step("c", "two", "never")]);
        let stage = with(&[
            query("one", "/one"),
            query("two", "/two"),
            query("fail", "/fail"),
            pipeline("good", good.clone(), json!({"first": "${steps.a.data.next}", "went": "${steps.b.success}"})),
            pipeline("last", good, Value::Null),
            pipeline("bad", bad, Value::Null),
            pipeline("round", json!([step("a", "round", "x")]), Value::Null),
        ]);
        let outcome = call(&stage.haft, "good", json!({"id": "abc"})).await;
        assert_eq!(data(&outcome), &json!({"first": "ABC", "went": true}), "{outcome:?}");
        assert_eq!(outcome.labels, [Label::Untrusted], "what a step heard, the whole heard");
        assert!(server.heard()[1].starts_with("GET /two?q=ABC "), "{:?}", server.heard());
        assert!(call(&stage.haft, "last", json!({"id": "x"})).await.output.contains("/TWO?Q=X"));
        let before = server.heard().len();
        let outcome = call(&stage.haft, "bad", json!({"id": "a"})).await;
        let (kind, said) = fault(&outcome);
        assert!(kind == "upstream" && said.starts_with("step `b` (fail) failed: ") && said.contains("500"), "{said}");
        assert!(said.ends_with("nothing after it ran") && server.heard().len() == before + 2, "{said}");
        let outcome = call(&stage.haft, "round", json!({})).await;
        assert!(fault(&outcome).1.contains("at most 4 deep"), "{outcome:?}");
        let dry = stage.haft.dry_run(Call::new(new_call_id(), "good", json!({"id": "a"})), &Halt::new()).await;
        assert!(fault(&dry).1.contains("acts by itself, so it cannot be tried"), "{dry:?}");
    });
}

#[test]
fn a_bridged_tool_has_another_name_and_less_to_say() {
    run(async {
        let forward = |name: &str, exec: Value| {
            json!({
                "name": name, "description": "Looks up.", "kind": "mcp", "version": 1,
                "inputs": {"schema": {"type": "object", "additionalProperties": false, "required": ["id"],
                    "properties": {"id": {"type": "string", "maxLength": 5}}}},
                "outputs": {"format": "json"}, "exec": {"mcp": exec},
                "permissions": {"network": false, "fs": {"read": [], "write": []}, "secrets": {}},
                "approval": {"required": false}
            })
        };
        let stage = with(&[
            forward("look", json!({"server": "notes", "tool": "find", "args": {"key": "n-${id}", "limit": 3}})),
            forward("plain", json!({"server": "notes", "tool": "find"})),
            forward("gone", json!({"server": "notes", "tool": "nothing"})),
        ]);
        let spec = haft_core::ToolSpec::new("mcp:notes:find", "Find.").unwrap().input(json!({"type": "object"}));
        let find = |scene: &haft_runtime::Scene| Ok(haft_runtime::Reply::text("found").data(scene.args().clone()));
        stage.haft.registry().register(haft_runtime::Blocking::tool(spec, find)).unwrap();
        assert_eq!(data(&call(&stage.haft, "look", json!({"id": "7"})).await), &json!({"key": "n-7", "limit": 3}));
        assert_eq!(data(&call(&stage.haft, "plain", json!({"id": "7"})).await), &json!({"id": "7"}));
        let outcome = call(&stage.haft, "look", json!({"id": "too long"})).await;
        assert_eq!(fault(&outcome).0, "invalid_input", "its schema is narrower: {outcome:?}");
        let outcome = call(&stage.haft, "gone", json!({"id": "7"})).await;
        assert!(fault(&outcome).1.contains("there is no tool `mcp:notes:nothing`"), "{outcome:?}");
    });
}

/// Says yes when the manifest that it was asked about has become another one.
struct Late {
    file: PathBuf,
    text: String,
    changes: watch::Receiver<u64>,
}

impl Approver for Late {
    fn decider(&self) -> Decider {
        Decider::embedder("late")
    }

    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Said> {
        Box::pin(async {
            let mut changes = self.changes.clone();
            changes.mark_unchanged();
            std::fs::write(&self.file, &self.text).unwrap();
            changes.changed().await.unwrap();
            Said::Once
        })
    }
}

#[test]
fn a_call_runs_what_was_decided_upon() {
    run(async {
        let server = Server::start(|_| ok("", r#""new""#)).await;
        let old = asks(
            &server,
            "tool",
            json!({"url": "https://old.example/"}),
            json!({"permissions": {
            "network": true, "fs": {"read": [], "write": []}}, "approval": {"required": true, "reason": "It asks."}}),
        );
        let stage = with(std::slice::from_ref(&old));
        let file = stage.dir.path().join("tools/tool/tool.yml");
        let new = asks(&server, "tool", json!({}), json!({}));
        let mut following = JoinSet::new();
        following.spawn(Arc::clone(stage.haft.shelf()).follow(|_| ()));
        // It is decided about as it was; by the time it would run, it is another.
        let late = Late { file, text: new.to_string(), changes: stage.haft.registry().changes() };
        let outcome = stage.haft.call(Call::new(new_call_id(), "tool", json!({})), &late, &Halt::new()).await;
        let (kind, said) = fault(&outcome);
        assert!(kind == "conflict" && said.contains("changed after it was decided upon; nothing ran"), "{outcome:?}");
        assert_eq!(server.connections(), 0);
        assert_eq!(data(&call(&stage.haft, "tool", json!({})).await), "new");
    });
}

/// The services that the document's examples are about, in a network of their own: found by name, and spoken to by TLS.
#[test]
fn the_documents_tools_run_unchanged() {
    const TEST: &str = "manifests::the_documents_tools_run_unchanged";
    match part().as_deref() {
        Some("host") => return run(be_the_services()),
        Some(_) => return run(use_the_services()),
        None => {}
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--mount", "sh", "-c", SETUP, "sh"]);
    command.arg(std::env::current_exe().unwrap()).arg(dir.path()).arg(TEST);
    command.env("SSL_CERT_FILE", file("services-authority.pem")).env_remove("SSL_CERT_DIR");
    for name in ["BRAVE_API_KEY", "SLACK_BOT_TOKEN", "WEATHER_API_KEY"] {
        command.env(name, format!("the-{}", name.to_lowercase()));
    }
    passes(command);
}

async fn be_the_services() {
    let listener = loop {
        // The wire takes a moment.
        match TcpListener::bind((PUBLIC, 443)).await {
            Ok(listener) => break listener,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let _server = Server::serve(listener, Some(acceptor("services.pem")), |request| {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let has = |line: &str| head.lines().any(|known| known.eq_ignore_ascii_case(line));
        let answer = if has("host: api.search.brave.com") && has("x-subscription-token: the-brave_api_key") {
            let result =
                json!({"title": "FastAPI", "url": "https://fastapi.tiangolo.com", "description": "Fast", "age": 1});
            json!({"web": {"results": [result]}, "query": head.lines().next()})
        } else if has("host: slack.com") && has("authorization: Bearer the-slack_bot_token") {
            json!({"ok": true, "ts": "1234567890.123456", "sent": serde_json::from_str::<Value>(body).unwrap()})
        } else if has("host: api.weather.com") && has("authorization: Bearer the-weather_api_key") {
            json!({"asked": head.lines().next()})
        } else {
            return Answer::Bytes(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_vec());
        };
        ok("content-type: application/json\r\n", answer.to_string())
    });
    std::future::pending::<()>().await;
}

fn services(name: &str, _: usize) -> Vec<Ipv4Addr> {
    let known = ["api.search.brave.com", "slack.com", "api.weather.com"].contains(&name);
    known.then_some(PUBLIC).into_iter().collect()
}

async fn use_the_services() {
    let _names = Names::start(services).await;
    let dir = tempfile::tempdir().unwrap();
    let tools = dir.path().join("tools");
    for name in ["web_search", "slack_notify", "repo_scan", "repo_stats", "weather"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-core/tests/tools").join(name);
        std::fs::create_dir_all(tools.join(name)).unwrap();
        // The document gives one of them as what an agent makes: the same without its name.
        let text = std::fs::read_to_string(from.join("tool.yml")).unwrap_or_else(|_| {
            let made = std::fs::read_to_string(from.join("tool.json")).unwrap();
            let mut made: Value = serde_json::from_str(&made).unwrap();
            made["name"] = name.into();
            made.to_string()
        });
        std::fs::write(tools.join(name).join("tool.yml"), text).unwrap();
    }
    let haft = haft(dir.path(), &tools);
    let query = json!({"query": "best python web frameworks 2025"});
    // The services take a moment to be there.
    let found = loop {
        let outcome = call(&haft, "web_search", query.clone()).await;
        if outcome.success {
            break outcome;
        }
        assert_eq!(fault(&outcome).0, "upstream", "{outcome:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(
        data(&found),
        &json!([{"title": "FastAPI", "url": "https://fastapi.tiangolo.com", "description": "Fast"}])
    );
    assert_eq!(found.warnings, Vec::<String>::new());
    let sent = call(&haft, "slack_notify", json!({"channel": "general", "message": "Deployed."})).await;
    assert_eq!(data(&sent)["sent"], json!({"channel": "general", "text": "Deployed."}), "an optional one is left out");
    let weather = call(&haft, "weather", json!({"location": "New York"})).await;
    assert_eq!(data(&weather)["asked"], "GET /v1/current?q=New+York HTTP/1.1", "{weather:?}");
    let all = call(&haft, "tool.list", json!({})).await;
    for name in ["web_search", "slack_notify", "weather", "repo_scan", "repo_stats"] {
        assert!(data(&all)["tools"].as_array().unwrap().contains(&json!(name)), "{all:?}");
    }
}
