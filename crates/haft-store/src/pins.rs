//! What tools were when somebody accepted them: what a bridged server's tools said of themselves, and what the manifests and
//! files of a project's tools were. What differs from its pin is not the tool that was accepted.

use crate::cells;
use crate::db::{DbResult, Row};
use crate::journal::append;
use crate::{Entry, Mode, Store, StoreError, now_ms};
use haft_core::record::{Digest, Kind};
use serde::Serialize;
use serde_json::Value;

/// An accepted declaration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pin {
    /// The tool's name on its server, or in its project.
    pub tool: String,
    /// Of the declaration, or of the manifest.
    pub digest: Digest,
    /// What the tool said it is; for a manifest, the digests of what belongs to it.
    pub declaration: Value,
}

fn read(row: &Row<'_>) -> DbResult<Pin> {
    let (digest, text): (Vec<u8>, String) = (row.get(1)?, row.get(2)?);
    let declaration = serde_json::from_str(&text).unwrap_or_default();
    // A digest that cannot be read is nobody's: the tool counts as altered.
    Ok(Pin { tool: row.get(0)?, digest: Digest::from_bytes(&digest).unwrap_or(Digest::ZERO), declaration })
}

/// How often pins were made and forgotten, in all: what tells one state of them from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinsAsOf(i64);

impl Store {
    /// Which state the pins are in, without reading them. The store counts each change along with the change itself.
    pub async fn pins_as_of(&self) -> Result<PinsAsOf, StoreError> {
        self.insist(Mode::Read, move |db| db.one("SELECT count FROM pin_changes", &[], |row| row.get(0).map(PinsAsOf)))
            .await
    }

    /// What was accepted of a server's tools, by name.
    pub async fn pins(&self, server: &str) -> Result<Vec<Pin>, StoreError> {
        let server = server.to_owned();
        self.insist(Mode::Read, move |db| {
            db.all("SELECT tool, digest, declaration FROM pins WHERE server = ?1 ORDER BY tool", cells![server], read)
        })
        .await
    }

    /// Accepts declarations of a server's tools in place of what was accepted before, and records each.
    pub async fn pin(&self, server: &str, pins: Vec<Pin>) -> Result<(), StoreError> {
        let server = server.to_owned();
        self.run(Mode::Durable, move |db| {
            for pin in pins {
                db.execute(
                    "INSERT INTO pins (server, tool, digest, declaration, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (server, tool) DO UPDATE SET digest = excluded.digest,
                     declaration = excluded.declaration, at_ms = excluded.at_ms",
                    cells![server, pin.tool, pin.digest.as_bytes(), pin.declaration.to_string(), now_ms()],
                )?;
                let entry = Entry::new(Kind::Pin).with("server", server.as_str()).with("tool", pin.tool);
                append(db, &entry.with("declaration", pin.digest.to_string()))?;
            }
            Ok(())
        })
        .await
    }

    /// What was accepted of one tool of a server.
    pub async fn pin_of(&self, server: &str, tool: &str) -> Result<Option<Pin>, StoreError> {
        let (server, tool) = (server.to_owned(), tool.to_owned());
        self.insist(Mode::Read, move |db| {
            db.first(
                "SELECT tool, digest, declaration FROM pins WHERE server = ?1 AND tool = ?2",
                cells![server, tool],
                read,
            )
        })
        .await
    }

    /// What the files of an accepted tool said, for whoever is to see what changed since. Apart from the pins, because
    /// these are read before each call and this is not.
    pub async fn pin_texts(&self, server: &str, tool: &str) -> Result<Value, StoreError> {
        let (server, tool) = (server.to_owned(), tool.to_owned());
        self.insist(Mode::Read, move |db| {
            let texts: Option<String> =
                db.first("SELECT texts FROM pin_texts WHERE server = ?1 AND tool = ?2", cells![server, tool], |row| {
                    row.get(0)
                })?;
            Ok(texts.and_then(|texts| serde_json::from_str(&texts).ok()).unwrap_or_default())
        })
        .await
    }

    /// Keeps what the files of tools say that are about to be accepted.
    pub async fn keep_pin_texts(&self, server: &str, texts: Vec<(String, Value)>) -> Result<(), StoreError> {
        let server = server.to_owned();
        self.run(Mode::Durable, move |db| {
            for (tool, texts) in texts {
                db.execute(
                    "INSERT INTO pin_texts (server, tool, texts) VALUES (?1, ?2, ?3)
                     ON CONFLICT (server, tool) DO UPDATE SET texts = excluded.texts",
                    cells![server, tool, texts.to_string()],
                )?;
            }
            Ok(())
        })
        .await
    }

    /// Forgets what was accepted of some tools of a server, and records each.
    pub async fn unpin_tools(&self, server: &str, tools: Vec<String>) -> Result<(), StoreError> {
        let server = server.to_owned();
        self.run(Mode::Durable, move |db| {
            for tool in tools {
                db.execute("DELETE FROM pins WHERE server = ?1 AND tool = ?2", cells![&server, &tool])?;
                db.execute("DELETE FROM pin_texts WHERE server = ?1 AND tool = ?2", cells![&server, &tool])?;
                let entry = Entry::new(Kind::Pin).with("server", server.as_str()).with("tool", tool);
                append(db, &entry.with("said", "forgotten"))?;
            }
            Ok(())
        })
        .await
    }

    /// Forgets what was accepted of a server.
    pub async fn unpin(&self, server: &str) -> Result<(), StoreError> {
        let server = server.to_owned();
        self.run(Mode::Durable, move |db| {
            db.execute("DELETE FROM pins WHERE server = ?1", cells![server.as_str()])?;
            append(db, &Entry::new(Kind::Pin).with("server", server).with("said", "forgotten")).map(drop)
        })
        .await
    }
}
