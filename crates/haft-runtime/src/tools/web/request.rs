//! web.request: any request, with what came back.

use crate::tool::Tool;
use std::sync::Arc;

/// The tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    Vec::new()
}
