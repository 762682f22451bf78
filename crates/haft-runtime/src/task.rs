//! What goes on after the call that started it. A directory in the data directory is the truth about each
//! task (`dir`); a keeper, which is a thread or a process of its own, runs it to its end, applies what it
//! changed, and records how it ended (`keeper`); the desk is where tasks are started and found.

mod desk;
mod dir;
mod keeper;
mod leash;
mod order;

pub use keeper::keep;
pub use order::Keeper;

pub(crate) use desk::{Desk, Held, News};
pub(crate) use dir::{State, Task, TaskDir, TaskId, Wish};
pub(crate) use order::Errand;
