//! haft: the handle by which agents hold the world. This crate joins the parts: configuration, commands
//! and what an embedding program needs.

pub mod config;
