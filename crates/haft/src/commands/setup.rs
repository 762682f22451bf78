//! `haft init` and `haft trust`.

use crate::app::{Failure, Ground};
use crate::cli::{Common, TrustArgs};
use crate::config::{self, Trust};
use crate::style::{self, CARE, GOOD, paint};
use haft_core::CallError;
use serde_json::json;
use std::io::{BufRead, IsTerminal, Write};

/// Makes a `.haft` directory with a commented configuration in the working directory (or `--root`).
pub(super) fn init(common: &Common) -> Result<u8, Failure> {
    let root = match &common.root {
        Some(root) => root.clone(),
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

/// Accepts the project's configuration as it stands.
pub(super) fn trust(common: &Common, args: &TrustArgs) -> Result<u8, Failure> {
    let ground = Ground::find(common)?;
    let store = ground.store()?;
    let file = ground.paths.project_config();
    let digest = ground.layers.project_digest();
    let Some(digest) = digest.filter(|_| !args.revoke) else {
        if args.revoke {
            return decide(common, &store, &ground, None, "withdrawn");
        }
        return Err(CallError::not_found(format!("{} is not there, so there is nothing to trust", file.display()))
            .hint("`haft init` makes one")
            .into());
    };
    let before = ground.layers.trust_in(&store)?;
    // What cannot be understood cannot be trusted.
    ground.resolve(&store)?;
    if before == Trust::Trusted {
        return decide(common, &store, &ground, Some(digest), "trusted already");
    }
    if !args.yes && !confirmed(ground.layers.project_text().unwrap_or_default(), before) {
        return Err(CallError::new(haft_core::ErrorKind::Rejected, "not trusted").into());
    }
    decide(common, &store, &ground, Some(digest), "trusted")
}

fn decide(
    common: &Common,
    store: &haft_store::Store,
    ground: &Ground,
    digest: Option<haft_core::record::Digest>,
    said: &str,
) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| CallError::internal(format!("the async runtime cannot start: {error}")))?;
    runtime.block_on(store.trust(ground.paths.root(), digest))?;
    let file = ground.paths.project_config();
    if common.json() {
        style::json(&json!({"file": file, "state": said, "content": digest}));
    } else {
        style::out(&format!("{said}: {}", style::inert(&file.display().to_string())));
    }
    Ok(0)
}

/// Shows the file and asks.
fn confirmed(text: &str, before: Trust) -> bool {
    for line in text.lines() {
        style::note(&haft_core::preview::inert(line));
    }
    if before == Trust::Changed {
        style::note(&paint(CARE, "you trusted an earlier version of this file; it has changed since"));
    }
    // Without a terminal the command itself is the answer: whoever runs it could as well add --yes.
    if !std::io::stdin().is_terminal() {
        return true;
    }
    let mut stderr = anstream::stderr().lock();
    let _ = write!(stderr, "let this file decide what runs here without asking? [y/N] ");
    let _ = stderr.flush();
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    matches!(answer.trim(), "y" | "Y" | "yes")
}
