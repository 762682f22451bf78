//! What a model is told of a call.

use haft_core::Outcome;
use haft_core::agent::talk::Image;
use serde_json::Value;

/// How many pictures of one call are shown.
const PICTURES: usize = 8;

/// The words and pictures for an outcome, and whether it went wrong.
pub(crate) fn told(outcome: &Outcome) -> (String, Vec<Image>, bool) {
    let mut text = outcome.output.trim_end().to_owned();
    if let Some(error) = &outcome.error {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&format!("Error ({}): {}", error.kind.as_str(), error.message));
        if let Some(hint) = &error.hint {
            text.push_str(&format!("\n{hint}"));
        }
        if let Some(details) = error.details.as_ref().filter(|details| !details.is_null()) {
            text.push_str(&format!("\n{details}"));
        }
    }
    for warning in &outcome.warnings {
        text.push_str(&format!("\nNote: {warning}"));
    }
    if text.is_empty() {
        "(it gave nothing)".clone_into(&mut text);
    }
    (text, outcome.data.as_ref().map(pictures).unwrap_or_default(), !outcome.success)
}

/// The pictures in what a tool gave: its own, or those among the blocks that a bridged server sent.
fn pictures(data: &Value) -> Vec<Image> {
    let one = |image: &Value, kind: &str| {
        let (media_type, data) = (image.get(kind)?.as_str()?, image.get("data")?.as_str()?);
        Some(Image { media_type: media_type.to_owned(), data: data.to_owned() })
    };
    let own = data.get("image").and_then(|image| one(image, "mime_type"));
    let blocks = data.get("content").and_then(Value::as_array).into_iter().flatten();
    let sent = blocks.filter(|block| block["type"] == "image").filter_map(|block| one(block, "mimeType"));
    own.into_iter().chain(sent).take(PICTURES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::approval::{Decision, Verdict};
    use haft_core::{CallError, CallId, ToolName};
    use serde_json::json;

    fn outcome() -> Outcome {
        let verdict = Verdict::new(Decision::Allow, "test", "it is one");
        Outcome::success(CallId::new(1, 1), &ToolName::new("file.read").unwrap(), "one\n", verdict)
    }

    #[test]
    fn a_failure_says_what_happened_and_what_to_do() {
        let mut failed = outcome();
        failed.success = false;
        failed.error = Some(CallError::not_found("a.txt is not there").hint("file.glob finds files"));
        failed.warnings = vec!["it was there yesterday".to_owned()];
        let (text, images, wrong) = told(&failed);
        assert_eq!(
            text,
            "one\n\nError (not_found): a.txt is not there\nfile.glob finds files\nNote: it was there yesterday"
        );
        assert!(wrong && images.is_empty());
    }

    #[test]
    fn pictures_are_shown() {
        let mut seen = outcome();
        seen.data = Some(json!({"image": {"mime_type": "image/png", "data": "AAAA"}}));
        assert_eq!(told(&seen).1, [Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() }]);
        seen.data =
            Some(json!({"content": [{"type": "text"}, {"type": "image", "mimeType": "image/gif", "data": "BB"}]}));
        assert_eq!(told(&seen).1[0].media_type, "image/gif");
    }
}
