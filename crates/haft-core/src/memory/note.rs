//! A note: one thing that was learned, as an item of a list with its time and its tags.
//!
//! `- [2026-11-16 04:50Z] The user prefers tabs. #style`

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;
const TAG_MAX: usize = 50;

/// Something to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What was learned.
    pub text: String,
    /// What it is about, without `#`.
    pub tags: Vec<String>,
    /// When.
    pub at_ms: i64,
}

impl Note {
    /// As an item of a list; further lines are indented, so that they belong to it.
    pub fn to_markdown(&self) -> String {
        let mut lines = self.text.trim().lines().map(str::trim_end);
        let mut item = format!("- [{}] {}", stamp(self.at_ms), lines.next().unwrap_or_default());
        for line in lines {
            item.push('\n');
            if !line.is_empty() {
                item.push_str("  ");
                item.push_str(line);
            }
        }
        for tag in &self.tags {
            item.push_str(" #");
            item.push_str(tag);
        }
        item
    }
}

/// Whether a word can be a tag.
pub fn is_tag(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "-_/".contains(c);
    !word.is_empty() && word.len() <= TAG_MAX && word.chars().all(plain) && !word.bytes().all(|b| b.is_ascii_digit())
}

/// The tags in a text: words after `#`, in lower case. A heading has a space there.
pub(super) fn tags(text: &str) -> Vec<String> {
    let mut found: Vec<String> = text
        .split(|c: char| c.is_whitespace() || "()[],;".contains(c))
        .filter_map(|word| word.strip_prefix('#'))
        .map(|word| word.trim_end_matches(['.', ':', '!', '?']))
        .filter(|word| is_tag(word))
        .map(str::to_lowercase)
        .collect();
    found.sort();
    found.dedup();
    found
}

/// A time to the minute, as notes have it.
pub fn stamp(at_ms: i64) -> String {
    let (year, month, day) = civil(at_ms.div_euclid(DAY_MS));
    let minute = at_ms.rem_euclid(DAY_MS) / MINUTE_MS;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}Z", minute / 60, minute % 60)
}

/// A day of the Unix epoch as year, month and day.
pub fn civil(day: i64) -> (i64, i64, i64) {
    // Howard Hinnant's algorithm: years begin in March, so that a leap day is the last.
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

/// When the note was made that a line begins, and the rest of the line.
pub fn read_stamp(line: &str) -> Option<(i64, &str)> {
    let (text, rest) = line.strip_prefix("- [")?.split_once("] ")?;
    let parts = |text: &str, by: char| -> Option<Vec<i64>> {
        text.split(by).map(|part| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())?).collect()
    };
    let (date, time) = text.strip_suffix('Z')?.split_once(' ')?;
    let (date, time) = (parts(date, '-')?, parts(time, ':')?);
    let (&[year, month, day], &[hour, minute]) = (&date[..], &time[..]) else { return None };
    let real =
        (0..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60;
    real.then(|| (day_of(year, month, day) * DAY_MS + (hour * 60 + minute) * MINUTE_MS, rest))
}

/// Whether a document holds a note already: its text in the same letters as a note, an item or a line, with all of its
/// tags. What differs in anything but its time is another note.
pub fn holds(document: &str, note: &Note) -> bool {
    let item = note.to_markdown();
    let wanted = Said::of(&item);
    let lines =
        || document.lines().filter(|line| !line.starts_with([' ', '-'])).any(|line| Said::of(line).holds(&wanted));
    !note.text.trim().is_empty() && (items(document).iter().any(|item| Said::of(item).holds(&wanted)) || lines())
}

/// The items of the lists of a document, each with the lines that belong to it.
fn items(document: &str) -> Vec<&str> {
    let mut items: Vec<(usize, usize)> = Vec::new();
    let (mut at, mut inside) = (0, false);
    for line in document.split_inclusive('\n') {
        let end = at + line.len();
        if line.starts_with("- ") {
            items.push((at, end));
            inside = true;
        } else if !line.trim().is_empty() && !line.starts_with("  ") {
            inside = false;
        } else if let Some(last) = items.last_mut().filter(|_| inside) {
            last.1 = end;
        }
        at = end;
    }
    items.into_iter().map(|(start, end)| &document[start..end]).collect()
}

/// What an item or a line says: its text without mark and time, and the tags at its end.
struct Said<'t> {
    text: &'t str,
    tags: Vec<&'t str>,
}

impl<'t> Said<'t> {
    fn of(item: &'t str) -> Self {
        let item = item.trim_end();
        let text = read_stamp(item).map_or_else(|| item.strip_prefix("- ").unwrap_or(item), |(_, rest)| rest);
        let (mut text, mut tags) = (text, Vec::new());
        while let Some((before, tag)) = text.rsplit_once(" #").filter(|(_, tag)| is_tag(tag)) {
            tags.push(tag);
            text = before;
        }
        Self { text, tags }
    }

    fn holds(&self, other: &Self) -> bool {
        self.text == other.text && other.tags.iter().all(|tag| self.tags.contains(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_written_and_read() {
        let at_ms = 1_794_804_600_000;
        let note = Note { text: " Uses tabs.\n\nAlways.  ".to_owned(), tags: vec!["style".to_owned()], at_ms };
        let item = note.to_markdown();
        assert_eq!(item, "- [2026-11-16 04:50Z] Uses tabs.\n\n  Always. #style");
        assert_eq!(read_stamp(&item).unwrap().0, at_ms);
        assert_eq!(tags(&item), ["style"]);
        for none in ["- x", "- [x] done", "- [2026-13-01 00:00Z] x", "[2026-11-16 04:50Z] x", "- [2026-11-16 04:50] x"]
        {
            assert!(read_stamp(none).is_none(), "{none}");
        }
        for day in [-719_468, -1, 0, 59, 11_016, 20_000, 40_000] {
            let (y, m, d) = civil(day);
            assert_eq!(day_of(y, m, d), day);
        }
    }

    #[test]
    fn what_is_there_is_not_added_again() {
        let document = "# User\n\nPrefers  tabs.\n\n- [2026-11-16 04:50Z] Lives in Rome.\n  Near the river. #home #it\n\
                        - plain\n- [2026-11-16 04:51Z] code:\n\n      if x:\n- last #a\nafter\n";
        let holds = |text: &str, tags: &[&str]| {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            super::holds(document, &Note { text: text.to_owned(), tags, at_ms: 0 })
        };
        for (text, tags) in [
            ("Prefers  tabs.", &[][..]),
            (" Lives in Rome.\nNear the river. ", &[]),
            ("Lives in Rome.\nNear the river.", &["it"]),
            ("Lives in Rome.\nNear the river. #home", &["it"]),
            ("plain", &[]),
            ("code:\n\n    if x:", &[]),
            ("last", &["a"]),
            ("after", &[]),
        ] {
            assert!(holds(text, tags), "{text} {tags:?}");
        }
        for (text, tags) in [
            ("prefers  tabs.", &[][..]),
            ("Prefers tabs.", &[]),
            ("Prefers", &[]),
            ("Prefers  tabs.", &["style"]),
            ("Lives in Rome. Near the river.", &[]),
            ("Lives in Rome.", &[]),
            ("Near the river.", &[]),
            ("Lives in Rome.\nNear the river.", &["it", "city"]),
            ("Lives in Rome.\nNear the river. #Home", &[]),
            ("code:\n\nif x:", &[]),
            ("PLAIN", &[]),
            ("", &[]),
        ] {
            assert!(!holds(text, tags), "{text} {tags:?}");
        }
    }

    #[test]
    fn tags_are_words_after_a_sign() {
        assert_eq!(tags("# Head\nsee #One, #two. (#three) #12 a#b # x #größe"), ["größe", "one", "three", "two"]);
        assert!(!is_tag("") && !is_tag("a b") && !is_tag(&"x".repeat(51)));
    }
}
