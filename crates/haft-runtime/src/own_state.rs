//! haft's own state: by which names a call reaches the tokens, the store, the vault, the configuration and the log. No tool
//! hands any of it out or changes it, whoever says yes: the floor denies a call that names such a place.
//!
//! Files are found by their resolved path, hard links to them by their inode. What a program does with a name that it
//! makes itself cannot be read from a command: there the sandbox hides the places.

use crate::workspace::Workspace;
use haft_core::place::{Access, Place, Sensitive};
use haft_core::preview::{cut, inert};
use haft_core::shell::Judged;
use serde_json::Value;
use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// What lies in haft's directories for tools to read: outputs of earlier calls, and what the user keeps for agents.
const FOR_TOOLS: &[&str] = &["attachments", "downloads", "outputs", "agents", "skills", "tools", "workflows"];
/// How much of an argument is shown.
const SHOWN_COLUMNS: usize = 80;
/// A name that is longer is no path.
const PATH_MAX: usize = 4096;
/// How deeply a directory is looked through for hard links.
const DEPTH_MAX: usize = 64;
/// What `haft` does that reads or changes its own state, or decides, by its first words.
const OWN_COMMANDS: &[&str] =
    &["approvals", "config", "hook", "log", "mcp", "secret", "serve", "setup", "store", "trust", "tui", "worker"];
/// What of these only shows what is no secret.
const HARMLESS_COMMANDS: &[(&str, &str)] = &[("config", "schema"), ("config", "path"), ("mcp", "list")];
/// Options by which a command of `haft` consents for its user.
const CONSENTING: &[&str] = &["--yes", "-y"];

/// The file behind a name.
pub(crate) type FileIdentity = (u64, u64);

fn identity(meta: &Metadata) -> FileIdentity {
    (meta.dev(), meta.ino())
}

/// Whether a path in a directory of haft's is there for tools.
pub(crate) fn is_for_tools(inside: &Path) -> bool {
    let first = inside.components().next();
    matches!(first, Some(Component::Normal(name)) if FOR_TOOLS.iter().any(|known| name == *known))
}

/// Judges a path below `/proc/PID`: memory, environment and open files of haft are its state, those of others may hold
/// credentials.
pub(crate) fn judge_process(path: &Path) -> Option<Sensitive> {
    let inside = path.strip_prefix("/proc").ok()?;
    let mut parts = inside.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let process = parts.next()?;
    if !matches!(process.as_str(), "self" | "thread-self") && !process.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let exe = |process: &str| std::fs::metadata(format!("/proc/{process}/exe")).ok().map(|meta| identity(&meta));
    let entry = parts.find(|part| part != "task" && !part.bytes().all(|byte| byte.is_ascii_digit()))?;
    let tells = matches!(entry.as_str(), "environ" | "mem" | "auxv" | "maps" | "smaps" | "map_files" | "fd" | "stack");
    let is_own = exe("self").is_some_and(|own| exe(&process) == Some(own));
    match (is_own, tells) {
        (true, true) => Some(Sensitive::OwnState),
        (false, true) => Some(Sensitive::Credentials),
        _ => None,
    }
}

/// The files of haft's that have another name somewhere. Usually there are none.
pub(crate) fn linked_files(own: &[PathBuf]) -> HashSet<FileIdentity> {
    let mut found = HashSet::new();
    let mut look = |path: &Path| {
        if let Ok(meta) = std::fs::symlink_metadata(path)
            && meta.is_file()
            && meta.nlink() > 1
        {
            found.insert(identity(&meta));
        }
    };
    for place in own {
        look(place);
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            look(&entry.path());
        }
    }
    found
}

/// Whether a name leads to one of these files. Links are not followed.
pub(crate) fn is_one_of(linked: &HashSet<FileIdentity>, path: &Path) -> bool {
    !linked.is_empty() && std::fs::symlink_metadata(path).is_ok_and(|meta| linked.contains(&identity(&meta)))
}

/// The other names below these roots of files of haft's.
pub(crate) fn hard_links(own: &[PathBuf], roots: &[PathBuf]) -> Vec<PathBuf> {
    let linked = linked_files(own);
    let mut found = Vec::new();
    if linked.is_empty() {
        return found;
    }
    let mut left: Vec<(PathBuf, usize)> = roots.iter().map(|root| (root.clone(), 0)).collect();
    while let Some((dir, depth)) = left.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < DEPTH_MAX {
                left.push((entry.path(), depth + 1));
            } else if kind.is_file()
                && linked.iter().any(|(_, inode)| *inode == entry.ino())
                && entry.metadata().is_ok_and(|meta| linked.contains(&identity(&meta)))
            {
                found.push(entry.path());
            }
        }
    }
    found
}

impl Workspace {
    /// Whether a file is one of haft's under another name.
    pub(crate) fn is_own_by_link(&self, real: &Path) -> bool {
        let is_linked = std::fs::symlink_metadata(real).is_ok_and(|meta| meta.is_file() && meta.nlink() > 1);
        is_linked && is_one_of(&linked_files(self.own_places()), real)
    }

    /// The places of haft's own state that arguments name, as a path or a `file:` address. Texts that a call writes down
    /// are no names.
    pub(crate) fn own_places_named(&self, args: &Value, bodies: &[&str]) -> Vec<Place> {
        let mut found = Vec::new();
        match args {
            Value::Object(fields) => {
                for (_, value) in fields.iter().filter(|(name, _)| !bodies.contains(&name.as_str())) {
                    self.collect_named(value, &mut found);
                }
            }
            other => self.collect_named(other, &mut found),
        }
        found
    }

    fn collect_named(&self, value: &Value, found: &mut Vec<Place>) {
        match value {
            Value::String(text) => found.extend(self.own_place_at(text)),
            Value::Array(items) => items.iter().for_each(|item| self.collect_named(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| self.collect_named(field, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn own_place_at(&self, text: &str) -> Option<Place> {
        let text = text.trim();
        let path = match text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:")) {
            Some(_) => path_of_address(&text[5..])?,
            None => text.to_owned(),
        };
        let is_path = path.len() <= PATH_MAX && path.contains('/') && !path.contains(['\n', '\0']);
        let place = self.place("arguments", Access::Read, &path).ok().filter(|_| is_path)?;
        (place.sensitive == Some(Sensitive::OwnState)).then_some(place)
    }

    /// The place of haft's own state that a command reaches, by the words in it: a path as it is written, or a command of
    /// haft's own that decides or shows what is nobody else's.
    pub(crate) fn own_place_in_command(&self, text: &str, judged: &Judged) -> Option<Place> {
        let decides = judged.commands.iter().find_map(|command| {
            let program = command.name.as_deref().map(Path::new).and_then(Path::file_name);
            let words: Vec<&str> = command.args.iter().map(haft_core::shell::Word::shown).collect();
            (program? == "haft").then(|| own_command(&words)).flatten()
        });
        if let Some(command) = decides {
            return Some(self.own_place(&format!("`haft {}`", cut(&inert(&command), SHOWN_COLUMNS))));
        }
        let spelled = self.own_spellings().into_iter().find(|spelling| mentions(text, spelling))?;
        Some(self.own_place(&spelled))
    }

    fn own_place(&self, shown: &str) -> Place {
        Place {
            param: crate::judge::PARAM,
            spoken: shown.to_owned(),
            real: self.own_places().first().cloned().unwrap_or_default(),
            shown: shown.to_owned(),
            access: Access::Write,
            inside: false,
            sensitive: Some(Sensitive::OwnState),
        }
    }

    /// How a command may write the places of haft's.
    fn own_spellings(&self) -> Vec<String> {
        let mut all = Vec::new();
        for place in self.own_places() {
            let Some(whole) = place.to_str().filter(|path| path.len() > 1) else { continue };
            all.push(whole.to_owned());
            let at_home = self.home().and_then(|home| place.strip_prefix(home).ok()).and_then(Path::to_str);
            if let Some(rest) = at_home.filter(|rest| !rest.is_empty()) {
                all.extend(["~", "$HOME", "${HOME}"].map(|home| format!("{home}/{rest}")));
            }
        }
        all
    }
}

/// The path of a `file:` address, without its scheme. One that names another machine is none.
fn path_of_address(rest: &str) -> Option<String> {
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let slash = rest.find('/')?;
            let host = &rest[..slash];
            (host.is_empty() || host.eq_ignore_ascii_case("localhost")).then_some(&rest[slash..])?
        }
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        let escaped = rest.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            left = &rest[2..];
        } else {
            bytes.push(*first);
            left = rest;
        }
    }
    String::from_utf8(bytes).ok()
}

/// The words of a command of haft's that is its user's word, or shows what is nobody else's.
fn own_command(words: &[&str]) -> Option<String> {
    let mut plain = words.iter().filter(|word| !word.starts_with('-'));
    let named = words.iter().position(|word| OWN_COMMANDS.contains(word));
    let consents = words.iter().find(|word| CONSENTING.contains(word));
    let (first, second) = match named {
        Some(at) => (words[at], words.get(at + 1).copied().unwrap_or_default()),
        None => (plain.next().copied().unwrap_or_default(), ""),
    };
    if let Some(flag) = consents {
        return Some(format!("{first} {flag}"));
    }
    named.filter(|_| !HARMLESS_COMMANDS.contains(&(first, second)))?;
    Some(first.to_owned())
}

/// Whether a text names a place, and not one beside it or what lies in it for tools.
fn mentions(text: &str, place: &str) -> bool {
    text.match_indices(place).any(|(at, _)| {
        let rest = &text[at + place.len()..];
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
        let inside = rest.strip_prefix('/').unwrap_or_default();
        ends && (!is_for_tools(Path::new(inside)) || inside.contains(".."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Scene {
        dir: tempfile::TempDir,
        workspace: Workspace,
    }

    fn scene() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let (project, data) = (dir.path().join("project"), dir.path().join("data"));
        std::fs::create_dir_all(&project).unwrap();
        std::fs::create_dir_all(data.join("outputs")).unwrap();
        std::fs::write(data.join("gateway-token"), "secret").unwrap();
        std::fs::write(data.join("outputs/1.txt"), "long").unwrap();
        let workspace = Workspace::new(&project).unwrap().own(&data);
        Scene { dir, workspace }
    }

    fn judged(scene: &Scene, path: &str) -> Option<Sensitive> {
        scene.workspace.place("path", Access::Read, path).unwrap().sensitive
    }

    #[test]
    fn own_state_is_known_by_path_link_hard_link_and_address() {
        let scene = scene();
        let token = scene.workspace.own_places()[0].join("gateway-token");
        symlink(&token, scene.dir.path().join("project/link")).unwrap();
        std::fs::hard_link(&token, scene.dir.path().join("project/hard")).unwrap();
        for path in ["link", "hard", "../data/gateway-token", token.to_str().unwrap(), "/proc/self/environ"] {
            assert_eq!(judged(&scene, path), Some(Sensitive::OwnState), "{path}");
        }
        assert_eq!(judged(&scene, "../data/outputs/1.txt"), Some(Sensitive::OwnFiles));
        let named = |value: Value| scene.workspace.own_places_named(&value, &["content"]).len();
        let token = token.to_str().unwrap();
        let address = format!("file://{}", token.replace("gateway", "%67ateway"));
        assert_eq!(named(serde_json::json!({"uri": address})), 1);
        assert_eq!(named(serde_json::json!({"deep": [{"x": token}]})), 1);
        assert_eq!(named(serde_json::json!({"content": token, "uri": "https://x/y"})), 0);
    }

    #[test]
    fn hard_links_in_roots_are_found_for_the_sandbox() {
        let scene = scene();
        let token = scene.workspace.own_places()[0].join("gateway-token");
        let deep = scene.workspace.root().join("a/b/c/d");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::hard_link(&token, deep.join("hard")).unwrap();
        let roots = [scene.workspace.root().to_owned()];
        assert_eq!(hard_links(scene.workspace.own_places(), &roots), [deep.join("hard")]);
    }

    #[test]
    fn commands_of_haft_that_decide_are_known_and_others_are_not() {
        for words in [
            "approvals approve 1",
            "--root /x approvals reject 1",
            "call file.write {} --yes",
            "serve --print-url",
            "trust",
            "log",
        ] {
            assert!(own_command(&words.split(' ').collect::<Vec<_>>()).is_some(), "{words}");
        }
        for words in ["tools", "call file.read {}", "lint", "mcp list", "explain file.write"] {
            assert!(own_command(&words.split(' ').collect::<Vec<_>>()).is_none(), "{words}");
        }
    }

    #[test]
    fn place_beside_own_state_is_not_mentioned() {
        assert!(mentions("sqlite3 /d/haft/haft.db", "/d/haft") && mentions("ls /d/haft", "/d/haft"));
        assert!(mentions("cat /d/haft/outputs/../gateway-token", "/d/haft"));
        for text in ["ls /d/haft2", "ls /d/haft-worktrees/x", "grep x /d/haft/outputs/1.txt"] {
            assert!(!mentions(text, "/d/haft"), "{text}");
        }
    }
}
