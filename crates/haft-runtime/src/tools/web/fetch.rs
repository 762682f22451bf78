//! web.fetch: a page as text that a model can read.

use crate::tool::Tool;
use std::sync::Arc;

/// The tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    Vec::new()
}
