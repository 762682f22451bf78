//! haft in front of a server: the conformance suite passes through haft what it passes at the server itself.
//!
//! The suite runs twice, at the server and at the gateway's address for it. A check that succeeds at the server and not
//! through haft is listed in `tests/real/conformance-front.yml` with its reason, and nothing else may be.

use crate::conformance::{RELEASED, Suite, checks, exceptions, fresh, plain};
use crate::run::{Server, gateway, within};
use crate::{Env, need, script};
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

#[test]
fn a_server_conforms_through_haft_as_it_does_by_itself() {
    compare(&RELEASED);
}

#[test]
fn a_server_conforms_to_the_coming_suite_through_haft_as_it_does_by_itself() {
    compare(&COMING);
}

/// The reference server of these tests, on a port of its own.
fn reference(env: &Env) -> Option<(Server, String)> {
    let (node, modules) = (need("HAFT_TEST_NODE")?, need("HAFT_TEST_NODE_MODULES")?);
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let mut command = env.command(node, &[]);
    command.arg(script("ts/reference.mjs")).arg(modules).arg(port.to_string());
    Some((Server::start(&mut command), format!("http://127.0.0.1:{port}/mcp")))
}

/// Runs the suite at the server and through haft, side by side, and holds one against the other.
fn compare(suite: &Suite) {
    let (env, name) = (&Env::new(), suite.name);
    let Some((_reference, url)) = reference(env) else { return };
    env.config(&format!(
        "tools: {{ budget_tokens: 0 }}\napproval: {{ auto_approve: [\"mcp:ref:*\"] }}\n\
         mcp: {{ servers: {{ ref: {{ url: \"{url}\", start: eager, sampling: allow }} }} }}\n"
    ));
    let (_gateway, haft, token) = gateway(env);
    let front = format!("{haft}/ref?token={token}");
    let (direct, through) = std::thread::scope(|scope| {
        let direct = scope.spawn(|| run_suite(suite, &format!("{name}-direct"), &url, env));
        let through = run_suite(suite, &format!("{name}-through-haft"), &front, env);
        (direct.join().unwrap(), through)
    });
    let (Some(direct), Some(through)) = (direct, through) else { return };
    let passed: BTreeSet<&String> = direct.iter().filter(|(_, passes)| **passes).map(|(check, _)| check).collect();
    assert!(passed.len() > 30, "the suite passes little at the server itself: {direct:?}");
    let lost: Vec<&String> = passed.into_iter().filter(|check| through.get(*check) != Some(&true)).collect();
    let excepted = exceptions("conformance-front.yml", name);
    let unexpected: Vec<_> = lost.iter().filter(|check| !excepted.contains(check)).collect();
    assert!(unexpected.is_empty(), "these checks pass at the server and not through haft: {unexpected:#?}");
    let stale: Vec<_> = excepted.iter().filter(|check| !lost.contains(check)).collect();
    assert!(stale.is_empty(), "these checks are excepted and pass: {stale:#?}");
}

/// Every check of a run of the suite, and whether it succeeded.
fn run_suite(suite: &Suite, name: &str, url: &str, env: &Env) -> Option<BTreeMap<String, bool>> {
    let (node, program) = (need("HAFT_TEST_NODE")?, need(suite.program)?);
    let output = fresh(name);
    let mut command = env.command(node, &[]);
    command.arg(program).args(["server", "--url", url]).args(suite.options).arg("-o").arg(&output);
    let said = within(SUITE_SECONDS, &mut command);
    let mut found = BTreeMap::new();
    for (scenario, list) in checks(&output) {
        let scenario = plain(&scenario);
        for check in list {
            let id = check["id"].as_str().unwrap_or_default();
            let passes = matches!(check["status"].as_str(), Some("SUCCESS" | "INFO" | "SKIPPED"));
            // A check that is made several times succeeds if it always does.
            *found.entry(format!("{scenario}: {id}")).or_insert(true) &= passes;
            if let (false, Value::String(why)) = (passes, &check["errorMessage"]) {
                eprintln!("{name}: {scenario}: {id}: {why}");
            }
        }
    }
    assert!(!found.is_empty(), "nothing was checked: {} {}", said.stdout, said.stderr);
    Some(found)
}
