//! Permissions of opencode, as its own rules decide them.

use super::*;

/// Whether opencode's own tools are off with these layers, the one that counts least first.
fn is_off(layers: &[Value]) -> bool {
    let mut merged = json!({});
    for layer in layers {
        super::super::merge(&mut merged, normalized(layer.clone()));
    }
    are_native_tools_off(&merged)
}

fn denied() -> Value {
    let permission: Map<String, Value> =
        OPENCODE_NATIVE.iter().map(|tool| ((*tool).to_owned(), "deny".into())).collect();
    json!({ "permission": permission })
}

#[test]
fn last_matching_rule_decides() {
    assert!(is_off(&[denied()]) && is_off(&[json!({"permission": "deny"})]));
    assert!(!is_off(&[json!({})]) && !is_off(&[json!({"permission": {"bash": "deny"}})]));
    let on = [
        json!({"permission": "allow"}),
        json!({"permission": {"*": "ask"}}),
        json!({"permission": {"ba?h": "allow"}}),
        json!({"permission": {"bash *": "allow"}}),
        json!({"permission": {"bash": {"*": "deny", "ls *": "allow"}}}),
        json!({"permission": {"bash": {}}}),
        json!({"permission": {"bash": "{env:ANSWER}"}}),
        json!({"agent": {"build": {"permission": {"edit": "allow"}}}}),
        json!({"agent": {"build": {"permission": "allow"}}}),
        json!({"agent": {"build": {"tools": {"write": true}}}}),
        json!({"mode": {"mine": {"tools": {"bash": true}}}}),
    ];
    for layer in on {
        assert!(!is_off(&[denied(), layer.clone()]), "{layer}");
        assert!(!is_off(&[denied(), layer.clone(), json!({"model": "a/b"})]), "{layer}");
    }
    let off = [
        json!({"permission": {"task": "allow", "haft_*": "allow"}}),
        json!({"permission": {"bash": {"ls *": "allow", "*": "deny"}}}),
        // A general permission takes precedence over the older list of tools.
        json!({"tools": {"bash": true}}),
        json!({"agent": {"build": {"disable": true, "permission": "allow"}}}),
        json!({"agent": {"build": {"tools": {"task": true}}}}),
    ];
    for layer in off {
        assert!(is_off(&[denied(), layer.clone()]), "{layer}");
    }
}

#[test]
fn permission_names_match_as_wildcards() {
    for (pattern, matches) in
        [("*", true), ("b*h", true), ("*a?h*", true), ("bash *", true), ("", false), ("bas", false)]
    {
        assert_eq!(names_tool(pattern, "bash"), matches, "{pattern}");
    }
    assert!(names_tool(&"*".repeat(100_000), "bash"), "a long pattern takes no long time");
}

#[test]
fn front_matter_is_what_stands_between_the_lines() {
    assert_eq!(front_matter("---\ntools:\n  bash: true\n---\nText\n"), Some("tools:\n  bash: true\n"));
    assert_eq!(front_matter("---\n---\n"), Some(""));
    assert_eq!(front_matter("Text\n---\n"), None);
    assert_eq!(front_matter("---\nno end\n"), None);
}

#[test]
fn completed_names_are_refused() {
    let hidden = json!({"permission": {"{file:name}": "allow"}});
    assert!(checked(hidden, "opencode.json").unwrap_err().contains("opencode.json"));
    assert!(checked(json!({"provider": {"key": "{env:KEY}"}}), "opencode.json").is_ok());
}
