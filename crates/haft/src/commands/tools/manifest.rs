//! A manifest in a few lines: first what it may touch, then what it does.

use haft_core::manifest::template::rendered;
use haft_core::manifest::{Exec, Manifest, Reachable};
use haft_core::preview::{cut, inert};

/// How long a line about what a tool does may be.
const LINE_MAX: usize = 160;

/// What a manifest says, permissions first, a line each.
pub(in crate::commands) fn summary(manifest: &Manifest) -> Vec<String> {
    let permissions = &manifest.permissions;
    let list = |items: &[String]| if items.is_empty() { "nothing".to_owned() } else { items.join(", ") };
    let secrets: Vec<String> = permissions
        .secrets
        .iter()
        .map(|(name, secret)| if secret.required { name.clone() } else { format!("{name} (if there)") })
        .collect();
    let asks = match (&manifest.approval.required, &manifest.approval.reason) {
        (true, Some(reason)) => format!("before each call: {reason}"),
        (true, None) => "before each call".to_owned(),
        (false, _) => "not by itself".to_owned(),
    };
    let rows = [
        ("network", network(&permissions.network)),
        ("reads", list(&permissions.fs.read)),
        ("writes", list(&permissions.fs.write)),
        ("secrets", if secrets.is_empty() { "none".to_owned() } else { secrets.join(", ") }),
        ("asks", asks),
        ("does", does(manifest)),
        ("is", format!("{}, version {}: {}", manifest.kind.word(), manifest.version, manifest.description.trim())),
    ];
    // What it may touch is never cut: that is what is asked about.
    let whole = |what: &str| ["network", "reads", "writes", "secrets"].contains(&what);
    let shown = |what: &str, text: &str| if whole(what) { inert(text) } else { cut(&inert(text), LINE_MAX) };
    rows.iter().map(|(what, text)| format!("{what:<10}{}", shown(what, text))).collect()
}

fn network(network: &Reachable) -> String {
    match network {
        Reachable::Any(false) => "none".to_owned(),
        Reachable::Any(true) => "every public host".to_owned(),
        Reachable::Hosts(hosts) if hosts.is_empty() => "none".to_owned(),
        Reachable::Hosts(hosts) => hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn does(manifest: &Manifest) -> String {
    match &manifest.exec {
        Exec::Http(http) => format!("{} {}", http.method, http.url),
        Exec::Command(command) => {
            let words = command.args.iter().map(rendered);
            std::iter::once(command.entrypoint.clone()).chain(words).collect::<Vec<_>>().join(" ")
        }
        Exec::Python(python) => {
            let venv = python.venv.as_ref().map(|venv| format!(" by {venv}")).unwrap_or_default();
            format!("{}:{}{venv}", python.module, python.function)
        }
        Exec::Mcp(mcp) => format!("calls {} of the server {}", mcp.tool, mcp.server),
        Exec::Pipeline(pipeline) => {
            let steps: Vec<&str> = pipeline.steps.iter().map(|step| step.tool.as_str()).collect();
            format!("calls {}", steps.join(", then "))
        }
    }
}
