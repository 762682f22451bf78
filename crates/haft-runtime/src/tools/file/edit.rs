//! file.edit: replaces one piece of text by another, in the encoding and with the line ends of the file.

mod folded;
mod near;
mod replace;

pub use replace::{EditError, Edited, LineNumbers, Occurrences, Quotes, Replacement};

use crate::files;
use crate::scene::Scene;
use crate::seen::Required;
use crate::text_encoding::TextEncoding;
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
    let spec = declare("file.edit", "Edit a file: replace an exact piece of text with another. old_string must occur exactly once unless replace_all is set. Line breaks match LF and CRLF. Read the file first. Returns the number and the lines of the replacements.")
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
    let (content, now, before) = files::load_with_state(&place.real, shown, files::LOAD_MAX)?;
    scene.seen().require(&place.real, shown, &now, Required::Part)?;
    let encoding = TextEncoding::detect(&content).ok_or_else(|| {
        CallError::failed(format!("{shown} is a binary file, so it cannot be edited as text"))
            .hint("change it with a program in a shell")
    })?;
    let occurrences = if args.replace_all { Occurrences::All } else { Occurrences::Only };
    let replacement = Replacement { old: &args.old_string, new: &args.new_string, occurrences, quotes: Quotes::Alike };
    let edited = replacement
        .apply(&content, encoding)
        .map_err(|why| why.explain_near(shown, &encoding.decode(&content), &args.old_string))?;
    let mut summary = summary(shown, &edited);
    let mut data = json!({"path": shown, "replacements": edited.lines.total, "lines": edited.lines.first});
    if !encoding.is_utf8() {
        summary.push_str(&format!("; encoding {}", encoding.title()));
        data["encoding"] = encoding.name().into();
    }
    let warnings = encoding.read_differently(&edited.content).into_iter().collect();
    let change = Change::Write { path: place.real.clone(), content: edited.content, before, mode: None };
    Ok(Reply { warnings, ..Reply::text(summary).data(data).changes(vec![change]) })
}

/// What was replaced where.
fn summary(shown: &str, edited: &Edited) -> String {
    let noun = if edited.lines.total == 1 { "replacement" } else { "replacements" };
    let quotes = match edited.quotes {
        Quotes::AsWritten => "",
        Quotes::Alike => "; old_string does not occur exactly: curly and straight quotes were taken for equal",
    };
    format!("Edited {shown}: {} {noun} at {}{quotes}", edited.lines.total, edited.lines)
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

    #[test]
    fn quotes_of_another_shape_are_told() {
        let stage = Stage::new();
        let path = stage.file("a.txt", "say \u{201c}hi\u{201d}\n");
        stage.seen(&path, whole("say \u{201c}hi\u{201d}\n".as_bytes(), 0));
        let args = json!({"path": "a.txt", "old_string": "say \"hi\"", "new_string": "say \"ho\""});
        let reply = stage.act(&tool(), args).unwrap();
        insta::assert_snapshot!(reply.text, @"Edited a.txt: 1 replacement at line 1; old_string does not occur exactly: curly and straight quotes were taken for equal");
    }

    #[test]
    fn a_file_in_another_encoding_is_edited_in_it_and_this_is_told() {
        let stage = Stage::new();
        let content = b"caf\xe9\r\nth\xe9\r\n";
        let path = stage.file("a.txt", content);
        stage.seen(&path, whole(content, 0));
        let reply =
            stage.act(&tool(), json!({"path": "a.txt", "old_string": "\nthé", "new_string": "\nmaté"})).unwrap();
        assert_eq!(reply.text, "Edited a.txt: 1 replacement at line 1; encoding windows-1252");
        let [Change::Write { content, .. }] = reply.changes.as_slice() else { panic!() };
        assert_eq!(content, b"caf\xe9\r\nmat\xe9\r\n");
    }

    #[test]
    fn binary_and_huge_files_are_refused() {
        let stage = Stage::new();
        let path = stage.file("a.bin", b"a\0b");
        stage.seen(&path, whole(b"a\0b", 0));
        let edit = |path: &str| stage.act(&tool(), json!({"path": path, "old_string": "a", "new_string": "b"}));
        assert_eq!(edit("a.bin").unwrap_err().message, "a.bin is a binary file, so it cannot be edited as text");
        std::fs::File::create(stage.root().join("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(edit("sparse").unwrap_err().message, "sparse is larger than 64.0MB, the limit here");
        rustix::fs::mkfifoat(rustix::fs::CWD, stage.root().join("fifo"), rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(edit("fifo").unwrap_err().message, "fifo: not a regular file");
    }
}
