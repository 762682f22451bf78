//! A program as a filter: one file in, text out. It is held like every other program, and besides has no network and
//! writes nothing. The file is its standard input, in memory, and can be read at any place.

use super::command::Command;
use super::{Job, Terms, explain};
use crate::scene::Scene;
use haft_core::preview::{cut, inert};
use haft_core::{CallError, ErrorKind};
use haft_sandbox::watch::{self, Hit, Watch};
use haft_sandbox::{Backend, Bounds, Confinement, End, Network, Plan, SandboxError, Stdio, Writes};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// What stands for the file among a filter's arguments.
pub const FILE: &str = "{file}";
/// How much of what it complains about is kept.
const COMPLAINTS_MAX: usize = 4 << 10;
/// From being asked to end to being made to.
const GRACE: Duration = Duration::from_secs(2);

/// A filter, and what it is given.
pub(crate) struct Filter<'f> {
    /// The program and its arguments; [`FILE`] in one of them stands for the file.
    pub(crate) argv: &'f [String],
    /// What is in the file.
    pub(crate) material: &'f [u8],
    /// Whether it may read the project, too; otherwise it sees nothing but the file and the system's programs.
    pub(crate) project: bool,
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// How much it may print.
    pub(crate) output: usize,
}

/// Runs a filter to its end, and returns what it printed. For worker threads.
pub(crate) fn filter(scene: &Scene, filter: &Filter<'_>) -> Result<Vec<u8>, CallError> {
    let mut argv = filter.argv.iter().map(|word| word.replace(FILE, "/dev/stdin"));
    let program = argv.next().ok_or_else(|| CallError::invalid("a command has at least a program"))?;
    let cwd = if filter.project { scene.workspace().root() } else { Path::new("/") };
    let command = Command::program(program, argv.collect(), cwd.to_owned())?;
    let terms = Terms { network: Network::None, secrets: Vec::new(), ..scene.terms().clone() };
    let bounds = Bounds { wall: Some(filter.timeout), ..terms.bounds };
    let (backend, plan) = planned(scene, filter, &terms, bounds).map_err(|error| explain(&error))?;
    let program = command.prepared(&terms)?;
    let (stdio, pipes) =
        stdio(filter.material).map_err(|error| CallError::internal(format!("no pipes for the program: {error}")))?;
    let mut printed = [Vec::new(), Vec::new()];
    let mut sink = |number: usize, bytes: &[u8]| {
        let (kept, bound) = (&mut printed[number.min(1)], if number == 0 { filter.output } else { COMPLAINTS_MAX });
        let room = bound.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    };
    let how = Watch {
        pipes,
        stop: &|| scene.halt().check().is_err(),
        grace: GRACE,
        sink: Some(&mut sink),
        ..Watch::unattended(&bounds)
    };
    let job = Job { backend, plan: &plan, program: &program, staging: None, begun: &|| {} };
    let ran = super::run(job, stdio, how).map_err(|error| explain(&error))?;
    scene.halt().check()?;
    let [stdout, stderr] = printed;
    let said = cut(&inert(String::from_utf8_lossy(&stderr).trim()), 300);
    match (ran.watched.hit, ran.watched.end) {
        (None, End::Exited(0)) => Ok(stdout),
        (Some(Hit::Wall), _) => {
            Err(CallError::new(ErrorKind::Timeout, format!("{} did not finish in time", name(filter))))
        }
        (Some(hit), _) => Err(CallError::failed(format!("{} reached its limit of {}", name(filter), hit.noun()))),
        (None, End::Exited(code)) => {
            Err(CallError::failed(format!("{} failed with status {code}: {said}", name(filter))))
        }
        (None, End::Signalled(signal)) => {
            Err(CallError::failed(format!("{} was ended by signal {signal}: {said}", name(filter))))
        }
    }
}

/// How the program is held.
fn planned(
    scene: &Scene,
    filter: &Filter<'_>,
    terms: &Terms,
    bounds: Bounds,
) -> Result<(&'static dyn Backend, Plan), SandboxError> {
    if filter.project {
        let mut settled = terms.settle_resident(scene.workspace(), &[], &[])?;
        settled.plan.confinement.bounds = bounds;
        return Ok((settled.backend, settled.plan));
    }
    let wanted = Confinement {
        read: Vec::new(),
        write: Vec::new(),
        protect: Vec::new(),
        hide: Vec::new(),
        seal: Vec::new(),
        stand_in: Vec::new(),
        passing: Vec::new(),
        lent: Vec::new(),
        network: Network::None,
        writes: Writes::Direct,
        bounds,
    };
    // What cannot be held does not run: it reads what a stranger wrote.
    let backend = haft_sandbox::backend();
    backend.plan(wanted).map(|plan| (backend, plan))
}

fn stdio(material: &[u8]) -> std::io::Result<(Stdio, Vec<OwnedFd>)> {
    let ((out, stdout), (err, stderr)) = (watch::pipe()?, watch::pipe()?);
    Ok((Stdio { stdin: placed(material)?, stdout, stderr }, vec![out, err]))
}

fn name(filter: &Filter<'_>) -> String {
    inert(filter.argv.first().map(String::as_str).unwrap_or_default())
}

/// A file in memory, that nobody else has a name for.
pub(crate) fn placed(material: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("haft-filter", MemfdFlags::CLOEXEC)?);
    file.write_all(material)?;
    file.rewind()?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;

    fn run(argv: &[&str], timeout: Duration) -> Result<String, CallError> {
        let stage = Stage::new();
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let scene = stage
            .scene(&crate::tools::calc::tool(), serde_json::json!({"expression": "1"}), &crate::Halt::new())
            .unwrap();
        let wanted = Filter { argv: &argv, material: b"some text\n", project: true, timeout, output: 100 };
        filter(&scene, &wanted).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_file_goes_in_and_text_comes_out() {
        assert_eq!(run(&["tr", "a-z", "A-Z"], Duration::from_secs(10)).unwrap(), "SOME TEXT\n");
        assert_eq!(run(&["cat", FILE], Duration::from_secs(10)).unwrap(), "some text\n");
        assert_eq!(run(&["sh", "-c", "yes | head -c 5000; cat {file}"], Duration::from_secs(10)).unwrap().len(), 100);
        let failed = run(&["sh", "-c", "echo broken >&2; exit 3"], Duration::from_secs(10)).unwrap_err();
        assert_eq!(failed.message, "sh failed with status 3: broken");
        assert_eq!(run(&["sleep", "30"], Duration::from_millis(300)).unwrap_err().kind, ErrorKind::Timeout);
        assert!(
            run(&["no-such-program", FILE], Duration::from_secs(1)).unwrap_err().message.contains("no-such-program")
        );
        assert!(run(&["sh", "-c", "echo x > here.txt"], Duration::from_secs(10)).is_err(), "it writes nothing");
    }
}
