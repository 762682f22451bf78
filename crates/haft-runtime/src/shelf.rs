//! The shelf: tools that are files, found in folders, read, followed, and accepted.
//!
//! A process that makes one call reads one manifest, when that is called (`Shelf::ready`). One that lists tools reads
//! all of them ([`Shelf::load_all`]); one that stays follows them ([`Shelf::follow`]). In each case a file that cannot be
//! read keeps the last good version of its tool, and never keeps another tool from being found.

mod accept;
mod around;
mod calls;
mod command;
mod copies;
mod digests;
mod find;
mod http;
mod interpreter;
mod interpreters;
mod inventory;
pub(crate) mod made;
mod pages;
pub(crate) mod places;
pub(crate) mod program;
mod python;
mod raised;
mod standing;
mod started;
mod tree;
mod venv;

pub use accept::{Offer, Refused};
pub use around::{Spot, around};
pub use interpreters::Interpreters;
pub use pages::Page;
pub(crate) use pages::difference;
pub use standing::Standing;

use crate::back::DEPTH_MAX;
use crate::registry::{Registry, Spoken, is_caller};
use crate::tool::Tool;
use find::{Before, Content, Found, Good};
pub use haft_core::manifest::lint::Whose;
use haft_core::manifest::{Exec, Manifest, Step};
use haft_core::{CallError, ToolName};
use haft_sandbox::roots::followed;
use haft_store::{Pin, PinsAsOf, Store};
use made::Made;
use serde::Serialize;
use serde_json::Value;
use standing::Accepted;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many tools are looked at to find the servers that one of them needs.
const CALLED_MAX: usize = 100;
/// How often a process that stays looks whether something has changed; less often, if looking takes long.
const EVERY: Duration = Duration::from_secs(1);
const SHARE: u32 = 50;

/// The tool that a step calls, also by way of another.
fn meant(step: &Step) -> String {
    let inner = is_caller(&step.tool).then(|| step.args.get("name").and_then(Value::as_str)).flatten();
    inner.unwrap_or(&step.tool).to_owned()
}

/// The tool of a manifest, for whoever vouches for it and registers it by hand. `dir` is where it lies.
pub fn tool(manifest: Manifest, dir: PathBuf) -> Result<Arc<dyn Tool>, CallError> {
    Ok(Arc::new(Made::new(Arc::new(manifest), dir, Whose::Project)?))
}

/// What a start of a project's tool would open that neither belongs to the machine nor lies in the tool's directory `dir`; or
/// why that cannot be known.
pub(crate) fn strange(root: &Path, dir: &Path, manifest: &Manifest) -> Result<Vec<PathBuf>, String> {
    let mut found = started::started(inventory::Subject { root, dir, manifest })?;
    found.retain(|path| !path.starts_with(dir));
    Ok(found)
}

/// Where tools are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The directory, with one directory a tool in it.
    pub path: PathBuf,
    /// Whose tools these are.
    pub whose: Whose,
}

/// Something worth knowing about a file or a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Which.
    pub file: PathBuf,
    /// What.
    pub message: String,
}

impl Note {
    fn new(file: &Path, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), message: message.into() }
    }
}

/// A tool on the shelf, as people are told about it.
#[derive(Debug, Clone, Serialize)]
pub struct Shelved {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: PathBuf,
    /// What it does; none if it never could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// How it stands.
    pub standing: Standing,
    /// What is wrong with the file as it stands, each with its line and column. The last good version is used, if there
    /// is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flaws: Vec<String>,
    /// The shipped tool that models are not told about, because they would call it by this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    /// What it says.
    #[serde(skip)]
    pub manifest: Option<Arc<Manifest>>,
}

impl Shelved {
    /// Its flaws as lines `file:line:column: path: message`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let file = self.file.display();
        self.flaws.iter().map(move |flaw| format!("{file}:{flaw}"))
    }
}

/// What is on the shelf.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The tools, by name.
    pub tools: Vec<Shelved>,
    /// What else is worth knowing: files that do not count, folders that cannot be read.
    pub notes: Vec<Note>,
}

impl Report {
    /// Everything that somebody should mend or know, a line each.
    pub fn warnings(&self) -> Vec<String> {
        let kept = |tool: &Shelved| if tool.manifest.is_some() { " (the last good version is used)" } else { "" };
        let broken = |tool: &Shelved| {
            let kept = kept(tool);
            tool.lines().map(move |line| format!("{line}{kept}")).collect::<Vec<_>>()
        };
        let noted = self.notes.iter().map(|note| format!("{}: {}", note.file.display(), note.message));
        self.tools.iter().flat_map(broken).chain(noted).collect()
    }
}

/// What is known of one tool.
struct Held {
    folder: usize,
    stamp: Option<crate::file_stamp::FileStamp>,
    /// The last good version.
    good: Option<Good>,
    accepted: Option<Arc<Accepted>>,
    flaws: Vec<String>,
    instead_of: Option<ToolName>,
}

#[derive(Default)]
struct State {
    held: BTreeMap<String, Held>,
    notes: Vec<Note>,
    /// What was accepted, as far as nothing else has been since.
    pins: Option<(PinsAsOf, Arc<Pins>)>,
}

/// What was accepted, by name.
type Pins = BTreeMap<String, Pin>;

/// The tools that are files.
pub struct Shelf {
    folders: Vec<Folder>,
    root: PathBuf,
    registry: Arc<Registry>,
    store: Store,
    state: Mutex<State>,
}

impl Shelf {
    /// A shelf over these folders, for the project at `root`. An earlier folder is stronger.
    pub fn new(folders: Vec<Folder>, root: &Path, registry: Arc<Registry>, store: Store) -> Self {
        Self { folders, root: root.to_owned(), registry, store, state: Mutex::default() }
    }

    /// Where it looks.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// Finds all tools and registers them, those that nobody accepted as well: they are listed and do not run.
    pub async fn load_all(&self) -> Result<(), CallError> {
        if self.folders.is_empty() {
            return Ok(());
        }
        let pins = self.pins().await?;
        let before = self.before();
        let folders = self.folders.clone();
        let surveyed = tokio::task::spawn_blocking(move || find::survey(&folders, &before)).await;
        let (found, notes) =
            surveyed.map_err(|crash| CallError::internal(format!("looking for tools crashed: {crash}")))?;
        let names: BTreeSet<String> = found.iter().map(|one| one.name.clone()).collect();
        self.state().notes = notes;
        let others = self.registry.spoken_otherwise();
        for one in found {
            let pin = pins.get(&one.name);
            self.settle(one, pin, &others);
        }
        let gone = self.state().held.keys().filter(|name| !names.contains(*name)).cloned().collect::<Vec<_>>();
        for name in &gone {
            self.drop_tool(name);
        }
        Ok(())
    }

    /// Makes sure that a call of this name meets the tool as its file has it now, and its standing as the store has it.
    /// Whatever is no tool's directory is not this shelf's business.
    pub(crate) async fn ready(&self, name: &str) -> Result<(), CallError> {
        if self.folders.is_empty() || !find::is_plain(name) || self.is_anothers(name) {
            return Ok(());
        }
        let Some(found) = find::one(&self.folders, name, &self.before_of(name)) else {
            self.drop_tool(name);
            return Ok(());
        };
        let pin = match self.folders[found.folder].whose {
            Whose::Own => None,
            Whose::Project => self.store.pin_of(&self.server(), name).await.map_err(crate::store_error)?,
        };
        self.settle(found, pin.as_ref(), &self.registry.spoken_otherwise());
        let state = self.state();
        match state.held.get(name) {
            Some(held) if held.good.is_none() => Err(self.broken(name, held)),
            _ => Ok(()),
        }
    }

    /// The tools that a tool calls, by name, for whoever has to meet their servers first.
    pub async fn calls_of(&self, name: &str) -> Vec<String> {
        let (mut all, mut left, mut seen) = (Vec::new(), vec![(name.to_owned(), 0)], BTreeSet::new());
        while let Some((name, depth)) = left.pop() {
            if !seen.insert(name.clone()) || seen.len() > CALLED_MAX {
                continue;
            }
            // Whether it can be read is said when it is called.
            let _ = self.ready(&name).await;
            let state = self.state();
            // What nobody accepted calls nobody, and no server is started for it.
            let counts = |held: &&Held| held.accepted.as_ref().is_none_or(|accepted| accepted.by_manifest().counts());
            let held = state.held.get(&name).filter(counts);
            let Some(good) = held.and_then(|held| held.good.as_ref()) else { continue };
            let called: Vec<String> = match &good.manifest.exec {
                Exec::Mcp(mcp) => vec![format!("mcp:{}:{}", mcp.server, mcp.tool)],
                Exec::Pipeline(pipeline) => pipeline.steps.iter().map(meant).collect(),
                _ => Vec::new(),
            };
            // What is deeper is not called.
            if depth < DEPTH_MAX {
                left.extend(called.iter().map(|tool| (tool.clone(), depth + 1)));
                all.extend(called);
            }
        }
        all
    }

    /// Looks again and again for what has changed, and tells what somebody should know. It never ends by itself.
    pub async fn follow(self: Arc<Self>, tell: impl Fn(&str) + Send) {
        let mut told: BTreeSet<String> = BTreeSet::new();
        loop {
            let begun = Instant::now();
            if let Err(error) = self.load_all().await {
                tell(&error.message);
            }
            let now: BTreeSet<String> = self.brief().warnings().into_iter().collect();
            now.difference(&told).for_each(|warning| tell(warning));
            told = now;
            tokio::time::sleep(EVERY.max(begun.elapsed() * SHARE)).await;
        }
    }

    /// What is on the shelf, each tool's files compared with what was accepted.
    pub fn report(&self) -> Report {
        self.reported(Accepted::standing)
    }

    /// The same by the manifests alone.
    fn brief(&self) -> Report {
        self.reported(Accepted::by_manifest)
    }

    fn reported(&self, judge: fn(&Accepted) -> Standing) -> Report {
        let state = self.state();
        let shelved = |(name, held): (&String, &Held)| {
            let standing = match (self.folders[held.folder].whose, &held.accepted) {
                (Whose::Own, _) => Standing::Own,
                (Whose::Project, Some(accepted)) => judge(accepted),
                (Whose::Project, None) => Standing::Untrusted,
            };
            // What does not count takes nobody's place.
            let instead_of = held.instead_of.as_ref().filter(|_| standing.counts());
            Shelved {
                name: name.clone(),
                file: self.file(held.folder, name),
                kind: held.good.as_ref().map(|good| good.manifest.kind.word()),
                standing,
                flaws: held.flaws.clone(),
                instead_of: instead_of.map(ToString::to_string),
                manifest: held.good.as_ref().map(|good| Arc::clone(&good.manifest)),
            }
        };
        Report { tools: state.held.iter().map(shelved).collect(), notes: state.notes.clone() }
    }

    /// One tool on the shelf.
    pub fn tool(&self, name: &str) -> Option<Shelved> {
        self.report().tools.into_iter().find(|tool| tool.name == name)
    }

    /// That a tool is not as its file has it now, because that cannot be read.
    pub(crate) fn unread(&self, name: &str) -> Option<String> {
        let state = self.state();
        let held = state.held.get(name).filter(|held| held.good.is_some())?;
        let first = held.flaws.first()?;
        let file = self.file(held.folder, name);
        Some(format!("{}:{first}; the last good version of it ran", file.display()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn before(&self) -> Before {
        self.state().held.iter().map(|(name, held)| (name.clone(), (held.folder, held.stamp))).collect()
    }

    fn before_of(&self, name: &str) -> Before {
        self.state().held.get(name).map(|held| (name.to_owned(), (held.folder, held.stamp))).into_iter().collect()
    }

    fn file(&self, folder: usize, name: &str) -> PathBuf {
        self.folders[folder].path.join(name).join(find::FILE)
    }

    /// Under what name the store keeps what was accepted of this project.
    pub(crate) fn server(&self) -> String {
        format!("tools:{}", haft_core::path_text::store(&self.root))
    }

    async fn pins(&self) -> Result<Arc<Pins>, CallError> {
        let now = self.store.pins_as_of().await.map_err(crate::store_error)?;
        if let Some((_, pins)) = self.state().pins.as_ref().filter(|(known, _)| *known == now) {
            return Ok(Arc::clone(pins));
        }
        let pins = self.store.pins(&self.server()).await.map_err(crate::store_error)?;
        let pins = Arc::new(pins.into_iter().map(|pin| (pin.tool.clone(), pin)).collect::<Pins>());
        self.state().pins = Some((now, Arc::clone(&pins)));
        Ok(pins)
    }

    /// Whether a tool of this name is there that no manifest made.
    fn is_anothers(&self, name: &str) -> bool {
        self.registry.get(name).is_some_and(|entry| entry.spec().reach.declared.is_none())
    }

    /// Takes in what was found: the registry has the tool as it is now, or as it was when it last could be read.
    fn settle(&self, found: Found, pin: Option<&Pin>, others: &Spoken) {
        let Found { name, folder, stamp, content } = found;
        let mut state = self.state();
        let registered = state.held.get(&name).is_some_and(|held| held.good.is_some());
        let held = state.held.get(&name).filter(|held| held.folder == folder);
        let before = held.and_then(|held| held.good.clone());
        let (good, mut flaws) = match content {
            Content::Same => (before.clone(), held.map(|held| held.flaws.clone()).unwrap_or_default()),
            Content::Good(good) => (Some(good), Vec::new()),
            Content::Bad(flaws) => (before.clone(), flaws),
        };
        let mut instead_of = held.and_then(|held| held.instead_of.clone());
        let mut accepted = held.and_then(|held| held.accepted.clone());
        let mut kept = good.clone();
        if let Some(good) = &good {
            let whose = self.folders[folder].whose;
            let dir = self.folders[folder].path.join(&name);
            // A home may be reached by links; what is mounted for its program is not.
            let dir = if whose == Whose::Own { followed(&dir).unwrap_or(dir) } else { dir };
            let now = (whose == Whose::Project).then(|| Arc::new(Accepted::new(&self.root, &dir, good, pin)));
            let same = before.as_ref().is_some_and(|before| before.digest == good.digest)
                && now.as_ref().map(|now| now.files()) == accepted.as_ref().map(|was| was.files())
                && now.as_ref().map(|now| now.by_manifest()) == accepted.as_ref().map(|was| was.by_manifest());
            if !same {
                match self.shelve(good, dir, (now.clone(), others)) {
                    Ok(other) => (instead_of, accepted) = (other, now),
                    Err(why) => {
                        flaws = vec![format!("1:1: {why}")];
                        kept = before;
                    }
                }
            }
        }
        if kept.is_none() && registered {
            self.unregister(&name);
        }
        state.held.insert(name, Held { folder, stamp, good: kept, accepted, flaws, instead_of });
    }

    /// Puts a tool into the registry. Gives the tool whose spoken name it takes.
    fn shelve(
        &self,
        good: &Good,
        dir: PathBuf,
        (accepted, others): (Option<Arc<Accepted>>, &Spoken),
    ) -> Result<Option<ToolName>, String> {
        // Only what is a project's has to be accepted.
        let whose = if accepted.is_some() { Whose::Project } else { Whose::Own };
        let made = Made::new(Arc::clone(&good.manifest), dir, whose).map_err(|error| error.message)?;
        let tool: Arc<dyn Tool> = Arc::new(made.accepted(accepted));
        self.registry.shelve(tool, others).map_err(|error| error.to_string())
    }

    fn drop_tool(&self, name: &str) {
        if self.state().held.remove(name).is_some() {
            self.unregister(name);
        }
    }

    fn unregister(&self, name: &str) {
        if let Ok(name) = ToolName::new(name)
            && !self.is_anothers(name.as_str())
        {
            self.registry.unregister(&name);
        }
    }

    fn broken(&self, name: &str, held: &Held) -> CallError {
        let file = self.file(held.folder, name);
        let lines: Vec<String> = held.flaws.iter().map(|flaw| format!("{}:{flaw}", file.display())).collect();
        CallError::invalid(format!("the tool `{name}` cannot be used: {}", lines.join("; ")))
            .hint("mend the file; `haft lint` shows all that is wrong with it")
    }
}

/// The names that directories in these folders have, without looking at what is in them.
pub fn names(folders: &[Folder]) -> Vec<ToolName> {
    let all = folders.iter().flat_map(|folder| find::names(&folder.path, &mut Vec::new()));
    all.filter(|name| find::is_plain(name)).filter_map(|name| ToolName::new(&name).ok()).collect()
}

/// The most that is said of one file.
const FLAWS_MAX: usize = 10;

/// Reads a manifest. What is wrong with it is said as `line:column: path: message`.
fn read(text: &str) -> Result<Manifest, Vec<String>> {
    Manifest::read(text).map_err(|flaws| flaws.iter().take(FLAWS_MAX).map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests;
