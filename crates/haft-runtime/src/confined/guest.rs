//! What somebody else's agent needs to be itself: its program, its own directory in the user's home, and its maker's hosts.
//!
//! It sees its directory as it is and may write anything there, on a view that nobody keeps: settings, hooks and servers
//! that it writes would be run later by the same agent where nothing holds it, and a login that it writes would be used
//! there. Only what is lent to it stays: its conversations about this project. Those about others it does not see.

use super::terms::really;
use haft_core::host::HostRule;
use haft_core::manifest::{Permissions, Reachable};
use haft_core::{CallError, Hold};
use haft_sandbox::{Confinement, Network, SandboxError};
use serde_json::{Value, json};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What an agent needs besides what every program may touch.
#[derive(Debug, Clone, Default)]
pub struct Guest {
    /// What it is called.
    pub name: &'static str,
    /// Its program.
    pub program: PathBuf,
    /// What it reads to be itself.
    pub read: Vec<PathBuf>,
    /// Its own directory.
    pub house: PathBuf,
    /// Places in there of which it sees nothing but what is lent to it.
    pub unseen: Vec<PathBuf>,
    /// Directories in there that stay as it leaves them. They are made if they are not there.
    pub kept_dirs: Vec<PathBuf>,
    /// Files in there that stay as it leaves them.
    pub kept_files: Vec<PathBuf>,
    /// Directories in those of which it has a view that nobody keeps. They are made if they are not there.
    pub passing: Vec<PathBuf>,
    /// One of the unseen, if new conversations in it are kept: those of this project.
    pub gathered: Option<PathBuf>,
    /// The project.
    pub root: PathBuf,
    /// Files beside its directory of which it has a copy, if they are there.
    pub copied: Vec<PathBuf>,
    /// Whom it reaches.
    pub hosts: Vec<HostRule>,
}

impl Guest {
    /// What it may reach, as a manifest would say it.
    pub(super) fn permissions(&self) -> Permissions {
        Permissions { network: Reachable::Hosts(self.hosts.clone()), ..Permissions::default() }
    }

    /// Adds what it needs to what every program may touch. What is not there yet is left out: before it runs it is made.
    pub(super) fn received(
        &self,
        mut wanted: Confinement,
        network: Network,
        staging: &Path,
    ) -> Result<Confinement, SandboxError> {
        if network == Network::None {
            let why = format!("the configuration lets it reach nobody, and it needs {}", self.reached());
            return Err(SandboxError::Unenforceable(why));
        }
        for place in self.kept().chain(&self.passing).chain(&self.unseen).chain(&self.copied).chain([&self.house]) {
            if really(place) != *place {
                let why =
                    format!("{}: there is a link on the way to it, and only the place itself is lent", place.display());
                return Err(SandboxError::Unclear(why));
            }
        }
        let around = |root: &&PathBuf| self.house.starts_with(root) || root.starts_with(&self.house);
        if let Some(root) = wanted.write.iter().find(around) {
            let (house, root) = (self.house.display(), root.display());
            return Err(SandboxError::Unclear(format!("{house} and the project {root} lie in one another")));
        }
        wanted.read.extend(self.read.iter().cloned());
        wanted.network = network;
        let views = [&self.house].into_iter().chain(&self.passing).filter(|place| place.is_dir()).enumerate();
        wanted.passing = views.map(|(at, place)| (place.clone(), staging.join(format!("passing-{at}")))).collect();
        wanted.lent = self.kept().filter(|place| place.exists()).map(|place| (place.clone(), place.clone())).collect();
        wanted.lent.extend(self.copies(staging));
        wanted.lent.extend(self.blanks(staging));
        Ok(wanted)
    }

    /// Makes what has to be there when it starts.
    pub(crate) fn prepare(&self, staging: &Path) -> Result<(), CallError> {
        let failed = |place: &Path| {
            let shown = place.display().to_string();
            move |error: std::io::Error| CallError::failed(format!("{shown} cannot be made ready: {error}"))
        };
        let make = |dir: &Path| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        for dir in [&self.house].into_iter().chain(&self.kept_dirs).chain(&self.passing) {
            make(dir).map_err(failed(dir))?;
        }
        for (place, copy) in self.copies(staging) {
            self.duplicate(&place, &copy).map_err(failed(&place))?;
        }
        for (place, blank) in self.blanks(staging) {
            let done = if place.is_file() {
                blank.parent().map_or(Ok(()), make).and_then(|()| std::fs::write(&blank, ""))
            } else {
                make(&blank)
            };
            done.map_err(failed(&place))?;
        }
        Ok(())
    }

    /// Keeps the conversations that it began. What it left besides them goes with the view that it was on.
    pub(crate) fn gather(&self, staging: &Path) -> Vec<String> {
        let Some(place) = &self.gathered else { return Vec::new() };
        let blanks = self.blanks(staging);
        let Some((_, blank)) = blanks.iter().find(|(unseen, _)| unseen == place) else { return Vec::new() };
        let keep = |file: PathBuf| {
            let to = place.join(file.strip_prefix(blank).unwrap_or(&file));
            let done = keep(&file, &to);
            done.err().map(|error| format!("a conversation could not be kept in {}: {error}", to.display()))
        };
        conversations(blank).into_iter().filter(|file| is_about(file, &self.root)).filter_map(keep).collect()
    }

    fn kept(&self) -> impl Iterator<Item = &PathBuf> {
        self.kept_dirs.iter().chain(&self.kept_files)
    }

    /// What is seen where it sees nothing: the place, and what is there for it.
    fn blanks(&self, staging: &Path) -> Vec<(PathBuf, PathBuf)> {
        let blank =
            |(number, place): (usize, &PathBuf)| (place.clone(), staging.join("blank").join(number.to_string()));
        self.unseen.iter().enumerate().map(blank).collect()
    }

    /// A copy that nobody else may read. What it says of other projects is left out.
    fn duplicate(&self, file: &Path, copy: &Path) -> std::io::Result<()> {
        use std::io::Write;
        copy.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let mut to = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(copy)?;
        // What cannot be read might say anything.
        let mut said: Value = serde_json::from_slice(&std::fs::read(file)?).unwrap_or_else(|_| json!({}));
        if let Some(projects) = said.get_mut("projects").and_then(Value::as_object_mut) {
            projects.retain(|project, _| Path::new(project) == self.root);
        }
        to.write_all(said.to_string().as_bytes())
    }

    fn copies(&self, staging: &Path) -> Vec<(PathBuf, PathBuf)> {
        let there = self.copied.iter().filter(|place| place.is_file()).enumerate();
        there.map(|(number, place)| (place.clone(), staging.join("copies").join(number.to_string()))).collect()
    }

    fn reached(&self) -> String {
        self.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// What cannot be taken back.
    pub(super) fn gap(&self, of_files: Option<&str>) -> String {
        let project = of_files.map_or_else(
            || "what it does to the project can be undone".to_owned(),
            |gap| format!("nor can what it does to the project: {gap}"),
        );
        format!(
            "what it tells {} stays told, and its conversations stay in {}; {project}",
            self.reached(),
            self.house.display()
        )
    }

    /// How it is held, with the names of those it reaches and of what stays.
    pub(crate) fn told(&self, mut hold: Hold) -> Hold {
        let mut kept: Vec<String> = self.kept().map(|place| place.display().to_string()).collect();
        kept.extend(self.gathered.iter().map(|place| format!("new conversations in {}", place.display())));
        hold.guest = Some(format!(
            "{} is {}; it reads and writes the project, reaches {}, and besides keeps what it writes to {}",
            self.name,
            self.program.display(),
            self.reached(),
            kept.join(", ")
        ));
        let besides = [("network", self.reached()), ("write", format!("the project, and {}", kept.join(", ")))];
        for (name, what) in besides {
            if let Some(held) = hold.permissions.get_mut(name) {
                *held = format!("{what}; {held}");
            }
        }
        hold
    }
}

/// How deep conversations lie: by year, month and day.
const DEPTH: usize = 3;
/// How many files are looked at.
const FILES_MAX: usize = 100_000;
/// How large a conversation may be that is kept.
const FILE_MAX: u64 = 64 << 20;
/// How much of one is read to know what it is about.
const FIRST_LINE: u64 = 1 << 20;

/// The files in a directory of conversations, links not followed.
pub(crate) fn conversations(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut dirs) = (Vec::new(), vec![(dir.to_owned(), 0)]);
    while let Some((dir, depth)) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEPTH => dirs.push((entry.path(), depth + 1)),
                Ok(kind) if kind.is_file() && depth == DEPTH && found.len() < FILES_MAX => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.retain(|file| file.extension().is_some_and(|end| end == "jsonl"));
    found
}

/// Whether a conversation says of itself that it is about a project: in its first line.
pub(crate) fn is_about(file: &Path, root: &Path) -> bool {
    use std::io::{BufRead, BufReader, Read};
    let Ok(opened) = std::fs::OpenOptions::new().read(true).custom_flags(plainly()).open(file) else {
        return false;
    };
    if !opened.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= FILE_MAX) {
        return false;
    }
    let mut line = Vec::new();
    let read = BufReader::new(opened.take(FIRST_LINE)).read_until(b'\n', &mut line);
    let said: Option<Value> = read.ok().and_then(|_| serde_json::from_slice(&line).ok());
    let place = said.as_ref().and_then(|said| said["payload"]["cwd"].as_str().or_else(|| said["cwd"].as_str()));
    place.is_some_and(|place| Path::new(place) == root)
}

/// Puts a file where none is.
fn keep(file: &Path, to: &Path) -> std::io::Result<()> {
    if let Some(dir) = to.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        if really(dir) != dir {
            return Err(std::io::Error::other("there is a link on the way to it"));
        }
    }
    let mut new = match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to) {
        // It was there before: nobody writes over a conversation.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        new => new?,
    };
    let mut from = std::fs::OpenOptions::new().read(true).custom_flags(plainly()).open(file)?;
    std::io::copy(&mut from, &mut new).map(drop)
}

/// Opens no link, and waits for nobody.
fn plainly() -> i32 {
    i32::try_from((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits()).unwrap_or_default()
}
