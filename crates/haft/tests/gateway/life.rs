//! Starting, closing, and TLS.

use crate::client::{Stream, read_answer};
use crate::{Env, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

#[test]
fn a_store_elsewhere_needs_no_data_directory_before_the_first_start() {
    let env = Env::new();
    let store = env.dir.path().join("elsewhere/haft.db");
    let gateway = env.serve_with(&["--store", store.to_str().unwrap()]);
    assert_eq!(gateway.get("/health").status, 200);
    assert!(store.exists() && !env.data().join("haft.db").exists());
}

#[test]
fn a_gateway_that_is_told_to_end_finishes_what_runs_and_tells_who_listens() {
    let env = Env::new();
    let mut gateway = env.serve();
    let mut listener = gateway.server.connect();
    gateway.server.send(&mut listener, "GET", "/v1/events", &gateway.bearer(), None);
    let mut listener = Stream::new(listener);
    // A call that takes a while: it waits for somebody who does not come.
    let body = json!({"args": {"path": "a.txt", "content": "x"}, "wait_ms": 1500}).to_string();
    let mut waiting = gateway.server.connect();
    gateway.server.send(&mut waiting, "POST", "/v1/tools/file.write/call", &gateway.bearer(), Some(&body));
    until(|| gateway.get("/v1/approvals").json()["approvals"][0]["id"].is_string().then_some(()));
    let begun = Instant::now();
    gateway.signal(Signal::TERM);
    assert_eq!(read_answer(&mut BufReader::new(waiting)).status, 202, "it got its answer");
    let last = std::iter::from_fn(|| listener.next()).last().unwrap();
    assert_eq!(last.name, "closing");
    assert!(gateway.child.wait().unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    let log = env.run(&["log", "verify", "--json"]);
    assert!(!log.to_string().contains("interrupted"), "{log}");
}

#[test]
fn what_does_not_end_in_time_is_cancelled_and_recorded_as_such() {
    let env = Env::new();
    let mut gateway = env.serve();
    let body = json!({"args": {"path": "a.txt", "content": "x"}, "wait_ms": 600_000}).to_string();
    let mut waiting = gateway.server.connect();
    gateway.server.send(&mut waiting, "POST", "/v1/tools/file.write/call", &gateway.bearer(), Some(&body));
    let id = until(|| gateway.get("/v1/approvals").json()["approvals"][0]["id"].as_str().map(str::to_owned));
    gateway.signal(Signal::INT);
    let answer = read_answer(&mut BufReader::new(waiting));
    assert_eq!(answer.json()["error"]["kind"], "cancelled", "{answer:?}");
    assert!(gateway.child.wait().unwrap().success());
    let shown = env.run(&["approvals", "show", &id, "--json"]);
    assert_eq!((&shown["state"], &shown["decided_by"]), (&json!("rejected"), &json!("caller")), "{shown:#}");
}

#[test]
fn a_port_that_is_taken_is_said_to_be() {
    let env = Env::new();
    let gateway = env.serve();
    let taken = env.command(&["serve", "--listen", &gateway.server.host]).output().unwrap();
    let said = String::from_utf8_lossy(&taken.stderr);
    assert_eq!(taken.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot listen on") && said.contains("another `haft serve`"), "{said}");
}

#[test]
fn people_see_where_to_go_and_programs_get_lines_of_json() {
    let env = Env::new();
    // Starts it, waits for the line that says that it listens, ends it, and returns all that it said.
    let told = |flags: &[&str], wait: &str| {
        let mut command = env.command(&[&["serve", "--listen", "127.0.0.1:0"], flags].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let (mut printed, mut noted) = (String::new(), String::new());
        while !printed.contains(wait) && !noted.contains(wait) {
            let read = if flags.is_empty() { err.read_line(&mut noted) } else { out.read_line(&mut printed) };
            assert!(read.unwrap() > 0, "{printed} {noted}");
        }
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::TERM).unwrap();
        out.read_to_string(&mut printed).unwrap();
        err.read_to_string(&mut noted).unwrap();
        assert!(child.wait().unwrap().success());
        (printed, noted)
    };
    let (out, err) = told(&[], "Ctrl-C ends it");
    assert_eq!(out, "");
    assert!(err.contains("haft listens on http://127.0.0.1:") && err.contains("gateway-token"), "{err}");
    let token = std::fs::read_to_string(env.data().join("gateway-token")).unwrap();
    assert!(!err.contains(&token), "what is no terminal is kept, and a token must not be: {err}");
    let (out, err) = told(&["--json"], "listening");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["event"], &lines[1]["event"]), (&json!("listening"), &json!("closing")));
    assert!(!out.contains(&token) && !err.contains(&token), "a log holds no token");
}

#[test]
fn a_call_that_starts_to_wait_is_said_where_it_was_started() {
    let env = Env::new();
    let mut child =
        env.command(&["serve", "--listen", "127.0.0.1:0", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["event"], "listening");
    // A question of another process is told as well.
    let outcome = env.run(&["call", "file.write", r#"{"path": "a.txt", "content": "x"}"#, "--no-input", "--json"]);
    let told = next();
    assert_eq!((&told["event"], &told["call_id"]), (&json!("approval"), &outcome["call_id"]), "{told}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn https_is_spoken_with_a_certificate() {
    let env = Env::new();
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway/tls");
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let flags = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let gateway = env.serve_with(&flags);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&cert).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(&gateway.server.host).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let request = format!(
            "GET /v1/tools HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            gateway.server.host, gateway.token
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard).await;
        read_answer(&mut &heard[..])
    });
    assert_eq!(answer.status, 200);
    let mut plain = gateway.server.connect();
    gateway.server.send(&mut plain, "GET", "/health", &[], None);
    let mut heard = Vec::new();
    let _ = plain.read_to_end(&mut heard);
    assert!(!heard.starts_with(b"HTTP/1.1 200"), "nothing is said in clear");
    let swapped =
        ["serve", "--tls-cert", key.to_str().unwrap(), "--tls-key", cert.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let failed = env.command(&swapped).output().unwrap();
    assert!(String::from_utf8_lossy(&failed.stderr).contains("the certificate cannot be read"), "{failed:?}");
}

#[test]
fn the_document_describes_this_gateway() {
    let env = Env::new();
    let gateway = env.serve();
    let document = gateway.get("/openapi.json");
    assert_eq!(document.header("content-type"), Some("application/json"));
    assert_eq!(document.json()["openapi"], "3.1.0");
    assert_eq!(gateway.get("/health").json()["status"], "ok");
}
