//! A directory that is there whole or not at all, named after what was to be put into it.

use super::home;
use crate::sh;
use anyhow::{Context, Result, bail};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any registry takes that answers at all.
const PATIENCE: Duration = Duration::from_mins(4);

/// The directory of a part, filled by `fill` unless it is there already. `pins` is everything that decides what
/// belongs into it.
pub(super) fn place(name: &str, pins: &[String], fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let place = home().join(format!("{name}-{}", key(pins)));
    if place.is_dir() {
        return Ok(place);
    }
    eprintln!("needs: {name}: installing below target/needs");
    let start = Instant::now();
    let draft = home().join(format!(".{name}-{}", std::process::id()));
    let made = fs::create_dir_all(&draft).context("cannot make a directory below target/needs");
    let filled = made.and_then(|()| fill(&draft)).and_then(|()| settle(&draft, &place));
    if filled.is_err() {
        let _ = fs::remove_dir_all(&draft);
    }
    filled.with_context(|| name.to_owned())?;
    forget_others(name, &place);
    eprintln!("needs: {name}: ready after {} s", start.elapsed().as_secs());
    Ok(place)
}

/// Puts a finished directory in its place. Another run may have been faster; its work is as good.
fn settle(draft: &Path, place: &Path) -> Result<()> {
    match fs::rename(draft, place) {
        Ok(()) => Ok(()),
        Err(_) if place.is_dir() => fs::remove_dir_all(draft).context("cannot remove what is not needed"),
        Err(error) => Err(error).context("cannot put it in its place"),
    }
}

/// What older pins asked for takes room and serves nobody.
fn forget_others(name: &str, place: &Path) {
    let is_older = |path: &Path| {
        let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        let key = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        path != place && key.is_some_and(|key| key.len() == 16 && key.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let entries = fs::read_dir(home()).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| is_older(path)) {
        let _ = fs::remove_dir_all(path);
    }
}

fn key(pins: &[String]) -> String {
    let mut hasher = DefaultHasher::new();
    pins.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The text of the files that pin a part.
pub(super) fn texts(files: &[PathBuf]) -> Result<Vec<String>> {
    let read = |file: &PathBuf| fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
    files.iter().map(read).collect()
}

/// Runs an installer to its end or to the end of patience. What it said is in the error if it failed.
pub(super) fn install(command: &mut Command, log: &Path) -> Result<()> {
    let said = fs::File::create(log).context("cannot write a log")?;
    let child = command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said).spawn();
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = child.with_context(|| format!("cannot start `{program}`"))?;
    let ended = within(&mut child, PATIENCE)?;
    let tail = || last_lines(&fs::read_to_string(log).unwrap_or_default());
    match ended {
        Some(true) => fs::remove_file(log).context("cannot remove a log"),
        Some(false) => bail!("`{program}` failed: {}", tail()),
        None => bail!("`{program}` was not done after {} s: {}", PATIENCE.as_secs(), tail()),
    }
}

/// Whether a process ended well, if it ended in time.
fn within(child: &mut Child, patience: Duration) -> Result<Option<bool>> {
    let until = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

/// Whether a program runs and succeeds.
pub(super) fn works(program: &Path, args: &[&str]) -> bool {
    let status = sh::command(program, args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_pins_are_another_place() {
        let pins = |text: &str| vec![text.to_owned()];
        assert_eq!(key(&pins("a")), key(&pins("a")));
        assert_ne!(key(&pins("a")), key(&pins("b")));
        assert_ne!(key(&["ab".to_owned(), String::new()]), key(&["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn who_is_second_takes_what_the_first_made() {
        let dir = std::env::temp_dir().join(format!("xtask-settle-{}", std::process::id()));
        let (first, second, place) = (dir.join("first"), dir.join("second"), dir.join("place"));
        for draft in [&first, &second] {
            fs::create_dir_all(draft).unwrap();
            fs::write(draft.join("who"), draft.to_string_lossy().as_bytes()).unwrap();
        }
        settle(&first, &place).unwrap();
        settle(&second, &place).unwrap();
        assert_eq!(fs::read_to_string(place.join("who")).unwrap(), first.to_string_lossy());
        assert!(!second.exists());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn an_installer_that_fails_or_hangs_is_told_of() {
        let log = std::env::temp_dir().join(format!("xtask-install-{}", std::process::id()));
        let failed = install(Command::new("sh").args(["-c", "echo because >&2; exit 3"]), &log).unwrap_err();
        assert_eq!(failed.to_string(), "`sh` failed: because");
        let mut hung = Command::new("sleep").arg("30").spawn().unwrap();
        assert_eq!(within(&mut hung, Duration::from_millis(10)).unwrap(), None);
        fs::remove_file(log).unwrap();
    }
}
