//! Commands: what goes in, what comes out, and how they fail.

use crate::{Stage, data, permissions, wrong};
use haft_core::ErrorKind;
use serde_json::json;

#[tokio::test]
async fn a_script_of_the_project_gets_its_arguments_as_they_are() {
    let stage = Stage::new();
    stage.script("scripts/show.sh", "#!/bin/sh\nfor arg in \"$@\"; do echo \"<$arg>\"; done; pwd; cat\n");
    stage.file("sub/x", "");
    stage.tool(
        "show",
        json!({
            "outputs": {"format": "text"},
            "exec": {"command": {
                "entrypoint": "./scripts/show.sh", "args": ["-n", "${n}", "${gone}", "${text}", "${list}"],
                "cwd": "sub", "stdin": {"text": "${text}"},
            }},
        }),
    );
    let nasty = "a; rm -rf $HOME `x` \"y\" 'z'";
    let outcome = stage.call("show", json!({"n": 5, "text": nasty, "list": ["one two", 3]})).await;
    let sub = stage.root().join("sub");
    let expected = format!("<-n>\n<5>\n<{nasty}>\n<one two>\n<3>\n{}\n{}", sub.display(), json!({ "text": nasty }));
    assert_eq!(outcome.output, expected, "{outcome:?}");
    assert!(outcome.success && outcome.warnings.is_empty());
}

#[tokio::test]
async fn what_is_printed_is_read_as_its_format_says() {
    let stage = Stage::new();
    let tool = |name: &str, exec| {
        stage
            .tool(name, json!({"exec": {"command": exec}, "outputs": {"format": "json", "schema": {"type": "array"}}}));
    };
    tool("fine", json!({"entrypoint": "echo", "args": ["[1, {\"a\": 2}]"]}));
    assert_eq!(data(&stage.call("fine", json!({})).await), &json!([1, {"a": 2}]));
    tool("odd", json!({"entrypoint": "echo", "args": ["{\"a\": 2}"]}));
    let odd = stage.call("odd", json!({})).await;
    assert!(odd.success && odd.data == Some(json!({"a": 2})), "it is passed on all the same");
    assert_eq!(odd.warnings, ["output does not fit its schema: : expected array, got object with 1 properties"]);
    tool("none", json!({"entrypoint": "echo", "args": ["Scan complete."]}));
    let none = stage.call("none", json!({})).await;
    assert_eq!(none.error.as_ref().unwrap().kind, ErrorKind::Failed);
    assert_eq!(wrong(&none), "what it printed is no JSON (expected value at line 1 column 1): Scan complete.");
    assert_eq!(none.output, "Scan complete.\n", "what was printed is there");
    tool("empty", json!({"entrypoint": "true"}));
    assert!(wrong(&stage.call("empty", json!({})).await).ends_with("line 1 column 0): nothing"));
    tool("text", json!({"entrypoint": "echo", "args": ["plain"], "stdout": {"format": "text"}}));
    assert_eq!(stage.call("text", json!({})).await.output, "plain\n");
}

#[tokio::test]
async fn a_status_that_is_not_fine_is_told_with_the_complaints() {
    let stage = Stage::new();
    stage.script("grump.sh", "#!/bin/sh\necho some\necho 'no good' >&2\nexit ${1:-0}\n");
    let exec = |fine| json!({"outputs": {"format": "text"}, "exec": {"command": {"entrypoint": "./grump.sh", "args": ["${code}"], "exit_codes_ok": fine}}});
    stage.tool("grump", exec(json!([0, 7])));
    let bad = stage.call("grump", json!({"code": 3})).await;
    assert_eq!((bad.success, wrong(&bad)), (false, "exit status 3: no good"));
    assert_eq!(bad.error.unwrap().details, Some(json!({"exit_code": 3, "signal": null, "stderr": "no good\n"})));
    assert_eq!(bad.output, "some\n");
    let fine = stage.call("grump", json!({"code": 7})).await;
    assert_eq!((fine.success, fine.output.as_str()), (true, "some\n"));
    assert_eq!(fine.warnings, ["stderr: no good"]);
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let stage = Stage::new();
    let exec = json!({"entrypoint": "sleep", "args": ["60"], "timeout_ms": 300});
    stage.tool("slow", json!({"exec": {"command": exec}}));
    let slow = stage.call("slow", json!({})).await;
    assert_eq!(slow.error.as_ref().unwrap().kind, ErrorKind::Timeout);
    assert_eq!(wrong(&slow), "it did not finish within 300 ms; it was ended");
}

#[tokio::test]
async fn a_program_has_to_be_there_in_the_project_and_runnable() {
    let stage = Stage::new();
    stage.file("data.txt", "x");
    let said = async |entrypoint: &str| {
        stage.tool("odd", json!({"exec": {"command": {"entrypoint": entrypoint}}}));
        wrong(&stage.call("odd", json!({})).await).to_owned()
    };
    assert_eq!(said("./nothing.sh").await, "there is no program `./nothing.sh`");
    assert_eq!(said("no-such-program").await, "there is no program `no-such-program`");
    assert_eq!(said("./data.txt").await, "the entrypoint `./data.txt` may not be run");
    assert_eq!(said("../haft.db").await, "the entrypoint `../haft.db` leads out of the project");
    stage.tool("odd", json!({"exec": {"command": {"entrypoint": "true", "cwd": ".."}}}));
    assert_eq!(wrong(&stage.call("odd", json!({})).await), "`..` leads out of the project");
    stage.tool("odd", json!({"exec": {"command": {"entrypoint": "true", "env": {"A B": "x"}}}}));
    assert_eq!(wrong(&stage.call("odd", json!({})).await), "`A B` is not the name of a variable");
    stage.tool("odd", json!({"exec": {"command": {"entrypoint": "true", "args": ["${x}"]}}}));
    assert!(wrong(&stage.call("odd", json!({"x": "a\u{0}b"})).await).starts_with("argument 1 has a NUL in it"));
}

#[tokio::test]
async fn what_it_writes_is_shown_kept_and_undone() {
    let stage = Stage::new();
    stage.file("out/old.txt", "before\n");
    stage.file("src/x", "untouched\n");
    stage.script("write.sh", "#!/bin/sh\necho after > out/old.txt; echo new > out/new.txt; echo '{}'\n");
    stage.tool("write", json!({"exec": {"command": {"entrypoint": "./write.sh"}}, "permissions": permissions(json!(false), &["."], &["out"], json!({}))}));
    let outcome = stage.call("write", json!({})).await;
    assert!(outcome.success, "{outcome:?}");
    assert_eq!((stage.read("out/old.txt"), stage.read("out/new.txt")), (Some("after\n".into()), Some("new\n".into())));
    stage.haft.undo(&outcome.call_id).await.unwrap();
    assert_eq!((stage.read("out/old.txt"), stage.read("out/new.txt")), (Some("before\n".into()), None));
}

#[tokio::test]
async fn much_output_is_cut_and_kept_whole() {
    let stage = Stage::new();
    let exec = json!({"entrypoint": "seq", "args": ["200000"]});
    stage.tool("much", json!({"outputs": {"format": "text"}, "exec": {"command": exec}}));
    let much = stage.call("much", json!({})).await;
    assert!(much.truncated && much.output.len() < 300 << 10, "{}", much.output.len());
    let whole = std::fs::read_to_string(much.full_output.unwrap()).unwrap();
    assert_eq!(whole.lines().count(), 200_000);
    let exec = json!({"entrypoint": "yes"});
    stage.tool("endless", json!({"outputs": {"format": "text"}, "exec": {"command": exec}}));
    assert_eq!(wrong(&stage.call("endless", json!({})).await), "the command reached its limit of output");
}
