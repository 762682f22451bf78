//! Secrets as people keep them, and as requests use them.

use crate::Env;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const VALUE: &str = "hunter2-hunter2";

fn set(env: &Env, name: &str, value: &str, flags: &[&str]) -> (i32, String) {
    let mut command = env.command(&[&["secret", "set", name, "--stdin"], flags].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code().unwrap(), said)
}

#[test]
fn they_are_kept_listed_and_forgotten_without_being_shown() {
    let env = Env::new();
    env.config("secrets: {TOLD: {command: [echo, told], hosts: [a.test]}}\n");
    let (code, said) = set(&env, "API_KEY", &format!("{VALUE}\n"), &["--host", "api.test"]);
    assert_eq!((code, said.contains(VALUE)), (0, false), "{said}");
    let listed = env.run(&["secret", "list", "--json"]).json();
    assert_eq!(listed[0]["name"], "API_KEY");
    assert_eq!((&listed[0]["from"], &listed[0]["hosts"]), (&json!(["store"]), &json!(["api.test"])));
    assert_eq!((&listed[1]["from"], &listed[1]["hosts"]), (&json!(["command"]), &json!(["a.test"])));
    let shown = env.run(&["secret", "show", "API_KEY"]);
    assert!(shown.code == 0 && shown.stdout.contains("api.test") && !shown.stdout.contains(VALUE));
    let revealed = env.run(&["secret", "show", "API_KEY", "--reveal"]);
    assert!(revealed.code == 2 && !format!("{}{}", revealed.stdout, revealed.stderr).contains(VALUE));
    let file = env.store().with_file_name("secrets.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&file).unwrap().contains("API_KEY"));
    assert_eq!(env.run(&["secret", "remove", "API_KEY"]).code, 0);
    assert_eq!(env.run(&["secret", "remove", "API_KEY"]).code, 1);
}

#[test]
fn bad_ones_are_refused_and_damage_is_an_error() {
    let env = Env::new();
    for (name, value, flags) in
        [("lower", "x", &[][..]), ("A", "", &[]), ("A", "\n", &[]), ("A", "x", &["--host", "not a host"])]
    {
        assert_eq!(set(&env, name, value, flags).0, 2, "{name} {value:?}");
    }
    assert_eq!(env.run(&["secret", "set", "A"]).code, 2, "nobody can be asked");
    let (code, said) = set(&env, "HAFT_SECRET_PASSPHRASE", "value", &[]);
    assert!(code == 2 && said.contains("is no name for a secret"), "{said}");
    let (code, said) = set(&env, "A", "abc\n", &[]);
    assert!(code == 0 && said.contains("masked nowhere"), "{said}");
    let (code, said) = set(&env, "A", "value", &[]);
    assert!(code == 0 && !said.contains("masked nowhere"), "{said}");
    std::fs::write(env.store().with_file_name("secrets.json"), "{}").unwrap();
    let ran = env.run(&["secret", "list"]);
    assert!(ran.code != 0 && ran.stderr.contains("damaged"), "{}", ran.stderr);
}

#[test]
fn a_projects_file_names_no_secrets() {
    let env = Env::new();
    env.file(".haft/config.yml", "secrets: {A: {command: [touch, ran], hosts: [evil.test]}}\n");
    let ran = env.run(&["secret", "list", "--json"]);
    assert_eq!(ran.json(), json!([]), "{}", ran.stderr);
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    let ran = env.run(&["config", "show"]);
    assert!(ran.stderr.contains("secrets"), "{}", ran.stderr);
    assert_eq!(env.run(&["secret", "list", "--json"]).json(), json!([]));
    assert!(!env.root().join("ran").exists());
}

#[test]
fn a_reference_is_sent_once_a_person_agrees_and_is_written_down_nowhere() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = vec![0; 8192];
        let read = stream.read(&mut heard).unwrap();
        heard.truncate(read);
        let body = format!("you said {VALUE}");
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        String::from_utf8(heard).unwrap()
    });
    let env = Env::new();
    env.config(&format!("web: {{allow_private: ['{address}']}}\n"));
    assert_eq!(set(&env, "API_KEY", VALUE, &["--host", &address.to_string()]).0, 0);
    let args = json!({"url": format!("http://{address}/"), "headers": {"X-Key": "secret:API_KEY"}});
    let (waits, code) = env.call("web.request", args.clone(), &["--no-input"]);
    assert!(code == 4 && waits["error"].to_string().contains("API_KEY"), "{waits}");
    let (outcome, code) = env.call("web.request", args, &["--yes"]);
    assert_eq!(code, 0, "{outcome}");
    assert!(outcome["output"].as_str().unwrap().contains("you said [secret]"), "{outcome}");
    assert!(server.join().unwrap().contains(&format!("x-key: {VALUE}")));
    let log = env.run(&["log", "--json"]).stdout;
    assert!(log.contains("web.request") && !log.contains(VALUE), "{log}");
}
