//! The escape suite: forbidden acts that are attempted, from inside `haft confine`, and judged from
//! outside, as root and as an ordinary user.
//!
//! One program is both sides. As a test it makes sites, starts itself as the attacker (first free, then
//! confined), looks at what happened, and prints one table. An act that does not succeed without
//! confinement proves nothing and is listed as such. The attacker's word can only convict: what counts is
//! what the oracles outside see (`judge`).
//!
//! Bounds: no attempt forks more than 300 children, holds more than 120 MB or lives longer than some
//! seconds by itself; settings of the machine are only ever set to what they are.

mod acts;
mod attack;
mod gaps;
mod jobs;
mod judge;
mod props;
mod run;
mod site;
mod snapshot;
mod suite;
mod sys;

use attack::say;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// The name under which test runners know the whole suite.
const TEST: &str = "every_escape_is_stopped";

/// Everything, from the command line of this process. `haft` is the program that confines.
///
/// Speaks as much of the protocol of test runners as they need; any other word chooses the acts whose
/// name has it.
pub fn main(haft: &Path) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--attack", act, ..] => attack::attack(act, args[2..].to_vec()),
        ["--victim" | "--linger", ..] => {
            std::thread::sleep(Duration::from_mins(1));
            ExitCode::SUCCESS
        }
        ["--who"] => {
            say(&sys::call(libc::SYS_geteuid, &[]).unwrap_or(usize::MAX).to_string());
            ExitCode::SUCCESS
        }
        ["--fetch", way, friend] => fetch(way, friend),
        words if words.contains(&"--list") => {
            if !words.contains(&"--ignored") {
                say(&format!("{TEST}: test"));
            }
            ExitCode::SUCCESS
        }
        words => {
            let chosen: Vec<&str> =
                words.iter().copied().filter(|word| !word.starts_with('-') && *word != TEST).collect();
            suite::run(haft, &chosen)
        }
    }
}

/// Talks to the server that is allowed.
fn fetch(way: &str, friend: &str) -> ExitCode {
    match said(way, friend) {
        Ok(answer) if answer.contains("friendly") => ExitCode::SUCCESS,
        Ok(answer) => fail(&format!("answered {answer:?}")),
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}

fn said(way: &str, friend: &str) -> std::io::Result<String> {
    let mut stream = if way == "direct" { TcpStream::connect(friend)? } else { tunnel(friend)? };
    stream.set_read_timeout(WAIT)?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut text = Vec::new();
    // A peer that resets after its answer has answered.
    let _ = stream.read_to_end(&mut text);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

const WAIT: Option<Duration> = Some(Duration::from_secs(2));

/// A way to the friend that the proxy named in the environment makes.
fn tunnel(friend: &str) -> std::io::Result<TcpStream> {
    let proxy = acts::allow::proxy().ok_or_else(|| std::io::Error::other("no proxy is named"))?;
    let mut stream = TcpStream::connect(proxy)?;
    stream.set_read_timeout(WAIT)?;
    stream.write_all(format!("CONNECT {friend} HTTP/1.1\r\nHost: {friend}\r\n\r\n").as_bytes())?;
    let mut answer = [0u8; 1024];
    let length = stream.read(&mut answer)?;
    let head = String::from_utf8_lossy(&answer[..length]).into_owned();
    if head.contains(" 200") { Ok(stream) } else { Err(std::io::Error::other(head)) }
}
