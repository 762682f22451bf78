//! media.send: gives the person a file, through whatever door the call came.

use crate::media::{Given, Material, url_safe};
use crate::scene::Scene;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use base64::Engine as _;
use haft_core::outcome::Label;
use haft_core::place::Access;
use haft_core::{CallError, ToolSpec};
use serde_json::{Value, json};
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
    let mut data = json!({ "attachment": kept });
    if material.bytes.len() <= INLINE_MAX {
        data["content"] = json!([block(&material)]);
    }
    let sensitive = scene.place("path").is_ok_and(|place| place.sensitive.is_some());
    let labels = if sensitive { vec![Label::Sensitive] } else { Vec::new() };
    Ok(Reply { labels, ..Reply::text(text).data(data) })
}

/// It as a block that MCP clients show.
fn block(material: &Material) -> Value {
    let data = base64::prelude::BASE64_STANDARD.encode(&material.bytes);
    match material.mime.split('/').next() {
        Some("image") => json!({"type": "image", "data": data, "mimeType": material.mime}),
        Some("audio") => json!({"type": "audio", "data": data, "mimeType": material.mime}),
        _ => json!({
            "type": "resource",
            "resource": {"uri": format!("attachment:///{}", url_safe(&material.name)), "mimeType": material.mime, "blob": data}
        }),
    }
}
