//! What it costs to understand a command: parsing and judging a few thousand one-liners that people wrote, and a
//! long script, beside bash that only parses the same (`bash -n`). Prints one JSON object.
//!
//! `cargo xtask bench shell` gathers the script, and says where it is with `--with JSON`; without it only the
//! one-liners are measured.

#![expect(clippy::print_stdout, reason = "the numbers are its output")]

use haft_core::shell::{COMMAND_MAX, Ground, Table, judge};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Any failure ends the whole benchmark: a number that is missing must not look like one that is small.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const ONE_LINERS: &str = include_str!("one-liners.txt");
/// How often everything is measured, after once that only fills the table and the caches.
const ROUNDS: usize = 9;

fn one_liners() -> Vec<&'static str> {
    ONE_LINERS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

fn timed(once: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    once();
    begun.elapsed()
}

fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}

/// The time that so many percent did not exceed (nearest rank).
fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times.get((times.len() * percent).div_ceil(100).max(1) - 1).copied().unwrap_or_default()
}

fn judged(text: &str) -> Duration {
    let ground = Ground { cwd: "/srv/project", home: Some("/home/user"), table: Table::shipped() };
    timed(|| drop(std::hint::black_box(judge(std::hint::black_box(text), &ground))))
}

/// bash, which only parses a file; and as often a file with nothing in it, to know what its start costs.
struct Bash {
    empty: PathBuf,
}

impl Bash {
    fn parse(file: &Path) -> Result<Duration> {
        let mut bash = Command::new("bash");
        bash.arg("-n").arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let begun = Instant::now();
        bash.status()?;
        Ok(begun.elapsed())
    }

    /// How much longer a file takes than none.
    fn beyond_start(&self, file: &Path) -> Result<Duration> {
        let start = Self::parse(&self.empty)?;
        Ok(Self::parse(file)?.saturating_sub(start))
    }
}

/// What each one-liner takes (its median), and what bash takes for all of them.
fn measure_one_liners(bash: &Bash, dir: &Path) -> Result<Value> {
    let lines = one_liners();
    let file = dir.join("one-liners.sh");
    std::fs::write(&file, lines.join("\n"))?;
    for line in &lines {
        judged(line);
    }
    let mut times = vec![Vec::with_capacity(ROUNDS); lines.len()];
    let mut peer = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        for (line, times) in lines.iter().zip(&mut times) {
            times.push(judged(line));
        }
        peer.push(bash.beyond_start(&file)?);
    }
    let mut each: Vec<Duration> = times.iter_mut().map(|times| percentile(times, 50)).collect();
    let whole: Duration = each.iter().sum();
    let count = u32::try_from(lines.len())?;
    Ok(json!({
        "count": count,
        "p50_us": micros(percentile(&mut each, 50)),
        "p95_us": micros(percentile(&mut each, 95)),
        "max_us": micros(percentile(&mut each, 100)),
        "mean_us": micros(whole / count),
        "bash_mean_us": micros(percentile(&mut peer, 50) / count),
    }))
}

/// What a long script takes.
fn measure_script(bash: &Bash, path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path)?;
    if text.len() > COMMAND_MAX {
        return Err(format!("{} is longer than what is looked at", path.display()).into());
    }
    judged(&text);
    let (mut own, mut peer) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        own.push(judged(&text));
        peer.push(bash.beyond_start(path)?);
    }
    let (own, peer) = (percentile(&mut own, 50), percentile(&mut peer, 50));
    Ok(json!({"bytes": text.len(), "p50_us": micros(own), "bash_us": micros(peer)}))
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let with = args.iter().skip_while(|arg| *arg != "--with").nth(1);
    let with: Value = with.map_or(Ok(json!({})), |text| serde_json::from_str(text))?;
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let bash = Bash { empty: dir.path().join("empty.sh") };
    std::fs::write(&bash.empty, "")?;
    let mut report = json!({"one_liners": measure_one_liners(&bash, dir.path())?});
    if let Some(script) = with["script"].as_str() {
        report["script"] = measure_script(&bash, script.as_ref())?;
    }
    println!("{report}");
    Ok(())
}
