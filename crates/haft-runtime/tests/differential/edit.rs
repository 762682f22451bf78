//! file.edit beside a model in Python: every line end, encoding and overlap.

use crate::cases::compare;
use crate::project::Project;
use crate::texts::{File, bytes, python, see};
use haft_core::ErrorKind;
use serde_json::json;

/// Replacing as a model has it.
pub(crate) const REPLACE: &str = include_str!("replace.py");
const ANSWER: &str = r#"
def answer(question):
    text, codec, mark = question["text"], question["codec"], question["mark"]
    data = content(text, codec, mark)
    # In UTF-8 the mark is the first character.
    known = ("\ufeff" if mark and codec == "utf-8" else "") + text
    after = replace(known, question["old"], question["new"], question["all"], True)
    if isinstance(after, str):
        return {"content": base64(data), "wrong": after}
    try:
        edited = content(after[0], codec, mark and codec != "utf-8")
    except UnicodeEncodeError:
        return {"content": base64(data), "wrong": "unrepresentable"}
    return {"content": base64(data), "edited": base64(edited), "count": after[1], "lines": after[2]}
"#;

fn kind(wrong: &str) -> ErrorKind {
    match wrong {
        "empty" | "identical" => ErrorKind::InvalidInput,
        "missing" => ErrorKind::NotFound,
        "ambiguous" => ErrorKind::Conflict,
        "unrepresentable" => ErrorKind::Failed,
        other => panic!("{other}"),
    }
}

#[test]
fn edits_are_those_of_a_plain_model() {
    let (project, python) = (Project::new(), python(&format!("{REPLACE}\n{ANSWER}")));
    compare("edit::edits_are_those_of_a_plain_model", 300, |generator| {
        let file = File::generate(generator);
        let (old, mut new) = (file.sought(generator), file.sought(generator));
        if generator.chance(30) {
            new = format!("{old}{new}");
        }
        if generator.chance(5) {
            new.push('\u{2192}');
        }
        let all = generator.chance(50);
        let mut question = file.question();
        (question["old"], question["new"], question["all"]) = (json!(old), json!(new), json!(all));
        let expected = python.ask(&question);
        project.write("file", bytes(&expected["content"]));
        see(&project, "file");
        let args = json!({"path": "file", "old_string": old, "new_string": new, "replace_all": all});
        let outcome = project.call("file.edit", args);
        let told = || format!("{question} {expected} {outcome:?}");
        let stands = std::fs::read(project.root().join("file")).unwrap();
        if let Some(wrong) = expected["wrong"].as_str() {
            assert_eq!(outcome.error.as_ref().map(|error| error.kind), Some(kind(wrong)), "{}", told());
            assert_eq!(stands, bytes(&expected["content"]), "{}", told());
        } else {
            assert!(outcome.success, "{}", told());
            assert_eq!(stands, bytes(&expected["edited"]), "{}", told());
            let data = outcome.data.as_ref().unwrap();
            assert_eq!((&data["replacements"], &data["lines"]), (&expected["count"], &expected["lines"]), "{}", told());
        }
    });
}
