//! web.search and web.research: one shape of results, whoever found them.

use crate::tool::Tool;
use std::sync::Arc;

/// Who searches.
#[derive(Debug, Clone, Default)]
pub struct SearchSettings {}

/// The tools.
pub fn all() -> Vec<Arc<dyn Tool>> {
    Vec::new()
}
