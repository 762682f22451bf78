//! file.grep beside ripgrep and file.glob beside fd, on one tree, once it is certain that both find the
//! same: a search that looks at less is not faster.

use super::haft::Haft;
use super::report::Row;
use super::samples::{Rounds, interleaved};
use super::tree;
use crate::needs::{FD, Need, RG};
use crate::sh;
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const ROUNDS: Rounds = Rounds { warm_up: 2, counted: 15 };
const RATIO: f64 = 1.15;

/// One search, in both programs' words.
struct Search {
    what: &'static str,
    need: &'static Need,
    peer: &'static [&'static str],
    tool: &'static str,
    args: Value,
    found: fn(&Path, &str) -> BTreeSet<String>,
}

/// `--hidden` without `.git` is what haft searches.
fn searches() -> [Search; 3] {
    [
        Search {
            what: "file.grep, names of files that match",
            need: &RG,
            peer: &["--files-with-matches", "--hidden", "--glob", "!.git", r"needle-\d+"],
            tool: "file.grep",
            args: json!({"pattern": r"needle-\d+", "output_mode": "files_with_matches", "head_limit": 100_000}),
            found: paths,
        },
        Search {
            what: "file.grep, lines that match",
            need: &RG,
            peer: &["--line-number", "--hidden", "--glob", "!.git", r"needle-\d+"],
            tool: "file.grep",
            args: json!({"pattern": r"needle-\d+", "output_mode": "content", "head_limit": 100_000}),
            found: needles,
        },
        Search {
            what: "file.glob",
            need: &FD,
            peer: &["--hidden", "--exclude", ".git", "--type", "f", "--glob", "*.toml"],
            tool: "file.glob",
            args: json!({"pattern": "**/*.toml"}),
            found: paths,
        },
    ]
}

pub(super) fn rows(haft: &Haft) -> Result<Vec<Row>> {
    let dir = tree::forest()?;
    searches().iter().map(|search| search.row(haft, &dir)).collect()
}

impl Search {
    fn row(&self, haft: &Haft, dir: &Path) -> Result<Row> {
        let program = match self.need.meet() {
            Ok(program) => program,
            Err(sentence) => return Ok(Row::missing(self.what, &sentence)),
        };
        let version = sh::capture(&mut sh::command(&program, &["--version"]))?;
        let version = version.lines().next().unwrap_or_default().split(" (").next().unwrap_or_default().to_owned();
        let mut peer = Command::new(&program);
        peer.args(self.peer).current_dir(dir);

        let theirs = (self.found)(dir, &sh::capture(&mut peer)?);
        let ours = (self.found)(dir, &haft.whole(dir, self.tool, &self.args)?);
        same(self.what, &theirs, &ours)?;
        println!("{}: both find the same {} things", self.what, ours.len());
        let (theirs, ours) = interleaved(ROUNDS, &mut peer, &mut haft.call(dir, self.tool, &self.args))?;
        Ok(Row::beside(self.what, (&version, &theirs), &ours, RATIO))
    }
}

/// Lines that name files of the tree, with or without its root, and whatever columns follow.
fn paths(dir: &Path, text: &str) -> BTreeSet<String> {
    let root = format!("{}/", dir.display());
    let names = text.lines().map(|line| line.split("  ").next().unwrap_or_default());
    let names = names.map(|line| line.strip_prefix(&root).or_else(|| line.strip_prefix("./")).unwrap_or(line));
    names.filter(|name| !name.is_empty() && dir.join(name).is_file()).map(str::to_owned).collect()
}

/// The needles of matching lines. Each is unique, so no format of lines has to be understood.
fn needles(_: &Path, text: &str) -> BTreeSet<String> {
    let after = text.split("needle-").skip(1);
    after.map(|after| after.chars().take_while(char::is_ascii_digit).collect()).collect()
}

fn same(what: &str, theirs: &BTreeSet<String>, ours: &BTreeSet<String>) -> Result<()> {
    if theirs.is_empty() {
        bail!("{what}: the peer finds nothing, so there is nothing to compare");
    }
    if theirs != ours {
        let some = |a: &BTreeSet<String>, b| a.difference(b).take(3).cloned().collect::<Vec<_>>().join(", ");
        let (only_theirs, only_ours) = (some(theirs, ours), some(ours, theirs));
        let (many, few) = (theirs.len(), ours.len());
        bail!("{what}: the peer finds {many}, haft {few}; only the peer: {only_theirs}; only haft: {only_ours}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_compared_whatever_their_form() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
        let said = format!("Found 1 file\n{}/Cargo.toml\n", dir.display());
        assert_eq!(paths(dir, &said), paths(dir, "./Cargo.toml\nsrc\n"));
        assert_eq!(paths(dir, &said), paths(dir, "Cargo.toml  1.1KB\n"));
        assert_eq!(needles(dir, "a:3:x needle-000012 y"), needles(dir, "  3 | x >>needle-000012<< y"));
    }

    #[test]
    fn a_difference_is_named() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let error = same("x", &set(&["a", "b"]), &set(&["b", "c"])).unwrap_err().to_string();
        assert_eq!(error, "x: the peer finds 2, haft 2; only the peer: a; only haft: c");
        assert!(same("x", &set(&[]), &set(&[])).is_err());
        assert!(same("x", &set(&["a"]), &set(&["a"])).is_ok());
    }
}
