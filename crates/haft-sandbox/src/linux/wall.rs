//! Landlock: on a root of its own a second wall behind the mounts; without one, the only wall around files.

use super::layout::{Kind, Layout, Walls, Ways};
use super::step::Failed;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::ffi::OsStr;
use std::path::Path;

/// What every program may read where it shares the root with everybody.
const SHARED_READ: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/resolv.conf",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl",
    "/etc/ca-certificates",
    "/etc/pki",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/alternatives",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/terminfo",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/filesystems",
    "/proc/version",
    "/proc/self",
];
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The rights this version knows.
const KNOWN: ABI = ABI::V6;

fn reading() -> BitFlags<AccessFs> {
    AccessFs::from_read(KNOWN)
}

/// Everything but devices: making them, and controlling them.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(KNOWN) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn using() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate
}

struct Wall(RulesetCreated);

impl Wall {
    /// Allows something below a path. What is not there needs no rule.
    fn allow(self, path: impl AsRef<Path>, rights: BitFlags<AccessFs>) -> Result<Self, Failed> {
        let path = path.as_ref();
        let Ok(place) = PathFd::new(path) else { return Ok(self) };
        let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(KNOWN) };
        self.0.add_rule(PathBeneath::new(place, rights)).map(Self).map_err(|error| failed(path, &error))
    }
}

fn failed(what: impl AsRef<Path>, error: &dyn std::fmt::Display) -> Failed {
    Failed { step: format!("landlock: {}: {error}", what.as_ref().display()), errno: libc::EPERM }
}

/// Puts the wall around this thread and all that it starts.
pub(super) fn raise(layout: &Layout) -> Result<(), Failed> {
    let flat = layout.walls == Walls::Flat;
    // On a shared root nothing else stands: then every right that this kernel could refuse has to be refused.
    let create = || {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(KNOWN))?
            .scope(Scope::AbstractUnixSocket | Scope::Signal)?;
        if flat {
            rules = rules.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
        }
        rules.create()
    };
    let mut wall = Wall(create().map_err(|error| failed("rules", &error))?);
    wall = if flat { shared(wall)? } else { own(wall)? };
    for spot in &layout.spots {
        let path: &OsStr = &spot.path;
        wall = match spot.kind {
            Kind::Read | Kind::ReadFile | Kind::ReadView => wall.allow(path, reading())?,
            Kind::Write | Kind::Lent { .. } | Kind::Layer { .. } | Kind::Own => wall.allow(path, writing())?,
            // In a root of its own whatever is there may be read.
            Kind::StandIn { .. } | Kind::Pin | Kind::Protect | Kind::Hide | Kind::Empty | Kind::Seal => wall,
        };
    }
    let status = wall.0.restrict_self().map_err(|error| failed("restrict", &error))?;
    if flat && status.ruleset == RulesetStatus::NotEnforced {
        return Err(failed("restrict", &"the kernel does not enforce it"));
    }
    // On everybody's network nothing else keeps the program from everybody's abstract sockets.
    if layout.unix && layout.ways == Ways::All && status.ruleset != RulesetStatus::FullyEnforced {
        return Err(failed("restrict", &"the kernel does not enforce all of it"));
    }
    Ok(())
}

/// In a root of its own everything that is there may be read.
fn own(wall: Wall) -> Result<Wall, Failed> {
    let terminals = using() | AccessFs::IoctlDev;
    let mut wall = wall.allow("/", reading())?.allow("/tmp", writing())?;
    for device in DEVICES {
        wall = wall.allow(device, using())?;
    }
    wall.allow("/dev/tty", terminals)?.allow("/dev/pts", terminals | AccessFs::ReadDir)
}

fn shared(mut wall: Wall) -> Result<Wall, Failed> {
    for path in SHARED_READ {
        wall = wall.allow(path, reading())?;
    }
    for device in DEVICES {
        wall = wall.allow(device, using())?;
    }
    Ok(wall)
}
