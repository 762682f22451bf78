//! What conversations have heard from elsewhere: labels, and which tools brought them. Never the words.

use crate::cells;
use crate::{Mode, Store, StoreError, now_ms};
use haft_core::SessionId;
use haft_core::outcome::{Label, Source};

/// How long it counts: as long as a yes "for this session" does.
pub const HOLDS_MS: i64 = 12 * 3_600_000;
/// How much is told of one conversation: the latest.
const SOURCES_MAX: i64 = 256;

impl Store {
    /// What a conversation has heard lately, and when, oldest first.
    pub async fn heard(&self, session: &SessionId) -> Result<Vec<(Source, i64)>, StoreError> {
        let session = session.clone();
        let mut found: Vec<(Source, i64)> = self
            .insist(Mode::Read, move |db| {
                db.all(
                    "SELECT label, tool, at_ms FROM heard WHERE session = ?1 AND at_ms > ?2
                         ORDER BY at_ms DESC, label DESC LIMIT ?3",
                    cells![session.as_str(), now_ms() - HOLDS_MS, SOURCES_MAX],
                    |row| {
                        let (label, tool): (String, String) = (row.get(0)?, row.get(1)?);
                        // A word that a newer version wrote: the strictest that is known here.
                        Ok((Source { label: Label::read(&label).unwrap_or(Label::Flagged), tool }, row.get(2)?))
                    },
                )
            })
            .await?;
        found.reverse();
        Ok(found)
    }

    /// Notes what a conversation has heard, without waiting, and forgets what no longer counts.
    pub fn note_heard(&self, session: &SessionId, sources: Vec<Source>) {
        let session = session.clone();
        self.later(move |db| {
            let now = now_ms();
            db.execute("DELETE FROM heard WHERE at_ms <= ?1", cells![now - HOLDS_MS])?;
            for source in &sources {
                db.execute(
                    "INSERT INTO heard (session, label, tool, at_ms) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (session, label, tool) DO UPDATE SET at_ms = excluded.at_ms",
                    cells![session.as_str(), source.label.as_str(), source.tool, now],
                )?;
            }
            Ok(())
        });
    }
}
