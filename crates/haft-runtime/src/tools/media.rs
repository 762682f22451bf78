//! media.send, image.analyze, audio.transcribe: what is not text.

mod listen;
mod look;
mod send;

use crate::tool::Tool;
use serde_json::{Value, json};
use std::sync::Arc;

/// The tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![send::tool(), look::tool(), listen::tool()]
}

/// How a caller names what a tool is about, with further parameters.
fn input(more: &Value) -> Value {
    let mut properties = json!({
        "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "Path of the file; or give `data`"},
        "data": {"type": "string", "maxLength": crate::media::TEXT_MAX, "description": "The content as base64"},
        "mime_type": {"type": "string", "maxLength": 100, "description": "Media type, if the content does not tell"},
    });
    if let (Some(all), Some(more)) = (properties.as_object_mut(), more.as_object()) {
        all.extend(more.clone());
    }
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}
