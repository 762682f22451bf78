//! `haft agents`: the roles that there are, and the worktrees that are kept.

use super::call::{consenting, watched};
use crate::app::{App, Failure};
use crate::cli::{AgentsAction, WorktreesAction, WorktreesRemove};
use crate::input::duration_ms;
use crate::style::{self, BOLD, CARE, FAINT, GOOD, NAME, paint};
use crate::talks::meant;
use crate::time;
use haft_core::CallError;
use haft_core::preview::inert;
use haft_runtime::agent::roles::{self, Filed};
use haft_runtime::agent::worktrees::{Holds, Worktree};
use haft_runtime::shelf::Standing;
use haft_runtime::{Halt, now_ms};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many of a worktree's files are named.
const NAMED: usize = 5;

/// Does one thing about agents.
pub(super) fn run(app: &App, action: Option<AgentsAction>) -> Result<u8, Failure> {
    match action.unwrap_or(AgentsAction::List) {
        AgentsAction::List => list(app),
        AgentsAction::Worktrees(args) => match args.action.unwrap_or(WorktreesAction::List) {
            WorktreesAction::List => worktrees(app),
            WorktreesAction::Remove(which) => remove(app, &which),
        },
    }
}

/// A role as it is listed.
struct Listed {
    name: String,
    about: String,
    /// Whose it is.
    of: &'static str,
    /// Why it does not count.
    flaw: Option<String>,
    source: Option<String>,
}

fn list(app: &App) -> Result<u8, Failure> {
    let standings = app.block_on(roles::standings(app.store(), app.haft.workspace()))?;
    let files = roles::filed(app.haft.workspace());
    // Of those that count the last of a name does; one that does not count takes nobody's place.
    let mut all: BTreeMap<(String, bool), Listed> = BTreeMap::new();
    let mut add = |listed: Listed| drop(all.insert((listed.name.clone(), listed.flaw.is_some()), listed));
    for (name, role) in roles::built_in() {
        add(Listed { name, about: role.description, of: "haft", flaw: None, source: None });
    }
    for file in &files {
        let open = standings.get(&file.name).filter(|standing| !standing.counts());
        let unseen = |standing: &Standing| {
            let changed = *standing == Standing::Changed;
            if changed {
                "it changed since it was accepted: `haft trust`"
            } else {
                "nobody has accepted it: `haft trust`"
            }
        };
        add(filed("project", file, open.map(|standing| unseen(standing).to_owned())));
    }
    for file in &roles::filed_in(&app.agents_dir) {
        add(filed("user", file, None));
    }
    if app.json {
        let told = |listed: &Listed| {
            json!({"name": listed.name, "description": listed.about, "of": listed.of, "counts": listed.flaw.is_none(),
                "why": listed.flaw, "source": listed.source})
        };
        style::json(&json!({ "roles": all.values().map(told).collect::<Vec<_>>() }));
        return Ok(0);
    }
    let wide = all.keys().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    for listed in all.values() {
        let name = paint(NAME, format!("{:<wide$}", inert(&listed.name)));
        let flaw = listed.flaw.as_ref().map(|flaw| format!("  {}", paint(CARE, inert(flaw)))).unwrap_or_default();
        style::out(&format!("{name}  {}  {}{flaw}", paint(FAINT, format!("{:<7}", listed.of)), inert(&listed.about)));
    }
    Ok(0)
}

fn filed(of: &'static str, file: &Filed, open: Option<String>) -> Listed {
    let (about, flaw) = match &file.says {
        Ok(says) => (says.description.clone(), open),
        Err(misfits) => {
            let first = misfits.first().map(|misfit| format!("line {}: {}", misfit.line, misfit.fault));
            (String::new(), Some(first.unwrap_or_else(|| "it cannot be read".to_owned())))
        }
    };
    Listed { name: file.name.clone(), about, of, flaw, source: Some(file.path.display().to_string()) }
}

fn worktrees(app: &App) -> Result<u8, Failure> {
    let kept = app.block_on(app.haft.worktrees())?;
    if app.json {
        style::json(&json!({ "worktrees": kept }));
        return Ok(0);
    }
    if kept.is_empty() {
        style::note("no worktree is kept");
    }
    kept.iter().for_each(show);
    Ok(0)
}

fn show(tree: &Worktree) {
    let state = match tree.holds {
        _ if tree.running => paint(CARE, "its agent works"),
        Holds::Merged => paint(GOOD, "merged"),
        Holds::Unmerged => paint(CARE, "not merged"),
        Holds::Unknown => paint(CARE, "nobody knows what it was made from"),
    };
    let made = tree.made_ms.map(time::shown).unwrap_or_default();
    let of = tree.project.as_ref().map(|project| format!("of {}", project.display())).unwrap_or_default();
    style::out(&format!("{}  {}  {state}  {}", paint(BOLD, inert(&tree.id)), paint(FAINT, made), inert(&of)));
    style::out(&format!("    {}", paint(FAINT, inert(&tree.path.display().to_string()))));
    for what in tree.unmerged.iter().take(NAMED) {
        style::out(&format!("    {}", inert(what)));
    }
    if tree.unmerged.len() > NAMED {
        style::out(&format!("    … {} more", tree.unmerged.len() - NAMED));
    }
}

fn remove(app: &App, which: &WorktreesRemove) -> Result<u8, Failure> {
    let kept = app.block_on(app.haft.worktrees())?;
    let chosen = chosen(&kept, which)?;
    let (mut removed, mut left): (Vec<&str>, Vec<Value>) = (Vec::new(), Vec::new());
    for (tree, why) in chosen {
        let why = match why {
            Some(why) => Some(why.to_owned()),
            None => discard(app, &tree.id).err().map(|error| error.message),
        };
        match why {
            None => removed.push(&tree.id),
            Some(why) => left.push(json!({"id": tree.id, "why": why})),
        }
    }
    if app.json {
        style::json(&json!({ "removed": removed, "left": left }));
    } else {
        for id in &removed {
            style::note(&format!("removed {}", inert(id)));
        }
        for one in &left {
            let word = |name: &str| one[name].as_str().unwrap_or_default();
            style::warn(&format!("{} stays: {}", word("id"), word("why")));
        }
        if removed.is_empty() && left.is_empty() {
            style::note("there is nothing to remove");
        }
    }
    // What was named should be gone; what was not may stay.
    Ok(u8::from(!which.ids.is_empty() && !left.is_empty()))
}

/// What is meant, each with why it stays all the same.
fn chosen<'k>(
    kept: &'k [Worktree],
    which: &WorktreesRemove,
) -> Result<Vec<(&'k Worktree, Option<&'static str>)>, CallError> {
    let works = |tree: &Worktree| (tree.running && !which.force).then_some("its agent seems to work still; --force");
    if !which.ids.is_empty() {
        let all: Vec<&str> = kept.iter().map(|tree| tree.id.as_str()).collect();
        let mut chosen = Vec::new();
        for id in &which.ids {
            let id = meant(id, &all, "worktree", "haft agents worktrees")?;
            chosen.extend(kept.iter().filter(|tree| tree.id == id).map(|tree| (tree, works(tree))));
        }
        return Ok(chosen);
    }
    if !which.merged && which.older_than.is_none() {
        return Err(CallError::invalid("nothing says which worktrees are to be removed")
            .hint("name them, or say --merged or --older-than TIME; `haft agents worktrees` lists them"));
    }
    let age = which.older_than.as_deref().map(|text| {
        duration_ms(text).ok_or_else(|| {
            CallError::invalid(format!("`{}` is not a length of time", inert(text))).hint("write 12h or 7d")
        })
    });
    let before = age.transpose()?.map(|age| now_ms().saturating_sub(age));
    let old = |tree: &&Worktree| before.is_none_or(|before| tree.made_ms.is_none_or(|made| made <= before));
    let fits = |tree: &&Worktree| !which.merged || tree.holds == Holds::Merged;
    let holds = |tree: &Worktree| match tree.holds {
        Holds::Unmerged | Holds::Unknown if !which.force => {
            Some("it has changes that are in no project; name it, or --force")
        }
        _ => None,
    };
    Ok(kept.iter().filter(old).filter(fits).map(|tree| (tree, works(tree).or_else(|| holds(tree)))).collect())
}

/// Throws one away, by a call, so that it is recorded. Whoever types it has said yes.
fn discard(app: &App, id: &str) -> Result<(), CallError> {
    let call = app.call("agent.control", json!({"action": "discard", "id": id}), Some("haft"))?;
    let halt = Halt::new();
    let outcome = app.block_on(async {
        let outcome = Box::pin(watched(app, app.haft.call(call, &*consenting(), &halt), &halt)).await;
        app.haft.flush().await.map(|()| outcome)
    })?;
    outcome.error.map_or(Ok(()), Err)
}
