//! What people are told about the web where something is not as they thought.

use crate::Env;
use serde_json::json;

#[test]
fn what_speaks_against_a_request_is_named() {
    let env = Env::new();
    let args = json!({"url": "https://a.example/"});
    for (config, names) in
        [("web: {network: false}\n", "set `web.network`"), ("web: {tools: {web.fetch: false}}\n", "`web.tools`")]
    {
        env.config(config);
        let (kind, message, code) = env.err("web.fetch", args.clone(), &[]);
        assert!(kind == "denied" && message.contains(names) && code == 3, "{config}: {message}");
    }
    // What is said to be typed works as it stands, and nobody says yes to a host that may not be reached.
    let (outcome, _) = env.call("web.fetch", args, &[]);
    let hint = outcome["error"]["hint"].as_str().unwrap();
    assert!(hint.starts_with(r#"`haft explain web.fetch '{"url":"https://a.example/"}'`"#), "{hint}");
    let explained = env.run(&["explain", "web.fetch", r#"{"url":"https://a.example/"}"#]);
    assert_eq!(explained.code, 0, "{}", explained.stderr);
    let reading = explained.stdout.lines().find(|line| line.contains("web reading")).unwrap();
    assert!(reading.contains("no opinion"), "{}", explained.stdout);
}

#[test]
fn a_setting_that_would_do_nothing_is_refused() {
    let env = Env::new();
    for (config, why) in [
        ("web: {tools: {web.fetsh: false}}\n", "did you mean `web.fetch`"),
        ("web: {allow_private: [\"127.0.0.1:99999\"]}\n", "write its host and port, as in `127.0.0.1:8080`"),
        ("browser: {allow_private: [\"127.0.0.1:8080\"]}\n", "is not in `web.allow_private`"),
    ] {
        env.config(config);
        let ran = env.run(&["tools"]);
        assert!(ran.code == 2 && ran.stderr.contains(why), "{config}: {}", ran.stderr);
        assert!(!ran.stderr.contains("or no port"), "{}", ran.stderr);
    }
    // What may come later is not a mistake.
    env.config("web: {tools: {\"mcp:files:*\": false, \"mcp:files:read\": false, \"web.*\": true}}\n");
    let ran = env.run(&["tools"]);
    assert_eq!((ran.code, ran.stderr.contains("warning")), (0, false), "{}", ran.stderr);
}

#[test]
fn a_request_is_shown_without_being_sent_or_asked_about() {
    let env = Env::new();
    let key = format!("AKIA{}", "Z7Q3M5N2K8R4T6W1");
    let args = json!({"method": "POST", "url": format!("https://a.example/x?k={key}"), "body": {"a": key, "b": 1},
                      "headers": {"X-Note": "y", "Authorization": "Bearer abc"}});
    let (outcome, code) = env.call("web.request", args, &["--dry-run", "--no-input"]);
    assert_eq!(code, 0, "{outcome:#}");
    let text = outcome["output"].as_str().unwrap();
    for part in ["Nothing was sent", "POST https://a.example/x?k=[secret]", "x-note: y", "\"b\": 1"] {
        assert!(text.to_lowercase().contains(&part.to_lowercase()), "{part}: {text}");
    }
    assert!(!outcome.to_string().contains(&key) && !text.contains("abc"), "{outcome:#}");
    assert_eq!(outcome["data"]["dry_run"], true);
    let denied = json!({"method": "POST", "url": "http://127.0.0.1:1/"});
    assert_eq!(env.call("web.request", denied, &["--dry-run"]).1, 3, "what is denied stays denied");
}

#[test]
fn a_broken_configuration_does_not_keep_the_doctor_from_looking() {
    let env = Env::new();
    env.config("web: {netwrk: true}\n");
    let ran = env.run(&["doctor", "--json"]);
    let findings = ran.json();
    let health = |name: &str| {
        let found = findings.as_array().unwrap().iter().find(|finding| finding["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {findings:#}"))["health"].clone()
    };
    assert_eq!((ran.code, health("config")), (1, json!("bad")));
    health("kernel");
    health("browser");
}

#[test]
fn a_url_without_its_scheme_and_a_parameter_of_any_kind_are_told_so() {
    let env = Env::new();
    for url in ["example.com", "example.com:8080/x", "localhost:8080"] {
        let (kind, message, _) = env.err("web.fetch", json!({"url": url}), &[]);
        assert!(kind == "invalid_input" && message.contains(&format!("write `https://{url}`")), "{message}");
    }
    let shown = env.run(&["tools", "web.request"]).stdout;
    assert!(shown.contains("body?: any"), "{shown}");
}
