//! The record of an installation: what each file was before, so that `haft mcp uninstall` can restore it.
//!
//! A record lies in haft's data directory, one directory for each client (and project, for a client whose configuration
//! belongs to the project), with a copy of every file as it was. It is written before the files are, so that a crash
//! between them loses nothing.

use super::clients::{ClientPlaces, InstallMode};
use super::config_file::digest;
use super::edits::{self, AppliedEdit, EditError, FileFormat};
use crate::cli::McpClient;
use crate::commands::mcp::whole;
use haft_core::CallError;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The version of the form below.
const VERSION: u32 = 1;
const RECORD_FILE: &str = "record.json";

/// What an installation did.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InstallRecord {
    version: u32,
    client: String,
    pub(super) mode: InstallMode,
    pub(super) files: Vec<FileRecord>,
}

/// What an installation did to one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FileRecord {
    /// As the client names it.
    pub(super) path: PathBuf,
    pub(super) format: FileFormat,
    /// The digest of what it said before; none if there was no file.
    pub(super) before: Option<String>,
    /// The digest of what haft wrote.
    pub(super) written: String,
    /// The directories that haft made for it, outermost first.
    pub(super) made_dirs: Vec<PathBuf>,
    pub(super) edits: Vec<AppliedEdit>,
}

/// A file without what haft did to it.
pub(super) struct RestoredFile {
    /// What it says then; none if there is no file.
    pub(super) text: Option<String>,
    /// How it came to that.
    pub(super) how: RestoreKind,
}

/// How a file is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RestoreKind {
    /// Byte for byte: nobody has changed it since.
    Whole,
    /// Somebody has changed it since: only haft's edits are taken back, without those that were changed, too.
    EditsOnly { left: Vec<String> },
}

/// Where the records of one client lie.
#[derive(Debug)]
pub(super) struct RecordPlace {
    dir: PathBuf,
}

impl RecordPlace {
    pub(super) fn new(data_dir: &Path, client: McpClient, places: &ClientPlaces) -> Self {
        let mut name = client.word().to_owned();
        if client.is_of_project() {
            let project = digest(&places.project.to_string_lossy());
            name.push_str(&format!("-{}", &project[..16]));
        }
        Self { dir: data_dir.join("clients").join(name) }
    }

    /// The record of the installation that is in force.
    pub(super) fn load(&self) -> Result<Option<InstallRecord>, CallError> {
        let path = self.dir.join(RECORD_FILE);
        let fail = |why: String| {
            CallError::failed(format!("{}: {why}", path.display()))
                .hint("to continue without the record, move the directory away; it holds the backups")
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error.to_string())),
        };
        let record: InstallRecord = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
        if record.version == VERSION {
            Ok(Some(record))
        } else {
            Err(fail("written by a newer version of haft".to_owned()))
        }
    }

    /// Writes the record with a copy of every file as it was: `originals` in the order of `files`.
    pub(super) fn save(
        &self,
        client: McpClient,
        mode: InstallMode,
        files: Vec<FileRecord>,
        originals: &[Option<String>],
    ) -> Result<(), CallError> {
        let fail = |error: std::io::Error| CallError::failed(format!("{}: {error}", self.dir.display()));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(fail)?;
        for (file, original) in files.iter().zip(originals) {
            if let (Some(copy), Some(original)) = (self.kept_copy(file), original) {
                whole::place(&copy, original, 0o600).map_err(fail)?;
            }
        }
        let record = InstallRecord { version: VERSION, client: client.word().to_owned(), mode, files };
        let text = serde_json::to_string_pretty(&record).map_err(|error| CallError::internal(error.to_string()))?;
        whole::place(&self.dir.join(RECORD_FILE), &text, 0o600).map_err(fail)
    }

    /// Forgets the installation.
    pub(super) fn remove(&self) -> Result<(), CallError> {
        match std::fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(CallError::failed(format!("{}: {error}", self.dir.display())))
            }
            _ => Ok(()),
        }
    }

    /// Where the file as it was is kept; none if there was no file.
    pub(super) fn kept_copy(&self, file: &FileRecord) -> Option<PathBuf> {
        file.before.as_ref().map(|before| self.copy_path(file, before))
    }

    /// The file as it is without haft's edits.
    pub(super) fn restored(&self, file: &FileRecord, now: Option<&str>) -> Result<RestoredFile, CallError> {
        let now_digest = now.map(digest);
        if now_digest == file.before {
            return Ok(RestoredFile { text: now.map(str::to_owned), how: RestoreKind::Whole });
        }
        if now_digest.as_deref() == Some(file.written.as_str()) {
            match &file.before {
                None => return Ok(RestoredFile { text: None, how: RestoreKind::Whole }),
                Some(before) => {
                    if let Some(text) = self.original(file, before) {
                        return Ok(RestoredFile { text: Some(text), how: RestoreKind::Whole });
                    }
                }
            }
        }
        // A file that somebody removed stays away.
        let Some(now) = now else {
            return Ok(RestoredFile { text: None, how: RestoreKind::EditsOnly { left: Vec::new() } });
        };
        let (text, left) = edits::take_back(file.format, now, &file.edits).map_err(|why| self.refused(file, &why))?;
        Ok(RestoredFile { text: Some(text), how: RestoreKind::EditsOnly { left } })
    }

    fn refused(&self, file: &FileRecord, why: &EditError) -> CallError {
        let error = CallError::conflict(format!(
            "{}: it was changed since haft wrote it, and haft's entries cannot be taken out: {why}",
            file.path.display()
        ));
        match self.kept_copy(file) {
            Some(copy) => error.hint(format!("the file as it was before haft is kept: {}", copy.display())),
            None => error.hint("there was no such file before haft; remove the entries of haft by hand"),
        }
    }

    /// The file as it was, if the copy is whole.
    fn original(&self, file: &FileRecord, before: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.copy_path(file, before)).ok()?;
        (digest(&text) == before).then_some(text)
    }

    /// Named after what it says, so that a later installation never overwrites the copy of an earlier one.
    fn copy_path(&self, file: &FileRecord, before: &str) -> PathBuf {
        let name = file.path.file_name().map_or_else(Default::default, |name| name.to_string_lossy().into_owned());
        let digest = before.get(..16).unwrap_or(before);
        self.dir.join(format!("{digest}-{name}.original"))
    }
}
