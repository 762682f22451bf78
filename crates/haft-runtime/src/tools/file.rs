//! The file tools.

pub mod glob;
pub mod grep;
pub mod ignore;
pub mod list;
mod walk;
pub mod write;

use crate::tool::Tool;
use std::sync::Arc;

/// Every file tool.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![glob::tool(), grep::tool(), ignore::tool(), list::tool(), write::tool()]
}
