//! `haft config`.

use crate::app::{Failure, Ground};
use crate::cli::{Common, ConfigArgs, ConfigView};
use crate::config;
use crate::style::{self, FAINT, paint};
use haft_core::{CallError, path_text};
use serde_json::json;
use std::path::Path;

/// Shows the configuration, its schema, or its files.
pub(super) fn run(common: &Common, args: &ConfigArgs) -> Result<u8, Failure> {
    match args.view {
        ConfigView::Schema if args.tool => style::pretty(haft_core::manifest::shape::schema()),
        _ if args.tool => {
            let error = CallError::invalid("--tool says whose schema is meant, and none was asked for");
            return Err(error.hint("`haft config schema --tool` prints the schema of a tool's file").into());
        }
        ConfigView::Schema => style::pretty(&config::schema()),
        ConfigView::Path => paths(common)?,
        ConfigView::Show => show(common)?,
    }
    Ok(0)
}

fn show(common: &Common) -> Result<(), Failure> {
    let ground = Ground::find(common)?;
    let loaded = ground.resolve(&ground.store()?)?;
    loaded.warnings.iter().for_each(|warning| style::warn(warning));
    if common.json() {
        style::pretty(&config::show(&loaded));
    } else {
        style::out(&style::inert(&config::show_text(&loaded)));
    }
    Ok(())
}

fn paths(common: &Common) -> Result<(), Failure> {
    let ground = Ground::find(common)?;
    let store = haft_store::shown(&ground.layers.store()?);
    let (user, project) = (ground.paths.user_config(), ground.paths.project_config());
    if common.json() {
        let shown = |path: &Path| path_text::show(path.as_os_str());
        style::json(&json!({
            "user": shown(&user), "project": shown(&project), "store": shown(&store), "data": shown(ground.paths.data_dir()),
            "root": shown(ground.paths.root()),
        }));
        return Ok(());
    }
    let missing = |path: &std::path::Path| {
        // Whether a server is there is the doctor's business.
        if path.is_relative() || path.exists() { "" } else { " (not there)" }
    };
    for (name, path) in [("user", &user), ("project", &project), ("store", &store)] {
        style::out(&format!("{name:<8} {}{}", style::inert(&path.display().to_string()), paint(FAINT, missing(path))));
    }
    Ok(())
}
