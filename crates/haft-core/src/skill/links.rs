//! Relative links in a skill's Markdown: the files beside it that it sends a reader to.

/// A link to a file beside the `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelativeLink {
    /// The path, without a fragment.
    pub path: String,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
}

/// The relative links of a text, in their order. Code is left out.
pub(super) fn relative_links(text: &str) -> Vec<RelativeLink> {
    let (mut found, mut fence) = (Vec::new(), None);
    for (line, number) in text.lines().zip(1..) {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, Some(mark)) => fence = Some(mark),
            (None, None) => in_line(line, number, &mut found),
            _ => {}
        }
    }
    found
}

fn in_line(line: &str, number: u64, found: &mut Vec<RelativeLink>) {
    for (at, _) in line.match_indices("](") {
        let before = &line[..at];
        if before.matches('`').count() % 2 == 1 {
            continue;
        }
        let rest = &line[at + 2..];
        let target = rest.split([')', ' ']).next().unwrap_or_default().trim_matches(['<', '>']);
        let path = target.split(['#', '?']).next().unwrap_or_default();
        let elsewhere = path.is_empty() || path.starts_with('/') || path.contains(':');
        if !elsewhere {
            let column = before.chars().count() as u64 + 3;
            found.push(RelativeLink { path: path.to_owned(), line: number, column });
        }
    }
}
