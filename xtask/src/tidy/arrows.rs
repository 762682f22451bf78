//! Which crate may know which. An arrow drawn backwards compiles quite well, and is why it is checked.

use super::{Finding, Tree};

/// Each crate, and the crates of this project that it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("haft-core", &[]),
    ("haft-escapes", &[]),
    ("haft-html", &[]),
    ("haft-stub", &[]),
    ("haft-sandbox", &["haft-core"]),
    ("haft-store", &["haft-core"]),
    ("haft-runtime", &["haft-core", "haft-html", "haft-sandbox", "haft-store", "haft-stub"]),
    ("haft-mcp", &["haft-core", "haft-sandbox", "haft-store", "haft-runtime"]),
    ("haft-gateway", &["haft-core", "haft-sandbox", "haft-store", "haft-runtime", "haft-mcp", "haft-stub"]),
    (
        "haft",
        &[
            "haft-core",
            "haft-escapes",
            "haft-sandbox",
            "haft-store",
            "haft-runtime",
            "haft-mcp",
            "haft-gateway",
            "haft-stub",
        ],
    ),
];

/// The crates with a lint table of their own, because they may use unsafe code: the sandbox, and the suite
/// that attacks it.
const OWN_LINTS: &[&str] = &["haft-sandbox", "haft-escapes"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files.iter().filter(|(path, _)| path.starts_with("crates") && path.ends_with("Cargo.toml"));
    manifests
        .flat_map(|(path, text)| manifest(text).into_iter().map(move |(line, said)| Finding::new(path, line, said)))
        .collect()
}

fn manifest(text: &str) -> Vec<(usize, String)> {
    let name = text.lines().find_map(|line| line.strip_prefix("name = ")).unwrap_or_default().trim_matches('"');
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        return vec![(1, format!("`{name}` has no row in the table of arrows"))];
    };
    let mut said: Vec<(usize, String)> = dependencies(text)
        .filter(|(_, other)| !allowed.contains(other))
        .map(|(line, other)| (line, format!("`{name}` may not depend on `{other}`")))
        .collect();
    let shared = text.split("[lints]").nth(1).is_some_and(|lints| lints.trim_start().starts_with("workspace = true"));
    if !shared && !OWN_LINTS.contains(&name) {
        said.push((1, "the lints are not the workspace's".to_owned()));
    }
    said
}

/// The lines that name crates of this project, in whatever table of dependencies.
fn dependencies(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        // `[dependencies.NAME]` names one in its heading.
        let heading = line.strip_prefix('[').map(|heading| heading.trim_end_matches(']'));
        let named = match heading {
            Some(heading) => {
                inside = heading.ends_with("dependencies");
                heading.rsplit_once("dependencies.").map(|(_, name)| name)
            }
            None => inside.then(|| line.split(['.', '=', ' ']).next().unwrap_or_default()),
        };
        named.filter(|name| *name == "haft" || name.starts_with("haft-")).map(|name| (index + 1, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, rest: &str) -> Vec<(usize, String)> {
        manifest(&format!("[package]\nname = \"{name}\"\n{rest}\n[lints]\nworkspace = true\n"))
    }

    #[test]
    fn an_arrow_backwards_is_found_in_every_table() {
        let found = |line| vec![(line, "`haft-store` may not depend on `haft-runtime`".to_owned())];
        assert_eq!(said("haft-store", "[dependencies]\nhaft-runtime.workspace = true"), found(4));
        assert_eq!(said("haft-store", "[dev-dependencies]\nhaft-runtime = { path = \"x\" }"), found(4));
        assert_eq!(said("haft-store", "[target.'cfg(unix)'.dependencies]\nhaft-runtime = \"1\""), found(4));
        assert_eq!(said("haft-store", "[dependencies.haft-runtime]\npath = \"x\""), found(3));
        assert!(said("haft-store", "[dependencies]\nhaft-core.workspace = true").is_empty());
    }

    #[test]
    fn a_crate_nobody_placed_and_lints_of_its_own_are_found() {
        assert_eq!(said("haft-extra", "")[0].1, "`haft-extra` has no row in the table of arrows");
        let own = "[package]\nname = \"haft-core\"\n[lints.rust]\nunsafe_code = \"allow\"\n";
        assert_eq!(manifest(own), [(1, "the lints are not the workspace's".to_owned())]);
    }
}
