//! Output that is a list of lines, cut to what a reply may hold. A line is whole or not there: half a path names a file that does
//! not exist.

use crate::tool::Reply;
use haft_core::shape::Limits;

/// Lines of output in the making.
#[derive(Debug, Default)]
pub(super) struct LineList {
    text: String,
    /// Where each line ends.
    ends: Vec<usize>,
}

impl LineList {
    /// Adds a line.
    pub(super) fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.ends.push(self.text.len());
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// A reply with as many lines as fit, and a last line about the others. `note` is given how many lines are above it, and says
    /// nothing where nothing is missing. If not all lines fit, the runtime keeps them.
    pub(super) fn reply(mut self, limits: Limits, note: impl Fn(usize) -> Option<String>) -> Reply {
        let all = note(self.len());
        let length = self.text.len() + all.as_ref().map_or(0, String::len);
        if length <= limits.bytes && self.len() + usize::from(all.is_some()) <= limits.lines {
            return Reply::text(self.with(all.as_deref()));
        }
        let mut count = self.len().min(limits.lines.saturating_sub(1));
        let (mut end, mut last);
        loop {
            end = count.checked_sub(1).map_or(0, |last| self.ends[last]);
            last = note(count);
            let room = limits.bytes.saturating_sub(last.as_ref().map_or(0, String::len));
            if count == 0 || end <= room {
                break;
            }
            count = self.ends[..count - 1].partition_point(|end| *end <= room);
        }
        let shown = format!("{}{}", &self.text[..end], last.unwrap_or_default());
        let mut reply = Reply::text(shown.trim_end_matches('\n').to_owned());
        reply.whole_text = Some(self.with(all.as_deref()));
        reply
    }

    fn with(&mut self, note: Option<&str>) -> String {
        let mut text = std::mem::take(&mut self.text);
        text.push_str(note.unwrap_or_default());
        text.truncate(text.trim_end_matches('\n').len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::shape::Keep;

    fn reply(lines: &[&str], limits: (usize, usize)) -> (String, Option<String>) {
        let mut list = LineList::default();
        for line in lines {
            list.push(line);
        }
        let limits = Limits { lines: limits.0, bytes: limits.1, keep: Keep::Head };
        let total = lines.len();
        let reply = list.reply(limits, |shown| (shown < total).then(|| format!("[{} more]", total - shown)));
        (reply.text, reply.whole_text)
    }

    #[test]
    fn lines_are_cut_whole_and_counted() {
        let lines = ["alpha", "beta", "gamma", "delta"];
        let all = "alpha\nbeta\ngamma\ndelta";
        assert_eq!(reply(&lines, (10, 100)), (all.to_owned(), None));
        assert_eq!(reply(&lines, (10, 24)), (all.to_owned(), None));
        assert_eq!(reply(&lines, (10, 22)), ("alpha\nbeta\n[2 more]".to_owned(), Some(all.to_owned())));
        assert_eq!(reply(&lines, (3, 100)), ("alpha\nbeta\n[2 more]".to_owned(), Some(all.to_owned())));
        assert_eq!(reply(&lines, (10, 3)), ("[4 more]".to_owned(), Some(all.to_owned())));
        assert_eq!(reply(&["ä".repeat(50).as_str()], (10, 60)).0, "[1 more]");
        assert_eq!(reply(&[], (10, 100)), (String::new(), None));
    }
}
