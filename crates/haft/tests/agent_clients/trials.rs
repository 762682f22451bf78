//! The tests as the runner sees them: one for each client, named `client::test`.

use crate::client::AgentClient;
use libtest_mimic::Trial;

/// One test for each client. It is skipped, by name, where the client cannot run.
pub(crate) fn for_every_client(name: &str, test: fn(AgentClient)) -> Vec<Trial> {
    for_clients(&AgentClient::ALL, name, test)
}

/// One test for each of these clients. It is skipped, by name, where the client cannot run.
pub(crate) fn for_clients(clients: &[AgentClient], name: &str, test: fn(AgentClient)) -> Vec<Trial> {
    let trial = |client: &AgentClient| {
        let client = *client;
        let trial = Trial::test(format!("{}::{name}", client.name()), move || {
            test(client);
            Ok(())
        });
        trial.with_ignored_flag(is_left_out() || !has_binaries())
    };
    clients.iter().map(trial).collect()
}

/// Whether the person who runs the tests does without real clients.
fn is_left_out() -> bool {
    std::env::var_os("HAFT_TEST_WITHOUT_MCP").is_some_and(|value| value == "1")
}

/// Whether the pinned clients are made for this machine.
fn has_binaries() -> bool {
    cfg!(all(target_os = "linux", target_arch = "x86_64"))
}
