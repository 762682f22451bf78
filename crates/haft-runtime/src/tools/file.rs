//! The file tools.

pub mod batch;
pub mod edit;
mod fitted;
mod gitignore;
pub mod glob;
pub mod grep;
pub mod ignore;
pub mod list;
mod path_glob;
pub mod read;
pub(crate) mod walk;
pub mod write;

use crate::tool::Tool;
use std::sync::Arc;

/// Every file tool.
pub fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        batch::tool(),
        edit::tool(),
        glob::tool(),
        grep::tool(),
        ignore::tool(),
        list::tool(),
        read::tool(),
        write::tool(),
    ]
}
