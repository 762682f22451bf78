//! Spans reach a collector that the usual variables name, and nothing happens without one.

use super::Env;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;

/// Takes one request, answers it, and gives back its path and body.
fn collect(listener: &TcpListener) -> (String, Vec<u8>) {
    let (mut peer, _) = listener.accept().unwrap();
    let mut seen = Vec::new();
    let mut chunk = [0; 4096];
    let (head, length) = loop {
        let read = peer.read(&mut chunk).unwrap();
        seen.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&seen).to_ascii_lowercase();
        if let Some(end) = text.find("\r\n\r\n") {
            let length = text.split("content-length:").nth(1).and_then(|rest| rest.lines().next()).unwrap();
            break (end + 4, length.trim().parse::<usize>().unwrap());
        }
    };
    while seen.len() < head + length {
        let read = peer.read(&mut chunk).unwrap();
        seen.extend_from_slice(&chunk[..read]);
    }
    peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
    let path = String::from_utf8_lossy(&seen).split(' ').nth(1).unwrap().to_owned();
    (path, seen[head..].to_vec())
}

fn holds(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_span_for_each_call_and_stage_reaches_the_collector() {
    let env = Env::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let mut command = env.command(&["call", "calc.eval", "expression=6 * 7"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).env("OTEL_SERVICE_NAME", "under-test");
    let (output, (path, body)) = std::thread::scope(|scope| {
        let collected = scope.spawn(|| collect(&listener));
        (command.output().unwrap(), collected.join().unwrap())
    });
    assert_eq!(String::from_utf8_lossy(&output.stdout), "42\n");
    assert_eq!(path, "/v1/traces");
    for said in [
        "execute_tool calc.eval",
        "gen_ai.operation.name",
        "gen_ai.tool.call.id",
        "validate",
        "admit",
        "record",
        "run",
        "shape",
        "under-test",
    ] {
        assert!(holds(&body, said), "{said} is not in what was sent");
    }
    assert!(!holds(&body, "6 * 7"), "arguments are not for a collector");
}

#[test]
fn a_collector_that_is_not_there_keeps_nobody_from_working() {
    let env = Env::new();
    // Nobody listens where a listener has just been.
    let endpoint = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let run = |variables: &[(&str, &str)]| -> Output {
        let mut command = env.command(&["call", "calc.eval", "expression=6 * 7"]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint).envs(variables.iter().copied());
        command.output().unwrap()
    };
    for variables in [&[][..], &[("OTEL_SDK_DISABLED", "true")], &[("OTEL_TRACES_EXPORTER", "none")]] {
        let output = run(variables);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"42\n"[..]), "{variables:?}");
    }
}
