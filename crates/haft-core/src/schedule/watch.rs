//! Watching a page: whether what a reader sees of it has changed.

use crate::record::Digest;
use std::collections::HashSet;

/// So much of a page is kept to say later what changed. The digest is of all of it.
pub const TEXT_MAX: usize = 64 << 10;
/// How many changed lines are told.
const LINES_MAX: usize = 40;
/// How long a line of them is.
const LINE_LONG: usize = 200;

/// What a look at a page showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The first look: there is nothing to compare it with.
    Baseline,
    /// It is as it was.
    Same,
    /// It has changed.
    Changed {
        /// The lines that came and went, shortened.
        diff: String,
    },
}

/// The digest of a page's visible text, in which spaces and empty lines do not count.
pub fn digest(text: &str) -> Digest {
    Digest::of(plain(text).as_bytes())
}

/// Compares a page with what was seen of it before: the digest of all of it, and its beginning.
pub fn watch_seen(previous: Option<(&Digest, &str)>, text: &str) -> Seen {
    let Some((before, was)) = previous else { return Seen::Baseline };
    if digest(text) == *before {
        return Seen::Same;
    }
    Seen::Changed { diff: diff(was, &kept(text)) }
}

/// What is kept of a page.
pub fn kept(text: &str) -> String {
    let text = plain(text);
    text[..text.floor_char_boundary(TEXT_MAX)].to_owned()
}

fn plain(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// Lines that are gone and lines that are new. Whoever looks at a page wants to know no more, and it costs no more than
/// reading both, whatever they are.
fn diff(before: &str, after: &str) -> String {
    let (old, new): (HashSet<&str>, HashSet<&str>) = (before.lines().collect(), after.lines().collect());
    let gone = before.lines().filter(|line| !new.contains(line)).map(|line| ('-', line));
    let come = after.lines().filter(|line| !old.contains(line)).map(|line| ('+', line));
    let mut told: Vec<String> = gone.chain(come).map(|(sign, line)| format!("{sign} {}", short(line))).collect();
    let more = told.len().saturating_sub(LINES_MAX);
    told.truncate(LINES_MAX);
    if more > 0 {
        told.push(format!("… {more} more lines"));
    }
    if told.is_empty() {
        let beyond = before.len().max(after.len()) >= TEXT_MAX - 4;
        told.push(
            if beyond {
                "(what changed lies beyond the part that is kept)"
            } else {
                "(the same lines in another order)"
            }
            .to_owned(),
        );
    }
    told.join("\n")
}

fn short(line: &str) -> String {
    let cut = &line[..line.floor_char_boundary(LINE_LONG)];
    format!("{cut}{}", if cut.len() < line.len() { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_look_is_silent_and_a_change_is_told() {
        let first = "Prices\n\nApples  3\nPears 4\n";
        assert_eq!(watch_seen(None, first), Seen::Baseline);
        let (seen, was) = (digest(first), kept(first));
        let look = |text: &str| watch_seen(Some((&seen, &was)), text);
        assert_eq!(look("Prices\nApples 3\n\n\n  Pears 4"), Seen::Same);
        let diff = "- Apples 3\n+ Apples 5\n+ Plums 1".to_owned();
        assert_eq!(look("Prices\nApples 5\nPlums 1\nPears 4\n"), Seen::Changed { diff });
        let diff = "(the same lines in another order)".to_owned();
        assert_eq!(look("Prices\nPears 4\nApples 3\n"), Seen::Changed { diff });
    }

    #[test]
    fn what_is_told_of_a_change_is_bounded() {
        let long = "é".repeat(TEXT_MAX);
        let (seen, was) = (digest(&long), kept(&long));
        assert!(was.len() <= TEXT_MAX);
        // Beyond what is kept it is noticed all the same.
        let Seen::Changed { diff } = watch_seen(Some((&seen, &was)), &format!("{long}x")) else { panic!("unnoticed") };
        assert_eq!(diff, "(what changed lies beyond the part that is kept)");
        let many: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
        let Seen::Changed { diff } = watch_seen(Some((&seen, &was)), &many) else { panic!("unnoticed") };
        assert!(diff.len() < 12_000 && diff.ends_with("more lines"), "{diff}");
    }
}
