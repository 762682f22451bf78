//! A terminal: a pseudo-terminal with a program in it, and a model of what its screen shows.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long something is waited for.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a key may take to have an effect, and how often it is pressed.
const BEFORE_PRESSING_AGAIN: Duration = Duration::from_secs(8);
const PRESSES_MAX: u32 = 3;
const COLUMNS: u16 = 100;
const ROWS: u16 = 36;

/// A terminal with a program in it, which ends with it.
pub(crate) struct Terminal {
    master: File,
    child: Child,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    /// Starts a program in a terminal. Its arguments, directory and variables are those of the command.
    pub(crate) fn start(command: &Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let master = File::from(master);
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        // A session of its own, so that the terminal is its controlling terminal.
        let mut leader = Command::new("setsid");
        leader.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args()).env_clear();
        leader.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        leader.current_dir(command.get_current_dir().unwrap());
        let child = leader.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let (mut reader, seen) = (master.try_clone().unwrap(), Arc::clone(&screen));
        let mut answers = master.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                let mut screen = seen.lock().unwrap();
                screen.process(&bytes[..read]);
                // Some programs ask the terminal where its cursor is, and wait for the answer.
                if bytes[..read].windows(4).any(|window| window == b"\x1b[6n") {
                    let (row, column) = screen.screen().cursor_position();
                    let _ = write!(answers, "\x1b[{};{}R", row + 1, column + 1);
                }
            }
        });
        Self { master, child, screen }
    }

    /// What the screen shows.
    pub(crate) fn text(&self) -> String {
        self.look(vt100::Screen::contents)
    }

    /// What the screen shows, as one line without the blanks between words that lie on different lines.
    pub(crate) fn unwrapped(&self) -> String {
        self.text().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Asks the screen something.
    pub(crate) fn look<T>(&self, at: impl FnOnce(&vt100::Screen) -> T) -> T {
        at(self.screen.lock().unwrap().screen())
    }

    /// Waits until the screen shows something.
    pub(crate) fn shows(&self, text: &str) -> String {
        self.until(&format!("{text:?}"), || self.text().contains(text));
        self.text()
    }

    /// Waits until something is so.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < PATIENCE, "{what} did not come; the screen is\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the screen stands still.
    pub(crate) fn settles(&self) {
        let mut before = self.text();
        let mut since = Instant::now();
        let begun = Instant::now();
        while since.elapsed() < Duration::from_millis(300) && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
            let now = self.text();
            if now != before {
                before = now;
                since = Instant::now();
            }
        }
    }

    /// Presses a key, as a person does: again after a while, if nothing came of it. A program that is busy drawing may lose a
    /// key.
    pub(crate) fn press(&self, key: &str, what: &str, has_happened: impl Fn() -> bool) {
        for _ in 0..PRESSES_MAX {
            self.types(key);
            let pressed = Instant::now();
            while pressed.elapsed() < BEFORE_PRESSING_AGAIN {
                if has_happened() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.until(what, has_happened);
    }

    /// Types.
    pub(crate) fn types(&self, keys: &str) {
        (&self.master).write_all(keys.as_bytes()).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // `setsid --wait` waits for the program, which hears that its terminal has gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
