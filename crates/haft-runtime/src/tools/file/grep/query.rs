//! What a call asks for, turned into the parts that can answer it.

use super::line_ends::NamedLineEnds;
use crate::tools::file::path_glob::{Extent, PathGlob};
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use haft_core::CallError;
use serde::Deserialize;
use std::path::Path;

/// No call shows more lines than this, so that memory stays bounded.
pub(super) const MAX_LINES: usize = 10_000;
/// A line, or a file searched across lines, longer than this is not held in memory.
pub(super) const MAX_HEAP: usize = 64 << 20;
/// A pattern that becomes larger than this is not compiled.
const MAX_PATTERN: usize = 16 << 20;
/// What each thread may remember about a pattern, to go faster.
const MAX_CACHE: usize = 32 << 20;

/// What comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// The matching lines.
    Content,
    /// The paths of files with a match.
    FilesWithMatches,
    /// How many lines match in each file.
    Count,
}

/// The arguments as they were said.
#[derive(Deserialize)]
pub(super) struct Args {
    pub(super) pattern: String,
    glob: Option<String>,
    output_mode: Mode,
    context: usize,
    case_insensitive: bool,
    head_limit: usize,
}

/// The arguments as they are meant.
pub(super) struct Query {
    /// What counts as a match.
    pub(super) matcher: RegexMatcher,
    /// Which files are searched; it says nothing about ignore files.
    filter: Option<PathFilter>,
    /// What comes back.
    pub(super) mode: Mode,
    /// Lines shown around a match.
    pub(super) context: usize,
    /// How many lines of output are shown.
    pub(super) limit: usize,
    /// Whether a match may span lines.
    pub(super) across_lines: bool,
    /// Whether carriage returns before line feeds are searched as well.
    pub(super) with_carriage_returns: bool,
}

impl Query {
    /// Compiles the arguments.
    pub(super) fn new(args: &Args) -> Result<Self, CallError> {
        let named = NamedLineEnds::of(&args.pattern);
        let (matcher, across_lines) = compile(args, named)?;
        let filter = args.glob.as_deref().map(PathFilter::new).transpose()?;
        let context = if args.output_mode == Mode::Content { args.context } else { 0 };
        let limit = args.head_limit.min(MAX_LINES);
        let with_carriage_returns = named.carriage_return;
        Ok(Self { matcher, filter, mode: args.output_mode, context, limit, across_lines, with_carriage_returns })
    }

    /// Whether a file is searched, by its path below the place that is.
    pub(super) fn wants(&self, path: &Path) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.glob.is_match(path) != filter.excludes)
    }

    /// A searcher for one thread, line by line.
    pub(super) fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(self.mode == Mode::Content)
            .before_context(self.context)
            .after_context(self.context)
            .heap_limit(Some(MAX_HEAP))
            .build()
    }
}

/// Which files are searched.
struct PathFilter {
    glob: PathGlob,
    /// Whether those that match are left out, rather than the others.
    excludes: bool,
}

impl PathFilter {
    /// Reads a glob as ripgrep's `--glob`: one without a slash is about names at any depth, `!` leaves out what matches, and
    /// what is left out goes with all that is in it. `dir/` is everything in such a directory.
    fn new(spoken: &str) -> Result<Self, CallError> {
        if !haft_core::pattern::glob_is_sane(spoken) {
            return Err(CallError::invalid("`glob` is too long, or its braces nest too deeply"));
        }
        let (excludes, glob) = spoken.strip_prefix('!').map_or((false, spoken), |rest| (true, rest));
        let glob = glob.strip_prefix("./").unwrap_or(glob);
        let (in_dir, glob) = glob.strip_suffix('/').map_or((false, glob), |rest| (true, rest));
        let glob = match glob.strip_prefix('/') {
            Some(anchored) => anchored.to_owned(),
            None if glob.contains('/') => glob.to_owned(),
            None => format!("**/{glob}"),
        };
        let extent = match (in_dir, excludes) {
            (true, _) => Extent::Directory,
            (false, true) => Extent::PathOrDirectory,
            (false, false) => Extent::Path,
        };
        let glob = PathGlob::with_extent(&glob, extent)
            .map_err(|why| CallError::invalid(format!("`glob` is not a glob: {why}")))?;
        Ok(Self { glob, excludes })
    }
}

/// The matcher, and whether it looks across lines. A pattern that does not ask for a line end is searched line by line, which is
/// faster and needs no whole file in memory.
fn compile(args: &Args, named: NamedLineEnds) -> Result<(RegexMatcher, bool), CallError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).unicode(true).case_insensitive(args.case_insensitive);
    builder.size_limit(MAX_PATTERN).dfa_size_limit(MAX_CACHE);
    let by_line = (!named.line_feed).then(|| builder.line_terminator(Some(b'\n')).build(&args.pattern));
    let (built, across_lines) = match by_line {
        Some(Err(error)) if matches!(error.kind(), ErrorKind::NotAllowed(_)) => {
            (builder.line_terminator(None).build(&args.pattern), true)
        }
        None => (builder.build(&args.pattern), true),
        Some(built) => (built, false),
    };
    let matcher = built.map_err(|error| {
        CallError::invalid(format!("`pattern` is not a regular expression: {error}"))
            .hint("escape special characters with a backslash to search for them as they are, e.g. `\\(`")
    })?;
    Ok((matcher, across_lines))
}
