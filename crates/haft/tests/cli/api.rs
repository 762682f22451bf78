//! What is known of APIs, as people keep it and agents use it.

use crate::Env;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const PETSTORE: &str = include_str!("../../src/openapi/petstore.yml");

fn profiles(env: &Env) -> PathBuf {
    env.store().parent().unwrap().join("apis")
}

#[test]
fn a_document_becomes_a_profile_and_tools() {
    let env = Env::new();
    env.file("petstore.yml", PETSTORE);
    let ran = env.run(&["api", "import", "petstore.yml", "--tools", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let made = ran.json();
    assert_eq!(made["profile"]["base_url"], "https://petstore.example.com/v1");
    assert_eq!(made["profile"]["auth"], json!({"type": "bearer", "token": "${PETSTORE_TOKEN}"}));
    assert_eq!(made["tools"].as_array().unwrap().len(), 4);
    let manifest = env.read(".haft/tools/petstore_list_pets/tool.yml");
    for line in ["name: petstore_list_pets", "kind: http", "Bearer ${PETSTORE_TOKEN}", "required: false"] {
        assert!(manifest.contains(line), "{line} is not in\n{manifest}");
    }
    let rights = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((rights(profiles(&env)), rights(profiles(&env).join("petstore.json"))), (0o700, 0o600));

    let again = env.run(&["api", "import", "petstore.yml"]);
    assert!(again.code == 1 && again.stderr.contains("already"), "{}", again.stderr);
    let other = env.run(&["api", "import", "petstore.yml", "--id", "pets", "--tools", "--only", "list*"]);
    assert!(other.code == 0 && other.stdout.contains("pets_list_pets/tool.yml"), "{} {}", other.stdout, other.stderr);
    assert!(!env.root().join(".haft/tools/pets_create_pet").exists());
    assert!(!other.stderr.contains("create_pet"), "who asks for some is not told of others: {}", other.stderr);
    assert!(other.stderr.contains("`petstore` has the same base_url"), "{}", other.stderr);
    let listed = env.run(&["api", "list"]).stdout;
    assert_eq!(
        listed,
        "pets  https://petstore.example.com/v1  Petstore\npetstore  https://petstore.example.com/v1  Petstore\n"
    );
    assert_eq!(env.run(&["api", "remove", "pets"]).code, 0);
    let gone = env.run(&["api", "view", "pets"]);
    assert!(gone.code == 1 && gone.stderr.contains("there is no API profile `pets`"), "{}", gone.stderr);
}

#[test]
fn what_is_there_is_left_alone_and_nothing_is_led_out() {
    let env = Env::new();
    env.file("petstore.yml", PETSTORE);
    env.file(".haft/tools/petstore_list_pets/tool.yml", "mine");
    let ran = env.run(&["api", "import", "petstore.yml", "--tools"]);
    assert!(ran.code == 0 && ran.stderr.contains("was left alone"), "{}", ran.stderr);
    assert_eq!(env.read(".haft/tools/petstore_list_pets/tool.yml"), "mine");
    // A project whose directory of tools leads elsewhere.
    let trap = Env::new();
    trap.file("petstore.yml", PETSTORE);
    let outside = trap.root().parent().unwrap().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::create_dir(trap.root().join(".haft")).unwrap();
    std::os::unix::fs::symlink(&outside, trap.root().join(".haft/tools")).unwrap();
    let ran = trap.run(&["api", "import", "petstore.yml", "--tools"]);
    assert!(ran.code == 1 && ran.stderr.contains("leads out of the project"), "{}", ran.stderr);
    assert!(!outside.join("petstore_list_pets/tool.yml").exists());
    assert!(!profiles(&trap).exists(), "all of it or nothing");
}

#[test]
fn bad_documents_and_profiles_are_refused_with_reasons() {
    let env = Env::new();
    env.file("old.json", r#"{"swagger": "2.0"}"#);
    env.file("nowhere.yml", "openapi: 3.1.0\ninfo: {title: Nowhere}\npaths: {/a: {get: {}}}");
    env.file("thin.yml", "id: thin\nbase_url: https://thin.test\nauth: {type: bearer, token: hunter2}");
    for (args, expected) in [
        (&["api", "import", "old.json"][..], "version 2 (Swagger)"),
        (&["api", "import", "nowhere.yml"], "say it with --url"),
        (&["api", "import", "missing.yml"], "missing.yml"),
        (&["api", "import", "nowhere.yml", "--only", "x"], "--tools"),
        (&["api", "add", "thin.yml"], "- guidelines: how to use it well"),
        (&["api", "remove", "../../x"], "there is no API profile"),
    ] {
        let ran = env.run(args);
        assert!(ran.code != 0 && ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
    assert_eq!(env.run(&["api", "list", "--json"]).json(), json!([]));
}

/// Serves one request, and says what was asked.
fn served_once() -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = move || {
        let (stream, _) = listener.accept().unwrap();
        let mut asked = String::new();
        let mut reader = BufReader::new(&stream);
        while !asked.ends_with("\r\n\r\n") && reader.read_line(&mut asked).unwrap() > 0 {}
        let body =
            format!("you are {}", asked.lines().find(|line| line.starts_with("authorization")).unwrap_or_default());
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n", body.len());
        (&stream).write_all(format!("{head}{body}").as_bytes()).unwrap();
        asked
    };
    (address, std::thread::spawn(serve))
}

#[test]
fn what_a_person_adds_signs_what_an_agent_sends() {
    let env = Env::new();
    let (address, server) = served_once();
    env.config(&format!("web: {{allow_private: ['{address}']}}"));
    let profile = json!({"id": "local", "name": "Local", "base_url": format!("http://{address}/v1"),
        "description": "A service on this very machine.", "auth": {"type": "bearer", "token": "${LOCAL_TOKEN}"},
        "endpoints": [{"method": "GET", "path": "/me", "description": "Who asks"}], "guidelines": "Ask once"});
    env.file("local.json", profile.to_string());
    let added = env.run(&["api", "add", "local.json"]);
    assert!(added.code == 0 && added.stderr.contains("${LOCAL_TOKEN}"), "{} {}", added.stdout, added.stderr);
    let args = json!({"url": format!("http://{address}/v1/me")}).to_string();
    let ran =
        env.command(&["call", "web.request", &args, "--json"]).env("LOCAL_TOKEN", "open-sesame-now").output().unwrap();
    let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(outcome["success"], true, "{outcome:#}");
    assert!(server.join().unwrap().contains("authorization: Bearer open-sesame-now"));
    assert!(outcome["output"].as_str().unwrap().contains("you are authorization: [secret]"), "{outcome:#}");
    assert!(outcome["warnings"][0].as_str().unwrap().contains("Ask once"));
    let log = env.run(&["log", "--json", "-n", "100"]).stdout;
    assert!(log.contains("\"request\"") && !log.contains("open-sesame"), "{log}");
}
