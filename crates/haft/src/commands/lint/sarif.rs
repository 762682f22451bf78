//! Flaws for code scanning: SARIF 2.1.0.

use super::{Report, agents, workflows};
use haft_core::manifest::lint::{RULES, Rule};
use haft_core::skill;
use serde_json::{Value, json};

/// The whole report.
pub(super) fn of(report: &Report) -> Value {
    let rules: Vec<Value> =
        all_rules().map(|rule| json!({"id": rule.id, "shortDescription": {"text": rule.asks}})).collect();
    let results = report.checked.iter().flat_map(|checked| {
        checked.flaws.iter().map(|flaw| {
            let mut place = json!({"artifactLocation": {"uri": uri(&checked.shown)}});
            // A region begins with 1; a file that cannot be read has none.
            if flaw.line > 0 {
                place["region"] = json!({"startLine": flaw.line, "startColumn": flaw.column.max(1)});
            }
            let path = flaw.path();
            let text = if path.is_empty() { flaw.message.clone() } else { format!("{path}: {}", flaw.message) };
            let index = all_rules().position(|rule| rule.id == flaw.rule);
            let mut result = json!({"ruleId": flaw.rule, "level": flaw.severity.word(), "message": {"text": text},
                "locations": [{"physicalLocation": place}]});
            if let Some(index) = index {
                result["ruleIndex"] = json!(index);
            }
            result
        })
    });
    let results: Vec<Value> = results.collect();
    let driver = json!({"name": "haft", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": rules});
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    })
}

/// Every rule, of whatever is checked.
fn all_rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().chain(&workflows::RULES).chain(&agents::RULES).chain(&skill::RULES)
}

/// A path as a relative reference.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'~') => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
