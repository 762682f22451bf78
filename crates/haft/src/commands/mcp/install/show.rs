//! What `haft mcp install` and `haft mcp uninstall` say: the change as a diff, and what it means.

use super::FileChange;
use super::clients::{InstallMode, InstallPlan};
use super::edits::{self, FileFormat};
use super::record::RestoreKind;
use super::state::Override;
use crate::cli::{Common, McpClient};
use crate::style::{self, CARE, GOOD, paint};
use serde_json::{Value, json};

/// An installation, planned or done.
pub(super) struct InstallReport<'a> {
    pub(super) client: McpClient,
    pub(super) plan: &'a InstallPlan,
    pub(super) changes: &'a [FileChange],
}

impl InstallReport<'_> {
    /// Shows what would be written, on stdout.
    pub(super) fn print(&self, common: &Common) {
        if common.json() {
            style::json(&self.value("planned", &Override::None));
            return;
        }
        for change in self.changes.iter().filter(|change| change.is_change()) {
            style::out(&style::diff(&change.diff));
        }
        if !self.changes.iter().any(FileChange::is_change) {
            style::note("nothing to change: haft is already configured");
        }
        self.explain();
    }

    /// Shows what will be written, to the person who is asked.
    pub(super) fn preview(&self) {
        preview(self.changes);
        self.explain();
    }

    /// Says what was done.
    pub(super) fn tell(&self, common: &Common, state: &str, overridden: &Override) {
        if common.json() {
            style::json(&self.value(state, overridden));
            return;
        }
        for change in self.changes {
            let state = if change.is_change() { state } else { "already there" };
            style::out(&format!("{}: {}", paint(GOOD, state), shown(change)));
        }
        warn_of_left_edits(self.changes);
        match overridden {
            Override::None | Override::Untrusted => self.explain(),
            Override::By(source) => style::warn(&self.overridden_by(source)),
            Override::Unknown(why) => style::warn(&format!(
                "whether {}'s own tools are on is unknown: {why}. Correct it, then look with `haft doctor`",
                self.client.title()
            )),
        }
        if state == "written" {
            style::note(self.client.next_step());
            style::note(&format!("`haft mcp uninstall {}` restores what was there", self.client.word()));
        }
    }

    /// What the installation means for the client's own tools.
    fn explain(&self) {
        let (title, word, native) = (self.client.title(), self.client.word(), self.client.native_tools());
        match self.plan.mode {
            InstallMode::Beside => {
                style::note(&format!(
                    "{} {title} keeps its own tools ({native}). haft does not decide, sandbox, record or undo what it does \
                     with them.",
                    paint(CARE, "note:")
                ));
                if self.client != McpClient::Vscode {
                    style::note(&format!("`haft mcp install {word} --replace` turns them off"));
                }
            }
            InstallMode::Replace if self.client.keeps_tools_in_editor() => style::note(&format!(
                "{} {title}'s program for the terminal acts through haft only; the agent in the editor keeps its own tools \
                 ({native}), because no setting turns them off",
                paint(CARE, "note:")
            )),
            InstallMode::Replace => style::note(&format!(
                "{title}'s own tools ({native}) are off. Its agent acts only through haft, and only haft asks for approval."
            )),
            InstallMode::Hooks => style::note(&format!(
                "{title} keeps its own tools ({native}) and runs `haft hook {word}` before each use of them"
            )),
        }
        for note in &self.plan.notes {
            style::note(note);
        }
    }

    /// Why the client's own tools are on although they were to be off, or watched.
    fn overridden_by(&self, source: &str) -> String {
        let (title, native) = (self.client.title(), self.client.native_tools());
        if self.plan.mode == InstallMode::Hooks {
            format!(
                "{title} does not run its hooks, so haft does not see its own tools ({native}): {source} overrides haft's \
                 settings; remove the entries that turn the hooks off"
            )
        } else {
            format!(
                "{title}'s own tools ({native}) are still on: {source} overrides haft's settings; remove the entries that \
                 turn the tools on"
            )
        }
    }

    fn value(&self, state: &str, overridden: &Override) -> Value {
        let by = if let Override::By(source) = overridden { Some(source) } else { None };
        let native = match self.plan.mode {
            _ if by.is_some() => "on",
            _ if matches!(overridden, Override::Unknown(_)) => "unknown",
            InstallMode::Beside => "on",
            InstallMode::Replace if self.client.keeps_tools_in_editor() => "partly_off",
            InstallMode::Replace => "off",
            InstallMode::Hooks if matches!(overridden, Override::Untrusted) => "hooks_not_run",
            InstallMode::Hooks => "hooked",
        };
        let mut value = json!({
            "client": self.client.word(), "state": state, "native_tools": native, "entry": self.plan.entry_value(),
            "files": file_values(self.changes), "notes": self.plan.notes,
        });
        if let Some(by) = by {
            value["overridden_by"] = by.as_str().into();
        }
        value
    }
}

/// Shows what an uninstallation would write.
pub(super) fn print_restoring(common: &Common, client: McpClient, changes: &[FileChange]) {
    if common.json() {
        style::json(&restoring_value(client, changes, "planned"));
        return;
    }
    for change in changes.iter().filter(|change| change.is_change()) {
        style::out(&style::diff(&change.diff));
    }
}

/// The same to the person who is asked.
pub(super) fn preview_restoring(changes: &[FileChange]) {
    preview(changes);
    warn_of_left_edits(changes);
}

/// Says what an uninstallation did.
pub(super) fn tell_restored(common: &Common, client: McpClient, changes: &[FileChange], state: &str) {
    if common.json() {
        style::json(&restoring_value(client, changes, state));
        return;
    }
    for change in changes.iter().filter(|change| change.is_change()) {
        let what = match (&change.how, &change.new) {
            (_, None) => "removed: haft had created it",
            (RestoreKind::Whole, _) => "restored byte for byte",
            (RestoreKind::EditsOnly { .. }, _) => "haft's entries removed; later changes kept",
        };
        style::out(&format!("{}: {}", paint(GOOD, shown(change)), what));
    }
    if state == "not there" {
        style::note(&format!("haft is not configured in {}", client.title()));
    }
    warn_of_left_edits(changes);
}

/// The edits as they can be made by hand, each file's in its own form.
pub(super) fn by_hand(plan: &InstallPlan) -> String {
    let snippet = |file: &super::clients::FilePlan| {
        let edits: Vec<_> = file.edits.iter().map(|(_, edit)| edit.clone()).collect();
        let text = edits::apply(file.format, "", &edits).map(|(text, _)| text).unwrap_or_default();
        let mark = if file.format == FileFormat::Json { "//" } else { "#" };
        format!("{mark} {}\n{}", file.path.display(), text.trim_end())
    };
    plan.files.iter().map(snippet).collect::<Vec<_>>().join("\n")
}

fn preview(changes: &[FileChange]) {
    for change in changes.iter().filter(|change| change.is_change()) {
        style::note(&style::diff(&change.diff));
    }
}

fn warn_of_left_edits(changes: &[FileChange]) {
    for change in changes {
        let RestoreKind::EditsOnly { left } = &change.how else { continue };
        if !left.is_empty() {
            style::warn(&format!(
                "{}: kept, because they changed after haft wrote them: {}",
                change.file.path.display(),
                left.join(", ")
            ));
        }
    }
}

fn restoring_value(client: McpClient, changes: &[FileChange], state: &str) -> Value {
    json!({"client": client.word(), "state": state, "files": file_values(changes)})
}

fn file_values(changes: &[FileChange]) -> Vec<Value> {
    let value = |change: &FileChange| {
        let (how, left) = match &change.how {
            RestoreKind::Whole => ("whole", &[][..]),
            RestoreKind::EditsOnly { left } => ("edits_only", left.as_slice()),
        };
        json!({
            "file": change.file.path, "changed": change.is_change(), "exists": change.new.is_some(),
            "restored": how, "left": left, "diff": change.diff,
        })
    };
    changes.iter().map(value).collect()
}

fn shown(change: &FileChange) -> String {
    style::inert(&change.file.path.display().to_string())
}
