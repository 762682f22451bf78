//! What an agent's own edit will probably make of the files that it touches: to show it, and to know it again.
//!
//! The agent edits by itself and may be more forgiving than this. So this is shown to people and kept beside the
//! before-images, and what really stands there afterwards is what counts.

use crate::files;
use crate::tools::file::edit::{Occurrences, Quotes, Replacement};
use haft_core::change::{Change, State};
use haft_core::observed::EditKind;
use haft_core::observed::patch::{self, PatchAction};
use haft_core::observed::{ObservedTool, PATCH, absolute};
use haft_core::place::{Access, Place};
use haft_core::{CallError, Checked, Facts};
use haft_sandbox::layer::stands;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// One file that a call will touch.
pub(super) struct ExpectedFile {
    /// Where, with every link followed.
    pub(super) path: PathBuf,
    /// What is there now.
    pub(super) before: State,
    /// What will probably be there.
    pub(super) after: ExpectedContent,
}

/// What a file will probably be.
pub(super) enum ExpectedContent {
    /// A file with this content.
    Content(Vec<u8>),
    /// Nothing.
    Absent,
    /// Only the agent knows, and why.
    Unknown(String),
}

/// The files that a call will touch, or why that cannot be told.
#[derive(Default)]
pub(super) struct ExpectedChanges {
    pub(super) files: Vec<ExpectedFile>,
    problem: Option<String>,
}

impl ExpectedChanges {
    /// The changes that will probably be made, or why they cannot be foreseen.
    pub(super) fn changes(&self) -> Result<Vec<Change>, String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let change = |file: &ExpectedFile| {
            let (path, before) = (file.path.clone(), file.before.clone());
            match &file.after {
                ExpectedContent::Content(content) => {
                    Ok(Some(Change::Write { path, content: content.clone(), before, mode: None }))
                }
                ExpectedContent::Absent if before == State::Absent => Ok(None),
                ExpectedContent::Absent => Ok(Some(Change::Remove { path, before })),
                ExpectedContent::Unknown(why) => Err(why.clone()),
            }
        };
        self.files.iter().filter_map(|file| change(file).transpose()).collect()
    }
}

/// The paths that a patch names, absolute; none for a call that is no patch.
pub(super) fn patched_paths(observed: &ObservedTool<'_>, checked: &Checked) -> Result<Vec<String>, CallError> {
    let Some(files) = patched(observed, checked)? else { return Ok(Vec::new()) };
    let cwd = text(checked, "cwd");
    let mut paths = Vec::new();
    for file in files {
        paths.push(absolute(&file.path, cwd));
        if let PatchAction::Update { moved_to: Some(to), .. } = file.action {
            paths.push(absolute(&to, cwd));
        }
    }
    Ok(paths)
}

fn patched(observed: &ObservedTool<'_>, checked: &Checked) -> Result<Option<Vec<patch::PatchedFile>>, CallError> {
    if observed.native.and_then(|native| native.edit) != Some(EditKind::Patch) {
        return Ok(None);
    }
    let files = patch::parse(text(checked, PATCH)).map_err(|error| {
        CallError::invalid(error.to_string()).hint("what a patch touches has to be known before it is applied")
    })?;
    Ok(Some(files))
}

fn text<'c>(checked: &'c Checked, name: &str) -> &'c str {
    checked.args().get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The files that an observed call will touch.
pub(super) fn expected_files(observed: &ObservedTool<'_>, checked: &Checked, facts: &Facts) -> ExpectedChanges {
    let Some(kind) = observed.native.and_then(|native| native.edit) else { return ExpectedChanges::default() };
    let written: Vec<&Place> = facts.places.iter().filter(|place| place.access == Access::Write).collect();
    let mut expected = ExpectedChanges::default();
    if kind == EditKind::Patch {
        match patched(observed, checked) {
            Ok(files) => expect_patched(&mut expected, files.unwrap_or_default(), text(checked, "cwd"), &written),
            Err(error) => expected.problem = Some(error.message),
        }
        return expected;
    }
    for place in written {
        let after = |before: &State| match kind {
            EditKind::Whole => ExpectedContent::Content(text(checked, "content").as_bytes().to_vec()),
            EditKind::Replace => replaced(checked, place, before),
            EditKind::Patch | EditKind::Opaque => ExpectedContent::Unknown(format!(
                "haft cannot predict what {} writes to {}; only {} knows",
                observed.name,
                place.shown,
                observed.client.title()
            )),
        };
        expect_file(&mut expected, &place.real, &place.shown, after);
    }
    expected
}

/// Looks at a file that will be touched.
fn expect_file(
    expected: &mut ExpectedChanges,
    path: &Path,
    shown: &str,
    after: impl FnOnce(&State) -> ExpectedContent,
) {
    match stands(path) {
        Ok(before @ (State::Absent | State::File { .. })) => {
            let after = after(&before);
            expected.files.push(ExpectedFile { path: path.to_owned(), before, after });
        }
        Ok(_) => expected.problem = Some(format!("{shown} is not a file")),
        Err(error) => expected.problem = Some(files::explain(shown, &error).message),
    }
}

fn replaced(checked: &Checked, place: &Place, before: &State) -> ExpectedContent {
    let (old, new) = (text(checked, "old_string"), text(checked, "new_string"));
    // Agents make a new file by replacing nothing.
    if *before == State::Absent && old.is_empty() {
        return ExpectedContent::Content(new.as_bytes().to_vec());
    }
    let all = checked.args().get("replace_all").and_then(Value::as_bool).unwrap_or(false);
    let content = files::load(&place.real, &place.shown, files::LOAD_MAX).map(|(content, _)| content);
    let made = content.and_then(|content| {
        let text = String::from_utf8(content).map_err(|_| CallError::failed(format!("{} is not text", place.shown)))?;
        let occurrences = if all { Occurrences::All } else { Occurrences::Only };
        let replacement = Replacement { old, new, occurrences, quotes: Quotes::Alike };
        replacement.apply_to_text(&text).map_err(|why| why.explain_near(&place.shown, &text, old))
    });
    match made {
        Ok(edited) => ExpectedContent::Content(edited.content),
        Err(error) => ExpectedContent::Unknown(error.message),
    }
}

fn expect_patched(expected: &mut ExpectedChanges, files: Vec<patch::PatchedFile>, cwd: &str, places: &[&Place]) {
    let real = |path: &str| {
        let spoken = absolute(path, cwd);
        places.iter().find(|place| place.spoken == spoken).map(|place| (place.real.clone(), place.shown.clone()))
    };
    for file in files {
        let Some((path, shown)) = real(&file.path) else { continue };
        match file.action {
            PatchAction::Add(content) => {
                expect_file(expected, &path, &shown, |_| ExpectedContent::Content(content.into_bytes()));
            }
            PatchAction::Delete => expect_file(expected, &path, &shown, |_| ExpectedContent::Absent),
            PatchAction::Update { moved_to, sections } => {
                let content = files::load(&path, &shown, files::LOAD_MAX).ok();
                let content = content.and_then(|(content, _)| String::from_utf8(content).ok());
                let made = content.and_then(|content| patch::apply(&content, &sections));
                let made = made.map_or_else(
                    || ExpectedContent::Unknown(format!("the patch does not fit {shown} word for word")),
                    |content| ExpectedContent::Content(content.into_bytes()),
                );
                match moved_to.as_deref().and_then(real) {
                    Some((target, target_shown)) => {
                        expect_file(expected, &path, &shown, |_| ExpectedContent::Absent);
                        expect_file(expected, &target, &target_shown, |_| made);
                    }
                    None => expect_file(expected, &path, &shown, |_| made),
                }
            }
        }
    }
}
