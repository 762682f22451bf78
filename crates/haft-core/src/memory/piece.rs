//! Cutting a document into pieces that can be found: whole paragraphs where they fit, each piece repeating a little of
//! the one before it, and every note by itself.

use super::note::{read_stamp, tags};

/// How large a piece is to be, in bytes.
const AIM: usize = 800;
/// A paragraph's end is taken once a piece has so much.
const ENOUGH: usize = AIM / 2;
/// A heading ends a piece that has so much.
const SECTION: usize = 160;
/// A longer line is cut.
const LINE: usize = 400;
/// How much is repeated.
const OVERLAP: usize = 160;

/// A part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'t> {
    /// Its words.
    pub text: &'t str,
    /// The line that it begins in, from 1.
    pub line: u32,
    /// The headings that it stands below, outermost first.
    pub heading: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// When it was noted, if it is a note.
    pub at_ms: Option<i64>,
}

/// A line, or a part of one that is too long.
#[derive(Debug, Clone, Copy)]
struct Unit {
    start: usize,
    end: usize,
    line: u32,
    edge: Edge,
}

/// What begins with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// Nothing: it goes on.
    None,
    /// A paragraph.
    Paragraph,
    /// A section, so deep.
    Heading(usize),
    /// A note.
    Note,
    /// What follows a note and does not belong to it.
    After,
}

/// The pieces of a document, in order.
pub fn pieces(document: &str) -> Vec<Piece<'_>> {
    let units = units(document);
    let mut headings: Vec<(usize, &str)> = Vec::new();
    let (mut all, mut at, mut noted) = (Vec::new(), 0, 0);
    while at < units.len() {
        if document[units[at].start..units[at].end].trim().is_empty() {
            at += 1;
            continue;
        }
        let end = end_of(&units, at);
        // What a piece repeats has been noted already.
        for unit in &units[noted.min(end)..end] {
            if let Edge::Heading(depth) = unit.edge {
                headings.retain(|(other, _)| *other < depth);
                headings.push((depth, document[unit.start..unit.end].trim_start_matches('#').trim()));
            }
        }
        noted = noted.max(end);
        all.extend(piece(document, &units[at..end], &headings));
        at = next(&units, at, end);
    }
    all
}

fn piece<'t>(document: &'t str, units: &[Unit], headings: &[(usize, &str)]) -> Option<Piece<'t>> {
    let (first, last) = (units.first()?, units.last()?);
    let text = document[first.start..last.end].trim_end();
    let heading = headings.iter().map(|(_, words)| *words).collect::<Vec<_>>().join(" / ");
    let at_ms = (first.edge == Edge::Note).then(|| read_stamp(text).map(|(at_ms, _)| at_ms)).flatten();
    (!text.trim().is_empty()).then(|| Piece { text, line: first.line, heading, tags: tags(text), at_ms })
}

/// Where the piece that begins at a unit ends: the unit after its last.
fn end_of(units: &[Unit], at: usize) -> usize {
    let (begin, is_note) = (units[at].start, units[at].edge == Edge::Note);
    let mut paragraph = None;
    for (number, unit) in units.iter().enumerate().skip(at + 1) {
        let size = unit.start - begin;
        match unit.edge {
            Edge::Note | Edge::After => return number,
            Edge::Heading(_) if size >= SECTION => return number,
            Edge::Heading(_) | Edge::Paragraph if size >= ENOUGH && !is_note => paragraph = Some(number),
            _ => {}
        }
        if unit.end - begin > AIM {
            return paragraph.unwrap_or(number);
        }
    }
    units.len()
}

/// Where the next piece begins: a little before this one's end, unless something new begins there.
fn next(units: &[Unit], at: usize, end: usize) -> usize {
    let new = |unit: &Unit| !matches!(unit.edge, Edge::None | Edge::Paragraph);
    let Some(after) = units.get(end).filter(|unit| !new(unit)) else { return end };
    let mut start = end;
    while start > at + 1 && after.start - units[start - 1].start <= OVERLAP && !new(&units[start - 1]) {
        start -= 1;
    }
    start
}

fn units(document: &str) -> Vec<Unit> {
    let (mut units, mut start, mut before) = (Vec::new(), 0, Before { blank: true, fence: false, note: false });
    for (number, line) in document.split_inclusive('\n').enumerate() {
        let number = u32::try_from(number + 1).unwrap_or(u32::MAX);
        let edge = before.edge(line);
        let end = start + line.len();
        let mut from = start;
        while from < end {
            let to = cut(document, from, end);
            let edge = if from == start { edge } else { Edge::None };
            units.push(Unit { start: from, end: to, line: number, edge });
            from = to;
        }
        start = end;
    }
    units
}

/// What the lines before said about the next.
struct Before {
    blank: bool,
    fence: bool,
    note: bool,
}

impl Before {
    fn edge(&mut self, line: &str) -> Edge {
        let marks = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        let (was_blank, in_fence) = (self.blank, self.fence);
        self.blank = line.trim().is_empty();
        self.fence ^= marks;
        if in_fence {
            return Edge::None;
        }
        if read_stamp(line).is_some() {
            self.note = true;
            return Edge::Note;
        }
        let belongs = self.blank || line.starts_with([' ', '\t']);
        if self.note && belongs {
            return Edge::None;
        }
        let depth = line.bytes().take_while(|b| *b == b'#').count();
        let after = std::mem::take(&mut self.note);
        if (1..=6).contains(&depth) && line[depth..].starts_with(' ') {
            Edge::Heading(depth)
        } else if after {
            Edge::After
        } else if was_blank && !self.blank {
            Edge::Paragraph
        } else {
            Edge::None
        }
    }
}

/// Where a line that begins at `from` is cut: at its end, or at a space before it is too long.
fn cut(document: &str, from: usize, end: usize) -> usize {
    if end - from <= LINE {
        return end;
    }
    let most = document.floor_char_boundary(from + LINE);
    let space = document[from..most].rfind(' ').map(|at| from + at + 1).filter(|at| at - from > LINE / 2);
    space.unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word of a document is in a piece, at the line that the piece says.
    fn covered(document: &str) -> Vec<Piece<'_>> {
        let all = pieces(document);
        let mut reached = 0;
        for piece in &all {
            let start = piece.text.as_ptr() as usize - document.as_ptr() as usize;
            assert!(document[reached.min(start)..start].trim().is_empty(), "nothing is left out before {start}");
            assert_eq!(document[..start].matches('\n').count() + 1, piece.line as usize);
            assert!(piece.text.len() <= AIM + LINE, "{}", piece.text.len());
            reached = reached.max(start + piece.text.len());
        }
        assert!(document[reached..].trim().is_empty());
        all
    }

    #[test]
    fn paragraphs_stay_whole_and_overlap() {
        let paragraph = "One sentence of some length stands here and says little. ".repeat(5);
        let short = "A short line at the end.";
        let document = format!("{paragraph}\n\n{paragraph}\n\n{short}\n\n{paragraph}\n\n{paragraph}\n");
        let all = covered(&document);
        assert!(all.len() > 1);
        assert!(all[0].text.ends_with(short) && all[1].text.starts_with(short), "what is short is in both");
    }

    #[test]
    fn a_piece_knows_its_headings() {
        let body = "Words about it that fill a line well enough to stand alone. ".repeat(4);
        let document = format!("# A\n{body}\n## B\n{body}\n## C\n{body}\n# D\n{body}\n");
        let headings: Vec<String> = covered(&document).into_iter().map(|piece| piece.heading).collect();
        assert_eq!(headings, ["A", "A / B", "A / C", "D"]);
    }

    #[test]
    fn a_note_stands_alone() {
        let document = "intro\n\n- [2026-11-16 04:50Z] one #a\n  more\n\n- [2026-11-17 00:00Z] two #b #c\nafter\n";
        let all = covered(document);
        let texts: Vec<&str> = all.iter().map(|piece| piece.text).collect();
        let notes = ["- [2026-11-16 04:50Z] one #a\n  more", "- [2026-11-17 00:00Z] two #b #c"];
        assert_eq!(texts, ["intro", notes[0], notes[1], "after"]);
        assert_eq!(all[2].tags, ["b", "c"]);
        assert!(all[1].at_ms < all[2].at_ms && all[0].at_ms.is_none());
    }

    #[test]
    fn odd_documents_are_cut_all_the_same() {
        let (long, wide) = ("x".repeat(5000), "\u{597d}".repeat(3000));
        let fence = format!("```\n{}\n```\n", "# no heading\n\n".repeat(200));
        let numbers = (0..500).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
        for document in ["", "\n\n\n", "a", "\r\n a\r\n", &long, &wide, &fence, &numbers] {
            covered(document);
        }
        assert!(pieces("").is_empty() && pieces("\n \n").is_empty());
        assert!(pieces(&fence).iter().all(|piece| piece.heading.is_empty()));
    }
}
