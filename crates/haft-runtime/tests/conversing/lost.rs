//! Copies that are gone or moved, and what children heard earlier: nothing is lost, and nothing is forgotten.

use crate::worktrees::{call, report, stage};
use crate::{Stage, results};
use haft_core::SessionId;
use haft_core::outcome::{Label, Source};
use haft_runtime::{Halt, Yes};
use haft_stub::Reply;
use serde_json::json;

fn worktrees(stage: &Stage) -> std::path::PathBuf {
    stage.dir.path().join("data-worktrees")
}

#[tokio::test]
async fn a_copy_that_is_gone_takes_nothing_out_of_the_project() {
    let stage = stage(vec![("file_write", json!({"path": "new.txt", "content": "new\n"}))]);
    stage.say("You are the parent.").await;
    let (_, id) = report(&stage);
    std::fs::remove_dir_all(worktrees(&stage).join(&id)).unwrap();
    let merged = call(&stage, "agent.merge", json!({"id": id})).await;
    assert!(merged.error.unwrap().message.contains("is not there any more"));
    assert_eq!(stage.read("old.txt").as_deref(), Some("old\n"), "all of it is still there");
}

#[tokio::test]
async fn a_copy_that_cannot_be_gone_on_with_is_left_alone() {
    let stage = stage(vec![("file_write", json!({"path": "precious.txt", "content": "new\n"}))]);
    stage.say("You are the parent.").await;
    let (_, id) = report(&stage);
    let (precious, note) = (
        worktrees(&stage).join(&id).join("tree/precious.txt"),
        stage.dir.path().join("data/worktrees").join(format!("{id}.json")),
    );
    let kept = std::fs::read(&note).unwrap();
    std::fs::write(&note, "{").unwrap();
    let args = json!({"action": "message", "id": id, "message": "Go on."});
    let spoken = call(&stage, "agent.control", args.clone()).await;
    assert!(!spoken.success, "{spoken:?}");
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "new\n", "it is nowhere else");
    std::fs::write(&note, kept).unwrap();
    assert!(call(&stage, "agent.control", args).await.success);
}

#[tokio::test]
async fn what_a_child_heard_in_another_life_its_parent_has_heard() {
    let stage = Stage::answers(|asked| match results(asked).len() {
        _ if asked.says("Read the page") && !asked.says("You are the parent") => Reply::say("It says so."),
        0 => Reply::call("agent_spawn", json!({"name": "reader", "task": "Read the page"})),
        _ => Reply::say("Good."),
    });
    stage.say("You are the parent.").await;
    let listed = call(&stage, "agent.control", json!({"action": "list"})).await;
    let id = listed.data.unwrap().to_string();
    let id = id.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    // As if it had been cut off after that.
    let session = SessionId::new(&format!("agent-{id}")).unwrap();
    let source = Source { label: Label::Untrusted, tool: "web.fetch".to_owned() };
    stage.haft.store().note_heard(&session, vec![source]);
    stage.haft.store().flush().await.unwrap();
    let other = stage.another();
    let asked = haft_core::Call {
        session: SessionId::new("talk").unwrap(),
        ..haft_core::Call::new(
            haft_runtime::new_call_id(),
            "agent.control",
            json!({"action": "message", "id": id, "message": "And?"}),
        )
    };
    let spoken = other.call(asked, &Yes, &Halt::new()).await;
    assert!(spoken.success && spoken.labels.contains(&Label::Untrusted), "{spoken:?}");
    assert!(spoken.output.contains("<untrusted mark="), "{}", spoken.output);
}
