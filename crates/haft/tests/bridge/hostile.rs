//! Servers that mean no good, or do no good: bounded, isolated, reported.

use super::{Env, said};
use serde_json::json;
use std::time::{Duration, Instant};

pub(crate) fn what_is_no_mcp_is_left_out_and_reported() {
    let env = Env::new().hostile("garbage", "");
    assert_eq!(said(&env.ok("mcp:garbage:talk", json!({}))), "fine");
    let status = env.run(&["mcp", "test", "garbage", "--json"]).json();
    assert_eq!(status["state"], "ready");
    assert!(status["garbage"]["lines"].as_u64().unwrap() >= 4, "{status:#}");
    let shown = env.run(&["mcp", "test", "garbage"]);
    assert!(!shown.stderr.contains('\x1b') && !shown.stdout.contains('\x1b'), "{}", shown.stderr);
}

pub(crate) fn a_server_that_hangs_holds_up_nobody_else() {
    let env = Env::new().hostile("hang", ", timeout_ms: 1000").hostile("odd", "");
    let begun = Instant::now();
    let (kind, message) = env.err("mcp:hang:anything", json!({}));
    assert_eq!(kind, "upstream");
    assert!(message.contains("did not answer `initialize` within 1 s; it says: warming up"), "{message}");
    let listed = env.run(&["tools"]);
    assert!(listed.stderr.contains("the tools of the MCP server `hang` are missing"), "{}", listed.stderr);
    assert!(listed.stdout.contains("mcp:odd:fail"), "{}", listed.stdout);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

pub(crate) fn fifty_megabytes_fail_the_call_and_the_server_comes_back() {
    let env = Env::new().hostile("huge", "");
    let (kind, message) = env.err("mcp:huge:huge", json!({}));
    assert_eq!(kind, "upstream");
    assert!(message.contains("more than 8.0MB"), "{message}");
    assert_eq!(said(&env.ok("mcp:huge:small", json!({}))), "small");
}

pub(crate) fn a_server_that_changes_its_tools_all_the_time_is_asked_rarely_and_writes_nothing() {
    let env = Env::new().hostile("restless", "");
    let calls: Vec<_> = (0..20).map(|_| json!({"tool": "mcp:restless:steady"})).collect();
    let outcomes = env.batch(&calls);
    assert!(outcomes.iter().all(|outcome| outcome["success"] == true), "{outcomes:#?}");
    // It counts how often it was asked anything: its calls, and a few lists.
    let last = said(&outcomes[19]).split(' ').next_back().unwrap().parse::<u32>().unwrap();
    assert!(last < 30, "its tools were listed {} times", last - 20);
    let records = env.run(&["log", "--json", "-n", "10000"]).stdout;
    assert_eq!(records.lines().filter(|line| line.contains("\"pin\"")).count(), 2, "{records}");
}

pub(crate) fn sampling_in_a_loop_is_ended_and_nobody_is_asked_by_a_server_unseen() {
    let env = Env::new().hostile("sampler", "");
    // `--yes` agrees to each, and there is no model to answer.
    let outcome = env.ok("mcp:sampler:ask", json!({}));
    assert_eq!(said(&outcome), "40 errors, 0 answers");
    let records = env.run(&["log", "--json", "-n", "10000"]).stdout;
    let asked = records.lines().filter(|line| line.contains("\"sampling\"")).count();
    assert_eq!(asked, 40, "each is in the log: {records}");
    assert_eq!(records.lines().filter(|line| line.contains("too many")).count(), 24, "{records}");
}

pub(crate) fn a_server_that_crashes_says_so_and_is_started_again() {
    let env = Env::new().hostile("crash", "");
    let outcomes = env.batch(&[
        json!({"tool": "mcp:crash:during"}),
        json!({"tool": "mcp:crash:during"}),
        json!({"tool": "shell.exec", "args": {"command": "sleep 1.6"}}),
        json!({"tool": "mcp:crash:after"}),
    ]);
    let said = |at: usize| outcomes[at]["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(outcomes[0]["error"]["kind"], "upstream");
    assert!(
        said(0).contains("it ended with exit status 3; it says: out of luck; it is tried again in 1 s"),
        "{}",
        said(0)
    );
    assert!(said(1).contains("it is tried again in 1 s"), "{}", said(1));
    assert_eq!(crate::said(&outcomes[3]), "last words", "{}", outcomes[3]);
}

pub(crate) fn odd_tools_are_named_refused_and_never_harmless() {
    let env = Env::new().hostile("odd", ", deny: [\"*secret*\"], timeout_ms: 1500, env: {TOKEN: \"${SPECIAL}\"}");
    let missing = env.err("mcp:odd:fail", json!({})).1;
    assert!(missing.contains("the variable SPECIAL is named in the entry, and not set"), "{missing}");
    let mut command = env.command(&["mcp", "test", "odd", "--json"]);
    let status = command.env("SPECIAL", "s3cret").output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let refused = status["refused"].to_string();
    assert!(refused.contains("bad: ") && refused.contains("deep: its inputSchema is larger"), "{refused}");
    for tower in ["tower: its inputSchema", "tower_out: its outputSchema"] {
        assert!(refused.contains(&format!("{tower} cannot be used: its references make it too large")), "{refused}");
    }
    let tools = env.tools();
    assert_eq!(tools.iter().filter(|name| name.starts_with("mcp:odd:a_b_")).count(), 2, "{tools:?}");
    assert!(!tools.iter().any(|name| name.contains("secret")), "{tools:?}");
    let (outcome, code) = env.call("mcp:odd:harmless", json!({}), &["--no-input"]);
    assert_eq!((code, &outcome["error"]["kind"]), (4, &json!("approval_required")), "{outcome:#}");
    let described = env.run(&["tools", "mcp:odd:harmless"]).stdout;
    assert!(described.contains("[MCP:odd] Harmless\\u{1b}[2J") && described.contains("may destroy"), "{described}");
}

pub(crate) fn what_tools_give_is_bounded_and_marked() {
    let env = Env::new().hostile("odd", ", timeout_ms: 1500");
    let (kind, message) = env.err("mcp:odd:fail", json!({}));
    assert_eq!((kind.as_str(), message.as_str()), ("failed", "the MCP server `odd` says: no such city"));
    let begun = Instant::now();
    let (kind, message) = env.err("mcp:odd:slow", json!({}));
    assert_eq!(kind, "timeout");
    assert!(message.contains("did not answer within 1.5 s") && begun.elapsed() < Duration::from_secs(10), "{message}");
    let big = env.ok("mcp:odd:big", json!({}));
    assert_eq!((&big["truncated"], &big["labels"]), (&json!(true), &json!(["untrusted"])));
    assert!(big["warnings"].to_string().contains("omitted: over the size limit"), "{}", big["warnings"]);
    let shaped = env.ok("mcp:odd:shaped", json!({}));
    assert_eq!(shaped["data"], json!({"n": "not a number"}));
    assert!(shaped["warnings"].to_string().contains("output does not fit its schema"));
    // Nobody is there to fill in a form.
    assert_eq!(said(&env.ok("mcp:odd:form", json!({}))), "decline");
}

pub(crate) fn a_program_reaches_what_its_entry_says_and_nothing_else() {
    let env = Env::new().hostile("odd", ", write: [out]");
    std::fs::create_dir(env.root().join("out")).unwrap();
    std::fs::write(env.root().join("a.txt"), "in the project").unwrap();
    std::fs::write(env.root().join(".env"), "KEY=1").unwrap();
    std::fs::write(env.dir.path().join("home/private"), "private").unwrap();
    let read = |path: std::path::PathBuf| env.call("mcp:odd:read", json!({ "path": path }), &["--yes"]).0;
    assert_eq!(said(&read(env.root().join("a.txt"))), "in the project");
    assert_eq!(read(env.dir.path().join("home/private"))["success"], false);
    assert_eq!(read(env.root().join(".env"))["success"], false);
    assert_eq!(read(env.config_file())["success"], false);
    let write = |path: &str| env.call("mcp:odd:write", json!({ "path": path }), &["--yes"]).0["success"].clone();
    assert_eq!((write("out/x"), write("x")), (json!(true), json!(false)));
    assert!(env.root().join("out/x").exists() && !env.root().join("x").exists());
    let mut command = env.command(&["call", "mcp:odd:env", "{}", "--yes"]);
    let output = command.env("MY_API_KEY", "s3cret").output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    assert!(names.contains("PATH") && !names.contains("MY_API_KEY"), "{names}");
}

pub(crate) fn program_whose_entry_says_the_whole_home_does_not_reach_state_of_haft() {
    let secret = "not-for-any-server-52d1";
    let env = Env::new();
    let home = env.dir.path().canonicalize().unwrap().join("home");
    let env = env.hostile("odd", &format!(", write: [{}]", home.display()));
    env.ok("calc.eval", json!({"expression": "1"}));
    let data = home.join(".local/share/haft");
    std::fs::write(data.join("gateway-token"), secret).unwrap();
    std::fs::write(home.join("plain"), "of the user").unwrap();
    let state = [data.join("gateway-token"), env.config_file(), data.join("haft.db")];
    let config = env.config();
    for path in &state {
        for tool in ["mcp:odd:read", "mcp:odd:write"] {
            // Named, it is denied; in pieces, the program does not find it.
            let (named, code) = env.call(tool, json!({ "path": path }), &["--yes"]);
            assert_eq!((code, named["error"]["kind"].as_str()), (3, Some("denied")), "{tool} {named:#}");
            let text = path.to_str().unwrap();
            let pieces = json!({"pieces": text.chars().map(String::from).collect::<Vec<_>>()});
            let (hidden, _) = env.call(tool, pieces, &["--yes"]);
            assert!(!format!("{named}{hidden}").contains(secret), "{tool} {named:#} {hidden:#}");
            assert_eq!(hidden["success"], false, "{tool} {hidden:#}");
        }
    }
    assert_eq!(std::fs::read_to_string(&state[0]).unwrap(), secret);
    assert_eq!(env.config(), config);
    // The rest of the home is what the entry says.
    let pieces = json!({"pieces": [home.to_str().unwrap(), "/pl", "ain"]});
    assert_eq!(said(&env.ok("mcp:odd:read", pieces)), "of the user");
}
