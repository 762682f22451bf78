//! Reading a page: tags open and close elements on a short stack, and what they mean is told to the writer.
//!
//! No tree is built. What the standard says about ends that nobody wrote, and about ends that do not fit, is followed as
//! far as it decides what a reader sees: text that a browser hides is hidden here.

mod lists;
mod meaning;

use crate::Options;
use crate::element::{KINDS, Kind, kind};
use crate::hidden::{Rules, style_hides};
use crate::table::Table;
use crate::write::Writer;
use crate::zones::Zones;
use html5gum::emitters::callback::CallbackEvent;
use lists::{ItemList, reversed_counts};
use std::collections::VecDeque;
use url::Url;

/// Elements nest so deep; what is deeper is text of the deepest.
const DEPTH_MAX: usize = 512;
/// As much of an attribute is read.
const ATTRIBUTE_MAX: usize = 8 << 10;
/// As much of a title is read.
const TITLE_MAX: usize = 1000;
/// So many elements are held that a browser would open again.
const DANGLING_MAX: usize = 32;

/// An element that is open.
#[derive(Debug)]
struct Open {
    kind: Kind,
    name: u64,
    hidden: bool,
    /// Whether the writer was told of it.
    shown: bool,
    zone: usize,
    /// Where its text begins, or one for what the writer was told of.
    note: usize,
}

/// A start tag that is being read.
#[derive(Debug, Default)]
struct Tag {
    name: String,
    attributes: Vec<(&'static str, String)>,
    next: Option<&'static str>,
    /// How many items it has, if it is a list that counts down.
    items: Option<i64>,
}

/// The attributes that make a difference.
const ATTRIBUTES: &[&str] = &[
    "id",
    "class",
    "style",
    "hidden",
    "aria-hidden",
    "href",
    "src",
    "alt",
    "start",
    "reversed",
    "open",
    "colspan",
    "rowspan",
    "value",
    "type",
    "checked",
];

impl Tag {
    fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }
}

/// A page that is being read.
pub(crate) struct Reading<'o> {
    options: &'o Options,
    rules: Rules,
    pub(crate) writer: Writer,
    pub(crate) zones: Zones,
    base: Option<Url>,
    stack: Vec<Open>,
    counts: [usize; KINDS],
    /// Elements beyond the deepest, and where among them one began to hide.
    deeper: usize,
    deeper_hidden: Option<usize>,
    hidden: usize,
    /// Hidden elements that were closed by mistake and that a browser opens again.
    dangling: Vec<u64>,
    /// The element that is dropped with all in it, how often it is open, and whether HTML stands inside a drawing.
    skipping: Option<(u64, usize, bool)>,
    tag: Tag,
    lists: Vec<ItemList>,
    /// How many items the lists have that are still to come and count down.
    reversed: VecDeque<i64>,
    tables: Vec<(Table, usize)>,
    languages: String,
    pub(crate) title: String,
    titled: bool,
    headed: bool,
    pub(crate) hidden_chars: usize,
}

impl<'o> Reading<'o> {
    pub(crate) fn new(html: &str, options: &'o Options) -> Self {
        Self {
            options,
            rules: Rules::read(html),
            writer: Writer::new(options.form, html.len() / 3),
            zones: Zones::new(options.main),
            base: options.base.clone(),
            stack: Vec::new(),
            counts: [0; KINDS],
            deeper: 0,
            deeper_hidden: None,
            hidden: 0,
            dangling: Vec::new(),
            skipping: None,
            tag: Tag::default(),
            lists: Vec::new(),
            reversed: reversed_counts(html),
            tables: Vec::new(),
            languages: String::new(),
            title: String::new(),
            titled: false,
            headed: false,
            hidden_chars: 0,
        }
    }

    /// Ends everything that is open.
    pub(crate) fn finish(&mut self) {
        while !self.stack.is_empty() {
            self.pop();
        }
        self.writer.end_line(1);
        if self.title.len() > TITLE_MAX {
            self.title.truncate(self.title.floor_char_boundary(TITLE_MAX));
        }
    }

    fn has(&self, kind: Kind) -> bool {
        self.counts[kind as usize] > 0
    }

    fn zone(&self) -> usize {
        self.stack.last().map_or(0, |open| open.zone)
    }

    fn unseen(&self) -> bool {
        self.hidden > 0 || self.deeper_hidden.is_some() || !self.dangling.is_empty()
    }

    fn text(&mut self, text: &str) {
        if self.skipping.is_some() {
            return;
        }
        if self.stack.last().is_some_and(|open| open.kind == Kind::Title) {
            if !self.titled {
                self.title.extend(text.chars().take(TITLE_MAX));
            }
            return;
        }
        if self.unseen() {
            self.hidden_chars += text.chars().filter(|c| !c.is_whitespace()).count();
            return;
        }
        let (zone, linked) = (self.zone(), self.has(Kind::Link));
        self.zones.text(zone, text.trim_ascii().len(), linked);
        self.writer.text(text);
    }

    fn start(&mut self, closes_itself: bool) {
        let mut tag = std::mem::take(&mut self.tag);
        let kind = kind(tag.name.as_bytes());
        let name = hash(tag.name.as_bytes());
        let reversed = kind == Kind::Ordered && tag.get("reversed").is_some();
        tag.items = if reversed { self.reversed.pop_front() } else { None };
        if !self.skips(kind, name, closes_itself) {
            self.open(kind, name, &tag);
        }
        self.tag = tag;
    }

    /// Whether what is dropped goes on, or begins.
    fn skips(&mut self, kind: Kind, name: u64, closes_itself: bool) -> bool {
        if let Some((dropped, depth, inside)) = &mut self.skipping {
            *depth += usize::from(*dropped == name && !closes_itself);
            *inside |= name == hash(b"foreignobject");
            let drawing = *dropped == hash(b"svg") || *dropped == hash(b"math");
            if !(drawing && !*inside && kind.ends_drawing()) {
                return true;
            }
            self.skipping = None;
        }
        match kind {
            // Only a drawing can close itself.
            Kind::Drawing if closes_itself => true,
            Kind::Drawing | Kind::Dropped => {
                self.skipping = Some((name, 1, false));
                true
            }
            _ => false,
        }
    }

    fn open(&mut self, kind: Kind, name: u64, tag: &Tag) {
        self.close_implied(kind);
        let hidden = self.hides(kind, tag);
        if kind.is_void() {
            if !hidden && !self.unseen() {
                self.void(kind, tag);
            }
            return;
        }
        if self.stack.len() >= DEPTH_MAX {
            self.deeper += 1;
            if hidden && self.deeper_hidden.is_none() {
                self.deeper_hidden = Some(self.deeper);
            }
            return;
        }
        let shown = !hidden && !self.unseen();
        self.hidden += usize::from(hidden);
        self.counts[kind as usize] += 1;
        let (mut zone, mut note) = (self.zone(), 0);
        if shown {
            note = self.enter(kind, tag);
            if kind.is_zone() {
                zone = self.zones.open(zone, kind, self.writer.out.len(), (tag.text("id"), tag.text("class")));
            }
        }
        self.stack.push(Open { kind, name, hidden, shown, zone, note });
    }

    fn hides(&self, kind: Kind, tag: &Tag) -> bool {
        if kind == Kind::Dialog && tag.get("open").is_none() {
            return true;
        }
        if tag.attributes.is_empty() {
            return self.rules.hide(&tag.name, "", "");
        }
        tag.get("hidden").is_some()
            || tag.text("aria-hidden").eq_ignore_ascii_case("true")
            || tag.get("style").is_some_and(style_hides)
            || self.rules.hide(&tag.name, tag.text("id"), tag.text("class"))
    }

    /// Ends what this element's beginning ends.
    fn close_implied(&mut self, kind: Kind) {
        match kind {
            Kind::Item => self.close_within(&[Kind::Item], &[Kind::List, Kind::Ordered]),
            Kind::Term | Kind::Meaning => self.close_within(&[Kind::Term, Kind::Meaning], &[Kind::Definitions]),
            Kind::Choice => self.close_within(&[Kind::Choice], &[]),
            Kind::Rows => self.close_within(&[Kind::Rows, Kind::Caption, Kind::Row], &[Kind::Table]),
            Kind::Row => self.close_within(&[Kind::Row, Kind::Caption], &[Kind::Table]),
            Kind::Cell => self.close_within(&[Kind::Cell, Kind::Caption], &[Kind::Table]),
            Kind::Link | Kind::Button => self.close_within(&[kind], &[Kind::Cell]),
            Kind::Heading if self.stack.last().is_some_and(|open| open.kind == Kind::Heading) => self.pop(),
            _ => {}
        }
        if kind.ends_paragraph() && self.has(Kind::Paragraph) {
            self.close_within(&[Kind::Paragraph], &[Kind::Cell, Kind::Caption, Kind::Button]);
        }
    }

    /// Ends the outermost of these kinds that is open inside the innermost of `bounds`.
    fn close_within(&mut self, kinds: &[Kind], bounds: &[Kind]) {
        if !kinds.iter().any(|kind| self.has(*kind)) {
            return;
        }
        let from = self.stack.iter().rposition(|open| bounds.contains(&open.kind)).map_or(0, |at| at + 1);
        if let Some(at) = self.stack[from..].iter().position(|open| kinds.contains(&open.kind)) {
            self.pop_to(from + at);
        }
    }

    fn pop_to(&mut self, length: usize) {
        (self.deeper, self.deeper_hidden) = (0, None);
        while self.stack.len() > length {
            let last = self.stack.len() == length + 1;
            if !last && self.stack.last().is_some_and(|open| open.hidden && open.kind.is_formatting()) {
                self.dangle();
            }
            self.pop();
        }
    }

    /// A hidden element that others end goes on hiding until its own end.
    fn dangle(&mut self) {
        if let Some(open) = self.stack.last().filter(|_| self.dangling.len() < DANGLING_MAX) {
            self.dangling.push(open.name);
        }
    }

    fn pop(&mut self) {
        let Some(open) = self.stack.pop() else { return };
        self.counts[open.kind as usize] -= 1;
        self.hidden -= usize::from(open.hidden);
        if open.kind == Kind::Title {
            self.titled |= !self.title.trim().is_empty();
        }
        if matches!(open.kind, Kind::Cell | Kind::Caption) {
            self.dangling.clear();
        }
        if open.shown {
            self.leave(&open);
        }
    }

    fn end(&mut self, name: &[u8]) {
        let (kind, name) = (kind(name), hash(name));
        if let Some((dropped, depth, _)) = &mut self.skipping {
            *depth -= usize::from(*dropped == name);
            if *depth == 0 {
                self.skipping = None;
            }
            return;
        }
        if self.deeper > 0 {
            self.deeper -= 1;
            if self.deeper_hidden.is_some_and(|at| at > self.deeper) {
                self.deeper_hidden = None;
            }
            return;
        }
        if let Some(at) = self.dangling.iter().rposition(|open| *open == name) {
            self.dangling.remove(at);
            return;
        }
        match kind {
            Kind::Break if !self.unseen() => self.writer.soft_break(),
            // An end without a beginning is an empty paragraph.
            Kind::Paragraph if !self.has(kind) && !self.unseen() => self.writer.end_line(2),
            _ if !self.has(kind) => {}
            _ => {
                if let Some(at) = self.matching(kind, name) {
                    self.pop_to(at);
                }
            }
        }
    }

    /// The open element that an end tag ends.
    fn matching(&self, kind: Kind, name: u64) -> Option<usize> {
        for (at, open) in self.stack.iter().enumerate().rev() {
            // Any heading's end ends any heading.
            if open.kind == kind && (open.name == name || kind == Kind::Heading) {
                return Some(at);
            }
            let bound = if kind.is_of_table() {
                open.kind == Kind::Table
            } else if kind.is_inline() && !kind.is_formatting() {
                !open.kind.is_inline()
            } else {
                open.kind.is_of_table()
            };
            if bound {
                return None;
            }
        }
        None
    }
}

impl Reading<'_> {
    /// Takes in the next piece of the page.
    pub(crate) fn take(&mut self, event: &CallbackEvent<'_>) {
        match *event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.attributes.clear();
                self.tag.next = None;
                self.tag.name.clear();
                self.tag.name.push_str(&String::from_utf8_lossy(&name[..name.len().min(64)]));
            }
            CallbackEvent::AttributeName { name } => {
                let known = ATTRIBUTES.iter().find(|known| known.as_bytes() == name).copied();
                self.tag.next = known.filter(|known| self.tag.get(known).is_none());
                self.tag.attributes.extend(self.tag.next.map(|name| (name, String::new())));
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some((_, text)) = self.tag.next.take().and(self.tag.attributes.last_mut()) {
                    text.push_str(&String::from_utf8_lossy(&value[..value.len().min(ATTRIBUTE_MAX)]));
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => self.start(self_closing),
            CallbackEvent::EndTag { name } => self.end(name),
            CallbackEvent::String { value } => match std::str::from_utf8(value) {
                Ok(text) => self.text(text),
                Err(_) => self.text(&String::from_utf8_lossy(value)),
            },
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
    }
}

/// A name as a number: FNV-1a.
fn hash(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
