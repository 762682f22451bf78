//! What is not text: given to the person, looked at by a model, written down by a real recogniser.

use super::Env;
use super::needs::need;
use base64::Engine as _;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;

/// A GIF of one pixel.
const PIXEL: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00!\xf9\x04\x00\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
/// "three nine four seven", spoken by a synthesiser.
const DIGITS: &[u8] = include_bytes!("data/digits.wav");
const GRAMMAR: &str = "#JSGF V1.0;\ngrammar digits;\npublic <digits> = ( three | four | seven | nine )*;\n";

/// Answers one request with this status and body, and gives back what was asked.
fn answer_once(listener: &TcpListener, status: &str, body: &Value) -> (String, Vec<u8>) {
    let (mut peer, _) = listener.accept().unwrap();
    let (mut seen, mut chunk) = (Vec::new(), [0; 8192]);
    let (end, length) = loop {
        let read = peer.read(&mut chunk).unwrap();
        seen.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&seen).to_ascii_lowercase();
        if let Some(end) = text.find("\r\n\r\n") {
            let length = text[..end].split("content-length:").nth(1).and_then(|rest| rest.lines().next());
            break (end + 4, length.map_or(0, |length| length.trim().parse::<usize>().unwrap()));
        }
    };
    while seen.len() < end + length {
        let read = peer.read(&mut chunk).unwrap();
        seen.extend_from_slice(&chunk[..read]);
    }
    let body = body.to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    peer.write_all((head + &body).as_bytes()).unwrap();
    (String::from_utf8_lossy(&seen[..end]).into_owned(), seen[end..].to_vec())
}

fn beside<T: Send>(
    env: &Env,
    listener: &TcpListener,
    status: &str,
    body: &Value,
    work: impl FnOnce(&Env) -> T + Send,
) -> (T, (String, Vec<u8>)) {
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| answer_once(listener, status, body));
        (work(env), asked.join().unwrap())
    })
}

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    (listener, url)
}

#[test]
fn what_is_sent_is_on_disk_for_who_called_from_a_terminal() {
    let env = Env::new();
    env.file("chart.gif", PIXEL);
    let outcome = env.ok("media.send", json!({"path": "chart.gif", "filename": "../the chart.gif"}));
    let kept = &outcome["data"]["attachment"];
    assert_eq!((&kept["name"], &kept["mime_type"]), (&json!("the chart.gif"), &json!("image/gif")));
    let path = kept["path"].as_str().unwrap();
    assert_eq!(std::fs::read(path).unwrap(), PIXEL);
    assert!(outcome["output"].as_str().unwrap().contains(path));
    // What is sent as bytes is in no record.
    let data = base64::prelude::BASE64_STANDARD.encode("a letter that nobody else should read");
    env.ok("media.send", json!({"data": data, "mime_type": "text/plain"}));
    assert!(!env.records().iter().any(|record| record.to_string().contains(&data)));
    let (kind, message, _) = env.err("media.send", json!({"path": "/etc/passwd"}), &["--no-input"]);
    assert_eq!(kind, "approval_required", "{message}");
}

#[test]
fn a_model_that_the_configuration_names_looks_at_a_picture() {
    let env = Env::new();
    let (listener, url) = listener();
    env.config(&format!("media: {{vision: {{url: \"{url}\", model: seer, key_env: SEER_KEY}}}}\n"));
    env.file("chart.gif", PIXEL);
    let reply = json!({"choices": [{"message": {"role": "assistant", "content": "One white pixel."}}]});
    let args = ["call", "image.analyze", r#"{"path": "chart.gif", "prompt": "What is it?"}"#, "--json"];
    let (outcome, (head, body)) = beside(&env, &listener, "200 OK", &reply, |env| {
        let output = env.command(&args).env("SEER_KEY", "k-123").output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    });
    assert_eq!(outcome["success"], true, "{outcome:#}");
    assert!(outcome["output"].as_str().unwrap().contains("One white pixel."), "{outcome:#}");
    assert_eq!((&outcome["labels"][0], &outcome["data"]["model"]), (&json!("untrusted"), &json!("seer")));
    assert!(head.starts_with("POST /v1/chat/completions ") && head.contains("Bearer k-123"), "{head}");
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let content = &asked["messages"][0]["content"];
    assert_eq!(content[0]["text"], "What is it?");
    let encoded = base64::prelude::BASE64_STANDARD.encode(PIXEL);
    assert_eq!(content[1]["image_url"]["url"], format!("data:image/gif;base64,{encoded}"));
    let records = env.records();
    let request = records.iter().find(|record| record["body"]["kind"] == "request").unwrap();
    assert_eq!((&request["body"]["method"], &request["body"]["status"]), (&json!("POST"), &json!(200)));
    assert!(!records.iter().any(|record| record.to_string().contains("k-123")), "the key is in no record");
}

#[test]
fn what_stands_in_the_way_of_looking_is_named() {
    let env = Env::new();
    env.file("chart.gif", PIXEL);
    let args = json!({"path": "chart.gif"});
    let (outcome, _) = env.call("image.analyze", args.clone(), &["--yes"]);
    assert!(outcome["error"]["hint"].as_str().unwrap().contains("media: {vision"), "{outcome:#}");
    let (listener, url) = listener();
    env.config(&format!("media: {{vision: {{url: \"{url}\", model: seer, key_env: SEER_KEY}}}}\n"));
    let (_, message, _) = env.err("image.analyze", args.clone(), &[]);
    assert!(message.contains("`SEER_KEY`"), "{message}");
    env.config(&format!("media: {{vision: {{url: \"{url}\", model: seer}}}}\n"));
    let busy = json!({"error": {"message": "too many requests"}});
    let work = |env: &Env| env.err("image.analyze", args.clone(), &[]);
    let ((kind, message, _), _) = beside(&env, &listener, "429 Too Many Requests", &busy, work);
    assert_eq!(kind, "upstream");
    assert!(message.contains("status 429: too many requests"), "{message}");
}

#[test]
fn a_recording_goes_to_a_model_elsewhere() {
    let env = Env::new();
    let (listener, url) = listener();
    env.config(&format!("media: {{transcribe: {{url: \"{url}\", model: ear}}}}\n"));
    env.file("digits.wav", DIGITS);
    let work = |env: &Env| env.ok("audio.transcribe", json!({"path": "digits.wav", "language": "en"}));
    let (outcome, (head, body)) = beside(&env, &listener, "200 OK", &json!({"text": "three nine four seven"}), work);
    assert!(outcome["output"].as_str().unwrap().contains("three nine four seven"), "{outcome:#}");
    assert!(head.starts_with("POST /v1/audio/transcriptions ") && head.contains("multipart/form-data; boundary="));
    let text = String::from_utf8_lossy(&body);
    for part in [
        "name=\"model\"\r\n\r\near\r\n",
        "name=\"language\"\r\n\r\nen\r\n",
        "filename=\"audio.wav\"\r\nContent-Type: audio/wav",
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(body.windows(DIGITS.len()).any(|window| window == DIGITS));
}

#[test]
fn a_recogniser_on_this_machine_writes_down_what_is_said() {
    let Some(program) = need("HAFT_TEST_SPEECH") else { return };
    let env = Env::new();
    env.file("digits.wav", DIGITS);
    env.file("digits.gram", GRAMMAR);
    let command = json!([program, "-infile", "{file}", "-jsgf", "digits.gram", "-logfn", "/dev/null"]);
    env.config(&format!("media: {{transcribe: {{command: {command}}}}}\n"));
    let outcome = env.ok("audio.transcribe", json!({"path": "digits.wav"}));
    let said = outcome["output"].as_str().unwrap();
    assert!(said.contains("three nine four seven"), "{outcome:#}");
    assert_eq!(outcome["labels"][0], "untrusted");
    env.file("noise.txt", "no sound");
    let (kind, message, _) = env.err("audio.transcribe", json!({"path": "noise.txt"}), &[]);
    assert_eq!((kind.as_str(), message.contains("is not a recording")), ("invalid_input", true), "{message}");
}

#[test]
fn a_listener_reaches_no_network_and_writes_nothing() {
    let env = Env::new();
    env.file("digits.wav", DIGITS);
    let script =
        "echo x > \"$HOME/made\"; echo y > made; (exec 3<>/dev/tcp/127.0.0.1/1) 2>&1 | head -1; cat {file} | wc -c";
    env.config(&format!("media: {{transcribe: {{command: {}}}}}\n", json!(["bash", "-c", script])));
    let outcome = env.ok("audio.transcribe", json!({"path": "digits.wav"}));
    assert!(outcome["output"].as_str().unwrap().contains(&DIGITS.len().to_string()), "{outcome:#}");
    assert!(!env.root().join("made").exists() && !env.dir.path().join("home/made").exists());
}
