//! One thread's searching: a searcher and a matcher of its own, used for one file after another.

use super::kept::{Kept, Totals};
use super::query::Query;
use super::sink::FileSink;
use crate::files;
use crate::halt::Halt;
use crate::scene::Scene;
use crate::tools::file::walk::{Share, Troubles};
use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use ignore::DirEntry;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// How much of a file is read between two looks at the halt.
const BYTES_PER_LOOK: usize = 4 << 20;

/// One thread's searching.
pub(super) struct Searching<'a> {
    scene: &'a Scene,
    query: &'a Query,
    kept: &'a Mutex<Kept>,
    /// A clone, because threads that share one wait for its scratch space.
    matcher: RegexMatcher,
    searcher: Searcher,
    marks: Vec<Range<usize>>,
    totals: Totals,
    binaries: usize,
}

impl<'a> Searching<'a> {
    /// Searches for `query`, and puts what is found into `kept`.
    pub(super) fn new(scene: &'a Scene, query: &'a Query, kept: &'a Mutex<Kept>) -> Self {
        let (matcher, searcher) = (query.matcher.clone(), query.searcher());
        Self { scene, query, kept, matcher, searcher, marks: Vec::new(), totals: Totals::default(), binaries: 0 }
    }

    /// How much this thread has found.
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// How many files were passed over as binary.
    pub(super) fn binaries(&self) -> usize {
        self.binaries
    }

    /// Searches one file.
    pub(super) fn search(&mut self, path: &Path, file: &File, troubles: &mut Troubles) {
        let mut sink = FileSink::new(self.query, self.kept, path, &mut self.marks);
        let reader = Stoppable { file, halt: self.scene.halt(), unlooked: 0 };
        let searched = self.searcher.search_reader(&self.matcher, reader, &mut sink);
        let (binary, hits) = (sink.binary, sink.hits);
        if let Err(error) = searched {
            troubles.file(self.scene, path, &error);
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
}

impl Share for Searching<'_> {
    fn wants(&self, path: &Path) -> bool {
        self.query.filter.is_empty() || !self.query.filter.matched(path, false).is_ignore()
    }

    fn take(&mut self, entry: DirEntry, troubles: &mut Troubles) {
        match files::open(entry.path()) {
            Ok(file) => self.search(entry.path(), &file, troubles),
            Err(error) => troubles.file(self.scene, entry.path(), &error),
        }
    }
}

/// A file that ends with an error once the call is halted: one file alone may take longer than a call.
struct Stoppable<'a> {
    file: &'a File,
    halt: &'a Halt,
    unlooked: usize,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.unlooked >= BYTES_PER_LOOK {
            self.unlooked = 0;
            self.halt.check().map_err(io::Error::other)?;
        }
        let read = self.file.read(buffer)?;
        self.unlooked += read;
        Ok(read)
    }
}
