//! What a confined program finds: every place of its root and how it is made, decided before anything is
//! built. Paths are byte strings here, because that is what they are, and because they cross a socket.

use crate::backend::Program;
use crate::confinement::Bounds;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::net::Ipv4Addr;

/// How a place is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// The real one, read-only.
    Read,
    /// The real one, which is a regular file, read-only.
    ReadFile,
    /// A read-only view of the real one, in which sockets are dead.
    ReadView,
    /// The real one.
    Write,
    /// A copy-on-write view of the real one.
    Layer { upper: OsString, work: OsString },
    /// Something else that is seen and written here, straight.
    Lent { of: OsString },
    /// A file that is seen here in the place of the real one, read-only.
    StandIn { by: OsString },
    /// As it is in the place around it, but it cannot be moved away.
    Pin,
    /// As it is in the place around it, but read-only.
    Protect,
    /// There, but closed.
    Hide,
    /// An empty directory of its own, in memory.
    Own,
    /// A directory that is there, with nothing in it but what else is mounted there.
    Empty,
    /// The same, read-only once everything is mounted.
    Seal,
}

/// A place in the program's root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spot {
    pub(super) path: OsString,
    pub(super) kind: Kind,
}

/// A host that can be reached, and by which address it is known inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) host: String,
    pub(super) address: Ipv4Addr,
    pub(super) ports: Vec<u16>,
}

/// The way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ways {
    /// There is none.
    None,
    /// The network is everybody's.
    All,
    /// Through sockets that the gate outside listens on.
    Gate(Vec<Known>),
}

/// Whether a root is built, or Landlock stands alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Walls {
    /// Namespaces with a root of its own; and Landlock, if the kernel has it.
    Root { landlock: bool },
    /// Landlock and seccomp on the root that everybody shares.
    Flat,
}

/// Everything that it takes to confine a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Layout {
    pub(super) walls: Walls,
    /// Outer places before inner ones.
    pub(super) spots: Vec<Spot>,
    pub(super) ways: Ways,
    /// Whether unix sockets can be made.
    pub(super) unix: bool,
    /// Whether connections are reported.
    pub(super) watched: bool,
    pub(super) bounds: Bounds,
}

/// What the helper is asked to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// Start a program.
    Start(Box<Order>),
    /// Find out what this machine offers. A large process, or one of many threads, cannot do that itself.
    Look,
}

/// A program and how it is confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) layout: Layout,
    pub(super) program: Program,
}

/// The address at which the gate's proxy and names are found inside.
pub(super) const GATE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Its proxy.
pub(super) const PROXY_PORT: u16 = 3128;
/// Its names.
pub(super) const NAMES_PORT: u16 = 53;

/// The address by which the nth host is known inside.
pub(super) fn address(number: usize) -> Ipv4Addr {
    let number = u32::try_from(number).unwrap_or(0) + 2;
    Ipv4Addr::from_bits(GATE.to_bits() - 1 + number)
}
