//! Which files a start of a tool opens, as far as its manifest tells: the program, whoever reads it, and what its
//! arguments and variables name. What belongs to the machine is not among them: the system's programs, and what the user
//! has installed outside the project.
//!
//! Everything is looked up as it is when the tool runs, so that a file that comes later and would be opened is found as
//! one that came. What cannot be known before somebody calls is refused.

use super::inventory::{COMPILED, Subject, of_module, walk};
use super::places::{Ground, look_up_in, on_the_path, shebang};
use crate::confined::environment;
use haft_core::manifest::template::{Piece, pieces, rendered};
use haft_core::manifest::{Command, Exec, Python};
use haft_core::preview::{cut, inert};
use haft_sandbox::roots::followed;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How many words of a manifest are looked up.
const WORDS_MAX: usize = 4096;
/// How many scripts may read one another: the kernel follows fewer.
const READERS_MAX: usize = 8;
/// What stands for something that a caller fills in. No path holds it.
const FILLED: char = '\0';
/// Variables that say what is loaded, by their names and by how their names begin.
const LOADERS: &[&str] = &[
    "PATH",
    "ENV",
    "BASH_ENV",
    "CDPATH",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "SHELL",
    "HOME",
    "ZDOTDIR",
    "INPUTRC",
    "CLASSPATH",
    "JAVA_HOME",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "TCLLIBPATH",
    "JULIA_LOAD_PATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "GCONV_PATH",
    "LOCPATH",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];
const LOADERS_BEGIN: &[&str] = &[
    "LD_",
    "DYLD_",
    "PYTHON",
    "PERL",
    "RUBY",
    "GEM_",
    "BUNDLE_",
    "LUA_",
    "R_PROFILE",
    "R_LIBS",
    "GIT_CONFIG",
    "GIT_SSH",
    "OPENSSL_",
    "NPM_CONFIG_",
    "npm_config_",
];

/// The files that a start opens and that are not the machine's, each by the name that it really has; and the links that
/// lead to them.
pub(super) fn started(subject: Subject<'_>) -> Result<Vec<PathBuf>, String> {
    started_on(subject, on_the_path())
}

fn started_on(subject: Subject<'_>, path: Vec<PathBuf>) -> Result<Vec<PathBuf>, String> {
    let compiled = matches!(subject.manifest.exec, Exec::Python(_));
    let is_strange = |dir: &PathBuf| followed(dir).is_ok_and(|real| !is_machines(subject.root, &real));
    let strange = matches!(subject.manifest.exec, Exec::Command(_)) && path.iter().any(is_strange);
    let mut start = Start { subject, path, strange, compiled, looked_up: 0, found: BTreeSet::new() };
    match &subject.manifest.exec {
        Exec::Command(command) => start.command(command)?,
        Exec::Python(python) => start.function(python)?,
        Exec::Http(_) | Exec::Mcp(_) | Exec::Pipeline(_) => {}
    }
    Ok(start.found.into_iter().collect())
}

/// Whether a place is the system's or an installed program's, and so nobody's to change by way of the project. What lies
/// in the project never is, also if the PATH leads there.
fn is_machines(root: &Path, real: &Path) -> bool {
    let own = real.starts_with(root);
    let system = environment::is_system(real) && !(own && environment::is_system(root));
    system || (!own && environment::toolchains().iter().any(|place| real.starts_with(place)))
}

fn is_loader(name: &str) -> bool {
    LOADERS.contains(&name) || LOADERS_BEGIN.iter().any(|begin| name.starts_with(begin))
}

struct Start<'s> {
    subject: Subject<'s>,
    /// Where names are looked up.
    path: Vec<PathBuf>,
    /// Whether some of that is not the machine's.
    strange: bool,
    /// Whether what Python has compiled is left unread.
    compiled: bool,
    looked_up: usize,
    found: BTreeSet<PathBuf>,
}

impl Start<'_> {
    fn command(&mut self, command: &Command) -> Result<(), String> {
        if command.entrypoint.contains("${") {
            return Err("its entrypoint is filled in by whoever calls it, so nobody can accept it".to_owned());
        }
        let cwd = literal(command.cwd.as_deref().unwrap_or("."));
        // Where it starts is not known if somebody fills it in.
        let from = (!cwd.contains(FILLED)).then(|| self.subject.root.join(cwd));
        let from = from.as_deref();
        let mut texts = vec![command.entrypoint.clone()];
        if command.entrypoint.contains('/') {
            texts.extend(self.program(&self.subject.root.join(&command.entrypoint), from)?);
        } else if let Some(hit) = look_up_in(&self.path, &command.entrypoint) {
            texts.extend(self.program(&hit, from)?);
        }
        texts.extend(command.args.iter().flat_map(literals));
        texts.extend(command.stdin.iter().flat_map(literals));
        self.modules(&texts, from)?;
        for text in texts.iter().skip(1) {
            self.argument(text, from)?;
        }
        for (name, value) in &command.env {
            self.variable(name, &literals(value).join(":"), from)?;
        }
        Ok(())
    }

    fn function(&mut self, python: &Python) -> Result<(), String> {
        let root = self.subject.root;
        let from = root.join(python.cwd.as_deref().unwrap_or("."));
        let places = of_module(&from, &python.module);
        if places.is_empty() {
            return Err(format!("`{}` is not the name of a module", cut(&inert(&python.module), 60)));
        }
        // Of the project a function imports only what was accepted; elsewhere it imports whatever lies beside it.
        match followed(&from) {
            Ok(real) if !real.starts_with(root) => self.whole(&real)?,
            _ => places.iter().try_for_each(|place| self.either(place))?,
        }
        if let Some(venv) = &python.venv {
            for part in ["bin/python3", "bin/python", "pyvenv.cfg"] {
                self.program(&root.join(venv).join(part), None)?;
            }
            return Ok(());
        }
        let own = |dir: &PathBuf| {
            followed(&dir.join("python3")).is_ok() && followed(dir).is_ok_and(|dir| dir.starts_with(root))
        };
        match self.path.iter().find(|dir| own(dir)) {
            Some(dir) => Err(format!(
                "the PATH leads to a python3 of the project, in {}; name its environment as `venv`, or leave it",
                dir.display()
            )),
            None => Ok(()),
        }
    }

    /// A program, and whoever reads it. Returns what that is given on the first lines of scripts.
    fn program(&mut self, path: &Path, from: Option<&Path>) -> Result<Vec<String>, String> {
        let (mut next, mut words) = (path.to_owned(), Vec::new());
        for _ in 0..READERS_MAX {
            let Ok(real) = followed(&next) else { break };
            self.link(&next);
            if real.is_file() && !is_machines(self.subject.root, &real) {
                self.found.insert(real.clone());
            }
            let Some(line) = shebang(&real) else { break };
            let mut line = line.split_whitespace();
            let Some(reader) = line.next() else { break };
            words.extend(line.map(str::to_owned));
            // The kernel finds a relative one from where the program starts.
            next = match from {
                _ if reader.starts_with('/') => PathBuf::from(reader),
                Some(from) => from.join(reader),
                None => return Err(adrift(reader)),
            };
        }
        Ok(words)
    }

    /// What one text among the arguments names. A directory is what a program works on, unless it is one that Python
    /// starts.
    fn argument(&mut self, text: &str, from: Option<&Path>) -> Result<(), String> {
        for word in words(text) {
            self.count()?;
            if self.strange
                && !word.contains('/')
                && let Some(hit) = look_up_in(&self.path, word)
            {
                for given in self.program(&hit, from)? {
                    self.named(&given, from)?;
                }
            }
            self.named(word, from)?;
        }
        Ok(())
    }

    fn named(&mut self, word: &str, from: Option<&Path>) -> Result<(), String> {
        let Some(path) = place(word, from) else {
            let flag = word.starts_with('-') && !word.contains(['/', '.']);
            return if flag || word.contains(FILLED) { Ok(()) } else { Err(adrift(word)) };
        };
        if path.join("__main__.py").is_file() {
            return self.whole(&path);
        }
        self.opens(&path);
        Ok(())
    }

    /// What Python is told to run by its name. Whatever it is told by, if what is named is Python's.
    fn modules(&mut self, texts: &[String], from: Option<&Path>) -> Result<(), String> {
        let Some(from) = from else { return Ok(()) };
        let all: Vec<&str> =
            texts.iter().flat_map(|text| text.split(is_between)).filter(|word| !word.is_empty()).collect();
        let mut python = false;
        for (at, word) in all.iter().enumerate() {
            let program = word.rsplit('/').next().unwrap_or_default();
            python |= program.starts_with("python") || program.starts_with("pypy");
            let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.starts_with('-')) else { continue };
            let Some((before, joined)) = flags.split_once('m') else { continue };
            if !before.chars().all(|c| c.is_ascii_alphabetic()) {
                continue;
            }
            let module = if joined.is_empty() { all.get(at + 1).copied().unwrap_or_default() } else { joined };
            self.count()?;
            for place in of_module(from, module) {
                let marked =
                    place.is_file() || ["__init__.py", "__main__.py"].iter().any(|file| place.join(file).is_file());
                if python || marked {
                    self.either(&place)?;
                }
            }
        }
        Ok(())
    }

    /// What a variable names: files, and directories that are likely to be searched.
    fn variable(&mut self, name: &str, text: &str, from: Option<&Path>) -> Result<(), String> {
        let (loader, shown) = (is_loader(name), cut(&inert(name), 60));
        if loader && text.contains(FILLED) {
            return Err(format!(
                "`{shown}` among its variables says what is loaded and is filled in by whoever calls it, so nobody can accept it"
            ));
        }
        let mut all: BTreeSet<&str> = words(text).collect();
        let listed: BTreeSet<&str> = text.split(':').chain([text]).collect();
        all.extend(&listed);
        // In a list of directories nothing is where the program starts.
        if loader && name.ends_with("PATH") && listed.contains("") && (!text.is_empty() || name == "PATH") {
            all.insert(".");
        }
        for word in all.into_iter().filter(|word| !word.is_empty()) {
            self.count()?;
            let Some(path) = place(word, from) else {
                if (loader && !word.starts_with('-'))
                    || (word.contains('/') && !word.contains("://") && !word.contains(FILLED))
                {
                    return Err(adrift(word));
                }
                continue;
            };
            if !path.is_dir() {
                self.opens(&path);
            } else if followed(&path).is_ok_and(|real| self.subject.root.starts_with(real)) {
                if loader {
                    return Err(format!(
                        "`{shown}` among its variables says what is loaded and names the whole project, which nobody can \
                         look through"
                    ));
                }
            } else if loader || listed.contains(word) {
                self.whole(&path)?;
            }
        }
        Ok(())
    }

    fn either(&mut self, path: &Path) -> Result<(), String> {
        if path.is_dir() {
            return self.whole(path);
        }
        self.opens(path);
        Ok(())
    }

    /// A file that is opened, if it is there and may be read.
    fn opens(&mut self, path: &Path) {
        let Ok(real) = followed(path) else { return };
        if real.is_file() {
            self.link(path);
            if self.reaches(&real) {
                self.found.insert(real);
            }
        }
    }

    /// All that is in a directory.
    fn whole(&mut self, dir: &Path) -> Result<(), String> {
        let Ok(real) = followed(dir) else { return Ok(()) };
        self.link(dir);
        if !self.reaches(&real) {
            return Ok(());
        }
        let skipped = |path: &Path| self.compiled && path.file_name().is_some_and(|name| name == COMPILED);
        let mut found = Vec::new();
        walk(&real, &skipped, &mut found)?;
        self.found.extend(found);
        Ok(())
    }

    /// A link in the project that is followed: it could lead to another of the machine's programs.
    fn link(&mut self, path: &Path) {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Ok(dir) = followed(dir) else { return };
        let link = dir.join(name);
        let is_file = link.is_file();
        if dir.starts_with(self.subject.root) && link.is_symlink() && is_file {
            self.found.insert(link);
        }
    }

    /// Whether it is the project's, or lies where the tool may read; and is not the machine's.
    fn reaches(&self, real: &Path) -> bool {
        let Subject { root, dir, manifest } = self.subject;
        let ground = Ground { root, project: root, dir, permissions: &manifest.permissions };
        !is_machines(root, real) && (real.starts_with(root) || ground.reads(real))
    }

    fn count(&mut self) -> Result<(), String> {
        self.looked_up += 1;
        if self.looked_up > WORDS_MAX {
            return Err(format!(
                "its arguments and variables have more than {WORDS_MAX} words, which nobody can look up"
            ));
        }
        Ok(())
    }
}

/// Where a word leads. None if that is not known before somebody calls.
fn place(word: &str, from: Option<&Path>) -> Option<PathBuf> {
    match from {
        Some(from) => Some(from.join(word)),
        None => Path::new(word).is_absolute().then(|| PathBuf::from(word)),
    }
}

fn adrift(word: &str) -> String {
    format!(
        "`{}` may be a file, found from where the program starts, and `cwd` is filled in by whoever calls it, so nobody can \
         accept it; name files in full or from a fixed `cwd`, and give the place as an argument",
        cut(&inert(word), 60)
    )
}

/// A text with what a caller fills in marked.
fn literal(text: &str) -> String {
    let piece = |piece| match piece {
        Piece::Text(text) => text,
        Piece::Name(_) => FILLED.to_string().into(),
    };
    // What is malformed is never run.
    pieces(text).map_or_else(|_| FILLED.to_string(), |all| all.into_iter().map(piece).collect())
}

/// The texts of a value.
fn literals(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![literal(text)],
        Value::Array(items) => items.iter().flat_map(literals).collect(),
        Value::Null => Vec::new(),
        other => vec![literal(&rendered(other))],
    }
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || "'\"`()[]{};&|<>,:=".contains(c)
}

/// What in a text may be a path: all of it, what stands behind the first `=`, its words, and what is joined to a flag of
/// one letter.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let valued = text.split_once('=').map(|(_, value)| value);
    let apart = text.split(is_between);
    let joined = text
        .split(is_between)
        .filter_map(|word| word.strip_prefix('-')?.get(1..))
        .filter(|rest| rest.contains(['/', '.']));
    let all = [text].into_iter().chain(valued).chain(apart).chain(joined);
    all.filter(|word| !word.is_empty()).collect::<BTreeSet<_>>().into_iter()
}

#[cfg(test)]
mod tests;
