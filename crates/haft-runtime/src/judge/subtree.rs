//! What lies below a directory that a program reads through, where nothing confines the program.
//!
//! haft's sandbox keeps credentials and everything outside the readable roots from the programs that haft runs. An agent's
//! own tool has neither: it prints a key that a link leads to, and the `.env` of the project. So the files below are looked
//! through beforehand, and each that deserves care is a place of the call, as if the command had named it.

use crate::workspace::Workspace;
use haft_core::place::{Access, Place, Sensitive};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// More names than this are not looked at for one call.
pub(crate) const NAMES_MAX: usize = 200_000;
/// More places than this are not listed: the call is asked about anyway.
const PLACES_MAX: usize = 64;

/// Why it cannot be said what lies below, to finish the sentence "what lies below …".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unclear(pub(crate) &'static str);

const TOO_MUCH: Unclear = Unclear("is too much to be looked through");
const NOT_TEXT: Unclear = Unclear("has a name that is not text");

/// Which files a program reads below a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage<'c> {
    /// All of them, also through links.
    Everything,
    /// Those that ripgrep searches by itself: neither hidden nor ignored, and no links.
    Visible,
    /// Those that ripgrep searches with `--hidden`, of these names where a glob is given.
    VisibleOrHidden(Option<&'c str>),
}

/// A directory that a program reads through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchedTree<'t> {
    /// Where it begins. It may be a file.
    pub(crate) top: &'t Path,
    /// What is read below.
    pub(crate) coverage: Coverage<'t>,
}

/// The files below a directory that hold credentials or haft's own state, or that links lead to outside the readable roots.
/// A file has nothing below it.
pub(crate) fn careful_places(
    workspace: &Workspace,
    param: &'static str,
    tree: SearchedTree<'_>,
    names_left: &mut usize,
) -> Result<Vec<Place>, Unclear> {
    let SearchedTree { top, coverage } = tree;
    let Ok(top) = top.canonicalize() else { return Ok(Vec::new()) };
    if !top.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Found { workspace, param, names_left, places: Vec::new() };
    // A configuration of ripgrep's may tell it to search more.
    let configured = std::env::var_os("RIPGREP_CONFIG_PATH").is_some_and(|path| !path.is_empty());
    match coverage {
        Coverage::Visible if !configured => found.as_ripgrep(&ripgrep(&top, None), false)?,
        Coverage::VisibleOrHidden(glob) if !configured => match glob.map(|glob| name_override(&top, glob)) {
            None => found.as_ripgrep(&ripgrep(&top, None), true)?,
            Some(Some(names)) => found.as_ripgrep(&ripgrep(&top, Some(names)), true)?,
            Some(None) => found.everything(top)?,
        },
        _ => found.everything(top)?,
    }
    Ok(found.places)
}

/// A walk over what ripgrep searches, by the library that ripgrep is made of.
fn ripgrep(top: &Path, names: Option<ignore::overrides::Override>) -> ignore::WalkBuilder {
    let mut walk = ignore::WalkBuilder::new(top);
    walk.add_custom_ignore_filename(".rgignore");
    if let Some(names) = names {
        walk.overrides(names);
    }
    walk
}

/// A glob that is about names alone. Where another one begins, and how several are taken apart, is the client's affair.
fn name_override(top: &Path, glob: &str) -> Option<ignore::overrides::Override> {
    let name = glob.strip_prefix("**/").unwrap_or(glob);
    let about_names = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || matches!(c, '/' | ',' | '!'));
    if !about_names {
        return None;
    }
    let mut builder = ignore::overrides::OverrideBuilder::new(top);
    builder.add(glob).ok()?;
    builder.build().ok()
}

struct Found<'f> {
    workspace: &'f Workspace,
    param: &'static str,
    names_left: &'f mut usize,
    places: Vec<Place>,
}

impl Found<'_> {
    fn as_ripgrep(&mut self, walk: &ignore::WalkBuilder, hidden_too: bool) -> Result<(), Unclear> {
        // Links are not followed.
        for entry in walk.clone().hidden(!hidden_too).follow_links(false).build().flatten() {
            self.count()?;
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                self.judge(entry.path())?;
            }
        }
        Ok(())
    }

    /// Directories that links lead to are looked through as well, as long as they lie inside the readable roots.
    fn everything(&mut self, top: PathBuf) -> Result<(), Unclear> {
        let mut seen = HashSet::from([top.clone()]);
        let mut waiting = vec![top];
        while let Some(dir) = waiting.pop() {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                self.count()?;
                let path = entry.path();
                let Ok(kind) = entry.file_type() else { continue };
                let careful = self.judge(&path)?;
                let next = if kind.is_symlink() {
                    self.linked(&path)?
                } else if kind.is_dir() && !careful {
                    Some(path)
                } else {
                    None
                };
                if let Some(next) = next.filter(|next| !seen.contains(next)) {
                    seen.insert(next.clone());
                    waiting.push(next);
                }
            }
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), Unclear> {
        *self.names_left = self.names_left.checked_sub(1).ok_or(TOO_MUCH)?;
        Ok(())
    }

    /// Notes a path that deserves care by its names.
    fn judge(&mut self, path: &Path) -> Result<bool, Unclear> {
        let careful = self.is_careful(self.workspace.judge(path), path);
        if careful && let Some(place) = self.place(path)? {
            self.note(place);
        }
        Ok(careful)
    }

    /// Notes where a link leads, if that deserves care; otherwise the directory that it leads to.
    fn linked(&mut self, path: &Path) -> Result<Option<PathBuf>, Unclear> {
        let Some(place) = self.place(path)? else { return Ok(None) };
        if !place.inside || self.is_careful(place.sensitive, &place.real) {
            self.note(place);
            return Ok(None);
        }
        Ok(place.real.is_dir().then_some(place.real))
    }

    /// The insides of a version control directory are read by the sandbox's programs as well.
    fn is_careful(&self, sensitive: Option<Sensitive>, path: &Path) -> bool {
        sensitive == Some(Sensitive::Credentials) || self.workspace.is_own(path)
    }

    /// A link that leads nowhere, or in a circle, is read by no program.
    fn place(&self, path: &Path) -> Result<Option<Place>, Unclear> {
        let path = path.to_str().ok_or(NOT_TEXT)?;
        Ok(self.workspace.place_of_program(self.param, Access::Read, path).ok())
    }

    fn note(&mut self, place: Place) {
        if self.places.len() < PLACES_MAX && !self.places.contains(&place) {
            self.places.push(place);
        }
    }
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
        for made in ["project/.git", "project/src/deep", "outside"] {
            std::fs::create_dir_all(dir.path().join(made)).unwrap();
        }
        let workspace = Workspace::new(&dir.path().join("project")).unwrap();
        Scene { dir, workspace }
    }

    impl Scene {
        fn write(&self, path: &str, text: &str) {
            std::fs::write(self.workspace.root().join(path), text).unwrap();
        }

        fn looked_through(&self, top: &Path, coverage: Coverage<'_>) -> Vec<Place> {
            careful_places(&self.workspace, "command", SearchedTree { top, coverage }, &mut 1_000).unwrap()
        }

        fn shown(&self, coverage: Coverage<'_>) -> Vec<String> {
            let places = self.looked_through(self.workspace.root(), coverage);
            let outside = self.dir.path().canonicalize().unwrap();
            let mut shown: Vec<String> =
                places.iter().map(|place| place.shown.replace(outside.to_str().unwrap(), "")).collect();
            shown.sort();
            shown
        }
    }

    #[test]
    fn credentials_and_links_out_are_found_below() {
        let scene = scene();
        for path in [".env", "src/main.rs", "src/deep/server.key", ".git/config"] {
            scene.write(path, "");
        }
        assert_eq!(scene.shown(Coverage::Everything), [".env", "src/deep/server.key"]);
        symlink(scene.dir.path().join("outside"), scene.workspace.root().join("src/keys")).unwrap();
        symlink("..", scene.workspace.root().join("src/circle")).unwrap();
        symlink("nowhere/at/all", scene.workspace.root().join("src/dangling")).unwrap();
        assert_eq!(scene.shown(Coverage::Everything), [".env", "/outside", "src/deep/server.key"]);
    }

    #[test]
    fn link_into_the_project_is_looked_through_where_it_leads() {
        let scene = scene();
        scene.write("src/deep/prod.env", "");
        let shown = |top: &str| {
            let top = scene.workspace.root().join(top);
            scene.looked_through(&top, Coverage::Everything).len()
        };
        std::fs::create_dir(scene.workspace.root().join("other")).unwrap();
        assert_eq!(shown("other"), 0);
        symlink("../src", scene.workspace.root().join("other/link")).unwrap();
        assert_eq!(shown("other"), 1);
    }

    #[test]
    fn more_than_may_be_looked_through_is_unclear() {
        let scene = scene();
        let mut left = 3;
        let looked = SearchedTree { top: scene.workspace.root(), coverage: Coverage::Everything };
        assert_eq!(careful_places(&scene.workspace, "command", looked, &mut left), Ok(Vec::new()));
        assert_eq!(left, 0, "there are three directories below");
        assert_eq!(careful_places(&scene.workspace, "command", looked, &mut left), Err(TOO_MUCH));
    }

    #[test]
    fn ripgrep_leaves_out_what_is_hidden_or_ignored() {
        let scene = scene();
        scene.write(".env", "");
        scene.write("prod.env", "");
        assert_eq!(scene.shown(Coverage::Visible), ["prod.env"]);
        scene.write(".gitignore", "*.env\n");
        assert_eq!(scene.shown(Coverage::Visible), Vec::<String>::new());
        assert_eq!(scene.shown(Coverage::VisibleOrHidden(None)), Vec::<String>::new());
        // What a glob names is searched although it is ignored.
        for (glob, found) in
            [("**/.env", 1), (".e*", 1), ("*.env", 2), ("*.rs", 0), ("*.rs .env", 2), ("src/**/*.rs", 2)]
        {
            assert_eq!(scene.shown(Coverage::VisibleOrHidden(Some(glob))).len(), found, "{glob}");
        }
        scene.write(".rgignore", "!.env\n");
        assert_eq!(scene.shown(Coverage::Visible), [".env"], "an ignore file can bring a hidden file back");
    }
}
