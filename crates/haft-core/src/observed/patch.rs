//! The patch format of `apply_patch`: which files a patch touches, and what it makes of them.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: PATH        every line begins with +
//! *** Delete File: PATH
//! *** Update File: PATH     optionally followed by *** Move to: PATH, then sections that begin with @@
//! *** End Patch
//! ```
//!
//! Policy decides by the files that a patch touches, so one line that cannot be parsed makes the whole patch invalid.

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedFile {
    /// Which file, as the patch names it.
    pub path: String,
    /// What becomes of it.
    pub action: PatchAction,
}

/// What becomes of a patched file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchAction {
    /// It is made, with this content.
    Add(String),
    /// It is removed.
    Delete,
    /// It is changed, and perhaps moved.
    Update {
        /// Where it goes.
        moved_to: Option<String>,
        /// The sections, in order.
        sections: Vec<PatchSection>,
    },
}

/// One section of an update: lines that stand there, and the lines in their place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchSection {
    /// A line that stands somewhere before it.
    pub anchor: Option<String>,
    /// The lines before.
    pub before: Vec<String>,
    /// The lines after.
    pub after: Vec<String>,
    /// Whether it is about the end of the file.
    pub at_end: bool,
}

/// Why a patch is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {why}")]
pub struct BadPatch {
    /// Which line, counted from one.
    pub line: usize,
    /// In what way.
    pub why: &'static str,
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
/// The error for a path with leading or trailing blanks.
const BLANKS: &str = "a path begins or ends with a blank";
const END_OF_FILE: &str = "*** End of File";

/// Reads a patch.
pub fn parse(text: &str) -> Result<Vec<PatchedFile>, BadPatch> {
    let lines: Vec<&str> = text.trim().lines().collect();
    let bad = |line: usize, why| BadPatch { line: line + 1, why };
    if lines.first().map(|line| line.trim()) != Some(BEGIN) {
        return Err(bad(0, "a patch begins with `*** Begin Patch`"));
    }
    if lines.len() < 2 || lines.last().map(|line| line.trim()) != Some(END) {
        return Err(bad(lines.len().saturating_sub(1), "a patch ends with `*** End Patch`"));
    }
    let (mut files, mut at, end) = (Vec::new(), 1, lines.len() - 1);
    while at < end {
        let line = lines[at];
        if let Some(path) = line.strip_prefix(ADD) {
            let path = exact(path).ok_or(bad(at, BLANKS))?;
            let mut content = String::new();
            at += 1;
            while at < end && !lines[at].starts_with("*** ") {
                let added = lines[at].strip_prefix('+').ok_or(bad(at, "a line of a new file begins with `+`"))?;
                content.push_str(added);
                content.push('\n');
                at += 1;
            }
            files.push(PatchedFile { path: path.to_owned(), action: PatchAction::Add(content) });
        } else if let Some(path) = line.strip_prefix(DELETE) {
            let path = exact(path).ok_or(bad(at, BLANKS))?;
            at += 1;
            files.push(PatchedFile { path: path.to_owned(), action: PatchAction::Delete });
        } else if let Some(path) = line.strip_prefix(UPDATE) {
            let path = exact(path).ok_or(bad(at, BLANKS))?;
            at += 1;
            let moved_to = (at < end).then(|| lines[at].strip_prefix(MOVE)).flatten();
            let moved_to = moved_to.map(|path| exact(path).ok_or(bad(at, BLANKS))).transpose()?;
            at += usize::from(moved_to.is_some());
            let sections = update(&lines[..end], &mut at)?;
            files.push(PatchedFile {
                path: path.to_owned(),
                action: PatchAction::Update { moved_to: moved_to.map(str::to_owned), sections },
            });
        } else if line.trim().is_empty() {
            at += 1;
        } else {
            return Err(bad(at, "a file begins with `*** Add File`, `*** Delete File` or `*** Update File`"));
        }
    }
    if files.is_empty() || files.iter().any(|file| file.path.is_empty()) {
        return Err(bad(0, "it names no file"));
    }
    Ok(files)
}

/// A path just as it stands. Some agents cut the blanks off, so that the two could mean different files.
fn exact(path: &str) -> Option<&str> {
    (path.trim() == path).then_some(path)
}

/// The sections of an update, up to the next file.
fn update(lines: &[&str], at: &mut usize) -> Result<Vec<PatchSection>, BadPatch> {
    let mut sections: Vec<PatchSection> = Vec::new();
    while let Some(line) = lines.get(*at) {
        if line.trim_end() == END_OF_FILE {
            sections
                .last_mut()
                .ok_or(BadPatch { line: *at + 1, why: "`*** End of File` without a section before it" })?
                .at_end = true;
        } else if line.starts_with("*** ") {
            break;
        } else if let Some(anchor) = line.strip_prefix("@@") {
            let anchor = Some(anchor.trim_end().trim_start_matches(' ').to_owned()).filter(|text| !text.is_empty());
            sections.push(PatchSection { anchor, ..PatchSection::default() });
        } else {
            if sections.is_empty() {
                sections.push(PatchSection::default());
            }
            let Some(section) = sections.last_mut() else { break };
            match line.split_at_checked(1) {
                Some(("+", text)) => section.after.push(text.to_owned()),
                Some(("-", text)) => section.before.push(text.to_owned()),
                Some((" ", text)) => {
                    section.before.push(text.to_owned());
                    section.after.push(text.to_owned());
                }
                None => {
                    section.before.push(String::new());
                    section.after.push(String::new());
                }
                Some(_) => {
                    return Err(BadPatch { line: *at + 1, why: "a line of an update begins with a blank, `+` or `-`" });
                }
            }
        }
        *at += 1;
    }
    Ok(sections)
}

/// What an update makes of a text; none if a section does not stand there word for word. The agent may be more
/// forgiving, so this foresees the usual case and proves nothing.
pub fn apply(text: &str, sections: &[PatchSection]) -> Option<String> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    let (mut made, mut from): (Vec<&str>, usize) = (Vec::new(), 0);
    for section in sections {
        let mut search = from;
        if let Some(anchor) = &section.anchor {
            search += lines[from..].iter().position(|line| line == anchor)? + 1;
        }
        let before: Vec<&str> = section.before.iter().map(String::as_str).collect();
        let found = if before.is_empty() {
            lines.len()
        } else {
            let last = lines.len().checked_sub(before.len())?;
            let starts = if section.at_end { last..=last } else { search..=last };
            starts.into_iter().find(|at| *at >= search && lines[*at..*at + before.len()] == before[..])?
        };
        made.extend(&lines[from..found]);
        made.extend(section.after.iter().map(String::as_str));
        from = found + before.len();
    }
    made.extend(&lines[from..]);
    Some(made.iter().flat_map(|line| [line, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Add File: new/b.txt\n+hi\n+\n\
                         *** Delete File: c.txt\n*** Update File: d.txt\n*** Move to: e.txt\n@@ fn main\n-x\n+y\n*** End Patch\n";

    #[test]
    fn every_file_of_a_patch_is_found() {
        let files = parse(PATCH).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a.txt", "new/b.txt", "c.txt", "d.txt"]);
        assert_eq!(files[1].action, PatchAction::Add("hi\n\n".to_owned()));
        let PatchAction::Update { moved_to, sections } = &files[3].action else { panic!() };
        assert_eq!((moved_to.as_deref(), sections[0].anchor.as_deref()), (Some("e.txt"), Some("fn main")));
    }

    #[test]
    fn update_replaces_the_lines_it_names() {
        let sections = |body: &str| {
            let text = format!("*** Begin Patch\n*** Update File: a\n{body}*** End Patch");
            match parse(&text).unwrap().remove(0).action {
                PatchAction::Update { sections, .. } => sections,
                other => panic!("{other:?}"),
            }
        };
        let text = "one\ntwo\nthree\ntwo\n";
        assert_eq!(apply(text, &sections("@@\n one\n-two\n+2\n")).unwrap(), "one\n2\nthree\ntwo\n");
        assert_eq!(apply(text, &sections("@@ three\n-two\n+2\n")).unwrap(), "one\ntwo\nthree\n2\n");
        assert_eq!(apply(text, &sections("@@\n-two\n+2\n*** End of File\n")).unwrap(), "one\ntwo\nthree\n2\n");
        assert_eq!(apply(text, &sections("@@\n-two\n+2\n@@\n-two\n+zwei\n")).unwrap(), "one\n2\nthree\nzwei\n");
        assert_eq!(apply(text, &sections("@@\n+four\n")).unwrap(), "one\ntwo\nthree\ntwo\nfour\n");
        assert_eq!(apply(text, &sections("@@\n-five\n+5\n")), None);
        assert_eq!(apply("", &sections("@@\n-five\n+5\n")), None);
    }

    #[test]
    fn patch_that_is_not_understood_is_refused_with_its_line() {
        for (text, line) in [
            ("", 1),
            ("rm -rf /", 1),
            ("*** Begin Patch\n*** Add File: a\n+x\n", 3),
            ("*** Begin Patch\n*** Copy File: a\n*** End Patch", 2),
            ("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", 3),
            ("*** Begin Patch\n*** Update File: a\n@@\n?x\n*** End Patch", 4),
            ("*** Begin Patch\n*** End Patch", 1),
            ("*** Begin Patch\n*** Delete File:  a\n*** End Patch", 2),
            ("*** Begin Patch\n*** Delete File: a \n*** End Patch", 2),
            ("*** Begin Patch\n*** Add File: a\u{a0}\n+x\n*** End Patch", 2),
            ("*** Begin Patch\n*** Update File: a\n*** Move to:  b\n@@\n+x\n*** End Patch", 3),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
