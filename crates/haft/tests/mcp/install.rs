//! `haft mcp install`: haft in the configuration of every client that it knows.

use crate::Env;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

const CLIENTS: [(&str, &str); 7] = [
    ("claude", "project/.mcp.json"),
    ("codex", "home/.codex/config.toml"),
    ("gemini", "home/.gemini/settings.json"),
    ("cursor", "home/.cursor/mcp.json"),
    ("goose", "home/.config/goose/config.yaml"),
    ("opencode", "home/.config/opencode/opencode.json"),
    ("vscode", "project/.vscode/mcp.json"),
];

#[test]
fn it_is_entered_once_and_said_when_it_is_there() {
    let env = Env::new();
    for (client, file) in CLIENTS {
        let file = env.dir.path().join(file);
        let first = env.json(&["mcp", "install", client, "--yes", "--json"]);
        assert_eq!((&first["state"], &first["backup"]), (&json!("written"), &Value::Null), "{client}: {first:#}");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("haft") && text.contains("\"mcp\""), "{client}: {text}");
        let again = env.json(&["mcp", "install", client, "--yes", "--json"]);
        assert_eq!(again["state"], "already there", "{client}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn nothing_is_written_unasked_or_to_print() {
    let env = Env::new();
    for (client, file) in CLIENTS {
        let shown = env.run(&["mcp", "install", client, "--print"]);
        assert!(
            shown.status.success() && String::from_utf8_lossy(&shown.stdout).contains("haft"),
            "{client}: {shown:?}"
        );
        let unasked = env.run(&["mcp", "install", client]);
        assert_eq!(unasked.status.code(), Some(4), "{client}: {unasked:?}");
        assert!(!env.dir.path().join(file).exists());
    }
}

#[test]
fn what_was_there_stays_and_is_kept_with_its_mode() {
    let env = Env::new();
    let file = env.file(".mcp.json", "{\n  \"mcpServers\": {\"other\": {\"command\": \"x\"}},\n  \"mine\": [1]\n}\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let old = std::fs::read_to_string(&file).unwrap();
    let said = env.json(&["mcp", "install", "claude", "--yes", "--json"]);
    let backup = said["backup"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(backup).unwrap(), old);
    let new: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&new["mcpServers"]["other"]["command"], &new["mine"]), (&json!("x"), &json!([1])));
    assert_eq!(new["mcpServers"]["haft"]["args"], json!(["mcp"]));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_file_that_cannot_be_merged_is_left_alone_and_the_entry_shown() {
    let env = Env::new();
    let file = env.file(".vscode/mcp.json", "{\n  // mine\n  \"servers\": {}\n}\n");
    let refused = env.run(&["mcp", "install", "vscode", "--yes"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("comments") && said.contains("\"haft\""), "{said}");
    assert!(std::fs::read_to_string(file).unwrap().contains("// mine"));
}
