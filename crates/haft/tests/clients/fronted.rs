//! haft in front of a server: the conformance suite passes through haft what it passes at the server itself.
//!
//! The suite runs twice, at the server and at the gateway's address for it. A check that succeeds at the server and not
//! through haft is listed in `tests/real/conformance-front.yml` with its reason, and nothing else may be. So is a check that
//! the server itself does not pass, so that no scenario drops out unnoticed.

use crate::authorizing_proxy::AuthorizingProxy;
use crate::conformance::{Example, NEWEST, RELEASED, Suite, checks, exceptions, fresh, plain};
use crate::run::{Server, gateway, within};
use crate::{Env, real_program, script};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, TcpListener};

/// How long one run of the suite may take.
const SUITE_SECONDS: u64 = 240;

/// The coming suite, on the revision that most servers speak.
const COMING: Suite = Suite {
    name: "server-2025-11-25",
    program: "HAFT_TEST_CONFORMANCE_NEXT",
    options: &["--requirements", "2025-11-25"],
    exceptions: "conformance-front.yml",
};

pub(crate) fn a_server_conforms_through_haft_as_it_does_by_itself() {
    compare_reference(&RELEASED, 44);
}

pub(crate) fn a_server_conforms_to_the_coming_suite_through_haft_as_it_does_by_itself() {
    compare_reference(&COMING, 84);
}

/// The official TypeScript SDK does not speak this revision yet: haft is put in front of its own example.
pub(crate) fn newest_revision_conforms_through_haft_as_it_does_directly() {
    let env = &Env::new();
    let example = Example::serve(env);
    compare(&NEWEST, env, &example.url, 173);
}

/// The reference server of these tests, on a port of its own.
fn reference(env: &Env) -> (Server, String) {
    let (node, modules) = (real_program("HAFT_TEST_NODE"), real_program("HAFT_TEST_NODE_MODULES"));
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let mut command = env.command(node, &[]);
    command.arg(script("ts/reference.mjs")).arg(modules).arg(port.to_string());
    (Server::start(&mut command), format!("http://127.0.0.1:{port}/mcp"))
}

fn compare_reference(suite: &Suite, least: usize) {
    let env = &Env::new();
    let (_reference, url) = reference(env);
    compare(suite, env, &url, least);
}

/// Runs the suite at the server and through haft, side by side, and holds one against the other. The server itself passes at
/// least this many checks.
fn compare(suite: &Suite, env: &Env, url: &str, least: usize) {
    let name = suite.name;
    // The suite cannot send a token with every request: a proxy does it, as in front of many gateways.
    let mut proxy = AuthorizingProxy::bind();
    env.config(&format!(
        "tools: {{ budget_tokens: 0 }}\napproval: {{ auto_approve: [\"mcp:ref:*\"] }}\n\
         gateway: {{ hosts: [\"{}\"] }}\n\
         mcp: {{ servers: {{ ref: {{ url: \"{url}\", start: eager, sampling: allow }} }} }}\n",
        proxy.address
    ));
    let (_gateway, haft, token) = gateway(env);
    let front = proxy.forward(&haft, &token) + "/ref";
    let (direct, through) = std::thread::scope(|scope| {
        let direct = scope.spawn(|| run_suite(suite, &format!("{name}-direct"), url, env));
        let through = run_suite(suite, &format!("{name}-through-haft"), &front, env);
        (direct.join().unwrap(), through)
    });
    let (passed, failed): (BTreeSet<&String>, BTreeSet<&String>) = direct.keys().partition(|check| direct[*check]);
    let count = passed.len();
    assert!(count >= least, "{name}: the server itself passes {count} checks, not {least}: {failed:#?}");
    let excepted: BTreeSet<String> =
        exceptions("conformance-front.yml", &format!("{name}-direct")).into_iter().collect();
    assert_eq!(
        failed,
        excepted.iter().collect(),
        "{name}: what the server itself does not pass is listed, and nothing else"
    );
    let lost: Vec<&String> = passed.into_iter().filter(|check| through.get(*check) != Some(&true)).collect();
    let excepted = exceptions("conformance-front.yml", name);
    let unexpected: Vec<_> = lost.iter().filter(|check| !excepted.contains(check)).collect();
    assert!(unexpected.is_empty(), "these checks pass at the server and not through haft: {unexpected:#?}");
    let stale: Vec<_> = excepted.iter().filter(|check| !lost.contains(check)).collect();
    assert!(stale.is_empty(), "these checks are excepted and pass: {stale:#?}");
}

/// Every check of a run of the suite, and whether it succeeded.
fn run_suite(suite: &Suite, name: &str, url: &str, env: &Env) -> BTreeMap<String, bool> {
    let (node, program) = (real_program("HAFT_TEST_NODE"), real_program(suite.program));
    let output = fresh(name);
    let mut command = env.command(node, &[]);
    command.arg(program).args(["server", "--url", url]).args(suite.options).arg("-o").arg(&output);
    let said = within(SUITE_SECONDS, &mut command);
    assert!(said.code.is_some(), "{name} was not done after {SUITE_SECONDS} s: {}", said.stdout);
    let mut found = BTreeMap::new();
    for (scenario, list) in checks(&output) {
        let scenario = plain(&scenario);
        for check in list {
            let id = check["id"].as_str().unwrap_or_default();
            // A check that was not made has neither passed nor failed.
            if matches!(check["status"].as_str(), Some("INFO" | "SKIPPED")) {
                continue;
            }
            let passes = check["status"] == "SUCCESS";
            // A check that is made several times succeeds if it always does.
            *found.entry(format!("{scenario}: {id}")).or_insert(true) &= passes;
            if let (false, Value::String(why)) = (passes, &check["errorMessage"]) {
                eprintln!("{name}: {scenario}: {id}: {why}");
            }
        }
    }
    assert!(!found.is_empty(), "nothing was checked: {} {}", said.stdout, said.stderr);
    found
}
