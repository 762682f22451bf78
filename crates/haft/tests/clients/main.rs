//! Real clients at the doors: the official SDKs, the inspector and the conformance suite drive the real binary.
//!
//! The programs come from `cargo xtask needs`; what they do is in `tests/real`. The tests have a `main` of their own, because
//! a test that is left out has to be counted as skipped by the test runner, by name.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot set its scene has failed")]
#![expect(clippy::print_stderr, clippy::print_stdout, reason = "a suite prints its result")]
#![expect(clippy::needless_pass_by_value, reason = "a scene reads better with its JSON in place")]

mod authorizing_proxy;
mod conformance;
mod fronted;
mod fronted_tasks;
mod http;
mod inspector;
#[path = "../../../../tests/real/needs.rs"]
mod needs;
mod questions;
mod run;
mod sessions;
mod skills;
mod stdio;
mod tasks;
mod tour;
#[path = "../../../../tests/real/trials.rs"]
mod trials;

use libtest_mimic::Arguments;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use trials::trials;

fn main() -> ExitCode {
    let trials = trials! {
        conformance["HAFT_TEST_WITHOUT_MCP"]:
            the_server_conforms,
            the_server_conforms_to_the_newest_revision,
            the_client_conforms,
            the_client_conforms_to_the_newest_revision;
        fronted["HAFT_TEST_WITHOUT_MCP"]:
            a_server_conforms_through_haft_as_it_does_by_itself,
            a_server_conforms_to_the_coming_suite_through_haft_as_it_does_by_itself,
            newest_revision_conforms_through_haft_as_it_does_directly;
        fronted_tasks["HAFT_TEST_WITHOUT_MCP"]:
            task_of_a_fronted_server_is_for_its_client_alone,
            question_of_a_fronted_servers_task_reaches_its_client,
            cancelled_task_is_cancelled_at_the_fronted_server;
        http["HAFT_TEST_WITHOUT_MCP"]:
            the_python_sdk_drives_it_in_the_newest_protocol_it_can,
            the_python_sdk_drives_it_with_a_handshake,
            the_python_sdk_of_the_generation_before_drives_it,
            the_python_sdk_from_before_priming_events_drives_it,
            the_typescript_sdk_drives_it;
        inspector["HAFT_TEST_WITHOUT_MCP"]:
            the_inspector_reads_and_reckons_over_stdio,
            the_inspector_reads_and_reckons_over_http;
        questions["HAFT_TEST_WITHOUT_MCP"]:
            open_questions_of_sessionless_clients_do_not_hold_up_another,
            agent_that_offers_forms_does_not_approve_its_own_call;
        sessions["HAFT_TEST_WITHOUT_MCP"]:
            client_names_its_session_in_every_version_of_the_protocol,
            agent_names_a_session_among_those_of_agents_alone,
            session_that_nobody_names_is_fresh_and_tells_agents_apart;
        skills["HAFT_TEST_WITHOUT_MCP"]:
            python_sdk_reads_skills_as_resources_and_prompts;
        stdio["HAFT_TEST_WITHOUT_MCP"]:
            the_python_sdk_drives_it_in_the_newest_protocol_it_can,
            the_python_sdk_drives_it_with_a_handshake,
            the_python_sdk_of_the_generation_before_drives_it,
            the_typescript_sdk_drives_it,
            a_client_that_cannot_ask_is_told_where_to_decide,
            the_budget_holds_and_hides_nothing,
            list_is_wrapped_in_structured_content;
        tasks["HAFT_TEST_WITHOUT_MCP"]:
            waiting_call_becomes_a_task_that_the_person_answers,
            cancelled_task_takes_its_question_back,
            task_survives_its_connection_and_belongs_to_its_owner;
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A home and a project.
struct Env {
    dir: tempfile::TempDir,
}

impl Env {
    /// With a file to read, and all tools told of.
    fn new() -> Self {
        let env = Self::thrifty();
        env.config("tools: { budget_tokens: 0 }\n");
        env
    }

    /// As it is where nothing is configured.
    fn thrifty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("project/.git")).unwrap();
        std::fs::create_dir_all(dir.path().join("home")).unwrap();
        std::fs::write(dir.path().join("project/hello.txt"), "hello from a file\n").unwrap();
        Self { dir }
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn config(&self, text: &str) {
        std::fs::create_dir_all(self.home().join(".config/haft")).unwrap();
        std::fs::write(self.home().join(".config/haft/config.yml"), text).unwrap();
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// A program in the project, with an environment of its own.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.root())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }
}

/// The binary under test.
const HAFT: &str = env!("CARGO_BIN_EXE_haft");

/// A program that `cargo xtask needs` has installed. A test that does without does not run.
fn real_program(variable: &str) -> PathBuf {
    needs::need(variable).unwrap_or_else(|| panic!("{variable} is left out, and this test needs it"))
}

/// A file of `tests/real`.
fn script(name: &str) -> PathBuf {
    repository().join("tests/real").join(name)
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}
