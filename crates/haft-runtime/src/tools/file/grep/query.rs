//! What a call asks for, turned into the parts that can answer it.

use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use haft_core::CallError;
use ignore::overrides::{Override, OverrideBuilder};
use serde::Deserialize;
use std::path::Path;

/// No call shows more lines than this, so that memory stays bounded.
pub(super) const MAX_LINES: usize = 10_000;
/// A line, or a file searched across lines, longer than this is not held in memory.
const MAX_HEAP: usize = 64 << 20;

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
    pub(super) filter: Override,
    /// What comes back.
    pub(super) mode: Mode,
    /// Lines shown around a match.
    pub(super) context: usize,
    /// How many lines of output are shown.
    pub(super) limit: usize,
    /// Whether a match may span lines.
    pub(super) across_lines: bool,
}

impl Query {
    /// Compiles the arguments of a search at `start`.
    pub(super) fn new(args: &Args, start: &Path) -> Result<Self, CallError> {
        let (matcher, across_lines) = compile(args)?;
        let mut filter = OverrideBuilder::new(start);
        if let Some(glob) = &args.glob {
            if !haft_core::pattern::glob_is_sane(glob) {
                return Err(CallError::invalid("`glob` is too long, or its braces nest too deeply"));
            }
            let added = filter.add(glob.strip_prefix("./").unwrap_or(glob));
            added.map_err(|error| CallError::invalid(format!("`glob` is not a glob: {error}")))?;
        }
        let filter = filter.build().map_err(|error| CallError::invalid(format!("`glob` is not a glob: {error}")))?;
        let context = if args.output_mode == Mode::Content { args.context } else { 0 };
        let limit = args.head_limit.min(MAX_LINES);
        Ok(Self { matcher, filter, mode: args.output_mode, context, limit, across_lines })
    }

    /// A searcher for one thread.
    pub(super) fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(self.mode == Mode::Content)
            .before_context(self.context)
            .after_context(self.context)
            .multi_line(self.across_lines)
            .heap_limit(Some(MAX_HEAP))
            .build()
    }
}

/// The matcher, and whether it looks across lines. A pattern that cannot match a line end is searched
/// line by line, which is faster and needs no whole file in memory; one that names `\n` cannot be.
fn compile(args: &Args) -> Result<(RegexMatcher, bool), CallError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).unicode(true).case_insensitive(args.case_insensitive);
    let by_line = builder.line_terminator(Some(b'\n')).build(&args.pattern);
    let (built, across_lines) = match by_line {
        Err(error) if matches!(error.kind(), ErrorKind::NotAllowed(_)) => {
            (builder.line_terminator(None).build(&args.pattern), true)
        }
        built => (built, false),
    };
    let matcher = built.map_err(|error| {
        CallError::invalid(format!("`pattern` is not a regular expression: {error}"))
            .hint("escape special characters with a backslash to search for them as they are, e.g. `\\(`")
    })?;
    Ok((matcher, across_lines))
}
