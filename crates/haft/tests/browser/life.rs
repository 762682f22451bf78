//! When browsers begin and end, and what they share: nothing.

use crate::site::{Site, page};
use crate::{Scene, below, browsers, exists, needs, until};
use haft::SessionId;
use haft_runtime::browser::BrowserSettings;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn without_a_browser_it_is_said_how_to_get_one() {
    let named = BrowserSettings { program: Some("/nowhere/chromium".to_owned()), ..BrowserSettings::default() };
    let scene = Scene::with(&[9], named);
    let said = scene.refused("browser.navigate", json!({ "url": "http://127.0.0.1:9/" }));
    assert_eq!(said, "not_found: `/nowhere/chromium`, which `browser.program` names, is not a program");
}

#[test]
fn sessions_share_no_cookies_and_end_by_themselves_or_when_nobody_uses_them() {
    let site = Site::start(|_, cookie| {
        let html = format!("<title>cookies</title><p>cookies: {cookie}.</p>");
        ("200 OK\r\nContent-Type: text/html\r\nSet-Cookie: who=me", html.into_bytes())
    });
    let Some(program) = needs::need("HAFT_TEST_CHROMIUM") else { return };
    let program = Some(program.display().to_string());
    let settings = BrowserSettings { program, idle: Duration::from_secs(8), most: 2, ..BrowserSettings::default() };
    let scene = Scene::with(&[site.port], settings);
    let visit = |session: &str| {
        let outcome = scene.call_in(session, "browser.navigate", json!({ "url": site.url("/") }));
        assert!(outcome.success, "{outcome:#?}");
        outcome.output
    };
    let mine = || browsers(&below(std::process::id()));
    assert!(visit("one").contains("cookies: ."));
    assert!(visit("one").contains("cookies: who=me."), "one session remembers");
    let first = mine();
    assert!(visit("two").contains("cookies: ."), "another knows nothing of it");

    // A third one takes the place of the one that nobody has used for longest.
    assert!(visit("three").contains("cookies: ."));
    until("the first browser is gone", || first.iter().all(|pid| !exists(*pid)));
    assert!(!scene.call_in("one", "browser.content", json!({})).success);

    // A session that ends takes its browser along.
    let before = mine();
    scene.haft.end_session(&SessionId::new("two").unwrap());
    until("the second browser is gone", || mine().len() < before.len());
    assert!(scene.call_in("three", "browser.content", json!({})).success, "and no other");

    // The last one ends because nobody uses it.
    until("no browser is left", || mine().is_empty());
    let staging = scene.data().join("staging");
    until("nothing of them is left", || std::fs::read_dir(&staging).map_or(0, Iterator::count) == 0);
}

#[test]
fn a_killed_haft_leaves_no_browser_behind() {
    let site = Site::start(|_, _| page("<title>here</title>"));
    let Some(program) = needs::need("HAFT_TEST_CHROMIUM") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (home, project) = (dir.path().join("home"), dir.path().join("project"));
    std::fs::create_dir_all(project.join(".git")).unwrap();
    std::fs::create_dir_all(home.join(".config/haft")).unwrap();
    let config =
        format!("browser:\n  program: {}\nweb:\n  allow_private: [\"127.0.0.1:{}\"]\n", program.display(), site.port);
    std::fs::write(home.join(".config/haft/config.yml"), config).unwrap();
    let mut haft = Command::new(env!("CARGO_BIN_EXE_haft"))
        .args(["serve", "--listen", "127.0.0.1:0", "--print-url"])
        .current_dir(&project)
        .env_clear()
        .env("HOME", &home)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(haft.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (address, token) = line.trim().split_once("#token=").unwrap_or_else(|| panic!("no address: {line}"));
    let host = address.split("://").nth(1).unwrap().trim_end_matches('/');
    let body = json!({ "args": { "url": site.url("/") }, "session": "s" }).to_string();
    let mut stream = TcpStream::connect(host).unwrap();
    let head =
        format!("POST /v1/tools/browser.navigate/call HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n");
    let about = format!("Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    stream.write_all(format!("{head}{about}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"success\":true"), "{answer}");
    let all = below(haft.id());
    assert!(browsers(&all).len() > 1, "a browser is many processes");
    haft.kill().unwrap();
    haft.wait().unwrap();
    until("nothing that it started is left", || all.iter().all(|pid| !exists(*pid)));
}
