//! Pipelines that are kept: planned, captured, promoted or saved.

use crate::cells;
use crate::db::{DbResult, Row};
use crate::{Mode, Store, StoreError, now_ms};
use serde::Serialize;
use serde_json::Value;

/// A pipeline that is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stored {
    /// Its id.
    pub id: String,
    /// What people call it; one of a name in a project.
    pub name: String,
    /// `planned`, `captured`, `promoted` or `saved`.
    pub origin: String,
    /// What it does.
    pub plan: Value,
    /// When it was kept.
    pub at_ms: i64,
}

fn read(row: &Row<'_>) -> DbResult<Stored> {
    let plan = serde_json::from_str(&row.get::<String>(3)?).unwrap_or_default();
    Ok(Stored { id: row.get(0)?, name: row.get(1)?, origin: row.get(2)?, plan, at_ms: row.get(4)? })
}

impl Store {
    /// Keeps a pipeline in place of one of the same name.
    pub async fn keep_pipeline(&self, root: &str, kept: Stored) -> Result<(), StoreError> {
        let root = root.to_owned();
        self.run(Mode::Durable, move |db| {
            db.execute(
                "DELETE FROM pipelines WHERE root = ?1 AND name = ?2 AND id <> ?3",
                cells![root, kept.name, kept.id],
            )?;
            db.execute(
                "INSERT INTO pipelines (id, root, name, origin, plan, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (id) DO UPDATE SET name = excluded.name, origin = excluded.origin, plan = excluded.plan,
                 at_ms = excluded.at_ms",
                cells![kept.id, root, kept.name, kept.origin, kept.plan.to_string(), now_ms()],
            )
            .map(drop)
        })
        .await
    }

    /// The pipelines of a project, by name.
    pub async fn pipelines(&self, root: &str) -> Result<Vec<Stored>, StoreError> {
        let root = root.to_owned();
        self.run(Mode::Read, move |db| {
            let sql = "SELECT id, name, origin, plan, at_ms FROM pipelines WHERE root = ?1 ORDER BY name";
            db.all(sql, cells![root], read)
        })
        .await
    }

    /// A pipeline by its id, the beginning of its id, or its name.
    pub async fn pipeline(&self, root: &str, named: &str) -> Result<Vec<Stored>, StoreError> {
        let (root, named) = (root.to_owned(), named.to_owned());
        self.run(Mode::Read, move |db| {
            let sql = "SELECT id, name, origin, plan, at_ms FROM pipelines WHERE root = ?1 AND (id = ?2 OR name = ?2)";
            let exact = db.all(sql, cells![root, named], read)?;
            if !exact.is_empty() {
                return Ok(exact);
            }
            let sql = "SELECT id, name, origin, plan, at_ms FROM pipelines WHERE root = ?1 AND id >= ?2 AND id <= ?3 LIMIT 10";
            db.all(sql, cells![root, named, format!("{named}\u{10ffff}")], read)
        })
        .await
    }

    /// Forgets a pipeline. Says whether there was one.
    pub async fn forget_pipeline(&self, root: &str, id: &str) -> Result<bool, StoreError> {
        let (root, id) = (root.to_owned(), id.to_owned());
        self.run(Mode::Durable, move |db| {
            Ok(db.execute("DELETE FROM pipelines WHERE root = ?1 AND id = ?2", cells![root, id])? > 0)
        })
        .await
    }
}
