//! Whether a person sits in front of a client.
//!
//! Some agents declare forms and then decline or close each one unseen when they run headless. Those that say so are not
//! asked: the question goes to the inbox alone. What does not say so and answers faster than a person reads is caught by
//! its speed.

use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde_json::Value;

/// Codex describes the turn in each call; `codex exec` says that it began the turn.
const CODEX_TURN: &str = "x-codex-turn-metadata";
const CODEX_TRIGGER: &str = "turn_trigger";
const CODEX_HEADLESS: &str = "exec";
/// Claude Code tells the servers that it starts how it was started itself; this is `claude -p`.
const CLAUDE_ENTRYPOINT: &str = "CLAUDE_CODE_ENTRYPOINT";
const CLAUDE_HEADLESS: &str = "sdk-cli";

/// goose asks only in a terminal, and without one ends its run instead of an answer.
const GOOSE: &str = "goose-cli";

/// How a client runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientMode {
    /// In front of a person, as far as is known.
    Attended,
    /// Without a person.
    Headless,
}

impl ClientMode {
    /// Of the client that makes this request. A client over HTTP has not started this process.
    pub(super) fn of(context: &RequestContext<RoleServer>, over_http: bool) -> Self {
        let name = context.client_info().map(|client| client.name.clone());
        let marks = HeadlessSignals {
            codex_turn: context.meta.get(CODEX_TURN),
            claude_entrypoint: if over_http { None } else { std::env::var(CLAUDE_ENTRYPOINT).ok() },
            is_goose: name.is_some_and(|name| name == GOOSE),
            has_terminal: over_http || client_has_terminal(),
        };
        marks.mode()
    }
}

/// What a client says of how it runs.
struct HeadlessSignals<'c> {
    codex_turn: Option<&'c Value>,
    claude_entrypoint: Option<String>,
    is_goose: bool,
    has_terminal: bool,
}

impl HeadlessSignals<'_> {
    fn mode(&self) -> ClientMode {
        let trigger = self.codex_turn.and_then(|turn| turn.get(CODEX_TRIGGER)).and_then(Value::as_str);
        let is_headless = trigger == Some(CODEX_HEADLESS)
            || self.claude_entrypoint.as_deref() == Some(CLAUDE_HEADLESS)
            || (self.is_goose && !self.has_terminal);
        if is_headless { ClientMode::Headless } else { ClientMode::Attended }
    }
}

/// Whether the process that started this one reads from a terminal, as far as that can be seen.
fn client_has_terminal() -> bool {
    let input = std::fs::read_link(format!("/proc/{}/fd/0", std::os::unix::process::parent_id()));
    input.map_or(true, |input| input.starts_with("/dev/pts") || input.to_string_lossy().starts_with("/dev/tty"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn attended() -> HeadlessSignals<'static> {
        HeadlessSignals { codex_turn: None, claude_entrypoint: None, is_goose: false, has_terminal: true }
    }

    #[test]
    fn client_that_says_it_is_headless_is_not_asked() {
        let codex = |turn: Value| HeadlessSignals { codex_turn: Some(&turn), ..attended() }.mode();
        assert_eq!(codex(json!({"turn_trigger": "exec"})), ClientMode::Headless);
        assert_eq!(codex(json!({"turn_trigger": "user"})), ClientMode::Attended);
        assert_eq!(codex(json!("exec")), ClientMode::Attended);
        let claude =
            |entrypoint: &str| HeadlessSignals { claude_entrypoint: Some(entrypoint.to_owned()), ..attended() }.mode();
        assert_eq!(claude("sdk-cli"), ClientMode::Headless);
        assert_eq!(claude("cli"), ClientMode::Attended);
        let goose = |has_terminal: bool| HeadlessSignals { is_goose: true, has_terminal, ..attended() }.mode();
        assert_eq!(goose(true), ClientMode::Attended);
        assert_eq!(goose(false), ClientMode::Headless);
        assert_eq!(HeadlessSignals { has_terminal: false, ..attended() }.mode(), ClientMode::Attended);
    }
}
