//! An outcome in the words of the protocol.

use haft_core::{ErrorKind, Outcome};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Resource};
use serde_json::{Map, Value, json};

/// The member of a tool's data that holds blocks to be shown as they are: images, sounds, resources.
const BLOCKS: &str = "content";
/// The member of a tool's data that holds an image.
const IMAGE: &str = "image";

/// What a client is told of an outcome.
pub(super) fn reply(outcome: Outcome, decide_at: &str) -> CallToolResult {
    let meta = meta(&outcome);
    let mut content = vec![ContentBlock::text(text(&outcome, decide_at))];
    let mut data = outcome.data;
    let mut shown = data.as_mut().and_then(Value::as_object_mut).map(blocks).unwrap_or_default();
    if outcome.output.is_empty() && outcome.success && outcome.warnings.is_empty() && !shown.is_empty() {
        content.clear();
    }
    content.append(&mut shown);
    if let (true, Some(uri)) = (outcome.truncated, uri(&outcome.call_id, outcome.full_output.as_deref())) {
        let whole = Resource::new(uri, "full output").with_description("The whole output").with_mime_type("text/plain");
        content.push(ContentBlock::resource_link(whole));
    }
    let mut result = if outcome.success { CallToolResult::success(content) } else { CallToolResult::error(content) };
    // A failure's data is in its text and its particulars: clients hold structured content against the schema.
    result.structured_content = data.filter(Value::is_object);
    result.meta = Some(meta);
    result
}

/// What a person or a model reads: the output, then what went wrong and what to do about it.
fn text(outcome: &Outcome, decide_at: &str) -> String {
    let mut text = outcome.output.clone();
    let mut line = |said: &str| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(said);
    };
    for warning in &outcome.warnings {
        line(&format!("Warning: {warning}"));
    }
    if let Some(error) = &outcome.error {
        line(&format!("Error ({}): {}", error.kind.as_str(), error.message));
        if error.kind == ErrorKind::ApprovalRequired {
            line(&format!("It waits as approval {}. {decide_at}", outcome.call_id));
        }
        if let Some(hint) = &error.hint {
            line(&format!("Hint: {hint}"));
        }
        if let Some(details) = error.details.as_ref().filter(|_| error.kind == ErrorKind::InvalidInput) {
            line(&format!("Details: {details}"));
        }
    }
    text
}

/// What is not text in a tool's data, taken out of it: it is shown once.
fn blocks(data: &mut Map<String, Value>) -> Vec<ContentBlock> {
    let mut blocks = Vec::new();
    let picture = data.get_mut(IMAGE).and_then(Value::as_object_mut).and_then(|image| {
        let mime = image.get("mime_type")?.as_str()?.to_owned();
        match image.remove("data")? {
            Value::String(bytes) => Some(ContentBlock::image(bytes, mime)),
            _ => None,
        }
    });
    blocks.extend(picture);
    let parsed = data.get(BLOCKS).and_then(|value| serde_json::from_value::<Vec<ContentBlock>>(value.clone()).ok());
    if let Some(parsed) = parsed {
        data.remove(BLOCKS);
        // Text is in the output, where it was cut to size.
        blocks.extend(parsed.into_iter().filter(|block| block.as_text().is_none()));
    }
    blocks
}

/// Where the whole of an output can be read, if it is kept under its call's name.
fn uri(call: &haft_core::CallId, kept: Option<&str>) -> Option<String> {
    let name = std::path::Path::new(kept?).file_name()?.to_str()?;
    (name == format!("{call}.txt")).then(|| format!("haft://output/{call}"))
}

fn meta(outcome: &Outcome) -> MetaObject {
    let mut about =
        json!({ "call_id": outcome.call_id, "verdict": outcome.verdict, "duration_ms": outcome.duration_ms });
    if !outcome.labels.is_empty() {
        about["labels"] = json!(outcome.labels);
    }
    if let Some(undo) = &outcome.undo {
        about["undo"] = json!(undo);
    }
    if outcome.truncated {
        about["truncated"] = true.into();
        about["full_output"] = uri(&outcome.call_id, outcome.full_output.as_deref()).into();
    }
    if let Some(error) = &outcome.error {
        about["error"] = json!(error);
    }
    let mut meta = JsonObject::new();
    meta.insert("haft".to_owned(), about);
    MetaObject(meta)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::approval::{Decision, Verdict};
    use haft_core::{CallError, CallId, ToolName};

    fn outcome() -> Outcome {
        let verdict = Verdict::new(Decision::Allow, "test", "it is a test");
        Outcome::success(CallId::new(1, 1), &ToolName::new("file.read").unwrap(), "Image: a.png", verdict)
    }

    #[test]
    fn an_image_is_shown_and_not_repeated_as_data() {
        let mut outcome = outcome();
        outcome.data = Some(json!({"image": {"mime_type": "image/png", "data": "AAAA", "width": 1}}));
        let result = serde_json::to_value(reply(outcome, "")).unwrap();
        assert_eq!(result["content"][1], json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}));
        assert_eq!(result["structuredContent"], json!({"image": {"mime_type": "image/png", "width": 1}}));
    }

    #[test]
    fn blocks_that_a_tool_gives_are_passed_on() {
        let mut outcome = outcome();
        let sound = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
        outcome.data = Some(json!({"content": [{"type": "text", "text": "Image: a.png"}, sound]}));
        let result = serde_json::to_value(reply(outcome, "")).unwrap();
        assert_eq!(result["content"], json!([{"type": "text", "text": "Image: a.png"}, sound]));
    }

    #[test]
    fn what_waits_says_where_it_is_decided() {
        let mut outcome = outcome();
        let error = CallError::new(ErrorKind::ApprovalRequired, "a person has to decide");
        (outcome.success, outcome.output, outcome.error) = (false, String::new(), Some(error));
        let id = outcome.call_id.to_string();
        let result = serde_json::to_value(reply(outcome, "Run `haft approvals`.")).unwrap();
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&format!("approval {id}. Run `haft approvals`.")), "{text}");
    }
}
