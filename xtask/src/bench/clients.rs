//! What haft costs beside a coding agent: the time of a hook, and the context that tool schemas take.

use super::haft::Haft;
use super::hooks;
use super::report::table;
use crate::{build, real, sh};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

const PROSE: &str = "\
`haft hook` is a process for each event, from the start of the shell by which agents start hooks to its end.

";

const CONTEXT: &str = "
Tokens (`o200k_base`) of all tool schemas in the first request of each real client: without haft, with `haft mcp install`,
and with `haft mcp install --replace`, which must cost no more than without haft. Codex is asked as `gpt-5.5`.

| client | without haft | with haft | `--replace` | target | met |
|---|--:|--:|--:|--:|---|
";

pub(super) fn body(haft: &Haft) -> Result<String> {
    let hooks = table(&hooks::rows(haft)?);
    Ok(format!("{PROSE}{hooks}{CONTEXT}{}", context_cost()?))
}

/// One line a client, as the tests with the real clients measure it.
fn context_cost() -> Result<String> {
    let dir = sh::root().join("target/context-cost");
    let _ = fs::remove_dir_all(&dir);
    let real = real::meet();
    sh::run(
        sh::cargo(&["test"])
            .args(build::ALL_BUT_FUZZ)
            .args(["--test", "agent_clients", "--", "replaced_tools_cost", "--test-threads=1"])
            .envs(real.exports.iter().cloned())
            .env("HAFT_CONTEXT_COST", &dir),
    )?;
    let mut lines = String::new();
    for client in ["claude_code", "codex", "gemini_cli", "opencode", "goose"] {
        let text = fs::read_to_string(dir.join(client)).with_context(|| format!("{client} was not measured"))?;
        let row: Value = serde_json::from_str(&text)?;
        let (native, beside, replaced) = (&row["native"], &row["beside"], &row["replaced"]);
        let met = if replaced.as_u64() <= native.as_u64() { "met" } else { "NOT MET" };
        let _ = writeln!(lines, "| {client} | {native} | {beside} | {replaced} | ≤ {native} | {met} |");
    }
    Ok(lines)
}
