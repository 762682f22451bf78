//! A bridged tool's result as a reply of haft: its blocks as they were sent and in their order, labelled untrusted, within
//! limits.

use crate::content::from_wire;
use haft_core::CallError;
use haft_core::content::{ContentBlock, ResultContent};
use haft_core::outcome::Label;
use haft_core::preview::{cut, inert, size};
use haft_runtime::Reply;
use rmcp::model::{self, CallToolResult};
use serde_json::Value;

/// How much text is taken.
pub(super) const TEXT_MAX: usize = 4 << 20;
/// How much of pictures, sounds and files.
const MEDIA_MAX: usize = 8 << 20;
/// How much data, as text.
const DATA_MAX: usize = 2 << 20;
/// How many blocks.
const BLOCKS_MAX: usize = 1000;

/// The blocks that were taken so far, and what was left out.
#[derive(Default)]
pub(super) struct BlockCollector {
    blocks: Vec<ContentBlock>,
    text_bytes: usize,
    media_bytes: usize,
    left_out: usize,
}

/// A result as a reply. The content is passed on as it is, and labelled: nobody here vouches for it.
pub(super) fn of(server: &str, result: CallToolResult) -> Reply {
    let mut collector = BlockCollector::default();
    result.content.iter().for_each(|block| collector.add_wire(block));
    let mut reply = collector.into_reply();
    let (data, over) = fitting(result.structured_content);
    if over > 0 {
        let (sent, most) = (size(over), size(DATA_MAX));
        reply.warnings.push(format!("the data that the server sent was left out: it is {sent}, and {most} are taken"));
    }
    reply.data = data;
    if let Some(meta) = result.meta.filter(|meta| !meta.0.is_empty()) {
        let (meta, over) = fitting(Some(Value::Object(meta.0)));
        if over == 0 {
            reply.content.attributes.extend(meta.map(|meta| ("_meta".to_owned(), meta)));
        }
    }
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

impl BlockCollector {
    pub(super) fn add_wire(&mut self, block: &model::ContentBlock) {
        self.add(from_wire(block));
    }

    /// Takes a block as far as there is room for it. One that does not fit is described in its place.
    pub(super) fn add(&mut self, mut block: ContentBlock) {
        let encoded = block.encoded_length();
        if self.blocks.len() >= BLOCKS_MAX {
            self.left_out += encoded + block.readable_text().map_or(0, str::len);
            return;
        }
        if self.media_bytes + encoded > MEDIA_MAX {
            self.left_out += encoded;
            block = ContentBlock::text(format!("{} omitted: over the size limit", block.as_plain_text()));
        } else {
            self.media_bytes += encoded;
        }
        if let Some(text) = block.readable_text_mut() {
            let room = text.floor_char_boundary(TEXT_MAX.saturating_sub(self.text_bytes));
            self.left_out += text.len() - room;
            text.truncate(room);
            self.text_bytes += room;
        }
        self.blocks.push(block);
    }

    /// What was taken, as a reply that nobody here vouches for.
    pub(super) fn into_reply(self) -> Reply {
        let mut reply = Reply::content(ResultContent::of(self.blocks));
        reply.labels = vec![Label::Untrusted];
        if self.left_out > 0 {
            let left_out = size(self.left_out);
            reply.warnings.push(format!("{left_out} of what the server sent omitted: over the size limit"));
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::content::ContentBody;
    use serde_json::json;

    #[test]
    fn a_failure_keeps_what_was_said_and_is_untrusted() {
        let reply = of("s", CallToolResult::error(vec![model::ContentBlock::text("no such\x1b[2J city")]));
        assert_eq!(reply.text, "no such\x1b[2J city");
        assert_eq!(reply.labels, [Label::Untrusted]);
        assert_eq!(reply.error.unwrap().message, "the MCP server `s` says: no such\\u{1b}[2J city");
    }

    #[test]
    fn blocks_keep_their_order_and_are_described_for_readers_of_text() {
        let (text, picture) = (model::ContentBlock::text("here:"), model::ContentBlock::image("AAAA", "image/png"));
        let sound = model::ContentBlock::audio("AAAA", "audio/wav");
        let reply = of("s", CallToolResult::success(vec![picture, text, sound]));
        assert_eq!(reply.text, "[image: image/png, 3B]\nhere:\n[audio: audio/wav, 3B]");
        assert_eq!(reply.data, None);
        assert!(matches!(reply.content.blocks[0].body, ContentBody::Image(_)));
        assert_eq!(reply.content.blocks[1].readable_text(), Some("here:"));
        assert!(matches!(reply.content.blocks[2].body, ContentBody::Audio(_)));
    }

    #[test]
    fn too_much_is_cut_and_said() {
        let long = model::ContentBlock::text("x".repeat(TEXT_MAX + 5));
        let reply = of("s", CallToolResult::success(vec![long]));
        assert_eq!(reply.text.len(), TEXT_MAX);
        assert_eq!(reply.warnings, ["5B of what the server sent omitted: over the size limit"]);
        let film = model::ContentBlock::image("A".repeat(MEDIA_MAX + 4), "image/png");
        let reply = of("s", CallToolResult::success(vec![film]));
        assert!(reply.text.starts_with("[image: image/png, ") && reply.text.ends_with("omitted: over the size limit"));
        assert_eq!(reply.content.blocks[0].encoded_length(), 0);
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
