//! `haft doctor`: what works here, what does not, and how to mend it.

use crate::app::Ground;
use crate::cli::Common;
use crate::style::{self, BAD, CARE, FAINT, GOOD, paint};
use haft_store::Store;
use serde::Serialize;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Good,
    Care,
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    health: Health,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

fn good(name: &'static str, found: impl Into<String>) -> Finding {
    Finding { name, health: Health::Good, found: found.into(), fix: None }
}

fn finding(name: &'static str, health: Health, found: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { name, health, found: found.into(), fix: Some(fix.into()) }
}

/// Looks at everything. Exits with 1 if something is broken.
pub(super) fn run(common: &Common) -> u8 {
    let mut findings = vec![good("haft", env!("CARGO_PKG_VERSION"))];
    match Ground::find_to_look_back(common) {
        Ok(ground) => findings.extend(look(&ground)),
        Err(failure) => {
            failure.print(common.json());
            return failure.exit_code();
        }
    }
    findings.extend(kernel());
    if common.json() {
        style::json(&findings);
    } else {
        findings.iter().for_each(show);
    }
    u8::from(findings.iter().any(|finding| finding.health == Health::Bad))
}

fn show(finding: &Finding) {
    let mark = match finding.health {
        Health::Good => paint(GOOD, "ok  "),
        Health::Care => paint(CARE, "care"),
        Health::Bad => paint(BAD, "bad "),
    };
    style::out(&format!("{mark}  {:<13} {}", finding.name, style::inert(&finding.found)));
    if let Some(fix) = &finding.fix {
        style::out(&format!("      {}", paint(FAINT, fix)));
    }
}

fn look(ground: &Ground) -> Vec<Finding> {
    let mut findings = vec![good("project", ground.workspace.root().display().to_string())];
    let store = match ground.store() {
        Ok(store) => store,
        Err(failure) => {
            findings.push(finding("store", Health::Bad, failure.message(), "`haft log` says what to do"));
            return findings;
        }
    };
    findings.push(chain(&store));
    findings.push(private(store.path()));
    findings.push(configuration(ground, &store));
    findings
}

fn chain(store: &Store) -> Finding {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
        return finding("log", Health::Bad, "the async runtime cannot start", "check the limits of this process");
    };
    match runtime.block_on(store.verify(None)) {
        Ok(Ok(verified)) => good("log", format!("{} records, the chain holds", verified.head.seq)),
        Ok(Err(broken)) => finding(
            "log",
            Health::Bad,
            format!("broken at record {}: {}", broken.seq, broken.why),
            "somebody changed the log; keep the file and look at that record",
        ),
        Err(error) => finding("log", Health::Bad, error.to_string(), error.hint()),
    }
}

fn private(path: &Path) -> Finding {
    let mode = std::fs::metadata(path).map_or(0, |meta| meta.permissions().mode() & 0o777);
    let text = format!("{} (mode {mode:o})", path.display());
    match mode & 0o077 {
        0 => good("store", text),
        _ => finding("store", Health::Care, text, format!("others can read it: chmod 600 {}", path.display())),
    }
}

fn configuration(ground: &Ground, store: &Store) -> Finding {
    match ground.resolve(store) {
        Ok(loaded) if loaded.warnings.is_empty() => good("config", "valid"),
        Ok(loaded) => {
            finding("config", Health::Care, loaded.warnings.join("; "), "`haft config show` shows what is in force")
        }
        Err(failure) => finding("config", Health::Bad, failure.message(), "mend the file it names"),
    }
}

/// What the kernel offers for confinement. Nothing uses it yet: no shipped tool starts a process.
fn kernel() -> Vec<Finding> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let namespaces = read("/proc/sys/user/max_user_namespaces");
    let namespaces =
        if namespaces.trim().parse::<u64>().unwrap_or(0) > 0 { "user namespaces" } else { "no user namespaces" };
    vec![
        good("kernel", format!("{}; {namespaces}", read("/proc/sys/kernel/osrelease").trim())),
        good("confinement", "none in force, and none needed: no tool of this version starts a process"),
    ]
}
