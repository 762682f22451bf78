//! The program, as a shell starts it.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// Sends a request and reads all of the answer.
fn ask(address: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_script_is_served_and_its_address_is_said() {
    let dir = std::env::temp_dir().join(format!("haft-stub-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let script = dir.join("script.json");
    let text = r#"[
        {"when": "special", "say": "As often as it is there."},
        {"think": "Hm.", "say": "One.", "calls": [{"name": "file_read", "args": {"path": "a"}}]},
        {"trouble": "limited", "headers": {"retry-after": "1"}},
        {"status": 418, "body": "teapot"}
    ]"#;
    std::fs::write(&script, text).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_haft-stub")).arg(&script).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let address = url.trim().strip_prefix("http://").unwrap().to_owned();
    let user =
        |text: &str| format!(r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let first = ask(&address, "/v1/messages", &user("go"));
    assert!(first.contains("event: message_start") && first.contains("signature_delta"), "{first}");
    let special = ask(&address, "/v1/chat/completions", &user("special"));
    assert!(special.contains("As often") && special.contains("data: [DONE]"), "{special}");
    let limited = ask(&address, "/v1/messages", &user("go"));
    assert!(limited.starts_with("HTTP/1.1 429") && limited.contains("retry-after: 1"), "{limited}");
    assert!(ask(&address, "/v1/messages", &user("go")).contains("teapot"));
    let over = ask(&address, "/v1/responses", r#"{"model":"m","stream":true,"input":[]}"#);
    assert!(over.contains("event: response.completed") && over.contains("script is o"), "{over}");
    let whole = ask(&address, "/v1/responses", r#"{"model":"m","input":[]}"#);
    assert!(whole.contains(r#""object":"response""#) && whole.contains("The script is over."), "{whole}");
    let whole = ask(&address, "/v1/chat/completions", r#"{"model":"m","messages":[]}"#);
    assert!(whole.contains(r#""object":"chat.completion""#) && whole.contains("The script is over."), "{whole}");
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_script_that_is_none_is_said_to_be() {
    let ran = Command::new(env!("CARGO_BIN_EXE_haft-stub")).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("say which script"));
}
