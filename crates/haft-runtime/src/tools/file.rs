//! The file tools.

pub mod read;
pub mod write;

use crate::tool::Tool;
use std::sync::Arc;

/// Every file tool.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![read::tool(), write::tool()]
}
