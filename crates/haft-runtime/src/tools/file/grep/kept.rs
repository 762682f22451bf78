//! What is held of the results: enough to show the first lines in order of path, and no more, however
//! many there are.

use super::line::{Kind, Line};
use super::query::Mode;
use crate::scene::Scene;
use crate::tool::Reply;
use haft_core::Dialect;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Add;
use std::path::{Path, PathBuf};

/// How much there is, shown or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Matching lines.
    pub(super) matches: usize,
    /// Files with a match.
    pub(super) files: usize,
}

impl Add for Totals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { matches: self.matches + other.matches, files: self.files + other.files }
    }
}

/// What was found in one file.
#[derive(Debug, Default)]
pub(super) struct Hits {
    /// How many lines match.
    pub(super) count: usize,
    /// In content mode: the first lines to show.
    pub(super) lines: Vec<Line>,
}

impl Hits {
    /// How many lines of output it makes. Outside content mode a file is a line.
    fn height(&self) -> usize {
        self.lines.len().max(1)
    }
}

/// The hits of the files that come first.
#[derive(Debug)]
pub(super) struct Kept {
    limit: usize,
    height: usize,
    files: BTreeMap<PathBuf, Hits>,
}

impl Kept {
    /// Keeps what `limit` lines of output can show.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, height: 0, files: BTreeMap::new() }
    }

    /// Whether anything of this file could still be shown.
    pub(super) fn wants(&self, path: &Path) -> bool {
        self.height < self.limit || self.files.last_key_value().is_some_and(|(last, _)| path < last.as_path())
    }

    /// Takes a file's hits, and drops the last files that can no longer be shown.
    pub(super) fn insert(&mut self, path: &Path, hits: Hits) {
        self.height += hits.height();
        self.files.insert(path.to_owned(), hits);
        while let Some(last) = self.files.last_entry() {
            let without = self.height - last.get().height();
            if without < self.limit {
                break;
            }
            self.height = without;
            last.remove();
        }
    }

    /// The reply.
    pub(super) fn tell(&self, scene: &Scene, mode: Mode, groups: bool, totals: Totals) -> Reply {
        match mode {
            Mode::Content => self.tell_lines(scene, groups, totals),
            Mode::FilesWithMatches => self.tell_files(totals, |path, _| scene.shown(path)),
            Mode::Count => self.tell_files(totals, |path, hits| format!("{}:{}", scene.shown(path), hits.count)),
        }
    }

    fn tell_files(&self, totals: Totals, line: impl Fn(&Path, &Hits) -> String) -> Reply {
        let mut lines: Vec<String> = self.files.iter().map(|(path, hits)| line(path, hits)).collect();
        let more = totals.files - lines.len();
        if more > 0 {
            lines.push(format!("[{} files shown, {more} more; raise head_limit or narrow the search]", lines.len()));
        }
        Reply::text(lines.join("\n")).data(summary(totals, more > 0))
    }

    fn tell_lines(&self, scene: &Scene, groups: bool, totals: Totals) -> Reply {
        let marking = Marking::of(scene.call().dialect);
        let mut page = Page { left: self.limit, marking, ..Page::default() };
        for (path, hits) in &self.files {
            page.file(&scene.shown(path), &hits.lines, groups);
        }
        let (shown, more) = (self.limit - page.left, totals.matches - page.matches.len());
        if more > 0 {
            let _ =
                write!(page.text, "[{shown} lines shown, {more} more matches; raise head_limit or narrow the search]");
        }
        page.text.truncate(page.text.trim_end_matches('\n').len());
        let mut data = summary(totals, more > 0);
        data["lines"] = Value::Array(page.matches);
        Reply::text(page.text).data(data)
    }
}

fn summary(totals: Totals, truncated: bool) -> Value {
    json!({"matches": totals.matches, "files": totals.files, "truncated": truncated})
}

/// Whether matches are marked inside the lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Marking {
    /// Lines stand as in the file, so that an edit can be built from them.
    #[default]
    Plain,
    /// Each match is written `>>like this<<`.
    Marked,
}

impl Marking {
    /// Only Flyto's document marks matches.
    fn of(dialect: Dialect) -> Self {
        if dialect == Dialect::Flyto { Self::Marked } else { Self::Plain }
    }
}

/// The text of content mode in the making.
#[derive(Default)]
struct Page {
    left: usize,
    marking: Marking,
    text: String,
    matches: Vec<Value>,
}

impl Page {
    fn file(&mut self, path: &str, lines: &[Line], groups: bool) {
        for (index, line) in lines.iter().take(self.left).enumerate() {
            if groups && !self.text.is_empty() && (index == 0 || line.after_gap) {
                self.text.push_str("--\n");
            }
            let sign = match line.kind {
                Kind::Match => ':',
                Kind::Context => '-',
            };
            let text = match self.marking {
                Marking::Plain => Cow::Borrowed(line.text.as_str()),
                Marking::Marked => Cow::Owned(line.marked()),
            };
            let _ = writeln!(self.text, "{path}{sign}{}{sign}{text}", line.number);
            if line.kind == Kind::Match {
                self.matches.push(json!({"path": path, "line": line.number, "text": line.text}));
            }
        }
        self.left -= lines.len().min(self.left);
    }
}
