//! One thread's searching: a searcher and a matcher of its own, used for one file after another.

use super::across::WholeText;
use super::kept::{Kept, Totals};
use super::line_ends::{self, TextReader};
use super::query::{MAX_HEAP, Query};
use super::sink::FileSink;
use crate::files;
use crate::halt::Halt;
use crate::panics;
use crate::scene::Scene;
use crate::tools::file::walk::{self, Share, Troubles};
use encoding_rs_io::DecodeReaderBytesBuilder;
use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use ignore::DirEntry;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// How much of a file is read between two looks at the halt.
const BYTES_PER_LOOK: usize = 256 << 10;
/// How much of a file is read at once. A NUL this early makes a file binary, whatever comes before it.
const PIECE: usize = 64 << 10;

/// One thread's searching.
pub(super) struct Searching<'a> {
    scene: &'a Scene,
    query: &'a Query,
    kept: &'a Mutex<Kept>,
    /// Where the search begins.
    start: &'a Path,
    /// A clone, because threads that share one wait for its scratch space.
    matcher: RegexMatcher,
    searcher: Searcher,
    marks: Vec<Range<usize>>,
    /// The beginning of a file.
    piece: Vec<u8>,
    /// Scratch space for decoding.
    decoded: Vec<u8>,
    /// A file that is searched as a whole.
    whole: Vec<u8>,
    totals: Totals,
    binaries: usize,
}

impl<'a> Searching<'a> {
    /// Searches for `query` below `start`, and puts what is found into `kept`.
    pub(super) fn new(scene: &'a Scene, query: &'a Query, start: &'a Path, kept: &'a Mutex<Kept>) -> Self {
        Self {
            scene,
            query,
            kept,
            start,
            matcher: query.matcher.clone(),
            searcher: query.searcher(),
            marks: Vec::new(),
            piece: vec![0; PIECE],
            decoded: vec![0; PIECE],
            whole: Vec::new(),
            totals: Totals::default(),
            binaries: 0,
        }
    }

    /// How much this thread has found.
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// How many files were passed over as binary.
    pub(super) fn binaries(&self) -> usize {
        self.binaries
    }

    /// Searches one file as long as it is now: one that grows faster than it is read would never end.
    pub(super) fn search(&mut self, path: &Path, file: &File, troubles: &mut Troubles) {
        let length = file.metadata().map_or(0, |meta| meta.len());
        // Files that the kernel makes up have no length.
        let left = if length > 0 { length } else { MAX_HEAP as u64 };
        let halt = self.scene.halt();
        self.search_input(path, Stoppable { input: file, halt, left, unlooked: 0 }, troubles);
    }

    fn search_input(&mut self, path: &Path, input: impl Read, troubles: &mut Troubles) {
        let (query, kept, mut marks) = (self.query, self.kept, std::mem::take(&mut self.marks));
        let mut sink = FileSink::new(query, kept, path, &mut marks);
        // No file may lose the others, not even by a bug.
        let searched = catch_unwind(AssertUnwindSafe(|| self.search_text(input, &mut sink)));
        let (binary, hits) = (sink.binary, sink.hits);
        self.marks = marks;
        match searched {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.explain(path, &error, troubles),
            Err(panic) => {
                // They may have been left in any state.
                (self.matcher, self.searcher) = (query.matcher.clone(), query.searcher());
                let message = panics::message(&*panic);
                troubles.tell(format!("{}: not searched to its end: a bug of haft: {message}", self.scene.shown(path)));
            }
        }
        if hits.count == 0 {
            self.binaries += usize::from(binary);
            return;
        }
        if binary {
            let shown = self.scene.shown(path);
            troubles.tell(format!("{shown}: binary data after the first matches; the rest was not searched"));
        }
        self.totals = self.totals + Totals { matches: hits.count, files: 1 };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.wants(path) {
            kept.insert(path, hits);
        }
    }

    fn search_text(&mut self, mut input: impl Read, sink: &mut FileSink<'_>) -> io::Result<()> {
        let length = read_piece(&mut input, &mut self.piece)?;
        let is_whole = length < self.piece.len();
        let by_line = !self.query.across_lines;
        if by_line && is_whole && !is_utf16(&self.piece) {
            let text = &mut self.piece[..length];
            let length = if self.query.with_carriage_returns { length } else { line_ends::drop_carriage_returns(text) };
            return self.searcher.search_slice(&self.matcher, &text[..length], sink);
        }
        let text = Cursor::new(&self.piece[..length]).chain(input);
        // Bytes that are UTF-8, or something else, are passed on as they are.
        let decoding = DecodeReaderBytesBuilder::new()
            .utf8_passthru(true)
            .strip_bom(true)
            .build_with_buffer(text, &mut self.decoded[..])?;
        let text = TextReader::new(decoding, self.query.with_carriage_returns);
        if by_line {
            return self.searcher.search_reader(&self.matcher, text, sink);
        }
        let text = read_whole(text, &mut self.whole)?;
        let nul = memchr::memchr(0, text);
        sink.binary = nul.is_some();
        if nul.is_some_and(|nul| nul < PIECE) {
            return Ok(());
        }
        let text = &text[..nul.unwrap_or(text.len())];
        WholeText { text, matcher: &self.matcher, halt: self.scene.halt() }.search(sink)
    }

    fn explain(&self, path: &Path, error: &io::Error, troubles: &mut Troubles) {
        let is_too_long = error.kind() == io::ErrorKind::Other && error.raw_os_error().is_none();
        if !is_too_long {
            return troubles.file(self.scene, path, error);
        }
        // A call that ends says so itself.
        if self.scene.halt().check().is_ok() {
            let (shown, limit) = (self.scene.shown(path), haft_core::preview::size(MAX_HEAP));
            troubles.tell(if self.query.across_lines {
                format!("{shown}: larger than {limit} and not searched: the pattern matches across lines")
            } else {
                format!("{shown}: searched only up to a line that is longer than {limit}")
            });
        }
    }
}

/// Reads until the buffer is full or there is no more.
fn read_piece(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match input.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

/// Reads a text that has to be in memory as a whole.
fn read_whole(mut text: impl Read, whole: &mut Vec<u8>) -> io::Result<&[u8]> {
    let mut length = 0;
    loop {
        if length == whole.len() {
            whole.resize((length * 2).clamp(PIECE, MAX_HEAP + 1), 0);
        }
        match text.read(&mut whole[length..])? {
            0 => return Ok(&whole[..length]),
            read => length += read,
        }
        if length > MAX_HEAP {
            return Err(io::Error::other("too large"));
        }
    }
}

fn is_utf16(start: &[u8]) -> bool {
    start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff")
}

impl Share for Searching<'_> {
    fn wants(&self, path: &Path) -> bool {
        self.query.wants(walk::below(self.start, path))
    }

    fn take(&mut self, entry: DirEntry, troubles: &mut Troubles) {
        match files::open(entry.path()) {
            Ok(file) => self.search(entry.path(), &file, troubles),
            Err(error) => troubles.file(self.scene, entry.path(), &error),
        }
    }
}

/// A file that ends where it ended when it was opened, and with an error once the call is halted: one file alone may take longer
/// than a call.
struct Stoppable<'a> {
    input: &'a File,
    halt: &'a Halt,
    left: u64,
    unlooked: usize,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.unlooked >= BYTES_PER_LOOK {
            self.unlooked = 0;
            self.halt.check().map_err(io::Error::other)?;
        }
        let room = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.input.read(&mut buffer[..room])?;
        self.left -= read as u64;
        self.unlooked += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Stage;
    use crate::tools::file::grep::{query::Args, tool};
    use serde_json::json;

    /// A text with a bug behind its beginning.
    struct Broken(usize);

    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            assert!(self.0 <= 2 * PIECE, "too much");
            buffer[0] = if self.0.is_multiple_of(2) { b'\n' } else { b'x' };
            Ok(1)
        }
    }

    #[test]
    fn a_bug_in_one_file_loses_no_other() {
        let stage = Stage::new();
        let good = stage.file("good.txt", "x\n");
        let args = json!({"pattern": "x", "path": "."});
        let scene = stage.scene(&tool(), args, &Halt::new()).unwrap();
        let args: Args = scene.parse().unwrap();
        let query = Query::new(&args).unwrap();
        let kept = Mutex::new(Kept::new(query.limit));
        let mut searching = Searching::new(&scene, &query, stage.root(), &kept);
        let mut troubles = Troubles::default();
        searching.search_input(&stage.root().join("bad.txt"), Broken(0), &mut troubles);
        searching.search(&good, &File::open(&good).unwrap(), &mut troubles);
        assert_eq!(searching.totals().files, 2);
        assert!(searching.totals().matches > 1000, "what was found before counts: {:?}", searching.totals());
        assert_eq!(troubles.warnings(), ["bad.txt: not searched to its end: a bug of haft: too much"]);
    }
}
