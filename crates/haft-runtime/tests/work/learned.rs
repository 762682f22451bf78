//! From a plan to a pipeline, and from what was done to one.

use crate::{Stage, block, data, states};
use haft_runtime::Yes;
use haft_runtime::approver::Nobody;
use serde_json::json;

#[test]
fn a_plan_is_read_and_approved_and_then_runs() {
    block(async {
        let stage = Stage::new();
        let plan = json!({
            "summary": "Make the numbers",
            "context": {"summary": "there are none", "findings": ["no numbers"]},
            "phases": [
                {"name": "First number", "steps": ["compute"], "calls": [{"tool": "calc.eval", "args": {"expression": "6*7"}}]},
                {"name": "Look at it", "steps": ["look"], "assignee": "user", "depends_on": ["First number"]},
                {"name": "Second number", "steps": ["double it"], "depends_on": ["Look at it"],
                 "calls": [{"tool": "calc.eval", "args": {"expression": "2 * {{first-number}}"}}]},
            ],
        });
        let asked = stage.call("pipeline.plan", plan.clone(), &Nobody).await;
        assert_eq!(asked.error.unwrap().kind.as_str(), "approval_required");
        let outcome = stage.call("pipeline.plan", plan, &Yes).await;
        assert!(outcome.success, "{outcome:?}");
        assert!(outcome.output.contains("2. Look at it  [your input needed]"), "{}", outcome.output);
        assert!(outcome.output.contains("Estimate: 2 tool calls"), "{}", outcome.output);
        assert_eq!(data(&outcome)["user_phases"], json!(["Look at it"]));
        let id = data(&outcome)["pipeline_id"].as_str().unwrap();
        let ran = stage.call("pipeline.run", json!({"pipeline_id": id}), &Nobody).await;
        assert!(ran.success && ran.output.contains("84"), "{ran:?}");
        assert_eq!(states(&ran).len(), 2);
    });
}

#[test]
fn what_a_session_did_becomes_a_pipeline_with_inputs() {
    block(async {
        let stage = Stage::new();
        stage.call("calc.eval", json!({"expression": "1 +"}), &Yes).await;
        stage.call("file.write", json!({"path": "report.md", "content": "# Report\n"}), &Yes).await;
        stage.call("file.read", json!({"path": "report.md"}), &Yes).await;
        stage.call("shell.exec", json!({"command": "date -d 2026-11-15 +%F"}), &Yes).await;
        let captured = stage.call("pipeline.capture", json!({"name": "report"}), &Yes).await;
        assert!(captured.success, "{captured:?}");
        let plan = &data(&captured)["plan"];
        assert_eq!(plan["steps"].as_array().unwrap().len(), 3, "what failed is not in it: {plan}");
        assert_eq!(plan["steps"][0]["args"]["path"], "{{path}}", "what two calls have in common varies");
        assert_eq!(plan["inputs"]["path"]["default"], "report.md");
        assert_eq!(plan["inputs"]["file_write_content"]["source"], "user_input", "the log does not hold it");
        assert_eq!(plan["steps"][1]["needs"], json!(["file-write"]));
        let id = data(&captured)["process_id"].as_str().unwrap();
        let early = stage.call("pipeline.run", json!({"pipeline_id": id}), &Yes).await.error.unwrap();
        assert!(early.message.contains("has to be promoted"), "{}", early.message);
        let args = json!({"process_id": "report", "parameter_values": {"path": "other.md"}});
        let promoted = stage.call("pipeline.promote", args, &Yes).await;
        assert!(promoted.success && promoted.output.contains("file_write_content"), "{promoted:?}");
        let id = data(&promoted)["pipeline_id"].as_str().unwrap().to_owned();
        let missing = stage.call("pipeline.run", json!({"pipeline_id": id}), &Yes).await.error.unwrap();
        assert!(missing.message.contains("inputs.file_write_content: it is not given"), "{}", missing.message);
        let context = json!({"file_write_content": "again\n"});
        let ran = stage.call("pipeline.run", json!({"pipeline_id": id, "context": context}), &Yes).await;
        assert!(ran.success, "{ran:?}");
        assert_eq!(stage.read("other.md").as_deref(), Some("again\n"));
    });
}
