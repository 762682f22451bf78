//! Structured content in the frameworks that show it to the model: it is complete or not there, and a list is wrapped
//! (decision 0014).

use crate::framework::{Door, Framework, ModelCall, Transcript, Variation, trial};
use crate::project::Project;
use libtest_mimic::Trial;
use serde_json::json;

/// A tool of the user's whose result is a list.
const LISTING: &str = "\
name: listing
description: List the releases of this project.
kind: command
version: 1
inputs: {schema: {type: object}}
outputs: {format: json}
exec: {command: {entrypoint: echo, args: ['[{\"release\":\"one-7741\"}]'], stdout: {format: json}}}
permissions: {network: false, fs: {read: [], write: []}}
approval: {required: false}
";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(Framework::PydanticAi, "pydantic_ai::list_is_wrapped_and_text_stays", || {
            let Some(transcript) = run(Framework::PydanticAi, None) else { return };
            transcript.assert_told(1, &[r#"{"items":[{"release":"one-7741"}]}"#]);
            transcript.assert_told(2, &["hello from a file"]);
        }),
        trial(Framework::OpenAiAgents, "openai_agents::structured_option_shows_wrapped_list_and_text", || {
            let option = Variation {
                written: "client_session_timeout_seconds=PATIENCE",
                instead: "client_session_timeout_seconds=PATIENCE, use_structured_content=True",
            };
            let Some(transcript) = run(Framework::OpenAiAgents, Some(option)) else { return };
            transcript.assert_told(1, &[r#"{"items": [{"release": "one-7741"}]}"#]);
            transcript.assert_told(2, &["hello from a file"]);
        }),
        trial(Framework::Smolagents, "smolagents::structured_option_shows_wrapped_list_and_text", || {
            let Some(transcript) = run(Framework::Smolagents, None) else { return };
            transcript.assert_told(1, &["{'items': [{'release': 'one-7741'}]}"]);
            transcript.assert_told(2, &["hello from a file"]);
        }),
        trial(Framework::Smolagents, "smolagents::without_structured_option_text_is_shown", || {
            let option = Variation { written: "structured_output=True", instead: "structured_output=False" };
            let Some(transcript) = run(Framework::Smolagents, Some(option)) else { return };
            transcript.assert_told(1, &["\"release\": \"one-7741\""]);
            transcript.assert_told(2, &["hello from a file"]);
        }),
    ]
}

fn run(framework: Framework, option: Option<Variation>) -> Option<Transcript> {
    let project = Project::new(1);
    project.write("home/.config/haft/tools/listing/tool.yml", LISTING);
    let calls = [
        ModelCall { tool: "listing", args: json!({}) },
        ModelCall { tool: "file_read", args: json!({"path": "hello.txt"}) },
    ];
    framework.run_varied(&project, Door::Stdio, option, &calls)
}
