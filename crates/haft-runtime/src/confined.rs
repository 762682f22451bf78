//! Programs that run confined: on layers where the machine has them, so that what they did to files comes
//! back as changes, to be shown, kept, discarded and undone like those of any other tool.

pub mod command;
pub mod environment;
pub mod filter;
mod git_guard;
pub mod guard;
pub mod guest;
pub mod machine;
pub mod resident;
pub mod terms;

pub use command::{SHELLS, Shell};
pub use git_guard::GitRefused;
pub use guard::Guard;
pub use guest::Guest;
pub use resident::{Errand, Pipes, Resident};
pub use terms::{Require, Terms};

use crate::tool::Staging;
use haft_core::CallError;
use haft_core::change::Change;
use haft_core::error::ErrorKind;
use haft_sandbox::layer::{Diffed, Layer, LayerError, at, tree};
use haft_sandbox::net::Contact;
use haft_sandbox::watch::{Hit, Watch, Watched, watch};
use haft_sandbox::{Backend, Network, Plan, Program, SandboxError, Standing, Stdio, Writes};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The port at which names are looked up.
const DNS: u16 = 53;

/// What is to be run, and under what.
pub struct Job<'j> {
    /// Who enforces it.
    pub backend: &'j dyn Backend,
    /// What is enforced.
    pub plan: &'j Plan,
    /// What runs.
    pub program: &'j Program,
    /// Where its layers are, if it has any.
    pub staging: Option<Arc<Staging>>,
    /// Told once the program runs.
    pub begun: &'j dyn Fn(),
}

/// What came of a run.
pub struct Ran {
    /// How it ended, and what it printed.
    pub watched: Watched,
    /// Whom it contacted.
    pub contacts: Vec<Contact>,
    /// What was in force.
    pub standing: Standing,
    /// What it did to files; none if it wrote straight into them.
    pub diffed: Option<Diffed>,
    /// Changes of repositories that are not kept, once [`Self::take_git_refusals`] has looked for them.
    pub git_refused: Vec<GitRefused>,
    /// Whether there was any way out.
    pub has_network: bool,
    /// What the changes place, which has to live as long as they do.
    pub staging: Option<Arc<Staging>>,
}

/// Runs a program to its end. Nothing of what it does on layers has happened yet when this returns.
pub fn run(job: Job<'_>, stdio: Stdio, how: Watch<'_>) -> Result<Ran, SandboxError> {
    let layers = layers(job.plan)?;
    let mut run = job.backend.start(job.plan, job.program, stdio)?;
    (job.begun)();
    let mut watched = watch(&mut *run, how)?;
    let contacts = run.contacts();
    // Whatever it started is gone only when the run is.
    drop(run);
    let diffed = if layers.is_empty() { None } else { Some(diff(&layers)?) };
    // The watch counts what living processes write; what is there in the end counts for all.
    let over = |diffed: &Diffed| job.plan.bounds().disk.is_some_and(|bound| weight(&diffed.changes) > bound);
    if watched.hit.is_none() && diffed.as_ref().is_some_and(over) {
        watched.hit = Some(Hit::Disk);
    }
    Ok(Ran {
        watched,
        contacts,
        standing: job.plan.standing.clone(),
        diffed,
        git_refused: Vec::new(),
        has_network: job.plan.confinement.network != Network::None,
        staging: job.staging,
    })
}

/// How many bytes changes would place.
fn weight(changes: &[Change]) -> u64 {
    let mut bytes = 0;
    for change in changes {
        if let Change::Place { staged, after, .. } = change {
            if !after.is_tree() {
                bytes += std::fs::symlink_metadata(staged).map_or(0, |meta| meta.len());
                continue;
            }
            // What cannot be looked at is found when it is placed.
            let _ = tree::each(staged, &mut |entry| {
                bytes += at::size(entry.stat);
                Ok(())
            });
        }
    }
    bytes
}

/// Makes the layers of all views, and returns those whose changes count.
fn layers(plan: &Plan) -> Result<Vec<Layer>, SandboxError> {
    let make = |dir: &Path, root: &Path| {
        let layer = Layer::create(dir, root);
        layer.map_err(|error| SandboxError::Step { step: format!("make a layer for {}", root.display()), error })
    };
    for (root, dir) in &plan.confinement.passing {
        make(dir, root)?;
    }
    let Writes::Layered(dir) = &plan.confinement.writes else { return Ok(Vec::new()) };
    let numbered = plan.confinement.write.iter().enumerate();
    numbered.map(|(number, root)| make(&dir.join(number.to_string()), root)).collect()
}

fn diff(layers: &[Layer]) -> Result<Diffed, SandboxError> {
    let mut all = Diffed::default();
    for layer in layers {
        let one = layer.diff().map_err(|error: LayerError| SandboxError::Unenforceable(error.to_string()))?;
        all.changes.extend(one.changes);
        all.refused.extend(one.refused);
        all.conflicts.extend(one.conflicts);
        all.hard_links.extend(one.hard_links);
    }
    Ok(all)
}

impl Ran {
    /// Takes out those changes that would make git run something. [`Self::keepable`] does so, too; whoever tells of the changes
    /// before does it first.
    pub fn take_git_refusals(&mut self, guard: &Guard) {
        if let Some(diffed) = &mut self.diffed {
            self.git_refused.extend(guard.take_git_refusals(&mut diffed.changes));
        }
    }

    /// The changes that may be kept, or why none may.
    pub fn keepable(&mut self, guard: &Guard, shown: &dyn Fn(&Path) -> String) -> Result<Vec<Change>, CallError> {
        self.take_git_refusals(guard);
        let Some(diffed) = &mut self.diffed else { return Ok(Vec::new()) };
        if let Some((path, why)) = guard.first(&diffed.changes) {
            let message = format!("it wrote {}, which is protected: {why}; nothing was kept", shown(&path));
            return Err(CallError::new(ErrorKind::Denied, message).hint(
                "name that very place as writable if it is meant to be changed; an agent client's settings are \
                     changed by file.write and file.edit, which ask",
            ));
        }
        if !diffed.conflicts.is_empty() {
            let list: Vec<String> = diffed.conflicts.iter().map(|path| shown(path)).collect();
            let message = format!("somebody else changed {} while it ran; nothing was kept", list.join(", "));
            return Err(CallError::conflict(message).hint("run it again"));
        }
        Ok(std::mem::take(&mut diffed.changes))
    }

    /// What a person should know about what is and is not kept.
    pub fn warnings(&self, shown: &dyn Fn(&Path) -> String) -> Vec<String> {
        let Some(diffed) = &self.diffed else { return Vec::new() };
        let git = self.git_refused.iter().map(|GitRefused { path, why }| format!("{} is not kept: {why}", shown(path)));
        diffed.refused.iter().map(|(path, why)| format!("{} {why}", shown(path))).chain(git).collect()
    }

    /// What was refused on the way out, in a sentence each.
    pub fn refusals(&self) -> Vec<String> {
        let refused = self.contacts.iter().filter(|contact| !contact.allowed);
        if !self.has_network {
            return refused.map(without_network).collect::<BTreeSet<_>>().into_iter().collect();
        }
        refused
            .map(|contact| {
                let why = contact.reason.as_deref().unwrap_or("it is not on the list");
                let port = if contact.port == 0 { String::new() } else { format!(":{}", contact.port) };
                format!("{}{port} was refused: {why}", contact.host)
            })
            .collect()
    }

    /// The part of it that a record keeps.
    pub fn record(&self) -> Value {
        json!({
            "level": self.standing.level,
            "hosts": self.contacts,
            "limit_hit": self.watched.hit,
            "end": self.watched.end,
        })
    }
}

/// What was refused because there is no network at all.
fn without_network(contact: &Contact) -> String {
    let what = match contact.port {
        DNS => "a name was looked up".to_owned(),
        0 => format!("{} was asked for", contact.host),
        port => format!("{}:{port} was asked for", contact.host),
    };
    format!("{what}, and commands have no network here: `permissions.network` allows hosts")
}

/// A confinement's failure as the caller hears it.
pub fn explain(error: &SandboxError) -> CallError {
    match error {
        SandboxError::Unclear(_) => CallError::invalid(error.to_string()),
        SandboxError::Unenforceable(_) => {
            CallError::new(ErrorKind::Confinement, error.to_string()).hint("`haft doctor` shows what is in force here")
        }
        SandboxError::Step { .. } => CallError::new(ErrorKind::Confinement, error.to_string())
            .hint("nothing ran; `haft doctor` shows what works here and how to mend what does not"),
        SandboxError::Program { error: cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => {
            CallError::not_found(error.to_string()).hint("is it installed, and in a directory that may be read?")
        }
        SandboxError::Program { .. } => CallError::failed(error.to_string()),
    }
}
