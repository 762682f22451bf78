//! Which machine and process this is, so that others can tell whether it still lives.
//!
//! A process's number says something only where it can be looked up: on the same machine, since the same boot, among the
//! processes that see one another. That place is the host. Whoever is elsewhere is known by what they last wrote: each
//! store on a server renews a row there, and whoever has not for [`DEAD_MS`] is gone.

use crate::db::{Db, DbResult, Kind};
use crate::migrate::Step;
use crate::{cells, is_alive, myself};
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

/// How long a process may be silent before others take it for dead.
pub(crate) const DEAD_MS: i64 = 20_000;
/// How long after its start a server's rows prove nothing: nobody could renew them while it was away.
const WARM_UP_MS: i64 = 30_000;
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
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let seen = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        format!("{}/{}", host_name(), short(&format!("{} {}", boot.trim(), seen.display())))
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

/// Whether the process that opened a call still lives.
pub(crate) fn lives(db: &Db<'_>, process: &str, pid: i64, born: &str) -> DbResult<bool> {
    let here = process.is_empty() || process.strip_prefix(host()).is_some_and(|rest| rest.starts_with('/'));
    if db.kind() == Kind::Lite || here {
        return Ok(is_alive(pid, born));
    }
    if process.ends_with(OBSERVED) {
        return Ok(true);
    }
    let seen = db.first("SELECT seen_ms FROM processes WHERE id = ?1", cells![process], |row| row.get::<i64>(0))?;
    let Some(seen) = seen else { return Ok(false) };
    let started = "CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000 AS BIGINT)";
    let (now, started): (i64, i64) =
        db.one(&format!("SELECT {NOW}, {started}"), &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(now - seen < DEAD_MS || now - started < WARM_UP_MS)
}

/// The host's name, of a process that somebody wrote down.
pub(crate) fn name_of(process: &str) -> Option<String> {
    let name = process.split('/').next().filter(|name| !name.is_empty())?;
    (!process.starts_with(host())).then(|| name.to_owned())
}
