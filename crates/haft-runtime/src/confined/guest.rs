//! What somebody else's agent needs to be itself: its program, its own directory in the user's home, and its maker's hosts.
//!
//! It sees its directory as it is and may write anything there, on a view that nobody keeps: settings, hooks and servers
//! that it writes would be run later by the same agent where nothing holds it. Only what is lent to it stays: its
//! conversations, so that one can be gone on with, and its login, which its maker renews while it is used.

use super::terms::really;
use haft_core::host::HostRule;
use haft_core::manifest::{Permissions, Reachable};
use haft_core::{CallError, Hold};
use haft_sandbox::{Confinement, Network, SandboxError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What an agent needs besides what every program may touch.
#[derive(Debug, Clone, Default)]
pub struct Guest {
    /// What it reads to be itself.
    pub read: Vec<PathBuf>,
    /// Its own directory.
    pub house: PathBuf,
    /// Directories in there that stay as it leaves them. They are made if they are not there.
    pub kept_dirs: Vec<PathBuf>,
    /// Files in there that stay as it leaves them, if they are there.
    pub kept_files: Vec<PathBuf>,
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
        for place in self.kept().chain(&self.copied).chain([&self.house]) {
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
        if self.house.is_dir() {
            wanted.passing = vec![(self.house.clone(), staging.join("passing"))];
        }
        wanted.lent = self.kept().filter(|place| place.exists()).map(|place| (place.clone(), place.clone())).collect();
        wanted.lent.extend(self.copies(staging));
        Ok(wanted)
    }

    /// Makes what has to be there when it starts.
    pub(crate) fn prepare(&self, staging: &Path) -> Result<(), CallError> {
        let failed = |place: &Path| {
            let shown = place.display().to_string();
            move |error: std::io::Error| CallError::failed(format!("{shown} cannot be made ready: {error}"))
        };
        for dir in &self.kept_dirs {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed(dir))?;
        }
        for (place, copy) in self.copies(staging) {
            duplicate(&place, &copy).map_err(failed(&place))?;
        }
        Ok(())
    }

    fn kept(&self) -> impl Iterator<Item = &PathBuf> {
        self.kept_dirs.iter().chain(&self.kept_files)
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
        let kept: Vec<String> = self.kept().map(|place| place.display().to_string()).collect();
        let besides = [("network", self.reached()), ("write", format!("the project, and {}", kept.join(", ")))];
        for (name, what) in besides {
            if let Some(held) = hold.permissions.get_mut(name) {
                *held = format!("{what}; {held}");
            }
        }
        hold
    }
}

/// A copy that nobody else may read.
fn duplicate(file: &Path, copy: &Path) -> std::io::Result<()> {
    copy.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let mut to = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(copy)?;
    std::io::copy(&mut std::fs::File::open(file)?, &mut to).map(drop)
}
