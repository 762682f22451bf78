//! Where programs look for what they run: a row for each program. To teach haft about one more, add its row.

use super::ExecutedLanguage;

/// What the first word after a program's options is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstOperand {
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
pub(super) struct Runner {
    pub(super) names: &'static [&'static str],
    /// Whether it reads shell scripts, makefiles, or something that is not looked through.
    pub(super) reads: ScriptLanguage,
    /// Options whose value is neither a file that is run nor code.
    pub(super) takes: &'static [&'static str],
    /// Options whose value is a file that is run.
    pub(super) files: &'static [&'static str],
    /// Options whose value is the directory that it works in.
    pub(super) dirs: &'static [&'static str],
    /// Options whose value is code, so that no script follows.
    pub(super) code: &'static [&'static str],
    /// Options whose value is a module, so that no script follows.
    pub(super) modules: &'static [&'static str],
    pub(super) first: FirstOperand,
    /// Files that it looks for, unless `files` names another.
    pub(super) defaults: &'static [&'static str],
    /// Files that it looks for here and above.
    pub(super) upward: &'static [&'static str],
    /// What it runs besides that.
    pub(super) unbound: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptLanguage {
    Shell,
    Makefile,
    Other,
}

impl ScriptLanguage {
    pub(super) fn language(self) -> ExecutedLanguage {
        match self {
            Self::Shell => ExecutedLanguage::Shell,
            Self::Makefile => ExecutedLanguage::Makefile,
            Self::Other => ExecutedLanguage::Other,
        }
    }
}

const PLAIN: Runner = Runner {
    names: &[],
    reads: ScriptLanguage::Other,
    takes: &[],
    files: &[],
    dirs: &[],
    code: &[],
    modules: &[],
    first: FirstOperand::Ignored,
    defaults: &[],
    upward: &[],
    unbound: "",
};

/// What docker and its like read where no file is named: compose looks in the first six, a build in the last two.
const IMAGE_FILES: &[&str] = &[
    "compose.yaml",
    "compose.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "Dockerfile",
    "Containerfile",
];

const RUNNERS: &[Runner] = &[
    Runner {
        names: &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh"],
        reads: ScriptLanguage::Shell,
        takes: &["-o", "+o", "-O", "+O"],
        files: &["--rcfile", "--init-file"],
        code: &["-c"],
        first: FirstOperand::Script,
        ..PLAIN
    },
    Runner { names: &["source", "."], reads: ScriptLanguage::Shell, first: FirstOperand::Script, ..PLAIN },
    Runner {
        names: &["python", "pypy", "ipython"],
        takes: &["-W", "-X", "--check-hash-based-pycs"],
        code: &["-c"],
        modules: &["-m"],
        first: FirstOperand::Script,
        ..PLAIN
    },
    Runner {
        names: &["node", "nodejs", "ts-node", "tsx"],
        takes: &["-C", "--conditions", "--title", "--inspect-port", "--input-type", "--env-file", "--test-reporter"],
        files: &["-r", "--require", "--import", "--loader", "--experimental-loader"],
        code: &["-e", "--eval", "-p", "--print", "-pe"],
        first: FirstOperand::Script,
        ..PLAIN
    },
    Runner {
        names: &["deno"],
        takes: &["--config", "-c", "--import-map"],
        upward: &["deno.json", "deno.jsonc"],
        first: FirstOperand::ScriptAfter(&["run", "test", "bench", "compile", "serve"]),
        ..PLAIN
    },
    Runner { names: &["perl"], takes: &["-I"], code: &["-e", "-E"], first: FirstOperand::Script, ..PLAIN },
    Runner {
        names: &["ruby"],
        takes: &["-I", "-C"],
        files: &["-r"],
        code: &["-e"],
        first: FirstOperand::Script,
        ..PLAIN
    },
    Runner {
        names: &["php"],
        takes: &["-d", "-c"],
        files: &["-f"],
        code: &["-r", "-B", "-R", "-E"],
        first: FirstOperand::Script,
        ..PLAIN
    },
    Runner { names: &["lua", "luajit"], modules: &["-l"], code: &["-e"], first: FirstOperand::Script, ..PLAIN },
    Runner { names: &["Rscript", "R"], files: &["-f", "--file"], code: &["-e"], first: FirstOperand::Script, ..PLAIN },
    Runner {
        names: &["julia"],
        takes: &["--project", "-t", "-p"],
        files: &["-L", "--load"],
        code: &["-e", "-E"],
        first: FirstOperand::Script,
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
        ],
        code: &["-e", "-c", "-eval"],
        first: FirstOperand::Script,
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
        reads: ScriptLanguage::Makefile,
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
        first: FirstOperand::PackageScript,
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
        defaults: IMAGE_FILES,
        unbound: "what runs in the container",
        ..PLAIN
    },
    Runner {
        names: &["docker-compose", "podman-compose"],
        takes: &["-p", "--project-name", "--profile", "--env-file"],
        files: &["-f", "--file"],
        dirs: &["--project-directory"],
        defaults: IMAGE_FILES,
        unbound: "what runs in the container",
        ..PLAIN
    },
    Runner {
        names: &["go"],
        dirs: &["-C"],
        first: FirstOperand::ScriptAfter(&["run"]),
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
    Runner {
        names: &["uv"],
        first: FirstOperand::CommandAfter(&["run"]),
        upward: &["pyproject.toml", "uv.toml"],
        ..PLAIN
    },
    Runner {
        names: &["poetry", "pipenv", "hatch", "pdm"],
        first: FirstOperand::CommandAfter(&["run"]),
        upward: &["pyproject.toml", "Pipfile"],
        ..PLAIN
    },
    Runner { names: &["bundle"], first: FirstOperand::CommandAfter(&["exec"]), upward: &["Gemfile"], ..PLAIN },
];

/// The program of the table that a name means: versions do not count.
pub(super) fn runner(name: &str) -> Option<&'static Runner> {
    let is = |name: &str| RUNNERS.iter().find(|runner| runner.names.contains(&name));
    is(name).or_else(|| is(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')))
}
