//! The kernel as a warden: what a program may touch, and what of its changes is kept.
//!
//! This is the only crate with unsafe code.

pub mod layer;
