//! Which pattern decides about a path, as git sees it: a directory that is ignored takes everything in it
//! along; otherwise the `.gitignore` nearest to the path speaks first, and in it the last pattern.

use crate::files;
use crate::scene::Scene;
use ::ignore::gitignore::{Gitignore, GitignoreBuilder};
use haft_core::pattern::glob_is_sane;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The pattern that decided.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// As it is written.
    pub(crate) pattern: String,
    /// Its file and line.
    pub(crate) source: String,
    /// Whether it keeps the path (`!pattern`) rather than ignoring it.
    pub(crate) keeps: bool,
}

/// Says which file has the content of a path.
type Locate<'s> = Box<dyn Fn(&Path) -> Option<PathBuf> + 's>;

/// The `.gitignore` files of a repository, read as they are needed.
pub(crate) struct Rules<'s> {
    /// How a path is shown.
    shown: Box<dyn Fn(&Path) -> String + 's>,
    /// The file that has the content of a path.
    locate: Locate<'s>,
    top: PathBuf,
    files: HashMap<PathBuf, Option<Source>>,
    warnings: Vec<String>,
}

struct Source {
    shown: String,
    lines: Vec<String>,
    matcher: Gitignore,
}

impl<'s> Rules<'s> {
    /// The rules for paths below `dir`: from the top of its repository, or of the project if it is in none.
    pub(super) fn new(scene: &'s Scene, dir: &Path) -> Self {
        let project = scene.workspace().root();
        let repository = dir.ancestors().find(|dir| dir.join(".git").exists());
        let top = repository.unwrap_or(if dir.starts_with(project) { project } else { dir }).to_owned();
        let locate = |path: &Path| std::fs::symlink_metadata(path).is_ok().then(|| path.to_owned());
        Self::reading(top, |path| scene.shown(path), locate)
    }

    /// The rules of the repository or project `top`, whose files are where `locate` says.
    pub(crate) fn reading(
        top: PathBuf,
        shown: impl Fn(&Path) -> String + 's,
        locate: impl Fn(&Path) -> Option<PathBuf> + 's,
    ) -> Self {
        Self { shown: Box::new(shown), locate: Box::new(locate), top, files: HashMap::new(), warnings: Vec::new() }
    }

    /// What could not be read or understood.
    pub(super) fn into_warnings(self) -> Vec<String> {
        self.warnings
    }

    /// The rule that decides about a path, if any does.
    pub(crate) fn decide(&mut self, path: &Path, is_dir: bool) -> Option<Rule> {
        let mut levels: Vec<&Path> = path.ancestors().take_while(|level| **level != self.top).collect();
        levels.reverse();
        let mut rule = None;
        for level in levels {
            rule = self.nearest(level, is_dir || level != path);
            if rule.as_ref().is_some_and(|rule| !rule.keeps) {
                break;
            }
        }
        rule
    }

    /// The rule about this path alone, whatever holds for the directories above it.
    fn nearest(&mut self, path: &Path, is_dir: bool) -> Option<Rule> {
        let top = self.top.clone();
        let dirs = path.ancestors().skip(1).take_while(|dir| dir.starts_with(&top));
        dirs.into_iter().find_map(|dir| self.source(dir).and_then(|source| source.rule(path, is_dir)))
    }

    fn source(&mut self, dir: &Path) -> Option<&Source> {
        if !self.files.contains_key(dir) {
            let source = self.read(dir);
            self.files.insert(dir.to_owned(), source);
        }
        self.files.get(dir).and_then(Option::as_ref)
    }

    fn read(&mut self, dir: &Path) -> Option<Source> {
        let path = dir.join(".gitignore");
        let shown = (self.shown)(&path);
        // Most directories have none, and some of those on the way may not exist at all.
        let file = (self.locate)(&path)?;
        let content = match files::load(&file, &shown, files::LOAD_MAX) {
            Ok((content, _)) => content,
            Err(error) => {
                self.warnings.push(error.message);
                return None;
            }
        };
        let content = String::from_utf8_lossy(&content);
        let lines: Vec<String> = content.trim_start_matches('\u{feff}').lines().map(str::to_owned).collect();
        let mut builder = GitignoreBuilder::new(dir);
        for (index, line) in lines.iter().enumerate() {
            if !glob_is_sane(line) {
                self.warnings.push(format!("{shown}:{}: nested too deeply, so it does not count", index + 1));
            } else if let Err(error) = builder.add_line(None, line) {
                self.warnings.push(format!("{shown}:{}: {error}", index + 1));
            }
        }
        let matcher = builder.build().ok()?;
        Some(Source { shown, lines, matcher })
    }
}

impl Source {
    fn rule(&self, path: &Path, is_dir: bool) -> Option<Rule> {
        let matched = self.matcher.matched(path, is_dir);
        let glob = matched.inner()?;
        // Of equal lines the last one decides.
        let number = self.lines.iter().rposition(|line| line.trim_end() == glob.original().trim_end())? + 1;
        let pattern = glob.original().to_owned();
        Some(Rule { pattern, source: format!("{}:{number}", self.shown), keeps: glob.is_whitelist() })
    }
}
