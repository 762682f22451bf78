//! What haft's tools cost of a client's context: the tokens of all tool schemas in a request, counted with `o200k_base`.

use crate::client::{AgentClient, HaftEntry, scripted_model};
use crate::project::Project;
use crate::replace::install;
use crate::trials::for_every_client;
use haft_stub::Asked;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::path::PathBuf;

pub(crate) fn trials() -> Vec<Trial> {
    for_every_client("replaced_tools_cost_no_more_context_than_native_ones", replacing_costs_no_more)
}

fn replacing_costs_no_more(client: AgentClient) {
    let native = schema_tokens_of_first_request(client, None);
    let replaced = schema_tokens_of_first_request(client, Some(&["install", "--replace"]));
    assert!(native > 0 && replaced > 0, "{client:?} sent no tools");
    assert!(replaced <= native, "{client:?}: {replaced} tokens with --replace, {native} without haft");
    if let Some(dir) = std::env::var_os("HAFT_CONTEXT_COST").map(PathBuf::from) {
        let beside = schema_tokens_of_first_request(client, Some(&["install"]));
        let row = json!({"native": native, "beside": beside, "replaced": replaced});
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(client.name()), row.to_string()).unwrap();
    }
}

/// The tokens of the tools that the client offers its model, with haft installed by the real command or not at all.
fn schema_tokens_of_first_request(client: AgentClient, installation: Option<&[&str]>) -> usize {
    let project = Project::new(1);
    let model = scripted_model(Vec::new());
    client.configure(&project, &model, HaftEntry::Installed);
    if let Some(command) = installation {
        install(client, &project, command);
    }
    // Codex knows which tools a model takes by its name.
    let options = if client == AgentClient::Codex { &["-m", "gpt-5.5"] } else { client.permissive_options() };
    client.run_configured(&project, &model, options);
    // Requests for a title offer fewer tools or none.
    model.asked().iter().map(schema_tokens).max().unwrap_or_default()
}

fn schema_tokens(asked: &Asked) -> usize {
    let inputs = asked.body["input"].as_array().into_iter().flatten();
    let additional = inputs.filter(|item| item["type"] == "additional_tools").map(|item| &item["tools"]);
    let lists = additional.chain([&asked.body["tools"]]).filter(|tools| tools.is_array());
    let tokenizer = tiktoken_rs::o200k_base().unwrap();
    lists.map(|tools: &Value| tokenizer.encode_with_special_tokens(&tools.to_string()).len()).sum()
}
