//! Work that lasts, as far as it can be decided without doing anything: which steps there are, and which come next.

pub mod graph;
pub mod run;

pub use graph::{Graph, Node, OnFailure, Wrong};
