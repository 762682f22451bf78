//! What happens, told as it happens.

use crate::client::Stream;
use crate::{Env, Gateway};
use serde_json::json;

impl Gateway {
    fn listen(&self, query: &str, last: Option<u64>) -> Stream {
        let mut stream = self.server.connect();
        let mut headers = self.bearer();
        headers.extend(last.map(|id| ("Last-Event-ID", id.to_string())));
        self.server.send(&mut stream, "GET", &format!("/v1/events{query}"), &headers, None);
        let mut stream = Stream::new(stream);
        if last.is_none() {
            assert_eq!(stream.block().as_deref(), Some(": connected"));
        }
        stream
    }
}

#[test]
fn a_call_is_told_from_its_start_to_its_end() {
    let env = Env::new();
    let gateway = env.serve_with(&["--session", "work"]);
    let mut stream = gateway.listen("", None);
    let outcome = gateway.call("calc.eval", json!({"expression": "6 * 7"})).json();
    let id = outcome["call_id"].as_str().unwrap();
    let start = stream.about("tool_start", id);
    assert_eq!((&start.data["tool"], &start.data["preview"]), (&json!("calc.eval"), &json!("calc.eval: 6 * 7")));
    let end = stream.about("tool_end", id);
    assert_eq!((&end.data["outcome"]["output"], &end.data["session"]), (&json!("42"), &json!("work")));
    assert_eq!(end.id.unwrap(), start.id.unwrap() + 1);
}

#[test]
fn a_question_is_told_and_so_is_its_answer() {
    let env = Env::new();
    let gateway = env.serve();
    let mut stream = gateway.listen("", None);
    let id = gateway.ask_to_write("a.txt");
    let asked = stream.about("approval", &id);
    assert_eq!(
        (&asked.data["preview"], &asked.data["verdict"]["decision"]),
        (&json!("file.write: a.txt (5B)"), &json!("ask"))
    );
    gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "reject"}));
    let decided = stream.about("decided", &id);
    assert_eq!((&decided.data["state"], &decided.data["by"]), (&json!("rejected"), &json!("owner token")));
}

#[test]
fn whoever_comes_back_gets_what_it_missed_and_is_told_what_is_gone() {
    let env = Env::new();
    let gateway = env.serve();
    let mut stream = gateway.listen("", None);
    let mut told = Vec::new();
    for number in 0..4 {
        let outcome = gateway.call("calc.eval", json!({"expression": number.to_string()})).json();
        told.push(stream.about("tool_end", outcome["call_id"].as_str().unwrap()));
    }
    let mut back = gateway.listen("", told[1].id);
    let next = back.next().unwrap();
    assert_eq!((next.id, next.name.as_str()), (Some(told[1].id.unwrap() + 1), "tool_start"));
    assert_eq!(back.next().unwrap(), told[2]);
    let mut by_query = gateway.listen(&format!("?last_event_id={}", told[2].id.unwrap()), Some(told[2].id.unwrap()));
    assert_eq!(by_query.next().unwrap().id, Some(told[2].id.unwrap() + 1));
    let mut stranger = gateway.listen("", Some(5));
    let missed = stranger.next().unwrap();
    assert_eq!((missed.name.as_str(), &missed.data["restarted"], missed.id), ("missed", &json!(true), None));
    // More than is kept.
    let first = told[0].id.unwrap();
    for _ in 0..600 {
        gateway.call("calc.eval", json!({"expression": "1"}));
    }
    let mut late = gateway.listen("", Some(first));
    let missed = late.next().unwrap();
    assert_eq!(missed.name, "missed");
    let gone = missed.data["count"].as_u64().unwrap();
    assert!(gone > 100, "{missed:?}");
    assert_eq!(late.next().unwrap().id, Some(first + gone + 1), "and the rest follows without a gap");
}

#[test]
fn a_listener_may_want_one_session_only() {
    let env = Env::new();
    let gateway = env.serve();
    let mut stream = gateway.listen("?session=mine", None);
    gateway.call("calc.eval", json!({"expression": "1"}));
    let mine = gateway.post("/v1/tools/calc.eval/call", json!({"args": {"expression": "2"}, "session": "mine"})).json();
    let first = stream.next().unwrap();
    assert_eq!((first.name.as_str(), &first.data["call_id"]), ("tool_start", &mine["call_id"]));
}

#[test]
fn calls_of_other_processes_are_told_too() {
    let env = Env::new();
    let gateway = env.serve();
    let mut stream = gateway.listen("", None);
    let outcome = env.run(&["call", "calc.eval", r#"{"expression": "5 * 5"}"#, "--json", "--session", "theirs"]);
    let id = outcome["call_id"].as_str().unwrap();
    let start = stream.about("tool_start", id);
    assert_eq!((&start.data["preview"], &start.data["session"]), (&json!("calc.eval: 5 * 5"), &json!("theirs")));
    let end = stream.about("tool_end", id);
    assert_eq!((&end.data["outcome"]["success"], &end.data["outcome"]["output"]), (&json!(true), &json!("")));
    let args = r#"{"path": "a.txt", "content": "x"}"#;
    let outcome = env.run(&["call", "file.write", args, "--no-input", "--json"]);
    let id = outcome["call_id"].as_str().unwrap();
    let asked = stream.about("approval", id);
    assert_eq!(asked.data["preview"], "file.write: a.txt (1B)");
    env.command(&["approvals", "reject", id]).output().unwrap();
    let decided = stream.about("decided", id);
    assert_eq!(decided.data["state"], "rejected");
    assert!(decided.data["by"].as_str().unwrap().starts_with("cli"));
    // And its own are told once.
    let own = gateway.call("calc.eval", json!({"expression": "1"})).json();
    let id = own["call_id"].as_str().unwrap();
    stream.about("tool_end", id);
    env.run(&["call", "calc.eval", r#"{"expression": "7"}"#, "--json"]);
    let next = stream.next().unwrap();
    assert_eq!(next.data["preview"], "calc.eval: 7", "{next:?}");
}

/// A listener that does not read costs a bounded amount, does not hold up the others, and is told what it missed.
#[test]
fn a_slow_listener_is_told_what_it_missed() {
    let env = Env::new();
    env.file("large.txt", &"a line of a file that is read\n".repeat(400));
    let gateway = env.serve();
    let mut slow = gateway.listen("", None);
    let mut quick = gateway.listen("", None);
    // More than the buffers of a connection hold, and then more than the gateway keeps for one listener.
    let body = json!({"args": {"path": "large.txt"}}).to_string();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut stream = gateway.server.connect();
                let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
                for _ in 0..800 {
                    let path = "/v1/tools/file.read/call";
                    gateway.server.send(&mut stream, "POST", path, &gateway.bearer(), Some(&body));
                    assert_eq!(crate::client::read_answer(&mut reader).status, 200);
                }
            });
        }
        scope.spawn(|| (0..4 * 800).for_each(|_| while quick.next().unwrap().name != "tool_end" {}));
    });
    let told = std::iter::from_fn(|| slow.next()).find(|told| told.name == "missed").unwrap();
    assert!(told.data["count"].as_u64().unwrap() > 0);
    let metrics = gateway.get("/metrics").text();
    assert!(!metrics.contains("haft_events_missed_total 0"), "{metrics}");
}

#[test]
fn what_a_call_sends_is_told_and_can_be_fetched() {
    let env = Env::new();
    let gateway = env.serve_with(&["--session", "work"]);
    let mut stream = gateway.listen("", None);
    let sent =
        gateway.call("media.send", json!({"data": "PGI+aGk8L2I+", "mime_type": "text/html", "filename": "a b.html"}));
    let id = sent.json()["call_id"].as_str().unwrap().to_owned();
    let told = stream.about("attachment", &id);
    let url = format!("/v1/calls/{id}/attachments/a%20b.html");
    assert_eq!(
        (&told.data["name"], &told.data["url"], &told.data["session"]),
        (&json!("a b.html"), &json!(url), &json!("work"))
    );
    let fetched = gateway.get(&url);
    assert_eq!((fetched.status, fetched.text().as_str()), (200, "<b>hi</b>"));
    // It is saved, not shown: a page that an agent wrote would speak as this one.
    assert_eq!(fetched.header("content-type"), Some("application/octet-stream"));
    assert!(fetched.header("content-disposition").unwrap().starts_with("attachment;"));
    for nothing in ["%2e%2e%2f%2e%2e%2fhaft.db", "..", "other.html"] {
        assert_eq!(gateway.get(&format!("/v1/calls/{id}/attachments/{nothing}")).status, 404, "{nothing}");
    }
}
