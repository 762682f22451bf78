//! The file tools.

pub mod batch;
pub mod edit;
pub mod read;
pub mod write;

use crate::tool::Tool;
use std::sync::Arc;

/// Every file tool.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![batch::tool(), edit::tool(), read::tool(), write::tool()]
}
