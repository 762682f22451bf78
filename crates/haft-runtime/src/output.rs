//! What a program prints, taken as it comes: put in order, kept whole in a file, and of it so much in memory
//! as a reply can hold. However much is printed, this does not grow.

mod ends;
mod pace;
#[cfg(test)]
mod tests;

pub(crate) use ends::{Ends, Shown, incomplete};
pub(crate) use pace::Pace;

use haft_core::shape::{Limits, detect};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What stands before each line of what a program complains about.
const MARK: &[u8] = b"[stderr] ";
/// How much of a line is waited for before it is passed on in pieces.
const LINE_MAX: usize = 64 << 10;
/// How much at the beginning tells text from binary.
const LOOKED_AT: usize = 512;

/// In which order what is printed is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Line by line, as they came.
    #[default]
    Interleaved,
    /// First the output, then the complaints.
    Separate,
}

/// One of a program's two ways to print.
#[derive(Default)]
struct Stream {
    /// A line that has not ended yet.
    pending: Vec<u8>,
    /// Whether the beginning of that line was passed on already.
    torn: bool,
    /// The first bytes of all.
    looked: Vec<u8>,
    /// Where it is kept, if it is not text.
    binary: Option<Raw>,
}

/// Output that is not text.
struct Raw {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
}

/// Takes what a program prints.
pub(crate) struct Collector<'c> {
    streams: [Stream; 2],
    texts: Vec<Ends>,
    file: PathBuf,
    line: &'c mut dyn FnMut(&[u8]),
}

impl<'c> Collector<'c> {
    /// Keeps the whole in `file` once it is too much for memory. Lines are told as they come.
    pub(crate) fn new(order: Order, file: PathBuf, line: &'c mut dyn FnMut(&[u8])) -> Self {
        let texts = match order {
            Order::Interleaved => vec![Ends::new(file.clone())],
            Order::Separate => vec![Ends::new(file.clone()), Ends::new(beside(&file, "stderr.txt"))],
        };
        Self { streams: Default::default(), texts, file, line }
    }

    /// The same for a run that somebody looks at while it goes on: everything is in the file at once, in the
    /// order in which it came.
    pub(crate) fn spooled(file: PathBuf, line: &'c mut dyn FnMut(&[u8])) -> io::Result<Self> {
        let texts = vec![Ends::spooled(file.clone())?];
        Ok(Self { streams: Default::default(), texts, file, line })
    }

    /// Takes a piece: of the output (0) or of the complaints (1).
    pub(crate) fn take(&mut self, number: usize, bytes: &[u8]) {
        let number = number.min(1);
        let stream = &mut self.streams[number];
        let before = stream.looked.len();
        let room = (LOOKED_AT - before).min(bytes.len());
        stream.looked.extend_from_slice(&bytes[..room]);
        if stream.binary.is_none() && room > 0 && detect(&stream.looked).is_some() {
            let name = if number == 0 { "stdout.bin" } else { "stderr.bin" };
            let path = beside(&self.file, name);
            let mut raw = Raw { file: create(&path).ok(), path, bytes: 0 };
            // What came before this piece, which cannot be longer than what was looked at.
            raw.write(&stream.looked[..before]);
            stream.pending.clear();
            stream.binary = Some(raw);
        }
        match &mut stream.binary {
            Some(raw) => raw.write(bytes),
            None => self.take_text(number, bytes),
        }
    }

    fn take_text(&mut self, number: usize, bytes: &[u8]) {
        let stream = &mut self.streams[number];
        stream.pending.extend_from_slice(bytes);
        let whole = memchr::memrchr(b'\n', &stream.pending).map_or(0, |at| at + 1);
        let ready = if stream.pending.len() - whole > LINE_MAX { stream.pending.len() } else { whole };
        if ready > 0 {
            self.pass_on(number, ready);
        }
    }

    /// Passes on so much of what is pending.
    fn pass_on(&mut self, number: usize, ready: usize) {
        let stream = &mut self.streams[number];
        let rest = stream.pending.split_off(ready);
        let block = std::mem::replace(&mut stream.pending, rest);
        let torn = std::mem::replace(&mut stream.torn, !block.ends_with(b"\n"));
        let block = if number == 0 { block } else { marked(&block, torn) };
        let index = number.min(self.texts.len() - 1);
        if let Some(text) = self.texts.get_mut(index) {
            text.push(&block, torn);
        }
        for line in block.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            (self.line)(line);
        }
    }

    /// Everything is there.
    pub(crate) fn finish(mut self) -> Printed {
        for number in [0, 1] {
            let ready = self.streams[number].pending.len();
            if ready > 0 {
                self.pass_on(number, ready);
            }
        }
        let notices = ["stdout", "stderr"].iter().zip(&self.streams).filter_map(|(name, stream)| {
            let raw = stream.binary.as_ref()?;
            let kept = if raw.file.is_some() { format!(", kept in {}", raw.path.display()) } else { String::new() };
            // The first bytes may have come one by one: what it is can be told now.
            let kind = detect(&stream.looked).map_or("binary", |kind| kind.name);
            Some(format!("[{name} is not text: {kind}, {} bytes{kept}]", raw.bytes))
        });
        Printed { notices: notices.collect(), texts: self.texts }
    }
}

impl Raw {
    fn write(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        // A disk that is full costs the copy, not the run.
        if self.file.as_mut().is_some_and(|file| file.write_all(bytes).is_err()) {
            self.file = None;
        }
    }
}

/// What a program printed.
pub(crate) struct Printed {
    /// What stands in place of what is not text.
    pub(crate) notices: Vec<String>,
    texts: Vec<Ends>,
}

impl Printed {
    /// As much of it as the limits allow, and where the whole is if that is not all.
    pub(crate) fn shown(self, limits: Limits) -> Shown {
        let Self { notices, mut texts } = self;
        let mut shown = match (texts.pop(), texts.pop()) {
            (Some(stderr), Some(stdout)) => ends::separate(stdout, stderr, limits),
            (Some(only), None) => only.shown(limits),
            (None, _) => Shown::default(),
        };
        for notice in notices {
            shown.add_line(&notice);
        }
        shown
    }
}

/// Lines in the order in which they came, put in order by stream.
pub(crate) fn parted(text: &str) -> String {
    let (complaints, mut lines): (Vec<&str>, Vec<&str>) =
        text.split_inclusive('\n').partition(|line| line.as_bytes().starts_with(MARK));
    if let Some(last) = lines.last().filter(|line| !line.ends_with('\n') && !complaints.is_empty()) {
        let whole = format!("{last}\n");
        lines.pop();
        return lines.concat() + &whole + &complaints.concat();
    }
    lines.concat() + &complaints.concat()
}

/// Complaints with their mark before each line. A line whose beginning was passed on has it already.
fn marked(block: &[u8], torn: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(block.len() + MARK.len() * 8);
    for (index, line) in block.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if index > 0 || !torn {
            text.extend_from_slice(MARK);
        }
        text.extend_from_slice(line);
    }
    text
}

/// A file of another name in the same place.
fn beside(file: &Path, ending: &str) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{stem}.{ending}"))
}

/// Keeps what was printed in a file that nobody else may read.
pub(crate) fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create(path)?.write_all(bytes)
}

/// Makes a file that nobody else may read.
fn create(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        crate::shared_data::make_directory(dir)?;
    }
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
