//! media.send, image.analyze, audio.transcribe: what is not text.

use crate::tool::Tool;
use std::sync::Arc;

/// The tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    Vec::new()
}
