//! Bridged MCP servers, as people meet them: the real binary, real servers, and servers that mean no good.
//!
//! The tests have a `main` of their own, because a test whose servers are left out has to be counted as skipped by the test
//! runner, by name.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, reason = "a test that is left out says so")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod entries;
mod forged;
mod front;
mod hostile;
mod made;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod pinned;
mod providers;
mod real;
mod sessions;
#[path = "../../../../tests/real/trials.rs"]
mod trials;

use libtest_mimic::Arguments;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use trials::trials;

fn main() -> ExitCode {
    let trials = trials! {
        entries[]:
            a_server_is_added_listed_and_removed,
            entries_that_make_no_sense_are_refused_before_anything_is_written,
            other_clients_files_are_taken_over,
            a_program_that_is_not_there_says_so,
            a_project_cannot_have_another_file_written,
            a_servers_tools_become_manifests_to_review;
        forged[]:
            metadata_in_the_name_of_haft_does_not_pass,
            loggers_of_bridged_servers_are_named_after_their_server,
            fronted_server_keeps_its_loggers_but_for_those_of_haft,
            completion_is_decided_and_recorded_like_a_call,
            completion_that_policy_denies_or_would_ask_about_is_not_sent;
        front["HAFT_TEST_WITHOUT_MCP"]:
            a_fronted_server_keeps_its_names_and_sends_its_content_unchanged,
            a_bridged_resource_is_named_after_its_server_and_found_by_its_own_address,
            reading_a_bridged_resource_waits_for_approval_and_can_be_denied,
            bridged_data_is_structured_content_only_if_nothing_has_to_be_said_about_it;
        hostile[]:
            what_is_no_mcp_is_left_out_and_reported,
            a_server_that_hangs_holds_up_nobody_else,
            fifty_megabytes_fail_the_call_and_the_server_comes_back,
            a_server_that_changes_its_tools_all_the_time_is_asked_rarely_and_writes_nothing,
            sampling_in_a_loop_is_ended_and_nobody_is_asked_by_a_server_unseen,
            a_server_that_crashes_says_so_and_is_started_again,
            odd_tools_are_named_refused_and_never_harmless,
            what_tools_give_is_bounded_and_marked,
            a_program_reaches_what_its_entry_says_and_nothing_else,
            program_whose_entry_says_the_whole_home_does_not_reach_state_of_haft;
        made[]:
            a_tool_that_is_a_file_meets_its_server;
        pinned[]:
            a_changed_description_asks_again_whatever_rules_say,
            a_yes_accepts_what_has_changed;
        providers[]:
            server_that_is_added_or_tested_is_held_against_the_rules_of_providers,
            server_that_serves_says_what_providers_cannot_take_when_the_list_arrives;
        real["HAFT_TEST_WITHOUT_MCP"]:
            server_everything_serves_what_it_has,
            server_filesystem_reads_the_project_and_writes_where_it_may,
            server_memory_remembers_in_its_file,
            a_python_server_speaks_the_newest_version,
            a_server_at_an_address_is_reached_and_says_when_it_is_gone;
        sessions[]:
            each_session_is_asked_about_its_own_call;
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A home, a project, and a configuration with servers.
struct Env {
    dir: tempfile::TempDir,
    servers: String,
}

/// What a run gave.
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Env {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(dir.path().join("home/.config/haft")).unwrap();
        Self { dir, servers: String::new() }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn config_file(&self) -> PathBuf {
        self.dir.path().join("home/.config/haft/config.yml")
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.config_file()).unwrap_or_default()
    }

    /// Adds an entry, written as YAML in braces.
    fn server(mut self, name: &str, entry: &str) -> Self {
        let _ = writeln!(self.servers, "    {name}: {entry}");
        std::fs::write(self.config_file(), format!("mcp:\n  servers:\n{}", self.servers)).unwrap();
        self
    }

    /// One of the servers that mean no good, with more in its entry.
    fn hostile(self, name: &str, more: &str) -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bridge/hostile");
        let script = dir.join(format!("{name}.py"));
        let entry = format!(
            "{{command: {}, args: [-B, {}], read: [{}, {}]{more}}}",
            python("python3", "executable"),
            script.display(),
            dir.display(),
            python("python3", "base_prefix")
        );
        self.server(name, &entry)
    }

    /// The command, with an environment of its own.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
        command
            .args(args)
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.dir.path().join("home"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        let output = self.command(args).output().unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Calls a tool with JSON arguments and returns its outcome and exit code.
    fn call(&self, tool: &str, args: Value, flags: &[&str]) -> (Value, i32) {
        let ran = self.run(&[&["call", tool, &args.to_string(), "--json"], flags].concat());
        let outcome =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("no outcome: {} {}", ran.stdout, ran.stderr));
        (outcome, ran.code)
    }

    /// The same for a call that has to succeed.
    fn ok(&self, tool: &str, args: Value) -> Value {
        let (outcome, code) = self.call(tool, args, &["--yes"]);
        assert_eq!((code, &outcome["success"]), (0, &Value::Bool(true)), "{outcome:#}");
        outcome
    }

    /// The same for a call that has to fail: its error's kind and message.
    fn err(&self, tool: &str, args: Value) -> (String, String) {
        let (outcome, _) = self.call(tool, args, &["--yes"]);
        assert_eq!(outcome["success"], false, "{outcome:#}");
        let text = |name: &str| outcome["error"][name].as_str().unwrap_or_default().to_owned();
        (text("kind"), text("message"))
    }

    /// Many calls in one process, one after the other.
    fn batch(&self, calls: &[Value]) -> Vec<Value> {
        let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
        let file = self.root().join("batch.jsonl");
        std::fs::write(&file, lines).unwrap();
        let ran = self.run(&["batch", file.to_str().unwrap(), "--yes"]);
        let outcomes: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(outcomes.len(), calls.len(), "{} {}", ran.stdout, ran.stderr);
        outcomes
    }

    /// The names of the bridged tools.
    fn tools(&self) -> Vec<String> {
        let ran = self.run(&["tools", "--json"]);
        let all: Value = serde_json::from_str(&ran.stdout).unwrap();
        let names = all["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str());
        names.filter(|name| name.starts_with("mcp:")).map(str::to_owned).collect()
    }
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("no JSON: {} {}", self.stdout, self.stderr))
    }
}

/// Where a Python is (`executable`), or where it keeps its own things (`base_prefix`), free of links.
fn python(name: &str, what: &str) -> String {
    let ask = format!("import os, sys; print(os.path.realpath(sys.{what}))");
    let said = Command::new(name).args(["-c", &ask]).output().unwrap();
    String::from_utf8_lossy(&said.stdout).trim().to_owned()
}

/// The servers that others wrote, where `cargo xtask test` has put them.
struct Installed {
    node: String,
    modules: String,
    python: String,
}

impl Installed {
    /// A test that does without them does not run.
    fn find() -> Self {
        let found = |name: &str| {
            let path = needs::need(name).unwrap_or_else(|| panic!("{name} is left out, and this test needs it"));
            path.to_string_lossy().into_owned()
        };
        Self {
            node: found("HAFT_TEST_NODE"),
            modules: found("HAFT_TEST_NODE_MODULES"),
            python: found("HAFT_TEST_PYTHON"),
        }
    }
}

/// What a server said: its text stands between two lines with a mark of ours.
fn said(outcome: &Value) -> &str {
    unwrapped(outcome["output"].as_str().unwrap_or_default())
}

fn unwrapped(output: &str) -> &str {
    let (head, rest) = output.split_once('\n').unwrap_or_default();
    assert!(head.starts_with("<untrusted mark=\""), "{output}");
    let mark = head.split('"').nth(1).unwrap_or_default();
    rest.strip_suffix(&format!("</untrusted mark=\"{mark}\">")).unwrap_or_default().trim_end_matches('\n')
}
