//! Everything that is attempted: one row an act, in the file of its category.

pub(crate) mod allow;
pub(crate) mod dry;
pub(crate) mod kernel;
pub(crate) mod limits;
pub(crate) mod net;
pub(crate) mod process;
pub(crate) mod protect;
pub(crate) mod races;
pub(crate) mod read;
pub(crate) mod secret;
pub(crate) mod write;

use crate::attack::{Brief, Tried};

/// What outside shows that an act came out. Every oracle looks after every act; this is the one that an
/// unconfined attempt must trip, so that a blind oracle is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sight {
    /// None but the exit status: the kernel said yes.
    Answer,
    /// A secret of the site came out with the output.
    Secret,
    /// A file outside, or one that may only be read, is not as it was.
    Changed,
    /// A protected path of the project, or a privilege on one of its files, is not as it was.
    Protected,
    /// The project is not as it was, after a dry run.
    Kept,
    /// A socket or pipe of the harness was reached.
    Reached,
    /// The victim is dead, stopped, or treated differently.
    Victim,
    /// A process outlived the run.
    Lingers,
}

/// What stands around an act beyond the plain site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prop {
    /// Nothing.
    None,
    /// A process of the same user, with secrets in its environment, arguments and descriptors.
    Victim,
    /// Shared memory, semaphores and messages of System V.
    SysV,
    /// A POSIX message queue.
    Queue,
    /// A key that everybody may read.
    Key,
    /// A terminal of the harness's as standard input.
    Terminal,
    /// A program that runs as root for whoever starts it.
    SetUid,
    /// A server that answers.
    Friend,
    /// Somebody who dials a port again and again.
    Dialler,
    /// Somebody who exchanges a directory of the project with a link to outside, again and again.
    Swapper,
    /// Somebody who puts a link to outside in the place of the project, once.
    Replacer,
}

/// One forbidden thing, and how it is tried and judged.
pub(crate) struct Act {
    pub(crate) name: &'static str,
    pub(crate) attempt: fn(&Brief) -> Tried,
    pub(crate) sight: Sight,
    pub(crate) prop: Prop,
    /// More flags for `haft confine`; `{key}` stands for what the site has of that name.
    pub(crate) flags: &'static [&'static str],
    /// Whether an attacker that says it succeeded is enough.
    pub(crate) believed: bool,
    /// Runs, each on a site of its own; more than one for what depends on luck.
    pub(crate) rounds: usize,
    /// Uses enough of the machine that few such acts may run side by side.
    pub(crate) heavy: bool,
}

impl Act {
    pub(crate) const fn new(name: &'static str, attempt: fn(&Brief) -> Tried) -> Self {
        let (sight, prop, flags) = (Sight::Answer, Prop::None, &[] as &[&str]);
        Self { name, attempt, sight, prop, flags, believed: true, rounds: 1, heavy: false }
    }

    pub(crate) const fn seen(mut self, sight: Sight) -> Self {
        self.sight = sight;
        self
    }

    pub(crate) const fn with(mut self, prop: Prop) -> Self {
        self.prop = prop;
        self
    }

    pub(crate) const fn flags(mut self, flags: &'static [&'static str]) -> Self {
        self.flags = flags;
        self
    }

    /// Only what is seen outside counts, for acts that a copy-on-write view lets happen inside.
    pub(crate) const fn judged_outside(mut self) -> Self {
        self.believed = false;
        self
    }

    pub(crate) const fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds;
        self
    }

    pub(crate) const fn heavy(mut self) -> Self {
        self.heavy = true;
        self
    }

    /// Whether the project has to be as it was.
    pub(crate) fn is_dry(&self) -> bool {
        self.flags.contains(&"--dry-run")
    }

    /// Whether it brings a list of hosts that may be bad as such.
    pub(crate) fn names_hosts(&self) -> bool {
        !self.believed && self.flags.contains(&"--net")
    }

    pub(crate) fn category(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(category, _)| category)
    }
}

/// The categories in the order of the table.
const TABLES: &[&[Act]] = &[
    read::ACTS,
    write::ACTS,
    protect::ACTS,
    dry::ACTS,
    net::ACTS,
    allow::ACTS,
    process::ACTS,
    kernel::ACTS,
    secret::ACTS,
    limits::ACTS,
    races::ACTS,
];

pub(crate) fn all() -> impl Iterator<Item = &'static Act> {
    TABLES.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_act_has_a_name_of_its_own() {
        let mut names: Vec<&str> = all().map(|act| act.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(count >= 110, "{count} acts");
    }
}
