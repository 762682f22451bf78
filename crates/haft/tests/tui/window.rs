//! A terminal window: a pseudo-terminal with a program in it, and a model of what its screen shows.

use crate::Env;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long something is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A window.
pub(crate) struct Window {
    master: File,
    /// The other end, held so that its settings can be looked at when the program has gone.
    slave: File,
    child: Child,
    seen: Arc<Mutex<Seen>>,
}

/// What came out of it.
struct Seen {
    screen: vt100::Parser,
    raw: Vec<u8>,
}

fn size((columns, rows): (u16, u16)) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Window {
    /// Starts haft in a window of that size.
    pub(crate) fn open(env: &Env, args: &[&str], columns_rows: (u16, u16), term: &str) -> Self {
        Self::with(env, args, columns_rows, &[("TERM", term)])
    }

    /// The same with these variables.
    pub(crate) fn with(env: &Env, args: &[&str], columns_rows: (u16, u16), variables: &[(&str, &str)]) -> Self {
        Self::start(env, args, columns_rows, variables, None)
    }

    /// A window of the usual size, in which what haft prints goes to a file of the project.
    pub(crate) fn into_file(env: &Env, args: &[&str], file: &str) -> Self {
        let file = File::create(env.root().join(file)).unwrap();
        Self::start(env, args, (80, 24), &[("TERM", "xterm")], Some(file))
    }

    fn start(
        env: &Env,
        args: &[&str],
        columns_rows: (u16, u16),
        variables: &[(&str, &str)],
        stdout: Option<File>,
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let master = File::from(master);
        tcsetwinsize(&master, size(columns_rows)).unwrap();
        let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        // A session of its own, so that the window is its controlling terminal and tells it when its size changes.
        let child = Command::new("setsid")
            .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_haft")])
            .args(args)
            .current_dir(env.root())
            .env_clear()
            .env("HOME", env.dir.path().join("home"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TZ", "UTC")
            .envs(variables.iter().copied())
            .stdin(end())
            .stdout(stdout.map_or_else(end, Stdio::from))
            .stderr(end())
            .spawn()
            .unwrap();
        let screen = vt100::Parser::new(columns_rows.1, columns_rows.0, 0);
        let seen = Arc::new(Mutex::new(Seen { screen, raw: Vec::new() }));
        let (mut reader, noted) = (master.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                let mut seen = noted.lock().unwrap();
                seen.screen.process(&bytes[..read]);
                seen.raw.extend(&bytes[..read]);
            }
        });
        Self { master, slave, child, seen }
    }

    /// What the screen shows.
    pub(crate) fn screen(&self) -> String {
        self.seen.lock().unwrap().screen.screen().contents()
    }

    /// Every byte that came out.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().raw).into_owned()
    }

    /// Asks the screen something.
    pub(crate) fn look<T>(&self, at: impl Fn(&vt100::Screen) -> T) -> T {
        at(self.seen.lock().unwrap().screen.screen())
    }

    /// Waits until the screen is as it should be.
    pub(crate) fn until(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if fits(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "never saw {what}; the screen is\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the screen shows something.
    pub(crate) fn shows(&self, text: &str) -> String {
        self.until(&format!("{text:?}"), |screen| screen.contains(text))
    }

    /// Waits until it does not.
    pub(crate) fn hides(&self, text: &str) -> String {
        self.until(&format!("no {text:?}"), |screen| !screen.contains(text))
    }

    /// Types.
    pub(crate) fn types(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line and means it.
    pub(crate) fn says(&mut self, text: &str) {
        self.types(&format!("{text}\r"));
    }

    /// Makes the window larger or smaller.
    pub(crate) fn resize(&self, columns_rows: (u16, u16)) {
        self.seen.lock().unwrap().screen.screen_mut().set_size(columns_rows.1, columns_rows.0);
        tcsetwinsize(&self.master, size(columns_rows)).unwrap();
    }

    /// How the terminal is set.
    pub(crate) fn settings(&self) -> Termios {
        tcgetattr(&self.slave).unwrap()
    }

    /// The process that draws: the one that the session's leader waits for, or the leader itself.
    pub(crate) fn process(&self) -> u32 {
        let id = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        children.split_whitespace().next().and_then(|child| child.parse().ok()).unwrap_or(id)
    }

    /// Waits until the program has ended, and gives its exit code.
    pub(crate) fn ended(&mut self) -> i32 {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end; the screen is\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
