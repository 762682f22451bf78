//! `haft mcp add`, `list`, `remove` and `import`.

use super::{Env, python, said};
use serde_json::json;
use std::path::Path;

pub(crate) fn a_server_is_added_listed_and_removed() {
    let env = Env::new();
    let before = "# mine\ndeny: [web.fetch] # no\n";
    std::fs::write(env.config_file(), before).unwrap();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bridge/hostile");
    let (dir, script) = (dir.to_str().unwrap(), dir.join("rug.py"));
    let (program, home) = (python("python3", "executable"), python("python3", "base_prefix"));
    let add = ["mcp", "add", "rug", "--read", dir, "--read", &home, "--", &program, "-B", script.to_str().unwrap()];
    let ran = env.run(&add);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("rug ready 1 tool") && ran.stdout.contains("mcp:rug:add"), "{}", ran.stdout);
    assert!(env.config().starts_with(before), "{}", env.config());
    assert_eq!(std::fs::read_to_string(env.config_file().with_extension("yml.bak")).unwrap(), before);
    assert_eq!(env.run(&add).code, 1, "twice is refused");
    let listed = env.run(&["mcp", "list", "--json"]).json();
    assert_eq!(listed["servers"][0]["state"], "idle", "listing starts nothing");
    assert_eq!(listed["servers"][0]["tools"], json!(["mcp:rug:add"]));
    assert_eq!(said(&env.ok("mcp:rug:add", json!({}))), "called add");
    assert_eq!(env.run(&["mcp", "remove", "rug"]).code, 0);
    assert_eq!(env.config(), before);
    assert_eq!(env.tools(), Vec::<String>::new());
    assert_eq!(env.run(&["mcp", "remove", "rug"]).code, 1);
}

pub(crate) fn entries_that_make_no_sense_are_refused_before_anything_is_written() {
    let env = Env::new();
    for args in [
        vec!["mcp", "add", "Bad Name", "--", "x"],
        vec!["mcp", "add", "x"],
        vec!["mcp", "add", "x", "--url", "ftp://x"],
        vec!["mcp", "add", "x", "--url", "http://x/", "--", "y"],
        vec!["mcp", "add", "x", "--env", "NOVALUE", "--", "y"],
    ] {
        let ran = env.run(&args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert_eq!(env.config(), "", "{args:?}");
    }
    let (kind, message) = env.err("mcp:nobody:x", json!({}));
    assert_eq!((kind.as_str(), message.as_str()), ("unknown_tool", "there is no tool `mcp:nobody:x`"));
    assert_eq!(env.run(&["mcp", "test", "nobody"]).code, 1);
}

pub(crate) fn other_clients_files_are_taken_over() {
    let env = Env::new().server("git", "{command: \"true\"}");
    let text = r#"{"mcpServers": {"Git": {"command": "x"}, "web": {"url": "https://example.com/mcp"},
        "haft": {"command": "/usr/bin/haft", "args": ["mcp"]}}}"#;
    std::fs::write(env.root().join(".mcp.json"), text).unwrap();
    let shown = env.run(&["mcp", "import", ".mcp.json", "--print"]);
    assert_eq!(shown.stdout, "mcp:\n  servers:\n    web:\n      url: \"https://example.com/mcp\"\n");
    let ran = env.run(&["mcp", "import", ".mcp.json"]);
    assert!(ran.stderr.contains("`git` is bridged already"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`haft` is haft itself"), "{}", ran.stderr);
    let listed = env.run(&["mcp", "list"]).stdout;
    assert!(listed.contains("git") && listed.contains("web"), "{listed}");
}

pub(crate) fn a_program_that_is_not_there_says_so() {
    let env = Env::new().server("gone", "{command: no-such-program-anywhere}");
    let ran = env.run(&["mcp", "test", "gone"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("the MCP server `gone` is not there: no-such-program-anywhere"), "{}", ran.stderr);
}

pub(crate) fn a_project_cannot_have_another_file_written() {
    let env = Env::new();
    let (victim, dir) = (env.dir.path().join("home/victim.yml"), env.root().join(".haft"));
    std::fs::write(&victim, "deny: []\n").unwrap();
    std::fs::create_dir(&dir).unwrap();
    let add = || env.run(&["mcp", "add", "x", "--project", "--", "true"]);
    std::os::unix::fs::symlink(&victim, dir.join("config.yml")).unwrap();
    let ran = add();
    assert!(ran.code == 1 && ran.stderr.contains("leads out of the project"), "{}", ran.stderr);
    std::fs::remove_file(dir.join("config.yml")).unwrap();
    for planted in ["config.yml.haft-new", "config.yml.haft-new.1"] {
        std::os::unix::fs::symlink(&victim, dir.join(planted)).unwrap();
    }
    let ran = add();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        std::fs::read_to_string(dir.join("config.yml")).unwrap().contains("x:") && !dir.join("config.yml").is_symlink()
    );
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "deny: []\n");
}

pub(crate) fn a_servers_tools_become_manifests_to_review() {
    let env = Env::new().hostile("rug", "");
    let ran = env.run(&["import", "mcp", "rug", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["made"], json!([{"name": "rug_add", "what": "tool"}]));
    let manifest = std::fs::read_to_string(env.root().join(".haft/tools/rug_add/tool.yml")).unwrap();
    for part in ["kind: mcp", "server: rug", "tool: add", "network: false"] {
        assert!(manifest.contains(part), "{part}: {manifest}");
    }
    assert_eq!(env.err("rug_add", json!({})).0, "denied", "nobody has accepted it");
    assert_eq!(env.run(&["trust", "rug_add", "--yes"]).code, 0);
    for name in ["glee_tool", "tool.call"] {
        // Its process makes one call, and so meets the server only for that.
        let ran = env.run(&["call", name, r#"{"name": "rug_add", "params": {}, "args": {}}"#, "--yes", "--json"]);
        assert!(!ran.stdout.contains("there is no tool"), "{name}: {} {}", ran.stdout, ran.stderr);
    }
    let missing = env.run(&["import", "mcp", "rug", "nothing"]);
    assert!(missing.code == 1 && missing.stderr.contains("has no tool"), "{}", missing.stderr);
}
