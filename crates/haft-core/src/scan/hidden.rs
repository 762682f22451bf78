//! Characters that nobody sees and a model reads.

use super::{Found, Kind};

/// So many in a row carry a message and are no accident.
const RUN: usize = 8;
/// So many selectors in a row select nothing.
const SELECTORS: usize = 4;
/// So many words that are cut by what nobody sees are no accident.
const CUTS: usize = 4;

/// What is hidden in a text, counted as it is read.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    tags: Tally,
    blanks: Tally,
    longest: usize,
    run: usize,
    selectors: usize,
    longest_selectors: usize,
    overrides: Tally,
    end: usize,
    flag: bool,
}

#[derive(Debug, Default)]
struct Tally {
    count: usize,
    first: usize,
}

impl Tally {
    fn add(&mut self, at: usize) {
        if self.count == 0 {
            self.first = at;
        }
        self.count += 1;
    }
}

/// Whether nobody sees a character.
pub(super) fn is_hidden(c: char) -> bool {
    is_tag(c) || is_blank(c) || is_selector(c) || is_bidi(c)
}

fn is_tag(c: char) -> bool {
    matches!(c as u32, 0xe0000..=0xe007f)
}

fn is_blank(c: char) -> bool {
    matches!(c as u32, 0x00ad | 0x034f | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180e | 0x200b..=0x200d | 0x2060..=0x2064 | 0x3164 | 0xfeff | 0xffa0)
}

fn is_selector(c: char) -> bool {
    matches!(c as u32, 0xfe00..=0xfe0f | 0xe0100..=0xe01ef)
}

fn is_bidi(c: char) -> bool {
    matches!(c as u32, 0x200e | 0x200f | 0x202a..=0x202e | 0x2066..=0x2069)
}

impl Hidden {
    /// Takes in a character that is not ASCII. Whether nobody sees it.
    #[inline]
    pub(super) fn sees(&mut self, c: char, at: usize) -> bool {
        if !is_hidden(c) {
            // The flags of Wales and Scotland are spelled in tags.
            self.flag = c == '\u{1f3f4}';
            return false;
        }
        let follows = self.end == at;
        self.end = at + c.len_utf8();
        if is_tag(c) {
            if !(self.flag && follows) {
                self.tags.add(at);
            }
        } else if is_selector(c) {
            self.selectors = if follows { self.selectors + 1 } else { 1 };
            self.longest_selectors = self.longest_selectors.max(self.selectors);
        } else if is_blank(c) {
            self.blanks.add(at);
            self.run = if follows { self.run + 1 } else { 1 };
            self.longest = self.longest.max(self.run);
        } else if matches!(c, '\u{202d}' | '\u{202e}') {
            self.overrides.add(at);
        }
        true
    }

    /// What of it is worth saying. `cuts` is how many words were cut by it.
    pub(super) fn findings(&self, cuts: usize, found: &mut Found) {
        let mut say = |weight: u8, why: &str, at: usize| found.say(Kind::Hidden, weight, why, at);
        if self.tags.count >= 3 {
            say(60, "text in characters that are not shown (tags)", self.tags.first);
        }
        if self.longest_selectors >= SELECTORS {
            say(60, "data in characters that are not shown (variation selectors)", 0);
        }
        if self.longest >= RUN {
            say(50, "a run of characters without width, which can carry a message", self.blanks.first);
        } else if cuts >= CUTS {
            say(30, "words cut by characters without width", self.blanks.first);
        }
        if self.overrides.count > 0 {
            say(20, "characters that turn the direction of text", self.overrides.first);
        }
    }
}

/// How many words of Latin letters have something unseen inside.
pub(super) fn cuts(text: &str) -> usize {
    let mut count = 0;
    let mut before = ' ';
    let mut unseen = false;
    for c in text.chars() {
        if is_blank(c) && c != '\u{ad}' {
            unseen = before.is_ascii_alphabetic();
            continue;
        }
        count += usize::from(unseen && c.is_ascii_alphabetic());
        unseen = false;
        before = c;
    }
    count
}

impl Hidden {
    /// Whether there is anything to look closer at.
    pub(super) fn has_blanks(&self) -> bool {
        self.blanks.count >= CUTS
    }
}
