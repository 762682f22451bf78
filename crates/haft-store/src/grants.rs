//! Remembered grants, per project. A use is taken in one transaction, so ten processes cannot use the
//! last one ten times.

use crate::cells;
use crate::db::{DbError, DbResult, Row};
use crate::journal::append;
use crate::{Entry, Mode, Store, StoreError, now_ms};
use haft_core::executed::ExecutedFile;
use haft_core::grant::{Grant, GrantScope};
use haft_core::record::Kind;
use haft_core::{CallId, SessionId, ToolName};
use std::path::Path;

fn read(row: &Row<'_>) -> DbResult<Grant> {
    let (tool, session): (String, Option<String>) = (row.get(1)?, row.get(3)?);
    Ok(Grant {
        id: row.get(0)?,
        tool: ToolName::new(&tool).map_err(|_| DbError::Odd("a word that nobody here writes".to_owned()))?,
        pattern: row.get(2)?,
        session: session.and_then(|text| SessionId::new(&text)),
        uses_left: row.get(4)?,
        expires_ms: row.get(5)?,
        scope: GrantScope::named(&row.get::<String>(6)?),
        executed: row.get::<Option<String>>(7)?.map(|text| files(&text)).transpose()?,
    })
}

/// The files that a grant is for. What cannot be read is an error, because without it the grant would cover more.
fn files(text: &str) -> DbResult<Vec<ExecutedFile>> {
    serde_json::from_str(text).map_err(|_| DbError::Odd("a list of files that nobody here writes".to_owned()))
}

impl Store {
    /// Remembers a grant for a project.
    pub async fn grant(&self, root: &Path, grant: Grant) -> Result<(), StoreError> {
        let root = haft_core::path_text::store(root);
        self.insist(Mode::Durable, move |db| {
            db.execute("INSERT INTO grants (id, root, tool, pattern, session, uses_left, expires_ms, scope, executed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", cells![
                    grant.id, root, grant.tool.as_str(), grant.pattern, grant.session.as_ref().map(SessionId::as_str),
                    grant.uses_left, grant.expires_ms, grant.scope.name(),
                    grant.executed.as_ref().map(|files| serde_json::to_string(files).unwrap_or_default())
                ])?;
            let entry = Entry::new(Kind::Grant)
                .with("grant", grant.id.as_str())
                .with("said", "given")
                .with("tool", grant.tool.as_str())
                .with("pattern", grant.pattern.as_str())
                .with("scope", grant.scope.name());
            append(db, &entry).map(drop)
        })
        .await
    }

    /// The grants of a project, for one tool or for all.
    pub async fn grants(&self, root: &Path, tool: Option<&ToolName>) -> Result<Vec<Grant>, StoreError> {
        let (root, tool) = (haft_core::path_text::store(root), tool.map(ToString::to_string));
        self.insist(Mode::Read, move |db| {
            db.all(
                "SELECT id, tool, pattern, session, uses_left, expires_ms, scope, executed FROM grants
                     WHERE root = ?1 AND (CAST(?2 AS TEXT) IS NULL OR tool = ?2) ORDER BY id",
                cells![root, tool],
                read,
            )
        })
        .await
    }

    /// Takes one use of a grant for a call. Returns false if it was used up, expired or withdrawn in the
    /// meantime; that, too, is recorded.
    pub async fn use_grant(&self, id: &str, call: &CallId) -> Result<bool, StoreError> {
        let (id, call) = (id.to_owned(), call.clone());
        self.insist(Mode::Write, move |db| {
            let found: Option<(Option<u32>, Option<i64>)> =
                db.first("SELECT uses_left, expires_ms FROM grants WHERE id = ?1", cells![&id], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            let said = match found {
                None => "withdrawn",
                Some((_, Some(end))) if end <= now_ms() => "expired",
                Some((Some(0), _)) => "exhausted",
                Some(_) => "approved",
            };
            if said == "approved" {
                db.execute("UPDATE grants SET uses_left = uses_left - 1 WHERE id = ?1", cells![&id])?;
            }
            let entry = Entry::new(Kind::Grant).call(&call).with("grant", id.as_str()).with("said", said);
            append(db, &entry)?;
            Ok(said == "approved")
        })
        .await
    }

    /// Withdraws a grant. Returns whether there was one.
    pub async fn revoke(&self, id: &str) -> Result<bool, StoreError> {
        let id = id.to_owned();
        self.insist(Mode::Durable, move |db| {
            let gone = db.execute("DELETE FROM grants WHERE id = ?1", cells![&id])? > 0;
            if gone {
                append(db, &Entry::new(Kind::Grant).with("grant", id.as_str()).with("said", "withdrawn"))?;
            }
            Ok(gone)
        })
        .await
    }
}
