//! The tools that haft ships. One file each; a tool is a declaration and a function.

mod agent;
pub mod api;
mod ask;
pub mod browser;
pub mod calc;
pub mod catalogue;
mod create;
mod delegate;
pub mod file;
pub mod media;
pub mod memory;
pub(crate) mod pipeline;
pub mod process;
pub(crate) mod running;
pub(crate) mod script;
pub mod session;
pub mod shell;
mod skill;
pub mod system;
pub mod task;
pub mod web;

use crate::tool::Tool;
use haft_core::ToolSpec;
use std::sync::{Arc, LazyLock};

static ALL: LazyLock<Vec<Arc<dyn Tool>>> = LazyLock::new(|| {
    let mut tools = file::all();
    tools.extend(process::all());
    tools.push(ask::tool());
    tools.push(calc::tool());
    tools.push(session::list());
    tools.push(session::delete());
    tools.push(shell::exec());
    tools.push(skill::tool());
    tools.push(system::tool());
    tools.extend(task::all());
    tools.extend(catalogue::all());
    tools.push(script::tool());
    tools.extend(create::all());
    tools.extend(web::all());
    tools.extend(api::all());
    tools.extend(browser::all());
    tools.extend(media::all());
    tools.extend(pipeline::all());
    tools.extend(memory::all());
    tools.extend(agent::all());
    tools.push(delegate::tool());
    tools
});

/// Every shipped tool. They hold no state, so one of each serves the whole process.
pub fn all() -> &'static [Arc<dyn Tool>] {
    &ALL
}

/// The declaration of a shipped tool.
#[expect(clippy::expect_used, reason = "the names are literals, and a test registers every one")]
pub(crate) fn declare(name: &str, description: &str) -> ToolSpec {
    ToolSpec::new(name, description).expect("a shipped tool's name is well formed")
}
