//! The project on which the corpus is judged. The judge looks at nothing, so there is nothing on disk: this
//! only knows which paths there are and where links lead, as the runtime would find out. That the product says
//! the same of a real project is tested with the command line.

use globset::GlobBuilder;
use haft_core::place::sensitive;
use haft_core::shell::{Ground, Judged, Table, Target, judge};
use std::path::Path;

pub(crate) const ROOT: &str = "/srv/work/project";
const HOME: &str = "/home/user";

/// What is in it, for patterns to find.
const FILES: &[&str] = &[
    "README.md",
    "a.txt",
    "b.txt",
    "data.json",
    "src",
    "src/main.rs",
    "src/lib.rs",
    "src/util",
    "src/util/x.py",
    "docs",
    "docs/guide.md",
    "notes",
    "notes/todo.md",
    "build",
    "build/out.o",
    "sub",
    ".env",
    ".git",
    ".git/config",
    "link-in",
    "link-in/main.rs",
    "link-out",
    "link-out/passwd",
];
/// Where links lead.
const LINKS: &[(&str, &str)] =
    &[("/srv/work/project/link-out", "/etc"), ("/srv/work/project/link-in", "/srv/work/project/src")];

/// What would happen to a command, from what matters least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Allow,
    Ask,
    Deny,
}

/// The judgement of a command in the project.
pub(crate) fn judged(command: &str) -> Judged {
    judge(command, &Ground { cwd: ROOT, home: Some(HOME), table: Table::shipped() })
}

/// What the default policy makes of a judgement.
pub(crate) fn verdict(judged: &Judged) -> Verdict {
    if judged.catastrophe.is_some() {
        Verdict::Deny
    } else if judged.only_reads()
        && judged.reads.iter().all(harmless)
        && judged.repositories.iter().all(|at| inside(at))
    {
        Verdict::Allow
    } else {
        Verdict::Ask
    }
}

/// The same, of a command.
pub(crate) fn verdict_of(command: &str) -> Verdict {
    verdict(&judged(command))
}

/// Whether everything that a target may be is in the project and no secret.
fn harmless(target: &Target) -> bool {
    match target {
        Target::Path(path) => inside(path) && !is_secret(path),
        Target::Glob(pattern) => matches(pattern).iter().all(|path| inside(path) && !is_secret(path)),
    }
}

fn is_secret(path: &str) -> bool {
    sensitive(Path::new(path)).is_some() || sensitive(Path::new(&real(path))).is_some()
}

fn inside(path: &str) -> bool {
    Path::new(&real(path)).starts_with(ROOT)
}

/// What a pattern finds, and where it looks: a directory outside counts although nothing in it is known.
fn matches(pattern: &str) -> Vec<String> {
    let absolute = absolute(pattern);
    let fixed = absolute.find(['*', '?', '[', '\\', '{']).unwrap_or(absolute.len());
    let directory = absolute[..fixed].rsplit_once('/').map_or("/", |(directory, _)| directory);
    let mut found = vec![format!("{directory}/.")];
    let Ok(glob) = GlobBuilder::new(&absolute).literal_separator(true).build() else { return found };
    let glob = glob.compile_matcher();
    let hidden = |path: &str| {
        // A pattern finds a hidden name only where it says the dot itself.
        path.split('/').zip(absolute.split('/')).any(|(name, part)| name.starts_with('.') && !part.starts_with('.'))
    };
    let all = FILES.iter().map(|file| format!("{ROOT}/{file}"));
    found.extend(all.filter(|path| glob.is_match(path) && !hidden(path)));
    found
}

fn absolute(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{ROOT}/{path}") }
}

/// A path with links followed, name by name, so that `..` after a link leaves the place it leads to.
pub(crate) fn real(path: &str) -> String {
    let mut at = String::new();
    for name in absolute(path).split('/') {
        match name {
            "" | "." => {}
            ".." => at.truncate(at.rfind('/').unwrap_or_default()),
            name => {
                at = format!("{at}/{name}");
                if let Some((_, to)) = LINKS.iter().find(|(link, _)| *link == at) {
                    (*to).clone_into(&mut at);
                }
            }
        }
    }
    if at.is_empty() { "/".to_owned() } else { at }
}

/// The shortest honest way to write a target: relative inside the project.
pub(crate) fn shown(target: &Target) -> String {
    let real = real(target.text());
    match Path::new(&real).strip_prefix(ROOT) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_) => real,
    }
}

#[test]
fn links_and_patterns_lead_where_they_would() {
    assert_eq!(real("link-out/../shadow"), "/shadow");
    assert_eq!(real("link-in/../a.txt"), "/srv/work/project/a.txt");
    assert_eq!(real("../../../../.."), "/");
    let harmless = |pattern: &str| harmless(&Target::Glob(pattern.to_owned()));
    assert!(harmless("*.txt") && harmless("src/*") && harmless("[ab].txt"));
    assert!(!harmless(".e*") && !harmless("../*") && !harmless("*/passwd") && !harmless("/etc/*"));
}
