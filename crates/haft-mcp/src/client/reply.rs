//! What a bridged tool gave, in haft's words.

use haft_core::CallError;
use haft_core::outcome::Label;
use haft_core::preview::{cut, inert, size};
use haft_runtime::Reply;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

/// How much text is taken.
const TEXT_MAX: usize = 4 << 20;
/// How much of pictures, sounds and files.
const MEDIA_MAX: usize = 8 << 20;
/// How much data, as text.
const DATA_MAX: usize = 2 << 20;

/// What has been taken so far.
#[derive(Default)]
struct Taken {
    lines: Vec<String>,
    text: usize,
    media: Vec<Value>,
    bytes: usize,
    left_out: usize,
}

/// A result as a reply. What it says is passed on as it is, and labelled: nobody here vouches for it.
pub(super) fn of(server: &str, result: CallToolResult) -> Reply {
    let mut taken = Taken::default();
    for block in result.content {
        taken.add(block);
    }
    let mut reply = Reply::text(taken.lines.join("\n"));
    reply.labels = vec![Label::Untrusted];
    if taken.left_out > 0 {
        reply.warnings.push(format!("{} of what the server sent was left out: it is too much", size(taken.left_out)));
    }
    let (data, over) = fitting(result.structured_content);
    if over > 0 {
        let (sent, most) = (size(over), size(DATA_MAX));
        reply.warnings.push(format!("the data that the server sent was left out: it is {sent}, and {most} are taken"));
    }
    reply.data = match (data, taken.media) {
        (Some(data), media) => {
            if !media.is_empty() {
                reply.warnings.push("the server also sent pictures or files, which are only described".to_owned());
            }
            Some(data)
        }
        (None, media) if media.is_empty() => None,
        (None, mut media) if media.len() == 1 && media[0].get("image").is_some() => media.pop(),
        (None, media) => Some(json!({ "content": media })),
    };
    if result.is_error == Some(true) {
        let first = reply.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it did not say why");
        reply.error = Some(CallError::failed(format!("the MCP server `{server}` says: {}", cut(&inert(first), 300))));
    }
    reply
}

/// Data that is not too large; otherwise nothing, and how large it is.
fn fitting(data: Option<Value>) -> (Option<Value>, usize) {
    let length = data.as_ref().map_or(0, |data| data.to_string().len());
    if length > DATA_MAX { (None, length) } else { (data, 0) }
}

impl Taken {
    fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.say(text.text),
            ContentBlock::Image(image) => {
                let value = json!({"image": {"mime_type": image.mime_type, "data": image.data}});
                self.carry("image", &image.mime_type, image.data.len(), value);
            }
            ContentBlock::Audio(audio) => {
                let value = json!({"audio": {"mime_type": audio.mime_type, "data": audio.data}});
                self.carry("audio", &audio.mime_type, audio.data.len(), value);
            }
            ContentBlock::Resource(resource) => match resource.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    self.say(format!("[resource {}]", inert(&uri)));
                    self.say(text);
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    let mime = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                    let (kind, length) = (format!("resource {uri}"), blob.len());
                    let value = json!({"resource": {"uri": uri, "mime_type": mime, "data": blob}});
                    self.carry(&kind, &mime, length, value);
                }
                _ => self.say("[a resource of a kind that is not known here]".to_owned()),
            },
            ContentBlock::ResourceLink(link) => {
                self.say(format!("[resource {}: {}]", inert(&link.uri), inert(&link.name)));
            }
            _ => self.say("[content of a kind that is not known here]".to_owned()),
        }
    }

    fn say(&mut self, mut text: String) {
        let mut room = TEXT_MAX.saturating_sub(self.text).min(text.len());
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        self.left_out += text.len() - room;
        text.truncate(room);
        self.text += room;
        self.lines.push(text);
    }

    /// A picture, a sound or a file: described in words, and carried as data.
    fn carry(&mut self, kind: &str, mime: &str, length: usize, value: Value) {
        self.say(format!("[{}: {}, {}]", inert(kind), inert(mime), size(length / 4 * 3)));
        if self.bytes + length > MEDIA_MAX {
            self.left_out += length;
            return;
        }
        self.bytes += length;
        self.media.push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_what_was_said_and_is_untrusted() {
        let reply = of("s", CallToolResult::error(vec![ContentBlock::text("no such\x1b[2J city")]));
        assert_eq!(reply.text, "no such\x1b[2J city");
        assert_eq!(reply.labels, [Label::Untrusted]);
        assert_eq!(reply.error.unwrap().message, "the MCP server `s` says: no such\\u{1b}[2J city");
    }

    #[test]
    fn a_picture_is_described_and_carried() {
        let picture = ContentBlock::image("AAAA", "image/png");
        let reply = of("s", CallToolResult::success(vec![ContentBlock::text("here:"), picture]));
        assert_eq!(reply.text, "here:\n[image: image/png, 3B]");
        assert_eq!(reply.data.unwrap()["image"]["mime_type"], "image/png");
    }

    #[test]
    fn too_much_is_cut_and_said() {
        let reply = of("s", CallToolResult::success(vec![ContentBlock::text("x".repeat(TEXT_MAX + 5))]));
        assert_eq!(reply.text.len(), TEXT_MAX);
        assert_eq!(reply.warnings, ["5B of what the server sent was left out: it is too much"]);
    }

    #[test]
    fn data_is_bounded_too() {
        let reply = of("s", CallToolResult::structured(json!({"x": "y".repeat(DATA_MAX)})));
        assert_eq!(reply.data, None);
        assert!(reply.warnings.iter().any(|said| said.contains("data that the server sent was left out")));
        let small = of("s", CallToolResult::structured(json!({"x": 1})));
        assert_eq!((small.data, small.warnings.len()), (Some(json!({"x": 1})), 0));
    }
}
