//! Who works on what is stored here.

use crate::cells;
use crate::{Mode, Store, StoreError};
use serde::Serialize;

/// How long a worker may be silent before it counts as lost.
const LOST_MS: i64 = 30_000;
/// How long a worker may be silent before it is forgotten.
const FORGOTTEN_MS: i64 = 24 * 3600 * 1000;

/// A worker as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerSeen {
    /// Its id.
    pub id: String,
    /// On which machine.
    pub host: String,
    /// As which process there.
    pub pid: i64,
    /// The project whose steps it does.
    pub root: String,
    /// What it has.
    pub labels: Vec<String>,
    /// How many steps it does at once.
    pub slots: u32,
    /// `working`, `draining`, `gone`, or `lost` if it has been silent for longer than any worker is.
    pub state: String,
    /// Since when it is there.
    pub begun_ms: i64,
    /// When it was last seen.
    pub seen_ms: i64,
    /// How many steps it has just now.
    pub busy: i64,
}

impl Store {
    /// Notes that a worker is there, or how it stands.
    pub async fn see_worker(&self, worker: WorkerSeen) -> Result<(), StoreError> {
        self.run(Mode::Write, move |db| {
            let now = db.now_ms()?;
            db.execute("DELETE FROM workers WHERE seen_ms < ?1", cells![now - FORGOTTEN_MS])?;
            let WorkerSeen { id, host, pid, root, labels, slots, state, .. } = worker;
            db.execute(
                "INSERT INTO workers (id, host, pid, root, labels, slots, state, begun_ms, seen_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)
                 ON CONFLICT (id) DO UPDATE SET state = excluded.state, seen_ms = excluded.seen_ms",
                cells![id, host, pid, root, labels.join(","), slots, state, now],
            )
            .map(drop)
        })
        .await
    }

    /// The workers that were seen lately.
    pub async fn workers(&self) -> Result<Vec<WorkerSeen>, StoreError> {
        self.insist(Mode::Read, |db| {
            let lost = db.now_ms()? - LOST_MS;
            db.all(
                "SELECT id, host, pid, root, labels, slots,
                 CASE WHEN state <> 'gone' AND seen_ms < ?1 THEN 'lost' ELSE state END, begun_ms, seen_ms,
                 (SELECT count(*) FROM steps WHERE steps.state = 'running' AND steps.worker = workers.id)
                 FROM workers ORDER BY seen_ms DESC",
                cells![lost],
                |row| {
                    let labels: String = row.get(4)?;
                    Ok(WorkerSeen {
                        id: row.get(0)?,
                        host: row.get(1)?,
                        pid: row.get(2)?,
                        root: row.get(3)?,
                        labels: labels.split(',').filter(|label| !label.is_empty()).map(ToOwned::to_owned).collect(),
                        slots: row.get(5)?,
                        state: row.get(6)?,
                        begun_ms: row.get(7)?,
                        seen_ms: row.get(8)?,
                        busy: row.get(9)?,
                    })
                },
            )
        })
        .await
    }
}
