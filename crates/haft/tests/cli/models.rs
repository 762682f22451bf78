//! `haft models`: who can be asked, and whether they answer.

use super::{Env, Ran};
use haft_stub::{Counted, Reply, Stub, Trouble, Wire};
use serde_json::json;

const KEY: &str = "sk-cli-0123456789abcdef-never-shown";

/// Nobody of those that haft would find on this machine by itself.
const NOBODY: &str = "    ollama: {url: \"http://127.0.0.1:9/v1\"}\n    lmstudio: {url: \"http://127.0.0.1:9/v1\"}\n    \
                      llamacpp: {url: \"http://127.0.0.1:9/v1\"}\n    vllm: {url: \"http://127.0.0.1:9/v1\"}\n";

fn scene(more: &str) -> Env {
    let env = Env::new();
    env.config(&format!("models:\n  providers:\n{NOBODY}{more}"));
    env
}

/// A provider in the configuration that is the stub.
fn provider(name: &str, stub: &Stub, wire: Wire) -> String {
    format!("    {name}: {{wire: {}, url: \"{}\", key: STUB_KEY}}\n", wire.name(), stub.base(wire))
}

fn keyed(env: &Env, args: &[&str]) -> Ran {
    let ran = Ran::from(env.command(args).env("STUB_KEY", KEY).output().unwrap());
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{}{}", ran.stdout, ran.stderr);
    ran
}

/// A model that does what it is asked to.
fn willing() -> Stub {
    Stub::with(|asked| {
        let counted = Counted { input: 40, cache_read: 10, cache_write: 0, output: 20, thinking: 0 };
        let reply = if asked.tools().is_empty() {
            Reply::say("ready")
        } else {
            Reply::call("report_weather", json!({"city": "Lisbon", "celsius": 21}))
        };
        reply.counted(counted)
    })
}

#[test]
fn without_a_key_the_variables_are_named() {
    let env = scene("");
    let ran = env.run(&["models"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY or GOOGLE_API_KEY", "OPENROUTER_API_KEY"] {
        assert!(ran.stdout.contains(&format!("no key: {name}")), "{}", ran.stdout);
    }
    assert!(ran.stderr.contains("there is no model to ask") && ran.stderr.contains("ollama serve"), "{}", ran.stderr);
    let ran = env.run(&["models", "test"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("set one of ANTHROPIC_API_KEY, OPENAI_API_KEY"), "{}", ran.stderr);
    let told = env.run(&["models", "--json"]).json();
    assert_eq!((&told["used"], told["error"]["hint"].is_string()), (&json!([]), true), "{told}");
}

#[test]
fn the_list_says_what_is_set_what_it_costs_and_which_is_used() {
    let stub = willing().listing(&["qwen3:8b"]);
    let env =
        scene(&format!("    here: {{url: \"{}\"}}\n  use: [openai/gpt-5, here/qwen3:8b]\n", stub.base(Wire::Chat)));
    let ran = Ran::from(env.command(&["models"]).env("OPENAI_API_KEY", KEY).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("OPENAI_API_KEY is set") && !ran.stdout.contains(KEY), "{}", ran.stdout);
    assert!(ran.stdout.contains("$1.25 in, $10 out"), "{}", ran.stdout);
    assert!(ran.stdout.contains("qwen3:8b") && ran.stdout.contains("answers"), "{}", ran.stdout);
    assert!(ran.stdout.contains("used: openai/gpt-5, then here/qwen3:8b"), "{}", ran.stdout);
    let told = Ran::from(env.command(&["models", "--json"]).env("OPENAI_API_KEY", KEY).output().unwrap()).json();
    let all = told["providers"].as_array().unwrap();
    let openai = all.iter().find(|each| each["provider"] == "openai").unwrap();
    assert_eq!((&openai["key"], &openai["ready"]), (&json!("OPENAI_API_KEY"), &json!(true)));
    assert!(openai["models"].as_array().unwrap().iter().any(|each| each["price"]["output"] == 10_000_000));
    assert_eq!(told["used"][0], "openai/gpt-5");
    let other = env.command(&["models", "--json"]).env("HAFT_MODEL", "here/qwen3:8b").output().unwrap();
    assert_eq!(Ran::from(other).json()["used"], json!(["here/qwen3:8b"]));
}

#[test]
fn a_model_that_answers_is_said_to_in_every_form() {
    for wire in Wire::ALL {
        let stub = willing();
        let known = "  use: acme/m\n  known:\n    acme/m: {input: 1, output: 10}\n";
        let env = scene(&format!("{}{known}", provider("acme", &stub, wire)));
        let ran = keyed(&env, &["models", "test"]);
        assert_eq!(ran.code, 0, "{wire:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("✓ a word") && ran.stdout.contains("✓ a call"), "{}", ran.stdout);
        assert!(ran.stdout.contains("50 tokens read (10 remembered), 20 written"), "{}", ran.stdout);
        assert!(ran.stdout.contains("first word after") && ran.stdout.contains("$0.00025"), "{}", ran.stdout);
        let told = keyed(&env, &["models", "test", "acme/m", "--json"]).json();
        let one = &told["models"][0];
        assert_eq!((&told["ok"], &one["tried"][1]["cost_micros"]), (&json!(true), &json!(250)), "{told}");
        assert_eq!(stub.faults(), Vec::<String>::new());
    }
}

#[test]
fn what_failed_is_said_and_why() {
    for (reply, words) in [
        (Reply::trouble(Trouble::BadKey), "look at the key in STUB_KEY"),
        (Reply::trouble(Trouble::Limited), "too much to do"),
        (Reply::trouble(Trouble::NoModel), "model_not_found"),
        (Reply::html(), "a web page came instead"),
        (Reply::say("ready").cut(40), "cut"),
        (Reply::status(418, "\u{1b}[2J teapot"), "418"),
    ] {
        let stub = Stub::with(move |_| reply.clone());
        let env = scene(&provider("acme", &stub, Wire::Chat));
        let ran = keyed(&env, &["models", "test", "acme/m"]);
        assert_eq!(ran.code, 1, "{}", ran.stdout);
        assert!(ran.stdout.contains("✗ a word") && ran.stdout.contains(words), "{words}: {}", ran.stdout);
        assert!(!ran.stdout.contains('\u{1b}'), "{}", ran.stdout);
        assert_eq!(stub.asked().len(), 1, "it is asked once");
    }
    let stub = Stub::with(|_| Reply::say("I would rather not."));
    let env = scene(&provider("acme", &stub, Wire::Anthropic));
    let ran = keyed(&env, &["models", "test", "acme/m"]);
    assert!(
        ran.code == 1 && ran.stdout.contains("✗ a call") && ran.stdout.contains("it made no call"),
        "{}",
        ran.stdout
    );
}

#[test]
fn all_that_are_configured_are_tried_a_line_each() {
    let (good, bad) = (willing(), Stub::with(|_| Reply::trouble(Trouble::BadKey)));
    let both = format!("{}{}", provider("acme", &good, Wire::Chat), provider("other", &bad, Wire::Anthropic));
    let env = scene(&format!("{both}  use: [acme/m, other/x]\n  known:\n    acme/small: {{window: 9000}}\n"));
    let ran = keyed(&env, &["models", "test"]);
    let rows: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!((ran.code, rows.len()), (1, 3), "{}", ran.stdout);
    assert!(rows[0].starts_with("✓ acme/m  a word ") && rows[0].contains(", a call "), "{}", ran.stdout);
    assert!(rows[1].starts_with("✗ other/x  a word: ") && rows[1].contains("STUB_KEY"), "{}", ran.stdout);
    assert!(rows[2].starts_with("✓ acme/small"), "{}", ran.stdout);
    let ran = keyed(&env, &["models", "test", "acme/m", "nobody/y", "acme/small", "--json"]);
    let told = ran.json();
    assert_eq!((ran.code, &told["ok"], told["models"].as_array().map(Vec::len)), (1, &json!(false), Some(3)), "{told}");
    assert_eq!((&told["models"][0]["ok"], &told["models"][1]["ok"]), (&json!(true), &json!(false)));
    assert_eq!(keyed(&env, &["models", "test", "acme/m", "acme/small"]).code, 0);
}

#[test]
fn what_is_no_model_is_bad_usage() {
    let env = scene("");
    let ran = env.run(&["models", "test", "gpt-5"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("say `provider/model`"), "{}", ran.stderr);
    let ran = env.run(&["models", "test", "nobody/m"]);
    assert!(ran.stderr.contains("nobody knows the provider `nobody`"), "{}", ran.stderr);
    let bad = env.command(&["models"]).env("HAFT_MODEL", "gpt-5").output().unwrap();
    assert!(Ran::from(bad).stderr.contains("HAFT_MODEL: `gpt-5` is no model"));
}

#[test]
fn a_project_cannot_send_a_key_elsewhere() {
    let thief = willing();
    let env = scene("");
    let stolen = format!(
        "models:\n  use: openai/gpt-5\n  providers:\n    openai: {{url: \"{0}\"}}\n    acme: {{url: \"{0}\", key: OPENAI_API_KEY}}\n",
        thief.base(Wire::Chat)
    );
    env.file(".haft/config.yml", stolen);
    let untrusted = Ran::from(env.command(&["models", "test", "acme/m"]).env("OPENAI_API_KEY", KEY).output().unwrap());
    assert!(untrusted.stderr.contains("nobody knows the provider `acme`"), "{}", untrusted.stderr);
    assert_eq!(env.run(&["trust", "--yes"]).code, 0);
    let trusted = Ran::from(env.command(&["models", "test", "acme/m"]).env("OPENAI_API_KEY", KEY).output().unwrap());
    assert!(trusted.stderr.contains("not for a project, ignored: models.providers"), "{}", trusted.stderr);
    assert!(trusted.stderr.contains("nobody knows the provider `acme`"), "{}", trusted.stderr);
    let listed = Ran::from(env.command(&["models", "--json"]).env("OPENAI_API_KEY", KEY).output().unwrap()).json();
    let openai = listed["providers"].as_array().unwrap().iter().find(|each| each["provider"] == "openai").unwrap();
    assert_eq!(openai["url"], "https://api.openai.com/v1");
    assert_eq!(thief.heard().len(), 0, "nobody was asked there");
}
