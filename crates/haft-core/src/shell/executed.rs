//! Which files a command runs: programs, scripts, what they source, and the files that build tools take their
//! instructions from.
//!
//! The table says of each program where it looks. What it does not say is named as not bound: modules, code that is given
//! as text, files whose names are not known before the command runs.

mod operands;
mod programs;

use super::deed::name_of;
use super::judged::{Flow, Redirect};
use super::state::{State, join};
use super::walk::{Stream, Walk};
use super::word::{Value, Word};
use programs::{FirstOperand, runner};

/// What is in a file that is run, as far as it leads to other files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ExecutedLanguage {
    /// A program: its first line may name an interpreter.
    Program,
    /// A shell script: it may source and run others.
    Shell,
    /// A makefile: it may include others.
    Makefile,
    /// A `package.json`, of which these scripts are run.
    Package {
        /// The names of the scripts.
        scripts: Vec<String>,
    },
    /// Anything that is not looked through.
    Other,
}

/// How a file is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutedLookup {
    /// The command names it.
    Named,
    /// The program looks for it where it runs.
    Default,
    /// The program looks for it where it runs and in every directory above; the first counts.
    Upward,
    /// A script names it, relative to where the script is.
    Beside,
}

/// A file that a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutedTarget {
    /// Where the command runs; empty for [`ExecutedLookup::Beside`].
    pub dir: String,
    /// The file, told from there.
    pub file: String,
    /// What is in it.
    pub language: ExecutedLanguage,
    /// How it is found.
    pub lookup: ExecutedLookup,
}

/// Variables whose value is a file that a program runs when it starts.
const STARTUP_VARIABLES: &[&str] = &["BASH_ENV", "ENV", "LD_PRELOAD", "LD_AUDIT", "PYTHONSTARTUP"];
/// Variables that say which further files or commands programs run: options, modules, helpers, compilers.
const LEADING_VARIABLES: &[&str] = &[
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CC",
    "CLASSPATH",
    "CXX",
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GOFLAGS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD_LIBRARY_PATH",
    "LESSOPEN",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "MAVEN_OPTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PAGER",
    "PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PYTHONHOME",
    "PYTHONPATH",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "SHELL",
    "SSH_ASKPASS",
    "VISUAL",
    "_JAVA_OPTIONS",
];
/// Commands that set variables for what they run, or for what runs after them.
const SETS_VARIABLES: &[&str] = &["export", "declare", "typeset", "readonly", "local", "env", "sudo", "doas"];
/// More programs than this are not looked for in the directories of a `PATH` that the command sets.
const PATH_LOOKUPS_MAX: usize = 16;
/// How many programs that run another command are looked through.
const WRAPPERS_MAX: usize = 8;
/// How a script names the directory that it is in.
const OWN_DIRECTORY: &[&str] = &[
    "$(dirname \"$0\")/",
    "$(dirname $0)/",
    "$(dirname \"${BASH_SOURCE[0]}\")/",
    "$(dirname ${BASH_SOURCE[0]})/",
    "$(dirname \"$BASH_SOURCE\")/",
    "$(dirname -- \"$0\")/",
    "$(dirname -- \"${BASH_SOURCE[0]}\")/",
    "${0%/*}/",
    "${BASH_SOURCE%/*}/",
    "${BASH_SOURCE[0]%/*}/",
];

/// What is said of a word that leads to files or is code.
fn not_known(word: &Word) -> String {
    format!("`{}`, which is not known before it runs", super::cut(&word.text))
}

impl Walk<'_> {
    /// Notes which files a command runs. Called before the command is looked at, where it is still known in which directory
    /// it runs.
    pub(super) fn note_executed(
        &mut self,
        (program, args): (&Word, &[Word]),
        assignments: &[(String, Word)],
        redirects: &[Redirect],
        stdin: &Stream,
        state: &State,
    ) {
        for (name, value) in assignments {
            self.note_variable(name, value, state);
        }
        let assigned = assignments.iter().find(|(name, _)| name == "PATH").map(|(_, word)| &word.value);
        let path = assigned.or_else(|| state.get("PATH")).cloned();
        let (mut words, mut given) = (Some((program, args)), (redirects, stdin));
        for _ in 0..WRAPPERS_MAX {
            let Some((program, args)) = words else { return };
            words = match program.literal().map(name_of) {
                None | Some(Err(_)) => {
                    self.executes(program, None, &ExecutedLanguage::Program, state);
                    None
                }
                // Also if a function has this name: it may be defined later, or elsewhere.
                Some(Ok(name)) => {
                    if let Some(path) = &path {
                        self.note_in_path(name, path, state);
                    }
                    self.note_code(name, args, state);
                    self.note_runner(name, args, given, state)
                }
            };
            given = (&[], &Stream::Unknown);
        }
    }

    /// A variable that programs look into for what they run.
    pub(super) fn note_variable(&mut self, name: &str, value: &Word, state: &State) {
        if STARTUP_VARIABLES.contains(&name) {
            let language = if name.ends_with("ENV") { ExecutedLanguage::Shell } else { ExecutedLanguage::Other };
            self.executes(value, None, &language, state);
        }
        if LEADING_VARIABLES.contains(&name) {
            self.leave_unbound(&format!("what `{name}` leads to"));
        }
    }

    /// A program that may lie in a directory that the command puts in front of the others.
    fn note_in_path(&mut self, name: &str, path: &Value, state: &State) {
        let (start, is_whole) = match path {
            Value::Known(path) => (path.as_str(), true),
            Value::Partial { start, .. } => (start.as_str(), false),
            _ => return,
        };
        // Where the rest is not known, the last directory is not either.
        let dirs = start.split(':').count() - usize::from(!is_whole);
        for dir in start.split(':').take(dirs) {
            let dir = if dir.is_empty() { "." } else { dir };
            let is_lookup = |target: &&ExecutedTarget| {
                (&target.language, target.lookup) == (&ExecutedLanguage::Program, ExecutedLookup::Default)
            };
            if self.executed.iter().filter(is_lookup).count() >= PATH_LOOKUPS_MAX {
                return;
            }
            self.looks_for(&[name], (Some(dir), ExecutedLookup::Default), &ExecutedLanguage::Program, state);
        }
    }

    /// Code, or variables, in the words of a command.
    fn note_code(&mut self, name: &str, args: &[Word], state: &State) {
        if matches!(name, "eval" | "trap") {
            let unknown: Vec<String> = args.iter().filter(|word| word.literal().is_none()).map(not_known).collect();
            for what in unknown {
                self.leave_unbound(&what);
            }
        }
        if SETS_VARIABLES.contains(&name) {
            for word in args {
                let Some((name, start)) = word.start().split_once('=') else { continue };
                let value = match &word.value {
                    Value::Known(_) => Value::Known(start.to_owned()),
                    _ => Value::Partial { start: start.to_owned(), splits: false },
                };
                self.note_variable(name, &Word { text: word.text.clone(), value }, state);
            }
        }
    }

    /// What a program of the table runs. Returns the words of a command that it runs in turn.
    fn note_runner<'w>(
        &mut self,
        name: &str,
        args: &'w [Word],
        (redirects, stdin): (&[Redirect], &Stream),
        state: &State,
    ) -> Option<(&'w Word, &'w [Word])> {
        let runner = runner(name)?;
        let said = runner.read(args);
        let dir = said.dir.as_deref();
        let language = runner.reads.language();
        for what in said.unbound.iter().map(String::as_str).chain([runner.unbound]).filter(|what| !what.is_empty()) {
            self.leave_unbound(what);
        }
        for script in &said.scripts {
            self.executes(script, dir, &language, state);
        }
        for file in &said.files {
            // `node -r dotenv` names a package, `node -r ./x` a file.
            let is_package =
                runner.first == FirstOperand::Script && file.literal().is_some_and(|file| !file.contains(['/', '.']));
            if is_package {
                self.leave_unbound(&format!("the module `{}`", super::cut(file.shown())));
            } else {
                self.executes(file, dir, &language, state);
            }
        }
        if runner.first == FirstOperand::Script && said.scripts.is_empty() && !said.given {
            self.note_given(name, redirects, stdin, &language, state);
        }
        if said.files.is_empty() {
            self.looks_for(runner.defaults, (dir, ExecutedLookup::Default), &language, state);
        }
        for file in runner.upward {
            let language = match *file {
                "package.json" => ExecutedLanguage::Package { scripts: said.package_scripts.clone() },
                _ => ExecutedLanguage::Other,
            };
            self.looks_for(&[file], (dir, ExecutedLookup::Upward), &language, state);
        }
        args.get(said.command_at?..)?.split_first()
    }

    /// What an interpreter is given that runs no file of its own.
    fn note_given(
        &mut self,
        name: &str,
        redirects: &[Redirect],
        stdin: &Stream,
        language: &ExecutedLanguage,
        state: &State,
    ) {
        let from = redirects.iter().filter(|one| one.flow == Flow::Reads).filter_map(|one| one.target.as_ref());
        let from: Vec<Word> = from.cloned().collect();
        for word in &from {
            self.executes(word, None, language, state);
        }
        let known = matches!(stdin, Stream::Text(_)) || redirects.iter().any(|one| one.flow == Flow::Gives);
        if from.is_empty() && !known {
            self.leave_unbound(&format!("what `{}` reads from its input", super::cut(name)));
        }
    }

    /// A file that is named is run.
    fn executes(&mut self, word: &Word, dir: Option<&str>, language: &ExecutedLanguage, state: &State) {
        let Value::Known(file) = &word.value else {
            let text = word.text.trim_matches('"');
            let beside = OWN_DIRECTORY.iter().find_map(|own| text.strip_prefix(own));
            match beside.filter(|rest| !rest.contains(['$', '`', '"', '*', '?', '['])) {
                Some(rest) => self.add_executed(ExecutedTarget {
                    dir: String::new(),
                    file: rest.to_owned(),
                    language: language.clone(),
                    lookup: ExecutedLookup::Beside,
                }),
                None => self.leave_unbound(&not_known(word)),
            }
            return;
        };
        if matches!(file.as_str(), "" | "-" | "/dev/null") {
            return;
        }
        if file == "/dev/stdin" || file.starts_with("/dev/fd/") {
            self.leave_unbound("what it reads from its input");
            return;
        }
        self.looks_for(&[file], (dir, ExecutedLookup::Named), language, state);
    }

    fn looks_for(
        &mut self,
        files: &[&str],
        (dir, lookup): (Option<&str>, ExecutedLookup),
        language: &ExecutedLanguage,
        state: &State,
    ) {
        for file in files {
            if file.starts_with('/') {
                let (dir, file, language) = ("/".to_owned(), (*file).to_owned(), language.clone());
                self.add_executed(ExecutedTarget { dir, file, language, lookup });
                continue;
            }
            if state.is_lost() && !dir.is_some_and(|dir| dir.starts_with('/')) {
                self.leave_unbound(&format!("`{}` in a directory that is not known", super::cut(file)));
            }
            let mut places: Vec<String> = state.places().cloned().collect();
            if state.is_lost() && !places.contains(&self.start) {
                // Most probably it is still where it began.
                places.push(self.start.clone());
            }
            for place in places {
                let dir = dir.map_or_else(|| place.clone(), |dir| join(&place, dir));
                let (file, language) = ((*file).to_owned(), language.clone());
                self.add_executed(ExecutedTarget { dir, file, language, lookup });
            }
        }
    }

    fn add_executed(&mut self, target: ExecutedTarget) {
        if !self.executed.contains(&target) {
            self.executed.push(target);
        }
    }

    fn leave_unbound(&mut self, what: &str) {
        if !self.unbound.iter().any(|known| known == what) {
            self.unbound.push(what.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
