//! A result in parts: text, images, sounds and resources in the order in which a tool gave them, for tools whose result is
//! more than one text. What a sender says beside a part (annotations, metadata) travels with it untouched.

use crate::preview::{inert, size};
use crate::shape::{Limits, truncate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A result in parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ResultContent {
    /// The parts, in order.
    pub blocks: Vec<ContentBlock>,
    /// What the sender says about the result as a whole.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
}

/// One part of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContentBlock {
    /// The part itself.
    #[serde(flatten)]
    pub body: ContentBody,
    /// What the sender says about it: annotations, metadata, a title.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
}

/// What one part of a result is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBody {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(EncodedMedia),
    /// A sound.
    Audio(EncodedMedia),
    /// A resource that can be read where the result came from.
    ResourceLink {
        /// Its address.
        uri: String,
        /// Its name.
        name: String,
    },
    /// A resource with its content.
    Resource(ResourceContent),
}

/// An image or a sound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EncodedMedia {
    /// Its media type.
    pub mime_type: String,
    /// Its bytes in base64.
    pub data: String,
}

/// The content of a resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceContent {
    /// The resource's address.
    pub uri: String,
    /// Its media type, if the sender named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The content itself.
    pub content: ResourceData,
    /// What the sender says about the content.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// Text, or bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceData {
    /// Text.
    Text(String),
    /// Bytes in base64.
    Blob(String),
}

impl From<ContentBody> for ContentBlock {
    fn from(body: ContentBody) -> Self {
        Self { body, attributes: Map::new() }
    }
}

impl ContentBlock {
    /// A part that is text.
    pub fn text(text: impl Into<String>) -> Self {
        ContentBody::Text { text: text.into() }.into()
    }

    /// The text that a model reads in this part.
    pub fn readable_text(&self) -> Option<&str> {
        match &self.body {
            ContentBody::Text { text }
            | ContentBody::Resource(ResourceContent { content: ResourceData::Text(text), .. }) => Some(text),
            _ => None,
        }
    }

    /// The same, to change it.
    pub fn readable_text_mut(&mut self) -> Option<&mut String> {
        match &mut self.body {
            ContentBody::Text { text }
            | ContentBody::Resource(ResourceContent { content: ResourceData::Text(text), .. }) => Some(text),
            _ => None,
        }
    }

    /// How many bytes of base64 it holds.
    pub fn encoded_length(&self) -> usize {
        match &self.body {
            ContentBody::Image(media) | ContentBody::Audio(media) => media.data.len(),
            ContentBody::Resource(ResourceContent { content: ResourceData::Blob(blob), .. }) => blob.len(),
            _ => 0,
        }
    }

    /// The part for a reader who sees text alone. What is no text is described.
    pub fn as_plain_text(&self) -> String {
        let described = |kind: &str, mime: &str, length: usize| {
            format!("[{}: {}, {}]", inert(kind), inert(mime), size(length / 4 * 3))
        };
        match &self.body {
            ContentBody::Text { text } => text.clone(),
            ContentBody::Image(media) => described("image", &media.mime_type, media.data.len()),
            ContentBody::Audio(media) => described("audio", &media.mime_type, media.data.len()),
            ContentBody::ResourceLink { uri, name } => format!("[resource {}: {}]", inert(uri), inert(name)),
            ContentBody::Resource(resource) => match &resource.content {
                ResourceData::Text(text) => format!("[resource {}]\n{text}", inert(&resource.uri)),
                ResourceData::Blob(blob) => {
                    let mime = resource.mime_type.as_deref().unwrap_or("application/octet-stream");
                    described(&format!("resource {}", resource.uri), mime, blob.len())
                }
            },
        }
    }

    fn attribute_values(&self) -> impl Iterator<Item = &Value> {
        let details = match &self.body {
            ContentBody::Resource(resource) => Some(resource.details.values()),
            _ => None,
        };
        self.attributes.values().chain(details.into_iter().flatten())
    }

    /// What is said about the part.
    pub fn attributes_mut(&mut self) -> impl Iterator<Item = &mut Map<String, Value>> {
        let details = match &mut self.body {
            ContentBody::Resource(resource) => Some(&mut resource.details),
            _ => None,
        };
        std::iter::once(&mut self.attributes).chain(details)
    }
}

impl ResultContent {
    /// A result of these parts.
    pub fn of(blocks: Vec<ContentBlock>) -> Self {
        Self { blocks, attributes: Map::new() }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.attributes.is_empty()
    }

    /// The parts for a reader who sees text alone.
    pub fn as_plain_text(&self) -> String {
        self.blocks.iter().map(ContentBlock::as_plain_text).collect::<Vec<_>>().join("\n")
    }

    /// The texts that somebody might read and that stand in no part's own text: titles, names, descriptions.
    pub fn attribute_values(&self) -> impl Iterator<Item = &Value> {
        self.attributes.values().chain(self.blocks.iter().flat_map(ContentBlock::attribute_values))
    }

    /// About how many bytes it holds.
    pub fn length(&self) -> usize {
        let block = |block: &ContentBlock| block.encoded_length() + block.readable_text().map_or(0, str::len);
        self.blocks.iter().map(block).sum()
    }

    /// Cuts the texts of all parts together to the limits. The parts stay where they are.
    #[must_use]
    pub fn truncated(mut self, limits: Limits) -> Self {
        let mut left = limits;
        for text in self.blocks.iter_mut().filter_map(ContentBlock::readable_text_mut) {
            let cut = truncate(text, left);
            let shown = text.len() - cut.hidden_bytes;
            left.lines = left.lines.saturating_sub(text.lines().count() - cut.hidden_lines);
            left.bytes = left.bytes.saturating_sub(shown);
            *text = cut.text;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Keep;
    use serde_json::json;

    fn audio() -> ContentBlock {
        ContentBody::Audio(EncodedMedia { mime_type: "audio/wav".into(), data: "AAAA".into() }).into()
    }

    #[test]
    fn content_survives_being_stored() {
        let mut text = ContentBlock::text("hello");
        text.attributes.insert("annotations".into(), json!({"audience": ["user"]}));
        let resource = ContentBody::Resource(ResourceContent {
            uri: "a://b".into(),
            mime_type: None,
            content: ResourceData::Text("x".into()),
            details: Map::new(),
        });
        let content = ResultContent::of(vec![text, audio(), resource.into()]);
        let stored = serde_json::to_value(&content).unwrap();
        assert_eq!(stored["blocks"][1], json!({"type": "audio", "mime_type": "audio/wav", "data": "AAAA"}));
        assert_eq!(serde_json::from_value::<ResultContent>(stored).unwrap(), content);
    }

    #[test]
    fn long_texts_are_cut_where_they_stand() {
        let texts = ["a".repeat(30), "b".repeat(30), "c".repeat(30)].map(ContentBlock::text);
        let [first, second, third] = texts;
        let content = ResultContent::of(vec![first, audio(), second, third]);
        let cut = content.truncated(Limits { lines: 100, bytes: 40, keep: Keep::Head });
        let kinds: Vec<bool> = cut.blocks.iter().map(|block| block.readable_text().is_some()).collect();
        assert_eq!(kinds, [true, false, true, true]);
        assert_eq!(cut.blocks[0].readable_text(), Some("a".repeat(30).as_str()));
        assert_eq!(cut.blocks[2].readable_text(), Some("bbbbbbbbbb\n[Output truncated - 20 bytes hidden]"));
        assert_eq!(cut.blocks[3].readable_text(), Some("[Output truncated - 30 bytes hidden]"));
    }

    #[test]
    fn content_without_text_is_described() {
        let link = ContentBody::ResourceLink { uri: "a://b\u{1b}".into(), name: "b".into() };
        let content = ResultContent::of(vec![ContentBlock::text("here:"), audio(), link.into()]);
        assert_eq!(content.as_plain_text(), "here:\n[audio: audio/wav, 3B]\n[resource a://b\\u{1b}: b]");
    }
}
