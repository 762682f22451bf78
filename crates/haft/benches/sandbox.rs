//! What confinement costs: a confined start beside a plain one and beside other sandboxes, a view of a large
//! tree, telling what changed in it, and being able to take that back. Everything that is compared takes
//! turns within one run. Prints one JSON object: for each contestant, how many microseconds each turn took.
//!
//! `cargo xtask bench sandbox` builds trees, installs other sandboxes, and says where they are with
//! `--with JSON`; without it only the starts are measured.

#![expect(clippy::print_stdout, reason = "the numbers are its output")]

#[path = "sandbox/capture.rs"]
mod capture;
#[path = "sandbox/large.rs"]
mod large;
#[path = "sandbox/race.rs"]
mod race;
#[path = "sandbox/start.rs"]
mod start;
#[path = "sandbox/views.rs"]
mod views;

use race::Times;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Any failure ends the whole benchmark: a number that is missing must not look like one that is small.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What is measured on.
struct Ground {
    /// A project with next to nothing in it.
    project: PathBuf,
    /// Where layers and stores are kept, on the same disk.
    data: PathBuf,
    /// A thousand files, and fifty thousand: the first directories of both are the same.
    trees: Option<(PathBuf, PathBuf)>,
    /// Other ways to start a program.
    peers: Vec<start::Peer>,
}

impl Ground {
    fn new(data: PathBuf, with: &Value) -> Result<Self> {
        let path = |name: &str| with[name].as_str().map(PathBuf::from);
        let project = path("project").unwrap_or_else(|| data.join("project"));
        std::fs::create_dir_all(&project)?;
        let peers = with["peers"].as_array().into_iter().flatten().map(start::Peer::read).collect();
        Ok(Self { project: project.canonicalize()?, data, trees: path("small").zip(path("tree")), peers })
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [large::FLAG, project] = args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        return large::serve(project.as_ref());
    }
    let with = args.iter().skip_while(|arg| *arg != "--with").nth(1);
    let with: Value = with.map_or(Ok(json!({})), |text| serde_json::from_str(text))?;
    haft_sandbox::Linux::prepare()?;
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let ground = Ground::new(dir.path().canonicalize()?, &with)?;
    let mut times = start::times(&ground)?;
    if let Some((small, tree)) = &ground.trees {
        times.extend(views::times(&ground, small, tree)?);
        times.extend(capture::times(&ground, tree)?);
    }
    println!("{}", report(&times));
    Ok(())
}

fn report(times: &Times) -> Value {
    let micros = |times: &Vec<std::time::Duration>| -> Value {
        times.iter().map(|time| json!((time.as_secs_f64() * 1e7).round() / 10.0)).collect()
    };
    Value::Object(times.iter().map(|(name, times)| (name.clone(), micros(times))).collect())
}
