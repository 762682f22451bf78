//! How each framework is started, and what its model is asked.

use crate::HAFT;
use crate::needs::need;
use crate::project::Project;
use haft_stub::{Asked, Reply, Stub, Wire};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// No run takes longer.
const TIME_LIMIT: Duration = Duration::from_mins(2);

/// A framework in which people write agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framework {
    PydanticAi,
    OpenAiAgents,
    LangChain,
    Smolagents,
    AiSdk,
}

/// By which door a framework reaches haft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Stdio,
    Http,
}

/// A change to an example, for an option that it does not use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variation {
    pub(crate) written: &'static str,
    pub(crate) instead: &'static str,
}

/// One call that the model asks for.
pub(crate) struct ModelCall {
    pub(crate) tool: &'static str,
    pub(crate) args: Value,
}

/// What a run left behind.
pub(crate) struct Transcript {
    requests: Vec<Asked>,
    printed: String,
}

impl Transcript {
    /// The request after the call with this number, counted from one; the first request is number 0.
    pub(crate) fn request_after(&self, call: usize) -> &Asked {
        self.requests
            .get(call)
            .unwrap_or_else(|| panic!("the model was asked {} times only:\n{}", self.requests.len(), self.printed))
    }

    /// Asserts that the request after a call contains these texts.
    pub(crate) fn assert_told(&self, call: usize, texts: &[&str]) {
        let request = self.request_after(call);
        for text in texts {
            assert!(request.says(text), "{text:?} is not in the request after call {call}:\n{:#}", request.body);
        }
    }
}

impl Framework {
    pub(crate) const ALL: [Self; 5] =
        [Self::PydanticAi, Self::OpenAiAgents, Self::LangChain, Self::Smolagents, Self::AiSdk];

    /// As tests are called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PydanticAi => "pydantic_ai",
            Self::OpenAiAgents => "openai_agents",
            Self::LangChain => "langchain",
            Self::Smolagents => "smolagents",
            Self::AiSdk => "ai_sdk",
        }
    }

    /// Its program in `examples/frameworks`.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::PydanticAi => "pydantic_ai_agent.py",
            Self::OpenAiAgents => "openai_agents.py",
            Self::LangChain => "langchain_agent.py",
            Self::Smolagents => "smolagents_agent.py",
            Self::AiSdk => "ai_sdk.mjs",
        }
    }

    /// Whether an image of a tool reaches the model as an image.
    pub(crate) fn shows_images(self) -> bool {
        // It takes the first block of a result alone.
        self != Self::Smolagents
    }

    /// What the model answers at the end.
    fn last_reply(self) -> Reply {
        match self {
            Self::Smolagents => Reply::call("final_answer", json!({"answer": "Done."})),
            _ => Reply::say("Done."),
        }
    }

    /// Runs the example until it ends, with a model that makes these calls one after the other. None if tests do without
    /// real clients.
    pub(crate) fn run(self, project: &Project, door: Door, calls: &[ModelCall]) -> Option<Transcript> {
        self.run_varied(project, door, None, calls)
    }

    /// The same with an option that the example does not use.
    pub(crate) fn run_varied(
        self,
        project: &Project,
        door: Door,
        variation: Option<Variation>,
        calls: &[ModelCall],
    ) -> Option<Transcript> {
        let mut command = self.command(project, variation)?;
        let mut replies: Vec<Reply> = calls.iter().map(|call| Reply::call(call.tool, call.args.clone())).collect();
        replies.reverse();
        let replies = Mutex::new(replies);
        let model = Stub::with(move |_| replies.lock().unwrap().pop().unwrap_or_else(|| self.last_reply()));
        command.env("OPENAI_BASE_URL", model.base(Wire::Chat)).env("OPENAI_API_KEY", "test-key");
        let gateway = (door == Door::Http).then(|| Gateway::start(project));
        if let Some(gateway) = &gateway {
            command.env("HAFT_URL", &gateway.url).env("HAFT_TOKEN", &gateway.agent_token);
        }
        let printed = run_to_end(&mut command);
        assert!(printed.contains("Done."), "{self:?} did not come to its end:\n{printed}");
        assert_eq!(model.faults(), Vec::<String>::new(), "{printed}");
        Some(Transcript { requests: model.asked(), printed })
    }

    fn command(self, project: &Project, variation: Option<Variation>) -> Option<Command> {
        let text = std::fs::read_to_string(examples().join(self.example())).unwrap();
        let text = match variation {
            None => text,
            Some(Variation { written, instead }) => {
                assert!(text.contains(written), "{} does not contain {written:?}", self.example());
                text.replace(written, instead)
            }
        };
        let program = format!("home/{}", self.example());
        project.write(&program, &text);
        let interpreter = match self {
            Self::AiSdk => {
                let modules = project.home().join("node_modules");
                let _ = std::fs::remove_file(&modules);
                std::os::unix::fs::symlink(need("HAFT_TEST_AI_SDK")?, modules).unwrap();
                need("HAFT_TEST_NODE")?
            }
            _ => need("HAFT_TEST_FRAMEWORKS")?,
        };
        let mut command = project.command(&interpreter);
        command.arg(project.home().join(self.example())).arg("Go on.").env("PATH", path_with_haft());
        Some(command)
    }
}

/// One test for each framework and door. It is skipped, by name, where the framework cannot run.
pub(crate) fn for_every_framework(name: &str, test: fn(Framework, Door)) -> Vec<Trial> {
    let doors = [(Door::Stdio, "stdio"), (Door::Http, "http")];
    let pairs = Framework::ALL.into_iter().flat_map(|framework| doors.map(|(door, by)| (framework, door, by)));
    pairs
        .map(|(framework, door, by)| {
            trial(framework, &format!("{}::{name}_over_{by}", framework.name()), move || test(framework, door))
        })
        .collect()
}

/// A test of one framework.
pub(crate) fn trial(framework: Framework, name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    let trial = Trial::test(name.to_owned(), move || {
        test();
        Ok(())
    });
    trial.with_ignored_flag(is_left_out() || !can_run(framework))
}

/// Whether the person who runs the tests does without real clients.
fn is_left_out() -> bool {
    std::env::var_os("HAFT_TEST_WITHOUT_MCP").is_some_and(|value| value == "1")
}

/// Whether what is pinned is made for this machine: Node is.
fn can_run(framework: Framework) -> bool {
    framework != Framework::AiSdk || cfg!(all(target_os = "linux", target_arch = "x86_64"))
}

pub(crate) fn examples() -> PathBuf {
    repository().join("examples/frameworks")
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The search path on which `haft` is the binary under test.
fn path_with_haft() -> std::ffi::OsString {
    let own = Path::new(HAFT).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&path))).unwrap()
}

/// `haft serve`, until this is dropped.
struct Gateway {
    child: Child,
    url: String,
    agent_token: String,
}

impl Gateway {
    fn start(project: &Project) -> Self {
        let mut command = project.command(Path::new(HAFT));
        command.args(["serve", "--listen", "127.0.0.1:0", "--print-url"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (address, _) = line.split_once("/#token=").unwrap_or_else(|| panic!("no address: {line}"));
        let token = project.home().join(".local/share/haft/gateway-agent-token");
        let agent_token = std::fs::read_to_string(token).unwrap().trim().to_owned();
        Self { url: format!("{address}/mcp"), agent_token, child }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a program prints until it ends; one that does not end in time is killed, and the test fails.
fn run_to_end(command: &mut Command) -> String {
    let mut log = tempfile::tempfile().unwrap();
    command.stdout(Stdio::from(log.try_clone().unwrap())).stderr(Stdio::from(log.try_clone().unwrap()));
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if started.elapsed() > TIME_LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut printed = String::new();
    log.rewind().unwrap();
    let _ = log.read_to_string(&mut printed);
    let status = status.unwrap_or_else(|| panic!("{command:?} did not end within {TIME_LIMIT:?}:\n{printed}"));
    assert!(status.success(), "{command:?} failed ({status}):\n{printed}");
    printed
}
