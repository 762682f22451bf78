//! What a program may touch and use up, as values. Nothing here knows how it is enforced.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Which part of the network a program may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Only its own loopback, which nobody else shares.
    #[default]
    None,
    /// All of it, as if it were not confined.
    All,
    /// These hosts, by way of a gate that checks name and address.
    Hosts(Vec<HostRule>),
    /// The web, as far as these rules go, by way of the same gate. There are no names and no addresses inside but the
    /// proxy's.
    Web(Rules),
    /// These hosts as far as these rules go, which name them as well, by way of the same gate. A program that knows of no
    /// proxy reaches them by their names.
    Named(Vec<HostRule>, Rules),
}

pub use haft_core::host::HostRule;
use haft_core::web::Rules;

/// Where a program's writes go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// Straight into the writable roots. Nothing can be shown beforehand, or taken back.
    #[default]
    Direct,
    /// To a copy-on-write view of each writable root, whose layers are kept below this directory. The real
    /// files stay as they are until the layers are applied.
    Layered(PathBuf),
}

/// What a program may use up. None is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Memory of all its processes together, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Processor time of all its processes together.
    pub cpu: Option<Duration>,
    /// Time from start to end.
    pub wall: Option<Duration>,
    /// The largest file it may write, in bytes.
    pub file_size: Option<u64>,
    /// All that it writes to disk, in bytes.
    pub disk: Option<u64>,
    /// What it may print, in bytes, where somebody reads it.
    pub output: Option<u64>,
    /// The size of its own temporary directory.
    pub temp: u64,
}

impl Default for Bounds {
    /// Generous for honest work (a compiler, a test suite), and small enough that the machine stays usable.
    fn default() -> Self {
        Self {
            memory: Some(8 << 30),
            processes: Some(1024),
            cpu: Some(Duration::from_hours(1)),
            wall: None,
            file_size: Some(8 << 30),
            disk: Some(16 << 30),
            output: Some(32 << 20),
            temp: 2 << 30,
        }
    }
}

/// What a program may touch and use up. Paths are absolute; [`crate::roots::resolve`] makes them so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Trees it may read, besides the system's programs and libraries.
    pub read: Vec<PathBuf>,
    /// Trees it may also write.
    pub write: Vec<PathBuf>,
    /// Places inside the writable trees that stay as they are.
    pub protect: Vec<PathBuf>,
    /// Places inside any tree that it must not even read.
    pub hide: Vec<PathBuf>,
    /// Places of which only the trees in them are there: nothing else can be written, although it would be gone afterwards.
    #[serde(default)]
    pub seal: Vec<PathBuf>,
    /// Files that are seen in the place of others: the place, and the file that is seen there, whatever happens to the one
    /// that it stands for. Only in a root of its own; where the root is everybody's, the real ones are seen.
    #[serde(default)]
    pub stand_in: Vec<(PathBuf, PathBuf)>,
    /// Trees of which it has a copy-on-write view that nobody keeps, each with the directory that the view's layer is in.
    /// Only in a root of its own.
    #[serde(default)]
    pub passing: Vec<(PathBuf, PathBuf)>,
    /// What it writes straight, wherever else its writes go: the place, and what is really written there. Only in a root of
    /// its own.
    #[serde(default)]
    pub lent: Vec<(PathBuf, PathBuf)>,
    /// The network.
    pub network: Network,
    /// Where writes go.
    pub writes: Writes,
    /// What it may use up.
    pub bounds: Bounds,
}
