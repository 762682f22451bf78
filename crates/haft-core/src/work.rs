//! Work that lasts, as far as it can be decided without doing anything: which steps there are, and which come next.

pub mod command;
pub mod file;
pub mod graph;
pub mod plan;
pub mod run;
pub mod when;
pub mod words;

pub use graph::{Graph, Node, OnFailure, Wrong};
pub use plan::{Budget, Does, Fault, Plan, Step};
