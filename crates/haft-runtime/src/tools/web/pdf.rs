//! PDF to text, by a program of the system that sees nothing but the file on its input and reaches nothing.

use crate::confined::{Job, Terms, environment, run};
use haft_sandbox::watch::{self, Watch};
use haft_sandbox::{Bounds, Confinement, End, Network, Program, Stdio, Writes};
use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// Where the program is, if it is anywhere.
const PLACES: &[&str] = &["/usr/bin/pdftotext", "/usr/local/bin/pdftotext", "/bin/pdftotext"];
/// As long may it take.
const PATIENCE: Duration = Duration::from_secs(30);
/// As much may it print.
const OUTPUT_MAX: u64 = 8 << 20;

/// The text of a PDF, or why there is none.
pub(super) fn text(bytes: &[u8], terms: &Terms) -> Result<String, String> {
    let program = PLACES.iter().map(PathBuf::from).find(|path| path.is_file()).ok_or_else(|| {
        "no text can be made of it, because `pdftotext` is not here; install poppler-utils".to_owned()
    })?;
    let failed = |why: String| format!("no text could be made of it: {why}");
    let input = memfd_create("page", MemfdFlags::CLOEXEC).map_err(|error| failed(error.to_string()))?;
    let mut file = std::fs::File::from(input);
    file.write_all(bytes).map_err(|error| failed(error.to_string()))?;
    seek(&file, SeekFrom::Start(0)).map_err(|error| failed(error.to_string()))?;
    let backend = haft_sandbox::backend();
    let bounds = Bounds { wall: Some(PATIENCE), output: Some(OUTPUT_MAX), ..terms.bounds };
    let wanted = Confinement {
        read: Vec::new(),
        write: Vec::new(),
        protect: Vec::new(),
        hide: Vec::new(),
        network: Network::None,
        writes: Writes::Direct,
        bounds,
    };
    // Without confinement it does not run: what a stranger wrote is read by an old and large program.
    let plan = backend.plan(wanted).map_err(|error| failed(error.to_string()))?;
    let argv = [program.as_os_str(), "-q".as_ref(), "-enc".as_ref(), "UTF-8".as_ref(), "-".as_ref(), "-".as_ref()];
    let argv = argv.into_iter().map(Into::into).collect();
    let env = environment::make(&[], &[]).map_err(|error| failed(error.to_string()))?;
    let program = Program { argv, env, shares_job: false, cwd: PathBuf::from("/") };
    let pipes = watch::pipe().and_then(|out| Ok((out, watch::pipe()?)));
    let ((out, stdout), (err, stderr)) = pipes.map_err(|error| failed(error.to_string()))?;
    let stdio = Stdio { stdin: file.into(), stdout, stderr };
    let mut said = Vec::new();
    let mut sink = |number: usize, bytes: &[u8]| {
        if number == 0 {
            said.extend_from_slice(bytes);
        }
    };
    let how = Watch { pipes: vec![out, err], sink: Some(&mut sink), ..Watch::unattended(&bounds) };
    let job = Job { backend, plan: &plan, program: &program, staging: None, begun: &|| {} };
    let ran = run(job, stdio, how).map_err(|error| failed(error.to_string()))?;
    match ran.watched.end {
        End::Exited(0) => Ok(String::from_utf8_lossy(&said).into_owned()),
        _ => Err(failed("pdftotext cannot read it".to_owned())),
    }
}
