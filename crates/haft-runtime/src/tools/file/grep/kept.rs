//! What is held of the results: enough to show the first lines in order of path, and no more, however
//! many there are.

use super::line::{Kind, Line};
use super::query::{MAX_LINES, Mode};
use crate::scene::Scene;
use crate::tool::Reply;
use crate::tools::file::fitted::LineList;
use haft_core::Dialect;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Add;
use std::path::{Path, PathBuf};

/// More bytes of lines than this are not given as data.
const DATA_MAX: usize = 1 << 20;

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
            Mode::FilesWithMatches => self.tell_files(scene, totals, |path, _| scene.shown(path)),
            Mode::Count => self.tell_files(scene, totals, |path, hits| format!("{}:{}", scene.shown(path), hits.count)),
        }
    }

    fn tell_files(&self, scene: &Scene, totals: Totals, line: impl Fn(&Path, &Hits) -> String) -> Reply {
        let mut list = LineList::default();
        self.files.iter().for_each(|(path, hits)| list.push(&line(path, hits)));
        let kept = list.len();
        let note = |shown: usize| {
            let more = totals.files - shown;
            (more > 0).then(|| format!("[{shown} files shown, {more} more; {}]", self.remedy(shown < kept)))
        };
        list.reply(scene.limits(), note).data(summary(totals, totals.files > kept))
    }

    fn tell_lines(&self, scene: &Scene, groups: bool, totals: Totals) -> Reply {
        let marking = Marking::of(scene.call().dialect);
        let mut page = Page { left: self.limit, groups, marking, ..Page::default() };
        for (path, hits) in &self.files {
            page.file(&scene.shown(path), &hits.lines);
        }
        let Page { list, counts, matches, found, .. } = page;
        let note = |above: usize| {
            let (shown, matching) = above.checked_sub(1).map_or((0, 0), |last| counts[last]);
            let more = totals.matches - matching;
            let remedy = self.remedy(above < counts.len());
            (more > 0 || above < counts.len()).then(|| format!("[{shown} lines shown, {more} more matches; {remedy}]"))
        };
        let mut data = summary(totals, totals.matches > found);
        data["lines"] = Value::Array(matches);
        list.reply(scene.limits(), note).data(data)
    }

    /// What shows the others, where some of these do not fit, or where there are more of them.
    fn remedy(&self, is_full: bool) -> &'static str {
        if is_full || self.limit == MAX_LINES { "narrow the search" } else { "raise head_limit or narrow the search" }
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
    /// Whether lines that do not follow each other are kept apart.
    groups: bool,
    marking: Marking,
    list: LineList,
    /// How many lines of files, and how many that match, there are up to each line of output.
    counts: Vec<(usize, usize)>,
    matches: Vec<Value>,
    bytes: usize,
    /// How many lines match, whether `matches` has them or is full.
    found: usize,
}

impl Page {
    fn file(&mut self, path: &str, lines: &[Line]) {
        for (index, line) in lines.iter().take(self.left).enumerate() {
            let (shown, matching) = self.counts.last().copied().unwrap_or_default();
            if self.groups && shown > 0 && (index == 0 || line.after_gap) {
                self.list.push("--");
                self.counts.push((shown, matching));
            }
            let sign = match line.kind {
                Kind::Match => ':',
                Kind::Context => '-',
            };
            let text = match self.marking {
                Marking::Plain => Cow::Borrowed(line.text.as_str()),
                Marking::Marked => Cow::Owned(line.marked()),
            };
            self.list.push(&format!("{path}{sign}{}{sign}{text}", line.number));
            self.counts.push((shown + 1, matching + usize::from(line.kind == Kind::Match)));
            if line.kind == Kind::Match {
                self.found(path, line);
            }
        }
        self.left -= lines.len().min(self.left);
    }

    fn found(&mut self, path: &str, line: &Line) {
        self.found += 1;
        self.bytes += path.len() + line.text.len();
        if self.bytes <= DATA_MAX {
            self.matches.push(json!({"path": path, "line": line.number, "text": line.text}));
        }
    }
}
