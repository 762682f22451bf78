//! The simple commands of a text: their words, what is given to them, and what prints into them.

use super::Range;
use crate::shell::second;

/// One command as far as masking needs it.
#[derive(Debug, Default)]
pub(super) struct Simple {
    /// Its words, assignments among them, without redirections.
    pub(super) words: Vec<Range<usize>>,
    /// The bodies of its here-documents.
    pub(super) bodies: Vec<Range<usize>>,
    /// Its here-strings.
    pub(super) strings: Vec<Range<usize>>,
    /// The command whose output it reads.
    pub(super) piped_from: Option<usize>,
}

/// What is open while words are gone through: the text itself, or a word that holds others.
struct Level {
    end: usize,
    /// Where the last word of this level ended.
    done: usize,
    command: Option<usize>,
}

/// The commands of a text, and whether some of it could not be read.
pub(super) fn commands(text: &str) -> (Vec<Simple>, bool) {
    let look = second::look(text);
    let mut commands: Vec<Simple> = Vec::new();
    let mut levels = vec![Level { end: usize::MAX, done: 0, command: None }];
    let mut words = look.words;
    // What holds others comes before them.
    words.sort_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)));
    let mut line_done = 0;
    for (start, end) in words {
        while levels.last().is_some_and(|level| level.end <= start) {
            levels.pop();
        }
        let Some(level) = levels.last_mut() else { break };
        let gap = level.done.min(start)..start;
        let separator = within(&look.separators, &gap);
        let command = if let (Some(command), None) = (level.command, separator) {
            command
        } else {
            let bar = separator.is_some_and(|at| {
                text[at..].starts_with('|') && !text[at..].starts_with("||") && !text[..at].ends_with('|')
            });
            commands.push(Simple { piped_from: level.command.filter(|_| bar), ..Simple::default() });
            commands.len() - 1
        };
        level.command = Some(command);
        level.done = end;
        let redirect = within(&look.redirects, &gap);
        let one = &mut commands[command];
        match redirect.map(|at| &text[at..]) {
            Some(operator) if operator.starts_with("<<<") => one.strings.push(start..end),
            Some(operator) if operator.starts_with("<<") => {
                if let Some(body) = heredoc(text, (start, end), line_done, operator.starts_with("<<-")) {
                    line_done = body.end;
                    one.bodies.push(body);
                }
            }
            Some(_) => {}
            None => one.words.push(start..end),
        }
        levels.push(Level { end, done: start, command: None });
    }
    (commands, look.trouble.is_some())
}

/// The last of these places in a stretch.
fn within(places: &[usize], stretch: &Range<usize>) -> Option<usize> {
    let end = places.partition_point(|place| *place < stretch.end);
    places[..end].last().copied().filter(|place| *place >= stretch.start)
}

/// The body of the here-document whose delimiter is this word. `after` is where the last one ended.
fn heredoc(text: &str, (start, end): (usize, usize), after: usize, tabs: bool) -> Option<Range<usize>> {
    let delimiter = super::Word::read(text, start..end).text;
    let line_end = end + text.get(end..)?.find('\n')? + 1;
    let begin = line_end.max(after);
    let mut at = begin;
    for line in text.get(begin..)?.split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        let bare = if tabs { bare.trim_start_matches('\t') } else { bare };
        if bare == delimiter {
            return Some(begin..at);
        }
        at += line.len();
    }
    Some(begin..at)
}

/// The same of a text that no shell could read: words between blanks, commands between operators.
pub(super) fn rough_commands(text: &str) -> Vec<Simple> {
    let mut commands = vec![Simple::default()];
    let mut at = 0;
    for piece in text.split_inclusive(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&')) {
        let word = piece.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&'));
        if let Some(one) = commands.last_mut().filter(|_| !word.is_empty()) {
            one.words.push(at..at + word.len());
        }
        if piece.ends_with([';', '|', '&', '\n']) {
            commands.push(Simple::default());
        }
        at += piece.len();
    }
    commands
}
