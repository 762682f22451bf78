//! A tool's permissions in words, for whoever decides about it.

use haft_core::manifest::{Exec, Manifest, Reachable};
use haft_core::preview::{cut, inert};

/// What is read before anything else: what it may touch and what it does, and what that was before.
pub(super) fn foreword(manifest: &Manifest, before: Option<&Manifest>) -> String {
    let head = format!("{} {} ({})", inert(&manifest.name), manifest.version, manifest.kind.word());
    let description = cut(&inert(manifest.description.trim()), 200);
    let old = before.map(lines).unwrap_or_default();
    let shown = |(at, line): (usize, &String)| match old.get(at).filter(|old| *old != line) {
        Some(old) => format!("\n  {old} → {line}"),
        None => format!("\n  {line}"),
    };
    let lines: String = lines(manifest).iter().enumerate().map(shown).collect();
    format!("{head}: {description}\nThis tool{lines}")
}

/// The same lines for every manifest, in the same order.
fn lines(manifest: &Manifest) -> Vec<String> {
    let permissions = &manifest.permissions;
    let network = match &permissions.network {
        Reachable::Any(true) => "reaches every public host".to_owned(),
        Reachable::Hosts(hosts) if !hosts.is_empty() => {
            format!("reaches {}", hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        Reachable::Any(false) | Reachable::Hosts(_) => "reaches nobody".to_owned(),
    };
    let paths = |verb: &str, paths: &[String]| match paths {
        [] => format!("{verb} no files of the project"),
        paths => format!("{verb} {}", paths.iter().map(|path| inert(path)).collect::<Vec<_>>().join(", ")),
    };
    let secrets = if permissions.secrets.is_empty() {
        "gets no secrets".to_owned()
    } else {
        let names: Vec<String> = permissions.secrets.keys().map(|name| inert(name)).collect();
        format!("gets the secrets {}", names.join(", "))
    };
    let (read, write) = (paths("reads", &permissions.fs.read), paths("writes", &permissions.fs.write));
    let reason = cut(&inert(manifest.approval.reason.as_deref().unwrap_or_default()), 200);
    vec![network, read, write, secrets, does(manifest), format!("is asked about before each call: {reason}")]
}

fn does(manifest: &Manifest) -> String {
    let what = match &manifest.exec {
        Exec::Http(http) => format!("sends {} {}", http.method, http.url),
        Exec::Command(command) => {
            let args: Vec<String> = command.args.iter().map(haft_core::manifest::template::rendered).collect();
            format!("runs {} {}", command.entrypoint, args.join(" "))
        }
        Exec::Python(python) => format!("runs {}:{}", python.module, python.function),
        Exec::Mcp(mcp) => format!("calls {} of the server {}", mcp.tool, mcp.server),
        Exec::Pipeline(pipeline) => {
            let steps: Vec<&str> = pipeline.steps.iter().map(|step| step.tool.as_str()).collect();
            format!("calls {}", steps.join(", then "))
        }
    };
    cut(inert(&what).trim_end(), 200)
}
