//! A text of any length: its beginning and its end in memory, the whole in a file.

use super::create;
use haft_core::shape::{self, Limits};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How much of the beginning is kept in memory: as much as any reply shows.
pub(super) const HEAD: usize = 256 << 10;
/// The same for the end.
pub(super) const TAIL: usize = 64 << 10;
/// Of what both streams together may show, the share of the complaints: 56 of 256.
const COMPLAINTS: (usize, usize) = (56, 256);

/// As much of a text as is shown.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// The text.
    pub(crate) text: String,
    /// Where the whole is, if that is not all.
    pub(crate) whole: Option<PathBuf>,
    /// What could not be kept.
    pub(crate) warning: Option<String>,
}

impl Shown {
    /// Adds a line of our own.
    pub(crate) fn add_line(&mut self, line: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// A text that comes piece by piece.
pub(crate) struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
    in_line: bool,
    path: PathBuf,
    file: Option<File>,
    lost: Option<String>,
}

impl Ends {
    /// Goes to the file only when it is too long for memory.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { head: Vec::new(), tail: Vec::new(), total: 0, in_line: false, path, file: None, lost: None }
    }

    /// Is in the file at once.
    pub(super) fn spooled(path: PathBuf) -> io::Result<Self> {
        let file = create(&path)?;
        Ok(Self { file: Some(file), ..Self::new(path) })
    }

    /// Both ends of what somebody else put into a file, as far as it is there.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut ends = Self::new(path.to_owned());
        Read::by_ref(&mut file).take(HEAD as u64).read_to_end(&mut ends.head)?;
        // It may grow meanwhile; what comes later is left for later.
        ends.total = file.metadata()?.len().max(ends.head.len() as u64);
        let from = ends.total.saturating_sub(TAIL as u64).max(ends.head.len() as u64);
        file.seek(SeekFrom::Start(from))?;
        Read::by_ref(&mut file).take(ends.total - from).read_to_end(&mut ends.tail)?;
        ends.file = Some(file);
        Ok(ends)
    }

    /// Adds a piece. One that does not go on with a line begins a new one.
    pub(super) fn push(&mut self, piece: &[u8], goes_on: bool) {
        if self.in_line && !goes_on {
            self.write(b"\n");
        }
        self.write(piece);
        self.in_line = !piece.ends_with(b"\n");
    }

    fn write(&mut self, piece: &[u8]) {
        let fits = HEAD.saturating_sub(self.head.len()).min(piece.len());
        let (first, rest) = piece.split_at(fits);
        self.head.extend_from_slice(first);
        if self.file.is_some() {
            self.spill(piece);
        } else if !rest.is_empty() && self.lost.is_none() {
            self.spill_all();
            self.spill(rest);
        }
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
        self.total += piece.len() as u64;
    }

    /// Puts what is in memory into the file. Only while that is all there is.
    fn spill_all(&mut self) {
        match create(&self.path) {
            Ok(file) => {
                self.file = Some(file);
                let head = std::mem::take(&mut self.head);
                self.spill(&head);
                self.head = head;
            }
            Err(error) => self.lost = Some(format!("the whole output could not be kept: {error}")),
        }
    }

    fn spill(&mut self, piece: &[u8]) {
        if let Some(Err(error)) = self.file.as_mut().map(|file| file.write_all(piece)) {
            self.lost = Some(format!("the whole output could not be kept: {error}"));
            self.file = None;
        }
    }

    /// The text, or both ends of it and how much is between them.
    fn parts(&self) -> (String, usize, String) {
        let held = self.head.len() + self.tail.len();
        let between = usize::try_from(self.total).unwrap_or(usize::MAX).saturating_sub(held);
        if between == 0 {
            let all = [self.head.as_slice(), &self.tail].concat();
            return (String::from_utf8_lossy(&all).into_owned(), 0, String::new());
        }
        // What was cut through is no character.
        let cut = self.head.len() - incomplete(&self.head);
        let begins = self.tail.iter().take(4).take_while(|byte| **byte & 0xc0 == 0x80).count();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&self.head[..cut]), between + self.head.len() - cut + begins, text(&self.tail[begins..]))
    }

    /// As much as the limits allow.
    pub(crate) fn shown(mut self, limits: Limits) -> Shown {
        let (first, between, last) = self.parts();
        let cut = if between == 0 {
            shape::truncate(&first, limits)
        } else {
            shape::truncate_ends(&first, between, &last, limits)
        };
        if cut.hidden_bytes == 0 {
            return Shown { text: cut.text, whole: None, warning: None };
        }
        if self.file.is_none() && between == 0 && self.tail.is_empty() && self.lost.is_none() {
            self.spill_all();
        }
        let whole = self.file.is_some().then_some(self.path);
        Shown { text: cut.text, whole, warning: self.lost }
    }

    /// How much of it is in memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.head.len() + self.tail.len()
    }
}

/// The output and then the complaints, each cut by itself; the whole of both in one file.
pub(super) fn separate(mut stdout: Ends, mut stderr: Ends, limits: Limits) -> Shown {
    let complaints = limits.bytes / COMPLAINTS.1 * COMPLAINTS.0;
    let share = |bytes| Limits { bytes, ..limits };
    let (first, second) = (stdout.parts(), stderr.parts());
    let cut = |(first, between, last): &(String, usize, String), limits| match between {
        0 => shape::truncate(first, limits),
        between => shape::truncate_ends(first, *between, last, limits),
    };
    let (out, err) = (cut(&first, share(limits.bytes - complaints)), cut(&second, share(complaints)));
    let mut shown = Shown { text: out.text, ..Shown::default() };
    if !shown.text.is_empty() && !shown.text.ends_with('\n') && !err.text.is_empty() {
        shown.text.push('\n');
    }
    shown.text.push_str(&err.text);
    if out.hidden_bytes + err.hidden_bytes == 0 {
        return shown;
    }
    for text in [&mut stdout, &mut stderr] {
        if text.file.is_none() && text.lost.is_none() {
            text.spill_all();
        }
    }
    let joined = append(&mut stdout, &stderr);
    shown.warning =
        stdout.lost.or(stderr.lost).or_else(|| joined.err().map(|error| format!("the output was not joined: {error}")));
    shown.whole = stdout.file.is_some().then_some(stdout.path);
    shown
}

fn append(stdout: &mut Ends, stderr: &Ends) -> io::Result<()> {
    let Some(file) = &mut stdout.file else { return Ok(()) };
    if stdout.in_line {
        file.write_all(b"\n")?;
    }
    io::copy(&mut File::open(&stderr.path)?, file)?;
    std::fs::remove_file(&stderr.path)
}

/// How many bytes at the end begin a character that does not end there.
pub(crate) fn incomplete(bytes: &[u8]) -> usize {
    let back = bytes.iter().rev().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    let lead = bytes.len().checked_sub(back + 1).map_or(0, |at| bytes[at]);
    let needed = match lead {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    if needed > back + 1 { back + 1 } else { 0 }
}
