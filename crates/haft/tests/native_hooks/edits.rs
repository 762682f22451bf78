//! Native edits are recorded, shown and taken back.

use crate::client::NativeClient;
use crate::for_every_client;
use crate::project::Project;
use libtest_mimic::Trial;
use serde_json::Value;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = for_every_client("native_edits_are_shown_and_undone", edits_are_undone);
    trials.extend(for_every_client("undo_refuses_when_file_changed_since", undo_refuses));
    trials.extend(for_every_client("failed_edit_leaves_nothing_to_undo", failed_edit));
    trials
}

/// The rule is for Codex, which reads by a command and does not say where that runs.
const ALLOWED: &str = "approval: {auto_approve: [file.write, file.edit]}\nrules: [{allow: cat}]\n";

/// The calls that `haft changes` lists, latest first.
fn changed(project: &Project) -> Vec<Value> {
    project.haft(&["changes", "--json"]).as_array().unwrap().clone()
}

fn edits_are_undone(client: NativeClient) {
    let project = Project::new(ALLOWED);
    let old = "hello from a file";
    let replies = vec![
        client.read(&project, "hello.txt"),
        client.edit(&project, "hello.txt", old, "bye from a file"),
        client.write(&project, "deep/new.txt", "made by an agent"),
    ];
    let transcript = client.run(&project, replies);
    assert_eq!(project.text("hello.txt").as_deref(), Some("bye from a file\n"), "{}", transcript.printed);
    assert_eq!(project.text("deep/new.txt").as_deref(), Some("made by an agent\n"), "{}", transcript.printed);
    let calls = changed(&project);
    assert_eq!(calls.len(), 2, "{:#?}", project.records());
    let (write, edit) = (calls[0]["call_id"].as_str().unwrap(), calls[1]["call_id"].as_str().unwrap());
    let diff = project.haft(&["changes", edit, "--json"])["diff"].as_str().unwrap().to_owned();
    assert!(diff.contains("-hello from a file") && diff.contains("+bye from a file"), "{diff}");
    let outcomes = project.records_of("outcome");
    assert!(outcomes.iter().any(|outcome| outcome["undo"]["files"][0] == "hello.txt"), "{outcomes:#?}");
    for call in [write, edit] {
        let undone = project.run(&["undo", call]);
        assert!(undone.status.success(), "{undone:?}");
    }
    assert_eq!(project.text("hello.txt").as_deref(), Some("hello from a file\n"));
    assert!(!project.root().join("deep").exists(), "a directory that the agent made goes with its file");
    project.assert_log_holds();
}

fn undo_refuses(client: NativeClient) {
    let project = Project::new(ALLOWED);
    client.run(&project, vec![client.write(&project, "new.txt", "made by an agent")]);
    assert_eq!(project.text("new.txt").as_deref(), Some("made by an agent\n"));
    project.write("project/new.txt", "written by a person\n");
    let refused = project.run(&["undo", "--last"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("changed since: new.txt"), "{said}");
    assert_eq!(project.text("new.txt").as_deref(), Some("written by a person\n"));
}

fn failed_edit(client: NativeClient) {
    let project = Project::new(ALLOWED);
    let replies =
        vec![client.read(&project, "hello.txt"), client.edit(&project, "hello.txt", "not in the file", "anything")];
    let transcript = client.run(&project, replies);
    assert!(changed(&project).is_empty(), "{}", transcript.printed);
    assert_eq!(project.text("hello.txt").as_deref(), Some("hello from a file\n"));
    // Whatever the client asked about has an end in the log.
    let (intents, outcomes) = (project.records_of("intent"), project.records_of("outcome"));
    assert_eq!(intents.len(), outcomes.len(), "{:#?}", project.records());
}
