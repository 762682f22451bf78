//! The paths that commands read and write.

use super::entry::Depth;
use super::judged::{Doubt, Harm, Subtree, Target};
use super::state::{State, join};
use super::walk::Walk;
use super::word::{Value, Word};

/// Devices that take and give without keeping anything.
const SINKS: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"];
/// Disks, and the machine's memory.
const DISKS: &[&str] = &[
    "/dev/sd",
    "/dev/hd",
    "/dev/vd",
    "/dev/xvd",
    "/dev/nvme",
    "/dev/mmcblk",
    "/dev/disk",
    "/dev/rdisk",
    "/dev/mapper/",
    "/dev/dm-",
    "/dev/md",
    "/dev/loop",
    "/dev/mem",
    "/dev/kmem",
    "/dev/port",
];

/// Whether nothing stays of what goes there.
fn is_sink(path: &str) -> bool {
    SINKS.contains(&path) || path.strip_prefix("/dev/fd/").is_some_and(|fd| fd.chars().all(|c| c.is_ascii_digit()))
}

impl Walk<'_> {
    /// A path is read, and if it is a directory, what lies below it this deep.
    pub(super) fn reads(&mut self, word: &Word, depth: Depth, state: &State, doubts: &mut Vec<Doubt>) {
        // A name with a blank in it is taken apart: where the pieces lead, only the kernel knows.
        self.follows |= matches!(word.value, Value::Below { safe: false, .. });
        // What was found below a directory may be any file there.
        let below = matches!(word.value, Value::Below { .. }) && depth != Depth::Names;
        let depth = if below { Depth::Everything } else { depth };
        for target in targets(word, state, doubts) {
            if matches!(depth, Depth::Visible | Depth::Everything) {
                let subtree = Subtree { top: target.clone(), visible_only: depth == Depth::Visible };
                if !self.subtrees.contains(&subtree) {
                    self.subtrees.push(subtree);
                }
            }
            if !self.reads.contains(&target) {
                self.reads.push(target);
            }
        }
    }

    /// A path is written, by `what`.
    pub(super) fn writes(&mut self, word: &Word, state: &State, doubts: &mut Vec<Doubt>, what: &str) {
        if word.text.starts_with(">(") || word.literal().is_some_and(|path| self.swallows(path)) {
            return;
        }
        doubts.push(Doubt::new(Harm::Writes, format!("{what} writes {}", super::cut(word.shown()))));
        for target in targets(word, state, doubts) {
            if DISKS.iter().any(|disk| target.text().starts_with(disk)) {
                self.ruin(format!("{} is a disk, or the machine's memory, and would be overwritten", target.text()));
            }
            if !self.writes.contains(&target) {
                self.writes.push(target);
            }
        }
    }

    /// Whether nothing stays of what is written there. What a descriptor leads to can be opened anew through
    /// its name, so that counts only where no descriptor was ever opened for reading.
    fn swallows(&self, path: &str) -> bool {
        matches!(path, "/dev/null" | "/dev/zero" | "/dev/full" | "/dev/tty")
            || (matches!(path, "/dev/stdout" | "/dev/stderr") && !self.opens)
    }

    /// It must never run.
    pub(super) fn ruin(&mut self, why: impl Into<String>) {
        self.catastrophe.get_or_insert_with(|| why.into());
    }
}

/// The places that a word names.
pub(super) fn targets(word: &Word, state: &State, doubts: &mut Vec<Doubt>) -> Vec<Target> {
    let unknown = |why: String| Doubt::new(Harm::Unknown, why);
    let (paths, glob): (Vec<&str>, bool) = match &word.value {
        Value::Known(path) if path.is_empty() || path == "-" || is_sink(path) => return Vec::new(),
        Value::Known(path) => (vec![path], false),
        Value::Glob(pattern) => (vec![pattern], true),
        Value::Below { bases, .. } => (bases.iter().map(String::as_str).collect(), false),
        Value::Number | Value::Partial { .. } => {
            doubts.push(unknown(format!("`{}` is not known before it runs", super::cut(&word.text))));
            return Vec::new();
        }
    };
    let mut found = Vec::new();
    for path in paths {
        if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") {
            doubts.push(Doubt::new(Harm::Sends, format!("{} is a connection", super::cut(path))));
        }
        let absolute = path.starts_with('/');
        if state.is_lost() && !absolute {
            doubts.push(unknown(format!("it is not known where `{}` is", super::cut(path))));
        }
        // An absolute path is the same from everywhere.
        let root = absolute.then_some("/");
        for place in root.into_iter().chain(state.places().map(String::as_str).filter(|_| !absolute)) {
            let path = &path.replace("/./", "/").replace("//", "/");
            let path = if glob && path.starts_with('{') { rooted(place, path) } else { join(place, path) };
            let target = if glob { Target::Glob(path) } else { Target::Path(path) };
            if !found.contains(&target) {
                found.push(target);
            }
        }
    }
    found
}

/// `{a,/b}` at a place: each alternative by itself.
fn rooted(place: &str, pattern: &str) -> String {
    let inner = pattern.trim_start_matches('{').trim_end_matches('}');
    let each: Vec<String> = inner.split(',').map(|path| join(place, path)).collect();
    format!("{{{}}}", each.join(","))
}
