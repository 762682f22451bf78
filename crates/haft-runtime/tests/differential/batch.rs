//! file.batch beside models in Python: the replacing of file.edit, and wildcards that are matched without regular expressions.

use crate::cases::{Generator, compare};
use crate::edit::REPLACE;
use crate::project::Project;
use crate::texts::{File, base64, bytes, python};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

const TRANSFORM: &str = r#"
def answer(question):
    before, after, wrong = [], [], False
    for file in question["files"]:
        text, codec, mark = file["text"], file["codec"], file["mark"]
        if codec == "binary":
            before.append(base64(text.encode())); after.append(base64(text.encode()))
            continue
        known = ("\ufeff" if mark and codec == "utf-8" else "") + text
        result = replace(known, question["find"], question["replace"], True, False)
        before.append(base64(content(text, codec, mark)))
        try:
            edited = known if isinstance(result, str) else result[0]
            after.append(base64(content(edited, codec, mark and codec != "utf-8")))
        except UnicodeEncodeError:
            wrong = True
    return {"before": before, "after": before if wrong else after}
"#;

#[test]
fn transforms_are_those_of_a_plain_model() {
    let python = python(&format!("{REPLACE}\n{TRANSFORM}"));
    compare("batch::transforms_are_those_of_a_plain_model", 60, |generator| {
        let project = Project::new();
        let files: Vec<File> = (0..=generator.below(5)).map(|_| File::generate(generator)).collect();
        let (find, replace) = (sought(&files, generator), sought(&files, generator));
        let mut questions: Vec<Value> = files.iter().map(File::question).collect();
        questions.push(json!({"text": format!("{find}\0{find}"), "codec": "binary", "mark": false}));
        let question = json!({"files": questions, "find": find, "replace": replace});
        let expected = python.ask(&question);
        let name = |index: usize| format!("d/{index}.txt");
        for (index, content) in expected["before"].as_array().unwrap().iter().enumerate() {
            project.write(name(index), bytes(content));
        }
        let args = json!({"pattern": "**/*.txt", "operation": "transform", "find": find, "replace": replace});
        let outcome = project.call("file.batch", args);
        for (index, content) in expected["after"].as_array().unwrap().iter().enumerate() {
            let stands = std::fs::read(project.root().join(name(index))).unwrap();
            assert_eq!(base64(&stands), content.as_str().unwrap(), "file {index}: {question} {outcome:?}");
        }
    });
}

/// A text to be found in the files. Where they are in several encodings, it has no letter that Python and the Encoding Standard
/// write differently in one of them.
fn sought(files: &[File], generator: &mut Generator) -> String {
    let first = &files[0];
    if files.iter().all(|file| file.script.codec == first.script.codec) {
        return first.sought(generator);
    }
    generator.text(&["a", "b", "\n", "\n", "\r\n", "\r", "'", " ", "\u{2192}"], 3)
}

const RENAME: &str = r#"
def match(pattern, name, caught):
    """What the wildcards of a list of characters match, the first ones as much as they can."""
    if not pattern:
        return caught if not name else None
    head, rest = pattern[0], pattern[1:]
    if head == "**/":
        ends = [0] + [at + 1 for at, c in enumerate(name) if c == "/"]
        lengths = reversed(ends)
    elif head == "**":
        lengths = range(len(name), -1, -1)
    elif head == "*":
        lengths = range((name + "/").index("/"), -1, -1)
    elif head == "?":
        lengths = [1] if name and name[0] != "/" else []
    else:
        return match(rest, name[1:], caught) if name[:1] == head else None
    for length in lengths:
        found = match(rest, name[length:], caught + [name[:length]])
        if found is not None:
            return found
def answer(question):
    import os
    names = [os.fsdecode(bytes_of(name)) for name in question["names"]]
    after = []
    for name in names:
        caught = match(question["pattern"], name, [])
        if caught is None:
            after.append(name)
        else:
            after.append(os.path.join(os.path.dirname(name), "new-" + "-".join(part.replace("/", "_") for part in caught)))
    # Only names are made, no directories.
    clash = any("/" in part for name in names for part in (match(question["pattern"], name, []) or []))
    clash = clash or len(set(after)) < len(after) or any(new != old and new in names for new, old in zip(after, names))
    return None if clash else [base64(os.fsencode(name)) for name in after]
"#;

#[test]
fn renames_follow_a_plain_matcher() {
    let python = python(RENAME);
    compare("batch::renames_follow_a_plain_matcher", 60, |generator| {
        let project = Project::new();
        let names: BTreeMap<Vec<u8>, usize> = (0..=generator.below(6)).map(|index| (name(generator), index)).collect();
        for (name, index) in &names {
            project.write(Path::new(OsStr::from_bytes(name)), index.to_string());
        }
        let mut pieces: Vec<&str> = if generator.chance(30) { vec!["**/", "*"] } else { Vec::new() };
        for _ in 0..=generator.below(4) {
            let piece = generator.pick(&["*", "*", "?", "**/", "a", "b", ".", "é"]);
            // Side by side they would be another wildcard; directories begin where a name does.
            let fits = match pieces.last() {
                Some(last) => !(piece.starts_with('*') && last.ends_with('*')) && (piece != "**/" || *last == "**/"),
                None => true,
            };
            if fits {
                pieces.push(piece);
            }
        }
        let pattern = pieces.concat();
        let wildcards = pieces.iter().filter(|piece| ["*", "?", "**/"].contains(piece)).count();
        let template = (1..=wildcards).map(|number| format!("${number}")).collect::<Vec<_>>().join("-");
        let encoded: Vec<String> = names.keys().map(|name| base64(name)).collect();
        let question = json!({"pattern": pieces, "names": encoded});
        let expected = python.ask(&question);
        let args = json!({"pattern": pattern, "operation": "rename", "rename_to": format!("new-{template}")});
        let outcome = project.call("file.batch", args);
        let told = || format!("{question} {pattern} {expected} {outcome:?}");
        let Some(after) = expected.as_array() else {
            assert!(!outcome.success, "{}", told());
            return;
        };
        assert!(outcome.success, "{}", told());
        for (name, index) in after.iter().zip(names.values()) {
            let path = project.root().join(OsString::from_vec(bytes(name)));
            assert_eq!(std::fs::read_to_string(&path).ok(), Some(index.to_string()), "{path:?}: {}", told());
        }
    });
}

/// A path with at most one directory; some bytes in it are no text.
fn name(generator: &mut Generator) -> Vec<u8> {
    let mut name = Vec::new();
    if generator.chance(30) {
        name.extend_from_slice(b"d/");
    }
    for _ in 0..=generator.below(4) {
        let piece: &[u8] = generator.pick_slice(&[b"a", b"b", b".", "é".as_bytes(), b"\xe9", b"\n"]);
        name.extend_from_slice(piece);
    }
    name.push(b'x');
    name
}
