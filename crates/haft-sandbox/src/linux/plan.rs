//! From a confinement to a layout: which place is made how, and by what each permission is then enforced.

use super::layout::{GATE, Kind, Known, Layout, PROXY_PORT, Spot, Walls, Ways, address};
use crate::backend::{Plan, Program, SandboxError};
use crate::confinement::{Confinement, Network, Writes};
use crate::standing::{Held, Level, Machine, Standing};
use haft_core::host::Host;
use haft_core::web::Target;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// How many hosts can be named: each needs an address and a socket for each port.
const HOSTS_MAX: usize = 64;
/// The ports of a host that is named without one, for programs that do not know about the proxy.
const USUAL_PORTS: [u16; 2] = [80, 443];
/// The first ABI of Landlock that keeps a program from abstract sockets of others.
const SCOPES: u32 = 6;

/// Whether a confinement can be enforced on this machine, and how.
pub(super) fn plan(machine: &Machine, confinement: Confinement) -> Result<Plan, SandboxError> {
    let standing = match machine.level {
        Level::Full => full(machine, &confinement)?,
        Level::Flat => flat(&confinement)?,
        Level::None => {
            let why = "neither namespaces nor Landlock with seccomp work here; `haft doctor` says what would mend that";
            return Err(SandboxError::Unenforceable(why.to_owned()));
        }
    };
    let env = match &confinement.network {
        Network::Hosts(_) | Network::Web(_) | Network::Named(..) => proxy_variables(),
        Network::None | Network::All => Vec::new(),
    };
    Ok(Plan { confinement, standing, env, told: None, inside: None })
}

/// Where something is mounted. Inside a user namespace the kernel lets nobody look under a mount, so a
/// directory with one in it cannot be seen through an overlay.
fn mount_points() -> Vec<PathBuf> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let plain = |field: &str| field.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
    table.lines().filter_map(|line| line.split(' ').nth(4)).map(|field| PathBuf::from(plain(field))).collect()
}

/// A mount strictly inside a directory.
fn mounted_inside<'m>(root: &Path, mounts: &'m [PathBuf]) -> Option<&'m PathBuf> {
    mounts.iter().find(|mount| *mount != root && mount.starts_with(root))
}

fn proxy_variables() -> Vec<(OsString, OsString)> {
    let proxy = format!("http://{GATE}:{PROXY_PORT}");
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        env.push((name.into(), proxy.clone().into()));
    }
    for name in ["no_proxy", "NO_PROXY"] {
        env.push((name.into(), "localhost,127.0.0.1,::1".into()));
    }
    env
}

fn full(machine: &Machine, confinement: &Confinement) -> Result<Standing, SandboxError> {
    let layered = matches!(confinement.writes, Writes::Layered(_));
    if (layered || !confinement.passing.is_empty()) && !machine.layers {
        return Err(SandboxError::Unenforceable("copy-on-write views do not work here".to_owned()));
    }
    let views = confinement.write.iter().filter(|_| layered).chain(confinement.passing.iter().map(|(root, _)| root));
    let views: Vec<&PathBuf> = views.collect();
    if !views.is_empty() {
        let mounts = mount_points();
        let inside = views.into_iter().find_map(|root| Some((root, mounted_inside(root, &mounts)?)));
        if let Some((root, mount)) = inside {
            let (root, mount) = (root.display(), mount.display());
            let why = format!("there can be no copy-on-write view of {root}, because something is mounted at {mount}");
            return Err(SandboxError::Unenforceable(why));
        }
    }
    if let Network::Hosts(rules) | Network::Named(rules, _) = &confinement.network
        && rules.len() > HOSTS_MAX
    {
        return Err(SandboxError::Unenforceable(format!("at most {HOSTS_MAX} hosts can be named")));
    }
    let files = if machine.landlock > 0 { "mount namespace, landlock" } else { "mount namespace" };
    let network = match &confinement.network {
        Network::None => Held::enforced("network namespace, seccomp"),
        Network::All => Held::enforced("nothing is withheld but odd families (seccomp)"),
        Network::Hosts(_) | Network::Web(_) | Network::Named(..) => Held::partial(
            "network namespace, seccomp, haft's gate",
            "what an allowed host passes on to others is not seen",
        ),
    };
    let limits = Held::partial(
        "rlimits, user namespace, watch",
        "memory, time and disk of all processes together are looked at 20 times a second",
    );
    let straight = confinement.writes == Writes::Direct && !confinement.write.is_empty();
    let write = if straight {
        Held::partial(files, "only protected places right below a root are held, and only those that exist")
    } else {
        Held::enforced(files)
    };
    Ok(Standing {
        level: Level::Full,
        read: Held::enforced(files),
        write,
        network,
        secrets: Held::enforced("new environment, pid and ipc namespaces, seccomp"),
        limits,
    })
}

/// Without namespaces, Landlock and seccomp stand alone. What they cannot enforce is refused.
fn flat(confinement: &Confinement) -> Result<Standing, SandboxError> {
    let refuse = |what: &str| {
        let why = "needs namespaces, which do not work here; `haft doctor` says what would mend that";
        Err(SandboxError::Unenforceable(format!("{what} {why}")))
    };
    if matches!(confinement.writes, Writes::Layered(_)) || !confinement.passing.is_empty() {
        return refuse("a copy-on-write view");
    }
    if !confinement.lent.is_empty() {
        return refuse("showing something in another place");
    }
    if !confinement.protect.is_empty() {
        return refuse("protecting a place inside a writable root");
    }
    if !confinement.hide.is_empty() {
        return refuse("hiding a place inside a readable root");
    }
    let network = match &confinement.network {
        Network::None => Held::enforced("seccomp, landlock"),
        Network::All => return refuse("the network without everybody's unix sockets"),
        Network::Hosts(_) | Network::Named(..) => return refuse("a list of hosts"),
        Network::Web(_) => return refuse("a network of which every connection is judged"),
    };
    Ok(Standing {
        level: Level::Flat,
        read: Held::partial("landlock", "names, sizes and link targets of other files are visible"),
        write: Held::partial(
            "landlock, seccomp",
            "modes, owners and times cannot be changed at all; places to be protected can be made where they do not exist",
        ),
        network,
        secrets: Held::partial("new environment, landlock", "names and arguments of other processes are visible"),
        limits: Held::partial("rlimits, watch", "memory, processes, time and disk are looked at 20 times a second"),
    })
}

/// Every place of the program's root, outer ones first.
pub(super) fn layout(machine: &Machine, plan: &Plan, program: &Program) -> Layout {
    let wanted = &plan.confinement;
    let rooted = plan.standing.level == Level::Full;
    let mut spots: Vec<Spot> = Vec::new();
    let mut add = |path: &Path, kind: Kind| spots.push(Spot { path: path.as_os_str().to_owned(), kind });
    let mounts = mount_points();
    // What stands in for a file is there alone: on the file itself it would go when that is removed.
    let stood_for = |root: &PathBuf| rooted && wanted.stand_in.iter().any(|(place, _)| place == root);
    for root in wanted.read.iter().filter(|root| !stood_for(root)) {
        let is_viewed = machine.layers && rooted && root.is_dir() && mounted_inside(root, &mounts).is_none();
        let is_file = || std::fs::symlink_metadata(root).is_ok_and(|meta| meta.is_file());
        add(
            root,
            if is_viewed {
                Kind::ReadView
            } else if is_file() {
                Kind::ReadFile
            } else {
                Kind::Read
            },
        );
    }
    for (number, root) in wanted.write.iter().enumerate() {
        add(root, write_kind(&wanted.writes, number));
    }
    for (root, dir) in &wanted.passing {
        add(root, layer_kind(dir));
    }
    for (place, of) in &wanted.lent {
        add(place, Kind::Lent { of: of.clone().into() });
    }
    let hidden = |place: &Path| wanted.hide.iter().any(|hidden| place.starts_with(hidden));
    for (place, by) in wanted.stand_in.iter().filter(|(place, _)| rooted && !hidden(place)) {
        add(place, Kind::StandIn { by: by.clone().into() });
    }
    // What hides a place cannot be mounted upon, and there is nothing below it.
    let is_covered = |place: &Path| wanted.hide.iter().any(|hidden| place.starts_with(hidden) && place != hidden);
    for (places, kind) in [(&wanted.protect, Kind::Protect), (&wanted.hide, Kind::Hide)] {
        for place in places.iter().filter(|place| !is_covered(place)) {
            for pin in pins(place, &wanted.write) {
                add(&pin, Kind::Pin);
            }
            add(place, kind.clone());
        }
    }
    if rooted {
        surroundings(wanted, program, &mut spots);
    }
    // A place comes after those around it; of the same place the last word counts.
    spots.sort_by_key(|spot| Path::new(&spot.path).components().count());
    spots.dedup();
    // In a view through an overlay nobody answers at a socket file; in the real directory somebody might.
    let sockets_are_dead = spots.iter().all(|spot| !matches!(spot.kind, Kind::Read | Kind::Write | Kind::Lent { .. }));
    // Those without a path belong to the network: in everybody's, Landlock has to stand before them.
    let abstract_sockets_are_scoped = machine.landlock >= SCOPES;
    Layout {
        walls: if rooted { Walls::Root { landlock: machine.landlock > 0 } } else { Walls::Flat },
        unix: rooted && sockets_are_dead && (wanted.network != Network::All || abstract_sockets_are_scoped),
        // Where every address can be reached there is nothing to tell.
        watched: rooted && wanted.network != Network::All,
        spots,
        ways: ways(&wanted.network),
        bounds: wanted.bounds,
    }
}

fn write_kind(writes: &Writes, number: usize) -> Kind {
    match writes {
        Writes::Direct => Kind::Write,
        Writes::Layered(dir) => layer_kind(&dir.join(number.to_string())),
    }
}

fn layer_kind(layer: &Path) -> Kind {
    Kind::Layer { upper: layer.join("upper").into(), work: layer.join("work").into() }
}

/// The directories between a writable root and a protected place in it: if one of them could be renamed, a
/// fresh one with its own unprotected content could take its place.
fn pins(place: &Path, write: &[PathBuf]) -> Vec<PathBuf> {
    let Some(root) = write.iter().find(|root| place.starts_with(root)) else { return Vec::new() };
    place.ancestors().skip(1).take_while(|dir| *dir != root && dir.starts_with(root)).map(Path::to_owned).collect()
}

/// A home of its own and the directory that the program starts in, where no root brings them.
fn surroundings(wanted: &Confinement, program: &Program, spots: &mut Vec<Spot>) {
    let roots: Vec<&PathBuf> = wanted.read.iter().chain(&wanted.write).collect();
    let home = program.env.iter().find(|(name, _)| name == "HOME").map(|(_, value)| PathBuf::from(value));
    let usable =
        |dir: &PathBuf| dir.is_absolute() && dir != Path::new("/") && !roots.iter().any(|root| dir.starts_with(root));
    if !roots.iter().any(|root| program.cwd.starts_with(root)) {
        spots.push(Spot { path: program.cwd.clone().into(), kind: Kind::Empty });
    }
    // Elsewhere nothing can be written anyway.
    let writable = |place: &Path| {
        [Path::new("/tmp"), Path::new("/var/tmp")].iter().any(|dir| place.starts_with(dir))
            || home.as_ref().is_some_and(|home| place.starts_with(home) && place != home)
    };
    let sealed =
        wanted.seal.iter().filter(|place| writable(place) && !roots.iter().any(|root| place.starts_with(root)));
    spots.extend(sealed.map(|place| Spot { path: place.clone().into(), kind: Kind::Seal }));
    if let Some(home) = home.filter(usable).filter(|home| home != Path::new("/tmp")) {
        spots.push(Spot { path: home.into(), kind: Kind::Own });
    }
}

fn ways(network: &Network) -> Ways {
    let rules = match network {
        Network::None => return Ways::None,
        Network::All => return Ways::All,
        Network::Hosts(rules) | Network::Named(rules, _) => rules,
        // By the proxy alone.
        Network::Web(_) => return Ways::Gate(Vec::new()),
    };
    let mut known: Vec<Known> = Vec::new();
    for rule in rules {
        let Some(host) = rule.host() else { continue };
        let inside = match host {
            Host::Name(_) => Some(address(known.len())),
            // The program will connect to the address itself, so that is where somebody has to listen.
            Host::Address(IpAddr::V4(address)) => Some(*address),
            // Reached through the proxy alone.
            Host::Address(IpAddr::V6(_)) => None,
        };
        let Some(inside) = inside else { continue };
        let host = host.to_string();
        let ports = rule.port().map_or_else(|| USUAL_PORTS.to_vec(), |port| vec![port]);
        match known.iter_mut().find(|known| known.host == host) {
            Some(known) => known.ports.extend(ports),
            None => known.push(Known { address: inside, host, ports }),
        }
    }
    for host in &mut known {
        host.ports.sort_unstable();
        host.ports.dedup();
        if let Network::Named(_, rules) = network {
            // There is a way only to what the gate would let pass.
            let name = &host.host;
            let target = |port: &u16| Target::read(&format!("http://{name}:{port}/"));
            host.ports.retain(|port| target(port).is_ok_and(|target| rules.admits(&target).is_ok()));
        }
    }
    known.retain(|host| !host.ports.is_empty());
    Ways::Gate(known)
}
