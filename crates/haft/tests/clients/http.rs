//! The gateway's `/mcp` in the hands of the official SDKs.

use crate::Env;
use crate::run::gateway;
use crate::tour::{Client, judge, plan};
use serde_json::json;

fn tour(client: Client) {
    let env = Env::new();
    let (_server, url, token) = gateway(&env);
    let came = client.carry_out(&env, plan(json!({ "http": url, "token": token })));
    judge(&env, client, &came);
}

pub(crate) fn the_python_sdk_drives_it_in_the_newest_protocol_it_can() {
    tour(Client::Python("auto"));
}

pub(crate) fn the_python_sdk_drives_it_with_a_handshake() {
    tour(Client::Python("legacy"));
}

pub(crate) fn the_python_sdk_of_the_generation_before_drives_it() {
    tour(Client::Python1);
}

pub(crate) fn the_python_sdk_from_before_priming_events_drives_it() {
    tour(Client::PythonOld);
}

pub(crate) fn the_typescript_sdk_drives_it() {
    tour(Client::TypeScript);
}
