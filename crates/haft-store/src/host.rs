//! Which machine and process this is, and whether the process that has a call open still lives.
//!
//! A process that opens calls holds a lock in its data directory (`presence.rs`). Whoever has the same directory looks at the
//! lock. Others, who can only share a server, go by what the process last wrote: each store on a server renews a row there, and
//! whoever has not for [`DEAD_MS`] is gone.
//!
//! Two kinds of processes hold no lock: agents, whose own calls are observed, and versions of haft before the locks. They are
//! looked up by their numbers, which says something only since the same boot, among the processes that see one another. That
//! place is the host. One that cannot be seen from here is not taken for dead until [`OUT_OF_SIGHT_MS`] have passed.

use crate::db::{Db, DbResult, Kind};
use crate::journal::birth;
use crate::migrate::Step;
use crate::presence::LockState;
use crate::{Row, cells, myself, now_ms};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

/// How long a process may be silent before others take it for dead.
pub(crate) const DEAD_MS: i64 = 20_000;
/// How long after its start a server's rows prove nothing: nobody could renew them while it was away.
const WARM_UP_MS: i64 = 30_000;
/// How long a process without a lock that cannot be seen from here is taken for alive: an older haft, and an agent.
const OUT_OF_SIGHT_MS: i64 = 86_400_000;
const AGENT_OUT_OF_SIGHT_MS: i64 = 7 * 86_400_000;
/// How long the rows of the dead are kept.
const KEPT_MS: i64 = 86_400_000;

/// Who lives where, and where calls and what undoes them are.
pub(crate) const TABLES: Step = Step::alike(
    "CREATE TABLE processes (
        id TEXT PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, born TEXT NOT NULL, seen_ms INTEGER NOT NULL,
        mark INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    ALTER TABLE open_calls ADD COLUMN process TEXT NOT NULL DEFAULT '';
    ALTER TABLE undo_calls ADD COLUMN host TEXT;
    ALTER TABLE approvals ADD COLUMN host TEXT;
    ALTER TABLE approvals ADD COLUMN consent TEXT;",
);

/// Ends what an agent's process is known by.
const OBSERVED: &str = "observed";

/// The machine's name, as people know it.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let name: String = name.trim().chars().filter(|c| plain(*c)).take(64).collect();
    if name.is_empty() { "somewhere".to_owned() } else { name }
}

/// This machine, whatever was started on it since: its name, and what tells it from others of that name.
pub(crate) fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let id = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        format!("{}/{}", host_name(), short(id.trim()))
    })
}

fn short(text: &str) -> String {
    Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// This host: its name, and what tells it from others of that name.
fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let seen = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        format!("{}/{}", host_name(), short(&format!("{} {}", boot_id(), seen.display())))
    })
}

/// Which start of this machine's kernel this is.
pub(crate) fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        boot.trim().to_owned()
    })
}

/// A store of this process on a server: what it is known by there, and how it says that it lives.
#[derive(Debug, Clone)]
pub(crate) struct Me {
    pub(crate) id: String,
    values: String,
}

/// A server's time, in milliseconds.
const NOW: &str = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";

impl Me {
    /// The one that this number belongs to.
    pub(crate) fn new(writer: i64) -> Self {
        let ((pid, born), host) = (myself(), host());
        let id = format!("{host}/{pid}/{writer:x}");
        let values = format!("'{id}', '{host}', {pid}, '{}'", born.replace('\'', ""));
        Self { id, values }
    }

    /// The statement by which it says that it lives, and which of its writings this is.
    pub(crate) fn alive(&self, mark: i64) -> String {
        format!(
            "INSERT INTO processes (id, host, pid, born, seen_ms, mark) VALUES ({}, {NOW}, {mark})
             ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms, mark = excluded.mark",
            self.values
        )
    }

    /// The statement by which it says goodbye.
    pub(crate) fn gone(&self) -> String {
        format!("DELETE FROM processes WHERE id = '{}' OR seen_ms < {NOW} - {KEPT_MS}", self.id)
    }
}

/// What an agent's process is known by that has an observed call open. It writes nothing here, so only its own machine can
/// tell whether it lives.
pub(crate) fn observed_process(pid: i64) -> String {
    format!("{}/{pid}/{OBSERVED}", host())
}

/// Who has a call open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallOwner {
    /// What it is known by on a server; and everywhere, if it is an agent.
    pub(crate) process: String,
    pid: i64,
    pub(crate) born: String,
    /// The lock that it holds. Versions before the locks wrote none.
    pub(crate) lock: String,
    since_ms: i64,
}

impl CallOwner {
    /// Of `open_calls`.
    pub(crate) const COLUMNS: &str =
        "open_calls.process, open_calls.pid, open_calls.born, open_calls.lock, open_calls.at_ms";

    /// Reads these columns, the first of them at `first`.
    pub(crate) fn read(row: &Row<'_>, first: usize) -> DbResult<Self> {
        Ok(Self {
            process: row.get(first)?,
            pid: row.get(first + 1)?,
            born: row.get(first + 2)?,
            lock: row.get(first + 3)?,
            since_ms: row.get(first + 4)?,
        })
    }

    /// Whether it still lives. Where that cannot be known, it does.
    pub(crate) fn lives(&self, db: &Db<'_>) -> DbResult<bool> {
        if self.process.ends_with(OBSERVED) {
            return Ok(self.agent_lives(db.kind()));
        }
        match db.lock_state(&self.lock) {
            LockState::Free => Ok(false),
            LockState::Missing | LockState::Unknown if db.kind() == Kind::Post => self.is_heard_of(db),
            // Who holds a lock removes it when it ends. Versions before the locks had none.
            LockState::Missing => Ok(self.lock.is_empty() && may_live(self.pid, &self.born, self.since_ms)),
            // A lock that may not be looked at counts as held.
            LockState::Held | LockState::Unknown => Ok(true),
        }
    }

    fn agent_lives(&self, kind: Kind) -> bool {
        let place = |process: &str| process.split('/').nth(1).map(str::to_owned);
        let is_visible = place(&self.process) == place(host());
        let is_of_this_boot = boot_of(&self.born) == boot_id();
        match look_at(self.pid, &self.born, is_visible) {
            _ if !is_of_this_boot => kind == Kind::Post,
            ProcessSight::Alive => true,
            ProcessSight::Gone => false,
            ProcessSight::OutOfSight => now_ms() - self.since_ms < AGENT_OUT_OF_SIGHT_MS,
        }
    }

    /// Whether its store on the server was heard of.
    fn is_heard_of(&self, db: &Db<'_>) -> DbResult<bool> {
        let sql = "SELECT seen_ms FROM processes WHERE id = ?1";
        let Some(seen) = db.first(sql, cells![self.process], |row| row.get::<i64>(0))? else { return Ok(false) };
        let started = "CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000 AS BIGINT)";
        let (now, started): (i64, i64) =
            db.one(&format!("SELECT {NOW}, {started}"), &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(now - seen < DEAD_MS || now - started < WARM_UP_MS)
    }

    /// The host's name, if it is another one.
    pub(crate) fn host_name(&self) -> Option<String> {
        let name = self.process.split('/').next().filter(|name| !name.is_empty())?;
        (!self.process.starts_with(host())).then(|| name.to_owned())
    }
}

/// What can be seen of a process by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessSight {
    Alive,
    Gone,
    /// Another PID namespace, or a system that hides the processes of others.
    OutOfSight,
}

fn boot_of(born: &str) -> &str {
    born.split_once('@').map_or("", |(_, boot)| boot)
}

/// Looks at a process of this boot. `is_visible` says that its number means the same here as where it was written down.
fn look_at(pid: i64, born: &str, is_visible: bool) -> ProcessSight {
    let found = birth(pid);
    if found.as_deref() == Some(born) {
        return ProcessSight::Alive;
    }
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let is_hidden = || number.is_some_and(|number| test_kill_process(number) == Err(Errno::PERM));
    if is_visible && (found.is_some() || !is_hidden()) { ProcessSight::Gone } else { ProcessSight::OutOfSight }
}

/// Whether a process may live that an earlier version of haft wrote down by its number alone, so long ago: in which PID
/// namespace that was is not known.
pub fn may_live(pid: i64, born: &str, since_ms: i64) -> bool {
    if boot_of(born) != boot_id() {
        return false;
    }
    match look_at(pid, born, false) {
        ProcessSight::Alive => true,
        ProcessSight::Gone => false,
        ProcessSight::OutOfSight => now_ms() - since_ms < OUT_OF_SIGHT_MS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_of_an_earlier_version_is_judged_by_what_can_be_seen() {
        let (pid, born) = myself();
        let now = now_ms();
        assert!(may_live(pid, &born, 0), "it is seen, however old it is");
        assert!(!may_live(pid, "1@another-boot", now));
        assert!(!may_live(0, "", now), "nobody");
        // The number was given to another process, or belongs to another PID namespace.
        for number in [pid, 99_999_999] {
            assert!(may_live(number, &format!("1{born}"), now));
            assert!(!may_live(number, &format!("1{born}"), now - OUT_OF_SIGHT_MS - 1));
        }
    }

    #[test]
    fn agent_is_judged_where_its_number_means_something() {
        let (pid, born) = myself();
        let agent = |process: String, pid: i64, born: &str| CallOwner {
            process,
            pid,
            born: born.to_owned(),
            lock: String::new(),
            since_ms: now_ms(),
        };
        let here = observed_process(pid);
        assert!(agent(here.clone(), pid, &born).agent_lives(Kind::Lite));
        assert!(!agent(here.clone(), 99_999_999, &born).agent_lives(Kind::Lite));
        assert!(!agent(here.clone(), pid, &format!("1{born}")).agent_lives(Kind::Lite), "its number is another's");
        let elsewhere = format!("{}/00ff00/7/{OBSERVED}", host_name());
        let mut unseen = agent(elsewhere, 99_999_999, &born);
        assert!(unseen.agent_lives(Kind::Lite));
        unseen.since_ms -= AGENT_OUT_OF_SIGHT_MS;
        assert!(!unseen.agent_lives(Kind::Lite));
        let rebooted = agent(here, pid, "1@another-boot");
        assert_eq!([Kind::Lite, Kind::Post].map(|kind| rebooted.agent_lives(kind)), [false, true]);
    }
}
