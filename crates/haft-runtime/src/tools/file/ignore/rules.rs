//! Which pattern decides about a path, as git sees it: a directory that is ignored takes everything in it
//! along; otherwise the `.gitignore` nearest to the path speaks first, and in it the last pattern. After all of them come the
//! repository's `.git/info/exclude` and the user's own file.

use crate::files;
use crate::scene::Scene;
use crate::tools::file::gitignore::PatternList;
use crate::tools::file::walk::exclude_file_of;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
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

/// The ignore files of a repository, read as they are needed.
pub(crate) struct Rules<'s> {
    /// How a path is shown.
    shown: Box<dyn Fn(&Path) -> String + 's>,
    /// The file that has the content of a path.
    locate: Locate<'s>,
    top: PathBuf,
    /// What holds for the whole repository, after all `.gitignore` files.
    outer: Vec<PathBuf>,
    /// By path.
    files: HashMap<PathBuf, Option<Source>>,
    warnings: Vec<String>,
}

struct Source {
    shown: String,
    lines: Vec<String>,
    patterns: PatternList,
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
        let global = ::ignore::gitignore::gitconfig_excludes_path().and_then(|path| path.canonicalize().ok());
        let outer = exclude_file_of(&top).into_iter().chain(global).collect();
        let (shown, locate) = (Box::new(shown), Box::new(locate));
        Self { shown, locate, top, outer, files: HashMap::new(), warnings: Vec::new() }
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
        let inner = dirs.into_iter().find_map(|dir| self.rule(&dir.join(".gitignore"), dir, path, is_dir));
        inner.or_else(|| self.outer.clone().iter().find_map(|file| self.rule(file, &top, path, is_dir)))
    }

    /// The rule of one file, whose patterns are relative to `dir`.
    fn rule(&mut self, file: &Path, dir: &Path, path: &Path, is_dir: bool) -> Option<Rule> {
        if !self.files.contains_key(file) {
            let source = self.read(file);
            self.files.insert(file.to_owned(), source);
        }
        let below = path.strip_prefix(dir).ok()?;
        self.files.get(file)?.as_ref()?.rule(below, is_dir)
    }

    fn read(&mut self, path: &Path) -> Option<Source> {
        let shown = (self.shown)(path);
        // Most directories have none, and some of those on the way may not exist at all.
        let file = (self.locate)(path)?;
        if file.is_symlink() {
            self.warnings.push(format!("{shown} is a symbolic link, which git does not follow"));
            return None;
        }
        match files::load(&file, &shown, files::LOAD_MAX) {
            Ok((content, _)) => Some(Source::new(shown, &content)),
            Err(error) => {
                self.warnings.push(error.message);
                None
            }
        }
    }
}

impl Source {
    fn new(shown: String, content: &[u8]) -> Self {
        let text = String::from_utf8_lossy(content);
        let lines = text.trim_start_matches('\u{feff}').lines().map(|line| line.trim_end().to_owned()).collect();
        Self { shown, lines, patterns: PatternList::parse(content) }
    }

    fn rule(&self, path: &Path, is_dir: bool) -> Option<Rule> {
        let verdict = self.patterns.decide(path.as_os_str().as_bytes(), is_dir)?;
        let pattern = self.lines.get(verdict.line - 1)?.clone();
        Some(Rule { pattern, source: format!("{}:{}", self.shown, verdict.line), keeps: !verdict.ignored })
    }
}
