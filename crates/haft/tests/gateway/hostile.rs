//! Clients that mean harm or know no better: bounded, apart from the others, and told.

use crate::client::read_answer;
use crate::{Env, Gateway, started, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::io::{BufReader, Read, Write};
use std::time::{Duration, Instant};

/// How much memory the gateway has in use.
fn resident(gateway: &Gateway) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[test]
fn a_body_of_a_hundred_megabytes_is_refused_and_never_held() {
    let env = Env::new();
    let gateway = env.serve();
    gateway.call("calc.eval", json!({"expression": "1"}));
    let before = resident(&gateway);
    for announced in [true, false] {
        let mut stream = gateway.server.connect();
        let length = if announced { "Content-Length: 104857600" } else { "Transfer-Encoding: chunked" };
        let head = format!(
            "POST /v1/tools/calc.eval/call HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{length}\r\n\r\n",
            gateway.server.host, gateway.token
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut sender = stream.try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            let block = vec![b' '; 1 << 20];
            for _ in 0..100 {
                // The gateway may have had enough.
                let sent = if announced {
                    sender.write_all(&block)
                } else {
                    sender
                        .write_all(format!("{:x}\r\n", block.len()).as_bytes())
                        .and_then(|()| sender.write_all(&block))
                        .and_then(|()| sender.write_all(b"\r\n"))
                };
                if sent.is_err() {
                    return;
                }
            }
            let _ = sender.write_all(if announced { b"" } else { b"0\r\n\r\n" });
        });
        let answer = read_answer(&mut BufReader::new(stream));
        assert_eq!(answer.status, 413, "{answer:?}");
        sending.join().unwrap();
    }
    let grown = resident(&gateway).saturating_sub(before);
    assert!(grown < 64 << 20, "it grew by {grown} bytes");
    assert_eq!(gateway.call("calc.eval", json!({"expression": "2"})).status, 200);
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let env = Env::new();
    let gateway = env.serve();
    let mut headers = gateway.bearer();
    headers.push(("X-Large", "x".repeat(64 << 10)));
    let mut stream = gateway.server.connect();
    gateway.server.send(&mut stream, "GET", "/v1/tools", &headers, None);
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    assert!(heard.is_empty() || heard.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&heard));
    for garbage in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
    ] {
        let mut stream = gateway.server.connect();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        assert!(!heard.starts_with(b"HTTP/1.1 200"));
    }
    assert_eq!(gateway.get("/health").status, 200);
}

/// A client that sends a byte now and then holds its connection for ten seconds and no longer.
#[test]
fn a_slow_loris_is_cut_off() {
    let env = Env::new();
    let gateway = env.serve();
    let mut stream = gateway.server.connect();
    let begun = Instant::now();
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: ").unwrap();
    let mut sender = stream.try_clone().unwrap();
    std::thread::spawn(move || {
        while sender.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    let took = begun.elapsed();
    assert!((Duration::from_secs(8)..Duration::from_secs(20)).contains(&took), "{took:?}");
    assert!(!heard.starts_with(b"HTTP/1.1 200"));
}

#[test]
fn a_thousand_idle_sockets_hold_nobody_up() {
    let env = Env::new();
    let gateway = env.serve();
    // This process needs as many files as it opens sockets.
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum }).unwrap();
    let idle: Vec<_> = (0..1000).map(|_| gateway.server.connect()).collect();
    for number in 0..50 {
        let answer = gateway.call("calc.eval", json!({"expression": format!("{number}")}));
        assert_eq!((answer.status, answer.json()["output"].as_str()), (200, Some(number.to_string().as_str())));
    }
    let text = gateway.get("/metrics").text();
    let open: u64 = text.lines().find_map(|line| line.strip_prefix("haft_connections ")).unwrap().parse().unwrap();
    assert!(open > 1000, "{open}");
    drop(idle);
    until(|| gateway.get("/metrics").text().contains("haft_connections 1\n").then_some(()));
}

/// Asks to write a file, waiting for an answer, and goes away when the question is there.
fn leave_while_waiting(gateway: &Gateway) -> String {
    let body = json!({"args": {"path": "a.txt", "content": "x"}, "wait_ms": 60_000}).to_string();
    let mut stream = gateway.server.connect();
    gateway.server.send(&mut stream, "POST", "/v1/tools/file.write/call", &gateway.bearer(), Some(&body));
    let id = until(|| gateway.get("/v1/approvals").json()["approvals"][0]["id"].as_str().map(str::to_owned));
    drop(stream);
    id
}

#[test]
fn a_call_whose_caller_has_gone_is_cancelled_if_the_operator_says_so() {
    let env = Env::new();
    env.config("gateway: {on_disconnect: cancel}\n");
    let gateway = env.serve();
    let id = leave_while_waiting(&gateway);
    let call = until(|| {
        let call = gateway.get(&format!("/v1/calls/{id}")).json();
        call["ended_ms"].is_number().then_some(call)
    });
    assert_eq!((&call["state"], &call["error"]["kind"]), (&json!("refused"), &json!("cancelled")), "{call:#}");
    let approval = gateway.get(&format!("/v1/approvals/{id}")).json()["approval"].clone();
    assert_eq!((&approval["state"], &approval["decided_by"]), (&json!("rejected"), &json!("caller")));
    assert_eq!(gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"})).status, 409);
}

#[test]
fn a_call_whose_caller_has_gone_is_otherwise_carried_to_its_end() {
    let env = Env::new();
    let gateway = env.serve();
    let id = leave_while_waiting(&gateway);
    let decided = gateway.post(&format!("/v1/approvals/{id}"), json!({"decision": "once"}));
    assert_eq!((decided.status, env.read("a.txt").as_str()), (200, "x"), "{decided:?}");
    let call = gateway.get(&format!("/v1/calls/{id}")).json();
    assert_eq!((&call["state"], &call["outcome"]["success"]), (&json!("done"), &json!(true)), "{call:#}");
}

#[test]
fn beyond_the_limit_connections_are_told_so() {
    let env = Env::new();
    // A process that may open few files has room for few connections.
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 320; exec \"$0\" serve --listen 127.0.0.1:0 --print-url"]);
    limited.arg(env!("CARGO_BIN_EXE_haft")).current_dir(env.root()).env("HOME", env.dir.path().join("home"));
    let gateway = started(limited);
    let idle: Vec<_> = (0..64).map(|_| gateway.server.connect()).collect();
    let refused = idle.iter().any(|stream| {
        let mut stream = stream;
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut heard = [0; 12];
        stream.read_exact(&mut heard).is_ok() && &heard == b"HTTP/1.1 503"
    });
    assert!(refused);
    drop(idle);
    until(|| {
        let mut stream = gateway.server.connect();
        gateway.server.send(&mut stream, "GET", "/metrics", &gateway.bearer(), None);
        let answer = read_answer(&mut BufReader::new(stream));
        (answer.status == 200).then(|| assert!(answer.text().contains("haft_connections_refused_total ")))
    });
}

#[test]
fn neither_settings_nor_status_give_secrets_away() {
    let env = Env::new();
    env.config(
        "mcp:\n  servers:\n    far:\n      url: http://127.0.0.1:9/mcp?api_key=SECRET1\n      headers: {X-Auth: SECRET2, Cookie: a=SECRET3}\n    near:\n      command: /bin/false\n      args: [--password, SECRET4, --token=SECRET5]\n      env: {PGPASS: SECRET6}\n",
    );
    let gateway = env.serve();
    let config = gateway.get("/v1/config");
    assert!(config.text().contains("127.0.0.1:9"), "{}", config.text());
    assert!(!config.text().contains("SECRET"), "{}", config.text());
    let status = until(|| {
        let status = gateway.get("/v1/status");
        let servers = status.json()["servers"].clone();
        let failed = servers.as_array()?.iter().find(|server| server["name"] == "far")?["error"].is_string();
        failed.then_some(status)
    });
    assert!(!status.text().contains("SECRET"), "{}", status.text());
}

#[test]
fn so_many_calls_of_a_session_wait_and_the_next_is_told_to_come_later() {
    let env = Env::new();
    let gateway = env.serve();
    let body = |number: usize, wait_ms: u64| json!({"args": {"path": format!("{number}.txt"), "content": "x"}, "wait_ms": wait_ms});
    let waiting: Vec<_> = (0..64)
        .map(|number| {
            let (mut stream, body) = (gateway.server.connect(), body(number, 60_000).to_string());
            gateway.server.send(&mut stream, "POST", "/v1/tools/file.write/call", &gateway.bearer(), Some(&body));
            stream
        })
        .collect();
    until(|| (gateway.get("/v1/approvals").json()["approvals"].as_array()?.len() == 64).then_some(()));
    let late = gateway.post("/v1/tools/file.write/call", body(64, 60_000));
    assert_eq!((late.status, late.json()["error"]["kind"].as_str()), (429, Some("busy")), "{late:?}");
    assert!(late.header("retry-after").is_some());
    let params = json!({"name": "file.write", "args": {"path": "r.txt", "content": "x"}, "wait_ms": 60_000});
    let late = gateway.post("/rpc", json!({"id": 1, "method": "tools.invoke", "params": params})).json();
    assert_eq!(late["error"]["code"], -32000, "{late:#}");
    assert_eq!(gateway.post("/v1/tools/file.write/call", body(65, 0)).status, 202, "who does not wait is asked about");
    let mut other = body(66, 1);
    other["session"] = json!("other");
    assert_eq!(gateway.post("/v1/tools/file.write/call", other).status, 202, "another session has places of its own");
    drop(waiting);
}
