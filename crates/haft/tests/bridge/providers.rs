//! What model providers cannot take of a bridged tool: said when its server is met, with the tool, the provider and the rule.

use super::{Env, python};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// Gemini takes no parameter of the name `$top`, and the tool requires it.
const WARNING: &str = "`mcp:picky:page` is not offered to gemini: ";

pub(crate) fn server_that_is_added_or_tested_is_held_against_the_rules_of_providers() {
    let env = Env::new();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bridge/hostile");
    let (program, base) = (python("python3", "executable"), python("python3", "base_prefix"));
    let (dir, script) = (dir.display().to_string(), dir.join("picky.py").display().to_string());
    let added =
        env.run(&["mcp", "add", "picky", "--read", &dir, "--read", &base, "--", &program, "-B", script.as_str()]);
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert!(added.stderr.contains(WARNING) && added.stderr.contains("$top"), "{}", added.stderr);
    assert!(!added.stderr.contains("mcp:picky:all"), "{}", added.stderr);
    let tested = env.run(&["mcp", "test", "picky"]);
    assert!(tested.code == 0 && tested.stderr.contains(WARNING), "{}", tested.stderr);
    let status = env.run(&["mcp", "test", "picky", "--json"]).json();
    let warnings = status["provider_warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning.as_str().unwrap().starts_with(WARNING)), "{status:#}");
    // What was accepted of it is known without starting it.
    let doctor = env.run(&["doctor"]);
    let line = doctor.stdout.lines().find(|line| line.contains(WARNING)).unwrap_or_default();
    assert!(line.starts_with("care  provider "), "{}", doctor.stdout);
}

pub(crate) fn server_that_serves_says_what_providers_cannot_take_when_the_list_arrives() {
    let env = Env::new().hostile("picky", "");
    let mut command = env.command(&["mcp"]);
    let mut haft = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (sender, lines) = channel();
    let stderr = BufReader::new(haft.stderr.take().unwrap());
    let reading =
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
    let mut heard = Vec::new();
    while !heard.iter().any(|line: &String| line.contains(WARNING)) {
        heard.push(lines.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error}: {heard:#?}")));
    }
    drop(haft.stdin.take());
    haft.wait().unwrap();
    assert!(reading.join().unwrap(), "everything was read");
}
