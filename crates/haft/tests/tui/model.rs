//! The model that is talked to: scripted, and reached where haft looks for a server on this machine.

use haft_stub::{Reply, Stub};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Where haft looks for it. There is one such place, so tests that need it take turns.
const PLACE: &str = "127.0.0.1:11434";
/// How long a turn is waited for.
const PATIENCE: Duration = Duration::from_mins(3);

/// A scripted model.
pub(crate) struct Model {
    stub: Stub,
}

impl Model {
    /// One that gives these answers.
    pub(crate) fn new(script: Vec<Reply>) -> Self {
        let stub = Stub::start(script);
        let listener = turn();
        let to = stub.url().replace("http://", "");
        // They end with the test's process.
        std::thread::spawn(move || {
            for from in listener.incoming().flatten() {
                let Ok(to) = TcpStream::connect(&to) else { continue };
                let (from_copy, to_copy) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                std::thread::spawn(move || pass(from, to));
                std::thread::spawn(move || pass(to_copy, from_copy));
            }
        });
        Self { stub }
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &'static str {
        "ollama/stub-1"
    }

    /// Whether it was told something, in any request.
    pub(crate) fn was_told(&self, words: &str) -> bool {
        self.stub.asked().iter().any(|asked| asked.says(words))
    }

    /// What was wrong with what it was told.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.stub.faults()
    }
}

/// Waits until no other test has the place.
fn turn() -> TcpListener {
    let begun = Instant::now();
    loop {
        match TcpListener::bind(PLACE) {
            Ok(listener) => return listener,
            Err(error) if begun.elapsed() > PATIENCE => panic!("{PLACE} is taken by somebody else: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = (to.shutdown(Shutdown::Write), from.shutdown(Shutdown::Read));
}
