//! What it costs to be able to take a command back: the same command as a whole call of shell.exec on a
//! view, whose changes are told, kept with their undo and applied; as the same call that writes straight
//! into the tree, where nothing can be taken back; by the library on a view that is thrown away; and in a
//! shell of its own, without haft.

use super::race::{Contestant, Times, race};
use super::start::{finish, layered};
use super::views::some_files;
use super::{Ground, Result};
use haft::{Call, Haft, Halt, Settings, Store, Workspace, Yes, new_call_id};
use serde_json::json;
use std::cell::Cell;
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 40;

/// A command of some turn.
type Job = Box<dyn Fn(u32) -> String>;

/// The two jobs. Both end with a hundred changed files; the second looks through the whole tree first, as
/// one does who does not know yet which files these are.
fn jobs(tree: &Path) -> Result<[(&'static str, Job); 2]> {
    let files = some_files(tree)?.join(" ");
    // The first word of each file becomes one that it was not before, so that every turn changes all.
    let edit = move |turn: u32| format!("sed -i '1s/^[^ ]*/turn{turn}/' {files}");
    let search = edit.clone();
    Ok([
        ("edit", Box::new(edit)),
        ("search", Box::new(move |turn| format!("grep -rlF needle- . > /dev/null && {}", search(turn)))),
    ])
}

pub(crate) fn times(ground: &Ground, tree: &Path) -> Result<Times> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let (captured, direct) = (layer(ground, tree, false)?, layer(ground, tree, true)?);
    let call = |haft: &Haft, command: String| -> Result<()> {
        let call = Call::new(new_call_id(), "shell.exec", json!({"command": command}));
        let outcome = runtime.block_on(haft.call(call, &Yes, &Halt::new()));
        if outcome.success { Ok(()) } else { Err(format!("{outcome:?}").into()) }
    };
    let turn = Cell::new(10_000);
    let next = || turn.replace(turn.get() + 1);
    let mut times = Times::new();
    for (name, command) in jobs(tree)? {
        let bare = |command: String| finish(Command::new("/bin/bash").args(["-c", &command]).current_dir(tree));
        let view = |command: String| layered(tree, &ground.data, &["/bin/bash", "-c", &command]).map(drop);
        times.extend(race(
            ROUNDS,
            vec![
                Contestant::new(&format!("{name}_bare"), || bare(command(next()))),
                Contestant::new(&format!("{name}_direct"), || call(&direct, command(next()))),
                Contestant::new(&format!("{name}_view"), || view(command(next()))),
                Contestant::new(&format!("{name}_captured"), || call(&captured, command(next()))),
            ],
        )?);
    }
    Ok(times)
}

fn layer(ground: &Ground, tree: &Path, direct: bool) -> Result<Haft> {
    let data = ground.data.join(if direct { "haft-direct" } else { "haft-captured" });
    std::fs::create_dir_all(&data)?;
    let mut settings = Settings::new(&data);
    settings.terms.direct = direct;
    Ok(Haft::new(Workspace::new(tree)?, Store::open(&data.join("haft.db"))?, settings))
}
