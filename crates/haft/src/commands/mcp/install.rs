//! `haft mcp install` and `haft mcp uninstall`: haft in a client's own configuration, and out of it again.
//!
//! An installation is planned as edits (`clients`), applied to the text of each file (`edits`), shown as a diff, and
//! written only after a yes. Installing again starts from the files as they were before, so that any sequence of
//! installations ends where the last one alone would have ended.

mod clients;
mod codex_hooks;
mod config_file;
mod edits;
mod jsonc;
mod overrides;
mod record;
mod show;
mod state;
mod toml;
mod yaml;

use crate::app::Failure;
use crate::cli::{Common, McpClient};
use crate::config::Paths;
use crate::style;
pub(super) use clients::InstallMode;
use clients::{ClientPlaces, InstallPlan};
use config_file::{ConfigFile, digest};
use haft_core::{CallError, ErrorKind};
use record::{FileRecord, InstallRecord, RecordPlace, RestoreKind};
pub(crate) use state::{ClientState, NativeTools, client_states};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

/// Whether a person is asked before files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// Nothing is written: the change is only shown.
    PrintOnly,
    Ask,
    /// The person has said yes on the command line.
    Given,
}

impl Confirmation {
    pub(super) fn new(print: bool, yes: bool) -> Self {
        match (print, yes) {
            (true, _) => Self::PrintOnly,
            (false, true) => Self::Given,
            (false, false) => Self::Ask,
        }
    }
}

/// What one file becomes.
struct FileChange {
    file: ConfigFile,
    /// What it says afterwards; none if it goes.
    new: Option<String>,
    how: RestoreKind,
    /// What the record says of it; none when haft leaves the file.
    record: Option<FileRecord>,
    /// The file as it was before haft.
    original: Option<String>,
    /// The directories that haft made for it.
    made_dirs: Vec<PathBuf>,
    /// The change as a unified diff, from before it is written.
    diff: String,
}

impl FileChange {
    fn new(file: ConfigFile, new: Option<String>, how: RestoreKind) -> Self {
        let diff = if file.text == new { String::new() } else { file.diff(new.as_deref()) };
        Self { file, new, how, record: None, original: None, made_dirs: Vec::new(), diff }
    }

    fn is_change(&self) -> bool {
        self.file.text != self.new
    }
}

/// Enters haft in a client's configuration.
pub(super) fn install(
    common: &Common,
    client: McpClient,
    wish: Option<InstallMode>,
    confirmation: Confirmation,
) -> Result<u8, Failure> {
    let places = ClientPlaces::find(common)?;
    let store = RecordPlace::new(&data_dir(&places)?, client, &places);
    let record = store.load()?;
    let mode = effective_mode(client, wish, record.as_ref())?;
    let plan = clients::plan(client, mode, &places)?;
    let changes = planned_changes(client, &plan, &places, &store, record.as_ref())?;
    let report = show::InstallReport { client, plan: &plan, changes: &changes };
    if confirmation == Confirmation::PrintOnly {
        report.print(common);
        return Ok(0);
    }
    if !changes.iter().any(FileChange::is_change) {
        report.tell(common, "already there", &state::override_of(client, mode, &places));
        return Ok(0);
    }
    check_writable(&changes)?;
    if confirmation == Confirmation::Ask {
        report.preview();
        confirm()?;
    }
    let files = changes.iter().filter_map(|change| change.record.clone()).collect();
    let recorded = changes.iter().filter(|change| change.record.is_some());
    let originals: Vec<Option<String>> = recorded.map(|change| change.original.clone()).collect();
    store.save(client, mode, files, &originals)?;
    if let Err(error) = write_all(&changes) {
        // Restore the previous record, because nothing was written.
        match &record {
            None => store.remove()?,
            Some(record) => store.save(client, record.mode, record.files.clone(), &[])?,
        }
        return Err(error.into());
    }
    report.tell(common, "written", &state::override_of(client, mode, &places));
    Ok(0)
}

/// Takes haft out of a client's configuration.
pub(super) fn uninstall(common: &Common, client: McpClient, confirmation: Confirmation) -> Result<u8, Failure> {
    let places = ClientPlaces::find(common)?;
    let store = RecordPlace::new(&data_dir(&places)?, client, &places);
    let changes = match store.load()? {
        Some(record) => restoring_changes(client, &places, &store, &record.files)?,
        None => unrecorded_changes(client, &places)?,
    };
    if confirmation == Confirmation::PrintOnly {
        show::print_restoring(common, client, &changes);
        return Ok(0);
    }
    if !changes.iter().any(FileChange::is_change) {
        store.remove()?;
        show::tell_restored(common, client, &changes, "not there");
        return Ok(0);
    }
    check_writable(&changes)?;
    if confirmation == Confirmation::Ask {
        show::preview_restoring(&changes);
        confirm()?;
    }
    write_all(&changes)?;
    for change in &changes {
        remove_empty(change.made_dirs.iter());
    }
    store.remove()?;
    show::tell_restored(common, client, &changes, "restored");
    Ok(0)
}

fn data_dir(places: &ClientPlaces) -> Result<PathBuf, Failure> {
    Ok(Paths::from_env(&places.project)?.data_dir().to_owned())
}

/// How haft is installed: tools that were turned off are turned on by `uninstall` only.
fn effective_mode(
    client: McpClient,
    wish: Option<InstallMode>,
    record: Option<&InstallRecord>,
) -> Result<InstallMode, CallError> {
    let known = record.map(|record| record.mode);
    match (wish, known) {
        (Some(InstallMode::Hooks), Some(InstallMode::Replace)) => {
            let (title, word) = (client.title(), client.word());
            Err(CallError::conflict(format!("{title}'s own tools are off, so there is nothing for a hook to watch"))
                .hint(format!("`haft mcp uninstall {word}` turns them on; then install with --hooks")))
        }
        (Some(wish), _) => Ok(wish),
        (None, known) => Ok(known.unwrap_or(InstallMode::Beside)),
    }
}

/// What an installation makes of each file, among them the files of an earlier one that this one leaves alone.
fn planned_changes(
    client: McpClient,
    plan: &InstallPlan,
    places: &ClientPlaces,
    store: &RecordPlace,
    record: Option<&InstallRecord>,
) -> Result<Vec<FileChange>, CallError> {
    let known = |path: &PathBuf| record.and_then(|record| record.files.iter().find(|file| &file.path == path));
    let mut changes = Vec::new();
    for planned in &plan.files {
        let file = read(client, &planned.path, places)?;
        let earlier = known(&planned.path);
        let is_same_mode = record.is_some_and(|record| record.mode == plan.mode);
        if let Some(earlier) = earlier.filter(|_| is_same_mode && planned.is_in(&file)) {
            // Others may have changed the file since; haft's entries stand.
            let text = file.text.clone();
            changes
                .push(FileChange { record: Some(earlier.clone()), ..FileChange::new(file, text, RestoreKind::Whole) });
            continue;
        }
        let (original, how) = match earlier {
            Some(earlier) => {
                let restored = store.restored(earlier, file.text.as_deref())?;
                (restored.text, restored.how)
            }
            None => (file.text.clone(), RestoreKind::Whole),
        };
        let edits: Vec<_> = planned.edits.iter().map(|(_, edit)| edit.clone()).collect();
        let (new, applied) =
            edits::apply(planned.format, original.as_deref().unwrap_or_default(), &edits).map_err(|why| {
                CallError::conflict(format!("{}: {why}", file.path.display()))
                    .hint(format!("nothing was written; this can be added by hand:\n{}", show::by_hand(plan)))
            })?;
        let made_dirs = earlier.map_or_else(|| file.missing_dirs(), |earlier| earlier.made_dirs.clone());
        let record = FileRecord {
            path: file.path.clone(),
            format: planned.format,
            before: original.as_deref().map(digest),
            written: digest(&new),
            made_dirs,
            edits: applied,
        };
        let change = FileChange::new(file, Some(new), how);
        changes.push(FileChange { record: Some(record), original, ..change });
    }
    let is_planned = |file: &FileRecord| plan.files.iter().any(|planned| planned.path == file.path);
    let files = record.into_iter().flat_map(|record| &record.files);
    let orphans: Vec<FileRecord> = files.filter(|file| !is_planned(file)).cloned().collect();
    changes.extend(restoring_changes(client, places, store, &orphans)?);
    Ok(changes)
}

/// What each file of an installation is without it.
fn restoring_changes(
    client: McpClient,
    places: &ClientPlaces,
    store: &RecordPlace,
    files: &[FileRecord],
) -> Result<Vec<FileChange>, CallError> {
    let change = |record: &FileRecord| {
        let file = read(client, &record.path, places)?;
        let restored = store.restored(record, file.text.as_deref())?;
        let made_dirs = record.made_dirs.clone();
        Ok(FileChange { made_dirs, ..FileChange::new(file, restored.text, restored.how) })
    };
    files.iter().map(change).collect()
}

/// Without a record, only the entry of the server is known to be haft's.
fn unrecorded_changes(client: McpClient, places: &ClientPlaces) -> Result<Vec<FileChange>, CallError> {
    let plan = clients::plan(client, InstallMode::Beside, places)?;
    let Some(planned) = plan.files.first() else { return Ok(Vec::new()) };
    let file = read(client, &planned.path, places)?;
    let Some(text) = &file.text else { return Ok(Vec::new()) };
    let path: Vec<&str> = plan.entry.iter().map(String::as_str).collect();
    let new = edits::without(planned.format, text, &path)
        .map_err(|why| CallError::conflict(format!("{}: {why}", file.path.display())))?;
    let how = RestoreKind::EditsOnly { left: Vec::new() };
    Ok(vec![FileChange::new(file, Some(new), how)])
}

fn read(client: McpClient, path: &std::path::Path, places: &ClientPlaces) -> Result<ConfigFile, CallError> {
    ConfigFile::read(path, client.is_of_project().then_some(places.project.as_path()))
}

fn check_writable(changes: &[FileChange]) -> Result<(), CallError> {
    changes.iter().filter(|change| change.is_change()).try_for_each(|change| change.file.check_writable())
}

/// Writes every file, or none: what was written before a failure is put back.
fn write_all(changes: &[FileChange]) -> Result<(), CallError> {
    let mut written: Vec<&FileChange> = Vec::new();
    for change in changes.iter().filter(|change| change.is_change()) {
        if let Err(error) = change.file.replace(change.new.as_deref()) {
            for done in written.into_iter().rev() {
                put_back(done);
            }
            return Err(error);
        }
        written.push(change);
    }
    Ok(())
}

/// Puts a file back as it was read, unless another program has changed it in between.
fn put_back(change: &FileChange) {
    let restored = ConfigFile::read(&change.file.path, None)
        .and_then(|now| if now.text == change.new { now.replace(change.file.text.as_deref()) } else { Ok(()) });
    if let Err(error) = restored {
        style::warn(&format!("{} could not be put back: {}", change.file.path.display(), error.message));
    }
    let made = change.record.as_ref().filter(|_| change.file.text.is_none()).map(|record| &record.made_dirs);
    remove_empty(made.into_iter().flatten());
}

/// Removes directories that haft made, the innermost first, as far as they are empty again.
fn remove_empty<'d>(dirs: impl DoubleEndedIterator<Item = &'d PathBuf>) {
    dirs.rev().take_while(|dir| std::fs::remove_dir(dir).is_ok()).for_each(drop);
}

/// Asks on the terminal. Only a yes goes on.
fn confirm() -> Result<(), CallError> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        let why = "cannot ask for confirmation: this is not a terminal";
        return Err(CallError::new(ErrorKind::ApprovalRequired, why).hint("add --yes, or look at it with --print"));
    }
    let asked = write!(std::io::stderr(), "Write these changes? [y/N] ").and_then(|()| std::io::stderr().flush());
    let mut answer = String::new();
    let heard = asked.and_then(|()| std::io::stdin().lock().read_line(&mut answer));
    if heard.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(CallError::new(ErrorKind::Rejected, "nothing was written"))
}
