//! The side that attacks: what it is told, and what it may answer.
//!
//! The answer is an exit status (0 it got out, 1 it was stopped, 2 the attempt itself is broken), and
//! text that the harness searches for secrets. Nobody trusts the answer alone: see [`crate::judge`].

use crate::acts;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Every secret of a site begins so, which is how an attacker that sees one knows it.
pub(crate) const MARK: &str = "HAFT-SECRET-";

/// The line that proves that the attempt began.
pub(crate) const BEGUN: &str = "attempt begun";

/// Why an attempt did not succeed.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Somebody refused.
    Stopped(String),
    /// It could not be made at all.
    Broken(String),
}

/// What an attempt got, or why it got nothing.
pub(crate) type Tried = Result<String, Stop>;

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Stopped(error.to_string())
    }
}

pub(crate) fn stopped<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Stopped(why.into()))
}

pub(crate) fn broken<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Broken(why.into()))
}

/// One of several ways to the same end.
pub(crate) type Way<'a> = (&'a str, &'a dyn Fn() -> Tried);

/// The first way that leads there.
pub(crate) fn any(ways: &[Way<'_>]) -> Tried {
    let mut said = Vec::new();
    for (name, way) in ways {
        match way() {
            Ok(got) => return Ok(format!("{name}: {got}")),
            Err(Stop::Stopped(why) | Stop::Broken(why)) => said.push(format!("{name}: {why}")),
        }
    }
    stopped(said.join("; "))
}

/// What the attacker is told about the site.
pub(crate) struct Brief(BTreeMap<String, String>);

impl Brief {
    pub(crate) fn new(args: impl IntoIterator<Item = String>) -> Self {
        let pairs = args.into_iter().filter_map(|arg| arg.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())));
        Self(pairs.collect())
    }

    pub(crate) fn get(&self, key: &str) -> Result<&str, Stop> {
        self.0.get(key).map_or_else(|| broken(format!("the site has no {key}")), |value| Ok(value.as_str()))
    }

    pub(crate) fn path(&self, key: &str) -> Result<PathBuf, Stop> {
        self.get(key).map(PathBuf::from)
    }

    pub(crate) fn number(&self, key: &str) -> Result<i32, Stop> {
        self.get(key)?.parse().or_else(|_| broken(format!("{key} is no number")))
    }

    /// A file below one of the site's directories.
    pub(crate) fn file(&self, dir: &str, name: &str) -> Result<PathBuf, Stop> {
        self.path(dir).map(|path| path.join(name))
    }
}

/// What bytes hold of secrets, or that they hold none.
pub(crate) fn secrets(bytes: &[u8]) -> Tried {
    let text = String::from_utf8_lossy(bytes);
    let found: Vec<String> = text
        .match_indices(MARK)
        .map(|(at, _)| text[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect())
        .collect();
    if found.is_empty() { stopped("nothing secret in it") } else { Ok(found.join(" ")) }
}

/// Reads a file for what is secret in it.
pub(crate) fn grab(path: impl AsRef<std::path::Path>) -> Tried {
    secrets(&std::fs::read(path)?)
}

/// Makes one attempt and says how it went.
pub(crate) fn attack(name: &str, args: Vec<String>) -> ExitCode {
    say(BEGUN);
    let brief = Brief::new(args);
    let Some(act) = acts::all().find(|act| act.name == name) else {
        say("no such act");
        return ExitCode::from(2);
    };
    let (code, said) = match (act.attempt)(&brief) {
        Ok(got) => (0, format!("got out: {got}")),
        Err(Stop::Stopped(why)) => (1, format!("stopped: {why}")),
        Err(Stop::Broken(why)) => (2, format!("broken: {why}")),
    };
    say(&said);
    ExitCode::from(code)
}

/// A line to the harness; one that cannot be written is a harness that has gone.
pub(crate) fn say(line: &str) {
    let mut out = io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
