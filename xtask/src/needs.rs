//! What chores need beyond the toolchain. A new need is one row.

use crate::sh;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;

/// A program that some part of a chore cannot do without.
pub(crate) struct Need {
    /// Its names; any will do.
    pub(crate) programs: &'static [&'static str],
    /// Arguments with which it succeeds if it works here, where being there is not enough.
    pub(crate) probe: Option<&'static [&'static str]>,
    /// The Debian packages that bring it, with spaces between.
    pub(crate) apt: Option<&'static str>,
    /// The crate that brings it, for want of a package.
    pub(crate) cargo: Option<&'static str>,
    /// The npm package that brings it, installed below `target/` and nowhere else.
    pub(crate) npm: Option<&'static str>,
    /// What is skipped without it.
    pub(crate) without: &'static str,
}

/// Compiles the fuzzing engine.
pub(crate) const CXX: Need = Need {
    programs: &["c++", "g++", "clang++"],
    probe: None,
    apt: Some("g++"),
    cargo: None,
    npm: None,
    without: "the fuzz targets are not built",
};

/// Gives a test a small file system of its own.
pub(crate) const UNSHARE: Need = Need {
    programs: &["unshare"],
    probe: Some(&["--user", "--map-root-user", "--mount", "true"]),
    apt: Some("util-linux"),
    cargo: None,
    npm: None,
    without: "the tests of confinement, views and a full disk prove nothing",
};

/// Speaks to the network in the tests of confinement.
pub(crate) const PYTHON: Need = Need {
    programs: &["python3"],
    probe: Some(&["--version"]),
    apt: Some("python3"),
    cargo: None,
    npm: None,
    without: "the test of lists of hosts fails",
};

/// Brings Python packages.
pub(crate) const PIP: Need = Need {
    programs: &["pip3"],
    probe: Some(&["--version"]),
    apt: Some("python3-pip"),
    cargo: None,
    npm: None,
    without: "no Python package can be installed",
};

/// Opens the page. A distribution's stub that only points to another packaging fails the probe.
pub(crate) const CHROMIUM: Need = Need {
    programs: &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
    probe: Some(&["--version"]),
    apt: Some("chromium"),
    cargo: None,
    npm: None,
    without: "the one from npm is needed",
};

/// Watches what commands that only read really do.
pub(crate) const STRACE: Need = Need {
    programs: &["strace"],
    probe: Some(&["-f", "-o", "/dev/null", "true"]),
    apt: Some("strace"),
    cargo: None,
    npm: None,
    without: "no command that is judged to only read is run to see whether it does",
};

/// The peer of file.grep.
pub(crate) const RG: Need = Need {
    programs: &["rg"],
    probe: Some(&["--version"]),
    apt: Some("ripgrep"),
    cargo: Some("ripgrep"),
    npm: None,
    without: "file.grep is not compared with it",
};

/// The peer of file.glob.
pub(crate) const FD: Need = Need {
    programs: &["fd", "fdfind"],
    probe: Some(&["--version"]),
    apt: Some("fd-find"),
    cargo: Some("fd-find"),
    npm: None,
    without: "file.glob is not compared with it",
};

/// A peer of confinement.
pub(crate) const BWRAP: Need = Need {
    programs: &["bwrap"],
    probe: Some(&["--unshare-user", "--ro-bind", "/", "/", "true"]),
    apt: Some("bubblewrap"),
    cargo: None,
    npm: None,
    without: "confinement is not measured beside bubblewrap",
};

/// Another.
pub(crate) const FIREJAIL: Need = Need {
    programs: &["firejail"],
    probe: Some(&["--quiet", "--noprofile", "true"]),
    apt: Some("firejail"),
    cargo: None,
    npm: None,
    without: "confinement is not measured beside firejail",
};

/// Another, which few distributions package.
pub(crate) const NSJAIL: Need = Need {
    programs: &["nsjail"],
    probe: Some(&["--help"]),
    apt: Some("nsjail"),
    cargo: None,
    npm: None,
    without: "confinement is not measured beside nsjail",
};

/// Another, which starts bubblewrap.
pub(crate) const SRT: Need = Need {
    programs: &["srt"],
    probe: Some(&["--version"]),
    apt: None,
    cargo: None,
    npm: Some("@anthropic-ai/sandbox-runtime"),
    without: "confinement is not measured beside sandbox-runtime",
};

/// What the one above needs to carry connections.
pub(crate) const SOCAT: Need = Need {
    programs: &["socat"],
    probe: Some(&["-V"]),
    apt: Some("socat"),
    cargo: None,
    npm: None,
    without: "confinement is not measured beside sandbox-runtime",
};

/// Writes down what is said, in the test of transcription.
pub(crate) const SPEECH: Need = Need {
    programs: &["pocketsphinx_continuous"],
    probe: None,
    apt: Some("pocketsphinx pocketsphinx-en-us"),
    cargo: None,
    npm: None,
    without: "no test meets a real recogniser of speech",
};

/// The server that several machines share. Its programs lie where only Debian's own scripts look, so what is looked for is
/// one of those.
pub(crate) const POSTGRES: Need = Need {
    programs: &["pg_lsclusters"],
    probe: None,
    apt: Some("postgresql"),
    cargo: None,
    npm: None,
    without: "no test meets a real PostgreSQL",
};

/// Reads PDFs, in the test of that.
pub(crate) const PDFTOTEXT: Need = Need {
    programs: &["pdftotext"],
    probe: None,
    apt: Some("poppler-utils"),
    cargo: None,
    npm: None,
    without: "no test reads a PDF",
};

impl Need {
    /// The program, installed if it has to be and can be. Without it, a sentence that says so.
    pub(crate) fn meet(&self) -> Result<PathBuf, String> {
        self.found().or_else(|| self.install()).ok_or_else(|| self.regret())
    }

    fn regret(&self) -> String {
        let name = self.programs.first().copied().unwrap_or_default();
        let how = match (self.find(), self.apt, self.npm) {
            (Some(_), ..) => format!("`{name}` is here but is not allowed to work"),
            (None, Some(package), _) => format!("`{name}` is missing (Debian: apt-get install {package})"),
            (None, None, Some(package)) => format!("`{name}` is missing (npm install {package})"),
            (None, None, None) => format!("`{name}` is missing"),
        };
        format!("could not: {how}; {}", self.without)
    }

    /// An npm package's program only where it was installed for this: its name may be another program's.
    fn find(&self) -> Option<PathBuf> {
        if self.npm.is_none() {
            return sh::find(self.programs);
        }
        let bin = npm_dir().join("node_modules/.bin");
        self.programs.iter().map(|program| bin.join(program)).find(|file| file.is_file())
    }

    fn found(&self) -> Option<PathBuf> {
        let program = self.find()?;
        let Some(args) = self.probe else { return Some(program) };
        let status = sh::command(&program, args).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success()).then_some(program)
    }

    fn install(&self) -> Option<PathBuf> {
        // A program that is there and fails its probe would fail it again.
        if self.find().is_some() {
            return None;
        }
        let by =
            |name: Option<&str>, install: fn(&str) -> bool| name.is_some_and(install).then(|| self.found()).flatten();
        by(self.apt, by_apt).or_else(|| by(self.cargo, by_cargo)).or_else(|| by(self.npm, by_npm))
    }
}

/// One at a time, as apt itself would insist by failing.
static TURN: Mutex<()> = Mutex::new(());

/// Installs Debian packages, for who may. A machine that is fresh has no package lists yet.
fn by_apt(package: &str) -> bool {
    if !sh::is_root() || sh::find(&["apt-get"]).is_none() {
        return false;
    }
    let _turn = TURN.lock();
    let apt = |args: &[&str]| {
        let patience = ["-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10"];
        let mut command = sh::command("apt-get", &patience);
        sh::run(command.args(args).env("DEBIAN_FRONTEND", "noninteractive").stdout(std::io::stderr())).is_ok()
    };
    let mut install = vec!["install", "-y", "-q", "--no-install-recommends"];
    install.extend(package.split(' '));
    apt(&install) || (apt(&["update", "-q"]) && apt(&install))
}

fn by_cargo(name: &str) -> bool {
    sh::run(&mut sh::cargo(&["install", "--quiet", "--locked", name])).is_ok()
}

fn npm_dir() -> PathBuf {
    sh::root().join("target/bench-npm")
}

fn by_npm(package: &str) -> bool {
    let dir = npm_dir();
    let quiet = ["install", "--no-audit", "--no-fund", "--loglevel=error", package];
    // Without a manifest of its own, npm would look for one in the directories above.
    let ready = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(dir.join("package.json"), "{}"));
    ready.is_ok() && sh::find(&["npm"]).is_some() && sh::run(sh::command("npm", &quiet).current_dir(&dir)).is_ok()
}

/// Prints what was missing, so that a pass with gaps does not look like a whole one.
pub(crate) fn confess(missing: &[String]) {
    for sentence in missing {
        println!("{sentence}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_what_it_costs() {
        let need = Need {
            programs: &["no-such-program-anywhere"],
            probe: None,
            apt: None,
            cargo: None,
            npm: None,
            without: "nothing happens",
        };
        let said = need.meet().unwrap_err();
        assert_eq!(said, "could not: `no-such-program-anywhere` is missing; nothing happens");
    }

    #[test]
    fn a_program_that_fails_its_probe_is_not_there() {
        let need = Need {
            programs: &["sh"],
            probe: Some(&["-c", "exit 3"]),
            apt: None,
            cargo: None,
            npm: None,
            without: "nothing happens",
        };
        assert_eq!(need.meet().unwrap_err(), "could not: `sh` is here but is not allowed to work; nothing happens");
    }
}
