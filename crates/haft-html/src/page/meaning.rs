//! What elements mean to the writer, as they begin and as they end.

use super::lists::ItemList;
use super::{Open, Reading, Tag};
use crate::element::Kind;
use crate::table::{CellSpan, NESTED_MAX, Table};
use crate::write::Mark;
use url::Url;

impl Reading<'_> {
    pub(super) fn void(&mut self, kind: Kind, tag: &Tag) {
        match kind {
            Kind::Break if self.has(Kind::Heading) => self.writer.part(),
            Kind::Break => self.writer.soft_break(),
            Kind::Rule => self.writer.rule(),
            Kind::Image => {
                let alt = tag.text("alt").trim();
                if !alt.is_empty() {
                    let url = self.address(tag.text("src")).filter(|url| url.starts_with("http"));
                    self.writer.image(alt, url.as_deref());
                }
            }
            Kind::Base => {
                let href = tag.text("href");
                let found = match &self.base {
                    Some(base) => base.join(href),
                    None => Url::parse(href),
                };
                self.base = found.ok().filter(Url::has_host).or(self.base.take());
            }
            // What is done is told apart from what is to be done.
            Kind::Void if self.has(Kind::Item) && is_checkbox(tag) => {
                self.writer.text(if tag.get("checked").is_some() { "[x] " } else { "[ ] " });
            }
            _ => {}
        }
    }

    /// An address in full, if it is one that leads somewhere else.
    fn address(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = match &self.base {
            Some(base) => base.join(href),
            None => Url::parse(href),
        };
        url.ok().filter(|url| matches!(url.scheme(), "http" | "https" | "mailto" | "tel")).map(Into::into)
    }

    /// Tells the writer that an element begins. What is to be remembered of it.
    pub(super) fn enter(&mut self, kind: Kind, tag: &Tag) -> usize {
        match kind {
            Kind::Heading => {
                self.writer.end_line(2);
                self.writer.mark_next(match tag.name.as_bytes() {
                    b"h1" => "# ",
                    b"h2" => "## ",
                    b"h3" => "### ",
                    b"h4" => "#### ",
                    b"h5" => "##### ",
                    _ => "###### ",
                });
                return self.writer.out.len();
            }
            Kind::List | Kind::Ordered => self.enter_list(kind, tag),
            Kind::Item => self.enter_item(tag),
            Kind::Definitions | Kind::Paragraph | Kind::Caption => {
                self.writer.end_line(2);
                return self.writer.out.len();
            }
            Kind::Term | Kind::Choice => self.writer.end_line(1),
            Kind::Meaning => {
                self.writer.end_line(1);
                self.writer.push_lead(Some(": ".to_owned()), "  ");
            }
            Kind::Quote => {
                self.writer.end_line(2);
                self.writer.push_lead(None, "> ");
            }
            Kind::Pre => {
                self.languages.clear();
                self.languages.push_str(tag.text("class"));
                self.writer.open_pre();
            }
            Kind::Code => {
                if self.has(Kind::Pre) && self.languages.is_empty() {
                    self.languages.push_str(tag.text("class"));
                }
                return self.mark(Mark::Code);
            }
            Kind::Link => {
                let url = self.address(tag.text("href"));
                // A link that leads nowhere ends the one before it all the same.
                self.writer.close_span(&Mark::Link(String::new()));
                return url.map_or(0, |url| self.mark(Mark::Link(url)));
            }
            Kind::Deleted | Kind::Struck => return self.mark(Mark::Deleted),
            Kind::Format | Kind::Other if tag.text("style").contains("line-through") => {
                return self.mark(Mark::Deleted);
            }
            Kind::Superscript => return self.mark(Mark::Superscript),
            Kind::Subscript => return self.mark(Mark::Subscript),
            Kind::Quotation => self.writer.text("\""),
            // A page may have written parentheses for browsers that know no readings.
            Kind::Reading if !self.writer.out.ends_with(['(', '（']) => {
                self.writer.text("(");
                return 1;
            }
            Kind::Table | Kind::Rows | Kind::Row | Kind::Cell => return self.enter_table(kind, tag),
            Kind::Button | Kind::Format | Kind::Title | Kind::Other | Kind::Reading => {}
            _ if self.has(Kind::Heading) => self.writer.part(),
            _ => self.writer.end_line(2),
        }
        0
    }

    /// Begins a mark within the line. One, if it has to be ended.
    fn mark(&mut self, mark: Mark) -> usize {
        usize::from(self.writer.open_span(mark))
    }

    fn unmark(&mut self, open: &Open) {
        if open.note == 1 {
            self.writer.close_span(&match open.kind {
                Kind::Code => Mark::Code,
                Kind::Link => Mark::Link(String::new()),
                Kind::Superscript => Mark::Superscript,
                Kind::Subscript => Mark::Subscript,
                _ => Mark::Deleted,
            });
        }
    }

    fn enter_list(&mut self, kind: Kind, tag: &Tag) {
        // A list inside an item goes on where the item is.
        let breaks = if self.has(Kind::Item) { 1 } else { 2 };
        self.writer.end_line(breaks);
        let ordered = kind == Kind::Ordered;
        self.lists.push(if ordered { ItemList::numbered(tag, tag.items) } else { ItemList::dotted() });
    }

    fn enter_item(&mut self, tag: &Tag) {
        let (mut mark, mut begun) = ("- ".to_owned(), false);
        if let Some(list) = self.lists.last_mut() {
            begun = std::mem::replace(&mut list.begun, true);
            mark = list.mark(tag);
        }
        if begun {
            self.writer.end_item();
        } else {
            self.writer.end_line(1);
        }
        let rest = " ".repeat(mark.len());
        self.writer.push_lead(Some(mark), &rest);
    }

    fn enter_table(&mut self, kind: Kind, tag: &Tag) -> usize {
        match kind {
            Kind::Table => {
                if let Some((around, _)) = self.tables.last_mut() {
                    around.odd = true;
                }
                let mark = self.zones.mark();
                if self.tables.len() < NESTED_MAX {
                    let table = Table::open(&mut self.writer);
                    self.tables.push((table, mark));
                    return 1;
                }
                self.writer.end_line(2);
            }
            Kind::Rows => {
                if let Some((table, _)) = self.tables.last_mut() {
                    table.part_rows();
                }
            }
            Kind::Row => match self.tables.last_mut() {
                Some((table, _)) => table.open_row(&mut self.writer),
                None => self.writer.end_line(1),
            },
            _ => {
                let span = CellSpan::read(tag.text("colspan"), tag.text("rowspan"));
                match self.tables.last_mut() {
                    Some((table, _)) => table.open_cell(&mut self.writer, span, tag.name == "th"),
                    None => self.writer.end_line(1),
                }
            }
        }
        0
    }

    /// Tells the writer that an element ends.
    pub(super) fn leave(&mut self, open: &Open) {
        match open.kind {
            Kind::Heading => self.leave_heading(open.note),
            Kind::List | Kind::Ordered => {
                self.lists.pop();
                self.writer.end_line(if self.has(Kind::Item) { 1 } else { 2 });
            }
            Kind::Item | Kind::Meaning => {
                self.writer.end_line(1);
                self.writer.pop_lead();
            }
            Kind::Quote => {
                self.writer.end_line(2);
                self.writer.pop_lead();
            }
            Kind::Paragraph => {
                self.writer.end_line(2);
                let text = self.writer.out.get(open.note..).unwrap_or_default();
                self.zones.paragraph(open.zone, text);
            }
            Kind::Pre => {
                let language = language(&self.languages).to_owned();
                self.writer.close_pre(&language);
            }
            Kind::Code | Kind::Link | Kind::Deleted | Kind::Struck | Kind::Superscript | Kind::Subscript => {
                self.unmark(open);
            }
            Kind::Format | Kind::Other if open.note == 1 => self.unmark(open),
            Kind::Quotation => self.writer.text("\""),
            Kind::Reading if open.note == 1 => self.writer.text(")"),
            Kind::Cell => {
                if let Some((table, _)) = self.tables.last_mut() {
                    table.close_cell(&mut self.writer);
                }
            }
            Kind::Table if open.note == 1 => {
                if let Some((table, mark)) = self.tables.pop()
                    && table.close(&mut self.writer, self.options.form).is_some()
                {
                    self.zones.forget_since(mark + 1);
                }
            }
            Kind::Button | Kind::Format | Kind::Title | Kind::Other | Kind::Reading | Kind::Row => {}
            Kind::Rows => {
                if let Some((table, _)) = self.tables.last_mut() {
                    table.part_rows();
                }
            }
            Kind::Term | Kind::Choice => self.writer.end_line(1),
            _ if self.has(Kind::Heading) => self.writer.part(),
            _ => self.writer.end_line(2),
        }
        if open.kind.is_zone() {
            self.zones.close(open.zone, self.writer.out.len());
        }
    }

    /// The first heading is left out if it says what the title says: that stands above it.
    fn leave_heading(&mut self, start: usize) {
        self.writer.end_line(2);
        let text = self.writer.out.get(start..).unwrap_or_default().trim();
        if !std::mem::replace(&mut self.headed, true) && !text.is_empty() {
            let text = text.trim_start_matches('#').trim();
            if text == crate::collapsed(&self.title) {
                self.writer.rewind(start);
            }
        }
    }
}

fn is_checkbox(tag: &Tag) -> bool {
    tag.name == "input" && tag.text("type").eq_ignore_ascii_case("checkbox")
}

/// The language that classes name, if it is a plain word.
fn language(classes: &str) -> &str {
    let names = classes.split_ascii_whitespace();
    let mut found = names.filter_map(|class| {
        ["language-", "lang-", "highlight-source-"].iter().find_map(|prefix| class.strip_prefix(prefix))
    });
    let plain = |name: &&str| {
        name.len() <= 20 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'#' | b'-'))
    };
    found.find(plain).unwrap_or_default()
}
