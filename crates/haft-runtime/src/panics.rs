//! Panics: what a tool, an approver or a stage of a call does wrong is an outcome of that call, and unwinds no further.

use crate::scene::Scene;
use crate::tool::{Reply, Tool};
use futures_util::FutureExt as _;
use haft_core::CallError;
use haft_core::preview::{cut, inert};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How much of what a panic says is passed on.
const MESSAGE_MAX: usize = 300;

/// Lets a tool act. A panic while its work is made, or at any point where it goes on, is its error.
pub(crate) async fn act(tool: &dyn Tool, scene: &Scene) -> Result<Reply, CallError> {
    let made = catch_unwind(AssertUnwindSafe(|| tool.act(scene)));
    let work = made.map_err(|panic| error_of("the tool", &*panic))?;
    caught("the tool", work).await?
}

/// What some work comes to, or that it panicked. Nothing that it leaves half-done is looked at again.
///
/// Not an `async fn`: that would keep the work twice, and the path of a call is one future.
pub(crate) fn caught<T>(
    whose: &'static str,
    work: impl Future<Output = T>,
) -> impl Future<Output = Result<T, CallError>> {
    AssertUnwindSafe(work).catch_unwind().map(move |done| done.map_err(|panic| error_of(whose, &*panic)))
}

/// A panic as the caller hears of it.
fn error_of(whose: &str, panic: &(dyn Any + Send)) -> CallError {
    let said = match message(panic) {
        said if said.is_empty() => said,
        said => format!(": {said}"),
    };
    CallError::internal(format!("{whose} panicked{said}"))
        .hint("this is a bug of the program that panicked; its standard error says where. Look at what the call did before you repeat it")
}

/// What a panic says, if it says anything.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    said.map(|said| cut(&inert(said), MESSAGE_MAX)).unwrap_or_default()
}
