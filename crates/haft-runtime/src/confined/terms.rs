//! On what terms a tool's programs run: what the configuration says, joined with what the project is.

use super::command::Shell;
use super::environment;
use super::guard::{self, Guard};
use super::guest::Guest;
use crate::kept::KeptLimits;
use crate::tool::Staging;
use crate::workspace::Workspace;
use haft_core::manifest::{Permissions, Reachable};
use haft_core::place::{Sensitive, sensitive};
use haft_core::web::Rules;
use haft_core::{CallId, Hold};
use haft_sandbox::{Backend, Bare, Bounds, Confinement, Level, Machine, Network, Plan, SandboxError, Writes, roots};
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// How much has to be enforced for a program to run at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Require {
    /// Everything, by namespaces.
    Full,
    /// Every permission, by whatever this machine has.
    #[default]
    Enforced,
    /// Nothing. Where the kernel cannot hold a program it runs unheld, and the record says so.
    Nothing,
}

/// On what terms programs run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Terms {
    /// How much has to be enforced.
    pub require: Require,
    /// Which part of the network they may use.
    pub network: Network,
    /// Whether they write straight into the project, where nothing can be shown or taken back.
    pub direct: bool,
    /// What they may use up.
    pub bounds: Bounds,
    /// Variables that they get, besides the harmless ones.
    pub pass: Vec<String>,
    /// Secrets that they get.
    pub secrets: Vec<String>,
    /// How commands are run in a shell.
    pub shell: Shell,
    /// Where layers are kept. The tool layer sets this to its own.
    pub data_dir: PathBuf,
    /// How much of what calls leave for people is kept there.
    #[serde(default)]
    pub kept: KeptLimits,
}

/// Who has an account here. Other programs may look it up; one of a manifest declares that.
const USERS: &str = "/etc/passwd";

static BARE: LazyLock<Bare> = LazyLock::new(Bare::default);

/// A plan, who carries it out, and what is watched beside it.
pub struct Settled {
    /// The plan.
    pub plan: Plan,
    /// Who enforces it.
    pub backend: &'static dyn Backend,
    /// What must not be kept.
    pub guard: Guard,
    /// Why what is done to files could not be taken back.
    pub gap: Option<String>,
}

impl Settled {
    /// What is decided upon and recorded.
    pub fn hold(&self) -> Hold {
        let standing = &self.plan.standing;
        Hold {
            level: standing.level.to_string(),
            enforced: standing.holds(),
            permissions: standing.each().into_iter().map(|(name, held)| (name, held.to_string())).collect(),
            network: self.plan.confinement.network != Network::None,
            writes: !self.plan.confinement.write.is_empty(),
            gap: self.gap.clone(),
            guest: None,
        }
    }
}

impl Terms {
    /// Settles how a program in this project is confined. `staging` is where its layers go; without one the
    /// plan is only for looking.
    pub fn settle(&self, workspace: &Workspace, staging: &Path) -> Result<Settled, SandboxError> {
        self.settle_with(workspace, staging, None)
    }

    /// The same for somebody else's agent: it has besides what it needs to be itself, and reaches its own hosts and nobody
    /// else, as far as `rules` go. There is no lesser way for it.
    pub fn settle_guest(
        &self,
        workspace: &Workspace,
        (guest, rules): (&Guest, &Rules),
        staging: &Path,
    ) -> Result<Settled, SandboxError> {
        let mut settled = self.settle_with(workspace, staging, Some((guest, rules)))?;
        settled.gap = Some(guest.gap(settled.gap.as_deref()));
        Ok(settled)
    }

    fn settle_with(
        &self,
        workspace: &Workspace,
        staging: &Path,
        guest: Option<(&Guest, &Rules)>,
    ) -> Result<Settled, SandboxError> {
        let backend = haft_sandbox::backend();
        let machine = super::machine::known(&self.data_dir);
        self.satisfied(machine)?;
        let layered = !self.direct && machine.layers && machine.level == Level::Full;
        let writable: Vec<PathBuf> = workspace.writable_roots().iter().map(|root| really(root)).collect();
        let (write, granted) = guard::split(&writable);
        let guard = Guard {
            roots: write.clone(),
            granted,
            protected: Vec::new(),
            own: workspace.own_places().to_vec(),
            home: environment::real_home(),
        };
        let writes = if layered { Writes::Layered(staging.to_owned()) } else { Writes::Direct };
        let wanted = Confinement {
            read: readable(workspace).collect(),
            write,
            protect: guard.for_kernel(&writes),
            hide: hidden(workspace),
            seal: Vec::new(),
            stand_in: Vec::new(),
            passing: Vec::new(),
            lent: Vec::new(),
            network: self.network.clone(),
            writes,
            bounds: self.bounds,
        };
        let wanted = match guest {
            Some((guest, rules)) => guest.received(wanted, reached(&guest.permissions(), rules), staging)?,
            None => wanted,
        };
        let gap = (!layered).then(|| {
            if self.direct {
                "the configuration lets programs write straight into the project".to_owned()
            } else {
                "copy-on-write views do not work here, so programs write straight into the project".to_owned()
            }
        });
        let wanted = roots::resolve(wanted, workspace.root())?;
        match backend.plan(wanted.clone()) {
            Ok(plan) => Ok(Settled { plan, backend, guard, gap }),
            // Not wider, but nothing can be taken back: the record says so, and it is asked.
            Err(SandboxError::Unenforceable(why)) if layered && machine.level == Level::Full => {
                let mut protect = [wanted.protect.clone(), guard.for_kernel(&Writes::Direct)].concat();
                protect.sort();
                protect.dedup();
                let direct = Confinement { writes: Writes::Direct, protect, ..wanted };
                backend.plan(direct).map(|plan| Settled { plan, backend, guard, gap: Some(why) })
            }
            Err(SandboxError::Unenforceable(_)) if self.require == Require::Nothing && guest.is_none() => {
                let plan = BARE.plan(Confinement { writes: Writes::Direct, ..wanted })?;
                Ok(Settled { plan, backend: &*BARE, guard, gap })
            }
            Err(error) => Err(error),
        }
    }

    /// Settles how a manifest's program is confined: it reads what the manifest declares and what it is made of, writes
    /// what the manifest declares, and reaches whom it declares, as far as `rules` go.
    pub fn settle_declared(
        &self,
        workspace: &Workspace,
        permissions: &Permissions,
        (made_of, rules): (&[PathBuf], &Rules),
        staging: &Path,
    ) -> Result<Settled, SandboxError> {
        let backend = haft_sandbox::backend();
        let machine = super::machine::known(&self.data_dir);
        self.satisfied(machine)?;
        let place = |path: &String| place_of(path, workspace);
        let named = permissions.fs.read.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let (write, granted) = guard::split(&permissions.fs.write.iter().map(place).collect::<Result<Vec<_>, _>>()?);
        let layered = !write.is_empty() && machine.layers && machine.level == Level::Full;
        let (own, home) = (workspace.own_places().to_vec(), environment::real_home());
        // Whoever may write there must not decide what runs here later, nor what is told about that.
        let kept = [".haft", ".glee"].map(|dir| workspace.root().join(dir));
        let protected =
            kept.iter().flat_map(|dir| ["tools", "config.yml", "audit"].map(|part| dir.join(part))).collect();
        let guard = Guard { roots: write.clone(), granted, protected, own, home };
        let writes = if layered { Writes::Layered(staging.to_owned()) } else { Writes::Direct };
        let within = |place: &PathBuf| place.exists() && write.iter().any(|root| place.starts_with(root));
        // What is named itself is meant to be read, except for haft's own state.
        let meant = |place: &PathBuf| named.contains(place) && !workspace.own_places().contains(place);
        let hide = hidden(workspace).into_iter().filter(|place| !meant(place)).collect();
        let outside = environment::outside(workspace.project());
        let wanted = Confinement {
            read: named.iter().chain(made_of).chain(&outside.programs).cloned().collect(),
            protect: guard.for_kernel(&writes).into_iter().filter(within).collect(),
            hide,
            // What it writes where nothing is declared fails, and does not vanish.
            seal: vec![workspace.root().to_owned()],
            stand_in: Vec::new(),
            passing: Vec::new(),
            lent: Vec::new(),
            network: reached(permissions, rules),
            writes,
            bounds: self.bounds,
            write,
        };
        let gap = (!layered && !wanted.write.is_empty())
            .then(|| "copy-on-write views do not work here, so it writes straight into its places".to_owned());
        let mut wanted = roots::resolve(wanted, workspace.root())?;
        if machine.level == Level::Full && !named.iter().any(|place| Path::new(USERS).starts_with(place)) {
            wanted.hide.push(USERS.into());
        }
        // There is no lesser way: what a manifest declares is enforced, or nothing runs.
        backend.plan(wanted).map(|plan| Settled { plan, backend, guard, gap })
    }

    /// Settles how a program is confined that stays: it reads the project and what is named besides, and writes
    /// nothing but what is named, straight into the files.
    pub fn settle_resident(
        &self,
        workspace: &Workspace,
        read: &[PathBuf],
        write: &[PathBuf],
    ) -> Result<Settled, SandboxError> {
        let machine = super::machine::known(&self.data_dir);
        self.satisfied(machine)?;
        let (write, granted) = guard::split(&write.iter().map(|root| really(root)).collect::<Vec<_>>());
        let (own, home) = (workspace.own_places().to_vec(), environment::real_home());
        let guard = Guard { roots: write.clone(), granted, protected: Vec::new(), own, home };
        let wanted = Confinement {
            read: readable(workspace).chain(read.iter().cloned()).collect(),
            write,
            protect: guard.for_kernel(&Writes::Direct),
            hide: hidden(workspace),
            seal: Vec::new(),
            stand_in: Vec::new(),
            passing: Vec::new(),
            lent: Vec::new(),
            network: self.network.clone(),
            writes: Writes::Direct,
            bounds: self.bounds,
        };
        let wanted = roots::resolve(wanted, workspace.root())?;
        let backend = haft_sandbox::backend();
        let gap = Some("it writes straight into what it may write".to_owned());
        match backend.plan(wanted.clone()) {
            Ok(plan) => Ok(Settled { plan, backend, guard, gap }),
            Err(SandboxError::Unenforceable(_)) if self.require == Require::Nothing => {
                Ok(Settled { plan: BARE.plan(wanted)?, backend: &*BARE, guard, gap })
            }
            Err(error) => Err(error),
        }
    }

    /// Whether as much is in force as the configuration requires.
    fn satisfied(&self, machine: &Machine) -> Result<(), SandboxError> {
        if self.require == Require::Full && machine.level != Level::Full {
            let why = format!("the configuration requires full confinement, and only `{}` is in force", machine.level);
            return Err(SandboxError::Unenforceable(why));
        }
        Ok(())
    }

    /// The same for a command that is believed to only read: what only reads needs no network.
    pub(crate) fn for_a_look(&self, looks: bool) -> std::borrow::Cow<'_, Self> {
        if looks && self.network != Network::None {
            return std::borrow::Cow::Owned(Self { network: Network::None, ..self.clone() });
        }
        std::borrow::Cow::Borrowed(self)
    }

    /// Where the layers of a call go: beside the undo images, so that keeping is renaming; or, if no layer
    /// can live there, in memory.
    pub fn staging_base(data_dir: &Path) -> PathBuf {
        let _ = std::fs::create_dir_all(data_dir);
        let elsewhere = if can_hold_layers(data_dir) { None } else { own_memory() };
        elsewhere.unwrap_or_else(|| data_dir.to_owned())
    }

    /// The staging directory that a call would use.
    pub(crate) fn staging_of(data_dir: &Path, call: &CallId) -> PathBuf {
        Staging::of(&Self::staging_base(data_dir), call)
    }

    /// Makes the staging directory of a call.
    pub(crate) fn stage(&self, call: &CallId) -> std::io::Result<Arc<Staging>> {
        Staging::create(&Self::staging_base(&self.data_dir), call)
    }
}

/// What a program may read that works in the project.
fn readable(workspace: &Workspace) -> impl Iterator<Item = PathBuf> {
    let named = workspace.readable_roots().iter().cloned();
    named.chain(environment::toolchains()).chain(environment::environments())
}

/// Where a declared place is. What somebody accepted is the words: it is there and nowhere else, whatever links are made on
/// the way to it by whoever may write there; and nothing leads to haft's own state.
fn place_of(declared: &str, workspace: &Workspace) -> Result<PathBuf, SandboxError> {
    let refused = |why: &str| SandboxError::Unclear(format!("`{}`: {why}", haft_core::preview::inert(declared)));
    let (mut place, mut named) = (workspace.root().to_owned(), false);
    for part in Path::new(declared).components() {
        match part {
            Component::Prefix(_) | Component::RootDir => place = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir if named => return Err(refused("`..` behind a name depends on what that name is")),
            Component::ParentDir => drop(place.pop()),
            Component::Normal(name) => {
                place.push(name);
                named = true;
            }
        }
    }
    if really(&place) != place {
        return Err(refused("there is a link on the way to it; name the place itself if it is meant"));
    }
    if workspace.own_places().iter().any(|own| place.starts_with(own)) {
        return Err(refused("it is haft's own, and no tool's to touch"));
    }
    Ok(place)
}

/// Where a path leads, or would if the rest of it were there.
pub(super) fn really(place: &Path) -> PathBuf {
    for above in place.ancestors() {
        if let (Ok(real), Ok(rest)) = (roots::followed(above), place.strip_prefix(above)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    place.to_owned()
}

/// The network of a manifest's program: what it declares, as far as the user's rules go. A request of a manifest goes
/// by the same.
fn reached(permissions: &Permissions, rules: &Rules) -> Network {
    let mut rules = rules.clone();
    crate::web::narrow(&mut rules, permissions);
    match &permissions.network {
        declared if !declared.is_any() || rules.networks.contains(&haft_core::web::Network::None) => Network::None,
        Reachable::Hosts(hosts) => Network::Named(hosts.clone(), rules),
        Reachable::Any(_) => Network::Web(rules),
    }
}

/// A directory of this user's in shared memory. Everybody may make directories there, so it has to be looked
/// at: one that somebody else made, or may look into, will not do.
pub fn own_memory() -> Option<PathBuf> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let me = rustix::process::geteuid().as_raw();
    let dir = PathBuf::from(format!("/dev/shm/haft-{me}"));
    let _ = std::fs::DirBuilder::new().mode(0o700).create(&dir);
    let meta = std::fs::symlink_metadata(&dir).ok()?;
    let closed = meta.mode() & 0o777 == 0o700;
    (meta.is_dir() && meta.uid() == me && closed).then_some(dir)
}

/// File systems on which the writing half of an overlay cannot be.
fn can_hold_layers(dir: &Path) -> bool {
    const OVERLAY: i64 = 0x794c_7630;
    const NFS: i64 = 0x6969;
    const FUSE: i64 = 0x6573_5546;
    const NINE_P: i64 = 0x0102_1997;
    const SMB: i64 = 0xfe53_4d42;
    rustix::fs::statfs(dir).is_ok_and(|found| ![OVERLAY, NFS, FUSE, NINE_P, SMB].contains(&found.f_type))
}

/// What a program must not read although it lies in a readable root: haft's own state, and credentials in
/// the upper two levels of the project. Deeper ones are not looked for: that would be a walk of the whole
/// tree before each call. The two levels are looked through whole, so that nothing can be pushed out of sight
/// by many files.
fn hidden(workspace: &Workspace) -> Vec<PathBuf> {
    let mut found = workspace.own_places().to_vec();
    found.extend(crate::own_state::hard_links(workspace.own_places(), workspace.readable_roots()));
    let roots = workspace.readable_roots().iter().chain(workspace.writable_roots());
    for shelf in roots.flat_map(|root| crate::apply::shelves_above(root)) {
        if !found.contains(&shelf) {
            found.push(shelf);
        }
    }
    for dir in credentials_in(workspace, workspace.root(), &mut found) {
        credentials_in(workspace, &dir, &mut found);
    }
    found
}

/// Adds the credentials right in a directory, and returns the directories there.
fn credentials_in(workspace: &Workspace, dir: &Path, found: &mut Vec<PathBuf>) -> Vec<PathBuf> {
    // What somebody named to be read is meant to be.
    let others = || workspace.readable_roots().iter().filter(|root| *root != workspace.root());
    let mut deeper = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if sensitive(Path::new(&name)) == Some(Sensitive::Credentials) {
            let path = entry.path();
            if !others().any(|root| path.starts_with(root)) {
                found.push(path);
            }
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            deeper.push(entry.path());
        }
    }
    deeper
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_a_project_are_no_more_a_copys_than_its_own() {
        let dir = tempfile::tempdir().unwrap();
        // Cargo's own, wherever tests are run by it.
        let Some(place) = environment::toolchains().into_iter().find(|place| place.is_dir()) else { return };
        let terms = Terms { data_dir: dir.path().join("data"), ..Terms::default() };
        let reads = |workspace: &Workspace| {
            let none = Permissions::default();
            let settled = terms.settle_declared(workspace, &none, (&[], &Rules::default()), &terms.data_dir);
            settled.is_ok_and(|settled| settled.plan.confinement.read.iter().any(|read| read.starts_with(&place)))
        };
        let workspace = Workspace::new(dir.path()).unwrap();
        assert!(reads(&workspace), "{}", place.display());
        assert!(!reads(&workspace.copy_of(&place)));
    }

    #[test]
    fn what_only_reads_has_no_network() {
        let terms = Terms { network: Network::All, ..Terms::default() };
        assert_eq!(terms.for_a_look(true).network, Network::None);
        assert_eq!(terms.for_a_look(false).network, Network::All);
    }

    #[test]
    fn programs_reach_whom_requests_reach() {
        use haft_core::web::{Network as Says, Rules};
        let rules = Rules { networks: vec![Says::All], ..Rules::default() };
        let declares = |hosts: &[&str]| {
            let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
            Permissions { network: Reachable::Hosts(hosts), ..Permissions::default() }
        };
        let admits = |hosts: &[&str], url: &str| match reached(&declares(hosts), &rules) {
            Network::Named(_, rules) => rules.admits(&haft_core::web::Target::read(url).unwrap()).is_ok(),
            other => panic!("{other:?}"),
        };
        assert!(admits(&["a.test"], "http://a.test:8080/") && !admits(&["a.test"], "http://b.test/"));
        assert!(admits(&["127.0.0.1:5432", "localhost:81"], "http://127.0.0.1:5432/"));
        assert!(admits(&["127.0.0.1:5432", "localhost:81"], "http://localhost:81/"));
        for hosts in [["127.0.0.1"], ["localhost"], ["10.0.0.1"]] {
            assert!(!admits(&hosts, &format!("http://{}/", hosts[0])), "without a port nothing inside is meant");
        }
        let none = Rules { networks: vec![Says::All, Says::None], ..Rules::default() };
        assert_eq!(reached(&declares(&["a.test"]), &none), Network::None);
        assert_eq!(reached(&declares(&[]), &rules), Network::None);
    }
}
