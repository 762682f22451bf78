//! The project and its surroundings: where relative paths start, which roots may be used unasked, and how
//! a path that a caller says becomes the one place that is decided upon and opened.

use crate::own_state::{is_for_tools, judge_process};
use haft_core::place::{Access, Place, Sensitive, client_control_places, is_client_control, sensitive};
use haft_core::{CallError, ToolSpec, path_text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// How many links a path may lead through.
const MAX_LINKS: usize = 40;

/// The project and its roots. All paths are absolute and free of links.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Workspace {
    #[serde(with = "path_text::stored")]
    root: PathBuf,
    home: Option<PathBuf>,
    #[serde(with = "path_text::stored_each")]
    readable: Vec<PathBuf>,
    #[serde(with = "path_text::stored_each")]
    writable: Vec<PathBuf>,
    #[serde(with = "path_text::stored_each")]
    own: Vec<PathBuf>,
    /// The project that this is a copy of, if it is one.
    #[serde(default)]
    copy_of: Option<PathBuf>,
}

impl Workspace {
    /// A workspace rooted at `root`, where everything inside may be read, and written when asked.
    pub fn new(root: &Path) -> std::io::Result<Self> {
        let root = root.canonicalize()?;
        Ok(Self {
            readable: vec![root.clone()],
            writable: vec![root.clone()],
            root,
            home: home(),
            own: Vec::new(),
            copy_of: None,
        })
    }

    /// The workspace around a directory: the nearest one upward with `.haft` or `.glee`, else the git
    /// root, else the directory itself.
    pub fn discover(from: &Path) -> std::io::Result<Self> {
        let from = from.canonicalize()?;
        let upward = |there: &dyn Fn(&Path) -> bool| from.ancestors().find(|dir| there(dir)).map(Path::to_owned);
        let own = |dir: &Path| dir.join(".haft").is_dir() || dir.join(".glee").is_dir();
        let root = upward(&own).or_else(|| upward(&|dir| dir.join(".git").exists()));
        Self::new(root.as_deref().unwrap_or(&from))
    }

    /// Adds a root that may be read unasked.
    #[must_use]
    pub fn readable(mut self, root: &Path) -> Self {
        self.readable.extend(root.canonicalize());
        self
    }

    /// Adds a root that counts as the project when written.
    #[must_use]
    pub fn writable(mut self, root: &Path) -> Self {
        self.writable.extend(root.canonicalize());
        self
    }

    /// Adds a directory that holds haft's own state.
    #[must_use]
    pub fn own(mut self, dir: &Path) -> Self {
        self.own.push(dir.canonicalize().unwrap_or_else(|_| dir.to_owned()));
        self
    }

    /// The same as a copy of a project, whose own programs nobody may choose from here either.
    #[must_use]
    pub(crate) fn copy_of(mut self, project: &Path) -> Self {
        self.copy_of = Some(project.to_owned());
        self
    }

    /// Whether this is a copy of a project, which may go when whoever works on it has ended.
    pub(crate) fn is_copy(&self) -> bool {
        self.copy_of.is_some()
    }

    /// Where this is, if it is a copy of the project.
    pub(crate) fn elsewhere(&self) -> Option<&Path> {
        self.copy_of.as_ref().map(|_| self.root.as_path())
    }

    /// The project, also where this is a copy of it.
    pub(crate) fn project(&self) -> &Path {
        self.copy_of.as_deref().unwrap_or(&self.root)
    }

    /// The roots that may be read unasked.
    pub fn readable_roots(&self) -> &[PathBuf] {
        &self.readable
    }

    /// The roots that count as the project when written.
    pub fn writable_roots(&self) -> &[PathBuf] {
        &self.writable
    }

    /// Where haft's own state is.
    pub(crate) fn own_places(&self) -> &[PathBuf] {
        &self.own
    }

    /// The project root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The project root as the store keeps it, in the form of [`haft_core::path_text::store`]: two projects whose paths are
    /// not text never have one name.
    pub fn stored_root(&self) -> String {
        haft_core::path_text::store(&self.root)
    }

    /// A path as a person would write it: relative inside the project, absolute elsewhere.
    pub fn shown(&self, path: &Path) -> String {
        let shown = match path.strip_prefix(&self.root) {
            Ok(inside) if inside.as_os_str().is_empty() => Path::new("."),
            Ok(inside) => inside,
            Err(_) => path,
        };
        display_relative(shown.as_os_str())
    }

    /// A path that a person names, relative to the project or absolute, without following anything.
    pub(crate) fn lexical_path(&self, spoken: &str) -> Result<PathBuf, CallError> {
        if spoken.is_empty() || spoken.contains('\0') {
            return Err(CallError::invalid("a path is empty or contains a NUL character"));
        }
        let path = self.absolute(spoken);
        if path.components().any(|part| part == std::path::Component::ParentDir) {
            return Err(CallError::invalid(format!("{spoken}: name the path without `..`")));
        }
        Ok(path.components().collect())
    }

    /// Resolves every place that a call names.
    pub fn places(&self, spec: &ToolSpec, args: &Value) -> Result<Vec<Place>, CallError> {
        Self::places_named(spec, args, |param, access, name| self.place(param, access, name))
    }

    /// Resolves every place that a call of another program's tool names.
    pub fn places_of_program(&self, spec: &ToolSpec, args: &Value) -> Result<Vec<Place>, CallError> {
        Self::places_named(spec, args, |param, access, name| self.place_of_program(param, access, name))
    }

    fn places_named(
        spec: &ToolSpec,
        args: &Value,
        place: impl Fn(&'static str, Access, &str) -> Result<Place, CallError>,
    ) -> Result<Vec<Place>, CallError> {
        let mut places = Vec::with_capacity(spec.reach.touches.len());
        for touch in &spec.reach.touches {
            let named = args.get(touch.param).and_then(Value::as_str).or(touch.default);
            if let Some(spoken) = named {
                places.push(place(touch.param, touch.access, spoken)?);
            }
        }
        Ok(places)
    }

    /// Resolves one place.
    pub fn place(&self, param: &'static str, access: Access, spoken: &str) -> Result<Place, CallError> {
        if spoken.contains('\0') {
            return Err(CallError::invalid(format!("`{param}` contains a NUL character, which no path can")));
        }
        if spoken.is_empty() {
            return Err(CallError::invalid(format!("`{param}` is empty")));
        }
        self.place_at(param, access, spoken, &self.absolute(spoken))
    }

    /// Resolves a place that another program opens, by the very name that it is given: what haft reads as an escaped name is
    /// an ordinary one there.
    pub fn place_of_program(&self, param: &'static str, access: Access, name: &str) -> Result<Place, CallError> {
        if name.is_empty() || name.contains('\0') {
            return Err(CallError::invalid(format!("`{param}` is empty or contains a NUL character")));
        }
        let of_home = name.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let absolute = match (of_home, &self.home) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => self.root.join(name),
        };
        self.place_at(param, access, name, &absolute)
    }

    fn place_at(&self, param: &'static str, access: Access, spoken: &str, absolute: &Path) -> Result<Place, CallError> {
        let real = resolve(absolute, MAX_LINKS).map_err(|why| match why {
            Unresolved::Nonsense(why) => CallError::invalid(format!("{spoken}: {why}")),
            Unresolved::Io(error) => crate::files::explain(spoken, &error),
        })?;
        let roots = if access == Access::Read { &self.readable } else { &self.writable };
        Ok(Place {
            param,
            spoken: spoken.to_owned(),
            shown: self.shown(&real),
            access,
            inside: roots.iter().any(|root| real.starts_with(root)),
            sensitive: self.judge_named(absolute, &real, access),
            real,
        })
    }

    /// Judges a path: by its names inside the project (whose own location says nothing), and by whether
    /// it is part of haft's state.
    pub fn judge(&self, path: &Path) -> Option<Sensitive> {
        if let Some(dir) = self.own.iter().find(|dir| path.starts_with(dir)) {
            let inside = path.strip_prefix(dir).unwrap_or(path);
            return Some(if is_for_tools(inside) { Sensitive::OwnFiles } else { Sensitive::OwnState });
        }
        if let Some(why) = judge_process(path) {
            return Some(why);
        }
        sensitive(path.strip_prefix(&self.root).unwrap_or(path))
    }

    /// Judges a path that is to be changed: a client control file may be read like any other, but not changed unasked.
    pub fn judge_change(&self, path: &Path) -> Option<Sensitive> {
        self.judge(path).or_else(|| self.is_client_control(path).then_some(Sensitive::ClientControl))
    }

    fn is_client_control(&self, path: &Path) -> bool {
        // The user's own files count also where a project lies among them.
        let real_home = self.home.as_ref().and_then(|home| home.canonicalize().ok());
        let homes: Vec<&Path> = self.home.iter().chain(&real_home).map(PathBuf::as_path).collect();
        let below = |dir: &Path| path.strip_prefix(dir).is_ok_and(is_client_control);
        let linked = |dir: &Path| linked_client_controls(dir).iter().any(|place| path.starts_with(place));
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        is_client_control(inside)
            || homes.iter().any(|home| below(home))
            || linked(&self.root)
            || real_home.as_deref().is_some_and(linked)
    }

    /// Judges a place by the path that names it and by where that leads: a link may hide either. haft's own state is that
    /// whatever else the names say.
    fn judge_named(&self, named: &Path, real: &Path, access: Access) -> Option<Sensitive> {
        let judge = |path: &Path| match access {
            Access::Read => self.judge(path),
            Access::Write => self.judge_change(path),
        };
        let found = [judge(named), judge(real)];
        if found.contains(&Some(Sensitive::OwnState)) || self.is_own_by_link(real) {
            return Some(Sensitive::OwnState);
        }
        // A link whose name is held less closely must not loosen what it leads to.
        found.into_iter().rev().flatten().max_by_key(|why| *why == Sensitive::OwnFiles)
    }

    /// The user's home.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Whether a path is part of haft's own state.
    pub(crate) fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|dir| path.starts_with(dir))
    }

    fn absolute(&self, spoken: &str) -> PathBuf {
        let of_home = spoken.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        if let (Some(rest), Some(dir)) = (of_home, &self.home) {
            return dir.join(Self::named(rest.trim_start_matches('/'), dir));
        }
        self.root.join(Self::named(spoken, &self.root))
    }

    /// The path that a text names: in the form in which haft shows names that are not text, unless something stands at just
    /// this text and nothing at what it would stand for.
    fn named(spoken: &str, from: &Path) -> PathBuf {
        let read = PathBuf::from(haft_core::path_text::read(spoken));
        let stands = |path: &Path| from.join(path).symlink_metadata().is_ok();
        if haft_core::path_text::has_escape(spoken) && !stands(&read) && stands(Path::new(spoken)) {
            return spoken.into();
        }
        read
    }
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Where the client control files right below a directory really are, as far as links lead elsewhere: a `.claude` that is
/// a link into a directory of settings, or a link in it. A link's target need not exist yet.
pub(crate) fn linked_client_controls(dir: &Path) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = client_control_places(dir).collect();
    let entries: Vec<PathBuf> = places
        .iter()
        .filter_map(|place| std::fs::read_dir(place).ok())
        .flatten()
        .flatten()
        .map(|one| one.path())
        .collect();
    places.extend(entries);
    let is_control = |place: &Path| place.strip_prefix(dir).is_ok_and(is_client_control);
    let elsewhere = |place: PathBuf| resolve(&place, MAX_LINKS).ok().filter(|real| *real != place);
    places.into_iter().filter(|place| is_control(place)).filter_map(elsewhere).collect()
}

/// A name for people and JSON, in the form of [`haft_core::path_text::show`]. [`Workspace::place`] accepts it back.
pub fn display(name: &OsStr) -> String {
    haft_core::path_text::show(name)
}

/// The same for a path that may be relative: one that begins with a directory `~` is not to be read as the home directory.
pub(crate) fn display_relative(path: &OsStr) -> String {
    let shown = display(path);
    if shown == "~" || shown.starts_with("~/") { format!("./{shown}") } else { shown }
}

/// Why a path cannot be followed.
enum Unresolved {
    /// It makes no sense.
    Nonsense(&'static str),
    /// The system does not let us.
    Io(std::io::Error),
}

/// Follows every link in a path whose end need not exist yet. A dangling link leads to where a write
/// through it would land.
fn resolve(path: &Path, links_left: usize) -> Result<PathBuf, Unresolved> {
    const LOOP: Unresolved = Unresolved::Nonsense("too many symbolic links; is it a loop?");
    if links_left == 0 {
        return Err(LOOP);
    }
    match path.canonicalize() {
        Ok(real) => return Ok(real),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) if crate::files::is_link_loop(&error) => return Err(LOOP),
        Err(error) => return Err(Unresolved::Io(error)),
    }
    let (Some(parent), Some(last)) = (path.parent(), path.components().next_back()) else {
        return Err(Unresolved::Nonsense("no such path"));
    };
    let parent = resolve(parent, links_left)?;
    match last {
        Component::Normal(name) => match std::fs::read_link(parent.join(name)) {
            Ok(target) => resolve(&parent.join(target), links_left - 1),
            Err(_) => Ok(parent.join(name)),
        },
        Component::ParentDir => Err(Unresolved::Nonsense("`..` after a directory that does not exist")),
        _ => Ok(parent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn scene() -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(dir.path().join("project/src")).unwrap();
        let workspace = Workspace::discover(&dir.path().join("project/src")).unwrap();
        (dir, workspace)
    }

    #[test]
    fn the_root_is_found_upward_and_relative_paths_start_there() {
        let (dir, workspace) = scene();
        assert_eq!(workspace.root(), dir.path().join("project").canonicalize().unwrap());
        let place = workspace.place("path", Access::Write, "src/new/file.rs").unwrap();
        assert_eq!((place.shown.as_str(), place.inside), ("src/new/file.rs", true));
    }

    #[test]
    fn one_name_cannot_pass_for_two() {
        assert_eq!(display(OsStr::new("a\nb.txt")), "a\\x0ab.txt");
    }

    #[test]
    fn a_name_that_is_no_text_is_accepted_as_it_is_shown() {
        use std::os::unix::ffi::OsStrExt;
        let (_dir, workspace) = scene();
        for name in [&b"caf\xe9.txt"[..], b"a\nb", b"lit\\xe9ral", b"back\\slash", b"~"] {
            let path = workspace.root().join(OsStr::from_bytes(name));
            std::fs::write(&path, "x").unwrap();
            let shown = workspace.shown(&path);
            let place = workspace.place("path", Access::Read, &shown).unwrap();
            assert_eq!((place.real, place.shown), (path, shown));
        }
        // What a program printed names the file, too, if no other is meant.
        let place = workspace.place("path", Access::Read, "lit\\xe9ral").unwrap();
        assert_eq!(place.real, workspace.root().join("lit\\xe9ral"));
        assert!(workspace.place("path", Access::Write, "a\\x00b").unwrap().real.ends_with("a\\x00b"));
    }

    #[test]
    fn links_are_followed_before_a_place_is_judged() {
        let (dir, workspace) = scene();
        symlink(dir.path(), workspace.root().join("out")).unwrap();
        symlink(dir.path().join("not-yet"), workspace.root().join("dangling")).unwrap();
        symlink(workspace.root().join(".git"), workspace.root().join("innocent")).unwrap();
        symlink("loop", workspace.root().join("loop")).unwrap();
        // A link that haft's own tools would read as another name is followed for a program, which does not.
        std::fs::write(workspace.root().join("notesA.md"), "x").unwrap();
        symlink(dir.path(), workspace.root().join("notes\\x41.md")).unwrap();
        assert!(!workspace.place_of_program("path", Access::Read, "notes\\x41.md").unwrap().inside);
        // The name of a link must not loosen what it leads to.
        std::fs::create_dir_all(workspace.root().join(".haft")).unwrap();
        symlink(".haft", workspace.root().join(".codex")).unwrap();
        let through = workspace.place("path", Access::Write, ".codex/config.yml").unwrap();
        assert_eq!(through.sensitive, Some(Sensitive::OwnFiles));
        let place = |path: &str| workspace.place("path", Access::Write, path);
        assert!(!place("out/x").unwrap().inside);
        assert!(!place("dangling").unwrap().inside);
        assert!(!place("../x").unwrap().inside);
        assert_eq!(place("innocent/config").unwrap().sensitive, Some(Sensitive::VersionControl));
        symlink("settings", workspace.root().join(".claude")).unwrap();
        symlink("claude.json", workspace.root().join(".mcp.json")).unwrap();
        for path in ["settings/settings.json", "claude.json", ".claude/settings.local.json", "src/../.mcp.json"] {
            assert_eq!(place(path).unwrap().sensitive, Some(Sensitive::ClientControl), "{path}");
        }
        assert_eq!(place("src/lib.rs").unwrap().sensitive, None);
        assert_eq!(workspace.place("path", Access::Read, ".claude/settings.json").unwrap().sensitive, None);
        assert!(place("loop").unwrap_err().message.contains("loop"));
        assert!(place("a\0b").unwrap_err().message.contains("NUL"));
    }
}
