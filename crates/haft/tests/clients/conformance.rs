//! The official conformance suite, at haft as a server and as a client.
//!
//! What fails is listed in `tests/real/conformance*.yml` with its reason, and nothing else may; what is listed and
//! passes is an error too. The suite's files and a table of each run are left in `target/conformance`.

use crate::run::{Said, within};
use crate::{Env, real_program, repository, script};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What the suite is told to do, and by which of its versions.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) program: &'static str,
    pub(crate) options: &'static [&'static str],
    pub(crate) exceptions: &'static str,
}

/// The released suite, with all it has: also what it calls pending.
pub(crate) const RELEASED: Suite = Suite {
    name: "server",
    program: "HAFT_TEST_CONFORMANCE",
    options: &["--suite", "all"],
    exceptions: "conformance.yml",
};

/// The coming suite, which alone knows the newest revision of the protocol.
pub(crate) const NEWEST: Suite = Suite {
    name: "server-2026-07-28",
    program: "HAFT_TEST_CONFORMANCE_NEXT",
    options: &["--requirements", "2026-07-28"],
    exceptions: "conformance-2026-07-28.yml",
};

pub(crate) fn the_server_conforms() {
    server(&RELEASED, 47);
}

pub(crate) fn the_server_conforms_to_the_newest_revision() {
    let checks = server(&NEWEST, 173);
    let of_tasks = checks.iter().filter(|(scenario, _)| scenario.contains("tasks-")).flat_map(|(_, list)| list);
    let (mut passed, mut failed) = (0, Vec::new());
    for check in of_tasks {
        match check["status"].as_str() {
            Some("SUCCESS") => passed += 1,
            Some("FAILURE") => failed.push(check["id"].as_str().unwrap()),
            _ => {}
        }
    }
    assert!(passed > 20, "the suite checks the extension for tasks");
    assert_eq!(failed, exceptions(NEWEST.exceptions, "server-tasks"));
}

pub(crate) fn the_client_conforms() {
    let suite = real_program("HAFT_TEST_CONFORMANCE");
    client("client", &suite, CLIENT, &exceptions("conformance.yml", "client"));
}

pub(crate) fn the_client_conforms_to_the_newest_revision() {
    let suite = real_program("HAFT_TEST_CONFORMANCE_NEXT");
    client("client-2026-07-28", &suite, CLIENT_NEWEST, &exceptions("conformance-2026-07-28.yml", "client"));
}

/// Every scenario for clients of the released suite.
const CLIENT: &[&str] = &[
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/cross-app-access-complete-flow",
];

/// What the newest revision adds.
const CLIENT_NEWEST: &[&str] = &[
    "request-metadata",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
];

/// Runs a suite against the example, and gives all that was checked. At least this many kinds of checks succeed.
fn server(suite: &Suite, least: usize) -> BTreeMap<String, Vec<Value>> {
    let (node, program) = (real_program("HAFT_TEST_NODE"), real_program(suite.program));
    let env = Env::new();
    let server = Example::serve(&env);
    let output = fresh(suite.name);
    let mut command = env.command(node, &[]);
    command.arg(program).args(["server", "--url", &server.url]).args(suite.options);
    // With a list of exceptions, even an empty one, a warning counts as a failure.
    command.arg("--expected-failures").arg(script(suite.exceptions)).arg("-o").arg(&output);
    let said = within(300, &mut command);
    let checks = checks(&output);
    summarise(suite.name, &checks);
    assert_eq!(said.code, Some(0), "{}\n{}", said.stdout, said.stderr);
    let succeed = succeeding(&checks);
    assert!(succeed >= least, "{succeed} kinds of checks succeed, not {least}: {}\n{}", said.stdout, said.stderr);
    checks
}

/// How many kinds of checks succeed: one that is made several times in a scenario counts once, if it always does.
fn succeeding(checks: &BTreeMap<String, Vec<Value>>) -> usize {
    let mut kinds: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for (scenario, list) in checks {
        for check in list.iter().filter(|check| !matches!(check["status"].as_str(), Some("INFO" | "SKIPPED"))) {
            let id = check["id"].as_str().unwrap_or_default();
            *kinds.entry((plain(scenario), id)).or_insert(true) &= check["status"] == "SUCCESS";
        }
    }
    kinds.values().filter(|succeeds| **succeeds).count()
}

/// Each scenario alone: run together, the suite takes a client that hangs or crashes for one that passed.
fn client(name: &str, suite: &Path, scenarios: &[&str], exceptions: &[String]) {
    let node = real_program("HAFT_TEST_NODE");
    let (env, output) = (Env::new(), fresh(name));
    let left = Mutex::new(scenarios.iter());
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = left.lock().unwrap().next() else { break };
                    let result = one(&env, &node, suite, scenario, &output);
                    results.lock().unwrap().insert((*scenario).to_owned(), result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap();
    summarise(name, &checks(&output));
    let failed: Vec<&String> = results.iter().filter(|(_, result)| result.is_err()).map(|(name, _)| name).collect();
    let told = |names: Vec<&String>| {
        names.iter().map(|name| format!("{name}: {:?}\n", results.get(*name))).collect::<String>()
    };
    let unexpected = told(failed.iter().copied().filter(|name| !exceptions.contains(name)).collect());
    assert!(unexpected.is_empty(), "these scenarios fail and are not excepted:\n{unexpected}");
    let stale: Vec<&String> =
        exceptions.iter().filter(|name| scenarios.contains(&name.as_str()) && !failed.contains(name)).collect();
    assert!(stale.is_empty(), "these scenarios are excepted and pass: {stale:?}");
}

/// Whether a scenario passed and checked something at all.
fn one(env: &Env, node: &Path, suite: &Path, scenario: &str, output: &Path) -> Result<(), String> {
    let output = output.join(scenario.replace('/', "."));
    let mut command = env.command(node, &[]);
    command.arg(suite).args(["client", "--scenario", scenario, "--timeout", "30000"]);
    command.arg("--command").arg(example("bridge_client")).arg("-o").arg(&output);
    let Said { code, stdout, stderr } = within(60, &mut command);
    let checked = checks(&output).values().flatten().filter(|check| check["status"] == "SUCCESS").count();
    match (code, checked) {
        (Some(0), 0) => Err("nothing was checked".to_owned()),
        (Some(0), _) => Ok(()),
        (code, _) => Err(format!("{code:?}: {stdout} {stderr}")),
    }
}

/// The example that offers what the suite asks for.
pub(crate) struct Example {
    child: Child,
    pub(crate) url: String,
}

impl Example {
    pub(crate) fn serve(env: &Env) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = env.command(example("conformance"), &[&port.to_string()]);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let server = Self { child, url: format!("http://127.0.0.1:{port}/mcp") };
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(Instant::now() < until, "the example does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An example of this package, built beside its tests.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.is_file(), "the example `{name}` is not built: run `cargo build --examples` first");
    path
}

/// A directory for what a run leaves, without what the last one left.
pub(crate) fn fresh(name: &str) -> PathBuf {
    let dir = repository().join("target/conformance").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// All that was checked, by the directory of the scenario.
pub(crate) fn checks(dir: &Path) -> BTreeMap<String, Vec<Value>> {
    let mut found = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(next) = left.pop() {
        for path in std::fs::read_dir(next).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                left.push(path);
            } else if path.ends_with("checks.json") {
                let scenario = path.parent().unwrap().strip_prefix(dir).unwrap();
                let list = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
                found.insert(scenario.to_string_lossy().into_owned(), list);
            }
        }
    }
    found
}

/// A table for people, printed and left beside the files.
fn summarise(name: &str, checks: &BTreeMap<String, Vec<Value>>) {
    let mut table = format!("| {name} | passed | failed | warnings |\n|---|--:|--:|--:|\n");
    for (scenario, list) in checks {
        let count = |status: &str| list.iter().filter(|check| check["status"] == status).count();
        let (passed, failed, warned) = (count("SUCCESS"), count("FAILURE"), count("WARNING"));
        table.push_str(&format!("| {} | {passed} | {failed} | {warned} |\n", plain(scenario)));
    }
    print!("{table}");
    std::fs::write(repository().join("target/conformance").join(format!("{name}.md")), table).unwrap();
}

/// The scenario without the time at which it was run: `x-2026-01-02T03-04-05-678Z`.
pub(crate) fn plain(directory: &str) -> &str {
    let last = directory
        .rsplit_once('/')
        .map_or(directory, |(first, last)| if last.starts_with("20") { first } else { directory });
    last.find("-20").map_or(last, |at| &last[..at])
}

/// Scenarios that are excepted, each argued in the file.
pub(crate) fn exceptions(file: &str, side: &str) -> Vec<String> {
    let text = std::fs::read_to_string(script(file)).unwrap();
    let mut lists: BTreeMap<String, Vec<String>> = serde_saphyr::from_str(&text).unwrap();
    lists.remove(side).unwrap_or_default()
}
