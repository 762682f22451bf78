//! What confinement costs. The library measures itself and everybody beside it in one process, so that all
//! take turns; this brings the trees and the peers, and judges.

use super::haft::Haft;
use super::peers::{Peer, peers};
use super::report::{Row, grid, table, times};
use super::samples::Samples;
use super::tree;
use crate::{needs, sh};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

const START: f64 = 6.0;
const BESIDE_BWRAP: f64 = 0.45;
const OPEN_MS: f64 = 15.0;
const DIFF: f64 = 1.5;
const CAPTURE: f64 = 1.3;

const PROSE: &str = "\
Each starts `true` with the system's programs and some files of `/etc` to read, the project to write, no network,
and haft's default bounds. *Direct* writes to the real project; *layered* to a copy-on-write view of it, with
making the view, telling what changed on it, and removing it. bubblewrap gets the same files, namespaces and
dropped capabilities, but has no Landlock, seccomp filter, bounds or watch.

The edit is `sed -i` of the first line of 100 named files in 10 directories. The search and edit is `grep -rlF`
over the whole tree of 56 000 files first. A call of shell.exec includes decision, journal, telling what changed,
keeping the undo on disk, and applying; *direct* is the same call that writes straight into the tree and cannot
be taken back.

";

/// The section of `BENCHMARKS.md`.
pub(super) fn body(haft: &Haft) -> Result<String> {
    let project = tree::project("bench-confine")?;
    let (small, tree) = tree::changing_forests()?;
    let peers = peers(haft, &project)?;
    needs::confess(&peers.missing);
    let with = json!({
        "project": project, "small": small, "tree": tree,
        "peers": peers.there.iter().map(Peer::json).collect::<Vec<_>>(),
    });
    let bench = ["bench", "--package", "haft", "--bench", "sandbox", "--", "--with", &with.to_string()];
    let said = sh::capture(&mut sh::cargo(&bench))?;
    let object = said.lines().rev().find(|line| line.starts_with('{')).context("the benchmark prints no JSON")?;
    let numbers = Numbers(serde_json::from_str(object)?);
    let mut text = PROSE.to_owned();
    text.push_str(&table(&rows(&numbers)?));
    text.push_str("\nThe start of `true`, by whom:\n\n");
    text.push_str(&starts(&numbers, &peers.there)?);
    for sentence in &peers.missing {
        let _ = writeln!(text, "\n> {sentence}.");
    }
    Ok(text)
}

/// For each contestant, the microseconds of each turn.
struct Numbers(Value);

impl Numbers {
    fn of(&self, name: &str) -> Result<Samples> {
        let turns = self.0[name].as_array().with_context(|| format!("the benchmark does not say {name}"))?;
        let turns = turns.iter().filter_map(Value::as_f64).map(|micros| Duration::from_secs_f64(micros / 1e6));
        Ok(Samples::new(turns.collect()))
    }
}

fn rows(numbers: &Numbers) -> Result<Vec<Row>> {
    let of = |name: &str| numbers.of(name);
    let beside = |what: &str, (shown, peer): (&str, &str), ours: &str, most: f64| -> Result<Row> {
        Ok(Row::beside(what, (shown, &of(peer)?), &of(ours)?, most))
    };
    let compared = |what: &str, (shown, peer): (&str, &str), ours: &str| -> Result<Row> {
        Ok(Row::compared(what, (shown, &of(peer)?), &of(ours)?))
    };
    let plain = ("posix_spawn", "plain");
    let mut rows = vec![
        beside("a confined `true` by the library, direct", plain, "direct", START)?,
        beside("the same, layered", plain, "layered", START)?,
        beside("the same from a process that holds 1 GB, direct", plain, "large_direct", START)?,
        compared("the same beside a fork of that process", ("fork, exec", "large_fork"), "large_direct")?,
    ];
    if of("bwrap").is_ok() {
        let bwrap = ("bwrap", "bwrap");
        rows.push(beside("a confined `true` by the library, direct", bwrap, "direct", BESIDE_BWRAP)?);
        rows.push(beside("the same, layered", bwrap, "layered", BESIDE_BWRAP)?);
        rows.push(compared("`haft confine --direct -- true` as a process", bwrap, "confine")?);
        rows.push(compared("`haft confine -- true` as a process, layered", bwrap, "confine_layered")?);
    } else {
        rows.push(Row::missing("a confined `true` beside bubblewrap", "there is none"));
    }
    let (direct, layered) = (of("tree_direct")?, of("tree_layered")?);
    let open = (layered.p50().as_secs_f64() - direct.p50().as_secs_f64()) * 1e3;
    let open = Row::within("a view of 56 000 files: what it adds to a run", open, "ms", OPEN_MS);
    rows.push(open.peer(format!("direct: {}", times(&direct)), layered.ratio(&direct)));
    rows.push(beside("telling 100 changes in 56 000 files", ("in 1 120 files", "diff_small"), "diff_tree", DIFF)?);
    for (job, what) in [("edit", "an edit of 100 files of 56 000"), ("search", "a search and edit of the same")] {
        let [bare, direct, view, captured] = ["bare", "direct", "view", "captured"].map(|how| format!("{job}_{how}"));
        let call = format!("{what}, as a call that can be undone");
        rows.push(beside(&call, ("direct call", &direct), &captured, CAPTURE)?);
        rows.push(compared(&call, ("bash, not confined", &bare), &captured)?);
        let thrown = format!("{what}, by the library on a view that is thrown away");
        rows.push(compared(&thrown, ("direct call", &direct), &view)?);
    }
    Ok(rows)
}

fn starts(numbers: &Numbers, peers: &[Peer]) -> Result<String> {
    let plain = numbers.of("plain")?;
    let own = [("plain", "plain"), ("direct", "haft, library, direct"), ("layered", "haft, library, layered")];
    let own = own.map(|(name, shown)| (name, shown.to_owned()));
    let all = own.into_iter().chain(peers.iter().map(|peer| (peer.name, peer.shown.clone())));
    let mut found = Vec::new();
    for (name, shown) in all {
        let turns = numbers.of(name)?;
        found.push((turns.p50(), [shown, times(&turns), format!("{:.1}×", turns.ratio(&plain))]));
    }
    found.sort_by_key(|(time, _)| *time);
    let cells = found.iter().map(|(_, [shown, time, ratio])| [shown.as_str(), time, ratio]);
    Ok(grid(&std::iter::once(["by", "time", "of plain"]).chain(cells).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(names: &[&str]) -> Numbers {
        Numbers(Value::Object(names.iter().map(|name| ((*name).to_owned(), json!([1000.0, 1000.0]))).collect()))
    }

    #[test]
    fn every_number_is_needed_but_those_of_peers() {
        let mut names = vec!["plain", "direct", "layered", "large_direct", "large_fork", "tree_direct", "tree_layered"];
        names.extend(["diff_small", "diff_tree", "edit_bare", "edit_direct", "edit_view", "edit_captured"]);
        assert!(rows(&numbers(&names)).is_err());
        names.extend(["search_bare", "search_direct", "search_view", "search_captured"]);
        assert_eq!(rows(&numbers(&names)).unwrap().len(), 13);
        names.extend(["bwrap", "confine", "confine_layered"]);
        assert_eq!(rows(&numbers(&names)).unwrap().len(), 16);
    }

    #[test]
    fn starts_are_in_order() {
        let mut numbers = numbers(&["plain", "direct", "layered"]);
        numbers.0["layered"] = json!([500.0]);
        let text = starts(&numbers, &[]).unwrap();
        let by: Vec<&str> = text.lines().skip(2).filter_map(|line| line.split('|').nth(1)).map(str::trim).collect();
        assert_eq!(by, ["haft, library, layered", "plain", "haft, library, direct"]);
    }
}
