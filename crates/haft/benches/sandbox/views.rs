//! A copy-on-write view of fifty thousand files, and telling what changed on one.

use super::race::{Contestant, Times, race};
use super::start::{direct, layered};
use super::{Ground, Result};
use haft::new_call_id;
use haft_runtime::tool::Staging;
use haft_sandbox::layer::Layer;
use haft_sandbox::watch::{Watch, nothing};
use haft_sandbox::{Confinement, Program, Stdio, Writes, backend};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const OPENINGS: usize = 200;
const DIFFS: usize = 60;
/// How many files are changed, and in how many directories.
const CHANGED: usize = 100;
const DIRS: usize = 10;

pub(crate) fn times(ground: &Ground, small: &Path, tree: &Path) -> Result<Times> {
    let mut times = race(
        OPENINGS,
        vec![
            Contestant::new("tree_direct", || direct(tree, &["/bin/true"]).map(drop)),
            Contestant::new("tree_layered", || layered(tree, &ground.data, &["/bin/true"]).map(drop)),
        ],
    )?;
    times.extend(race(
        DIFFS,
        vec![
            Contestant::timed("diff_small", || diff(small, &ground.data)),
            Contestant::timed("diff_tree", || diff(tree, &ground.data)),
        ],
    )?);
    Ok(times)
}

/// A hundred files of a tree, in ten directories, from its top.
pub(crate) fn some_files(tree: &Path) -> Result<Vec<String>> {
    let mut some = Vec::new();
    for number in 0..DIRS {
        let dir = PathBuf::from(format!("family-00/genus-{number:02}"));
        let mut names = Vec::new();
        for entry in std::fs::read_dir(tree.join(&dir))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.retain(|name| name.starts_with("species-"));
        names.sort_unstable();
        some.extend(names.into_iter().take(CHANGED / DIRS).map(|name| format!("{}/{name}", dir.display())));
    }
    if some.len() == CHANGED { Ok(some) } else { Err("the tree is not as expected".into()) }
}

/// Has a command change, remove and make files on a fresh view, and measures only telling what it did.
fn diff(tree: &Path, data: &Path) -> Result<Duration> {
    let files = some_files(tree)?;
    let (removed, edited) = files.split_at(CHANGED / 5);
    let (made, edited) = edited.split_at(CHANGED / 5);
    let made: Vec<String> = made.iter().map(|file| format!("{file}.new")).collect();
    let script = format!(
        "sed -i 1s/^/changed/ {} && rm {} && for file in {}; do echo new > $file; done",
        edited.join(" "),
        removed.join(" "),
        made.join(" ")
    );
    let staging = Staging::create(data, &new_call_id())?;
    let layer = Layer::create(&staging.path().join("0"), tree)?;
    change(tree, staging.path(), &script)?;
    let begun = Instant::now();
    let found = layer.diff()?;
    let took = begun.elapsed();
    match found.changes.len() {
        CHANGED => Ok(took),
        other => Err(format!("{other} changes were found instead of {CHANGED}").into()),
    }
}

/// Runs a script on layers that are there already.
fn change(tree: &Path, layers: &Path, script: &str) -> Result<()> {
    let writes = Writes::Layered(layers.to_owned());
    let wanted = Confinement { write: vec![tree.to_owned()], writes, ..Confinement::default() };
    let plan = backend().plan(wanted)?;
    let program = Program {
        shares_job: false,
        argv: ["/bin/sh", "-c", script].map(Into::into).to_vec(),
        env: super::start::ENV.map(|(name, value)| (name.into(), value.into())).to_vec(),
        cwd: tree.to_owned(),
    };
    let stdio = Stdio { stdin: nothing()?, stdout: nothing()?, stderr: nothing()? };
    let mut run = backend().start(&plan, &program, stdio)?;
    let how = Watch::unattended(plan.bounds());
    match haft_sandbox::watch::watch(&mut *run, how)?.end.code() {
        0 => Ok(()),
        code => Err(format!("the script ended with {code}").into()),
    }
}
