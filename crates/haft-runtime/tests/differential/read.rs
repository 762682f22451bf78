//! file.read beside the bytes of the file, which Python decodes.

use crate::cases::compare;
use crate::project::Project;
use crate::texts::{File, base64, bytes, python};
use serde_json::json;

const ANSWER: &str = r#"
def answer(question):
    codec, mark = question["codec"], question["mark"]
    data = content(question["text"], codec, mark)
    lines = data[len(MARKS[codec]) if mark and codec != "utf-8" else 0:].decode(codec, "replace").split("\n")
    ends = ["\n"] * (len(lines) - 1) + [""]
    lines = [line + end for line, end in zip(lines, ends) if line + end]
    first, limit = question["first"], question["limit"]
    page = lines[first - 1:first - 1 + limit]
    numbered = "".join(
        f"{number:>6}\t" + (line[:-2] + "\n" if line.endswith("\r\n") else line)
        for number, line in enumerate((line.lstrip("\ufeff") if first + at == 1 else line for at, line in enumerate(page)), first)
    )
    return {"content": base64(data), "plain": "".join(page), "numbered": numbered, "lines": len(lines), "shown": len(page)}
"#;

#[test]
fn pages_are_the_lines_of_the_file() {
    let (project, python) = (Project::new(), python(ANSWER));
    compare("read::pages_are_the_lines_of_the_file", 300, |generator| {
        let mut file = File::generate(generator);
        if file.script.codec == "utf-8" && generator.chance(20) {
            // Bytes that are not UTF-8 among many that are.
            file.text = json!(format!("{}éééé", file.text.as_str().unwrap()));
        }
        let (first, limit) = (1 + generator.below(4), 1 + generator.below(6));
        let mut question = file.question();
        (question["first"], question["limit"]) = (json!(first), json!(limit));
        let expected = python.ask(&question);
        let content = bytes(&expected["content"]);
        project.write("file", &content);
        let read = |line_numbers: bool| {
            let args = json!({"path": "file", "offset": first, "limit": limit, "line_numbers": line_numbers});
            project.call("file.read", args)
        };
        let (plain, numbered) = (read(false), read(true));
        let told = || format!("{question} {expected} {plain:?} {numbered:?}");
        if content.is_empty() {
            assert_eq!(numbered.output, "File exists but is empty");
            return;
        }
        let lines = expected["lines"].as_u64().unwrap();
        if first as u64 > lines.max(1) {
            assert!(!plain.success && !numbered.success, "{}", told());
            return;
        }
        let data = numbered.data.as_ref().unwrap();
        // A byte order mark and nothing behind it.
        let lines = if lines == 0 { return } else { lines };
        assert_eq!(data["total_lines"], lines, "{}", told());
        assert_eq!(data["encoding"], file.script.name, "{}", told());
        assert_eq!(data["bom"].as_bool().unwrap_or(false), file.mark, "{}", told());
        for (outcome, form) in [(&plain, "plain"), (&numbered, "numbered")] {
            let text = expected[form].as_str().unwrap();
            let rest = outcome.output.strip_prefix(text).unwrap_or_else(|| panic!("{form}: {}", told()));
            assert!(rest.trim_start().lines().all(|line| line.starts_with('[')), "{form} {rest}: {}", told());
            let is_cut = first as u64 - 1 + expected["shown"].as_u64().unwrap() < lines;
            assert_eq!(outcome.truncated, is_cut, "{form}: {}", told());
        }
        let whole = project.call("file.read", json!({"path": "file", "encoding": "base64"}));
        assert_eq!(whole.output, base64(&content), "{}", told());
    });
}
