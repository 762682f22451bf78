//! file.edit: replaces one piece of text by another, exactly.

mod near;
mod replace;

pub use replace::{EditError, Edited, replace};

use crate::files;
use crate::scene::Scene;
use crate::seen::Required;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use haft_core::CallError;
use haft_core::change::Change;
use haft_core::place::Access;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

#[derive(Deserialize)]
struct Args {
    old_string: String,
    new_string: String,
    replace_all: bool,
}

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    let spec = declare("file.edit", "Edit a file: replace an exact piece of text with another. old_string must occur exactly once unless replace_all is set. Read the file first. Returns the number and the lines of the replacements.")
        .hint("search replace patch modify change text")
        .input(json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to edit, absolute or relative to the project root"},
                "old_string": {"type": "string", "description": "The exact text to replace, without line numbers"},
                "new_string": {"type": "string", "description": "The replacement text"},
                "replace_all": {"type": "boolean", "description": "Replace every occurrence", "default": false}
            },
            "required": ["path", "old_string", "new_string"],
            "additionalProperties": false
        }))
        .changes_files()
        .touches("path", Access::Write, None)
        .body("old_string")
        .body("new_string");
    Blocking::tool(spec, edit)
}

fn edit(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let place = scene.place("path")?;
    let shown = &place.shown;
    let before = files::state(&place.real).map_err(|error| files::explain(shown, &error))?;
    let (content, now) = files::load(&place.real, shown, files::LOAD_MAX)?;
    scene.seen().require(&place.real, shown, &now, Required::Part)?;
    let text = String::from_utf8(content).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CallError::failed(format!("{shown} is not UTF-8 text (byte {at}), so it cannot be edited"))
    })?;
    let edited =
        replace(&text, &args.old_string, &args.new_string, args.replace_all).map_err(|why| why.explain(shown))?;
    let lines: Vec<String> = edited.lines.iter().map(ToString::to_string).collect();
    let plural = if lines.len() == 1 { "replacement at line" } else { "replacements at lines" };
    let summary = format!("Edited {shown}: {} {plural} {}", lines.len(), lines.join(", "));
    let data = json!({"path": shown, "replacements": edited.lines.len(), "lines": edited.lines});
    let change = Change::Write { path: place.real.clone(), content: edited.text.into_bytes(), before, mode: None };
    Ok(Reply::text(summary).data(data).changes(vec![change]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::whole;
    use crate::testing::Stage;
    use haft_core::change::State;

    #[test]
    fn an_edit_is_one_change_of_the_whole_file() {
        let stage = Stage::new();
        let path = stage.file("a.txt", "one\ntwo\n");
        stage.seen(&path, whole(b"one\ntwo\n", 0));
        let reply = stage.act(&tool(), json!({"path": "a.txt", "old_string": "two", "new_string": "2"})).unwrap();
        assert_eq!(reply.text, "Edited a.txt: 1 replacement at line 2");
        let [Change::Write { content, before: State::File { .. }, .. }] = reply.changes.as_slice() else { panic!() };
        assert_eq!(content, b"one\n2\n");
    }

    #[test]
    fn a_file_that_changed_since_it_was_read_is_left_alone() {
        let stage = Stage::new();
        let path = stage.file("a.txt", "new");
        stage.seen(&path, whole(b"old", 0));
        let error = stage.act(&tool(), json!({"path": "a.txt", "old_string": "n", "new_string": "m"})).unwrap_err();
        assert_eq!(error.message, "a.txt has changed since it was read");
    }
}
