//! Which files a command runs: programs, scripts, what they source, and the files that build tools take their
//! instructions from.
//!
//! The table says of each program where it looks. What it does not say is named as not bound: modules, code that is given
//! as text, files whose names are not known before the command runs.

use super::deed::name_of;
use super::judged::{Flow, Redirect};
use super::state::{State, join};
use super::walk::{Stream, Walk};
use super::word::{Value, Word};

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

/// What the first word after a program's options is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    /// Nothing that is run.
    Ignored,
    /// A script in the program's language, or a directory with one.
    Script,
    /// The same, after one of these words.
    ScriptAfter(&'static [&'static str]),
    /// A command, after one of these words.
    CommandAfter(&'static [&'static str]),
    /// A script of `package.json`.
    PackageScript,
}

/// Where a program looks for what it runs.
#[derive(Clone, Copy)]
struct Runner {
    names: &'static [&'static str],
    /// Whether it reads shell scripts, makefiles, or something that is not looked through.
    reads: Reads,
    /// Options whose value is neither a file that is run nor code.
    takes: &'static [&'static str],
    /// Options whose value is a file that is run.
    files: &'static [&'static str],
    /// Options whose value is the directory that it works in.
    dirs: &'static [&'static str],
    /// Options whose value is code, so that no script follows.
    code: &'static [&'static str],
    /// Options whose value is a module, so that no script follows.
    modules: &'static [&'static str],
    first: First,
    /// Files that it looks for, unless `files` names another.
    defaults: &'static [&'static str],
    /// Files that it looks for here and above.
    upward: &'static [&'static str],
    /// What it runs besides that.
    unbound: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    Shell,
    Makefile,
    Other,
}

impl Reads {
    fn language(self) -> ExecutedLanguage {
        match self {
            Self::Shell => ExecutedLanguage::Shell,
            Self::Makefile => ExecutedLanguage::Makefile,
            Self::Other => ExecutedLanguage::Other,
        }
    }
}

const PLAIN: Runner = Runner {
    names: &[],
    reads: Reads::Other,
    takes: &[],
    files: &[],
    dirs: &[],
    code: &[],
    modules: &[],
    first: First::Ignored,
    defaults: &[],
    upward: &[],
    unbound: "",
};

const RUNNERS: &[Runner] = &[
    Runner {
        names: &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh"],
        reads: Reads::Shell,
        takes: &["-o", "+o", "-O", "+O"],
        files: &["--rcfile", "--init-file"],
        code: &["-c"],
        first: First::Script,
        ..PLAIN
    },
    Runner { names: &["source", "."], reads: Reads::Shell, first: First::Script, ..PLAIN },
    Runner {
        names: &["python", "pypy", "ipython"],
        takes: &["-W", "-X", "--check-hash-based-pycs"],
        code: &["-c"],
        modules: &["-m"],
        first: First::Script,
        ..PLAIN
    },
    Runner {
        names: &["node", "nodejs", "ts-node", "tsx"],
        takes: &["-C", "--conditions", "--title", "--inspect-port", "--input-type", "--env-file", "--test-reporter"],
        files: &["-r", "--require", "--import", "--loader", "--experimental-loader"],
        code: &["-e", "--eval", "-p", "--print", "-pe"],
        first: First::Script,
        ..PLAIN
    },
    Runner {
        names: &["deno"],
        takes: &["--config", "-c", "--import-map"],
        upward: &["deno.json", "deno.jsonc"],
        first: First::ScriptAfter(&["run", "test", "bench", "compile", "serve"]),
        ..PLAIN
    },
    Runner { names: &["perl"], takes: &["-I"], code: &["-e", "-E"], first: First::Script, ..PLAIN },
    Runner { names: &["ruby"], takes: &["-I", "-C"], files: &["-r"], code: &["-e"], first: First::Script, ..PLAIN },
    Runner {
        names: &["php"],
        takes: &["-d", "-c"],
        files: &["-f"],
        code: &["-r", "-B", "-R", "-E"],
        first: First::Script,
        ..PLAIN
    },
    Runner { names: &["lua", "luajit"], modules: &["-l"], code: &["-e"], first: First::Script, ..PLAIN },
    Runner { names: &["Rscript", "R"], files: &["-f", "--file"], code: &["-e"], first: First::Script, ..PLAIN },
    Runner {
        names: &["julia"],
        takes: &["--project", "-t", "-p"],
        files: &["-L", "--load"],
        code: &["-e", "-E"],
        first: First::Script,
        ..PLAIN
    },
    Runner {
        names: &[
            "tclsh",
            "wish",
            "expect",
            "guile",
            "elixir",
            "escript",
            "runghc",
            "scala",
            "kotlin",
            "swift",
            "groovy",
            "osascript",
            "m4",
            "Xvfb-run",
        ],
        code: &["-e", "-c", "-eval"],
        first: First::Script,
        ..PLAIN
    },
    Runner {
        names: &["awk", "gawk", "mawk", "nawk", "sed"],
        takes: &["-F", "-v", "-e"],
        files: &["-f", "--file"],
        ..PLAIN
    },
    Runner {
        names: &["make", "gmake"],
        reads: Reads::Makefile,
        takes: &["-I", "-o", "-W", "--include-dir", "--old-file", "--what-if"],
        files: &["-f", "--file", "--makefile"],
        dirs: &["-C", "--directory"],
        defaults: &["GNUmakefile", "makefile", "Makefile"],
        unbound: "the recipes of the Makefile",
        ..PLAIN
    },
    Runner {
        names: &["ninja"],
        files: &["-f"],
        dirs: &["-C"],
        takes: &["-j", "-k", "-l", "-t", "-d", "-w"],
        defaults: &["build.ninja"],
        ..PLAIN
    },
    Runner {
        names: &["just"],
        takes: &["--set", "--shell", "--shell-arg", "--dotenv-path", "--dotenv-filename", "--color"],
        files: &["-f", "--justfile"],
        dirs: &["-d", "--working-directory"],
        upward: &["justfile", "Justfile", ".justfile"],
        ..PLAIN
    },
    Runner {
        names: &["task", "go-task"],
        files: &["-t", "--taskfile"],
        dirs: &["-d", "--dir"],
        upward: &["Taskfile.yml", "Taskfile.yaml"],
        ..PLAIN
    },
    Runner {
        names: &["rake"],
        files: &["-f", "--rakefile"],
        upward: &["Rakefile", "rakefile", "Rakefile.rb"],
        ..PLAIN
    },
    Runner {
        names: &["npm", "pnpm", "yarn", "bun"],
        takes: &["-w", "--workspace", "--filter", "-F", "--loglevel", "--registry", "--omit", "--include"],
        dirs: &["-C", "--prefix", "--cwd", "--dir"],
        first: First::PackageScript,
        upward: &["package.json", ".npmrc", ".yarnrc.yml", ".pnpmfile.cjs", "pnpm-workspace.yaml", "bunfig.toml"],
        ..PLAIN
    },
    Runner {
        names: &["npx", "bunx", "pnpx"],
        upward: &["package.json", ".npmrc"],
        unbound: "the package that `npx` runs",
        ..PLAIN
    },
    Runner {
        names: &["cargo"],
        takes: &[
            "-p",
            "--package",
            "-j",
            "--jobs",
            "--features",
            "-F",
            "--bin",
            "--test",
            "--example",
            "--bench",
            "--profile",
            "--target",
            "--target-dir",
            "--color",
            "--message-format",
        ],
        files: &["--manifest-path"],
        dirs: &["-C"],
        upward: &[
            "Cargo.toml",
            "build.rs",
            ".cargo/config.toml",
            ".cargo/config",
            "rust-toolchain.toml",
            "rust-toolchain",
        ],
        unbound: "the sources and dependencies that `cargo` builds",
        ..PLAIN
    },
    Runner {
        names: &["docker", "podman"],
        takes: &[
            "--context",
            "-H",
            "--host",
            "-p",
            "--project-name",
            "--profile",
            "--env-file",
            "-t",
            "--tag",
            "--build-arg",
            "--target",
        ],
        files: &["-f", "--file"],
        dirs: &["--project-directory"],
        defaults: &[
            "compose.yaml",
            "compose.yml",
            "docker-compose.yml",
            "docker-compose.yaml",
            "compose.override.yaml",
            "docker-compose.override.yml",
            "Dockerfile",
            "Containerfile",
        ],
        unbound: "what runs in the container",
        ..PLAIN
    },
    Runner {
        names: &["docker-compose", "podman-compose"],
        takes: &["-p", "--project-name", "--profile", "--env-file"],
        files: &["-f", "--file"],
        dirs: &["--project-directory"],
        defaults: &[
            "compose.yaml",
            "compose.yml",
            "docker-compose.yml",
            "docker-compose.yaml",
            "compose.override.yaml",
            "docker-compose.override.yml",
        ],
        unbound: "what runs in the container",
        ..PLAIN
    },
    Runner {
        names: &["go"],
        dirs: &["-C"],
        first: First::ScriptAfter(&["run"]),
        upward: &["go.mod", "go.work"],
        unbound: "the sources and dependencies that `go` builds",
        ..PLAIN
    },
    Runner {
        names: &["gradle"],
        takes: &["-x", "-D", "-P"],
        files: &["-b", "--build-file", "-I", "--init-script"],
        dirs: &["-p", "--project-dir"],
        upward: &["settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts", "gradle.properties"],
        ..PLAIN
    },
    Runner {
        names: &["mvn"],
        takes: &["-P", "-D", "-pl"],
        files: &["-f", "--file"],
        defaults: &["pom.xml", ".mvn/extensions.xml"],
        ..PLAIN
    },
    Runner {
        names: &["cmake"],
        takes: &["-B", "-D", "-G"],
        dirs: &["-S"],
        files: &["-P", "-C"],
        defaults: &["CMakeLists.txt", "CMakePresets.json"],
        ..PLAIN
    },
    Runner { names: &["meson"], defaults: &["meson.build"], ..PLAIN },
    Runner {
        names: &["pytest", "py.test"],
        takes: &["-k", "-m", "-p", "-n"],
        files: &["-c"],
        upward: &["conftest.py", "pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini"],
        unbound: "the tests and modules that are loaded",
        ..PLAIN
    },
    Runner { names: &["tox"], files: &["-c"], defaults: &["tox.ini", "pyproject.toml", "setup.cfg"], ..PLAIN },
    Runner { names: &["nox"], files: &["-f"], defaults: &["noxfile.py"], ..PLAIN },
    Runner { names: &["pip"], defaults: &["setup.py", "setup.cfg", "pyproject.toml"], ..PLAIN },
    Runner { names: &["invoke", "inv", "fab"], upward: &["tasks.py", "fabfile.py"], ..PLAIN },
    Runner { names: &["mix"], defaults: &["mix.exs"], ..PLAIN },
    Runner { names: &["composer"], defaults: &["composer.json"], ..PLAIN },
    Runner { names: &["pre-commit"], files: &["-c"], upward: &[".pre-commit-config.yaml"], ..PLAIN },
    Runner { names: &["uv"], first: First::CommandAfter(&["run"]), upward: &["pyproject.toml", "uv.toml"], ..PLAIN },
    Runner {
        names: &["poetry", "pipenv", "hatch", "pdm"],
        first: First::CommandAfter(&["run"]),
        upward: &["pyproject.toml", "Pipfile"],
        ..PLAIN
    },
    Runner { names: &["bundle"], first: First::CommandAfter(&["exec"]), upward: &["Gemfile"], ..PLAIN },
];

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
/// Words of package managers that are followed by the name of a script.
const RUNS_SCRIPT: &[&str] = &["run", "run-script", "rum", "urn"];
/// More programs than this are not looked for in the directories of a `PATH` that the command sets.
const PATH_LOOKUPS_MAX: usize = 16;
/// How many programs that run another command are looked through.
const WRAPPERS_MAX: usize = 8;
/// Scripts that are run when packages are installed.
const ON_INSTALL: &[&str] =
    &["preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"];
/// Words of package managers that install.
const INSTALLS: &[&str] = &["install", "i", "ci", "add", "update", "rebuild", "link", "it", "install-test"];
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

/// What a command's words say that it runs.
#[derive(Default)]
struct Words {
    scripts: Vec<Word>,
    files: Vec<Word>,
    dir: Option<String>,
    /// Whether code or a module was given, so that no script is.
    given: bool,
    unbound: Vec<String>,
    package_scripts: Vec<String>,
    /// Where a command begins that it runs in turn.
    command_at: Option<usize>,
}

/// The program of the table that a name means: versions do not count.
fn runner(name: &str) -> Option<&'static Runner> {
    let is = |name: &str| RUNNERS.iter().find(|runner| runner.names.contains(&name));
    is(name).or_else(|| is(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')))
}

/// Where the value of an option is.
#[derive(Debug, PartialEq, Eq)]
enum OptionValue {
    Here(String),
    InNextWord,
}

impl OptionValue {
    fn word(self, mut next: impl FnMut() -> Option<Word>) -> Option<Word> {
        match self {
            Self::Here(value) => Some(Word::known(value)),
            Self::InNextWord => next(),
        }
    }
}

/// The value of one of these options, if the word is one of them.
fn value_of(options: &[&str], word: &str) -> Option<OptionValue> {
    options.iter().find_map(|option| {
        let rest = word.strip_prefix(option)?;
        match (rest, option.starts_with("--")) {
            ("", _) => Some(OptionValue::InNextWord),
            (rest, true) => rest.strip_prefix('=').map(|value| OptionValue::Here(value.to_owned())),
            (rest, false) if option.len() == 2 => Some(OptionValue::Here(rest.trim_start_matches('=').to_owned())),
            _ => None,
        }
    })
}

/// Whether a bundle of short options ends in one of these: `perl -ne`.
fn ends_bundle(options: &[&str], word: &str) -> bool {
    let is_bundle = word.len() > 2 && word.starts_with('-') && !word.starts_with("--");
    let letters = || word[1..].chars().all(|c| c.is_ascii_alphanumeric());
    is_bundle && letters() && options.iter().any(|option| option.len() == 2 && word.ends_with(&option[1..]))
}

/// Whether a bundle of short options has this one: `bash -es`.
fn is_bundle_with(option: char, word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| letters.chars().all(|c| c.is_ascii_alphabetic()));
    letters.is_some_and(|letters| letters.contains(option))
}

/// What is said of a word that leads to files or is code.
fn not_known(word: &Word) -> String {
    format!("`{}`, which is not known before it runs", super::cut(&word.text))
}

impl Runner {
    /// Reads the words after the program.
    fn read(&self, args: &[Word]) -> Words {
        let mut said = Words::default();
        let mut words = args.iter().enumerate();
        let mut after_first = match self.first {
            First::ScriptAfter(_) | First::CommandAfter(_) | First::PackageScript => false,
            First::Ignored | First::Script => true,
        };
        let mut options_end = false;
        while let Some((at, word)) = words.next() {
            let text = word.start();
            if !options_end && text == "--" && word.literal().is_some() {
                options_end = true;
                continue;
            }
            let is_option = !options_end && text.len() > 1 && text.starts_with(['-', '+']);
            if !is_option {
                match self.operand(word, at, &mut after_first, args, &mut said) {
                    Reading::GoesOn => continue,
                    Reading::Ends => break,
                }
            }
            // Only a word that is known can be read as an option.
            let Some(text) = word.literal() else {
                let leads = [self.code, self.modules, self.files].iter().any(|all| value_of(all, text).is_some());
                if leads && !text.is_empty() {
                    said.unbound.push(not_known(word));
                }
                continue;
            };
            let mut next = || words.next().map(|(_, word)| word.clone());
            if value_of(self.code, text).is_some() || ends_bundle(self.code, text) {
                said.given = true;
                // The code is the first word after it that is no option: `bash -c -e 'ls'`.
                let code = words.clone().map(|(_, word)| word).find(|word| !word.start().starts_with(['-', '+']));
                said.unbound.extend(code.filter(|word| word.literal().is_none()).map(not_known));
                if matches!(self.first, First::Script) {
                    break;
                }
            } else if self.reads == Reads::Shell && is_bundle_with('s', text) {
                // The script comes from the input, and the words that follow are its arguments.
                break;
            } else if let Some(value) = value_of(self.modules, text) {
                let module = value.word(&mut next);
                let module = module.map(|word| word.shown().to_owned()).unwrap_or_default();
                said.unbound.push(format!("the module `{}`", super::cut(&module)));
                said.given = true;
                break;
            } else if let Some(value) = value_of(self.files, text) {
                said.files.extend(value.word(&mut next));
            } else if let Some(value) = value_of(self.dirs, text) {
                match value.word(&mut next) {
                    Some(word) if word.literal().is_some() => {
                        let to = word.shown();
                        said.dir = Some(said.dir.take().map_or_else(|| to.to_owned(), |from| join(&from, to)));
                    }
                    _ => said.unbound.push("what it finds in a directory that is not known".to_owned()),
                }
            } else if value_of(self.takes, text) == Some(OptionValue::InNextWord) || ends_bundle(self.takes, text) {
                next();
            }
        }
        said
    }

    /// Reads a word that is no option.
    fn operand(&self, word: &Word, at: usize, after_first: &mut bool, args: &[Word], said: &mut Words) -> Reading {
        match self.first {
            First::Ignored => {}
            First::Script => {
                // `-` stands for the input.
                if word.literal() != Some("-") {
                    said.scripts.push(word.clone());
                }
                return Reading::Ends;
            }
            First::ScriptAfter(words) => {
                if *after_first {
                    said.scripts.push(word.clone());
                    return Reading::Ends;
                }
                *after_first = word.literal().is_some_and(|text| words.contains(&text));
            }
            First::CommandAfter(words) => {
                if *after_first {
                    said.command_at = Some(at);
                    return Reading::Ends;
                }
                *after_first = word.literal().is_some_and(|text| words.contains(&text));
            }
            First::PackageScript => {
                package_scripts(word, args.get(at + 1..).unwrap_or_default(), said);
                return Reading::Ends;
            }
        }
        Reading::GoesOn
    }
}

/// Whether the words after this one matter.
#[derive(PartialEq, Eq)]
enum Reading {
    GoesOn,
    Ends,
}

/// The scripts of `package.json` that a package manager runs for these words.
fn package_scripts(word: &Word, rest: &[Word], said: &mut Words) {
    let Some(text) = word.literal() else {
        said.unbound.push(format!("what `{}` stands for", super::cut(&word.text)));
        return;
    };
    let named = || rest.iter().find(|word| !word.start().starts_with('-'));
    let mut scripts: Vec<String> = match text {
        text if RUNS_SCRIPT.contains(&text) => named().and_then(Word::literal).map(str::to_owned).into_iter().collect(),
        text if INSTALLS.contains(&text) => ON_INSTALL.iter().map(ToString::to_string).collect(),
        "exec" | "x" | "dlx" => {
            said.unbound.push(format!("the package that `{text}` runs"));
            Vec::new()
        }
        "t" => vec!["test".to_owned()],
        // `npm test`, `yarn build`, `bun build.ts`.
        text => vec![text.to_owned()],
    };
    let around: Vec<String> = scripts.iter().flat_map(|name| [format!("pre{name}"), format!("post{name}")]).collect();
    scripts.extend(around);
    if (text.contains('/') || text.contains('.')) && !text.starts_with('@') {
        said.scripts.push(word.clone());
    }
    said.package_scripts = scripts;
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
                runner.first == First::Script && file.literal().is_some_and(|file| !file.contains(['/', '.']));
            if is_package {
                self.leave_unbound(&format!("the module `{}`", super::cut(file.shown())));
            } else {
                self.executes(file, dir, &language, state);
            }
        }
        if runner.first == First::Script && said.scripts.is_empty() && !said.given {
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
mod tests {
    use super::*;
    use crate::shell::{Ground, Table, judge};

    /// What a command runs, told from `/p`, and what is not bound.
    fn run(text: &str) -> (Vec<String>, Vec<String>) {
        let judged = judge(text, &Ground { cwd: "/p", home: Some("/home/u"), table: Table::shipped() });
        let shown = |target: &ExecutedTarget| {
            let path = join(&target.dir, &target.file);
            let path = path.strip_prefix("/p/").unwrap_or(&path).to_owned();
            match target.lookup {
                ExecutedLookup::Named => path,
                ExecutedLookup::Default => format!("?{path}"),
                ExecutedLookup::Upward => format!("^{path}"),
                ExecutedLookup::Beside => format!("@{}", target.file),
            }
        };
        (judged.executed.iter().map(shown).collect(), judged.unbound)
    }

    fn files(text: &str) -> Vec<String> {
        run(text).0
    }

    #[test]
    fn programs_scripts_and_what_interpreters_are_given_are_run() {
        for (text, expected) in [
            ("./build.sh --fast", vec!["build.sh"]),
            ("cd sub && ../x", vec!["sub/../x"]),
            ("FOO=1 nice -n 5 timeout 5 ./x", vec!["x"]),
            ("sh -x -o pipefail run.sh a.sh", vec!["run.sh"]),
            ("bash -c './a; . ./lib.sh'", vec!["a", "lib.sh"]),
            ("source lib.sh; ./a", vec!["lib.sh", "a"]),
            ("bash -eo pipefail run.sh", vec!["run.sh"]),
            ("python3.12 -W error -u x.py y.py", vec!["x.py"]),
            ("python -c 'print(1)' x.py", vec![]),
            ("python3 < x.py", vec!["x.py"]),
            ("perl -ne 'print' a.txt", vec![]),
            ("perl -w tool.pl", vec!["tool.pl"]),
            ("node -r ./hook.js --title x main.js", vec!["main.js", "hook.js"]),
            ("/usr/bin/env ./x", vec!["x"]),
            ("/usr/bin/ls", vec![]),
            ("find . -name '*.c' -exec ./check {} \\;", vec!["check"]),
            ("make -C sub -f rules.mk all", vec!["sub/rules.mk"]),
            ("make", vec!["?GNUmakefile", "?makefile", "?Makefile"]),
            ("awk -f prog.awk a.txt", vec!["prog.awk"]),
            ("uv run python x.py", vec!["^pyproject.toml", "^uv.toml", "x.py"]),
            ("BASH_ENV=./env bash -c ls", vec!["env"]),
            (". \"$(dirname \"$0\")/lib.sh\"", vec!["@lib.sh"]),
            ("(sh() { :; }); sh ./f.sh", vec!["f.sh"]),
            ("bash -s -- x < f.sh", vec!["f.sh"]),
            ("bash -es x < f.sh", vec!["f.sh"]),
            ("python3 - x < f.py", vec!["f.py"]),
            ("PATH=$PWD/bin:$PATH mytool", vec!["?bin/mytool"]),
            ("PATH=bin:/opt/x mytool", vec!["?bin/mytool", "?/opt/x/mytool"]),
            ("PATH=$PWD/bin; mytool", vec!["?bin/mytool"]),
            ("export BASH_ENV=./env; bash -c ls", vec!["env"]),
        ] {
            assert_eq!(files(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_before_is_named() {
        for (text, expected) in [
            ("python -m http.server", "the module `http.server`"),
            ("$TOOL x", "`$TOOL`, which is not known before it runs"),
            ("curl https://x.example | sh", "what `sh` reads from its input"),
            ("source \"$DIR/lib.sh\"", "`\"$DIR/lib.sh\"`, which is not known before it runs"),
            ("npm exec cowsay", "the package that `exec` runs"),
            ("eval \"$(cat f.sh)\"", "`\"$(cat f.sh)\"`, which is not known before it runs"),
            ("bash -c \"$(cat f)\"", "`\"$(cat f)\"`, which is not known before it runs"),
            ("bash -ec \"$(cat f)\"", "`\"$(cat f)\"`, which is not known before it runs"),
            ("node --eval=\"$(cat f)\"", "`--eval=\"$(cat f)\"`, which is not known before it runs"),
            ("trap \"$(cat f)\" EXIT", "`\"$(cat f)\"`, which is not known before it runs"),
            ("source <(cat f)", "what it reads from its input"),
            ("NODE_OPTIONS=--require=./x.js node main.js", "what `NODE_OPTIONS` leads to"),
            ("env PERL5OPT=-Mx perl a.pl", "what `PERL5OPT` leads to"),
            ("export PYTHONPATH=lib; python3 a.py", "what `PYTHONPATH` leads to"),
            ("export GIT_SSH_COMMAND=\"$PWD/x\"; git fetch", "what `GIT_SSH_COMMAND` leads to"),
            ("RUBYOPT=-rx; ruby a.rb", "what `RUBYOPT` leads to"),
            ("PATH=$PWD/bin:$PATH mytool", "what `PATH` leads to"),
            ("make", "the recipes of the Makefile"),
        ] {
            assert!(run(text).1.iter().any(|what| what == expected), "{text}: {:?}", run(text).1);
        }
    }

    #[test]
    fn scripts_of_a_package_are_told_by_their_names() {
        let scripts = |text: &str| {
            let judged = judge(text, &Ground { cwd: "/p", home: None, table: Table::shipped() });
            let package = judged.executed.into_iter().find(|target| target.file == "package.json").unwrap();
            let ExecutedLanguage::Package { scripts } = package.language else { panic!("{text}") };
            scripts
        };
        assert_eq!(scripts("npm run build"), ["build", "prebuild", "postbuild"]);
        assert_eq!(scripts("npm -w x test")[0], "test");
        assert_eq!(scripts("yarn lint")[0], "lint");
        assert!(scripts("npm ci").contains(&"postinstall".to_owned()));
    }
}
