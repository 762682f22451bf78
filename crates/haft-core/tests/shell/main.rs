//! What shell commands are judged to be: a corpus of tricks and their harmless twins, laws that hold for every
//! command, and inputs made to be expensive.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]

mod corpus;
mod hostile;
mod laws;
mod masking;
mod sample;
