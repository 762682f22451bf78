//! Which calls took which calls back, and whose changes stand.

use super::REDONE_MAX;
use crate::cells;
use crate::db::{Db, DbResult};
use haft_core::CallId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The undos of a project, and what they took back.
#[derive(Debug, Default)]
pub struct UndoLinks {
    calls: BTreeMap<String, Link>,
    /// The undos of a call. An undo that takes back only some of its changes does not mark it.
    undos: BTreeMap<String, Vec<String>>,
}

#[derive(Debug)]
struct Link {
    at_ms: i64,
    undone_by: Option<String>,
}

/// The calls whose changes stand in place of a call's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingCalls {
    /// Itself and those that redid its changes, without those that were taken back as a whole. The latest first.
    pub calls: Vec<CallId>,
    /// What took back the latest of them, if none stands.
    pub undone_by: Option<String>,
}

/// A call, its time, the call that it took back, and the one that took it back.
type LinkRow = (String, i64, Option<String>, Option<String>);

impl UndoLinks {
    pub(super) fn read(db: &Db<'_>, root: &str) -> DbResult<Self> {
        let sql = "SELECT call_id, at_ms, undoes, undone_by FROM undo_calls
                   WHERE root = ?1 AND (undoes IS NOT NULL OR undone_by IS NOT NULL)";
        let rows: Vec<LinkRow> =
            db.all(sql, cells![root], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        let mut links = Self::default();
        for (call, at_ms, undoes, undone_by) in rows {
            if let Some(undone) = undoes {
                links.undos.entry(undone).or_default().push(call.clone());
            }
            links.calls.insert(call, Link { at_ms, undone_by });
        }
        Ok(links)
    }

    /// Whose changes stand in place of a call's.
    pub fn standing(&self, call: &CallId) -> StandingCalls {
        let mut found: Vec<(i64, usize, &str)> = Vec::new();
        let mut waiting = VecDeque::from([(call.as_str(), 0)]);
        let mut seen = BTreeSet::from([call.as_str()]);
        while let Some((call, depth)) = waiting.pop_front() {
            let link = self.calls.get(call);
            // Every other one takes back what the one before did.
            if depth % 2 == 0 {
                found.push((link.map_or(0, |link| link.at_ms), depth, call));
            }
            let undone_by = link.and_then(|link| link.undone_by.as_deref());
            let undos = self.undos.get(call).into_iter().flatten().map(String::as_str);
            for next in undone_by.into_iter().chain(undos) {
                if depth < REDONE_MAX && seen.insert(next) {
                    waiting.push_back((next, depth + 1));
                }
            }
        }
        found.sort_unstable();
        let undone_by = |call: &str| self.calls.get(call)?.undone_by.clone();
        let latest_first = || found.iter().rev().map(|(_, _, call)| *call);
        let calls: Vec<CallId> =
            latest_first().filter(|call| undone_by(call).is_none()).filter_map(CallId::parse).collect();
        let undone_by = if calls.is_empty() { latest_first().find_map(undone_by) } else { None };
        StandingCalls { calls, undone_by }
    }
}
