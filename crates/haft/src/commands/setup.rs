//! `haft init`.

use crate::app::Failure;
use crate::cli::Common;
use crate::config;
use crate::style::{self, GOOD, paint};
use haft_core::CallError;
use serde_json::json;
use std::io::Write;

/// Makes a `.haft` directory with a commented configuration in the working directory (or `--root`).
pub(super) fn init(common: &Common) -> Result<u8, Failure> {
    let root = match common.root_dir() {
        Some(root) => root,
        None => {
            std::env::current_dir().map_err(|error| CallError::invalid(format!("no working directory: {error}")))?
        }
    };
    let file = root.join(".haft/config.yml");
    let fail = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => CallError::conflict(format!("{} is there already", file.display())),
        _ => CallError::failed(format!("{}: {error}", file.display())),
    };
    std::fs::create_dir_all(root.join(".haft")).map_err(fail)?;
    let mut created = std::fs::File::create_new(&file).map_err(fail)?;
    created.write_all(config::example().as_bytes()).map_err(fail)?;
    if common.json() {
        style::json(&json!({ "created": file }));
    } else {
        style::out(&format!("{} {}", paint(GOOD, "made"), style::inert(&file.display().to_string())));
        style::note("it is all comments: change what you like, then run `haft trust`");
    }
    Ok(0)
}
