//! media.send: gives the person a file, through whatever door the call came.

use crate::media::{Given, Material, url_safe};
use crate::scene::Scene;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use base64::Engine as _;
use haft_core::content::{ContentBlock, ContentBody, EncodedMedia, ResourceContent, ResourceData, ResultContent};
use haft_core::outcome::Label;
use haft_core::place::Access;
use haft_core::{CallError, ToolSpec};
use serde_json::{Map, json};
use std::sync::Arc;

/// Larger ones are told of by name: a model has no use for so many bytes.
const INLINE_MAX: usize = 5 << 20;

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Blocking::tool(spec(), send)
}

fn spec() -> ToolSpec {
    let more = json!({"filename": {"type": "string", "maxLength": 200, "description": "File name for the user (default: its own)"}});
    declare(
        "media.send",
        "Send the user a file: an image, audio or document. It is saved on disk, and shown if the user's client can show it.",
    )
    .hint("attachment deliver show picture download file user")
    .input(super::input(&more))
    .output(json!({
        "type": "object",
        "properties": {"attachment": {"type": "object"}},
        "required": ["attachment"]
    }))
    .touches("path", Access::Read, None)
    .body("data")
}

fn send(scene: &Scene) -> Result<Reply, CallError> {
    let given: Given = scene.parse()?;
    let material = Material::take(scene, &given)?;
    let kept = scene.deliver(&material.name, &material.mime, &material.bytes).map_err(|error| {
        CallError::failed(format!("it could not be kept: {error}")).hint("check the data directory")
    })?;
    let text = format!("Sent {}; it is kept in {}", material.shown(), kept.path.display());
    let mut parts = vec![ContentBlock::text(&text)];
    if material.bytes.len() <= INLINE_MAX {
        parts.push(block(&material));
    }
    let sensitive = scene.place("path").is_ok_and(|place| place.sensitive.is_some());
    let labels = if sensitive { vec![Label::Sensitive] } else { Vec::new() };
    let data = json!({ "attachment": kept });
    Ok(Reply { labels, content: ResultContent::of(parts), ..Reply::text(text).data(data) })
}

/// The file as a part of the result, for clients that show one.
fn block(material: &Material) -> ContentBlock {
    let data = base64::prelude::BASE64_STANDARD.encode(&material.bytes);
    let mime_type = material.mime.clone();
    let body = match mime_type.split('/').next() {
        Some("image") => ContentBody::Image(EncodedMedia { mime_type, data }),
        Some("audio") => ContentBody::Audio(EncodedMedia { mime_type, data }),
        _ => ContentBody::Resource(ResourceContent {
            uri: format!("attachment:///{}", url_safe(&material.name)),
            mime_type: Some(mime_type),
            content: ResourceData::Blob(data),
            details: Map::new(),
        }),
    };
    body.into()
}
