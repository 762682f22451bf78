//! What a run does with its steps.

use crate::{Stage, block, data, states};
use haft_runtime::Yes;
use haft_runtime::approver::Nobody;
use haft_runtime::work::workflow;
use serde_json::json;

#[test]
fn results_go_from_step_to_step_with_their_types() {
    block(async {
        let stage = Stage::new();
        let outcome = stage
            .call(
                "pipeline.run",
                json!({
                    "context": {"start": 20},
                    "steps": [
                        {"id": "sum", "tool": "calc.eval", "args": {"expression": "{{start}} + 1"}},
                        {"id": "double", "tool": "calc.eval", "args": {"expression": "2 * {{sum.output}}"}},
                        {"id": "keep", "tool": "file.write", "args": {"path": "out.txt", "content": "it is {{double}}\n"}},
                        {"id": "look", "tool": "file.read", "args": {"path": "out.txt"}, "needs": ["keep"]},
                    ],
                }),
                &Yes,
            )
            .await;
        assert!(outcome.success, "{outcome:?}");
        assert_eq!(stage.read("out.txt").as_deref(), Some("it is 42\n"));
        assert_eq!(data(&outcome)["state"], "done");
        assert!(outcome.output.contains("it is 42"), "{}", outcome.output);
        assert!(states(&outcome).iter().all(|(_, state)| state == "done"));
        let log = stage.haft.store().records(0, 100, None).await.unwrap();
        let keep =
            log.iter().find(|record| record.body["tool"] == "file.write" && record.body["kind"] == "intent").unwrap();
        assert_eq!(keep.body["parent"], data(&outcome)["run"], "a step's call is the run's");
        assert!(stage.haft.store().verify(None).await.unwrap().is_ok());
    });
}

#[test]
fn steps_that_wait_for_nothing_of_each_other_run_at_once() {
    block(async {
        let stage = Stage::new();
        let begun = std::time::Instant::now();
        let steps: Vec<_> = (0..4)
            .map(|number| json!({"id": format!("s{number}"), "tool": "shell.exec", "args": {"command": "sleep 1"}}))
            .collect();
        let outcome = stage.run(json!(steps)).await;
        assert!(outcome.success, "{outcome:?}");
        assert!(begun.elapsed() < std::time::Duration::from_millis(3500), "{:?}", begun.elapsed());
    });
}

#[test]
fn conditions_failures_and_what_follows_from_them() {
    block(async {
        let stage = Stage::new();
        let outcome = stage
            .run(json!([
                {"id": "three", "tool": "calc.eval", "args": {"expression": "3"}},
                {"id": "more", "tool": "calc.eval", "args": {"expression": "1"}, "when": [{"path": "three", "op": "gt", "value": 2}]},
                {"id": "less", "tool": "calc.eval", "args": {"expression": "1"}, "when": [{"path": "three", "op": "lt", "value": 2}]},
                {"id": "bad", "tool": "file.read", "args": {"path": "no-such-file"}, "on_failure": "continue"},
                {"id": "after", "tool": "calc.eval", "args": {"expression": "1 {{bad.output}} + 1"}},
                {"id": "end", "tool": "file.read", "args": {"path": "{{after.data.nothing}}"}},
                {"id": "never", "tool": "calc.eval", "args": {"expression": "1"}, "needs": ["end"]},
            ]))
            .await;
        assert!(!outcome.success);
        let expected = [
            ("three", "done"),
            ("more", "done"),
            ("less", "skipped"),
            ("bad", "failed"),
            ("after", "done"),
            ("end", "failed"),
            ("never", "skipped"),
        ];
        let states = states(&outcome);
        assert_eq!(states.iter().map(|(id, state)| (id.as_str(), state.as_str())).collect::<Vec<_>>(), expected);
        assert!(outcome.output.contains("stands for nothing"), "{}", outcome.output);
        let run = data(&outcome)["run"].as_str().unwrap().to_owned();
        stage.file("no-such-file", "now there\n");
        let again = stage.call("pipeline.run", json!({"pipeline_id": run, "retry": true}), &Yes).await;
        let stands = |id: &str| crate::states(&again).into_iter().find(|(known, _)| known == id).unwrap().1;
        assert_eq!((stands("three").as_str(), stands("bad").as_str()), ("done", "done"));
        let calls = data(&again)["steps"].as_array().unwrap().clone();
        assert_eq!(calls[0]["attempt"], 1, "what had ended well is not done again");
    });
}

#[test]
fn a_plan_that_cannot_be_run_is_refused_whole() {
    block(async {
        let stage = Stage::new();
        let outcome = stage
            .run(json!([
                {"id": "a", "tool": "file.write", "args": {"path": "x", "content": "{{b}}"}},
                {"id": "b", "tool": "calc.eval", "args": {"expression": "{{a}}"}},
                {"id": "c", "tool": "calc.eval", "args": {"expression": "{{nobody}}"}},
            ]))
            .await;
        let error = outcome.error.unwrap();
        assert_eq!(error.kind.as_str(), "invalid_input");
        assert!(error.message.contains("Dependency cycle detected: "), "{}", error.message);
        assert!(error.message.contains("`{{nobody}}` names no step"), "{}", error.message);
        assert_eq!(stage.read("x"), None);
        assert!(stage.haft.store().runs(&stage.haft.workspace().root().to_string_lossy(), 9).await.unwrap().is_empty());
    });
}

#[test]
fn a_pipeline_in_a_pipeline_shares_its_budget() {
    block(async {
        let stage = Stage::new();
        stage
            .workflow(
            "inner",
            "mode: sequential\ninputs: {n: {default: 1}}\nsteps:\n  - {id: a, tool: calc.eval, args: {expression: \"{{n}} + 1\"}}\n  \
             - {id: b, tool: calc.eval, args: {expression: \"{{a}} * 10\"}}\noutput: \"{{b}}\"\n",
        )
        .await;
        let steps = json!([
            {"id": "one", "pipeline": "inner", "inputs": {"n": 3}},
            {"id": "two", "tool": "calc.eval", "args": {"expression": "{{one}} + 2"}},
        ]);
        let outcome = stage.run(steps.clone()).await;
        assert!(outcome.success && outcome.output.contains("42"), "{outcome:?}");
        let few = stage.call("pipeline.run", json!({"steps": steps, "budget": {"steps": 3}}), &Yes).await;
        let message = few.error.unwrap().message;
        assert!(message.contains("budget"), "{message}");
        // Neither said as a step nor made as a call does a pipeline go on for ever.
        let call = "steps: [{id: a, tool: pipeline.run, args: {pipeline_id: call, background: true}}]\n";
        stage.workflow("call", call).await;
        let called = stage.call("pipeline.run", json!({"pipeline_id": "call"}), &Yes).await;
        assert!(!called.success && called.output.contains("cannot begin a run by a call"), "{called:?}");
        stage.workflow("self", "steps: [{id: again, pipeline: self}]\n").await;
        let deep = stage.call("pipeline.run", json!({"pipeline_id": "self"}), &Yes).await;
        assert!(!deep.success, "pipelines end somewhere");
    });
}

#[test]
fn a_stored_pipeline_is_changed_for_one_run() {
    block(async {
        let stage = Stage::new();
        stage
            .workflow(
            "w",
            "steps:\n  - {id: a, tool: calc.eval, args: {expression: '1'}}\n  - {id: b, tool: calc.eval, args: {expression: '2'}, \
             needs: [a]}\n  - {id: c, tool: calc.eval, args: {expression: '3'}, needs: [b]}\n",
        )
        .await;
        let changes = json!([
            {"action": "remove", "step": "b"}, {"action": "update_task", "step": "c", "args": {"expression": "6*7"}},
        ]);
        let outcome = stage.call("pipeline.run", json!({"pipeline_id": "w", "modifications": changes}), &Nobody).await;
        assert!(outcome.success && outcome.output.contains("42"), "{outcome:?}");
        assert_eq!(states(&outcome).len(), 2);
        let wrong = stage.call("pipeline.run", json!({"pipeline_id": "v"}), &Nobody).await.error.unwrap();
        assert!(wrong.message.contains("there is no pipeline `v`"), "{}", wrong.message);
    });
}

#[test]
fn what_a_step_said_is_one_word_of_a_command_whatever_it_is() {
    block(async {
        let stage = Stage::new();
        for hostile in
            ["; touch x #", "$(touch x)", "`touch x`", "' ; touch x ; '", "a\ntouch x", "\" ; touch x ; \"", "\\", "--"]
        {
            stage.file("said.txt", hostile);
            let outcome = stage
                .call(
                    "pipeline.run",
                    json!({"steps": [
                        {"id": "said", "tool": "shell.exec", "args": {"command": "cat said.txt"}},
                        {"id": "shown", "tool": "shell.exec", "args": {"command": "printf '[%s]' {{said.output}}$HOME_IS_NOT_SET"}},
                        {"id": "named", "tool": "Bash", "args": {"command": "printf %s $(printf %s {{said}}) # a note"}},
                    ]}),
                    &Yes,
                )
                .await;
            assert!(outcome.success, "{hostile}: {outcome:?}");
            let output = data(&outcome)["output"].as_str().unwrap();
            assert!(output.contains(&format!("[{}", hostile.trim_end())), "{hostile}: {output}");
            assert_eq!(stage.read("x"), None, "{hostile}");
        }
    });
}

#[test]
fn a_command_in_which_a_word_would_not_stay_one_is_refused_before_anything_runs() {
    block(async {
        let stage = Stage::new();
        for (command, why) in [
            ("{{said.output}}", "would be the whole command"),
            ("echo \"{{said.output}}\"", "stands in quotes; leave them away"),
            ("cat <<EOF\n{{said.output}}\nEOF", "comes after `<<`"),
        ] {
            let steps = json!([
                {"id": "said", "tool": "file.write", "args": {"path": "x", "content": "x"}},
                {"id": "run", "tool": "shell.exec", "args": {"command": command}},
            ]);
            let error = stage.run(steps).await.error.unwrap();
            assert_eq!(error.kind.as_str(), "invalid_input");
            assert!(
                error.message.contains("steps.1.args.command: ") && error.message.contains(why),
                "{}",
                error.message
            );
            assert_eq!(stage.read("x"), None);
        }
        let literal =
            json!([{"id": "a", "tool": "shell.exec", "args": {"command": "echo '{{nobody}}'"}, "literal": true}]);
        let outcome = stage.run(literal).await;
        assert!(outcome.success && outcome.output.contains("{{nobody}}"), "{outcome:?}");
    });
}

#[test]
fn a_workflow_runs_only_as_it_was_accepted() {
    block(async {
        let stage = Stage::new();
        let text = |number: u32| format!("steps:\n  - {{id: a, tool: calc.eval, args: {{expression: '{number}'}}}}\n");
        stage.file(".haft/workflows/w.yml", &text(1));
        let run = || stage.call("pipeline.run", json!({"pipeline_id": "w"}), &Yes);
        let error = run().await.error.unwrap();
        assert_eq!(error.kind.as_str(), "denied", "{}", error.message);
        assert!(error.hint.unwrap().contains("`haft trust`"));
        stage.trust().await;
        assert!(run().await.success);
        stage.file(".haft/workflows/w.yml", &text(2));
        let error = run().await.error.unwrap();
        assert!(error.message.contains("has changed since it was accepted"), "{}", error.message);
        // A step that names it does not get around that.
        let nested = stage.run(json!([{"id": "in", "pipeline": "w"}])).await;
        assert!(!nested.success && nested.output.contains("has changed since it was accepted"), "{nested:?}");
        stage.trust().await;
        assert!(run().await.success);
        workflow::revoke(stage.haft.store(), stage.haft.workspace()).await.unwrap();
        assert_eq!(run().await.error.unwrap().kind.as_str(), "denied");
    });
}

#[test]
fn what_a_step_was_given_in_part_only_is_said() {
    block(async {
        let stage = Stage::new();
        let steps = json!([
            {"id": "much", "tool": "shell.exec", "args": {"command": "seq 1 30000"}},
            {"id": "kept", "tool": "file.write", "args": {"path": "a.txt", "content": "{{much.output}}"}},
        ]);
        let outcome = stage.run(steps).await;
        assert!(outcome.success, "{outcome:?}");
        assert!(stage.read("a.txt").unwrap().len() <= 50 << 10);
        let said = outcome.warnings.iter().any(|word| word.contains("kept: what `much` gave is longer than 50 KB"));
        assert!(said, "{:?}", outcome.warnings);
    });
}
