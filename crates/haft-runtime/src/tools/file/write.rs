//! file.write: puts content at a path, whole. A file that is there keeps its encoding and byte order mark.

use crate::files;
use crate::scene::Scene;
use crate::seen::Required;
use crate::text_encoding::TextEncoding;
use crate::tool::{Blocking, Reply, Tool};
use crate::tools::declare;
use crate::tools::file::edit::EditError;
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
    let (path, shown) = (&place.real, &place.shown);
    let existing = match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        // Whatever else is wrong with it is told when it is opened.
        _ => Some(files::load_with_state(path, shown, files::LOAD_MAX)?),
    };
    let (verb, encoding, before) = match existing {
        None => ("Created", TextEncoding::UTF_8, State::Absent),
        Some((content, now, state)) => {
            scene.seen().require(path, shown, &now, Required::Whole)?;
            ("Overwrote", TextEncoding::detect(&content).unwrap_or(TextEncoding::UTF_8), state)
        }
    };
    let content = encoding
        .encode_file(&args.content)
        .map_err(|character| EditError::Unrepresentable { character, encoding: encoding.name() }.explain(shown))?;
    let mut text = format!("{verb} {shown} ({}, {} lines)", size(content.len()), args.content.lines().count());
    let mut data = json!({"path": shown, "bytes": content.len(), "created": before == State::Absent});
    if encoding != TextEncoding::UTF_8 {
        text.push_str(&format!(", in its encoding {}", encoding.title()));
        data["encoding"] = encoding.name().into();
    }
    let warnings = encoding.read_differently(&content).into_iter().collect();
    let change = Change::Write { path: path.clone(), content, before, mode: None };
    Ok(Reply { warnings, ..Reply::text(text).data(data).changes(vec![change]) })
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

    #[test]
    fn a_file_that_is_there_keeps_its_encoding() {
        let stage = Stage::new();
        let utf16: Vec<u8> = "\u{feff}één\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let overwritten = |name: &str, old: &[u8], new: &str| {
            let path = stage.file(name, old);
            stage.seen(&path, crate::seen::whole(old, 0));
            let reply = stage.act(&tool(), json!({"path": name, "content": new})).unwrap();
            let [Change::Write { content, .. }] = reply.changes.as_slice() else { panic!() };
            (reply.text, content.clone())
        };
        let (said, content) = overwritten("latin", b"caf\xe9\n", "thé\n");
        assert_eq!(said, "Overwrote latin (4B, 1 lines), in its encoding windows-1252");
        assert_eq!(content, b"th\xe9\n");
        let (said, content) = overwritten("utf16", &utf16, "é");
        assert_eq!(said, "Overwrote utf16 (4B, 1 lines), in its encoding UTF-16LE with BOM");
        assert_eq!(content, b"\xff\xfe\xe9\0");
        let (said, content) = overwritten("mark", b"\xef\xbb\xbfa", "b");
        assert_eq!(said, "Overwrote mark (4B, 1 lines), in its encoding UTF-8 with BOM");
        assert_eq!(content, b"\xef\xbb\xbfb");
        let error = stage.act(&tool(), json!({"path": "latin", "content": "a → b"})).unwrap_err();
        assert_eq!(
            error.message,
            "latin is in windows-1252, which does not have the character `→` (U+2192); nothing was changed"
        );
    }

    #[test]
    fn a_sparse_file_of_a_terabyte_is_not_read_to_its_end() {
        let stage = Stage::new();
        std::fs::File::create(stage.root().join("sparse")).unwrap().set_len(1 << 40).unwrap();
        let error = stage.act(&tool(), json!({"path": "sparse", "content": "x"})).unwrap_err();
        assert_eq!(error.message, "sparse is larger than 64.0MB, the limit here");
    }
}
