//! Which session an HTTP client is in, as the official SDKs open one: by its token, and by the name that it gives.

use crate::run::{Server, agent_token, gateway, within};
use crate::tour::Client;
use crate::{Env, HAFT};
use serde_json::{Value, json};

/// The sessions of all calls in the log.
fn sessions(env: &Env) -> Vec<String> {
    let said = within(30, &mut env.command(HAFT, &["log", "--json"]));
    let records = said.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut sessions: Vec<String> =
        records.filter_map(|record| record["body"]["session"].as_str().map(str::to_owned)).collect();
    sessions.sort();
    sessions.dedup();
    sessions
}

/// One call of a client with this token, in a session of this name.
fn call_in(env: &Env, client: Client, (url, token): (&str, &str), session: Option<&str>) {
    let calls = json!([{ "tool": "calc_eval", "args": { "expression": "6*7" } }]);
    let mut plan = json!({ "http": url, "token": token, "calls": calls });
    if let Some(session) = session {
        plan["session"] = session.into();
    }
    client.carry_out(env, plan);
}

fn serve() -> (Env, Server, String, String) {
    let env = Env::new();
    let (server, url, token) = gateway(&env);
    (env, server, url, token)
}

pub(crate) fn client_names_its_session_in_every_version_of_the_protocol() {
    for client in [Client::Python("auto"), Client::Python("legacy"), Client::TypeScript] {
        let (env, _server, url, token) = serve();
        call_in(&env, client, (&url, &token), Some("release work"));
        assert_eq!(sessions(&env), ["release work"], "{client:?}");
    }
}

pub(crate) fn agent_names_a_session_among_those_of_agents_alone() {
    for client in [Client::Python("auto"), Client::Python("legacy")] {
        let (env, _server, url, _) = serve();
        let token = agent_token(&env);
        call_in(&env, client, (&url, &token), Some("release work"));
        assert_eq!(sessions(&env), ["agent:release work"], "{client:?}");
    }
}

pub(crate) fn session_that_nobody_names_is_fresh_and_tells_agents_apart() {
    let (env, _server, url, token) = serve();
    let agent = agent_token(&env);
    for token in [&token, &agent] {
        call_in(&env, Client::Python("legacy"), (&url, token), None);
    }
    let sessions = sessions(&env);
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    assert!(sessions[0].starts_with("agent:mcp-") && sessions[1].starts_with("mcp-"), "{sessions:?}");
}
