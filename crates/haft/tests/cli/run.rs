//! `haft run`: an agent does something, and a person or a program sees it happen.

use super::{Env, Ran};
use haft_core::SessionId;
use haft_stub::{Asked, Counted, Reply, Stub, Trouble, Wire};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

/// A project whose model is the stub.
fn scene(stub: &Stub) -> Env {
    let env = Env::new();
    let url = stub.base(Wire::Anthropic);
    env.config(&format!(
        "models:\n  use: [stub/stub-1]\n  providers:\n    stub: {{wire: anthropic, url: \"{url}\"}}\n  known:\n    \
         stub/stub-1: {{window: 200000, max_output: 4000, input: 1, output: 1}}\n"
    ));
    env
}

fn script() -> Vec<Reply> {
    vec![
        Reply::say("I look first.").and_call("file_read", json!({"path": "a.txt"})),
        Reply::call("file_edit", json!({"path": "a.txt", "old_string": "one", "new_string": "two"})),
        Reply::say("It says two now."),
    ]
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn into_a_pipe_go_the_last_words_and_what_was_done_is_told_beside() {
    let stub = Stub::start(script());
    let env = scene(&stub);
    env.file("a.txt", "one\n");
    let ran = env.run(&["run", "--yes", "make", "it", "two"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "It says two now.\n"), "{}", ran.stderr);
    assert_eq!(env.read("a.txt"), "two\n");
    assert!(ran.stderr.contains("file.read: a.txt") && ran.stderr.contains("file.edit: a.txt"), "{}", ran.stderr);
    assert!(ran.stderr.contains("3 turns, 2 calls") && ran.stderr.contains("haft run --resume="), "{}", ran.stderr);
    assert!(stub.asked()[0].says("make it two"));
}

#[test]
fn nobody_there_means_nothing_is_changed() {
    let stub = Stub::start(script());
    let env = scene(&stub);
    env.file("a.txt", "one\n");
    let ran = env.run(&["run", "--no-input", "make it two"]);
    assert_eq!((ran.code, env.read("a.txt").as_str()), (4, "one\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 calls wait for a person"), "{}", ran.stderr);
    assert!(stub.asked()[2].says("approval_required"));
}

#[test]
fn events_and_messages_are_json_lines() {
    let stub = Stub::start(script());
    let env = scene(&stub);
    env.file("a.txt", "one\n");
    let ran = env.run(&["run", "--yes", "--json", "make it two"]);
    let told = lines(&ran);
    assert_eq!((told[0]["event"].as_str(), told.last().unwrap()["event"].as_str()), (Some("start"), Some("done")));
    assert_eq!(told.last().unwrap()["ended"]["end"], "done");
    let ends = told.iter().filter(|told| told["event"] == "tool_end");
    assert!(ends.clone().count() == 2 && ends.clone().all(|end| end["outcome"]["success"] == true));
    let stub = Stub::start(script());
    let env = scene(&stub);
    env.file("a.txt", "one\n");
    let ran = env.run(&["run", "--yes", "--format", "stream-json", "make it two"]);
    let kinds: Vec<String> = lines(&ran).iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
    let whole = ["system", "user", "assistant", "user", "assistant", "user", "assistant", "result"];
    assert_eq!(kinds, whole, "{}", ran.stdout);
    let last = lines(&ran).pop().unwrap();
    assert_eq!(
        (&last["subtype"], &last["result"], &last["num_turns"]),
        (&json!("success"), &json!("It says two now."), &json!(3))
    );
    assert_eq!(lines(&ran)[2]["message"]["content"][1]["name"], "file_read");
}

#[test]
fn a_conversation_is_gone_on_with() {
    let stub = Stub::start(vec![Reply::say("Blue, then."), Reply::say("You said blue."), Reply::say("Still blue.")]);
    let env = scene(&stub);
    assert_eq!(env.run(&["run", "my colour is blue"]).code, 0);
    let ran = env.run(&["run", "--resume", "which colour?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "You said blue.\n"), "{}", ran.stderr);
    assert!(stub.asked()[1].says("my colour is blue"));
    let told = env.run(&["run", "--resume", "--json", "and now?"]);
    let session = lines(&told)[0]["session"].as_str().unwrap().to_owned();
    let listed = env.run(&["session", "list"]).stdout;
    assert!(listed.contains(&session) && listed.contains("my colour is blue"), "{listed}");
    let shown = env.run(&["session", "show", &session[..session.len() - 2]]).stdout;
    assert!(shown.contains("> which colour?") && shown.contains("You said blue."), "{shown}");
    assert!(stub.asked()[2].says("You said blue."));
    let ran = env.run(&["run", "--resume=nobody", "x"]);
    assert!(ran.code != 0 && ran.stderr.contains("there is no conversation `nobody`"), "{}", ran.stderr);
    let ran = env.run(&["run", "--resume", &session, "x"]);
    assert!(ran.code != 0 && ran.stderr.contains(&format!("--resume={session}")), "{}", ran.stderr);
    assert_eq!(stub.faults(), Vec::<String>::new());
}

#[test]
fn what_is_piped_in_is_told_as_well() {
    let stub = Stub::start(vec![Reply::say("I see it.")]);
    let env = scene(&stub);
    let mut child =
        env.command(&["run", "what is wrong?"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"error: it broke\n").unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(stub.asked()[0].says("what is wrong?") && stub.asked()[0].says("error: it broke"));
}

#[test]
fn without_words_without_a_model_and_with_an_odd_one_it_is_said_what_to_do() {
    let stub = Stub::start(Vec::new());
    let env = scene(&stub);
    let ran = env.run(&["run"]);
    assert!(ran.code == 2 && ran.stderr.contains("haft run \""), "{}", ran.stderr);
    let ran = env.run(&["run", "--model", "gpt", "x"]);
    assert!(ran.code == 2 && ran.stderr.contains("provider/model"), "{}", ran.stderr);
    let ran = env.run(&["run", "--model", "nobody/gpt", "x"]);
    assert!(ran.code != 0 && ran.stderr.contains("nobody"), "{}", ran.stderr);
    let ran = env.run(&["run", "--role", "wizard", "x"]);
    assert!(ran.code == 2 && ran.stderr.contains("researcher"), "{}", ran.stderr);
}

#[test]
fn a_model_that_does_not_let_us_in_is_an_error_and_the_conversation_stays() {
    let stub =
        Stub::with(
            |asked: &Asked| {
                if asked.number == 0 { Reply::trouble(Trouble::BadKey) } else { Reply::say("There you are.") }
            },
        );
    let env = scene(&stub);
    let ran = env.run(&["run", "hello"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("ended early"), "{}", ran.stderr);
    let ran = env.run(&["run", "--resume", "again"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "There you are.\n"), "{}", ran.stderr);
    assert!(stub.asked()[1].says("hello"));
}

#[test]
fn money_ends_it() {
    let stub = Stub::with(|asked| Reply::call("calc_eval", json!({"expression": format!("1+{}", asked.number)})));
    let env = scene(&stub);
    let ran = env.run(&["run", "--max-usd", "0.01", "count"]);
    assert!(ran.code == 1 && ran.stderr.contains("no money left"), "{}", ran.stderr);
    assert!(stub.asked().len() < 8, "{}", stub.asked().len());
}

#[test]
fn ctrl_c_stops_it_and_it_can_be_gone_on_with() {
    stopped_by(rustix::process::Signal::INT, 1);
}

#[test]
fn a_process_that_is_told_to_end_ends_as_cleanly() {
    stopped_by(rustix::process::Signal::TERM, 143);
}

/// A run that is stopped in the middle of a call has this exit code, and can be gone on with.
fn stopped_by(signal: rustix::process::Signal, code: i32) {
    let stub = Stub::with(|asked| {
        if asked.says("please continue") {
            return Reply::say("Gone on.");
        }
        Reply::call("shell_exec", json!({"command": "echo begun; sleep 20"}))
    });
    let env = scene(&stub);
    let mut child = env
        .command(&["run", "--yes", "--json", "wait"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
    let begun = std::time::Instant::now();
    while let Some(Ok(line)) = told.next() {
        if line.contains("tool_start") {
            break;
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, signal).unwrap();
    let rest: Vec<String> = told.map_while(Result::ok).collect();
    let status = child.wait().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(15));
    assert_eq!(status.code(), Some(code));
    assert!(rest.last().unwrap().contains("\"cancelled\""), "{rest:?}");
    let ran = env.run(&["run", "--resume", "please continue"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Gone on.\n"), "{}", ran.stderr);
    assert_eq!(stub.faults(), Vec::<String>::new());
}

#[test]
fn when_its_time_is_up_it_says_so() {
    let stub = Stub::with(|_| Reply::say("Wait.").slow(Duration::from_secs(30)));
    let env = scene(&stub);
    let config = env.dir.path().join("home/.config/haft/config.yml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}agent: {{max_minutes: 0}}\n")).unwrap();
    let ran = env.run(&["run", "go"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert!(ran.stderr.contains("ended early:"), "{}", ran.stderr);
}

#[test]
fn agents_that_are_asked_for_by_several_calls_work_at_once() {
    let there = std::sync::atomic::AtomicUsize::new(0);
    let met = std::sync::atomic::AtomicUsize::new(0);
    let stub = Stub::with(move |asked| match () {
        () if asked.says("do your part") && !asked.says("the parent") => {
            there.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            for _ in 0..250 {
                if there.load(std::sync::atomic::Ordering::SeqCst) == 2 {
                    return Reply::say(format!("Met {}.", met.fetch_add(1, std::sync::atomic::Ordering::SeqCst)));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Reply::say("Alone.")
        }
        () if asked.says("Met") => Reply::say("Both were there."),
        () if asked.says("Alone") => Reply::say("One after the other."),
        () => Reply::call("agent_spawn", json!({"name": "a", "task": "do your part"}))
            .and_call("agent_spawn", json!({"name": "b", "task": "do your part"})),
    });
    let env = scene(&stub);
    let ran = env.run(&["run", "you are the parent"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Both were there.\n"), "{}", ran.stderr);
}

#[test]
fn agents_in_the_background_are_waited_for() {
    let stub = Stub::with(|asked| match () {
        () if asked.says("count the stars") && !asked.says("the parent") => {
            Reply::say("Four thousand.").slow(Duration::from_millis(60))
        }
        () if asked.says("Four thousand.") => Reply::say("There are four thousand."),
        () if asked.says("runs in the background") => Reply::say("I wait."),
        () => Reply::call("agent_spawn", json!({"name": "counter", "task": "count the stars", "mode": "background"})),
    });
    let env = scene(&stub);
    let ran = env.run(&["run", "you are the parent"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "There are four thousand.\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("◀ counter: 1 turn, 0 calls"), "{}", ran.stderr);
}

#[test]
fn whoever_reads_lines_reads_why_it_could_not_begin() {
    let stub = Stub::start(Vec::new());
    let env = scene(&stub);
    let bare = Env::new();
    let cases: [(&Env, &[&str], &str); 4] = [
        (&env, &["--model", "gpt"], "provider/model"),
        (&env, &["--resume=nobody"], "there is no conversation `nobody`"),
        (&env, &["--role", "wizard"], "wizard"),
        (&bare, &[], "model"),
    ];
    for (env, more, why) in cases {
        let plain = env.run(&[&["run", "x"], more].concat());
        assert!(plain.code != 0 && plain.stdout.is_empty(), "{more:?}: {}", plain.stdout);
        for format in [&["--json"][..], &["--format", "events"], &["--format", "stream-json"]] {
            let ran = env.run(&[&["run", "x"], more, format].concat());
            assert_eq!(ran.code, plain.code, "{more:?} {format:?}");
            let told = lines(&ran);
            let last = told.last().unwrap_or_else(|| panic!("nothing on stdout: {more:?} {format:?}"));
            let message = if format.contains(&"stream-json") {
                assert_eq!((&last["type"], &last["is_error"]), (&json!("result"), &json!(true)), "{last}");
                &last["result"]
            } else {
                assert_eq!((&last["event"], &last["success"]), (&json!("error"), &json!(false)), "{last}");
                &last["error"]["message"]
            };
            assert!(message.as_str().unwrap().contains(why), "{last}");
        }
    }
}

#[test]
fn no_turns_at_all_is_refused() {
    let stub = Stub::start(Vec::new());
    let ran = scene(&stub).run(&["run", "--max-turns", "0", "x"]);
    assert!(ran.code == 2 && ran.stderr.contains("--max-turns"), "{}", ran.stderr);
    assert!(stub.asked().is_empty());
}

#[test]
fn an_answer_that_is_cut_off_and_goes_on_is_printed_whole() {
    let stub = Stub::start(vec![
        Reply::say("I look.").and_call("calc_eval", json!({"expression": "1+1"})),
        Reply::say("Once upon a ti").too_long(),
        Reply::say("me there was"),
    ]);
    let env = scene(&stub);
    let ran = env.run(&["run", "tell"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Once upon a time there was\n"), "{}", ran.stderr);
    let stub = Stub::with(|asked| Reply::say(format!("{} ", asked.number)).too_long());
    let ran = scene(&stub).run(&["run", "tell"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, "0 1 2\n"), "{}", ran.stderr);
}

#[test]
fn a_call_that_is_no_json_is_told_and_kept() {
    let stub = Stub::start(vec![Reply::default().and_call_raw("file_read", "{\"path\": \"a.t"), Reply::say("I see.")]);
    let env = scene(&stub);
    let ran = env.run(&["run", "--format", "stream-json", "read"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = lines(&ran);
    let call = &told[2]["message"]["content"][0];
    assert_eq!((&call["type"], &call["name"]), (&json!("tool_use"), &json!("file_read")), "{}", ran.stdout);
    assert_eq!(told[3]["message"]["content"][0]["is_error"], true);
    let session = told[0]["session_id"].as_str().unwrap();
    let shown = env.run(&["session", "show", session]).stdout;
    assert!(shown.contains("● file_read") && shown.contains("a.t") && shown.contains('✗'), "{shown}");
    assert_eq!(stub.faults(), Vec::<String>::new());
}

#[test]
fn what_is_said_of_a_call_is_not_cut_where_nobody_can_look_it_up() {
    let path = format!("{}/end.txt", "long/".repeat(40));
    let stub = Stub::start(vec![Reply::call("file_read", json!({"path": path})), Reply::say("It is not there.")]);
    let ran = scene(&stub).run(&["run", "read"]);
    let failed = ran.stderr.lines().find(|line| line.contains('✗')).unwrap();
    assert!(failed.contains("end.txt") && !failed.ends_with('…'), "{}", ran.stderr);
}

#[test]
fn a_question_within_a_script_or_a_prompt_that_finds_nobody_is_told_by_the_exit_code() {
    let code = "local ok = try('file.write', {path='a.txt', content='x'}) return tostring(ok)";
    let stub = Stub::start(vec![Reply::call("tool_script", json!({ "code": code })), Reply::say("I could not.")]);
    let env = scene(&stub);
    let ran = env.run(&["run", "--no-input", "write"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (4, "I could not.\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 calls wait for a person"), "{}", ran.stderr);
    let ran = env.run(&["call", "tool.script", &json!({ "code": code }).to_string(), "--no-input"]);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    let stub = Stub::start(vec![
        Reply::call("file_write", json!({"path": "a.txt", "content": "x"})),
        Reply::say("I could not."),
    ]);
    let env = scene(&stub);
    env.file(".haft/workflows/put.yml", "steps:\n  - {id: put, prompt: write it}\n");
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    let ran = env.run(&["pipeline", "run", "put", "--no-input"]);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    assert!(!env.root().join("a.txt").exists());
}

#[test]
fn where_stderr_is_no_terminal_nobody_is_told_what_is_waited_for() {
    let stub = Stub::start(vec![Reply::say("At last.").slow(Duration::from_millis(300))]);
    let ran = scene(&stub).run(&["run", "take your time"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "At last.\n"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("waiting") && !ran.stderr.contains('\r'), "{:?}", ran.stderr);
}

#[test]
fn a_rate_limit_in_the_words_of_an_overflow_is_waited_for() {
    let limited = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Too many tokens, please wait."}}"#;
    let script = || {
        vec![
            Reply::call("calc_eval", json!({"expression": "1+1"})),
            Reply::status(429, limited).header("retry-after", "1").header("content-type", "application/json"),
            Reply::say("Two, after all."),
        ]
    };
    let stub = Stub::start(script());
    let ran = scene(&stub).run(&["run", "count"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Two, after all.\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("asking again in 2 s, as its provider wants"), "{}", ran.stderr);
    let asked = stub.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[1].body["messages"], asked[2].body["messages"], "nothing is left out for it");
    let stub = Stub::start(script());
    let told = lines(&scene(&stub).run(&["run", "--json", "count"]));
    let waits: Vec<&Value> = told.iter().filter(|told| told["event"] == "retry").collect();
    assert_eq!((waits.len(), &waits[0]["requested"]), (1, &json!(true)), "{told:?}");
    assert!(waits[0]["after_ms"].as_i64().unwrap() > 500 && told.iter().all(|told| told["event"] != "compacted"));
    let stub = Stub::start(script());
    let told = lines(&scene(&stub).run(&["run", "--format", "stream-json", "count"]));
    assert_eq!(told.iter().filter(|told| told["subtype"] == "api_retry").count(), 1, "{told:?}");
}

#[test]
fn a_run_that_was_killed_goes_on_with_its_model_effort_budget_and_cost() {
    let costs =
        |reply: Reply| reply.counted(Counted { input: 100_000, cache_read: 0, cache_write: 0, output: 0, thinking: 0 });
    let stub = Stub::with(move |asked| match asked.number {
        0 => costs(Reply::call("shell_exec", json!({"command": "echo begun; sleep 60"}))),
        number => costs(Reply::call("calc_eval", json!({"expression": format!("{number}+1")}))),
    });
    let env = Env::new();
    let url = stub.base(Wire::Anthropic);
    env.config(&format!(
        "models:\n  use: [stub/stub-1]\n  providers:\n    stub: {{wire: anthropic, url: \"{url}\"}}\n  known:\n    \
         stub/stub-1: {{window: 200000, max_output: 4000, input: 1, output: 1}}\n    \
         stub/stub-2: {{window: 200000, max_output: 4000, input: 1, output: 1}}\n"
    ));
    let mut child = env
        .command(&["run", "--yes", "--json", "--model", "stub/stub-2", "--effort", "high", "--max-usd", "0.25", "wait"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let start: Value = serde_json::from_str(&told.next().unwrap()).unwrap();
    let session = start["session"].as_str().unwrap().to_owned();
    // Its answer is paid for and its call is under way; the price is written down while the call runs.
    let begun = told.find(|line| line.contains(r#""event":"usage""#));
    assert!(begun.is_some());
    let written = || {
        let store = haft_store::Store::open(&env.store()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let talk = runtime.block_on(store.talk(&SessionId::new(&session).unwrap())).unwrap();
        talk.is_some_and(|talk| talk.cost_micros == Some(100_000))
    };
    let since = std::time::Instant::now();
    while !written() {
        assert!(
            since.elapsed() < Duration::from_mins(2),
            "what the answer cost is not written down while its call runs"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = env.run(&["run", "--yes", "--json", "--resume", "go on"]);
    let (told, asked) = (lines(&ran), stub.asked());
    assert_eq!((told[0]["session"].as_str(), told[0]["model"].as_str()), (Some(session.as_str()), Some("stub/stub-2")));
    assert_eq!((asked[0].model(), asked[1].model()), ("stub-2".to_owned(), "stub-2".to_owned()));
    assert_eq!(asked[1].body["thinking"], asked[0].body["thinking"]);
    assert_eq!(asked[1].body["thinking"]["type"], "enabled", "{:#}", asked[1].body);
    assert_eq!((told.last().unwrap()["ended"]["end"].as_str(), asked.len()), (Some("funds"), 2), "{}", ran.stdout);
    let usage = told.iter().rfind(|told| told["event"] == "usage").unwrap();
    assert_eq!(usage["cost_micros"], 200_000, "{}", ran.stdout);
    assert!(ran.stderr.contains("no money left"), "{}", ran.stderr);
}

#[test]
fn an_undo_and_a_later_yes_are_told_when_the_conversation_goes_on() {
    let stub = Stub::with(|asked| match asked.body["messages"].to_string().matches("tool_result").count() {
        0 => Reply::call("file_write", json!({"path": "a.txt", "content": "one\n"})),
        1 => Reply::call("file_write", json!({"path": "b.txt", "content": "two\n"})),
        _ => Reply::say("Done."),
    });
    let env = scene(&stub);
    let ran = env.run(&["run", "--no-input", "write both"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let waiting = env.run(&["approvals", "--json"]).json();
    let ids: Vec<String> =
        waiting.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 2, "{waiting}");
    assert_eq!(env.run(&["approvals", "approve", &ids[0]]).code, 0);
    assert_eq!(env.run(&["approvals", "reject", &ids[1], "--message", "not that one"]).code, 0);
    assert_eq!((env.read("a.txt").as_str(), env.root().join("b.txt").exists()), ("one\n", false));
    let undone = env.run(&["undo", "--last"]);
    assert_eq!(undone.code, 0, "{}{}", undone.stdout, undone.stderr);
    for round in 0..2 {
        assert_eq!(env.run(&["run", "--no-input", "--resume", "and now?"]).code, 0);
        let last = stub.asked().pop().unwrap();
        let messages = last.body["messages"].to_string();
        for told in ["has been run. Do not make it again", "was rejected by", "not that one", "was undone"] {
            assert_eq!(messages.matches(told).count(), 1, "{round} {told}: {messages}");
        }
        assert!(!messages.contains("a person has to decide"), "{messages}");
    }
    assert_eq!(stub.faults(), Vec::<String>::new());
}
