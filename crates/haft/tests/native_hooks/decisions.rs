//! What haft decides about a client's own calls happens, and the model is told.

use crate::client::NativeClient;
use crate::for_every_client;
use crate::project::Project;
use libtest_mimic::Trial;
use std::sync::Arc;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = for_every_client("denied_command_does_not_run_and_the_model_hears_why", denied_command);
    trials.extend(for_every_client("reading_calls_run_unasked_and_are_recorded", allowed_reads));
    trials.extend(for_every_client("unanswered_question_waits_in_the_inbox", unanswered_question));
    trials.extend(for_every_client("approved_call_runs_when_it_is_made_again", approved_later));
    trials
}

fn denied_command(client: NativeClient) {
    let project = Project::new("rules:\n  - deny: touch\n    reason: \"nothing is touched here\"\n");
    let transcript = client.run(&project, vec![client.shell("touch made.txt")]);
    transcript.assert_told(1, "nothing is touched here");
    assert_eq!(project.text("made.txt"), None, "{}", transcript.printed);
    let refused = project.records_of("refused");
    assert_eq!(refused.len(), 1, "{:#?}", project.records());
    assert_eq!(refused[0]["tool"], "shell.exec");
    project.assert_log_holds();
}

fn allowed_reads(client: NativeClient) {
    // Codex does not say where its commands run: there, a rule has to name them.
    let codex = client == NativeClient::Codex;
    let project = Project::new(if codex { "rules: [{allow: cat}, {allow: head}]\n" } else { "" });
    let transcript =
        client.run(&project, vec![client.read(&project, "hello.txt"), client.shell("cat hello.txt | head -1")]);
    transcript.assert_told(1, "hello from a file");
    transcript.assert_told(2, "hello from a file");
    let intents = project.records_of("intent");
    assert_eq!(intents.len(), 2, "{:#?}", project.records());
    for intent in &intents {
        assert_eq!(intent["verdict"]["decision"], "allow");
        assert_eq!(intent["observed"]["client"], client.word());
        assert_eq!(intent["observed"]["confined"], false);
    }
    let outcomes = project.records_of("outcome");
    assert_eq!(outcomes.len(), 2, "{:#?}", project.records());
    assert!(outcomes.iter().all(|outcome| outcome["success"] == true), "{outcomes:#?}");
    project.assert_log_holds();
}

fn unanswered_question(client: NativeClient) {
    let project = Project::new("mcp: {wait_ms: 300}\n");
    let transcript = client.run(&project, vec![client.write(&project, "new.txt", "x")]);
    let waiting = project.haft(&["approvals", "--json"]);
    let id = waiting[0]["id"].as_str().unwrap_or_else(|| panic!("nothing waits: {}", transcript.printed));
    transcript.assert_told(1, &format!("The call waits for approval {id}."));
    transcript.assert_told(1, &format!("haft approvals approve {id}"));
    assert_eq!(project.text("new.txt"), None);
    let shown = String::from_utf8(project.run(&["approvals", "show", id]).stdout).unwrap();
    assert!(shown.contains("+x"), "the person sees what would be written: {shown}");
}

fn approved_later(client: NativeClient) {
    let project = Arc::new(Project::new("mcp: {wait_ms: 0}\n"));
    let touch = || client.shell("touch made.txt");
    let person = Arc::clone(&project);
    // Before the model makes the call again, a person approves it.
    let transcript = client.run_while(&project, vec![touch(), touch(), touch()], move |turn| {
        if turn == 1 {
            let waiting = person.haft(&["approvals", "--json"]);
            let approved = person.haft(&["approvals", "approve", waiting[0]["id"].as_str().unwrap(), "--json"]);
            assert_eq!(approved["success"], true, "{approved}");
            assert_eq!(person.text("made.txt"), None, "approving does not run it: its agent does");
        }
    });
    transcript.assert_told(1, "waits");
    assert!(project.text("made.txt").is_some(), "{}", transcript.printed);
    let intents = project.records_of("intent");
    assert_eq!(intents.len(), 1, "a yes is for one call: {:#?}", project.records());
    let reason = intents[0]["verdict"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("approved; asked because"), "{reason}");
    project.assert_log_holds();
}
