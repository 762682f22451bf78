//! The most that a tool made by an agent may touch: `security.max_permissions`. What asks for more is refused, and told
//! all of it; nothing is ever clipped to fit.

use super::{Fs, Permissions, Reachable};
use crate::host::HostRule;

/// The most that may be asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ceiling {
    /// Whom a tool may reach at most.
    pub network: Reachable,
    /// Which files it may use at most.
    pub fs: Fs,
    /// Which secrets it may have, by name.
    pub secrets: Vec<String>,
}

/// What permissions ask for beyond a ceiling, a sentence each. None is: they fit.
pub fn exceeds(permissions: &Permissions, ceiling: &Ceiling) -> Vec<String> {
    let mut excess = beyond_reach(&permissions.network, &ceiling.network);
    let Fs { read, write } = &permissions.fs;
    // Whoever may write a place may read it.
    let readable: Vec<&String> = ceiling.fs.read.iter().chain(&ceiling.fs.write).collect();
    let writable: Vec<&String> = ceiling.fs.write.iter().collect();
    for (verb, asked, most) in [("read", read, readable), ("write", write, writable)] {
        let admits = |most: &str, path: &str| is_within(path, most) && (verb == "read" || names_the_same(path, most));
        let beyond = asked.iter().filter(|path| !most.iter().any(|most| admits(most, path)));
        excess.extend(beyond.map(|path| {
            let allowed = listed(&most);
            format!("it would {verb} `{}`; a tool may {verb} {allowed} at most", crate::preview::inert(path))
        }));
    }
    let secrets: Vec<&String> = ceiling.secrets.iter().collect();
    let strange = permissions.secrets.keys().filter(|name| !secrets.contains(name));
    excess.extend(strange.map(|name| {
        let allowed = listed(&secrets);
        format!("it would get the secret `{}`; a tool may get {allowed} at most", crate::preview::inert(name))
    }));
    excess
}

/// Directories that say what runs here, and keep what was. A ceiling around them does not mean them: it has to name
/// them.
const KEPT: &[&str] = &[".haft", ".glee", ".git"];

/// Whether of these places a path leads into none that the ceiling does not name.
fn names_the_same(path: &str, most: &str) -> bool {
    let kept = |path: &str| {
        let parts = path.split('/').map(str::to_ascii_lowercase);
        parts.filter(|part| KEPT.contains(&part.as_str())).collect::<Vec<_>>()
    };
    kept(path).iter().all(|part| kept(most).contains(part))
}

fn beyond_reach(asked: &Reachable, most: &Reachable) -> Vec<String> {
    match (asked, most) {
        (asked, _) if !asked.is_any() => Vec::new(),
        (_, Reachable::Any(true)) => public_only(asked),
        (_, Reachable::Any(false)) => vec!["it would reach the network; a tool may reach nobody".to_owned()],
        (Reachable::Any(_), Reachable::Hosts(most)) => {
            vec![format!("it would reach the whole web; a tool may reach {} at most", hosts(most))]
        }
        (Reachable::Hosts(asked), Reachable::Hosts(most)) => {
            let beyond = asked.iter().filter(|host| !most.iter().any(|most| host.is_below(most)));
            beyond.map(|host| format!("it would reach `{host}`; a tool may reach {} at most", hosts(most))).collect()
        }
    }
}

/// `true` is the public web: a private host has to be named.
fn public_only(asked: &Reachable) -> Vec<String> {
    let Reachable::Hosts(asked) = asked else { return Vec::new() };
    let private = asked.iter().filter(|rule| rule.is_private());
    private.map(|host| format!("it would reach `{host}`, which is private; a tool may reach the public web")).collect()
}

fn hosts(most: &[HostRule]) -> String {
    if most.is_empty() {
        return "nobody".to_owned();
    }
    most.iter().map(|host| format!("`{host}`")).collect::<Vec<_>>().join(", ")
}

fn listed(names: &[&String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names.iter().map(|name| format!("`{}`", crate::preview::inert(name))).collect::<Vec<_>>().join(", ")
}

/// Whether a path lies within another, by its words alone. `.` is the project; what leads out of the project, or from a
/// home directory, lies within nothing but itself spelled from the root.
pub fn is_within(path: &str, around: &str) -> bool {
    let (Some(path), Some(around)) = (Plain::of(path), Plain::of(around)) else { return false };
    path.absolute == around.absolute && path.parts.starts_with(&around.parts)
}

/// A path without `.` and `..`.
struct Plain<'p> {
    absolute: bool,
    parts: Vec<&'p str>,
}

impl<'p> Plain<'p> {
    /// None for a path whose end cannot be told from its words.
    fn of(path: &'p str) -> Option<Self> {
        if path.is_empty() || path.starts_with('~') || path.contains(['\0', '$']) {
            return None;
        }
        let mut parts = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                // From the root there is no way up; from the project it leads out.
                ".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        Some(Self { absolute: path.starts_with('/'), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Secret;
    use super::*;
    use std::collections::BTreeMap;

    fn fs(read: &[&str], write: &[&str]) -> Fs {
        let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        Fs { read: owned(read), write: owned(write) }
    }

    fn reach(hosts: &[&str]) -> Reachable {
        Reachable::Hosts(hosts.iter().map(|host| host.parse().unwrap()).collect())
    }

    #[test]
    fn a_path_lies_within_by_whole_names() {
        for (path, around) in
            [("src", "."), ("./src/../lib/", "lib"), (".", "./"), (".haft/x", ".haft/"), ("/a/b", "/a"), ("/x", "/")]
        {
            assert!(is_within(path, around), "{path} in {around}");
        }
        for (path, around) in [
            ("../x", "."),
            ("src/../../x", "."),
            ("/etc", "."),
            (".haftx", ".haft"),
            (".", "src"),
            ("~", "."),
            ("", "."),
            ("/a/../..", "/a"),
            ("/ab", "/a"),
            ("$HOME", "."),
            ("a", "/"),
            ("src", "../x"),
        ] {
            assert!(!is_within(path, around), "{path} in {around}");
        }
    }

    #[test]
    fn every_excess_is_told_and_nothing_else() {
        let secret = Secret { kind: "string".to_owned(), required: true, description: None };
        let asked = Permissions {
            network: Reachable::Any(true),
            fs: fs(&["src", "/etc", ".haft/notes"], &["src", ".haft/notes"]),
            secrets: BTreeMap::from([("A".to_owned(), secret.clone()), ("B".to_owned(), secret)]),
        };
        let most =
            Ceiling { network: reach(&["a.test"]), fs: fs(&["src"], &[".haft/"]), secrets: vec!["A".to_owned()] };
        assert_eq!(
            exceeds(&asked, &most),
            [
                "it would reach the whole web; a tool may reach `a.test` at most",
                "it would read `/etc`; a tool may read `src`, `.haft/` at most",
                "it would write `src`; a tool may write `.haft/` at most",
                "it would get the secret `B`; a tool may get `A` at most",
            ]
        );
        assert!(exceeds(&Permissions::default(), &Ceiling::default()).is_empty());
        let open =
            Ceiling { network: Reachable::Any(true), fs: fs(&["."], &["."]), secrets: vec!["A".into(), "B".into()] };
        let kept = "it would write `.haft/notes`; a tool may write `.` at most";
        assert_eq!(exceeds(&asked, &open), ["it would read `/etc`; a tool may read `.`, `.` at most", kept]);
    }

    #[test]
    fn what_says_what_runs_is_written_only_if_it_is_named() {
        let beyond = |asked: &str, most: &[&str]| {
            let asked = Permissions { fs: fs(&[], &[asked]), ..Permissions::default() };
            !exceeds(&asked, &Ceiling { fs: fs(&[], most), ..Ceiling::default() }).is_empty()
        };
        for path in [".haft", ".haft/tools/x", "./.git/hooks", "sub/.git", ".glee/", ".HAFT", "src/../.git"] {
            assert!(beyond(path, &[".", "sub", "src"]), "{path}");
        }
        assert!(!beyond(".haft/notes", &[".", ".haft/notes"]) && !beyond("src", &["."]) && !beyond(".", &["."]));
        assert!(!beyond(".github/x", &["."]));
    }

    #[test]
    fn hosts_are_compared_as_sets() {
        let beyond = |asked: &[&str], most: Reachable| beyond_reach(&reach(asked), &most).len();
        assert_eq!(beyond(&["a.test", "b.a.test:443", "*.a.test", "*.b.a.test"], reach(&["a.test", "*.a.test"])), 0);
        assert_eq!(beyond(&["a.test"], reach(&["*.a.test"])), 1);
        assert_eq!(beyond(&["*.a.test"], reach(&["a.test", "*.xa.test", "*.b.a.test"])), 1);
        assert_eq!(beyond(&["a.test", "a.test:80"], reach(&["a.test:443"])), 2);
        assert_eq!(beyond(&["a.test"], Reachable::Any(false)), 1);
        assert_eq!(beyond(&["a.test", "localhost:5432", "10.0.0.1"], Reachable::Any(true)), 2);
        assert_eq!(beyond(&[], Reachable::Any(false)), 0);
        let inside = ["db.corp:5432", "wiki.intranet:80", "x.home:80", "localhost.localdomain:80", "*.a.internal"];
        assert_eq!(beyond(&inside, Reachable::Any(true)), inside.len(), "a private name has to be named");
    }
}
