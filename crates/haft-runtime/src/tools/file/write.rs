//! file.write: puts content at a path, whole.

use crate::files;
use crate::scene::Scene;
use crate::seen::Required;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use haft_core::CallError;
use haft_core::change::{Change, State};
use haft_core::place::Access;
use haft_core::preview::size;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

#[derive(Deserialize)]
struct Args {
    content: String,
}

/// The tool.
pub fn tool() -> Arc<dyn Tool> {
    let spec = declare("file.write", "Create a file, or overwrite one, with the given content. Creates missing directories. Read an existing file before you overwrite it.")
        .hint("create overwrite save new file")
        .input(json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to write, absolute or relative to the project root"},
                "content": {"type": "string", "description": "The complete new content"}
            },
            "required": ["path", "content"],
            "additionalProperties": false
        }))
        .changes_files()
        .touches("path", Access::Write, None)
        .body("content");
    Blocking::tool(spec, write)
}

fn write(scene: &Scene) -> Result<Reply, CallError> {
    let args: Args = scene.parse()?;
    let place = scene.place("path")?;
    let before = files::state(&place.real).map_err(|error| files::explain(&place.shown, &error))?;
    let verb = if before == State::Absent {
        "Created"
    } else {
        let (_, now) = files::load(&place.real, &place.shown, files::LOAD_MAX)?;
        scene.seen().require(&place.real, &place.shown, &now, Required::Whole)?;
        "Overwrote"
    };
    let text = format!("{verb} {} ({}, {} lines)", place.shown, size(args.content.len()), args.content.lines().count());
    let data = json!({"path": place.shown, "bytes": args.content.len(), "created": before == State::Absent});
    let change = Change::Write { path: place.real.clone(), content: args.content.into_bytes(), before, mode: None };
    Ok(Reply::text(text).data(data).changes(vec![change]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;

    #[test]
    fn a_new_file_is_one_change() {
        let stage = Stage::new();
        let reply = stage.act(&tool(), json!({"path": "a/b.txt", "content": "hi\n"})).unwrap();
        assert_eq!(reply.text, "Created a/b.txt (3B, 1 lines)");
        let path = stage.root().join("a/b.txt");
        assert_eq!(
            reply.changes,
            [Change::Write { path, content: b"hi\n".to_vec(), before: State::Absent, mode: None }]
        );
    }

    #[test]
    fn an_unread_file_is_not_overwritten() {
        let stage = Stage::new();
        stage.file("a.txt", "precious");
        let error = stage.act(&tool(), json!({"path": "a.txt", "content": "x"})).unwrap_err();
        assert_eq!(error.message, "a.txt has not been read in this session");
    }
}
