//! browser.*: a real browser, one for each session.

use crate::tool::Tool;
use std::sync::Arc;

/// The tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    Vec::new()
}
