//! What agents print, read: their last words, the conversation that they are the end of, and what that cost. Whatever is
//! in no known form is nothing.

use serde_json::Value;

/// What an agent said.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Said {
    /// Its last words.
    pub(super) text: String,
    /// The conversation, to be gone on with.
    pub(super) session: Option<String>,
    /// What it cost, in dollars, if the agent knows.
    pub(super) cost_usd: Option<f64>,
    /// What went wrong, in its own words.
    pub(super) failure: Option<String>,
}

/// The name of a conversation as it is passed on: anything else could be taken for an option.
pub(super) fn is_session(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric();
    name.starts_with(letter) && name.len() <= 128 && name.chars().all(|c| letter(c) || "._:-".contains(c))
}

fn session(value: &Value) -> Option<String> {
    value.as_str().filter(|name| is_session(name)).map(str::to_owned)
}

fn word(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The one JSON value in what was printed: all of it, or what begins a line after other words.
fn value(printed: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(printed.trim()) {
        return Some(value);
    }
    let begins = printed.match_indices(['{', '[']).filter(|(at, _)| printed[..*at].ends_with('\n'));
    begins.take(100).find_map(|(at, _)| serde_json::from_str(printed[at..].trim()).ok())
}

/// One object with `result` and `session_id`; or a list of messages that ends with it.
pub(super) fn claude(printed: &str) -> Option<Said> {
    let is_result = |value: &Value| value["type"] == "result";
    let found = match value(printed)? {
        Value::Array(all) => all.into_iter().rev().find(is_result)?,
        one => Some(one).filter(is_result)?,
    };
    let text = word(&found["result"]).unwrap_or_default();
    let failed = found["is_error"] == true || found["subtype"].as_str().is_some_and(|kind| kind.starts_with("error"));
    let why = || if text.is_empty() { word(&found["subtype"]) } else { Some(text.clone()) };
    Some(Said {
        failure: if failed { Some(why().unwrap_or_default()) } else { None },
        session: session(&found["session_id"]),
        cost_usd: found["total_cost_usd"].as_f64(),
        text,
    })
}

/// One object a line: the thread first, then what happens, each message of the agent's among it. Older versions wrap each
/// in `msg`.
pub(super) fn codex(printed: &str) -> Option<Said> {
    let mut said = Said::default();
    let mut known = false;
    for event in printed.lines().filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok()) {
        let event = if event["msg"].is_object() { &event["msg"] } else { &event };
        let Some(kind) = event["type"].as_str() else { continue };
        let item = &event["item"];
        let spoken = ["agent_message", "assistant_message"];
        match kind {
            "thread.started" => said.session = session(&event["thread_id"]),
            "session_configured" => said.session = session(&event["session_id"]),
            "item.completed" if spoken.iter().any(|kind| item["type"] == *kind || item["item_type"] == *kind) => {
                said.text = word(&item["text"]).unwrap_or_default();
            }
            "agent_message" => said.text = word(&event["message"]).unwrap_or_default(),
            "turn.failed" => said.failure = Some(word(&event["error"]["message"]).unwrap_or_default()),
            "error" => said.failure = Some(word(&event["message"]).unwrap_or_default()),
            // What went wrong on the way was mended.
            "turn.completed" | "task_complete" => said.failure = None,
            _ => continue,
        }
        known = true;
    }
    known.then_some(said)
}

/// One object with `response`, and with `error` if it failed.
pub(super) fn gemini(printed: &str) -> Option<Said> {
    let found = value(printed)?;
    let (response, error) = (word(&found["response"]), &found["error"]);
    if response.is_none() && error.is_null() {
        return None;
    }
    let failure = (!error.is_null()).then(|| word(&error["message"]).unwrap_or_else(|| error.to_string()));
    let session = session(&found["session_id"]).or_else(|| session(&found["sessionId"]));
    Some(Said { text: response.unwrap_or_default(), session, cost_usd: None, failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, session: &str) -> Said {
        Said { text: text.to_owned(), session: Some(session.to_owned()), ..Said::default() }
    }

    #[test]
    fn claude_says_one_object() {
        let line = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"a-1","total_cost_usd":0.25}"#;
        assert_eq!(claude(line), Some(Said { cost_usd: Some(0.25), ..said("Done.", "a-1") }));
        let messages = format!(r#"[{{"type":"system"}},{line}]"#);
        assert_eq!(claude(&messages), claude(line));
        assert_eq!(claude(&format!("warning: old\n{line}\n")), claude(line));
        let failed = r#"{"type":"result","subtype":"error_max_turns","is_error":false,"session_id":"a-1"}"#;
        assert_eq!(claude(failed).unwrap().failure.as_deref(), Some("error_max_turns"));
        let login = r#"{"type":"result","is_error":true,"result":"Please run /login","session_id":"a-1"}"#;
        assert_eq!(claude(login).unwrap().failure.as_deref(), Some("Please run /login"));
        for odd in ["", "Done.", "{}", "[]", "null", r#"{"type":"result""#, r#"{"result":"x"}"#] {
            assert_eq!(claude(odd), None, "{odd}");
        }
    }

    #[test]
    fn codex_says_a_line_for_everything() {
        let lines = concat!(
            r#"{"type":"thread.started","thread_id":"0199-a"}"#,
            "\n",
            r#"{"type":"turn.started"}"#,
            "\nnot JSON\n",
            r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Looking."}}"#,
            "\n",
            r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","text":"ls"}}"#,
            "\n",
            r#"{"type":"error","message":"Reconnecting"}"#,
            "\n",
            r#"{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"Done."}}"#,
            "\n",
            r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":2}}"#,
        );
        assert_eq!(codex(lines), Some(said("Done.", "0199-a")));
        let older = "{\"id\":\"0\",\"msg\":{\"type\":\"session_configured\",\"session_id\":\"b-2\"}}\n\
                     {\"id\":\"1\",\"msg\":{\"type\":\"agent_message\",\"message\":\"Hi\"}}";
        assert_eq!(codex(older), Some(said("Hi", "b-2")));
        let failed = r#"{"type":"turn.failed","error":{"message":"quota"}}"#;
        assert_eq!(codex(failed).unwrap().failure.as_deref(), Some("quota"));
        for odd in ["", "hello", "{}", "[1]", r#"{"type":"other"}"#] {
            assert_eq!(codex(odd), None, "{odd}");
        }
    }

    #[test]
    fn gemini_says_a_response_or_an_error() {
        let fine = "Loaded cached credentials.\n{\n  \"session_id\": \"c-3\",\n  \"response\": \"Done.\",\n  \"stats\": {}\n}\n";
        assert_eq!(gemini(fine), Some(said("Done.", "c-3")));
        assert_eq!(gemini(r#"{"response":"x"}"#).unwrap().session, None);
        let failed = gemini(r#"{"error":{"type":"Error","message":"no quota","code":1}}"#).unwrap();
        assert_eq!(failed.failure.as_deref(), Some("no quota"));
        for odd in ["", "Done.", "{}", "[]", r#"{"response": 7}"#] {
            assert_eq!(gemini(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_session_is_never_an_option() {
        assert!(is_session("0199a213-81c0-7800-8aa1-bbab2a035a53") && is_session("latest"));
        for odd in ["", "-x", "--last", "a b", "a\n", "../x", "a/b", "ä"] {
            assert!(!is_session(odd), "{odd}");
        }
        let sly = r#"{"type":"result","result":"x","session_id":"--dangerous"}"#;
        assert_eq!(claude(sly).unwrap().session, None);
    }
}
