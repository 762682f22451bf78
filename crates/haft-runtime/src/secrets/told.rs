//! A secret that a program of the user's tells: `op read …`, `pass show …`. No shell is involved.

use super::{VALUE_MAX, value};
use haft_core::{CallError, ErrorKind};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long the program may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Asks the program. What it prints is the secret; what it says about failing is between it and the user.
pub(super) fn ask(name: &str, command: &[String]) -> Result<String, CallError> {
    ask_within(name, command, TIMEOUT)
}

fn ask_within(name: &str, command: &[String], timeout: Duration) -> Result<String, CallError> {
    let failed = |why: String| {
        let shown = command.first().map(String::as_str).unwrap_or_default();
        CallError::new(ErrorKind::Upstream, format!("the secret `{name}` could not be had from `{shown}`: {why}"))
            .hint(format!("run the command under secrets.{name} of your configuration by hand to see what it says"))
    };
    let (program, args) = command.split_first().ok_or_else(|| failed("no program is named".to_owned()))?;
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // What it starts goes with it.
        .process_group(0)
        .spawn();
    let mut child = child.map_err(|error| failed(error.to_string()))?;
    let Some(stdout) = child.stdout.take() else { return Err(failed("it prints nothing".to_owned())) };
    let (sender, heard) = mpsc::channel();
    // It ends when the program does, or when the program's last child is ended below.
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(VALUE_MAX as u64 + 3).read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    });
    let bytes = heard.recv_timeout(timeout);
    let bytes = match bytes {
        Ok(Ok(bytes)) if bytes.len() <= VALUE_MAX + 2 => bytes,
        Ok(Ok(_)) => return Err(failed(ended(child, "it prints more than 64 KiB"))),
        Ok(Err(_)) => return Err(failed(ended(child, "what it prints cannot be read"))),
        Err(_) => return Err(failed(ended(child, &format!("it took longer than {} s", timeout.as_secs())))),
    };
    let status = waited(&mut child, timeout).ok_or_else(|| failed("it does not end".to_owned()))?;
    if !status.success() {
        return Err(failed(status.to_string()));
    }
    let text = String::from_utf8(bytes).map_err(|_| failed("what it prints is no text".to_owned()))?;
    value(name, &text).map_err(|error| failed(error.message))
}

/// Ends it and all that it started, and passes on why.
fn ended(mut child: Child, why: &str) -> String {
    stop(&mut child);
    why.to_owned()
}

fn stop(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// How it ended. Having closed its output, it has no more to do.
fn waited(child: &mut Child, timeout: Duration) -> Option<std::process::ExitStatus> {
    let until = std::time::Instant::now() + timeout;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if std::time::Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
            _ => {
                stop(child);
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(script: &str, timeout: Duration) -> Result<String, CallError> {
        ask_within("KEY", &["sh".to_owned(), "-c".to_owned(), script.to_owned()], timeout)
    }

    #[test]
    fn what_it_prints_is_the_secret() {
        assert_eq!(asked("echo hunter2; echo noise >&2", TIMEOUT).unwrap(), "hunter2");
        assert_eq!(asked("printf 'two\\nlines\\n'", TIMEOUT).unwrap(), "two\nlines");
    }

    #[test]
    fn everything_else_is_an_error_that_does_not_show_it() {
        for (script, why) in [
            ("echo hunter2; exit 3", "exit status: 3"),
            ("true", "it is empty"),
            ("head -c 70000 /dev/zero | tr '\\0' x", "more than 64 KiB"),
            ("printf '\\377\\376'", "is no text"),
            ("printf 'a\\000b'", "NUL"),
        ] {
            let error = asked(script, TIMEOUT).unwrap_err();
            assert!(error.message.contains(why), "{script}: {}", error.message);
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
        assert!(ask("KEY", &["no-such-program-at-all".to_owned()]).is_err());
        assert!(ask("KEY", &[]).is_err());
    }

    #[test]
    fn one_that_never_ends_is_ended_with_all_that_it_started() {
        let begun = std::time::Instant::now();
        let error = asked("sleep 600 & sleep 600", Duration::from_secs(1)).unwrap_err();
        assert!(error.message.contains("longer than 1 s"), "{}", error.message);
        assert!(begun.elapsed() < Duration::from_mins(1));
    }
}
