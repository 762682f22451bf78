//! The tools that ask something of the web. They all leave by the one guarded way ([`crate::web`]).

pub mod fetch;
mod pdf;
pub(crate) mod reading;
pub mod request;
pub mod search;

use crate::tool::Tool;
use std::sync::Arc;

/// All of them.
pub fn all() -> Vec<Arc<dyn Tool>> {
    let mut tools = fetch::all();
    tools.extend(request::all());
    tools.extend(search::all());
    tools
}
