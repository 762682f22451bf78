//! Hooks: they tighten and rewrite, fail closed, are told what came of a call, and see every call.

use super::{LONG, Person, call, free, kind, run};
use haft_core::approval::Decider;
use haft_core::pattern::ToolPattern;
use haft_core::record::Digest;
use haft_core::web::Target;
use haft_core::{CallError, Outcome, ToolSpec};
use haft_runtime::hooked::{Asks, Hook, HookSettings};
use haft_runtime::{BoxFuture, Haft, Halt, Nobody, Reply, Said, Scene, Settings, Tool, Workspace, Yes, new_call_id};
use haft_store::Store;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A project with hooks.
struct Stage {
    dir: tempfile::TempDir,
    haft: Haft,
}

fn hook(tools: &str, asks: Asks) -> Hook {
    let tools = vec![ToolPattern::new(tools).unwrap()];
    Hook { name: "check".to_owned(), tools, asks, timeout: Duration::from_secs(10) }
}

/// A hook that is a shell script.
fn script(tools: &str, script: &str) -> Hook {
    hook(tools, Asks::Program(["sh", "-c", script].map(str::to_owned).to_vec()))
}

impl Stage {
    fn new(before: Vec<Hook>, after: Vec<Hook>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        let store = Store::open(&dir.path().join("haft.db")).unwrap();
        let mut settings = Settings::new(dir.path().join("data"));
        settings.hooks = Arc::new(HookSettings { before, after });
        let haft = Haft::new(Workspace::new(&dir.path().join("project")).unwrap(), store, settings);
        Self { dir, haft }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("project").join(name)
    }

    async fn call(&self, tool: &str, args: Value) -> Outcome {
        self.haft.call(call(tool, args), &Nobody, &free()).await
    }

    async fn hook_records(&self, outcome: &Outcome) -> Vec<Value> {
        self.haft.flush().await.unwrap();
        let records = self.haft.store().records(0, 100, Some(outcome.call_id.clone())).await.unwrap();
        records.into_iter().map(|record| record.body).filter(|body| body["kind"] == "hook").collect()
    }
}

fn sum() -> Value {
    json!({"expression": "1 + 1"})
}

#[test]
fn a_hook_tightens_and_cannot_loosen() {
    run(async {
        let stage = Stage::new(
            vec![
                script("calc.*", r#"echo '{"decision": "ask", "reason": "sums are suspicious"}'"#),
                script("file.read", r#"echo '{"decision": "deny", "reason": "not today"}'"#),
                script("file.write", r#"echo '{"decision": "allow", "reason": "go on"}'"#),
            ],
            Vec::new(),
        );
        let asked = stage.call("calc.eval", sum()).await;
        assert_eq!((kind(&asked), asked.verdict.by.as_str()), ("approval_required", "hook"), "{asked:?}");
        assert_eq!(asked.verdict.reason, "the hook `check` says: sums are suspicious");
        let approved = stage.haft.call(call("calc.eval", sum()), &Person::saying(Said::Once), &free()).await;
        assert_eq!(approved.output, "2", "{approved:?}");
        std::fs::write(stage.path("a.txt"), "x").unwrap();
        let denied = stage.haft.call(call("file.read", json!({"path": "a.txt"})), &Yes, &free()).await;
        assert!(kind(&denied) == "denied" && denied.verdict.reason.ends_with("not today"), "{denied:?}");
        let still = stage.call("file.write", json!({"path": "b.txt", "content": "x"})).await;
        assert_eq!(kind(&still), "approval_required", "an allow is no opinion: {still:?}");
        let later = stage.haft.store().approvals(true).await.unwrap();
        let first = later.iter().find(|found| found.tool == "calc.eval").unwrap();
        let run = stage.haft.approve(&first.id, &Decider::embedder("me"), &free()).await.unwrap();
        assert_eq!(run.output, "2", "what a hook asks about is approved like everything else");
    });
}

#[test]
fn other_arguments_are_validated_decided_and_recorded() {
    run(async {
        let rewrite =
            |args: Value| script("file.*", &format!("echo '{}'", json!({"args": args, "reason": "only the safe one"})));
        let safe = json!({"path": "safe.txt"});
        let stage = Stage::new(vec![rewrite(safe.clone())], Vec::new());
        std::fs::write(stage.path("safe.txt"), "safe").unwrap();
        let outcome = stage.call("file.read", json!({"path": "other.txt"})).await;
        assert!(outcome.success && outcome.output.contains("safe"), "{outcome:?}");
        assert_eq!(outcome.warnings, ["the hook `check` rewrote the arguments: only the safe one"]);
        let [record] = stage.hook_records(&outcome).await.try_into().unwrap();
        assert_eq!((&record["hook"], &record["said"]), (&json!("check"), &json!("rewrote")));
        assert!(Digest::try_from(record["before"].as_str().unwrap().to_owned()).is_ok(), "{record:#}");
        assert_ne!(record["before"], record["after"]);

        let stage = Stage::new(vec![rewrite(json!({"path": ".haft/config.yml", "content": "x"}))], Vec::new());
        let denied = stage.haft.call(call("file.write", json!({"path": "a", "content": "x"})), &Yes, &free()).await;
        assert!(kind(&denied) == "denied" && denied.verdict.by == "floor", "what is denied stays denied: {denied:?}");
        let stage = Stage::new(vec![rewrite(json!({"paths": 5}))], Vec::new());
        let wrong = stage.call("file.read", json!({"path": "a"})).await;
        assert_eq!((kind(&wrong), wrong.verdict.by.as_str()), ("invalid_input", "hook"), "{wrong:?}");
        assert!(wrong.error.unwrap().message.starts_with("the hook `check` rewrote the arguments"));
    });
}

#[test]
fn a_hook_sees_what_another_made_of_a_call_and_endless_rewriting_is_asked() {
    run(async {
        let watch = script("*", r#"grep -q secret.txt && echo '{"decision": "deny", "reason": "secret"}'; true"#);
        let turn = script("file.read", r#"echo '{"args": {"path": "secret.txt"}}'"#);
        let stage = Stage::new(vec![watch, turn], Vec::new());
        let denied = stage.call("file.read", json!({"path": "a.txt"})).await;
        assert!(kind(&denied) == "denied" && denied.verdict.reason.ends_with("secret"), "{denied:?}");
        let restless = script(
            "file.read",
            r#"read -r line; n=$(printf %s "$line" | tr -cd x | wc -c)
            printf '{"args": {"path": "%0'$((n + 2))'d.txt"}}' 0 | sed 's/0/x/g'"#,
        );
        let stage = Stage::new(vec![restless], Vec::new());
        let asked = stage.call("file.read", json!({"path": "x.txt"})).await;
        assert!(kind(&asked) == "approval_required" && asked.verdict.reason.contains("4 times"), "{asked:?}");
    });
}

#[test]
fn a_hook_that_cannot_be_asked_is_an_ask() {
    run(async {
        for (broken, why) in [
            ("echo nonsense", "makes no sense"),
            ("echo '{\"decision\": \"sure\"}'", "makes no sense"),
            ("echo 'out of order' >&2; exit 3", "exit status: 3: out of order"),
            ("kill -9 $$", "signal: 9"),
            ("head -c 5000000 /dev/zero", "more than 4 MiB"),
        ] {
            let stage = Stage::new(vec![script("*", broken)], Vec::new());
            let outcome = stage.call("calc.eval", sum()).await;
            assert_eq!((kind(&outcome), outcome.verdict.by.as_str()), ("approval_required", "hook"), "{broken}");
            assert!(outcome.verdict.reason.contains(why), "{broken}: {}", outcome.verdict.reason);
            assert_eq!(stage.hook_records(&outcome).await[0]["said"], "error");
        }
        let gone = hook("*", Asks::Program(vec!["/no/such/program".to_owned()]));
        assert_eq!(kind(&Stage::new(vec![gone], Vec::new()).call("calc.eval", sum()).await), "approval_required");
    });
}

/// Whether anything runs that has this word in its command line.
fn runs(word: &str) -> bool {
    let dirs = std::fs::read_dir("/proc").unwrap().flatten();
    dirs.filter_map(|dir| std::fs::read(dir.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(word))
}

#[test]
fn a_slow_hook_is_ended_with_all_that_it_started() {
    run(async {
        for halted in [false, true] {
            let word = format!("86400.{}", new_call_id().as_str().bytes().map(u32::from).sum::<u32>());
            let mut slow = script("*", &format!("sleep {word} & sleep {word}"));
            slow.timeout = if halted { LONG } else { Duration::from_millis(300) };
            let stage = Stage::new(vec![slow], Vec::new());
            let (begun, halt) = (Instant::now(), Halt::new());
            let (outcome, ()) =
                tokio::join!(async { stage.haft.call(call("calc.eval", sum()), &Nobody, &halt).await }, async {
                    while halted && !runs(&word) {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    if halted {
                        halt.cancel();
                    }
                });
            let expected = if halted { "cancelled" } else { "approval_required" };
            assert_eq!(kind(&outcome), expected, "{outcome:?}");
            assert!(begun.elapsed() < Duration::from_secs(20));
            let until = Instant::now() + Duration::from_secs(5);
            while runs(&word) && Instant::now() < until {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(!runs(&word), "it goes on");
        }
    });
}

#[test]
fn a_program_that_agents_may_change_is_not_run() {
    run(async {
        let program = |path: &str| hook("*", Asks::Program(["sh", path].map(str::to_owned).to_vec()));
        let stage = Stage::new(vec![program("check.sh")], Vec::new());
        std::fs::write(stage.path("check.sh"), "touch ran").unwrap();
        let outcome = stage.call("calc.eval", sum()).await;
        assert!(outcome.verdict.reason.contains("lies in the project"), "{outcome:?}");
        assert!(!stage.path("ran").exists());
        let stage = Stage::new(vec![program(".haft/check.sh")], Vec::new());
        std::fs::create_dir(stage.path(".haft")).unwrap();
        std::fs::write(stage.path(".haft/check.sh"), "touch ran").unwrap();
        assert!(stage.call("calc.eval", sum()).await.success);
        assert!(stage.path("ran").exists(), "agents cannot write there");
    });
}

#[test]
fn a_hook_is_told_whose_call_it_is_and_has_no_secrets_in_its_environment() {
    run(async {
        let stage = Stage::new(vec![script("*", "cat > given.json; env > env.txt")], Vec::new());
        let mut call = call("calc_eval", sum());
        call.caller.agent = Some("planner".to_owned());
        let id = call.id.clone();
        assert!(stage.haft.call(call, &Nobody, &free()).await.success);
        let given: Value = serde_json::from_slice(&std::fs::read(stage.path("given.json")).unwrap()).unwrap();
        let root = stage.path("").canonicalize().unwrap();
        let expected = json!({
            "event": "before_call", "call_id": id, "session": "default", "tool": "calc.eval",
            "args": {"expression": "1 + 1"}, "caller": {"agent": "planner"}, "origin": "library", "parents": [],
            "cwd": root,
        });
        assert_eq!(given, expected);
        let env = std::fs::read_to_string(stage.path("env.txt")).unwrap();
        assert!(env.contains("PATH=") && !env.contains("CARGO_PKG"), "{env}");
    });
}

#[test]
fn an_after_hook_redacts_warns_and_fails_but_never_mends() {
    run(async {
        let redact = r#"sed -n 's/.*"output":"\([^"]*\)".*/{"output": "\1"}/p' | sed s/hunter2/[gone]/"#;
        let stage = Stage::new(Vec::new(), vec![script("file.read", redact)]);
        std::fs::write(stage.path("a.txt"), "password hunter2").unwrap();
        let outcome = stage.call("file.read", json!({"path": "a.txt"})).await;
        assert!(outcome.success && outcome.output.contains("[gone]"), "{outcome:?}");
        assert!(!serde_json::to_string(&outcome).unwrap().contains("hunter2"), "{outcome:?}");
        assert_eq!(stage.hook_records(&outcome).await[0]["said"], "replaced the output");

        let strict = script("*", r#"echo '{"warning": "careful", "fail": "tests are red"}'"#);
        let broken = script("*", "exit 1");
        let stage = Stage::new(Vec::new(), vec![strict, broken]);
        let failed = stage.call("calc.eval", sum()).await;
        assert!(
            kind(&failed) == "failed" && failed.output.contains("withheld"),
            "what a hook cannot look at is not shown: {failed:?}"
        );
        assert!(failed.error.as_ref().unwrap().message.ends_with("tests are red"));
        assert_eq!(failed.warnings[0], "the hook `check` says: careful");
        assert!(failed.warnings[1].contains("could not be asked: it ended with exit status: 1"), "{failed:?}");
        let mend = script("*", r#"echo '{"output": "all is well"}'"#);
        let stage = Stage::new(Vec::new(), vec![mend]);
        let failed = stage.call("file.read", json!({"path": "missing.txt"})).await;
        assert_eq!(kind(&failed), "not_found", "{failed:?}");
    });
}

/// Fetches something nobody vouches for, and calls another tool.
struct Outer(Arc<ToolSpec>);

impl Tool for Outer {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }
    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let inner = scene.call().makes(new_call_id(), "calc.eval", sum());
            let outcome = scene.back().call(inner).await?;
            let mut reply = Reply::text(format!("{} {}", outcome.success, outcome.verdict.by));
            reply.labels.push(haft_core::outcome::Label::Untrusted);
            Ok(reply)
        })
    }
}

#[test]
fn a_nested_call_is_hooked_and_labels_stay() {
    run(async {
        let deny =
            script("calc.*", r#"grep -q '"parents":\["' && echo '{"decision": "deny", "reason": "nested"}'; true"#);
        let replace = script("outer", r#"echo '{"output": "clean"}'"#);
        let stage = Stage::new(vec![deny], vec![replace]);
        let spec = ToolSpec::new("outer", "Makes a call").unwrap();
        stage.haft.registry().register(Arc::new(Outer(Arc::new(spec)))).unwrap();
        assert!(stage.call("calc.eval", sum()).await.success, "the outermost is not");
        let unhooked = Stage::new(Vec::new(), Vec::new());
        let spec = ToolSpec::new("outer", "Makes a call").unwrap();
        unhooked.haft.registry().register(Arc::new(Outer(Arc::new(spec)))).unwrap();
        assert!(unhooked.call("outer", json!({})).await.output.contains("true"));
        let outcome = stage.call("outer", json!({})).await;
        assert_eq!(outcome.labels, [haft_core::outcome::Label::Untrusted]);
        assert!(outcome.output.starts_with("<untrusted mark=") && outcome.output.contains("clean"), "{outcome:?}");
        stage.haft.flush().await.unwrap();
        let records = stage.haft.store().records(0, 100, None).await.unwrap();
        let refused = records.iter().find(|record| record.body["kind"] == "refused").unwrap();
        assert_eq!((&refused.body["tool"], &refused.body["verdict"]["by"]), (&json!("calc.eval"), &json!("hook")));
    });
}

/// Answers each request with the same body, as often as asked, and gives back what it was sent.
fn serve(status: &'static str, body: &'static str) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut text, mut piece) = (String::new(), [0; 4096]);
            while !text.split_once("\r\n\r\n").is_some_and(|(_, body)| body.ends_with('}')) {
                let read = stream.read(&mut piece).unwrap();
                text.push_str(&String::from_utf8_lossy(&piece[..read]));
                if read == 0 {
                    break;
                }
            }
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nlocation: http://127.0.0.1:1/\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes());
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    (url, heard)
}

#[test]
fn a_hook_behind_an_address_is_asked_and_fails_closed_too() {
    run(async {
        let at = |url: &str| hook("*", Asks::Address(Target::read(url).unwrap(), OnceLock::new()));
        let (url, heard) = serve("200 OK", r#"{"decision": "deny", "reason": "by wire"}"#);
        let stage = Stage::new(vec![at(&url)], Vec::new());
        let denied = stage.call("calc.eval", sum()).await;
        assert!(kind(&denied) == "denied" && denied.verdict.reason.ends_with("by wire"), "{denied:?}");
        let request = heard.recv().unwrap();
        assert!(request.starts_with("POST /hook ") && request.contains(r#""event":"before_call""#), "{request}");
        for (status, why) in [("500 Oh", "status 500"), ("302 Found", "status 302")] {
            let (url, _heard) = serve(status, "{}");
            let outcome = Stage::new(vec![at(&url)], Vec::new()).call("calc.eval", sum()).await;
            assert!(kind(&outcome) == "approval_required" && outcome.verdict.reason.contains(why), "{outcome:?}");
        }
        let nobody = Stage::new(vec![at("http://127.0.0.1:1/")], Vec::new()).call("calc.eval", sum()).await;
        assert!(nobody.verdict.reason.contains("cannot be reached"), "{nobody:?}");
        let (url, _heard) = serve("200 OK", "");
        assert!(Stage::new(vec![at(&url)], Vec::new()).call("calc.eval", sum()).await.success, "silence is no opinion");
    });
}

#[test]
fn looking_asks_the_hooks_and_leaves_no_trace() {
    run(async {
        let stage = Stage::new(
            vec![script("*", r#"echo '{"decision": "ask", "reason": "hm"}'"#)],
            vec![script("*", "touch after")],
        );
        let explained = stage.haft.explain(call("calc.eval", sum())).await.unwrap();
        assert_eq!(explained.verdict.by, "hook");
        assert!(explained.votes.iter().any(|cast| cast.by == "hook" && cast.reason.contains("`check` says: hm")));
        stage.haft.dry_run(call("calc.eval", sum()), &free()).await;
        assert!(!Path::new(&stage.path("after")).exists(), "nothing ran, so nothing is told");
    });
}
